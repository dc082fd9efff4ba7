//! The rights that `--once` needs.

use harness::candidate::{Candidate, Elector, Running};
use harness::rights::Operation::{self, Create, Describe, Read as Reads, Write as Writes};
use harness::rights::{Resource, Rule};
use nix::sys::signal::Signal;

use super::{Tenancy, needs};
use crate::guarded::assert_refused;
use crate::once::{KEY, once};

/// READ and WRITE on the topic of facts, and CREATE where it is missing, besides the rights on the journal. Without one of them a candidate
/// names it, and runs no job; READ also while the topic is empty, since the next candidate would be refused.
#[test]
fn to_run_a_key_once() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    let facts = format!("{}.once", tenancy.topic);
    let allow = |operation: Operation| {
        tenancy.rights.make(&[Rule::allow(tenancy.account.name(), Resource::Topic(&facts), operation)]);
    };
    let start = || -> Running { tenancy.candidate().option("--once", KEY).job(["true"]).start() };
    let refused = |right: &str| {
        let run = start();
        assert!(run.events("job_started").is_empty(), "{run:?}");
        assert_refused(run, &[&format!("topic \"{facts}\""), &format!("no right to {right}")]);
    };
    refused("DESCRIBE");
    allow(Describe);
    refused("CREATE");
    // This creates the topic.
    assert_eq!(once(&tenancy.guarded.election, "true").option("--once", "another").start().status(), 0);
    refused("READ");
    allow(Reads);
    refused("WRITE");
    allow(Writes);
    let mut run = start();
    assert_eq!(run.status(), 0);
    assert_eq!(run.count("job_started"), 1, "{run:?}");

    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    let facts = format!("{}.once", tenancy.topic);
    let allow =
        |operation| tenancy.rights.make(&[Rule::allow(tenancy.account.name(), Resource::Topic(&facts), operation)]);
    let start = || -> Running { tenancy.candidate().option("--once", KEY).job(["true"]).start() };
    allow(Create);
    allow(Writes);
    // This creates the topic.
    let run = start();
    assert!(run.events("job_started").is_empty(), "{run:?}");
    assert_refused(run, &[&format!("topic \"{facts}\""), "no right to READ"]);
    allow(Reads);
    let mut run = start();
    assert_eq!(run.status(), 0);
    assert_eq!((run.count("job_started"), tenancy.guarded.plain.has_topic(&facts)), (1, true), "{run:?}");
}

/// A standby reads the facts at its start, and not only once it leads: if a right is missing it must not take over first, and cost the election
/// its leader.
#[test]
fn a_standby_of_a_schedule_names_a_missing_right() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    let facts = format!("{}.once", tenancy.topic);
    let of_schedule = |candidate: Candidate| candidate.option("--schedule", "@monthly").job(["true"]).start();
    let mut leader = of_schedule(tenancy.guarded.election.candidate());
    leader.await_event("window_awaited");
    for (right, allowed) in [("DESCRIBE", Describe), ("READ", Reads), ("WRITE", Writes)] {
        let run = of_schedule(tenancy.candidate());
        assert!(run.events("claiming").is_empty(), "{run:?}");
        assert_refused(run, &[&format!("topic \"{facts}\""), &format!("no right to {right}")]);
        tenancy.rights.make(&[Rule::allow(tenancy.account.name(), Resource::Topic(&facts), allowed)]);
    }
    let mut standby = of_schedule(tenancy.candidate());
    standby.await_event("standby");
    leader.signal(Signal::SIGTERM);
    standby.await_event("window_awaited");
}

/// Otherwise the page would look like that of an election without recorded runs.
#[test]
fn who_may_not_read_the_facts_is_told_that_the_last_run_is_not_shown() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.allow(needs(Elector::Log));
    let status = || {
        let answer = tenancy.look(&["status"]);
        assert_eq!(answer.status, 3, "{answer:?}");
        (answer.text.contains("done by"), answer.errors)
    };
    let election = &tenancy.guarded.election;
    assert_eq!(election.candidate().job(["true"]).start().status(), 0);
    assert_eq!(status(), (false, String::new()), "no runs are recorded");
    assert_eq!(once(election, "true").start().status(), 0);
    let (is_shown, said) = status();
    let facts = format!("{}.once", tenancy.topic);
    let expected = format!("warning: the last run is not shown: topic \"{facts}\": ");
    assert!(!is_shown && said.contains(&expected) && said.lines().count() == 1, "{said}");
    tenancy.rights.make(&[Rule::allow(tenancy.account.name(), Resource::Topic(&facts), Reads)]);
    assert_eq!(status(), (true, String::new()));
}
