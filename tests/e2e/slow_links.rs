//! Links on which an answer takes longer than the usual request timeout.

use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::Wired;
use harness::network::{Flow, LinkConditions};
use harness::wait;
use nix::sys::signal::Signal;

use crate::PROGRAM;
use crate::window::{noting_job, runs};

/// The conditions of a link on which an answer takes this long, in milliseconds.
fn round_trip(ms: u64) -> LinkConditions {
    let half = Flow::Late(Duration::from_millis(ms) / 2);
    LinkConditions { there: half, back: half, ..LinkConditions::default() }
}

/// An election on a broker behind such a link.
fn on_a_link_with(round_trip_ms: u64) -> (Wired, TestElection) {
    let wired = Wired::take();
    wired.wire().set(round_trip(round_trip_ms));
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    (wired, election)
}

/// A candidate with a schedule, which was stopped after three runs of its job.
fn run_of_a_schedule(election: &TestElection, lease: &str) -> Running {
    let candidate = election.candidate().lease(lease).option("--schedule", "every 1s");
    let mut run = candidate.job(noting_job(election, "true")).start();
    wait::until_true("runs", || runs(election).len() >= 3);
    run.signal(Signal::SIGTERM);
    let _ = run.status();
    run
}

/// A leader whose link becomes slow keeps leading: the topic's id is confirmed by answers that take longer than the first request's time
/// limit.
#[test]
fn a_leader_whose_answers_take_longer_than_two_seconds_keeps_its_lead() {
    const LEASE: Duration = Duration::from_secs(15);
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    // librdkafka closes a connection after this time without an answer.
    let candidate = election.candidate().lease("15s").property("socket.timeout.ms", "10000").flag("-v");
    let mut run = candidate.start();
    let term = run.await_lead();
    election.await_witness(term);
    wired.wire().set(round_trip(2_500));
    let begun = wait::now();
    let wanted = begun + u64::try_from((LEASE * 2).as_nanos()).expect("a few seconds");
    wait::until_true("a lease that was extended on the slow link alone", || {
        election.testimony().of(term).any(|line| line.deadline > wanted) || !run.events("fence_warning").is_empty()
    });
    assert!(run.events("fence_warning").is_empty(), "{run:?}");
    wired.wire().set(LinkConditions::default());
    election.close([run]);
}

/// Half the lease is less than the time in which connections are opened and the facts are read. Heartbeats have a lease's third. A broker
/// without a processor may need longer than a leader waits, so there is more than one try.
#[test]
fn a_schedule_runs_with_a_short_lease_on_a_slow_link() {
    let has_facts_in_time = || {
        let (_cluster, election) = on_a_link_with(120);
        let run = run_of_a_schedule(&election, "1s");
        run.events("released").iter().all(|event| event.text("why") != "facts-unavailable")
    };
    assert!((0..3).any(|_| has_facts_in_time()));
}

/// The answers about facts take longer than a leader first waits for them. A later lead waits longer, since otherwise no lead would ever have them.
#[test]
fn a_schedule_runs_in_a_later_lead_that_waits_longer() {
    let (_cluster, election) = on_a_link_with(520);
    let _ = run_of_a_schedule(&election, "3s");
}

/// A link that needs longer for its first answer than the first question's time limit is not reported as a broker that does not answer.
#[test]
fn a_slow_link_is_not_reported_as_silence() {
    let (_cluster, election) = on_a_link_with(700);
    let mut run = election.candidate().lease("20s").start();
    run.await_lead();
    assert_eq!(run.count("broker_down"), 0, "{run:?}");
    let watched = election.ask("watch", &["--json", "--from", "start", "--until-end"]);
    assert_eq!((watched.status, watched.errors.as_str()), (0, ""), "{watched:?}");
    election.close([run]);
}
