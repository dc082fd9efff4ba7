use neli_proto::fact::Place;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::sync::mpsc;

use super::*;
use crate::election::Properties;

fn source(cluster: &MockCluster<'_, DefaultProducerContext>) -> FactsSource {
    FactsSource {
        access: Access::at(&cluster.bootstrap_servers(), &Properties::default()),
        elections: Elections { group: "g".into(), topic: "journal".into(), roles: 0..1, names: Arc::new([]) },
        create_topic: false,
        wanted: WantedFacts {
            topic: "facts".into(),
            settings: FactsSettings { retention: Duration::from_secs(1), compaction_lag: Duration::ZERO },
            keys: Place::ALL.map(|place| (format!("{place:?}"), place)),
            judge: false,
        },
    }
}

/// A topic that was just created is visible a moment before its partition has a leader.
#[test]
fn a_leader_that_is_not_ready_for_a_moment_is_not_an_error() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let not_ready = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 5];
    cluster.request_errors(RDKafkaApiKey::ListOffsets, &not_ready);
    let source = source(&cluster);
    let (events, mut received) = mpsc::channel(8);
    let _reading = FactsReading::start(source, 7, events, None).unwrap();
    let first = received.blocking_recv().unwrap();
    assert!(matches!(first, KafkaEvent::Facts { id: 7, event: FactsEvent::Read(_) }), "{first:?}");
}

/// The log's end is asked for again, and the facts are reported with the later number.
#[test]
fn a_reading_that_still_runs_continues_with_a_later_number() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let (events, mut received) = mpsc::channel(8);
    let mut reading = None;
    for id in 1..=20 {
        reading = Some(FactsReading::start(source(&cluster), id, events.clone(), reading).unwrap());
    }
    loop {
        let event = received.blocking_recv().unwrap();
        let KafkaEvent::Facts { id, event: FactsEvent::Read(_) } = event else { panic!("{event:?}") };
        if id == 20 {
            return;
        }
    }
}
