use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// A run of a key's job in this term, with this end.
fn run(term: u64, end: End) -> JobRun {
    JobRun { main: 7, end, ..JobRun::of_file(Path::new(&format!("0.0.{term}"))) }
}

/// A term: when it was claimed and when its success was recorded, and its release with the offset.
fn term(claimed_ms: u64, done_ms: Option<u64>, release: Option<(u64, Value)>) -> Recorded {
    Recorded { claimed_ms: Some(claimed_ms), done_ms, release }
}

#[expect(clippy::unnecessary_wraps, reason = "as it is recorded")]
fn done(offset: u64) -> Option<(u64, Value)> {
    Some((offset, json!({"kind": "release", "why": "exited", "exit": 0, "once": "k0"})))
}

#[expect(clippy::unnecessary_wraps, reason = "as it is recorded")]
fn release(offset: u64, why: &str) -> Option<(u64, Value)> {
    Some((offset, json!({"kind": "release", "why": why, "exit": null})))
}

fn violations(passed: usize, runs: &[(usize, JobRun)], recorded: Vec<(u64, Recorded)>) -> Vec<String> {
    let runs: Vec<(usize, &JobRun)> = runs.iter().map(|(key, run)| (*key, run)).collect();
    judge(passed, &runs, &recorded.into_iter().collect()).violations
}

const NONE: [&str; 0] = [];

#[test]
fn keys_that_are_done_one_after_the_other_are_no_violation() {
    let runs = [
        (0, run(3, End::Unrecorded)),
        (0, run(10, End::Success)),
        (1, run(20, End::Stopped)),
        (1, run(30, End::Success)),
    ];
    let recorded = vec![
        (3, term(100, None, release(8, "failed"))),
        (10, term(200, Some(250), done(18))),
        (20, term(300, None, release(28, "stopped"))),
        (30, term(400, Some(450), done(38))),
    ];
    assert_eq!(violations(2, &runs, recorded), NONE);
}

#[test]
fn a_key_that_was_taken_for_done_must_have_succeeded() {
    let runs = [(0, run(3, End::Stopped)), (1, run(9, End::Success))];
    let what = |key: usize| format!("candidates have taken key {key} for done, and no job of it has succeeded");
    assert_eq!(violations(2, &runs, Vec::new()), [what(0)]);
    assert_eq!(violations(3, &runs, Vec::new()), [what(0), what(2)]);
}

const KNOWN: &str = "key 0 was done in term 3, which was known, and ran in term 10";

/// The claim of the second run's term was appended after the success of the first run had been recorded.
#[test]
fn a_run_after_a_success_that_was_recorded_is_reported() {
    let runs = [(0, run(3, End::Success)), (0, run(10, End::Stopped))];
    let recorded = |claimed_ms| vec![(3, term(100, Some(250), None)), (10, term(claimed_ms, None, None))];
    assert_eq!(violations(1, &runs, recorded(253)), [KNOWN]);
    assert_eq!(violations(1, &runs, recorded(252)), NONE, "the clock's tick");
    assert_eq!(violations(1, &runs, recorded(240)), NONE, "recorded too late: at least once");
}

#[test]
fn a_run_after_a_release_that_names_the_key_is_reported() {
    let runs = [(0, run(3, End::Success)), (0, run(10, End::Unrecorded))];
    let recorded = |release| vec![(3, term(100, None, release)), (10, term(300, None, None))];
    assert_eq!(violations(1, &runs, recorded(done(8))), [KNOWN]);
    assert_eq!(violations(1, &runs, recorded(done(11))), NONE, "the claim was before it");
    assert_eq!(violations(1, &runs, recorded(release(8, "supervisor-died"))), NONE, "its machine had died");
    let stopped = json!({"why": "stopped", "exit": 0});
    assert_eq!(violations(1, &runs, recorded(Some((8, stopped)))), NONE, "it names no key");
    let of_failure = json!({"why": "failed", "exit": 3, "once": "k0"});
    let without = "key 0 was done in term 3, was released without that, and ran in term 10";
    assert_eq!(violations(1, &runs, recorded(Some((8, of_failure)))), [without]);
    assert_eq!(violations(1, &runs, recorded(release(8, "exited"))), [without]);
}

/// The first repetitions came before the success was recorded, and the last came after that.
#[test]
fn each_later_run_is_looked_at() {
    let runs =
        [(0, run(3, End::Success)), (0, run(10, End::Stopped)), (0, run(20, End::Stopped)), (0, run(30, End::Stopped))];
    let recorded = |claimed_ms| {
        let later = [(10, term(240, None, None)), (20, term(241, None, None)), (30, term(claimed_ms, None, None))];
        [(3, term(100, Some(250), None))].into_iter().chain(later).collect()
    };
    assert_eq!(violations(1, &runs, recorded(300)), ["key 0 was done in term 3, which was known, and ran in term 30"]);
    assert_eq!(violations(1, &runs, recorded(245)), NONE);
}

#[test]
fn runs_of_other_keys_and_earlier_runs_are_no_repetitions() {
    let recorded = || vec![(3, term(100, Some(150), done(8))), (10, term(300, Some(350), done(18)))];
    assert_eq!(violations(2, &[(0, run(3, End::Success)), (1, run(10, End::Success))], recorded()), NONE);
    assert_eq!(violations(1, &[(0, run(10, End::Success)), (0, run(3, End::Stopped))], recorded()), NONE);
}

#[test]
fn the_report_counts_runs_and_repetitions() {
    let runs = [run(3, End::Stopped), run(10, End::Success), run(20, End::Success), run(30, End::Stopped)];
    let runs: Vec<(usize, &JobRun)> = runs.iter().map(|run| (0, run)).collect();
    let recorded = [(10, term(100, None, release(18, "supervisor-died")))].into_iter().collect();
    let shown = "keys 1 done, 4 runs, 2 of them succeeded; run again since the success was not known: \
                 {\"release none\": 1, \"release supervisor-died\": 1}";
    assert_eq!(judge(1, &runs, &recorded).shown, shown);
}

#[test]
fn a_failure_and_an_abandoned_success_may_be_repeated() {
    let recorded = || vec![(3, term(100, Some(150), done(8))), (10, term(300, Some(350), done(18)))];
    let second = || (0, run(10, End::Success));
    assert_eq!(violations(1, &[(0, run(3, End::Unrecorded)), second()], recorded()), NONE);
    assert_eq!(violations(1, &[(0, run(3, End::Stopped)), second()], recorded()), NONE);
    let abandoned = JobRun { abandoned: true, ..run(3, End::Success) };
    assert_eq!(violations(1, &[(0, abandoned), second()], recorded()), NONE);
    assert_eq!(violations(1, &[(0, run(3, End::Success)), second()], recorded()), [KNOWN]);
}

#[test]
fn each_slot_must_come_past_the_last_key() {
    assert_eq!(not_all_are_done(&[3, 4, 3], 2), None);
    let behind = "not all keys up to 3 are done in the end: the slots are at [4, 3, 4]";
    assert_eq!(not_all_are_done(&[4, 3, 4], 3).as_deref(), Some(behind));
}
