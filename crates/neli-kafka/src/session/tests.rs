use std::cell::Cell;
use std::sync::Arc;
use std::{io, mem};

use neli_proto::topic::{Layout, TopicSettings, Unread};
use rdkafka::mocking::MockCluster;

use super::*;
use crate::election::Properties;
use crate::event::GroupEvent;
use crate::reading::IfMissing;

/// A session with this number of roles.
fn session(bootstrap: &str, roles: u32) -> Session {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..roles, names: Arc::new([]) };
    let access = Access::at(bootstrap, &Properties::default());
    Session::start(Source::new(access, elections, IfMissing::Refuse), Duration::from_secs(5)).unwrap()
}

/// A role that waits for an answer never asks again by itself, so without another question it would be fenced.
#[tokio::test]
async fn a_producer_that_is_renewed_asks_again_which_topic_it_is() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    // Nobody answers the first producer.
    let mut session = session("127.0.0.1:9", 2);
    session.handle_kafka_event(KafkaEvent::Partitions(2));
    session.identify();
    session.readers.source.access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    session.renew_producer(0);
    let is_answer = |event: &SessionEvent| {
        matches!(event, SessionEvent::Election { role: 1, event: Event::TopicIdentified { .. } })
    };
    await_event(&mut session, is_answer).await;
}

/// Without another question the topic would never be judged, and no role of this process could lead.
#[tokio::test]
async fn a_producer_that_is_renewed_asks_again_how_the_topic_is_set() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    // Nobody answers the first producer.
    let mut session = session("127.0.0.1:9", 1);
    session.read_anew(0);
    assert!(session.is_judging);
    session.readers.source.access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    session.renew_producer(0);
    let is_answer =
        |event: &SessionEvent| matches!(event, SessionEvent::Election { role: 0, event: Event::TopicJudged { .. } });
    await_event(&mut session, is_answer).await;
}

/// The question comes with each judgement of the topic, and each host warns of the answer.
#[tokio::test]
async fn a_broker_s_session_timeout_is_reported_once() {
    let mut session = session("127.0.0.1:9", 1);
    for seconds in [9, 9, 60, 60] {
        session.handle_kafka_event(SessionEvent::BrokerSession(Duration::from_secs(seconds)).into());
    }
    let reported = session.outputs.drain(..).map(|event| {
        if let SessionEvent::BrokerSession(timeout) = event { timeout.as_secs() } else { panic!("{event:?}") }
    });
    assert_eq!(reported.collect::<Vec<_>>(), [9, 60]);
}

/// A machine may have no thread to spare for a while.
#[tokio::test]
async fn the_settings_are_asked_for_again_after_a_lack_of_threads() {
    let mut session = session("127.0.0.1:9", 1);
    session.unjudged.insert(0, clock::now());
    let no_thread = || Err(io::Error::from_raw_os_error(11));
    session.note_question(clock::now(), no_thread());
    let warning = session.outputs.pop_front();
    assert!(matches!(&warning, Some(SessionEvent::Warning(warning)) if warning.contains("lack of a thread")));
    session.note_question(clock::now(), no_thread());
    let again = session.poll_timeout().unwrap();
    session.handle_timeout(again - Duration::from_millis(1));
    assert!(!session.is_judging, "not at once");
    session.handle_timeout(again);
    assert!(session.is_judging);
    assert!(session.outputs.is_empty(), "one warning is enough");
    assert_eq!(session.poll_timeout(), None);
}

/// A single election has no other reader, whose events would come meanwhile.
#[tokio::test]
async fn a_reader_is_started_after_a_lack_of_threads() {
    let mut session = session("127.0.0.1:9", 1);
    for _ in 0..2 {
        session.readers.note(Err(io::Error::from_raw_os_error(11)));
    }
    let outputs: Vec<SessionEvent> = std::iter::from_fn(|| session.poll()).collect();
    let [SessionEvent::Warning(warning)] = &outputs[..] else { panic!("{outputs:?}") };
    assert!(warning.contains("lack of a thread"), "{warning}");
    let again = session.poll_timeout().unwrap();
    session.handle_timeout(again - Duration::from_millis(1));
    assert_eq!(session.poll_timeout(), Some(again), "not at once");
    session.handle_timeout(again);
    assert_eq!(session.poll_timeout(), None);
}

/// A lack of threads ends no lead. The next cut, or claim without an answer, has it tried again.
#[tokio::test]
async fn a_producer_that_can_not_be_replaced_goes_on() {
    let mut session = session("127.0.0.1:9", 1);
    let properties = [("linger.ms", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let bad = Access::at("127.0.0.1:9", &Properties(properties.to_vec()));
    let access = mem::replace(&mut session.readers.source.access, bad);
    session.renew_producer(0);
    let outputs: Vec<SessionEvent> = session.outputs.drain(..).collect();
    assert!(matches!(&outputs[..], [SessionEvent::Warning(_)]), "{outputs:?}");
    session.readers.source.access = access;
    session.renew_producer(0);
    assert!(session.outputs.is_empty(), "it is replaced now");
}

/// Certificates may have expired that were renewed on disk: a client reads them only when it is made.
#[tokio::test]
async fn clients_without_an_answer_for_long_are_replaced() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    // Nobody answers the first ones.
    let mut session = session("127.0.0.1:9", 2);
    session.read_anew(0);
    let live = |session: &Session| (1..9).find(|reading| session.router.has(*reading));
    assert_eq!((live(&session), session.poll_timeout()), (Some(1), None));
    let is_down = |error: Option<&str>| SessionEvent::Outage { error: error.map(str::to_owned) };
    session.handle_kafka_event(is_down(Some("no answer")).into());
    session.identify();
    session.join_group(0);
    let due = session.poll_timeout().unwrap();
    session.handle_timeout(due - Duration::from_millis(1));
    assert_eq!((live(&session), session.members), (Some(1), 1));
    session.readers.source.access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    let later = due + Duration::from_secs(1);
    session.handle_timeout(later);
    assert_eq!((live(&session), session.members), (Some(2), 2));
    assert!(session.member.is_some());
    session.handle_kafka_event(is_down(Some("another reason")).into());
    assert_eq!(session.poll_timeout(), Some(later + REPLACED_AFTER), "and again after as long");
    // All roles know of that renewal: a later cut is a reason for another one.
    session.renew_producer(1);
    assert_eq!(session.behind, BTreeSet::from([0]));
    let [is_answered, is_identified] = [(); 2].map(|()| Cell::new(false));
    let are_both = |event: &SessionEvent| {
        if let SessionEvent::Election { event: Event::Answered { .. }, .. } = event {
            is_answered.set(true);
        } else if let SessionEvent::Election { event: Event::TopicIdentified { .. }, .. } = event {
            is_identified.set(true);
        }
        is_answered.get() && is_identified.get()
    };
    await_event(&mut session, are_both).await;
    assert_eq!(session.poll_timeout(), None);
}

/// R0: each process warns of what may lose records. A program with the library need not have `neli-run doctor`.
#[tokio::test]
async fn risks_of_the_topic_are_a_warning_once() {
    let mut session = session("127.0.0.1:9", 2);
    let settings = TopicSettings { unclean_leader_election: Some(true), ..TopicSettings::default() };
    let layout = Layout { leader: 1, replicas: [(0, vec![1])].into(), brokers: vec![1] };
    let facts = TopicFacts { layout, settings: Ok(settings) };
    for role in [0, 1, 0] {
        session.judge_for(role, &facts);
    }
    let warning = |event| if let SessionEvent::Warning(warning) = event { Some(warning) } else { None };
    let warnings: Vec<String> = session.outputs.drain(..).filter_map(warning).collect();
    let expected = "topic \"t\": unclean.leader.election.enable=true: ";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
}

/// R0: one answer that is late must not let a leader go on in a compacted topic for ever.
#[tokio::test]
async fn settings_that_could_not_be_read_are_asked_for_again_and_judged_then() {
    let mut session = session("127.0.0.1:9", 1);
    session.unjudged.insert(0, clock::now());
    let hear = |session: &mut Session, settings| {
        let layout = Layout { leader: 1, replicas: [(0, vec![1])].into(), brokers: vec![1] };
        let facts = TopicFacts { layout, settings };
        session.handle_kafka_event(KafkaEvent::Topic { asked: clock::now(), facts });
        session.outputs.drain(..).collect::<Vec<_>>()
    };
    let failed = || Err(Unread::Failed("Request timed out".into()));
    let events = hear(&mut session, failed());
    let [
        SessionEvent::Warning(warning),
        SessionEvent::Election { event: Event::TopicJudged { gaps_are_markers: false, .. }, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(warning.contains("Request timed out"), "{warning}");
    assert!(!session.is_judging, "not at once");
    let ask_again = |session: &mut Session| {
        let event = Event::Answered { asked: clock::now(), start: 0, end: 0 };
        session.handle_kafka_event(KafkaEvent::Reading { reading: 1, partition: 0, event });
        session.is_judging
    };
    assert!(ask_again(&mut session));
    let events = hear(&mut session, failed());
    assert!(!events.iter().any(|event| matches!(event, SessionEvent::Warning(_))), "it is said once: {events:?}");
    assert!(ask_again(&mut session));
    let compacted = TopicSettings { cleanup_policy: Some("compact".into()), ..TopicSettings::default() };
    let events = hear(&mut session, Ok(compacted));
    assert!(matches!(&events[..], [SessionEvent::Refused { role: Some(0), .. }]), "{events:?}");
    assert!(!ask_again(&mut session));
}

/// A cut of the history concerns all roles, and each asks for a new producer.
#[tokio::test]
async fn a_new_producer_is_made_once_for_all_roles() {
    let mut session = session("127.0.0.1:9", 2);
    let renew = |role| {
        session.renew_producer(role);
        session.behind.iter().copied().collect::<Vec<_>>()
    };
    assert_eq!([0, 1, 1, 0].map(renew), [vec![1], vec![], vec![0], vec![]]);
}

async fn await_event(session: &mut Session, wanted: impl Fn(&SessionEvent) -> bool) {
    let answered = async {
        loop {
            session.wait().await;
            while let Some(event) = session.poll() {
                if wanted(&event) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), answered).await.expect("an answer");
}

const TOPIC: TopicIdentity = TopicIdentity::Id { high: 1, low: 1 };

/// What a session of 6 roles says of an answer that names the topic and how many partitions it has; its roles count 3.
fn describe(session: &mut Session, identity: TopicIdentity, count: i32) -> Vec<SessionEvent> {
    let event = KafkaEvent::Identified { asked: clock::now(), identity, count, partitions: vec![0, 1, 2] };
    session.handle_kafka_event(event);
    session.outputs.drain(..).collect()
}

fn session_that_counts_3() -> Session {
    let mut session = session("127.0.0.1:9", 6);
    session.handle_kafka_event(KafkaEvent::Partitions(3));
    session
}

fn are_role_changes_reported(events: &[SessionEvent]) -> bool {
    let is_role_change = |event: &SessionEvent| {
        matches!(event, SessionEvent::Election { event: Event::TopicIdentified { identity: TOPIC, .. }, .. })
    };
    events.len() == 6 && events.iter().all(is_role_change)
}

#[test]
fn roles_stay_where_they_are_when_partitions_are_added() {
    let mut session = session_that_counts_3();
    assert!(are_role_changes_reported(&describe(&mut session, TOPIC, 3)));
    let mut events = describe(&mut session, TOPIC, 6);
    let warning = events.remove(0);
    assert!(matches!(&warning, SessionEvent::Warning(warning) if warning.contains("3 partitions and has 6 now")));
    assert!(are_role_changes_reported(&events));
    assert!(are_role_changes_reported(&describe(&mut session, TOPIC, 6)), "it is said once");
    assert!(are_role_changes_reported(&describe(&mut session, TOPIC, 3)), "by a broker that was told late");
    assert_eq!(session.election(5).unwrap().partition, 2);

    // Candidates that start now look for these roles where they are.
    for (roles, before, count) in [(3, 3, 6), (6, 6, 9), (12, 6, 12)] {
        let mut session = self::session("127.0.0.1:9", roles);
        session.handle_kafka_event(KafkaEvent::Partitions(before));
        describe(&mut session, TOPIC, before);
        let is_warning = |event: &SessionEvent| matches!(event, SessionEvent::Warning(_));
        let moves = describe(&mut session, TOPIC, count).iter().any(is_warning);
        assert_eq!(moves, roles == 12, "{roles} roles, {before} and {count} partitions");
    }
}

#[test]
fn a_topic_that_was_made_anew_with_other_partitions_is_refused() {
    let other = TopicIdentity::Id { high: 2, low: 2 };
    for (before, identity, count) in [(Some(3), other, 6), (Some(3), other, 1), (None, TOPIC, 6)] {
        let mut session = session_that_counts_3();
        if let Some(before) = before {
            describe(&mut session, TOPIC, before);
        }
        let events = describe(&mut session, identity, count);
        assert!(matches!(&events[..], [SessionEvent::Refused { .. }]), "{events:?}");
    }
    let mut session = session_that_counts_3();
    describe(&mut session, TOPIC, 3);
    assert!(!describe(&mut session, TopicIdentity::Missing, 0).is_empty());
    assert_eq!(describe(&mut session, other, 3).len(), 6, "with as many it is the candidates' business");
}

/// A full group refuses each try, which comes every few seconds.
#[test]
fn a_refusal_by_the_group_is_reported_once_until_the_group_settles() {
    let mut session = session("127.0.0.1:9", 1);
    session.join_group(0);
    let hear = |session: &mut Session, event| {
        session.handle_group_event(1, event);
        session.outputs.drain(..).collect::<Vec<_>>()
    };
    let refused = || GroupEvent::Refused(Refusal { words: "full".into(), line: "group \"g\": it is full".into() });
    let events = hear(&mut session, refused());
    let [
        SessionEvent::Election { event: Event::GroupRefuses { words: Some(words) }, .. },
        SessionEvent::Group { refusal: Some(line) },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((&**words, line.as_str()), ("full", "group \"g\": it is full"));
    assert!(hear(&mut session, refused()).is_empty());
    let events = hear(&mut session, GroupEvent::Assigned { partitions: BTreeSet::new() });
    assert!(events.iter().any(|event| matches!(event, SessionEvent::Group { refusal: None })), "{events:?}");
    assert!(!hear(&mut session, refused()).is_empty());
    session.leave_group(0, true);
    assert!(session.outputs.iter().any(|event| matches!(event, SessionEvent::Group { refusal: None })));
}

/// With `--patience never` only the member that the group chooses claims, and the group can't choose one that can't connect to the coordinator: its
/// certificate has expired, for example. One that is refused would be refused again.
#[test]
fn a_member_that_the_coordinator_has_not_answered_for_long_is_replaced() {
    let mut session = session("127.0.0.1:9", 1);
    session.join_group(0);
    for member in [1, 1] {
        session.handle_group_event(member, GroupEvent::Unanswered);
        assert!(session.member.is_some() && session.members == 2);
    }
    let refusal = Refusal { words: "full".into(), line: "group \"g\": it is full".into() };
    session.handle_group_event(2, GroupEvent::Refused(refusal));
    session.handle_group_event(2, GroupEvent::Unanswered);
    assert_eq!(session.members, 2);
}

/// No election depends on the group, so a lack of threads or a client that can't be made ends nothing.
#[test]
fn a_member_that_can_not_be_made_is_tried_again() {
    let mut session = session("127.0.0.1:9", 1);
    let access = session.readers.source.access.clone();
    // A value that librdkafka does not take.
    let properties = [("session.timeout.ms", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    session.readers.source.access = Access::at("127.0.0.1:9", &Properties(properties.to_vec()));
    session.join_group(0);
    assert!(session.outputs.iter().any(|event| matches!(event, SessionEvent::Group { refusal: Some(_) })));
    assert!(session.member.is_none());
    session.readers.source.access = access;
    let again = session.poll_timeout().unwrap();
    session.handle_timeout(again - Duration::from_millis(1));
    assert!(session.member.is_none(), "not at once");
    session.handle_timeout(again);
    assert!(session.member.is_some());
    // If the group refuses it, it says so again.
    assert!(matches!(session.outputs.pop_back(), Some(SessionEvent::Group { refusal: None })));
}

/// Its reports may still be on their way.
#[test]
fn a_member_that_was_left_no_longer_counts() {
    let mut session = session("127.0.0.1:9", 1);
    session.join_group(0);
    session.leave_group(0, true);
    session.join_group(0);
    let reported_by = |session: &mut Session, member| {
        session.handle_group_event(member, GroupEvent::UnusedPartitions);
        session.outputs.drain(..).count()
    };
    assert_eq!((reported_by(&mut session, 1), reported_by(&mut session, 2)), (0, 1));
    assert!(session.is_leaving_group());
    session.handle_group_event(1, GroupEvent::Left);
    assert!(!session.is_leaving_group() && session.member.is_some());
}

/// Without the last hello the other candidates count the process as alive for up to 75 s longer.
#[tokio::test]
async fn the_exit_waits_for_the_last_hello_until_it_is_in_the_log_but_only_briefly() {
    let mut session = session("127.0.0.1:9", 2);
    let delivered = |session: &mut Session| session.handle_kafka_event(SessionEvent::HelloDelivered.into());
    let hello = Hello::new("m".into(), None);
    session.say_hello(&hello);
    assert_eq!(session.awaits_last_hello_until(), None);
    let last = Hello { leaves: true, ..hello };
    // That of an earlier one does not count.
    delivered(&mut session);
    session.say_hello(&last);
    assert!(session.last_hello_until.is_some());
    delivered(&mut session);
    assert_eq!(session.awaits_last_hello_until(), None);
    session.last_hello_until = Some(clock::now());
    assert_eq!(session.awaits_last_hello_until(), None, "the time is over");
}
