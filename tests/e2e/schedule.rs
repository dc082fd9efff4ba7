//! `--schedule`: a daemon on each machine, and one of them runs the job at each time.

use std::fs;
use std::path::PathBuf;

use harness::candidate::{Candidate, Elector, Running};
use harness::kafka::Kafka;
use harness::stage::Stage;
use harness::wait;
use nix::sys::signal::Signal;

use crate::window::{WallClock, key};
use crate::{stage, with_both_electors};

const DAY: u64 = 24 * 60 * 60;
const HOUR: u64 = 60 * 60;

/// A machine whose job writes a line when it begins, and then does this.
fn daemon(stage: &Stage, name: &str, schedule: &str, script: &str) -> Candidate {
    let script = format!("echo $NELI_NAME $NELI_WINDOW_START >> {}; {script}", runs_of(stage).display());
    stage.candidate().option("--schedule", schedule).option("--name", name).job(["sh", "-c", &script])
}

fn runs_of(stage: &Stage) -> PathBuf {
    stage.directory().join("runs")
}

/// Who ran so far, in which window.
fn runs(stage: &Stage) -> Vec<String> {
    fs::read_to_string(runs_of(stage)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The windows in which it ran.
fn windows(stage: &Stage) -> Vec<String> {
    runs(stage).iter().filter_map(|run| run.split_once(' ')).map(|(_, window)| window.to_owned()).collect()
}

fn await_runs(stage: &Stage, count: usize) {
    wait::until_true("runs", || runs(stage).len() >= count);
}

fn stop(mut daemon: Running) {
    daemon.signal(Signal::SIGTERM);
    let _ = daemon.status();
}

with_both_electors! {
    /// Two daemons, every second: each window has one run, also while one of them is killed.
    fn one_of_them_runs_the_job_at_each_time(elector) {
        let stage = stage(elector);
        let mut first = daemon(&stage, "a", "every 1s", "true").lease("2s").start();
        first.await_lead();
        let mut second = daemon(&stage, "b", "every 1s", "true").lease("2s").start();
        second.await_event("standby");
        await_runs(&stage, 3);
        assert_eq!(first.events("leading").len(), 1, "the lead is kept: {first:?}");
        // Supervisor, guard and job.
        drop(first);
        second.await_lead();
        let before = runs(&stage).len();
        await_runs(&stage, before + 3);
        let skipped = second.await_event("window_skipped");
        // It may have died in a run.
        assert!(["nobody-led", "unfinished"].contains(&skipped.text("why")), "{skipped:?}");
        stop(second);
        let windows = windows(&stage);
        let mut sorted = windows.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(windows, sorted, "one after the other, and none twice");
    }
}

/// A new leader runs the window that its predecessor did not; with none it waits for the next. At a first start nothing is caught up.
#[test]
fn a_window_that_was_not_done_is_caught_up() {
    for catch_up in ["last", "none"] {
        let stage = stage(Elector::Log);
        let clock = WallClock::new(&stage, "clock", HOUR);
        let daemon = |name: &str| {
            let daemon = daemon(&stage, name, "@daily", "true").lease("2s").option("--catch-up", catch_up);
            clock.candidate(daemon)
        };
        let mut first = daemon("a").start();
        let awaited = first.await_event("window_awaited");
        assert_eq!(awaited.text("next"), key(1));
        drop(first);
        // Midnight comes while nobody leads.
        clock.set(DAY + HOUR);
        let mut second = daemon("b").start();
        assert_eq!(second.await_event("window_awaited").text("next"), key(2));
        let expected = if catch_up == "last" { vec![format!("b {}", key(1))] } else { Vec::new() };
        assert_eq!(runs(&stage), expected);
        assert_eq!(second.events("window_skipped").is_empty(), catch_up == "last");
        stop(second);
    }
}

/// The clock is set back over a window's edge, and forward again: no window is run twice, and what is not run is told.
#[test]
fn a_clock_that_is_set_runs_nothing_twice() {
    let stage = stage(Elector::Log);
    let clock = WallClock::new(&stage, "clock", HOUR);
    let mut daemon = clock.candidate(daemon(&stage, "a", "@daily", "true")).start();
    daemon.await_event("window_awaited");
    clock.set(DAY);
    await_runs(&stage, 1);
    daemon.await_event("window_awaited");
    clock.set(DAY - HOUR);
    wait::until_true("a warning", || daemon.warnings_with("was set back").len() == 1);
    clock.set(DAY + HOUR);
    clock.set(4 * DAY);
    await_runs(&stage, 2);
    let skipped = daemon.await_event("window_skipped");
    assert_eq!((skipped.text("why"), skipped.text("from"), skipped.text("until")), ("clock-set", &*key(2), &*key(4)));
    assert_eq!(windows(&stage), [key(1), key(4)]);
    stop(daemon);
}

/// A run that goes on when the next time comes, and one that fails: both are told, and the daemon goes on.
#[test]
fn windows_during_a_run_are_skipped_and_a_failure_ends_nothing() {
    let stage = stage(Elector::Log);
    let go = stage.directory().join("go");
    let clock = WallClock::new(&stage, "clock", HOUR);
    let job = format!("until [ -e {} ]; do sleep 0.01; done; exit 3", go.display());
    let mut daemon = clock.candidate(daemon(&stage, "a", "0 0 * * *", &job)).start();
    daemon.await_event("window_awaited");
    clock.set(DAY);
    await_runs(&stage, 1);
    clock.set(3 * DAY);
    fs::write(&go, "").expect("ours");
    let skipped = daemon.await_event("window_skipped");
    assert_eq!((skipped.text("why"), skipped.text("from"), skipped.text("until")), ("overrun", &*key(2), &*key(4)));
    clock.set(4 * DAY);
    await_runs(&stage, 2);
    assert_eq!(windows(&stage), [key(1), key(4)]);
    assert_eq!(daemon.events("leading").len(), 1);
    stop(daemon);
}

/// What is recorded is one record an election, of the newest window.
#[test]
fn the_newest_window_is_what_is_recorded() {
    let stage = stage(Elector::Log);
    let daemon = daemon(&stage, "a", "every 1s", "true").start();
    await_runs(&stage, 2);
    stop(daemon);
    let raw = harness::journal::read(Kafka::shared(), &format!("{}.once", stage.topic()));
    let key = stage.key();
    let of_place = |suffix: &str| format!("{key}{suffix}").into_bytes();
    assert!(raw.iter().all(|record| record.key == of_place("") || record.key == of_place("%attempt")), "{raw:?}");
}
