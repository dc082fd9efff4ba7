use std::collections::BTreeSet;
use std::thread;

use rdkafka::mocking::{MockCluster, MockCoordinator};
use tokio::sync::mpsc::{self, Receiver};

use super::*;
use crate::access::SESSION_TIMEOUT;
use crate::election::Properties;

/// Member 1, for partition 0, which has no answer to its join, and its reports; the first report is member 0's. Without `room` in the channel
/// any other report has to wait.
fn unanswered(room: usize) -> (Member, Receiver<KafkaEvent>) {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: Arc::new([]) };
    let (reports, received) = mpsc::channel(1 + room);
    reports.try_send(KafkaEvent::Group { member: 0, event: GroupEvent::Left }).unwrap();
    let access = Access::at("127.0.0.1:9", &Properties::default());
    (Member::join(&access, &elections, BTreeSet::from([0]), 1, reports).unwrap(), received)
}

/// Has a member leave. Returns its client, which is closed once the leave is over, and its reports.
fn leave(alone: bool, is_answered: bool) -> (Arc<BaseConsumer<GroupContext>>, Receiver<KafkaEvent>) {
    let (member, reports) = unanswered(0);
    member.consumer.context().is_answered.store(is_answered, Ordering::Relaxed);
    let consumer = Arc::clone(&member.consumer);
    member.leave(alone);
    (consumer, reports)
}

/// A leave waits behind the join. A member that has had no answer to its join, and for which no other candidate waits, is not waited for.
#[test]
fn a_member_that_leaves_in_vain_says_at_once_that_it_has_left() {
    let (in_vain, mut reports) = leave(true, false);
    for (alone, is_answered) in [(false, false), (true, true)] {
        let (consumer, _reports) = leave(alone, is_answered);
        let begun = clock::now();
        while !consumer.closed() {
            assert!(
                clock::now().since(begun) < Duration::from_secs(10),
                "it closes before it reports that it has left"
            );
            thread::park_timeout(POLL_WHILE_LEAVING);
        }
    }
    assert!(!in_vain.closed(), "the report comes first, and waits for room in the channel");
    for number in 0..2 {
        let report = reports.blocking_recv().unwrap();
        assert!(
            matches!(report, KafkaEvent::Group { member, event: GroupEvent::Left } if member == number),
            "{report:?}"
        );
    }
}

/// The group balances them too, and moves partition 0 for that.
#[test]
fn partitions_that_no_role_uses_are_reported_once() {
    let (member, mut reports) = unanswered(10);
    reports.try_recv().unwrap();
    let context = member.consumer.context();
    context.note_partitions(&BTreeSet::from([0]));
    assert!(reports.try_recv().is_err());
    for _ in 0..2 {
        context.note_partitions(&BTreeSet::from([0, 1]));
    }
    let report = reports.try_recv().unwrap();
    assert!(matches!(report, KafkaEvent::Group { member: 1, event: GroupEvent::UnusedPartitions }), "{report:?}");
    assert!(reports.try_recv().is_err());
}

/// Its process may read and append all the same, on other connections.
#[test]
fn a_member_whose_coordinator_does_not_answer_any_more_has_no_id() {
    let cluster = MockCluster::new(2).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    cluster.partition_leader("t", 0, Some(1)).unwrap();
    cluster.coordinator(MockCoordinator::Group("g".to_owned()), 2).unwrap();
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: Arc::new([]) };
    let properties = [(SESSION_TIMEOUT, "4000")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let access = Access::at(&cluster.bootstrap_servers(), &Properties(properties.to_vec()));
    let (reports, mut received) = mpsc::channel(100);
    let member = Member::join(&access, &elections, BTreeSet::from([0]), 1, reports).unwrap();
    while !matches!(received.blocking_recv(), Some(KafkaEvent::Group { event: GroupEvent::Assigned { .. }, .. })) {}
    let has_id = || librdkafka::member_id(member.consumer.client()).is_some();
    assert!(has_id());
    cluster.broker_down(2).unwrap();
    let begun = clock::now();
    while has_id() {
        assert!(clock::now().since(begun) < Duration::from_secs(20));
        thread::park_timeout(POLL_WHILE_LEAVING);
    }
}

#[test]
fn a_member_without_an_id_for_long_is_reported_and_again_after_as_long() {
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let mut named_at = at(0);
    let reported: Vec<u64> =
        (0..400).filter(|seconds| is_unanswered(&mut named_at, at(*seconds), (100..=200).contains(seconds))).collect();
    assert_eq!(reported, [60, 260, 320, 380]);
}

mod pace {
    use super::*;
    use crate::access::HEARTBEAT_INTERVAL;
    use crate::election::Properties;

    fn pace(heartbeat: &str, session: &str) -> [u128; 2] {
        let properties = [(HEARTBEAT_INTERVAL, heartbeat), (SESSION_TIMEOUT, session)];
        let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let timings = MemberTimings::of(&Properties(properties.to_vec()));
        [false, true].map(|leads_or_holds| pause(timings, leads_or_holds).as_millis())
    }

    #[test]
    fn a_leader_or_holder_heartbeats_only_as_often_as_its_session_needs() {
        assert_eq!(pace("100", "6000"), [100, 500]);
        assert_eq!(pace("100", "900"), [100, 300]);
        assert_eq!(pace("2000", "6000"), [2000, 2000]);
    }
}
