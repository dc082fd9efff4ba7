use std::time::Duration;

use neli_proto::candidate;
use neli_proto::node;
use neli_proto::record::Record;
use tokio::sync::mpsc;

use super::*;
use crate::driver::Shared;
use crate::handle::Election;
use crate::leadership::Leadership;
use crate::lease::Commands;
use crate::warnings;

const CLAIM: &str = r#"{"v":1,"member":"m","name":"db1","seq":1,"kind":"claim","after":-1,"lease_ms":5000}"#;
const BEAT: &str = r#"{"v":1,"member":"m","name":"db1","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#;

fn new_role() -> (Role, watch::Receiver<State>, broadcast::Receiver<Event>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let settings = Election::builder("billing").brokers("localhost:9").settings().unwrap();
    let warnings = warnings::start(&settings.runtime, Some(Arc::new(|_: &str| ())), "g").unwrap();
    Role::new(&settings, 0, warnings).unwrap()
}

/// What a candidate's handle says about the leader when these records were just read, each with the time in milliseconds at which it was
/// appended. `end`: the end of the log when the reading began.
fn leadership(end: i64, records: &[(u64, &str)]) -> Leadership {
    leadership_after(Duration::ZERO, None, end, records)
}

/// The same so long after the records were read, while Kafka has this trouble.
fn leadership_after(passed: Duration, trouble: Option<&str>, end: i64, records: &[(u64, &str)]) -> Leadership {
    let (mut role, state, events) = new_role();
    let began = clock::now();
    let mut tell = |event| role.node.handle(began, node::Event::Election(event));
    tell(candidate::Event::Answered { asked: began, start: 0, end });
    for (offset, (written_ms, text)) in (0..).zip(records) {
        let record = Record::parse(text.as_bytes());
        tell(candidate::Event::Read { offset, record, written_ms: Some(*written_ms) });
    }
    role.publish(true, trouble);
    let (commands, _) = mpsc::unbounded_channel();
    Election::joining(Shared { commands: Commands::new(0, commands), state, events }).leadership_at(began + passed)
}

/// The leader was fenced before it, as a follower knows too.
#[test]
fn a_heartbeat_after_the_end_of_its_lease_makes_no_leader() {
    let after_a_heartbeat = |gap_ms: u64| leadership(2, &[(1_000, CLAIM), (1_000 + gap_ms, BEAT)]);
    assert!(matches!(after_a_heartbeat(4_900), Leadership::Led(_)));
    assert_eq!(after_a_heartbeat(9_000), Leadership::Unknown { trouble: None });
}

#[test]
fn a_leader_that_has_missed_three_heartbeats_is_silent_while_kafka_answers() {
    let (passed, trouble) = (Duration::from_secs(4), "no broker answers".to_owned());
    let silent = leadership_after(passed, None, 1, &[(1_000, CLAIM)]);
    assert!(matches!(&silent, Leadership::Silent { leader, .. } if leader.term == 0), "{silent:?}");
    let unknown = leadership_after(passed, Some(&trouble), 1, &[(1_000, CLAIM)]);
    assert_eq!(unknown, Leadership::Unknown { trouble: Some(trouble) });
}

/// It reads nothing any more, so another may lead; and one that has left in order shows none either.
#[test]
fn a_candidate_that_was_refused_shows_no_leader() {
    let (mut role, state, events) = new_role();
    let now = clock::now();
    role.node.handle(now, node::Event::Election(candidate::Event::Answered { asked: now, start: 0, end: 1 }));
    let record = Record::parse(CLAIM.as_bytes());
    role.node.handle(now, node::Event::Election(candidate::Event::Read { offset: 0, record, written_ms: None }));
    role.publish(true, None);
    let (commands, _) = mpsc::unbounded_channel();
    let election = Election::joining(Shared { commands: Commands::new(0, commands), state, events });
    assert_eq!(election.leader().map(|leader| leader.term), Some(0));
    role.node.handle(now, node::Event::Refused("a right is missing".into()));
    role.ending = Some(Error::Refused("a right is missing".to_owned()));
    role.publish(true, None);
    role.tell_end(false);
    assert_eq!(election.leader(), None);
}

/// A candidate that reads the journal anew reads of earlier leaders before it reads of the present one.
#[test]
fn nobody_leads_as_far_as_is_known_before_all_records_are_read() {
    assert!(matches!(leadership(1, &[(1_000, CLAIM)]), Leadership::Led(_)));
    assert_eq!(leadership(2, &[(1_000, CLAIM)]), Leadership::Unknown { trouble: None });
}

/// `neli-run` logs it.
#[test]
fn that_the_topic_was_made_anew_is_why_the_leader_is_unknown() {
    let (mut role, state, events) = new_role();
    let now = clock::now();
    let judged = || candidate::Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: false };
    let answered = || candidate::Event::Answered { asked: now, start: 0, end: 0 };
    for event in [answered(), judged(), candidate::Event::HistoryCut, answered(), judged()] {
        role.node.handle(now, node::Event::Election(event));
    }
    role.publish(true, None);
    let (commands, _) = mpsc::unbounded_channel();
    let leadership =
        Election::joining(Shared { commands: Commands::new(0, commands), state, events }).leadership_at(now);
    assert!(
        matches!(&leadership, Leadership::Unknown { trouble: Some(why) } if why.contains("made anew")),
        "{leadership:?}"
    );
}

/// A program that counts its leads by its events counts each end once.
#[test]
fn each_term_that_began_ends_with_one_event() {
    let (mut role, _, mut events) = new_role();
    let acquired = |term| Event::Acquired { term };
    let released = |term, reason| Event::Released { term, reason, delivered: true };
    for event in [
        acquired(1),
        Event::Fenced { term: 1 },
        // The term whose lease has run out is released, too.
        released(1, Reason::Expired),
        // A claim that was under way when the candidate left.
        released(4, Reason::Left),
        acquired(7),
        released(7, Reason::Left),
    ] {
        role.tell(event);
    }
    let seen: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert_eq!(seen, [acquired(1), Event::Fenced { term: 1 }, acquired(7), released(7, Reason::Left)]);
}
