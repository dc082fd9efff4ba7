use neli_proto::fact::Place;
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::sync::mpsc;

use super::*;
use crate::election::Properties;

/// A topic that has just been made is led a moment after it is shown.
#[test]
fn a_leader_that_is_not_ready_for_a_moment_is_no_failure() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("facts", 1, 1).unwrap();
    let not_ready = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 5];
    cluster.request_errors(RDKafkaApiKey::ListOffsets, &not_ready);
    let source = FactsSource {
        access: Access::at(&cluster.bootstrap_servers(), &Properties::default()),
        elections: Elections { group: "g".into(), topic: "journal".into(), roles: 0..1, names: Arc::new([]) },
        create_topic: false,
        wanted: WantedFacts {
            topic: "facts".into(),
            settings: FactsSettings { retention: Duration::from_secs(1), compaction_lag: Duration::ZERO },
            keys: Place::ALL.map(|place| (format!("{place:?}"), place)),
            judge: false,
        },
    };
    let (events, mut received) = mpsc::channel(8);
    let _reading = FactsReading::start(source, 7, events).unwrap();
    let first = received.blocking_recv().unwrap();
    assert!(matches!(first, KafkaEvent::Facts { id: 7, event: FactsEvent::Read(_) }), "{first:?}");
}
