//! `--schedule`: a daemon on each machine, one of which runs the job at each time.

use std::fs;

use harness::candidate::{Candidate, Elector, Running};
use harness::cluster::{Cluster, move_leader};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::{Kafka, Wired};
use harness::network::{Flow, LinkConditions};
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::signals::pause_between_stops;
use crate::window::{WallClock, key, noting_job, runs};
use crate::{PROGRAM, election};

const DAY: u64 = 24 * 60 * 60;
const HOUR: u64 = 60 * 60;

/// A candidate whose job writes a line when it begins, and then runs this script.
fn daemon(election: &TestElection, name: &str, schedule: &str, script: &str) -> Candidate {
    let candidate = election.candidate().option("--schedule", schedule).option("--name", name);
    candidate.job(noting_job(election, script))
}

/// The windows that ran.
fn windows(election: &TestElection) -> Vec<String> {
    runs(election).iter().filter_map(|run| run.split_once(' ')).map(|(_, window)| window.to_owned()).collect()
}

fn await_runs(election: &TestElection, count: usize) {
    wait::until_true("runs", || runs(election).len() >= count);
}

fn stop(mut daemon: Running) {
    daemon.signal(Signal::SIGTERM);
    let _ = daemon.status();
}

/// Two daemons with a window every second: each window runs once, also while one of them is killed.
#[test]
fn one_of_them_runs_the_job_at_each_time() {
    let election = election(Elector::Group);
    let mut first = daemon(&election, "a", "every 1s", "true").lease("4s").start();
    first.await_lead();
    let mut second = daemon(&election, "b", "every 1s", "true").lease("4s").start();
    second.await_event("standby");
    await_runs(&election, 3);
    assert_eq!(first.events("leading").len(), 1, "the lead is kept: {first:?}");
    // Kills supervisor, guard and job.
    drop(first);
    second.await_lead();
    let before = runs(&election).len();
    await_runs(&election, before + 3);
    let skipped = second.await_event("window_skipped");
    // It may have died during a run.
    assert!(["no-run", "unfinished"].contains(&skipped.text("why")), "{skipped:?}");
    stop(second);
    let windows = windows(&election);
    let mut sorted = windows.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(windows, sorted, "one after the other, and none twice");
}

/// The run of each window has a hook (`--on-exit`). One that hangs delays neither the next window nor the release.
#[test]
fn each_run_of_a_window_has_a_hook_which_delays_nothing() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "clock", HOUR);
    let noted = election.directory().join("hooks");
    let hook = format!("echo $$ $NELI_WINDOW_START $NELI_ATTEMPT $NELI_EXIT >> {}; exec sleep 600", noted.display());
    let fails_first = format!("[ $NELI_WINDOW_START != {} ] || exit 4", key(1));
    let daemon = daemon(&election, "a", "@daily", &fails_first).option("--on-exit", &hook);
    let mut daemon = clock.candidate(daemon).start();
    let hooks = || fs::read_to_string(&noted).unwrap_or_default();
    let mut last = None;
    for (window, exit) in [(1, 4), (2, 0)] {
        daemon.await_event("window_awaited");
        clock.set(window * DAY);
        let run = format!(" {} 1 {exit}", key(window));
        let pid = |line: &str| line.strip_suffix(&*run)?.parse().ok();
        last = Process::find(wait::until("a hook", || hooks().lines().find_map(pid)));
    }
    assert_eq!(hooks().lines().count(), 2, "{}", hooks());
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.await_release().text("why"), "stopped");
    assert!(last.is_some_and(Process::lives), "it hangs");
    pause_between_stops();
    daemon.signal(Signal::SIGTERM);
    let _ = daemon.status();
}

/// A new leader runs the window that its predecessor missed. If there is none, it waits for the next one. At the very first start, no
/// earlier window is run.
#[test]
fn a_missed_window_is_run_by_a_new_leader() {
    for catch_up in ["last", "none"] {
        let election = election(Elector::Log);
        let clock = WallClock::new(&election, "clock", HOUR);
        let daemon = |name: &str| {
            let daemon = daemon(&election, name, "@daily", "true").lease("2s").option("--catch-up", catch_up);
            clock.candidate(daemon)
        };
        let mut first = daemon("a").start();
        let awaited = first.await_event("window_awaited");
        assert_eq!(awaited.text("next"), key(1));
        drop(first);
        // Midnight passes without a leader.
        clock.set(DAY + HOUR);
        let mut second = daemon("b").start();
        assert_eq!(second.await_event("window_awaited").text("next"), key(2));
        let expected = if catch_up == "last" { vec![format!("b {}", key(1))] } else { Vec::new() };
        assert_eq!(runs(&election), expected);
        assert_eq!(second.events("window_skipped").is_empty(), catch_up == "last");
        stop(second);
    }
}

/// The clock is set back over a window's edge and forward again: no window runs twice, and skipped windows are logged.
#[test]
fn a_clock_that_is_set_runs_nothing_twice() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "clock", HOUR);
    let mut daemon = clock.candidate(daemon(&election, "a", "@daily", "echo $NELI_ONCE $NELI_WINDOW_END >&2")).start();
    daemon.await_event("window_awaited");
    clock.set(DAY);
    await_runs(&election, 1);
    wait::until_true("a window", || daemon.strange_lines() == [format!("{} {}", key(1), key(2))]);
    daemon.await_event("window_awaited");
    wait::until_true("status between two runs", || {
        election.ask("status", &[]).text.contains("\njob        waiting for its next run for ")
    });
    clock.set(DAY - HOUR);
    wait::until_true("a warning", || daemon.warnings_with("was set back").len() == 1);
    clock.set(DAY + HOUR);
    clock.set(4 * DAY);
    await_runs(&election, 2);
    let skipped = daemon.await_event("window_skipped");
    assert_eq!((skipped.text("why"), skipped.text("from"), skipped.text("until")), ("clock-set", &*key(2), &*key(4)));
    assert_eq!(windows(&election), [key(1), key(4)]);
    stop(daemon);
}

/// A rolling update stops each machine in turn. The run that goes on finishes, and no other machine runs that window again.
#[test]
fn without_a_stop_signal_a_run_finishes_and_is_not_run_again() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "clock", HOUR);
    let start = |name| {
        let daemon = daemon(&election, name, "@daily", &election.until_go_file());
        clock.candidate(daemon.option("--stop-signal", "none").option("--stop-timeout", "1h")).start()
    };
    let mut first = start("a");
    first.await_event("window_awaited");
    clock.set(DAY);
    await_runs(&election, 1);
    let mut second = start("b");
    second.await_event("standby");
    first.signal(Signal::SIGTERM);
    let stopping = first.await_event("stopping");
    assert!(stopping.fields["signal"].is_null() && stopping.text("why") == "stopped", "{stopping:?}");
    election.create_go_file();
    assert_eq!(first.status(), 0, "{first:?}");
    assert_eq!(second.await_event("window_awaited").text("next"), key(2));
    stop(second);
    assert_eq!(runs(&election), [format!("a {}", key(1))]);
}

/// A run that lasts beyond the next time, and one that fails: both are logged, and the daemon continues.
#[test]
fn windows_during_a_run_are_skipped_and_a_failure_ends_nothing() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "clock", HOUR);
    let job = format!("{}; exit 3", election.until_go_file());
    let mut daemon = clock.candidate(daemon(&election, "a", "0 0 * * *", &job)).start();
    daemon.await_event("window_awaited");
    clock.set(DAY);
    await_runs(&election, 1);
    clock.set(3 * DAY);
    election.create_go_file();
    let skipped = daemon.await_event("window_skipped");
    assert_eq!((skipped.text("why"), skipped.text("from"), skipped.text("until")), ("overrun", &*key(2), &*key(4)));
    clock.set(4 * DAY);
    await_runs(&election, 2);
    assert_eq!(windows(&election), [key(1), key(4)]);
    assert_eq!(daemon.events("leading").len(), 1);
    stop(daemon);
}

/// One machine runs the first window with success, and another one fails in the next: what is shown of all runs outlives their processes.
#[test]
fn runs_are_counted_across_machines_and_the_last_success_is_kept() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "clock", HOUR);
    let start = |name, script| clock.candidate(daemon(&election, name, "@daily", script)).start();
    let mut first = start("a", "true");
    first.await_event("window_awaited");
    clock.set(DAY + HOUR);
    wait::until_true("a run and the next wait", || first.events("window_awaited").len() == 2);
    stop(first);
    clock.set(2 * DAY + HOUR);
    let mut second = start("b", "exit 3");
    second.await_event("job_exited");
    second.await_event("window_awaited");
    let object = election.ask("status", &["--json"]).json();
    let runs = &object["runs"];
    assert_eq!(
        (&runs["count"], &runs["failures"], &runs["last"]["exit"]),
        (&2.into(), &1.into(), &3.into()),
        "{object}"
    );
    assert_eq!((&runs["last_success"]["by"], &runs["last"]["by"]), (&"a".into(), &"b".into()), "{object}");
    let success = runs["last_success"]["window_start"].as_str().unwrap_or_default();
    assert_eq!(success.get(..19), key(1).get(..19), "{object}");
    let next = object["next_windows"].as_array().expect("a list");
    assert_eq!(next.len(), 5, "{object}");
    stop(second);
}

/// COMMAND is removed before its first time. The log, at once and when that time is over, and `status` say what is recorded: that the run has begun.
#[test]
fn a_run_that_can_not_be_started_is_recorded_as_begun() {
    let election = election(Elector::Log);
    let job = election.directory().join("job");
    fs::copy("/bin/true", &job).unwrap();
    let candidate = election.candidate().option("--schedule", "every 2s").option("--name", "a");
    let mut daemon = candidate.job([job.to_str().unwrap()]).start();
    daemon.await_event("window_awaited");
    fs::remove_file(&job).unwrap();
    let message = daemon.await_event("error").text("message").to_owned();
    assert!(message.contains("; the run is recorded as begun, without an outcome, and "), "{message}");
    let skipped = daemon.await_event("window_skipped");
    assert_eq!(skipped.text("why"), "unfinished");
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains(": begun by a at "), "{answer:?}");
    stop(daemon);
    let raw = harness::journal::read(Kafka::shared(), &format!("{}.once", election.topic()));
    let attempt = |record: &harness::journal::Raw| {
        let value = record.payload.as_deref().filter(|_| record.key.ends_with(b"%attempt"))?;
        Some(String::from_utf8_lossy(value).contains(r#""outcome":"running""#))
    };
    let attempts: Vec<bool> = raw.iter().filter_map(attempt).collect();
    assert!(!attempts.is_empty() && attempts.iter().all(|is_begun| *is_begun), "{raw:?}");
}

/// There is one fact per election, about the newest window.
#[test]
fn only_the_newest_window_is_recorded() {
    let election = election(Elector::Log);
    let daemon = daemon(&election, "a", "every 1s", "true").start();
    await_runs(&election, 2);
    stop(daemon);
    let raw = harness::journal::read(Kafka::shared(), &format!("{}.once", election.topic()));
    let key = election.key();
    let of_place = |suffix: &str| format!("{key}{suffix}").into_bytes();
    assert!(raw.iter().all(|record| record.key == of_place("") || record.key == of_place("%attempt")), "{raw:?}");
}

/// A link over which reading the topic of facts takes longer than half a lease: the leader stands down, and in its next term the reading
/// continues where it stopped.
#[test]
fn facts_that_take_longer_than_half_a_lease_are_read_over_several_leads() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let name = format!("{}.once", election.topic());
    wired.direct().create_topic(&name, &[("cleanup.policy", "compact")]);
    let of_another = "x".repeat(1_000);
    let pen = Pen::new(&wired.direct(), &name, &[("batch.size", "8192")]);
    pen.write("another/0/key", &[of_another.as_bytes(); 400]);
    // The records take 8 s. A fetch of the usual size would exceed librdkafka's timeout.
    let slow = LinkConditions { back: Flow::Trickle(50_000), ..LinkConditions::default() };
    wired.wire().set(slow);
    let mut first = daemon(&election, "a", "every 1s", "true").lease("2s").start();
    assert_eq!(first.await_release().text("why"), "facts-unavailable");
    assert!(!first.warnings_with("of 400 offsets were read in time").is_empty(), "{first:?}");
    await_runs(&election, 1);
    stop(first);
}

/// The topic of facts is made again on another broker, in an earlier leader epoch than the old one's. As with the journal's topic, the
/// producer that wrote to the old one never uses the new one, and the candidate replaces it: otherwise no window would ever run again.
#[test]
fn a_topic_of_facts_that_is_made_again_on_another_broker_is_written_to() {
    let cluster = Cluster::shared();
    let kafka = cluster.kafka();
    let election = TestElection::new(PROGRAM, &kafka, Elector::Log);
    let name = format!("{}.once", election.topic());
    kafka.create_topic_on(&name, &[1, 2, 3], &[("cleanup.policy", "compact")]);
    // Each move of the leadership increments the leader epoch.
    for leader in [1, 2, 0, 1] {
        wait::until_true("a leader that has moved", || {
            cluster.leader_of(&name, 0) == Some(leader)
                || move_leader(&cluster.addresses(), &name, leader).is_err()
                || cluster.leader_of(&name, 0) == Some(leader)
        });
    }
    let daemon = daemon(&election, "a", "every 1s", "true").lease("5s").start();
    await_runs(&election, 2);
    kafka.delete_topic(&name);
    kafka.create_topic_on(&name, &[1, 3, 2], &[("cleanup.policy", "compact")]);
    let before = runs(&election).len();
    await_runs(&election, before + 2);
    stop(daemon);
}
