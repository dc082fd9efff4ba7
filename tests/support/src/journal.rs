//! Records that a test writes itself, as another program or a forger would; and reading the raw log without the law.

use std::convert::Infallible;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::kafka::Kafka;
use crate::wait;

/// Writes arbitrary records into partition 0 of a topic.
pub struct Pen {
    producer: BaseProducer,
    topic: String,
}

/// A record that is written again and again, until this is dropped: such as the heartbeat of a leader that a test has made up, which is shown as
/// silent after three seconds without one.
pub struct RepeatedRecord {
    /// The thread ends with it.
    stop: Sender<Infallible>,
    longest_write: JoinHandle<Duration>,
}

impl RepeatedRecord {
    /// Writes this record now and several times a second.
    #[must_use]
    pub fn start(pen: Pen, key: String, payload: String) -> Self {
        let (stop, stopped) = channel();
        pen.write(&key, &[payload.as_bytes()]);
        let longest_write = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while stopped.recv_timeout(Duration::from_millis(300)) == Err(RecvTimeoutError::Timeout) {
                let before = wait::now();
                pen.write(&key, &[payload.as_bytes()]);
                longest = longest.max(Duration::from_nanos(wait::now() - before));
            }
            longest
        });
        Self { stop, longest_write }
    }

    /// Ends it. Returns the longest time from a write to Kafka's acknowledgement; one beyond [`wait::PATIENCE`] has ended the thread.
    #[must_use]
    pub fn longest_write(self) -> Duration {
        drop(self.stop);
        self.longest_write.join().unwrap_or(Duration::MAX)
    }
}

/// A record as it is stored in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Raw {
    /// The offset.
    pub offset: i64,
    /// Its key; empty if it has none.
    pub key: Vec<u8>,
    /// Its payload; `None` is a tombstone.
    pub payload: Option<Vec<u8>>,
    /// The broker's append time in milliseconds since 1970; 0 if it is unknown.
    pub written_ms: u64,
}

impl Pen {
    /// A pen whose producer has these properties, such as `compression.type` or `transactional.id`.
    #[must_use]
    pub fn new(kafka: &Kafka, topic: &str, properties: &[(&str, &str)]) -> Self {
        let mut client = kafka.client();
        for (key, value) in properties {
            client.set(*key, *value);
        }
        Self { producer: client.create().expect("a producer"), topic: topic.to_owned() }
    }

    /// Writes records, in one batch if the producer can, and waits until they are stored.
    pub fn write(&self, key: &str, payloads: &[&[u8]]) {
        for payload in payloads {
            self.put(BaseRecord::to(&self.topic).partition(0).key(key).payload(*payload));
        }
        self.producer.flush(wait::PATIENCE).expect("the broker takes it");
    }

    /// Writes records whose timestamps are this many seconds ahead of the clock. A topic with `CreateTime` keeps them.
    pub fn write_ahead(&self, key: &str, payloads: &[&[u8]], seconds: i64) {
        let ms = wait::wall_ms() + seconds * 1_000;
        for payload in payloads {
            self.put(BaseRecord::to(&self.topic).partition(0).key(key).payload(*payload).timestamp(ms));
        }
        self.producer.flush(wait::PATIENCE).expect("the broker takes it");
    }

    /// Writes a record; the broker may refuse it.
    pub fn try_write(&self, key: &str, payload: &[u8]) {
        self.put(BaseRecord::to(&self.topic).partition(0).key(key).payload(payload));
        // The record is stored or refused; in both cases no record is in flight after the flush.
        self.producer.flush(wait::PATIENCE).expect("the broker answers");
    }

    /// Writes a record without a payload.
    pub fn write_tombstone(&self, key: &str) {
        self.put(BaseRecord::<str, [u8]>::to(&self.topic).partition(0).key(key));
        self.producer.flush(wait::PATIENCE).expect("the broker takes it");
    }

    /// Writes a record without a key.
    pub fn write_keyless(&self, payload: &[u8]) {
        self.put(BaseRecord::<str, [u8]>::to(&self.topic).partition(0).payload(payload));
        self.producer.flush(wait::PATIENCE).expect("the broker takes it");
    }

    /// Writes claims of the member `other`, of which one takes effect over a leader's, unless ten records or more come before them: each allows
    /// for another number of records that were written since the end of the log was asked for.
    pub fn supersede(&self, key: &str) {
        let end = || self.producer.client().fetch_watermarks(&self.topic, 0, wait::PATIENCE).ok();
        let last = wait::until("where the log ends", end).1 - 1;
        let claims: Vec<String> = (0..10)
            .map(|come| {
                // The claim has the offset last + 1 + 2 * come if so many have come.
                let after = last + 2 * come;
                format!(r#"{{"v":1,"kind":"claim","member":"other","name":"other","seq":1,"after":{after},"lease_ms":20000}}"#)
            })
            .collect();
        self.write(key, &claims.iter().map(String::as_bytes).collect::<Vec<_>>());
    }

    /// Begins a transaction; the producer must have a `transactional.id`.
    pub fn begin(&self) {
        self.producer.init_transactions(wait::PATIENCE).expect("the broker knows transactions");
        self.producer.begin_transaction().expect("begun");
    }

    /// Aborts it.
    pub fn abort(&self) {
        self.producer.abort_transaction(wait::PATIENCE).expect("aborted");
    }

    fn put(&self, record: BaseRecord<'_, str, [u8]>) {
        self.producer.send(record).map_err(|(error, _)| error).expect("the queue takes it");
    }
}

/// The offset after the last record of partition 0. If the topic is new, waits until the asked broker knows the partition.
#[must_use]
pub fn end(kafka: &Kafka, topic: &str) -> i64 {
    let reader: BaseConsumer = kafka.client().create().expect("a reader");
    wait::until("where the log ends", || reader.fetch_watermarks(topic, 0, wait::PATIENCE).ok()).1
}

/// All records that partition 0 contains now; other processes may continue to write.
#[must_use]
pub fn read(kafka: &Kafka, topic: &str) -> Vec<Raw> {
    let last = end(kafka, topic) - 1;
    let mut client = kafka.client();
    client.set("group.id", "harness").set("enable.auto.commit", "false").set("isolation.level", "read_uncommitted");
    client.set("enable.partition.eof", "true");
    let reader: BaseConsumer = client.create().expect("a reader");
    let mut from = TopicPartitionList::new();
    from.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    reader.assign(&from).expect("assigned");
    let (mut records, mut trouble) = (Vec::new(), None);
    let end = wait::after(wait::PATIENCE);
    while wait::now() < end {
        match reader.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                records.push(Raw {
                    offset: message.offset(),
                    key: message.key().unwrap_or_default().to_owned(),
                    payload: message.payload().map(<[u8]>::to_owned),
                    written_ms: message.timestamp().to_millis().and_then(|ms| ms.try_into().ok()).unwrap_or_default(),
                });
                if message.offset() >= last {
                    return records;
                }
            }
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => return records,
            // librdkafka retries by itself.
            Some(Err(error)) => trouble = Some(error),
        }
    }
    panic!("{topic} was not read to its end ({} records): {trouble:?}", records.len());
}
