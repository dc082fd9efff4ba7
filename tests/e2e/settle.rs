//! `--settle`: the lead is won, and its job waits.

use std::time::Duration;

use harness::candidate::Elector;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{stage, with_both_electors};

with_both_electors! {
    /// At every lead: what the old job did last and what the new one does first are so far apart, and the lease is kept meanwhile.
    fn the_job_of_each_lead_waits(elector) {
        const SETTLE: Duration = Duration::from_millis(1500);
        let stage = stage(elector);
        let hooks = stage.directory().join("hooks");
        let on_lead = format!("echo $NELI_EPOCH >> {}", hooks.display());
        let candidate = stage.candidate().lease("1s").option("--settle", "1500ms").option("--on-lead", on_lead);
        let mut first = candidate.start();
        let term = first.await_lead();
        assert_eq!(first.await_event("settling").number("delay_ms"), 1500);
        stage.await_witness(term);
        let mut second = candidate.start();
        second.await_event("standby");
        first.signal(Signal::SIGTERM);
        assert_eq!(first.status(), 0);
        let next = second.await_lead();
        stage.await_witness(next);
        let apart = stage.first_instruction(next) - stage.last_instruction(term);
        assert!(apart >= u64::try_from(SETTLE.as_nanos()).expect("a second or two"), "{apart} ns");
        let is_starting = |line: &&serde_json::Value| line["record"]["state"] == "starting" && line["record"]["term"] == next;
        let verdicts = stage.verdicts();
        assert!(verdicts.iter().filter(is_starting).count() >= 3, "beats go on meanwhile");
        // The hook runs beside the job, and not before it.
        let lines = || std::fs::read_to_string(&hooks).unwrap_or_default();
        wait::until_true("both hooks", || lines() == format!("{term}\n{next}\n"));
        stage.close([second]);
    }

    /// TERM meanwhile: nothing runs, and the lead is given back at once.
    fn a_stop_meanwhile_runs_nothing(elector) {
        let stage = stage(elector);
        let mut first = stage.candidate().lease("1s").option("--settle", "10m").start();
        let term = first.await_lead();
        let mut second = stage.candidate().start();
        second.await_event("standby");
        wait::until_true("beats for longer than a lease", || beats(&stage, term) > 10);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.status(), 143);
        assert_eq!(first.await_release().text("why"), "stopped");
        assert!(first.events("job_started").is_empty());
        let next = second.await_lead();
        stage.await_witness(next);
        stage.close([second]);
    }
}

/// A supervisor that is killed meanwhile: its guard knows of the term, and releases it.
#[test]
fn a_death_meanwhile_costs_no_lease() {
    let stage = stage(Elector::Log);
    let mut first = stage.candidate().lease("60s").option("--settle", "10m").start();
    let term = first.await_lead();
    let mut second = stage.candidate().start();
    second.await_event("standby");
    first.signal(Signal::SIGKILL);
    let next = second.await_lead();
    stage.await_witness(next);
    assert_eq!(stage.testimony().of(term).count(), 0, "its job never ran");
    let verdicts = stage.verdicts();
    let release = verdicts.iter().find(|line| line["record"]["kind"] == "release").expect("a release");
    assert_eq!((&release["record"]["why"], &release["record"]["term"]), (&"supervisor-died".into(), &term.into()));
    stage.close([second]);
}

/// How many beats of the term the journal holds.
fn beats(stage: &harness::stage::Stage, term: u64) -> usize {
    let verdicts = stage.verdicts();
    verdicts.iter().filter(|line| line["record"]["kind"] == "beat" && line["record"]["term"] == term).count()
}
