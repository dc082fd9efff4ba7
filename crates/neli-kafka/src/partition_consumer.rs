//! Reads partitions of topics without a consumer group.
//!
//! rust-rdkafka reads a partition by `assign` only, and librdkafka needs a group for that: it looks for the group's coordinator, and keeps
//! a thread and a connection for it. `rd_kafka_consume_start_queue` needs no group.
#![expect(unsafe_code, reason = "rust-rdkafka has no call for it")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex};

use rdkafka::bindings as c;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaTopic;

use crate::access::Access;
use crate::context::KafkaContext;
use crate::librdkafka::Owned;
use crate::threads::locked;

/// A consumer of partitions of topics.
pub(super) struct PartitionConsumer {
    /// The topics, by name. Declared before the client, because they must be destroyed before the client.
    topics: Mutex<BTreeMap<String, Topic>>,
    consumer: Arc<BaseConsumer<KafkaContext>>,
}

/// A topic of the client.
struct Topic {
    handle: Owned<RDKafkaTopic>,
    /// The partitions that are being read.
    reading: BTreeSet<i32>,
}

// SAFETY: librdkafka's topics may be used from any thread, and from several at a time.
unsafe impl Send for PartitionConsumer {}
// SAFETY: as above; starting and stopping must not overlap, and are done under the lock.
unsafe impl Sync for PartitionConsumer {}

impl PartitionConsumer {
    /// A consumer with this configuration, which need not contain a group. It reads nothing yet. As soon as it connects, it asks for the leaders
    /// of this `topic`; others may be named later.
    ///
    /// # Errors
    ///
    /// librdkafka does not accept the configuration, or the topic's name.
    pub(super) fn new(config: &ClientConfig, access: &Access, topic: Option<&str>) -> Result<Self, KafkaError> {
        let consumer = BaseConsumer::from_config_and_context(config, KafkaContext::new(access))?;
        let consumer = Self { topics: Mutex::default(), consumer: Arc::new(consumer) };
        if let Some(topic) = topic {
            let invalid =
                |_| KafkaError::ClientCreation(format!("topic \"{topic}\": librdkafka does not take this name"));
            let handle = consumer.handle(topic).map_err(invalid)?;
            locked(&consumer.topics).insert(topic.to_owned(), handle);
        }
        Ok(consumer)
    }

    fn handle(&self, topic: &str) -> Result<Topic, RDKafkaErrorCode> {
        let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
        // SAFETY: the handle is alive as long as the consumer is; the name ends in a zero byte, and librdkafka copies it. A null pointer
        // for the topic's settings means those of the client's configuration.
        let handle =
            unsafe { c::rd_kafka_topic_new(self.consumer.client().native_ptr(), name.as_ptr(), ptr::null_mut()) };
        let handle = Owned::new(handle, c::rd_kafka_topic_destroy)?;
        Ok(Topic { handle, reading: BTreeSet::new() })
    }

    /// The consumer, for polling and for questions to the brokers.
    pub(super) const fn consumer(&self) -> &Arc<BaseConsumer<KafkaContext>> {
        &self.consumer
    }

    /// The consumer's context.
    pub(super) fn context(&self) -> &KafkaContext {
        self.consumer.context()
    }

    /// Reads this partition from this offset on. If it was being read already, that reading ends.
    ///
    /// # Errors
    ///
    /// librdkafka's code; or it does not take the topic's name.
    pub(super) fn read_from(&self, topic: &str, partition: i32, offset: i64) -> Result<(), RDKafkaErrorCode> {
        let mut topics = locked(&self.topics);
        if !topics.contains_key(topic) {
            topics.insert(topic.to_owned(), self.handle(topic)?);
        }
        let topic = topics.get_mut(topic).ok_or(RDKafkaErrorCode::Fail)?;
        topic.stop_one(partition);
        // SAFETY: the handle is alive as long as the consumer is.
        let queue = unsafe { c::rd_kafka_queue_get_main(self.consumer.client().native_ptr()) };
        let queue = Owned::new(queue, c::rd_kafka_queue_destroy)?;
        // SAFETY: topic and queue are alive; librdkafka keeps its own reference to the queue.
        let started =
            unsafe { c::rd_kafka_consume_start_queue(topic.handle.as_ptr(), partition, offset, queue.as_ptr()) };
        if started != 0 {
            // SAFETY: the function takes no argument, and returns the error of this thread's last call.
            return Err(unsafe { c::rd_kafka_last_error() }.into());
        }
        topic.reading.insert(partition);
        Ok(())
    }

    /// Stops reading. Records that were fetched and not polled are dropped. Returns the partitions that were being read.
    pub(super) fn stop(&self) -> BTreeSet<i32> {
        locked(&self.topics).values_mut().flat_map(Topic::stop).collect()
    }

    /// Stops reading a topic, and forgets it.
    pub(super) fn stop_topic(&self, topic: &str) {
        // It is forgotten, or librdkafka would ask for its leaders for ever.
        drop(locked(&self.topics).remove(topic));
    }
}

impl Topic {
    fn stop(&mut self) -> BTreeSet<i32> {
        let were_read = self.reading.clone();
        for partition in &were_read {
            self.stop_one(*partition);
        }
        were_read
    }

    fn stop_one(&mut self, partition: i32) {
        if self.reading.remove(&partition) {
            // SAFETY: the topic is alive, and its partition is being read. The call fails only if it is not.
            unsafe { c::rd_kafka_consume_stop(self.handle.as_ptr(), partition) };
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rdkafka::message::Message;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    use super::*;
    use crate::election::Properties;

    const LONG: Duration = Duration::from_secs(10);

    /// A broker with this many records in the partition `topic`/0, and a consumer of it.
    fn consumer(
        records: usize,
        group: Option<&str>,
    ) -> (MockCluster<'static, rdkafka::producer::DefaultProducerContext>, PartitionConsumer) {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("topic", 1, 1).unwrap();
        let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers()).set("auto.offset.reset", "error");
        let producer: BaseProducer = config.create().unwrap();
        for record in 0..records {
            let value = record.to_string();
            producer.send(BaseRecord::<(), str>::to("topic").partition(0).payload(&value)).unwrap();
        }
        producer.flush(LONG).unwrap();
        if let Some(group) = group {
            config.set("group.id", group);
        }
        (cluster, PartitionConsumer::new(&config, &access, Some("topic")).unwrap())
    }

    /// The offset of the next record.
    fn next(consumer: &PartitionConsumer) -> i64 {
        consumer.consumer().poll(LONG).unwrap().unwrap().offset()
    }

    #[test]
    fn it_reads_from_the_given_offset_with_and_without_a_group() {
        for group in [None, Some("group")] {
            let (_cluster, consumer) = consumer(5, group);
            consumer.read_from("topic", 0, 3).unwrap();
            assert_eq!((next(&consumer), next(&consumer)), (3, 4));
        }
    }

    /// Records that were fetched from the old offset are not delivered after the new one was set.
    #[test]
    fn reading_from_another_offset_drops_the_records_that_were_fetched() {
        let (_cluster, consumer) = consumer(5, None);
        consumer.read_from("topic", 0, 0).unwrap();
        assert_eq!(next(&consumer), 0);
        consumer.read_from("topic", 0, 4).unwrap();
        assert_eq!(next(&consumer), 4);
        assert_eq!(consumer.stop(), BTreeSet::from([0]));
        assert_eq!(consumer.stop(), BTreeSet::new());
        consumer.read_from("topic", 0, 2).unwrap();
        assert_eq!(next(&consumer), 2);
    }
}
