use super::*;
use crate::record::Overlap;
use crate::timings::LONGEST_LEASE;

const NOW: Time = Time::from_nanos(1_000_000_000_000);

/// L4: the earliest end that is still known counts, since every offset from there on was appended afterwards.
#[test]
fn of_several_answers_the_least_end_counts_while_it_is_recent() {
    for (later, is_window) in [(Duration::ZERO, 3), (ANSWER_HOLDS, 3), (ANSWER_HOLDS + Duration::from_nanos(1), 6)] {
        let mut journal = Journal::read_from(0, Origin::Beginning);
        journal.answered(NOW, NOW, 3);
        journal.answered(NOW + later, NOW + later, 9);
        journal.read(NOW + later, 0, Some(&claim(-1)));
        journal.read_other(NOW + later, 6);
        assert_eq!(journal.window, is_window, "{later:?}");
    }
}

fn record(body: Body) -> Record {
    Record { member: Some(MemberId::from("m")), name: None, seq: Some(1), body }
}

fn claim(after: Offset) -> Record {
    record(Body::Claim { after, lease_ms: 1000, overlap: None })
}

fn beat(term: Offset, seen: Offset) -> Record {
    record(Body::Beat { term, seen, lease_ms: 1000, job: None, overlap: None })
}

fn release(term: Offset, seen: Offset) -> Record {
    record(Body::Release {
        term,
        seen,
        why: Some("exited".into()),
        exit: Some(0),
        late_ms: None,
        group_member: None,
        once: None,
        successor: None,
    })
}

/// A journal that reads records at growing offsets and checks its verdicts.
struct Reading(Journal);

impl Reading {
    fn of(from: Offset, origin: Origin) -> Self {
        Self(Journal::read_from(from, origin))
    }

    fn says(&mut self, offset: Offset, record: &Record, verdict: Verdict) -> &mut Self {
        assert_eq!(self.0.read(NOW, offset, Some(record)), verdict, "offset {offset}");
        self
    }
}

#[test]
fn l1_the_first_claim_wins_and_its_double_is_void() {
    Reading::of(0, Origin::Beginning)
        .says(0, &claim(-1), Verdict::Effective)
        .says(1, &claim(-1), Verdict::Void)
        .says(2, &beat(0, 1), Verdict::Effective)
        .says(3, &claim(1), Verdict::Void)
        .says(4, &claim(3), Verdict::Effective)
        .says(5, &beat(0, 3), Verdict::Void);
}

#[test]
fn l1_nonsense_of_this_election_counts_and_other_keys_do_not() {
    let mut reading = Reading::of(0, Origin::Beginning);
    assert_eq!(reading.0.read(NOW, 0, None), Verdict::Nonsense);
    reading.says(1, &claim(-1), Verdict::Void);
    reading.0.read_other(NOW, 2);
    reading.0.read_other(NOW, 3);
    reading.says(4, &claim(1), Verdict::Effective);
}

#[test]
fn l2_a_release_ends_the_term_once() {
    let mut reading = Reading::of(0, Origin::Beginning);
    reading
        .says(0, &claim(-1), Verdict::Effective)
        .says(1, &release(0, 0), Verdict::Effective)
        .says(2, &release(0, 0), Verdict::Void)
        .says(3, &beat(0, 0), Verdict::Void);
    assert_eq!(reading.0.view(), &View::Released { term: 0, why: Some("exited".into()) });
}

#[test]
fn l3_the_longest_lease_of_the_term_is_kept() {
    let mut reading = Reading::of(0, Origin::Beginning);
    reading.says(0, &claim(-1), Verdict::Effective);
    let mut long = beat(0, 0);
    if let Body::Beat { lease_ms, .. } = &mut long.body {
        *lease_ms = 9000;
    }
    reading.says(1, &long, Verdict::Effective).says(2, &beat(0, 1), Verdict::Effective);
    let View::Led(term) = reading.0.view() else { panic!("not led") };
    assert_eq!(term.lease, Duration::from_secs(9));
}

#[test]
fn l3_a_record_of_another_member_counts_for_no_term() {
    let by = |member: &str, body: Body| Record { member: Some(MemberId::from(member)), ..record(body) };
    Reading::of(0, Origin::Beginning)
        .says(0, &by("a", claim(-1).body), Verdict::Effective)
        .says(1, &by("b", release(0, 0).body), Verdict::Void)
        .says(2, &by("b", beat(0, 1).body), Verdict::Void)
        .says(3, &Record { member: None, ..beat(0, 2) }, Verdict::Void)
        .says(4, &by("a", beat(0, 3).body), Verdict::Effective);
    // If the claim was not read, the writer of the first record that counted is the leader.
    Reading::of(100, Origin::Middle)
        .says(100, &by("a", beat(7, 99).body), Verdict::Effective)
        .says(101, &by("b", release(7, 100).body), Verdict::Void)
        .says(102, &by("a", release(7, 101).body), Verdict::Effective);
}

#[test]
fn l4_a_reading_from_the_middle_is_undecided_until_a_record_refers_to_it() {
    Reading::of(100, Origin::Middle)
        .says(100, &beat(7, 98), Verdict::Undecided)
        .says(101, &release(6, 98), Verdict::Undecided)
        .says(102, &beat(7, 99), Verdict::Effective)
        .says(103, &claim(102), Verdict::Effective);
}

#[test]
fn l4_a_claim_that_cannot_be_judged_undoes_a_decision() {
    Reading::of(100, Origin::Middle)
        .says(100, &claim(90), Verdict::Undecided)
        .says(101, &beat(7, 99), Verdict::Undecided)
        .says(102, &claim(90), Verdict::Void)
        .says(103, &beat(100, 100), Verdict::Effective)
        .says(104, &claim(103), Verdict::Effective);
}

#[test]
fn l4_a_release_read_meanwhile_is_remembered() {
    let mut reading = Reading::of(100, Origin::Middle);
    reading
        .says(100, &release(7, 98), Verdict::Undecided)
        // The leader's record as of 99 comes after the release that its own guard wrote.
        .says(101, &beat(7, 99), Verdict::Void);
    assert_eq!(reading.0.view(), &View::Released { term: 7, why: None });
}

#[test]
fn l4_a_missing_offset_moves_the_window_in_every_view() {
    let mut reading = Reading::of(0, Origin::Beginning);
    reading
        .says(0, &claim(-1), Verdict::Effective)
        .says(2, &beat(0, 0), Verdict::Undecided)
        .says(3, &beat(0, 2), Verdict::Effective)
        .says(5, &beat(0, 3), Verdict::Undecided);
    assert_eq!(reading.0.last(), 5);
    reading.says(6, &beat(0, 4), Verdict::Effective);
}

#[test]
fn l4_for_a_minute_after_the_question_gaps_that_an_answer_excludes_are_markers() {
    let mut journal = Journal::read_from(0, Origin::Beginning);
    journal.read(NOW, 0, Some(&claim(-1)));
    journal.answered(NOW, NOW, 1);
    let later = NOW + Duration::from_secs(60);
    assert_eq!(journal.read(later, 2, Some(&beat(0, 0))), Verdict::Effective);
    let too_late = later + Duration::from_millis(1);
    assert_eq!(journal.read(too_late, 4, Some(&beat(0, 2))), Verdict::Undecided);
}

#[test]
fn l4_part_of_a_gap_may_be_markers() {
    let mut journal = Journal::read_from(0, Origin::Beginning);
    journal.read(NOW, 0, Some(&claim(-1)));
    journal.answered(NOW, NOW, 3);
    assert_eq!(journal.read(NOW, 6, Some(&beat(0, 2))), Verdict::Effective, "1 and 2 are missing: w is 3");
    let mut journal = Journal::read_from(0, Origin::Beginning);
    journal.read(NOW, 0, Some(&claim(-1)));
    journal.answered(NOW, NOW, 3);
    assert_eq!(journal.read(NOW, 6, Some(&beat(0, 1))), Verdict::Undecided, "1 and 2 are missing: w is 3");
}

#[test]
fn l4_if_only_whole_segments_are_deleted_a_gap_between_two_records_is_markers() {
    let mut reading = Reading::of(0, Origin::Beginning);
    assert!(!reading.0.topic_judged(true), "nothing was misread");
    reading.says(0, &claim(-1), Verdict::Effective).says(9, &beat(0, 0), Verdict::Effective);
    let mut again = reading.0.read_again_from(3, Origin::Middle);
    assert_eq!(
        again.read(NOW, 5, Some(&beat(0, 3))),
        Verdict::Undecided,
        "what is missing at the start may be a record"
    );

    let mut early = Reading::of(0, Origin::Beginning);
    early.says(0, &claim(-1), Verdict::Effective).says(2, &beat(0, 0), Verdict::Undecided);
    assert!(early.0.topic_judged(true), "what was taken for missing is to be read again");
}

/// A beat shows that the claim of its term was there: what is missing was deleted, although neither the topic's settings nor an answer allow it.
#[test]
fn l4_a_later_term_whose_claim_was_taken_for_a_marker_undoes_a_decision() {
    let led_at_zero = || {
        let mut reading = Reading::of(0, Origin::Beginning);
        reading.0.topic_judged(true);
        reading.says(0, &claim(-1), Verdict::Effective);
        reading
    };
    led_at_zero()
        .says(4, &beat(2, 2), Verdict::Undecided)
        .says(5, &beat(0, 0), Verdict::Undecided)
        .says(6, &beat(2, 3), Verdict::Effective)
        .says(7, &beat(0, 0), Verdict::Void);
    led_at_zero().says(4, &beat(2, 3), Verdict::Effective);
    // Only markers were missing: no term began behind them, or it is not a later one.
    led_at_zero().says(1, &claim(-1), Verdict::Void).says(3, &beat(1, 2), Verdict::Void);
    led_at_zero().says(2, &claim(0), Verdict::Effective).says(3, &beat(0, 0), Verdict::Void);
}

#[test]
fn l4_an_answer_about_the_end_holds_for_a_second_reading() {
    let mut journal = Journal::read_from(20, Origin::Middle);
    journal.answered(NOW, NOW, 12);
    let mut again = Reading(journal.read_again_from(11, Origin::Middle));
    again.says(11, &claim(10), Verdict::Effective).says(14, &beat(11, 11), Verdict::Effective);
}

#[test]
fn before_the_first_record_the_last_is_the_one_before_the_window() {
    assert_eq!(Journal::read_from(0, Origin::Beginning).last(), -1);
    assert_eq!(Journal::read_from(100, Origin::Middle).last(), 99);
}

#[test]
fn a_cut_head_is_empty_until_a_record_of_the_election_is_read() {
    let mut journal = Journal::read_from(100, Origin::CutHead);
    let is_empty = |journal: &Journal| matches!(journal.view(), View::Undecided(u) if u.empty_since_cut_head);
    journal.read_other(NOW, 100);
    assert!(is_empty(&journal));
    journal.read(NOW, 101, None);
    assert!(!is_empty(&journal));
}

#[test]
fn a_resign_binds_the_term_that_it_names_and_no_other() {
    let resign = |term| record(Body::Request { what: What::Resign, term, by: None, reason: None, successor: None });
    Reading::of(0, Origin::Beginning)
        .says(0, &resign(None), Verdict::Nonsense)
        .says(1, &resign(Some(0)), Verdict::Void)
        .says(2, &claim(1), Verdict::Effective)
        .says(3, &resign(Some(0)), Verdict::Void)
        .says(4, &resign(Some(2)), Verdict::Effective);
}

#[test]
fn without_missing_records_the_log_is_not_read_again() {
    let mut reading = Reading::of(0, Origin::Beginning);
    reading.says(0, &claim(-1), Verdict::Effective).says(1, &beat(0, 0), Verdict::Effective);
    assert!(!reading.0.topic_judged(true));
    // Offsets missing beyond an answer are markers, also before R0 is judged.
    reading.0.answered(NOW, NOW, 2);
    reading.says(3, &beat(0, 1), Verdict::Effective);
    assert!(!reading.0.topic_judged(true));
}

/// A claim or a beat that names the earlier job.
fn over(record: Record, over: Option<Offset>) -> Record {
    let declared = Some(Overlap { within_ms: 100, over, yields: false });
    let body = match record.body {
        Body::Claim { after, lease_ms, .. } => Body::Claim { after, lease_ms, overlap: declared },
        Body::Beat { term, seen, lease_ms, job, .. } => Body::Beat { term, seen, lease_ms, job, overlap: declared },
        Body::Release { .. } | Body::Request { .. } => panic!("it tells of no job before"),
    };
    Record { body, ..record }
}

fn by(member: &str, record: Record) -> Record {
    Record { member: Some(MemberId::from(member)), ..record }
}

#[test]
fn a_claim_names_the_term_that_it_overlaps() {
    let unread = |term| EarlierJob::Overlapped { term, member: None, name: None, lease: LONGEST_LEASE };
    let mut reading = Reading::of(0, Origin::Beginning);
    reading.says(0, &by("a", over(claim(-1), None)), Verdict::Effective).says(
        1,
        &by("b", over(claim(0), Some(0))),
        Verdict::Effective,
    );
    let EarlierJob::Overlapped { term: 0, member: Some(member), .. } = reading.0.earlier_job() else { panic!() };
    assert_eq!(*member, MemberId::from("a"));
    // A record that the earlier leader wrote before it read the claim shows nothing about its own job.
    reading.says(2, &by("a", over(beat(0, 0), None)), Verdict::Void);
    assert_eq!(reading.0.earlier_job().term(), Some(0));
    // The job of the previous term, which is another member's, may be left.
    reading.says(3, &by("c", over(claim(2), Some(0))), Verdict::Effective);
    assert_eq!(*reading.0.earlier_job(), unread(0));

    // A reader that began later gets it from a beat.
    let mut later = Reading::of(5, Origin::Middle);
    later.says(5, &by("c", over(beat(3, 4), Some(0))), Verdict::Effective);
    assert_eq!(*later.0.earlier_job(), unread(0));
    later.says(6, &by("c", over(beat(3, 5), None)), Verdict::Effective);
    assert_eq!(*later.0.earlier_job(), EarlierJob::Gone);
}
