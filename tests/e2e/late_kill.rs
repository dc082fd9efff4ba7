//! A kill after the lease's end: the leader or its guard reports it.

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;

/// Stops supervisor and guard of a leader until half a second after the lease's end; returns the leader, its guard, and its term.
fn stopped_beyond_its_lease(election: &TestElection) -> (Running, Process, u64) {
    let mut leader = election.candidate().lease("3s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let guard = leader.guard();
    leader.signal(Signal::SIGSTOP);
    guard.signal(Signal::SIGSTOP);
    wait::until_true("a job that outlives its lease", || {
        let testimony = election.testimony();
        testimony.of(term).any(|line| line.deadline > 0 && line.at > line.deadline + 500_000_000)
    });
    (leader, guard, term)
}

/// Supervisor and guard are both stopped until after the lease's end. The log reports that the kill was late, and by how much.
#[test]
fn a_late_kill_is_reported_by_the_leader() {
    let election = election(Elector::Log);
    let (mut first, guard, term) = stopped_beyond_its_lease(&election);
    guard.signal(Signal::SIGCONT);
    election.await_gone(term);
    first.signal(Signal::SIGCONT);
    let fenced = first.await_event("fenced");
    assert_eq!((fenced.number("left_ms"), fenced.text("level")), (0, "error"));
    assert!((400..60_000).contains(&fenced.number("late_ms")), "{fenced:?}");
    let released = first.await_release();
    assert_eq!(released.text("why"), "fenced");
    let verdicts = election.verdicts();
    let release = verdicts.iter().find(|line| line["record"]["kind"] == "release").expect("a release");
    assert_eq!(release["record"]["late_ms"].as_u64(), Some(fenced.number("late_ms")));
    election.close([first]);
}

/// Supervisor and guard are stopped too long, and the supervisor dies. The release that its guard writes also reports how late the kill
/// was.
#[test]
fn a_late_kill_is_reported_by_the_guard_of_a_dead_supervisor() {
    let election = election(Elector::Log);
    let (first, _, _) = stopped_beyond_its_lease(&election);
    // The kernel continues the guard when its parent dies.
    first.signal(Signal::SIGKILL);
    let release = || election.verdicts().into_iter().find(|line| line["record"]["kind"] == "release");
    wait::until_true("a release", || release().is_some());
    let release = release().expect("a release");
    assert_eq!(release["record"]["why"], "supervisor-died");
    let late = release["record"]["late_ms"].as_u64();
    assert!(late.is_some_and(|late| (400..60_000).contains(&late)), "{release}");
}
