use std::path::Path;

use serde_json::json;

use super::*;

const FIRST: u64 = 20_260_131_020_000;
const SECOND: u64 = 20_260_131_020_005;
const NONE: [&str; 0] = [];

/// A run in this window and term, at these times.
fn run(window: u64, term: u64, span: (u64, u64), end: End) -> JobRun {
    JobRun { main: 7, end, span, ..JobRun::of_file(Path::new(&format!("0.0.{window}.{term}"))) }
}

fn term(claimed_ms: u64, release: Option<(u64, Value)>) -> Recorded {
    Recorded { claimed_ms: Some(claimed_ms), done_ms: None, release }
}

/// A release that names a window as done.
#[expect(clippy::unnecessary_wraps, reason = "as it is recorded")]
fn done(offset: u64, window: &str) -> Option<(u64, Value)> {
    Some((offset, json!({"kind": "release", "why": "exited", "exit": 0, "once": window})))
}

#[expect(clippy::unnecessary_wraps, reason = "as it is recorded")]
fn release(offset: u64, why: &str) -> Option<(u64, Value)> {
    Some((offset, json!({"kind": "release", "why": why, "exit": null})))
}

/// The violations of these runs, with the terms' records, and the windows that are recorded as done: term, window, and when.
fn violations(runs: &[JobRun], recorded: Vec<(u64, Recorded)>, done: &[((u64, u64), u64)]) -> Vec<String> {
    judge(runs.iter(), &recorded.into_iter().collect(), &done.iter().copied().collect()).violations
}

#[test]
fn windows_that_are_done_one_after_the_other_are_no_violation() {
    let runs = [
        run(FIRST, 3, (10, 20), End::Unrecorded),
        run(FIRST, 10, (30, 40), End::Success),
        run(SECOND, 20, (50, 60), End::Stopped),
        run(SECOND, 30, (70, 80), End::Success),
    ];
    let recorded = vec![
        (3, term(100, release(8, "failed"))),
        (10, term(200, done(18, "2026-01-31T02:00:00Z"))),
        (20, term(300, release(28, "stopped"))),
        (30, term(400, done(38, "2026-01-31T02:00:05Z"))),
    ];
    assert_eq!(violations(&runs, recorded, &[((10, FIRST), 250), ((30, SECOND), 450)]), NONE);
}

/// A daemon runs one window after the other in one lead.
#[test]
fn one_lead_runs_a_window_once() {
    let with = |window| [run(FIRST, 3, (10, 20), End::Success), run(window, 3, (30, 40), End::Success)];
    assert_eq!(violations(&with(SECOND), Vec::new(), &[((3, FIRST), 50), ((3, SECOND), 60)]), NONE);
    let again = format!("window {FIRST} was done in term 3, which was known, and window {FIRST} ran in term 3");
    assert_eq!(violations(&with(FIRST), Vec::new(), &[]), [again]);
}

#[test]
fn a_recorded_success_must_have_happened() {
    let ends = |end, abandoned| {
        let run = JobRun { abandoned, ..run(FIRST, 3, (10, 20), end) };
        violations(&[run], Vec::new(), &[((3, FIRST), 50)])
    };
    assert_eq!(ends(End::Success, false), NONE);
    assert_eq!(ends(End::Stopped, true), NONE, "what an abandoned job did is not known");
    let what = format!("window {FIRST} is recorded as done in term 3, and no job of it has succeeded:");
    assert_eq!(ends(End::Unrecorded, false), [format!("{what} [(Unrecorded, false)]")]);
    assert_eq!(ends(End::Stopped, false), [format!("{what} [(Stopped, false)]")]);
    let other = [run(SECOND, 3, (10, 20), End::Success), run(FIRST, 10, (30, 40), End::Success)];
    assert_eq!(violations(&other, Vec::new(), &[((3, FIRST), 50)]), [format!("{what} []")]);
}

#[test]
fn a_run_after_a_success_that_was_recorded_is_reported() {
    let repeated = |window, claimed_ms| {
        let runs = [run(SECOND, 3, (10, 20), End::Success), run(window, 10, (30, 40), End::Stopped)];
        violations(&runs, vec![(3, term(100, None)), (10, term(claimed_ms, None))], &[((3, SECOND), 250)])
    };
    let known =
        |window| format!("window {SECOND} was done in term 3, which was known, and window {window} ran in term 10");
    assert_eq!(repeated(SECOND, 253), [known(SECOND)]);
    assert_eq!(repeated(FIRST, 253), [known(FIRST)], "an earlier window is over as well");
    assert_eq!(repeated(SECOND + 5, 253), NONE, "a later window");
    assert_eq!(repeated(SECOND, 252), NONE, "the clock's tick");
    assert_eq!(repeated(SECOND, 240), NONE, "recorded too late: at least once");
    let runs = [run(FIRST, 2, (1, 2), End::Success), run(SECOND, 3, (10, 20), End::Success)];
    let again = [&runs[..], &[run(SECOND, 10, (30, 40), End::Stopped)]].concat();
    let of_first = [((2, FIRST), 50)];
    assert_eq!(violations(&again, vec![(10, term(253, None))], &of_first), NONE, "another window's success");
}

#[test]
fn a_run_after_a_release_that_names_the_window_is_reported() {
    let runs = [run(FIRST, 3, (10, 20), End::Success), run(FIRST, 10, (30, 40), End::Unrecorded)];
    let released = |release| violations(&runs, vec![(3, term(100, release)), (10, term(300, None))], &[]);
    let which = |how| [format!("window {FIRST} was done in term 3, {how}, and window {FIRST} ran in term 10")];
    assert_eq!(released(done(8, "2026-01-31T02:00:00Z")), which("which was known"));
    assert_eq!(released(done(11, "2026-01-31T02:00:00Z")), NONE, "the claim was before it");
    assert_eq!(released(release(8, "supervisor-died")), NONE, "its machine had died");
    assert_eq!(released(done(8, "2026-01-31T01:59:55Z")), which("was released without that"));
    let of_failure = json!({"why": "failed", "exit": 3, "once": "2026-01-31T02:00:00Z"});
    assert_eq!(released(Some((8, of_failure))), which("was released without that"));
}

/// The first repetitions came before the success was recorded, and the last came after that.
#[test]
fn each_later_run_is_looked_at() {
    let runs = [
        run(FIRST, 3, (10, 20), End::Success),
        run(FIRST, 10, (30, 40), End::Stopped),
        run(FIRST, 20, (50, 60), End::Stopped),
        run(FIRST, 30, (70, 80), End::Stopped),
    ];
    let recorded = |claimed_ms| vec![(10, term(240, None)), (20, term(241, None)), (30, term(claimed_ms, None))];
    let known = format!("window {FIRST} was done in term 3, which was known, and window {FIRST} ran in term 30");
    assert_eq!(violations(&runs, recorded(300), &[((3, FIRST), 250)]), [known]);
    assert_eq!(violations(&runs, recorded(245), &[((3, FIRST), 250)]), NONE);
}

#[test]
fn a_failure_an_abandoned_success_and_a_run_beside_are_no_success_before() {
    let after = |first| violations(&[first, run(FIRST, 3, (30, 40), End::Success)], Vec::new(), &[]);
    assert_eq!(after(run(FIRST, 3, (10, 20), End::Success)).len(), 1);
    assert_eq!(after(run(FIRST, 3, (10, 20), End::Unrecorded)), NONE);
    assert_eq!(after(run(FIRST, 3, (10, 30), End::Success)), NONE, "the judge of overlaps reports that");
    assert_eq!(after(JobRun { abandoned: true, ..run(FIRST, 3, (10, 20), End::Success) }), NONE);
    assert_eq!(after(JobRun { main: 0, ..run(FIRST, 3, (10, 20), End::Success) }), NONE, "it was never begun");
}

/// Terms begin again with the topic: a record of the new journal says nothing of the same term before.
#[test]
fn a_journal_says_nothing_of_the_topics_before() {
    let remade = |first: u32, second: u32| {
        let first = JobRun { generation: first, ..run(FIRST, 3, (10, 20), End::Success) };
        let second = JobRun { generation: second, ..run(FIRST, 10, (30, 40), End::Stopped) };
        let newest = JobRun { generation: 1, ..run(SECOND, 30, (50, 60), End::Stopped) };
        let recorded = vec![(3, term(100, release(8, "exited"))), (10, term(300, None))];
        (
            violations(&[first.clone(), second.clone(), newest.clone()], recorded, &[]).len(),
            violations(&[first, second, newest], vec![(10, term(300, None))], &[((3, FIRST), 250)]).len(),
        )
    };
    assert_eq!(remade(1, 1), (1, 1));
    assert_eq!(remade(0, 1), (0, 1), "the release is that of another term 3; the fact was there before");
    assert_eq!(remade(1, 0), (0, 0), "a leader of the topic before that had not noticed yet");
    assert_eq!(remade(0, 0), (0, 0), "of the claim in the topic before nothing is left");
    let same_number = |generation| {
        let second = JobRun { generation, ..run(FIRST, 3, (30, 40), End::Stopped) };
        violations(&[run(FIRST, 3, (10, 20), End::Success), second], Vec::new(), &[]).len()
    };
    assert_eq!((same_number(0), same_number(1)), (1, 0));
}

#[test]
fn the_job_must_run_in_two_more_windows() {
    let runs: Vec<JobRun> = [FIRST, SECOND, SECOND].map(|window| run(window, 3, (10, 20), End::Unrecorded)).into();
    assert_eq!(latest(runs.iter()), SECOND);
    assert_eq!(not_run_after(FIRST - 1, runs.iter()), None);
    let violation = format!("the windows after {FIRST} are not run in the end");
    assert_eq!(not_run_after(FIRST, runs.iter()), Some(violation));
}
