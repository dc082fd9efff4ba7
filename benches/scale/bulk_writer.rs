//! Writes a large number of records from one producer in the form in which candidates write them.

use harness::kafka::Kafka;
use harness::wait;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use std::time::Duration;

/// Writes into partition 0 of a topic, in order.
pub(crate) struct BulkWriter {
    producer: BaseProducer,
    topic: String,
}

impl BulkWriter {
    /// A writer whose records are stored like those of many candidates: each in its own batch.
    pub(crate) fn of_many(kafka: &Kafka, topic: &str) -> Self {
        Self::new(kafka, topic, &[("batch.num.messages", "1"), ("linger.ms", "0")])
    }

    /// A writer with the highest throughput.
    pub(crate) fn of_history(kafka: &Kafka, topic: &str) -> Self {
        // Offsets are computed in advance, so no record may be lost, duplicated or reordered.
        let bulk = [("batch.size", "900000"), ("batch.num.messages", "5000"), ("linger.ms", "20")];
        Self::new(kafka, topic, &[&bulk[..], &[("enable.idempotence", "true")]].concat())
    }

    fn new(kafka: &Kafka, topic: &str, properties: &[(&str, &str)]) -> Self {
        let mut client = kafka.client();
        for (key, value) in properties {
            client.set(*key, *value);
        }
        Self { producer: client.create().expect("a producer"), topic: topic.to_owned() }
    }

    /// Passes a record to the producer, waiting while the queue is full.
    pub(crate) fn write(&self, key: &str, payload: &str) {
        self.send(BaseRecord::to(&self.topic).partition(0).key(key).payload(payload));
    }

    /// The same with a timestamp, in milliseconds since 1970.
    pub(crate) fn write_at(&self, ms: i64, key: &str, payload: &str) {
        self.send(BaseRecord::to(&self.topic).partition(0).key(key).payload(payload).timestamp(ms));
    }

    fn send(&self, mut record: BaseRecord<'_, str, str>) {
        while let Err((error, back)) = self.producer.send(record) {
            let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            assert_eq!(error, full, "the producer takes it");
            self.producer.poll(Duration::from_millis(10));
            record = back;
        }
    }

    /// Handles delivery reports.
    pub(crate) fn poll(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// Waits until all records are stored.
    pub(crate) fn flush(&self) {
        self.producer.flush(wait::PATIENCE).expect("the broker takes it");
    }
}

/// The writer's identity: a candidate that does not exist.
pub(crate) struct Author {
    member: String,
    name: String,
}

impl Author {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            member: format!("{:032x}", 0x5ca1_ab1e_u128 * (number as u128 + 1)),
            name: format!("host-{number}:4711"),
        }
    }

    pub(crate) fn claim(&self, seq: i64, after: i64) -> String {
        let Self { member, name } = self;
        format!(
            r#"{{"v":1,"member":"{member}","name":"{name}","seq":{seq},"kind":"claim","after":{after},"lease_ms":5000}}"#
        )
    }

    pub(crate) fn beat(&self, seq: i64, term: i64, seen: i64) -> String {
        let Self { member, name } = self;
        format!(
            r#"{{"v":1,"member":"{member}","name":"{name}","seq":{seq},"kind":"beat","term":{term},"seen":{seen},"lease_ms":5000,"state":"running","pid":4712,"attempt":1,"since_ms":{}}}"#,
            seq * 1000
        )
    }

    pub(crate) fn hello(&self) -> String {
        let Self { member, name } = self;
        format!(
            r#"{{"v":1,"member":"{member}","name":"{name}","seq":1,"kind":"hello","host":"{name}","pid":4711,"version":"0.1.0","elector":"log"}}"#
        )
    }

    pub(crate) fn release(&self, seq: i64, term: i64, seen: i64) -> String {
        let Self { member, name } = self;
        format!(
            r#"{{"v":1,"member":"{member}","name":"{name}","seq":{seq},"kind":"release","term":{term},"seen":{seen},"why":"exited","exit":0}}"#
        )
    }
}
