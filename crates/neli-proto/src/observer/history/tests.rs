//! Tests of terms, their ends and gaps, and of the findings.

use alloc::{format, vec};

use super::*;
use crate::journal::{Journal, Origin};
use crate::observer::tests::election;
use crate::time::Time;

const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_000_000 };

fn history(records: &[(u64, &str)]) -> Election {
    let mut history = election(Journal::read_from(0, Origin::Beginning));
    for (offset, (ms, line)) in (0..).zip(records) {
        history.judge(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(*ms));
    }
    history
}

/// The findings, if the last leader has just written a record.
fn findings(history: &Election) -> Vec<Finding> {
    let at = history.terms().last().and_then(|term| term.last_record_ms).unwrap_or_default();
    history.findings(ReadAt { wall_ms: at, ..AT }, 0).into_iter().map(|(finding, _)| finding).collect()
}

fn claim(member: &str, after: Offset) -> alloc::string::String {
    format!(r#"{{"v":1,"kind":"claim","member":"{member}","seq":1,"after":{after},"lease_ms":5000}}"#)
}

fn beat(member: &str, term: Offset) -> alloc::string::String {
    format!(r#"{{"v":1,"kind":"beat","member":"{member}","seq":2,"term":{term},"seen":{term},"lease_ms":5000}}"#)
}

#[test]
fn an_overlapped_job_is_not_reported() {
    let marked =
        |line: alloc::string::String, more: &str| line.replace("\"lease_ms\"", &format!("{more},\"lease_ms\""));
    let history = history(&[
        (0, &marked(claim("a", -1), "\"overlap_ms\":900")),
        (1_000, &marked(beat("a", 0), "\"overlap_ms\":900,\"yields\":true")),
        (1_100, &marked(claim("b", 1), "\"overlap_ms\":900,\"over\":0")),
        (1_500, &release("a", 0, "")),
        (2_000, &marked(beat("b", 2), "\"overlap_ms\":900")),
    ]);
    let how = HowReleased { why: Some("exited".into()), request: None, exit: Some(3), late: None, once: None };
    let overlapped = TermEnd::Overlapped { claimed_ms: Some(1_100), how: Some(Arc::new(how)) };
    assert_eq!(ends(&history), [overlapped, TermEnd::Open]);
    assert_eq!(findings(&history), []);
}

/// Only a faulty writer names another term than the current one.
#[test]
fn a_claim_over_a_past_term_changes_no_end() {
    let before = [(0, claim("a", -1)), (1_000, release("a", 0, "")), (1_100, claim("b", 1)), (9_000, claim("c", 2))];
    for (kept, over, is_overlapped) in [(2, 0, false), (4, 0, false), (4, 2, false), (4, 3, true)] {
        let marks = format!("\"overlap_ms\":900,\"over\":{over},\"lease_ms\"");
        let last = claim("d", kept - 1).replace("\"lease_ms\"", &marks);
        let records = before.iter().map(|(ms, line)| (*ms, line.as_str())).take(usize::try_from(kept).unwrap());
        let ends = ends(&history(&records.chain([(9_100, &*last)]).collect::<Vec<_>>()));
        assert!(matches!(ends[0], TermEnd::Released { .. }), "{ends:?}");
        assert_eq!(ends.iter().any(|end| matches!(end, TermEnd::Overlapped { .. })), is_overlapped, "{ends:?}");
    }
}

fn ends(history: &Election) -> Vec<TermEnd> {
    history.terms().iter().map(|term| term.end.clone()).collect()
}

/// The time without a leader after a leader that fell silent with a lease of 5 s: it led no longer than up to `least` ago.
const fn silent_for(most: Duration) -> Gap {
    Gap { most, least: most.saturating_sub(Duration::from_secs(5)) }
}

/// The time since a release.
const fn released_for(length: Duration) -> Gap {
    Gap { most: length, least: length }
}

fn release(member: &str, term: Offset, late: &str) -> alloc::string::String {
    format!(
        r#"{{"v":1,"kind":"release","member":"{member}","seq":9,"term":{term},"seen":{term},"why":"exited","exit":3{late}}}"#
    )
}

#[test]
fn terms_follow_each_other_with_their_ends_and_gaps() {
    let history = history(&[
        (1_000, &claim("m", -1)),
        (2_000, &beat("m", 0)),
        (3_000, &release("m", 0, "")),
        (3_040, &claim("n", 2)),
        (8_000, &beat("n", 3)),
        (16_000, &claim("m", 4)),
    ]);
    let terms: Vec<_> = history
        .terms()
        .iter()
        .map(|term| (term.term, term.shown(), term.from_ms, term.led_until_ms(), term.lease_over_ms()))
        .collect();
    let expected = [
        (0, "m", Some(1_000), Some(3_000), Some(3_000)),
        (3, "n", Some(3_040), Some(8_000), Some(13_000)),
        (5, "m", Some(16_000), Some(16_000), Some(21_000)),
    ];
    assert_eq!(terms, expected);
    let gap = silent_for(Duration::from_secs(8));
    let gaps: Vec<Option<Gap>> = (0..3).map(|at| history.gap_after(at)).collect();
    assert_eq!(gaps, [Some(released_for(Duration::from_millis(40))), Some(gap), None]);
    assert_eq!(history.terms()[1].end, TermEnd::Silent);
    assert_eq!(findings(&history), [Finding::Gap { after: 3, gap, is_open: false }]);
}

/// `neli-run`, the guard and the job get SIGKILL, and another candidate claims as soon as it may: the machine was dead for up to a lease.
#[test]
fn a_leader_that_died_led_no_longer_than_up_to_its_last_record_for_certain() {
    let history = history(&[(0, &claim("m", -1)), (1_000, &beat("m", 0)), (6_213, &claim("n", 1))]);
    let gap = Gap { most: Duration::from_millis(5_213), least: Duration::from_millis(213) };
    assert_eq!((history.gap_after(0), history.terms()[0].led_until_ms()), (Some(gap), Some(1_000)));
    assert_eq!(findings(&history), [Finding::Gap { after: 0, gap, is_open: false }]);
}

#[test]
fn a_claim_before_the_lease_s_end_is_an_overlap() {
    let history = history(&[(0, &claim("m", -1)), (4_000, &beat("m", 0)), (8_500, &claim("n", 1))]);
    let overlap = Finding::Overlap { term: 2, before: 0, by: Duration::from_millis(500) };
    assert_eq!(findings(&history), [overlap]);
    assert!(findings(&history)[0].is_violation());
}

#[test]
fn a_late_fence_is_an_overlap_if_another_candidate_leads_by_then() {
    let late = r#","late_ms":70"#;
    let own = history(&[(0, &claim("m", -1)), (6_000, &release("m", 0, late))]);
    let finding = Finding::LateFence { term: 0, late: Duration::from_millis(70), overlaps: false };
    assert_eq!(findings(&own), [finding]);
    assert!(!findings(&own)[0].is_violation());
    let beside = history(&[(0, &claim("m", -1)), (5_100, &claim("n", 0)), (5_200, &release("m", 0, late))]);
    assert_eq!(findings(&beside).iter().filter(|finding| finding.is_violation()).count(), 1);
}

/// A release is sent again if the broker does not acknowledge it in time. The first one shows that no other candidate led by then.
#[test]
fn a_release_that_is_appended_twice_is_no_overlap() {
    let (claimed, late) = (claim("m", -1), release("m", 0, r#","late_ms":70"#));
    let twice = [(0, &*claimed), (5_100, &*late), (5_200, &*late)];
    let beside = [(0, &*claimed), (5_100, &*late), (5_150, &*claim("n", 1)), (5_200, &*late)];
    for records in [&twice[..], &beside[..]] {
        let late = Finding::LateFence { term: 0, late: Duration::from_millis(70), overlaps: false };
        let twice = Finding::NotEffective { claims: 0, words: 1, nonsense: 0 };
        assert_eq!(findings(&history(records)), [late, twice]);
    }
}

#[test]
fn void_records_are_counted() {
    let history =
        history(&[(0, &claim("m", -1)), (1, &claim("n", -1)), (2, "x"), (3, &beat("o", 0)), (4, &beat("m", 0))]);
    assert_eq!(findings(&history), [Finding::NotEffective { claims: 1, words: 1, nonsense: 1 }]);
    assert_eq!(history.terms().len(), 1);
}

/// A present time without a leader is reported separately from past ones.
#[test]
fn there_has_been_no_leader_since_the_last_term() {
    let records = [(1_000, claim("m", -1)), (2_000, beat("m", 0))];
    let records: Vec<(u64, &str)> = records.iter().map(|(ms, line)| (*ms, line.as_str())).collect();
    let open = |history: &Election, ms| {
        let at = ReadAt { wall_ms: ms, ..AT };
        (history.open_gap(at), history.findings(at, 0))
    };
    let silent = history(&records);
    assert_eq!(open(&silent, 5_199), (None, Vec::new()), "it leads");
    let length = silent_for(Duration::from_millis(3_200));
    let gap = Finding::Gap { after: 0, gap: length, is_open: true };
    assert_eq!(open(&silent, 5_200), (Some(length), [(gap, Some(5_200))].into()), "it may have died");
    let length = silent_for(Duration::from_secs(28));
    let gap = Finding::Gap { after: 0, gap: length, is_open: true };
    assert_eq!(open(&silent, 30_000), (Some(length), [(gap, Some(30_000))].into()), "from its last record on");
    let released = release("m", 0, "");
    let released = history(&[records.as_slice(), &[(3_000, released.as_str())]].concat());
    let length = released_for(Duration::from_secs(27));
    let gap = Finding::Gap { after: 0, gap: length, is_open: true };
    assert_eq!(open(&released, 30_000), (Some(length), [(gap, Some(30_000))].into()));
}

#[test]
fn a_gap_of_more_than_a_tenth_of_the_lease_is_reported() {
    for (ms, is_reported) in [(3_500, false), (3_501, true)] {
        let records = [(1_000, claim("m", -1)), (3_000, release("m", 0, "")), (ms, claim("n", 1))];
        let records: Vec<(u64, &str)> = records.iter().map(|(ms, line)| (*ms, line.as_str())).collect();
        let gap = released_for(Duration::from_millis(ms - 3_000));
        let closed = Finding::Gap { after: 0, gap, is_open: false };
        assert_eq!(findings(&history(&records)), Vec::from_iter(is_reported.then_some(closed)));
        let open: Vec<Finding> = history(&records[..2])
            .findings(ReadAt { wall_ms: ms, ..AT }, 0)
            .into_iter()
            .map(|(finding, _)| finding)
            .collect();
        let expected = Finding::Gap { after: 0, gap, is_open: true };
        assert_eq!(open, Vec::from_iter(is_reported.then_some(expected)));
    }
}

/// `--since 1h --check` must not fail because two jobs ran at once a year ago.
#[test]
fn records_before_the_start_are_not_reported() {
    let late = release("m", 0, r#","late_ms":70"#);
    let lines = [claim("m", -1), claim("n", 0), late, claim("o", 2), claim("x", 0), "x".into()];
    let times = [0, 1_000, 1_100, 3_000, 3_100, 3_200];
    let history = history(&times.into_iter().zip(lines.iter().map(alloc::string::String::as_str)).collect::<Vec<_>>());
    let found = |from_ms| {
        let findings = history.findings(ReadAt { wall_ms: 3_200, ..AT }, from_ms);
        findings.iter().map(|(finding, at_ms)| (finding.is_violation(), finding.term(), *at_ms)).collect::<Vec<_>>()
    };
    let not_effective = (false, None, Some(3_200));
    let overlaps = [(true, Some(1), Some(1_000)), (true, Some(3), Some(3_000))];
    let late = (true, Some(0), Some(1_100));
    assert_eq!(found(0), [overlaps[0], overlaps[1], late, not_effective]);
    assert_eq!(found(2_000), [overlaps[1], not_effective]);
    assert_eq!(found(3_200), [not_effective]);
    assert_eq!(found(3_201), []);
}

/// A broker that was stopped appends a heartbeat or a release when it continues, after the leader's lease was over.
#[test]
fn records_after_the_lease_s_end_do_not_extend_a_term() {
    let late_beat = [(0, &*claim("m", -1)), (1_000, &beat("m", 0)), (20_000, &beat("m", 0)), (26_000, &claim("n", 2))];
    let late_release =
        [(0, &*claim("m", -1)), (1_000, &beat("m", 0)), (20_000, &release("m", 0, "")), (26_000, &claim("n", 2))];
    let late_beats = [
        late_beat[0],
        late_beat[1],
        late_beat[2],
        (20_700, &beat("m", 0)),
        (21_500, &beat("m", 0)),
        (26_000, &claim("n", 4)),
    ];
    for records in [&late_beat[..], &late_release, &late_beats] {
        let history = history(records);
        let gap = silent_for(Duration::from_secs(25));
        assert_eq!((history.terms()[0].lease_over_ms(), history.gap_after(0)), (Some(6_000), Some(gap)));
        assert_eq!(findings(&history), [Finding::Gap { after: 0, gap, is_open: false }]);
    }
    let beats: Vec<_> = (20_000..=81_000).step_by(1_000).map(|ms| (ms, beat("m", 0))).collect();
    let beats = beats.iter().map(|(ms, beat)| (*ms, &**beat));
    let goes_on = history(&core::iter::once((0, &*claim("m", -1))).chain(beats).collect::<Vec<_>>());
    assert_eq!(
        (goes_on.terms()[0].last_record_ms, findings(&goes_on)),
        (Some(81_000), vec![]),
        "the broker's clock was set forward"
    );
}
