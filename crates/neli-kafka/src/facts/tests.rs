use std::sync::Arc;

use neli_proto::fact::Place;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::sync::mpsc;

use super::*;
use crate::access::Access;
use crate::election::Properties;

type Cluster<'a> = MockCluster<'a, DefaultProducerContext>;

fn start(cluster: &Cluster<'_>, events: Sender<KafkaEvent>) -> std::sync::mpsc::Sender<u32> {
    let (source, topic, settings) = parts(cluster);
    start_reader(source, topic, settings, events, false).unwrap()
}

fn parts(cluster: &Cluster<'_>) -> (Source, FactsTopic, FactsSettings) {
    let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    let elections = Elections { group: "g".into(), topic: "journal".into(), roles: 0..1, names: Arc::new([]) };
    let source = Source::new(access, elections, IfMissing::Refuse);
    let topic = FactsTopic { name: "facts".into(), keys: Place::ALL.map(|place| (format!("{place:?}"), place)) };
    let settings = FactsSettings { retention: Duration::from_secs(1), compaction_lag: Duration::ZERO, window: None };
    (source, topic, settings)
}

/// The next event besides the warning that the mock does not show how the topic is set.
fn next_of(received: &mut mpsc::Receiver<KafkaEvent>) -> KafkaEvent {
    let mut events = std::iter::from_fn(|| received.blocking_recv());
    events.find(|event| !matches!(event, KafkaEvent::Process(SessionEvent::Warning(_)))).unwrap()
}

/// A topic that was just created is visible a moment before its partition has a leader.
#[test]
fn a_leader_that_is_not_ready_for_a_moment_is_not_an_error() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let not_ready = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 5];
    cluster.request_errors(RDKafkaApiKey::ListOffsets, &not_ready);
    let (events, mut received) = mpsc::channel(8);
    let reader = start(&cluster, events);
    reader.send(7).unwrap();
    let first = next_of(&mut received);
    assert!(
        matches!(first, KafkaEvent::Process(SessionEvent::Facts { id: 7, event: FactsEvent::Read { .. } })),
        "{first:?}"
    );
}

/// The log's end is asked for again, and the facts are reported with the later number.
#[test]
fn a_reading_that_still_runs_continues_with_a_later_number() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let (events, mut received) = mpsc::channel(8);
    let reader = start(&cluster, events);
    for id in 1..=20 {
        reader.send(id).unwrap();
    }
    loop {
        let event = next_of(&mut received);
        let KafkaEvent::Process(SessionEvent::Facts { id, event: FactsEvent::Read { .. } }) = event else {
            panic!("{event:?}")
        };
        if id == 20 {
            return;
        }
    }
}

/// A candidate may lead while its topic is read at the start: that reading is asked for only once.
#[test]
fn a_reading_that_is_asked_for_during_or_after_the_first_one_follows() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let ((source, topic, settings), (events, mut received)) = (parts(&cluster), mpsc::channel(8));
    let reader = start_reader(source, topic, settings, events, true).unwrap();
    reader.send(7).unwrap();
    let read = next_of(&mut received);
    assert!(
        matches!(read, KafkaEvent::Process(SessionEvent::Facts { id: 7, event: FactsEvent::Read { .. } })),
        "{read:?}"
    );
    reader.send(8).unwrap();
    let again = next_of(&mut received);
    assert!(
        matches!(again, KafkaEvent::Process(SessionEvent::Facts { id: 8, event: FactsEvent::Read { .. } })),
        "{again:?}"
    );
}

fn begin(source: Source, events: Sender<KafkaEvent>) -> std::sync::mpsc::Sender<u32> {
    let (_, topic, settings) = parts(&MockCluster::new(1).unwrap());
    let reader = start_reader(source, topic, settings, events, false).unwrap();
    reader.send(7).unwrap();
    reader
}

/// Of a certificate and its key, one file is replaced after the other.
#[test]
fn a_client_that_can_not_be_made_is_tried_again() {
    let properties = [("security.protocol", "ssl"), ("ssl.ca.location", "/nonexistent")];
    let properties = Properties(properties.map(|(key, value)| (key.into(), value.into())).into());
    let (source, ..) = parts(&MockCluster::new(1).unwrap());
    let source = Source { access: Access::at("127.0.0.1:9", &properties), ..source };
    let (events, mut received) = mpsc::channel(8);
    let _reader = begin(source, events);
    for _ in 0..2 {
        let event = next_of(&mut received);
        assert!(is_unread(&event), "{event:?}");
    }
}

fn is_unread(event: &KafkaEvent) -> bool {
    matches!(event, KafkaEvent::Process(SessionEvent::Facts { event: FactsEvent::Unread { .. }, .. }))
}

/// A broker that has just started may not know the topic yet.
#[test]
fn a_topic_may_be_missing_for_a_moment() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    cluster.topic_error("facts", RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART).unwrap();
    let (source, ..) = parts(&cluster);
    let (events, mut received) = mpsc::channel(8);
    let _reader = begin(source, events);
    let first = next_of(&mut received);
    assert!(is_unread(&first), "{first:?}");
    cluster.topic_error("facts", RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).unwrap();
    loop {
        let event = next_of(&mut received);
        let KafkaEvent::Process(SessionEvent::Facts { event, .. }) = event else { panic!("{event:?}") };
        if matches!(event, FactsEvent::Read { .. }) {
            return;
        }
    }
}

/// If the partition has no leader for long, that is reported, and Kafka is asked a few times a second.
#[test]
fn a_partition_without_a_leader_is_reported() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    cluster.partition_leader("facts", 0, None).unwrap();
    let (events, mut received) = mpsc::channel(8);
    let reader = start(&cluster, events);
    reader.send(7).unwrap();
    let mut next = || {
        let event = next_of(&mut received);
        let KafkaEvent::Process(SessionEvent::Facts { id: 7, event }) = event else { panic!("{event:?}") };
        event
    };
    let FactsEvent::Unread { error } = next() else { panic!("the topic was read") };
    assert_eq!(&*error, "topic \"facts\": its partition has no leader; start the brokers that hold it");
    cluster.partition_leader("facts", 0, Some(1)).unwrap();
    while !matches!(next(), FactsEvent::Read { .. }) {}
}

/// The broker that leads the partition may not know the topic for a moment. It is asked in a loop, not in a recursion without an end.
#[test]
fn a_topic_that_its_broker_does_not_know_for_long_is_reported() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    cluster.request_errors(RDKafkaApiKey::ListOffsets, &vec![unknown; 100_000]);
    let (events, mut received) = mpsc::channel(8);
    let reader = start(&cluster, events);
    reader.send(7).unwrap();
    let first = next_of(&mut received);
    let KafkaEvent::Process(SessionEvent::Facts { event: FactsEvent::Unread { .. }, .. }) = first else {
        panic!("{first:?}")
    };
    cluster.clear_request_errors(RDKafkaApiKey::ListOffsets);
    loop {
        let event = next_of(&mut received);
        let KafkaEvent::Process(SessionEvent::Facts { event, .. }) = event else { panic!("{event:?}") };
        if matches!(event, FactsEvent::Read { .. }) {
            return;
        }
    }
}

mod progress {
    use super::*;

    const ONE: TopicIdentity = TopicIdentity::Id { high: 1, low: 1 };
    const OTHER: TopicIdentity = TopicIdentity::Id { high: 1, low: 2 };
    const NONE: TopicIdentity = TopicIdentity::Unnamed;

    fn half_read(topic: TopicIdentity) -> ReadFacts {
        let facts = Facts { unreadable: [Place::Done].into(), ..Facts::default() };
        ReadFacts { topic, next: 50, facts, ..ReadFacts::default() }
    }

    #[test]
    fn the_reading_of_the_same_topic_continues_after_records_that_were_deleted() {
        for (start, end, next) in [(0, 100, 50), (0, 50, 50), (70, 100, 70)] {
            let mut progress = half_read(ONE);
            progress.continue_in(ONE, start, end);
            assert_eq!(progress, ReadFacts { next, end, ..half_read(ONE) });
        }
    }

    #[test]
    fn another_or_an_unidentified_topic_of_the_same_name_is_read_from_its_start() {
        for (before, now, end) in
            [(ONE, OTHER, 100), (ONE, NONE, 100), (NONE, NONE, 100), (NONE, ONE, 100), (ONE, ONE, 49)]
        {
            let mut progress = half_read(before);
            progress.continue_in(now, 3, end);
            assert_eq!(
                progress,
                ReadFacts { topic: now, next: 3, end, ..ReadFacts::default() },
                "{before:?} {now:?} {end}"
            );
        }
    }
}
