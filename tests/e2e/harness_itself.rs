//! What the other tests stand on holds.

use harness::journal::{self, Pen};
use harness::kafka::{Broker, Kafka};

#[test]
fn kafka_keeps_what_was_written() {
    let kafka = Kafka::shared();
    kafka.create_topic("harness", &[]);
    Pen::new(kafka, "harness", &[]).write("key", &[b"one", b"two"]);
    let payloads: Vec<_> = journal::read(kafka, "harness").into_iter().filter_map(|record| record.payload).collect();
    assert_eq!(payloads, [b"one", b"two"]);
}

#[test]
fn a_broker_that_was_stopped_and_started_still_has_it() {
    let mut broker = Broker::own();
    let kafka = broker.kafka();
    kafka.create_topic("kept", &[]);
    Pen::new(&kafka, "kept", &[]).write("key", &[b"one"]);
    broker.end();
    broker.begin();
    assert_eq!(journal::read(&kafka, "kept").len(), 1);
}
