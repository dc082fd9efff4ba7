//! The records in the topic.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use harness::kafka::Kafka;
use harness::wait;
use outbox::ID_HEADER;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message};
use rdkafka::{Offset, TopicPartitionList};

/// The number of partitions of the topic: order holds only within a key.
pub const PARTITIONS: i32 = 3;

/// All records, in the order of each partition: key and id of each row.
pub fn read(kafka: &Kafka, topic: &str) -> Vec<(String, i64)> {
    let mut client = kafka.client();
    client.set("group.id", "outbox-test").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
    let reader: BaseConsumer = client.create().expect("a reader");
    let mut from = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        from.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    reader.assign(&from).expect("assigned");
    let (mut records, mut read_to_end) = (Vec::new(), BTreeSet::new());
    let end = wait::after(wait::PATIENCE);
    while read_to_end.len() < usize::try_from(PARTITIONS).expect("a few") {
        assert!(wait::now() < end, "{topic} was not read to its end ({} records)", records.len());
        match reader.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let key = message.key_view::<str>().expect("a key").expect("a text").to_owned();
                let header = message.headers().expect("headers").get_as::<str>(0).expect("a text");
                assert_eq!(header.key, ID_HEADER);
                records.push((key, header.value.expect("an id").parse().expect("a number")));
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                read_to_end.insert(partition);
            }
            // The client tries again by itself.
            Some(Err(_)) | None => {}
        }
    }
    records
}

/// The rows that a reader sees which skips ids at or below the highest of their key. It misses none, since it has seen each row that it
/// skips.
pub fn seen_once(records: &[(String, i64)]) -> BTreeSet<i64> {
    let mut highest = HashMap::new();
    let mut seen = BTreeSet::new();
    for (key, id) in records {
        let highest = highest.entry(key).or_insert(-1);
        if id > highest {
            *highest = *id;
            seen.insert(*id);
        } else {
            assert!(seen.contains(id), "row {id} of {key} came after row {highest}");
        }
    }
    seen
}
