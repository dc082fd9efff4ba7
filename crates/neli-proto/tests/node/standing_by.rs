//! A node's status while no job runs: what the node waits for, until when, and why there is no leader.

use std::time::Duration;

use neli_proto::candidate::{self, Position};
use neli_proto::fact::Facts;
use neli_proto::guard::Answer;
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::leadership::{Leadership, ReadAt, TermState, Unknown};
use neli_proto::node::{Action, Counts, Event, Node, Settings};
use neli_proto::note::Waiting;
use neli_proto::precedence::HELLO_AFTER_LEAD;
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId, Record, What, Why};
use neli_proto::supervisor::{Ending, JobStatus};

use crate::host::{HEARTBEAT_INTERVAL, Host, LEASE, by, exits, refusals, sends};
use crate::once;
use crate::records::hello;

fn claim_of_db2() -> Record {
    by("db2", Body::Claim { after: -1, lease_ms: 5_000, overlap: None })
}

fn beat_of_db2(term: i64, seen: i64) -> Record {
    by("db2", Body::Beat { term, seen, lease_ms: 5_000, job: None, overlap: None })
}

/// An operator asks whether anybody is there.
#[test]
fn a_question_is_answered_with_a_hello_at_once() {
    let says_hello = |host: &mut Host| host.actions().iter().any(|action| sends(action, "hello"));
    let mut host = Host::listening(&[]);
    host.answered();
    host.actions();
    host.elects(candidate::Event::HelloAsked { offset: host.end() });
    assert!(says_hello(&mut host));
    host.elects(candidate::Event::Passed { first: host.end() + 1, last: host.end() + 1 });
    assert!(!says_hello(&mut host));
}

/// A member that leaves waits for the answer to its join only for the sake of others.
#[test]
fn a_member_that_leaves_the_group_says_whether_others_wait_for_it() {
    for knows_another in [false, true] {
        let mut host = Host::in_group();
        host.answered();
        if knows_another {
            let hello = hello("db3", 0);
            host.elects(candidate::Event::ReadHello { offset: host.end(), hello: Box::new(hello) });
        }
        host.actions();
        host.happens(Event::StandDown { why: Why::Stopped, leaving: true });
        let left = host.actions();
        assert!(left.contains(&Action::Kafka(Request::LeaveGroup)), "{left:?}");
        assert_eq!(host.node.is_alone(host.now), !knows_another);
    }
}

#[test]
fn under_a_leader_its_silence_is_awaited() {
    let mut host = Host::listening(&[]);
    assert!(!host.node.is_caught_up());
    host.answered_with(1);
    host.reads(claim_of_db2());
    assert!(host.node.is_caught_up());
    let status = host.status();
    assert_eq!(status.term_state, TermState::Led);
    let until = status.claims_at.unwrap();
    assert!(until >= host.now + LEASE && until < host.now + LEASE + HEARTBEAT_INTERVAL, "{until:?}");
    assert_eq!(status.counts, Counts::default(), "what was written before it began to listen is not counted");
    assert_eq!(status.departs_at, None);
}

#[test]
fn the_end_of_wait_is_shown_while_another_leads() {
    let mut host = Host::new(&[], true);
    let wait = Some(Duration::from_secs(60));
    let settings = Settings { wait, ..Host::settings(host.now, &[], true) };
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    let departs_at = Some(host.now + Duration::from_secs(60));
    host = host.listened();
    host.answered_with(1);
    host.reads(claim_of_db2());
    assert_eq!(host.status().departs_at, None, "the silence of a leader that was not heard yet is waited for");
    host.reads(beat_of_db2(0, 0));
    assert_eq!(host.status().departs_at, departs_at);
    // The node waits for its own claim without a time limit.
    host.claims();
    assert_eq!((host.status().position, host.status().departs_at), (Position::Claiming, None));
}

#[test]
fn without_a_wait_kafka_has_five_seconds_to_answer_for_the_facts() {
    let mut host = once::listening(0);
    let settings = Settings { wait: Some(Duration::ZERO), ..Host::settings(host.now, &[], true) };
    let once = Some(once::policy(0));
    host.node = Node::new(host.now, Settings { once, ..settings }, Random::from_seed(1));
    host = host.listened();
    host.answered();
    assert_eq!(host.status().departs_at, Some(host.now + Duration::from_secs(5)));
}

#[test]
fn deleted_older_records_leave_the_leader_unknown() {
    let mut host = Host::listening(&[]);
    let asked = host.now;
    host.elects(candidate::Event::Answered { asked, start: 3, end: 5 });
    // A beat whose writer had not read up to the missing record decides nothing.
    host.elects(candidate::Event::Read { offset: 3, record: Some(beat_of_db2(0, 1)), written_ms: None });
    host.elects(candidate::Event::Read { offset: 4, record: Some(beat_of_db2(0, 1)), written_ms: None });
    let status = host.status();
    assert_eq!(status.term_state, TermState::Undecided);
    assert!(status.claims_at > Some(host.now), "a leader may be there, and its silence is waited for");
    host.happens(Event::SpreadBy(None));
    assert_eq!(host.status().claims_at, None, "its process leads as many roles as it may");
    let delay = Duration::from_secs(1);
    host.happens(Event::SpreadBy(Some(delay)));
    assert_eq!(host.status().claims_at, status.claims_at.map(|since| since + delay));
}

/// The reason for which it stands by.
fn why(host: &Host) -> Option<Waiting> {
    let Position::Standby(standby) = host.status().position else { panic!("{:?}", host.status()) };
    standby.and_then(|standby| standby.why)
}

#[test]
fn a_process_with_as_many_roles_as_it_may_lead_says_so() {
    let mut host = Host::new(&[], true).listened();
    host.happens(Event::SpreadBy(None));
    host.answered();
    assert_eq!(why(&host), Some(Waiting::Precedence), "it does not know the others yet");
    host.happens(Event::SpreadBy(None));
    assert_eq!(why(&host), Some(Waiting::Full), "another role has taken what it may lead");
    host.happens(Event::SpreadBy(Some(Duration::from_secs(60))));
    assert_eq!(why(&host), Some(Waiting::Precedence));
    host.happens(Event::SpreadBy(None));
    assert_eq!(why(&host), Some(Waiting::Full));
}

/// The leader was fenced before. The broker appended the heartbeat when the broker ran again.
#[test]
fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
    let mut host = Host::listening(&[]);
    host.answered_with(0);
    let mut offset = -1;
    let mut shows_leader = |host: &mut Host, record: Record, written_ms: u64| {
        offset += 1;
        host.elects(candidate::Event::Read { offset, record: Some(record), written_ms: Some(written_ms) });
        host.status().leadership(ReadAt { now: host.now, wall_ms: 0 }, true).is_led()
    };
    assert!(shows_leader(&mut host, claim_of_db2(), 1_000));
    assert!(shows_leader(&mut host, beat_of_db2(0, 0), 2_000));
    assert!(!shows_leader(&mut host, beat_of_db2(0, 0), 9_000));
    assert!(
        !shows_leader(&mut host, beat_of_db2(0, 0), 9_010),
        "heartbeats that waited together are appended together"
    );
    for written_ms in (10_010..19_000).step_by(1_000) {
        assert!(!shows_leader(&mut host, beat_of_db2(0, 0), written_ms));
    }
    assert!(shows_leader(&mut host, beat_of_db2(0, 0), 19_010), "the broker's clock was set forward");
}

#[test]
fn where_all_older_records_were_deleted_the_election_is_forgotten() {
    let mut host = Host::listening(&[]);
    let asked = host.now;
    host.elects(candidate::Event::Answered { asked, start: 3, end: 4 });
    let (member, name) = (MemberId::from("db2"), Some("db2-name".into()));
    let hello = Hello::new(member, name);
    host.elects(candidate::Event::ReadHello { offset: 3, hello: Box::new(hello) });
    assert_eq!(host.status().term_state, TermState::Forgotten);
    // Without `retention.ms`, for example, a leader's record may have been deleted a moment ago.
    host.elects(candidate::Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: true });
    assert_eq!(host.status().term_state, TermState::Cut, "it claims nothing for a minute");
}

#[test]
fn after_a_cut_of_the_history_it_is_unknown_who_leads() {
    let mut host = Host::listening(&[]);
    host.answered();
    assert_eq!(host.status().term_state, TermState::NeverLed);
    host.elects(candidate::Event::HistoryCut);
    host.elects(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
    host.now = host.now + Duration::from_millis(1);
    host.answered();
    let at = ReadAt { now: host.now, wall_ms: 0 };
    assert_eq!(host.status().leadership(at, true), Leadership::Unknown(Unknown::Cut));
    assert_eq!(host.node.candidate().leadership(host.now), Leadership::Unknown(Unknown::Cut));
    host.log.clear();
    host.reads(claim_of_db2());
    assert!(host.status().leadership(at, true).is_led());
}

/// Its release was not delivered. The others take a hello from before the claim for one of a leader that may have died since.
#[test]
fn a_former_leader_says_hello_again_after_the_claim_that_ends_its_term() {
    let says_hello = |host: &mut Host| host.actions().iter().any(|action| sends(action, "hello"));
    let mut host = Host::leading(&[]);
    host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.pass(LEASE);
    host.pass(HELLO_AFTER_LEAD);
    assert!(says_hello(&mut host), "it stands by");
    let after = host.end() - 1;
    host.reads(by("db2", Body::Claim { after, lease_ms: 5_000, overlap: None }));
    assert!(!says_hello(&mut host));
    host.pass(HELLO_AFTER_LEAD);
    assert!(says_hello(&mut host));
}

/// It reads the journal anew, with the release in it, which it knows nothing else of.
#[test]
fn after_a_fence_it_knows_its_own_release() {
    let mut host = Host::leading(&[]);
    let term = host.node.leads().unwrap();
    host.answers(Answer::Fenced { term, end: None });
    host.answers(Answer::Gone);
    let sent = host.actions().into_iter().find(|action| sends(action, "release"));
    let Some(Action::Kafka(Request::Send { record })) = sent else { panic!("{sent:?}") };
    // The acknowledgement comes before the release is read back.
    host.elects(candidate::Event::Delivered { seq: record.seq.unwrap() });
    host.now = host.now + Duration::from_millis(1);
    host.log.extend(std::mem::take(&mut host.sent));
    let end = host.end();
    host.answered_with(end);
    (0..end).for_each(|offset| host.reads_at(offset));
    let current = host.node.candidate().leadership(host.now);
    assert!(matches!(current, Leadership::Released { release, .. } if release.term == term), "{current:?}");
}

#[test]
fn the_facts_of_a_key_are_awaited_before_a_claim() {
    let mut host = once::listening(0);
    assert_eq!(host.status().claims_at, None);
    assert_eq!(why(&host), Some(Waiting::Facts));
    host.pass(Duration::from_secs(1));
    let id = once::asked(&mut host).read.unwrap();
    once::read(&mut host, id, Facts::default());
    assert!(host.actions().iter().any(|action| sends(action, "claim")), "nothing else was waited for");
}

#[test]
fn after_a_resign_another_lead_is_awaited_for_two_leases() {
    let mut host = Host::leading(&[]);
    let by_ann = Body::Request {
        what: What::Resign,
        term: host.node.leads(),
        by: Some("ann".into()),
        reason: None,
        successor: None,
    };
    host.reads(by("ann", by_ann));
    host.ends(JobStatus::Exited(0));
    host.actions();
    assert_eq!(host.status().claims_at, None);
    host.reads_what_it_sent();
    assert_eq!(host.status().claims_at, Some(host.now + LEASE * 2));
}

#[test]
fn without_a_term_a_refusal_ends_it_at_once() {
    let mut host = Host::listening(&[]);
    host.answered_with(1);
    host.reads(claim_of_db2());
    host.actions();
    host.happens(Event::Refused("cleanup.policy is compact".into()));
    let actions = host.actions();
    assert_eq!((refusals(&actions).len(), exits(&actions)), (1, vec![Ending::Refused]));
    assert!(!host.status().is_leaving, "no release is owed to anybody: {actions:?}");
    let is_last_hello = |action: &&Action| matches!(action, Action::Kafka(Request::SayHello(hello)) if hello.leaves);
    let last_hellos = actions.iter().filter(is_last_hello).count();
    assert_eq!(last_hellos, 1, "without it the others count it as a standby for 75 s: {actions:?}");
}

#[test]
fn an_ended_lease_is_shown_while_the_rest_of_the_job_is_awaited() {
    let mut host = Host::leading(&[]);
    let lease_end = host.status().lease_end.unwrap();
    while host.node.leads().is_some() {
        host.pass_until_due();
    }
    assert_eq!(host.status().lease_end, Some(lease_end));
}
