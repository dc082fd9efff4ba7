//! Signals to `neli-run`.

use std::process::Command;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::stage::Stage;
use harness::wait;
use harness::witness::Event;
use nix::sys::signal::Signal;

use crate::stage;

/// Stopped while standing by: 128 + n, so that `neli-run ... && next` does not go on.
#[test]
fn standing_by_each_stop_has_its_status() {
    let stage = stage(Elector::Log);
    let mut leader = stage.candidate().start();
    leader.await_lead();
    for (signal, status) in
        [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGQUIT, 131), (Signal::SIGUSR2, 128 + 12)]
    {
        let mut standby = stage.candidate().option("--stop-signal", "USR2").start();
        standby.await_event("standby");
        standby.signal(signal);
        assert_eq!(standby.status(), status, "{signal}");
        assert_eq!(standby.await_event("exiting").text("from"), "neli-run");
    }
    stage.close([leader]);
}

/// What has no meaning while nothing runs has none.
#[test]
fn standing_by_other_signals_do_nothing() {
    let stage = stage(Elector::Log);
    let mut leader = stage.candidate().start();
    leader.await_lead();
    let mut standby = stage.candidate().start();
    standby.await_event("standby");
    for signal in [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGWINCH, Signal::SIGCONT]
    {
        standby.signal(signal);
    }
    leader.signal(Signal::SIGTERM);
    standby.await_lead();
    stage.close([leader, standby]);
}

/// The second TERM kills; one that follows at once (GNU `timeout` sends two) is no second one.
#[test]
fn a_second_term_kills() {
    let stage = stage(Elector::Log);
    let job = stage.witness().with("--ignore-stop").with("--daemon");
    let mut leader = stage.candidate().job(job.command()).option("--stop-timeout", "5m").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    let main = leader.await_job();

    leader.signal(Signal::SIGTERM);
    leader.await_event("stopping");
    leader.signal(Signal::SIGTERM);
    wait::pause(Duration::from_millis(600));
    assert!(main.lives(), "two that are near are one");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    stage.assert_gone(term);
    leader.await_event("job_killed");
    assert_eq!(leader.await_event("released").text("why"), "stopped");
    stage.close([leader]);
}

/// SIGKILL comes at the stop timeout, and not before it.
#[test]
fn the_stop_timeout_kills() {
    let stage = stage(Elector::Log);
    let job = stage.witness().with("--ignore-stop");
    let mut leader = stage.candidate().job(job.command()).option("--stop-timeout", "700ms").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    leader.await_event("job_killed");

    let testimony = stage.testimony();
    let told = testimony.signals().find(|line| line.event == Event::Signal(15)).expect("it was told first").at;
    let last = testimony.of(term).next_back().expect("it beat").at;
    let between = Duration::from_nanos(last - told);
    assert!(between >= Duration::from_millis(650), "killed {between:?} after it was told");
    stage.close([leader]);
}

/// `--stop-timeout 0`: no stop signal at all.
#[test]
fn a_stop_timeout_of_nothing_asks_nobody() {
    let stage = stage(Elector::Log);
    let mut leader = stage.candidate().option("--stop-timeout", "0").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    assert_eq!(stage.testimony().signals().count(), 0);
    stage.close([leader]);
}

/// `--stop-signal` is what the job hears, and what `neli-run` takes for TERM.
#[test]
fn the_stop_signal_is_what_the_job_hears() {
    let stage = stage(Elector::Log);
    let mut leader = stage.candidate().option("--stop-signal", "INT").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    let heard: Vec<_> = heard(&stage).into_iter().filter(|number| *number != 18).collect();
    assert_eq!(heard, [2]);
    stage.close([leader]);
}

/// A job that is stopped (SIGSTOP) is told to go on when it is told to end.
#[test]
fn a_stopped_job_can_still_end_well() {
    let stage = stage(Elector::Log);
    let mut leader = stage.candidate().start();
    let term = leader.await_lead();
    stage.await_witness(term);
    let job = leader.await_job();
    job.signal(Signal::SIGSTOP);
    wait::until_true("a stopped job", || job.is_stopped());
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    stage.close([leader]);
}

/// What `neli-run` has no use for is the job's; a real-time signal too.
#[test]
fn other_signals_reach_the_job() {
    let stage = stage(Elector::Log);
    let job = stage.witness().with("--ignore-stop");
    let mut leader = stage.candidate().job(job.command()).option("--stop-timeout", "1s").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    leader.await_job();
    // Each is awaited: signals that are sent at once come in any order.
    for number in [1, 10, 12, 14, 28, 3, 40] {
        send(&leader, number);
        wait::until_true(&format!("signal {number} at the job"), || heard(&stage).contains(&number));
    }
    assert!(leader.events("stopping").is_empty());
    stage.close([leader]);
}

/// WINCH, CONT and QUIT are the whole group's; USR1 is the main process's alone.
#[test]
fn some_signals_are_for_the_whole_group() {
    let stage = stage(Elector::Log);
    let job = stage.witness().with("--ignore-stop").with("--child");
    let mut leader = stage.candidate().job(job.command()).option("--stop-timeout", "100ms").start();
    leader.await_lead();
    leader.await_job();
    wait::until_true("a child", || stage.testimony().lines.iter().any(|line| line.role == "child"));
    for (number, both) in [(10, false), (28, true), (3, true), (18, true)] {
        send(&leader, number);
        let roles = || -> Vec<_> {
            let testimony = stage.testimony();
            testimony
                .signals()
                .filter(|line| line.event == Event::Signal(number))
                .map(|line| line.role.clone())
                .collect()
        };
        wait::until_true(&format!("signal {number} at the job"), || roles().len() == if both { 2 } else { 1 });
        assert!(both || roles() == ["main"]);
    }
    stage.close([leader]);
}

/// Sends a signal that may have no name.
fn send(candidate: &Running, number: i64) {
    let sent = Command::new("kill").arg(format!("-{number}")).arg(candidate.process().pid.to_string()).status();
    assert!(sent.expect("every Linux has kill").success());
}

/// The signals that witnesses caught.
fn heard(stage: &Stage) -> Vec<i64> {
    let numbers = stage.testimony().lines.into_iter().filter_map(|line| match line.event {
        Event::Signal(number) => Some(number),
        Event::Beat | Event::End(_) | Event::Start(_) => None,
    });
    numbers.collect()
}
