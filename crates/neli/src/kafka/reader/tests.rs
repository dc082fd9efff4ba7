use std::sync::Arc;

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer as _};
use tokio::sync::mpsc::{self, Receiver};

use super::*;
use crate::election::Properties;
use crate::kafka::event::Key;

const LONG: Duration = Duration::from_secs(10);

type Cluster = MockCluster<'static, DefaultProducerContext>;

/// A topic with two partitions, and one record of role 0 in the first.
fn cluster() -> Cluster {
    let cluster = MockCluster::new(2).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    for (partition, leader) in [(0, 1), (1, 2)] {
        cluster.partition_leader("t", partition, Some(leader)).unwrap();
    }
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    producer.send(BaseRecord::to("t").partition(0).key("g/0").payload("{}")).unwrap();
    producer.flush(LONG).unwrap();
    cluster
}

/// A reader of so many roles.
fn start(cluster: &Cluster, roles: u32, partitions: Option<i32>) -> (Reader, Receiver<KafkaEvent>) {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..roles, names: Arc::new([]) };
    let source = Source {
        access: Access::at(&cluster.bootstrap_servers(), &Properties::default()),
        elections,
        partitions,
        only: None,
        create_topic: true,
        joins_group: false,
        is_looked_at: false,
    };
    let (sender, events) = mpsc::channel(1024);
    (Reader::start(source, 1, sender).unwrap(), events)
}

/// The first event that `wanted` makes something of.
fn await_event<T>(events: &mut Receiver<KafkaEvent>, wanted: impl Fn(KafkaEvent) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(events.blocking_recv().unwrap()) {
            return found;
        }
    }
}

fn key(event: KafkaEvent) -> Option<Key> {
    match event {
        KafkaEvent::Reading { event: ReadingEvent::Record(record), .. } => Some(record.key),
        _ => None,
    }
}

/// The router has a reading that replaces a stuck one read at once: the election's own records are to be told from others' by then.
#[test]
fn the_first_record_is_the_elections_own_although_another_partition_has_no_leader() {
    let cluster = cluster();
    cluster.partition_leader("t", 1, None).unwrap();
    for partitions in [Some(2), None] {
        let (reader, mut events) = start(&cluster, 2, partitions);
        reader.read_from(0, 0);
        if partitions.is_none() {
            // Nothing is read before it is known in which partition a role is.
            cluster.partition_leader("t", 1, Some(2)).unwrap();
        }
        assert_eq!(await_event(&mut events, key), Key::Election(0), "{partitions:?}");
    }
}
