//! `--settle`: after its election a leader waits before it starts the job.

use std::time::Duration;

use harness::candidate::Elector;
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;

/// In every term the old job's last instruction and the new one's first are at least this far apart, and the lease is kept meanwhile.
#[test]
fn the_job_of_each_lead_waits() {
    const SETTLE: Duration = Duration::from_millis(1500);
    let election = election(Elector::Log);
    let hooks = election.directory().join("hooks");
    let on_lead = format!("echo $NELI_EPOCH >> {}", hooks.display());
    let candidate = election.candidate().lease("3s").option("--heartbeat-interval", "200ms");
    let candidate = candidate.option("--settle", "1500ms").option("--on-lead", on_lead);
    let mut first = candidate.start();
    let term = first.await_lead();
    assert_eq!(first.await_event("settling").number("delay_ms"), 1500);
    election.await_witness(term);
    let mut second = candidate.start();
    second.await_event("standby");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    let next = second.await_lead();
    election.await_witness(next);
    let apart = election.first_instruction(next) - election.last_instruction(term);
    assert!(apart >= u64::try_from(SETTLE.as_nanos()).expect("a second or two"), "{apart} ns");
    let is_starting =
        |line: &&serde_json::Value| line["record"]["state"] == "starting" && line["record"]["term"] == next;
    let verdicts = election.verdicts();
    assert!(verdicts.iter().filter(is_starting).count() >= 3, "beats go on meanwhile");
    // The hook runs during the job, and not before it.
    let lines = || std::fs::read_to_string(&hooks).unwrap_or_default();
    wait::until_true("both hooks", || lines() == format!("{term}\n{next}\n"));
    election.close([second]);
}

/// SIGTERM during the wait: no job starts, and the term is released at once.
#[test]
fn a_stop_during_the_wait_starts_no_job() {
    let election = election(Elector::Group);
    let candidate = election.candidate().lease("3s").option("--heartbeat-interval", "100ms");
    let mut first = candidate.option("--settle", "10m").start();
    let term = first.await_lead();
    let mut second = election.candidate().start();
    second.await_event("standby");
    wait::until_true("beats for longer than a lease", || beats(&election, term) > 30);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 143);
    assert_eq!(first.await_release().text("why"), "stopped");
    assert!(first.events("job_started").is_empty());
    let next = second.await_lead();
    election.await_witness(next);
    election.close([second]);
}

/// A supervisor that is killed during the wait: its guard has the term and releases it.
#[test]
fn the_term_of_a_supervisor_that_dies_during_the_wait_is_released_at_once() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("60s").option("--settle", "10m").start();
    let term = first.await_lead();
    let mut second = election.candidate().start();
    second.await_event("standby");
    first.signal(Signal::SIGKILL);
    let next = second.await_lead();
    election.await_witness(next);
    assert_eq!(election.testimony().of(term).count(), 0, "its job never ran");
    let verdicts = election.verdicts();
    let release = verdicts.iter().find(|line| line["record"]["kind"] == "release").expect("a release");
    assert_eq!((&release["record"]["why"], &release["record"]["term"]), (&"supervisor-died".into(), &term.into()));
    election.close([second]);
}

/// How many beats of the term are in the journal.
fn beats(election: &harness::election::TestElection, term: u64) -> usize {
    let verdicts = election.verdicts();
    verdicts.iter().filter(|line| line["record"]["kind"] == "beat" && line["record"]["term"] == term).count()
}
