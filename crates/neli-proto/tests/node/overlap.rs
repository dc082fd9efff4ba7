//! `--overlap`: a node's job when another candidate will lead.

use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::guard::Order;
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::node::{Action, Event};
use neli_proto::note::Refusal;
use neli_proto::record::{Body, Job, JobState, Offset, Overlap, What};
use neli_proto::supervisor::{self, Ending, JobStatus};
use neli_proto::topic::TopicIdentity;

use crate::host::{Host, LEASE, TERM, TSTP_ENDS, by, exits, refusals, sends};

#[test]
fn the_job_runs_on_until_another_s_runs_and_the_guard_learns_of_the_end_with_the_release() {
    let mut host = Host::overlapping().led();
    let term = host.node.leads().unwrap();
    host.reads(hello("db2", Some(1_000)));
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let actions = host.actions();
    assert!(!actions.iter().any(is_stop), "{actions:?}");
    let yields = actions.iter().any(|action| {
        let Action::Kafka(Request::Send { record }) = action else { return false };
        record.body.overlap().is_some_and(|overlap| overlap.yields)
    });
    assert!(yields, "{actions:?}");
    host.reads_what_it_sent();
    let after = host.end() - 1;
    host.reads(by("db2", Body::Claim { after, lease_ms: 5_000, overlap: Some(overlap(Some(term))) }));
    let actions = host.actions();
    assert!(!actions.iter().any(is_stop), "its job is not stopped yet: {actions:?}");
    let released = Action::Order(Order::Released { term });
    assert!(!actions.contains(&released), "a supervisor that dies now owes that word: {actions:?}");
    assert_eq!((host.node.leads(), host.status().position), (None, Position::Overlapped { term }));
    assert_eq!(host.status().lease_end, Some(host.now + LEASE));
    let by_term = host.end() - 1;
    host.reads(by("db2", beat(by_term)));
    let kill_at = host.now + Duration::from_secs(1);
    assert!(host.actions().contains(&Action::Order(Order::Stop { signal: Some(TERM), kill_at })));
    host.ends(JobStatus::Exited(3));
    let actions = host.actions();
    assert!(actions.iter().any(|action| sends(action, "release")) && !actions.contains(&released), "{actions:?}");
    host.reads_what_it_sent();
    let actions = host.actions();
    assert!(actions.contains(&released), "{actions:?}");
    assert_eq!(exits(&actions), [Ending::Job(JobStatus::Exited(3))]);
}

#[test]
fn a_leader_that_does_not_yield_is_left_alone() {
    let mut host = Host::overlapping();
    host.answered_with(1);
    host.reads(by("db2", Body::Claim { after: -1, lease_ms: 5_000, overlap: Some(overlap(None)) }));
    host.reads(by("db2", beat(0)));
    host.pass(Duration::from_secs(2));
    let actions = host.actions();
    assert!(!actions.iter().any(|action| sends(action, "claim")), "it claims: {actions:?}");
}

/// Most of these leaders leave. One that stays says hello again.
#[test]
fn the_leader_that_was_overlapped_is_no_standby() {
    let mut host = Host::overlapping();
    host.answered_with(2);
    host.reads(hello("db2", Some(1_000)));
    host.reads(by("db2", Body::Claim { after: 0, lease_ms: 5_000, overlap: Some(overlap(None)) }));
    let Body::Beat { term, seen, lease_ms, job, .. } = beat(1) else { unreachable!() };
    let overlap = Some(Overlap { yields: true, ..overlap(None) });
    host.reads(by("db2", Body::Beat { term, seen, lease_ms, job, overlap }));
    host.identified(TopicIdentity::Unnamed);
    host.claims();
    host.reads_what_it_sent();
    assert!(host.node.leads().is_some());
    assert_eq!(host.status().standbys, []);
    host.reads(hello("db2", Some(1_000)));
    assert_eq!(host.status().standbys.len(), 1);
}

#[test]
fn a_second_stop_ends_the_job_that_runs_on() {
    let mut host = Host::overlapping().led();
    host.reads(hello("db2", Some(1_000)));
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.pass(Duration::from_millis(600));
    host.actions();
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    assert!(host.actions().contains(&Action::Order(Order::Kill)));
}

#[test]
fn a_node_with_another_overlap_setting_exits_once_its_claim_is_read() {
    let mut host = Host::overlapping();
    host.answered();
    host.claims();
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 5_000, overlap: None }));
    let actions = host.actions();
    let why = Refusal::Overlap { name: "db1-name".into(), is_theirs: false };
    assert_eq!((refusals(&actions), exits(&actions)), (vec![why], vec![]));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}

/// If it exited, the claim could take effect without a leader, and nobody would lead for a lease.
#[test]
fn a_node_whose_claim_is_under_way_is_not_refused_beside_a_standby_with_another_overlap_setting() {
    for is_void in [false, true] {
        let mut host = Host::overlapping();
        host.answered_with(1);
        host.reads(hello("db2", None));
        host.claims();
        let claim = host.sent.pop().unwrap();
        host.reads_what_it_sent();
        host.reads(hello("db2", None));
        assert_eq!(exits(&host.actions()), []);
        if is_void {
            host.reads(by(
                "operator",
                Body::Request { what: What::Resign, term: None, by: None, reason: None, successor: None },
            ));
        }
        host.reads(claim);
        assert_eq!(host.node.leads().is_none(), is_void);
        host.reads(Hello { joined: Some(0), ..hello("db2", None) });
        assert_eq!(exits(&host.actions()).len(), usize::from(is_void), "it holds nothing, and came later");
    }
}

/// The writer of a hello that is read again may have gone long since.
#[test]
fn a_node_that_reads_anew_is_not_refused_beside_a_standby_of_before() {
    let mut host = Host::overlapping();
    host.answered_with(1);
    host.reads(hello("db2", None));
    host.claims();
    host.reads_what_it_sent();
    host.actions();
    host.started();
    host.job(supervisor::Event::SuspendSignal { continuable: true });
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    host.actions();
    assert!(host.node.is_suspended());
    host.happens(Event::Signal { signal: TSTP_ENDS, by_terminal: false });
    assert!(host.actions().contains(&Action::Kafka(Request::ReadAnew)));
    host.answered_with(host.end());
    host.reads_at(0);
    let actions = host.actions();
    assert_eq!((refusals(&actions), exits(&actions)), (vec![], vec![]));
    // One that is heard now stands here.
    host.reads(Hello { joined: Some(0), ..hello("db2", None) });
    assert_eq!(exits(&host.actions()).len(), 1);
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::Order(Order::Stop { .. } | Order::Kill))
}

const fn overlap(over: Option<Offset>) -> Overlap {
    Overlap { within_ms: 1_000, over, yields: false }
}

fn hello(member: &str, overlap_ms: Option<u64>) -> Hello {
    Hello { overlap_ms, ..super::hello(member, 0) }
}

const fn beat(term: Offset) -> Body {
    let job = Some(Job { state: JobState::Running, pid: Some(8), attempt: Some(1), since_ms: Some(0) });
    Body::Beat { term, seen: term, lease_ms: 5_000, job, overlap: Some(overlap(None)) }
}
