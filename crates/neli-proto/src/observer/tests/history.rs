//! Tests of the history for records that are missing, that were read before, that do not count, or that report two jobs at once.

use super::*;

fn history() -> Election {
    let mut history = election(Journal::read_from(0, Origin::Beginning));
    read(&mut history, 0, 0, &claim("m", -1));
    history
}

/// The findings in an election whose last leader has just written a record.
fn findings(history: &Election) -> Vec<Finding> {
    history.findings(AT, 0).into_iter().map(|(finding, _)| finding).collect()
}

fn read(history: &mut Election, offset: Offset, ms: u64, line: &str) {
    history.judge(later(ms), offset, Record::parse(line.as_bytes()).as_ref(), Some(AT.wall_ms + ms));
}

#[test]
fn each_time_that_records_are_missing_counts_and_records_of_others_do_not() {
    let mut history = history();
    history.observer.read_other(later(5).now, 1);
    read(&mut history, 2, 10, &beat("m", 0, "running"));
    assert_eq!(findings(&history), []);
    for (offset, seen) in [(9, 9), (19, 19)] {
        read(&mut history, offset, 20, &beat("m", 0, "running"));
        let decides = beat("m", 0, "running").replace("\"seen\":0", &format!("\"seen\":{seen}"));
        read(&mut history, offset + 1, 30, &decides);
    }
    assert_eq!(findings(&history), [Finding::Missing { times: 2 }]);
    assert_eq!(history.terms().len(), 1, "it goes on behind what is missing");
}

#[test]
fn markers_are_not_missing() {
    let mut journal = Journal::read_from(0, Origin::Beginning);
    journal.answered(later(5).now, later(4).now, 1);
    let mut history = election(journal);
    read(&mut history, 0, 0, &claim("m", -1));
    read(&mut history, 5, 10, &beat("m", 0, "running"));
    assert_eq!(findings(&history), []);
}

#[test]
fn a_record_that_is_read_twice_counts_once() {
    let mut history = history();
    read(&mut history, 1, 10, "nonsense");
    read(&mut history, 1, 10, "nonsense");
    assert_eq!(findings(&history), [Finding::NotEffective { claims: 0, words: 0, nonsense: 1 }]);
}

#[test]
fn a_void_claim_is_reported_and_so_is_a_void_beat() {
    let mut claimed = history();
    read(&mut claimed, 1, 10, &claim("n", -1));
    assert_eq!(findings(&claimed), [Finding::NotEffective { claims: 1, words: 0, nonsense: 0 }]);
    let mut said = history();
    read(&mut said, 1, 10, &beat("n", 0, "running"));
    assert_eq!(findings(&said), [Finding::NotEffective { claims: 0, words: 1, nonsense: 0 }]);
}

#[test]
fn a_claim_at_the_lease_s_end_overlaps_nothing() {
    let mut history = history();
    read(&mut history, 1, 5_000, &claim("n", 0));
    let gap = Gap { most: Duration::from_secs(5), least: Duration::ZERO };
    assert_eq!(findings(&history), [Finding::Gap { after: 0, gap, is_open: false }]);
}

/// `--overlap`: a job that outlived its lease is reported by its own release.
#[test]
fn a_late_end_of_an_overlapped_job_overlaps_the_other() {
    let marked =
        |line: String, more: &str| line.replace("\"lease_ms\"", &format!("\"overlap_ms\":900,{more}\"lease_ms\""));
    let mut history = election(Journal::read_from(0, Origin::Beginning));
    read(&mut history, 0, 0, &marked(claim("m", -1), ""));
    read(&mut history, 1, 10, &marked(beat("m", 0, "running"), "\"yields\":true,"));
    read(&mut history, 2, 20, &marked(claim("n", 1), "\"over\":0,"));
    read(&mut history, 3, 30, &release("m", 0, "resigned", "0,\"late_ms\":70"));
    let late = Finding::LateFence { term: 0, late: Duration::from_millis(70), overlaps: true };
    assert_eq!(findings(&history), [late, Finding::NotEffective { claims: 0, words: 1, nonsense: 0 }]);
}

/// `--overlap`: each step of a hand-over is reported once.
#[test]
fn a_leader_that_yields_and_is_overlapped_is_reported_once() {
    let marked =
        |line: String, more: &str| line.replace("\"lease_ms\"", &format!("\"overlap_ms\":900,{more}\"lease_ms\""));
    let mut observer = observer();
    let mut read = |offset, line: &str| super::read(&mut observer, offset, 10, line);
    read(0, &marked(claim("m", -1), ""));
    assert!(matches!(read(1, &marked(beat("m", 0, "running"), "")).as_slice(), [Change::Job(_)]));
    assert_eq!(read(2, &marked(beat("m", 0, "running"), "\"yields\":true,")), [Change::Yields]);
    assert_eq!(read(3, &marked(beat("m", 0, "running"), "\"yields\":true,")), []);
    let changes = read(4, &marked(claim("n", 3), "\"over\":0,"));
    assert!(matches!(changes.as_slice(), [Change::Led, Change::Overlapped { term: 0, .. }]), "{changes:?}");
    let changes = read(5, &marked(beat("n", 4, "running"), "\"over\":0,"));
    assert!(matches!(changes.as_slice(), [Change::Job(_)]), "{changes:?}");
    assert_eq!(read(6, &release("m", 0, "resigned", "0")), [Change::EarlierJobGone { term: 0 }]);
}

/// `--overlap`: the earlier leader has died, and the present one is told to stop before the heartbeat that would report only that.
#[test]
fn one_heartbeat_may_report_two_changes() {
    let marked =
        |line: String, more: &str| line.replace("\"lease_ms\"", &format!("\"overlap_ms\":900,{more}\"lease_ms\""));
    let mut observer = observer();
    let mut read = |offset, line: &str| super::read(&mut observer, offset, 10, line);
    read(0, &marked(claim("m", -1), ""));
    read(1, &marked(beat("m", 0, "running"), "\"yields\":true,"));
    read(2, &marked(claim("n", 1), "\"over\":0,"));
    read(3, &marked(beat("n", 2, "running"), "\"over\":0,"));
    let changes = read(4, &marked(beat("n", 2, "running"), "\"yields\":true,"));
    assert_eq!(changes, [Change::EarlierJobGone { term: 0 }, Change::Yields]);
}

/// The leader had read what is missing when it released its term, so no other term can have begun.
#[test]
fn a_release_behind_missing_records_ends_its_term() {
    for (offset, seen) in [(9, 8), (9, 9)] {
        let mut history = history();
        if seen == offset {
            read(&mut history, offset, 20, &beat("m", 0, "running"));
        }
        let line = release("m", 0, "exited", "0").replace("\"seen\":0", &format!("\"seen\":{seen}"));
        read(&mut history, seen + 1, 30, &line);
        let ends: Vec<_> = history.terms().iter().map(|term| (term.term, term.end.clone())).collect();
        assert!(matches!(ends.as_slice(), [(0, TermEnd::Released { .. })]), "seen {seen}: {ends:?}");
        assert_eq!(history.open_gap(later(1_030)).map(|gap| gap.most), Some(Duration::from_secs(1)), "seen {seen}");
    }
}
