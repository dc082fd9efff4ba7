//! Reads partitions of one topic without a consumer group.
//!
//! rust-rdkafka reads a partition by `assign` only, and librdkafka needs a group for that: it looks for the group's coordinator, and keeps
//! a thread and a connection for it. `rd_kafka_consume_start_queue` needs no group.
#![expect(unsafe_code, reason = "rust-rdkafka has no call for it")]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rdkafka::bindings::{
    rd_kafka_consume_start_queue, rd_kafka_consume_stop, rd_kafka_last_error, rd_kafka_queue_destroy,
    rd_kafka_queue_get_main, rd_kafka_topic_destroy, rd_kafka_topic_new,
};
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaTopic;

use crate::librdkafka::Owned;

/// A consumer of partitions of one topic.
pub(super) struct PartitionConsumer<C: ConsumerContext> {
    /// The partitions that are being read.
    reading: Mutex<BTreeSet<i32>>,
    // Declared before the client, because it must be destroyed before the client.
    topic: Owned<RDKafkaTopic>,
    consumer: BaseConsumer<C>,
}

// SAFETY: librdkafka's topics may be used from any thread, and from several at a time.
unsafe impl<C: ConsumerContext> Send for PartitionConsumer<C> {}
// SAFETY: as above; starting and stopping must not overlap, and are done under the lock.
unsafe impl<C: ConsumerContext> Sync for PartitionConsumer<C> {}

impl<C: ConsumerContext> PartitionConsumer<C> {
    /// A consumer with this configuration, which need not contain a group. It reads nothing yet.
    ///
    /// # Errors
    ///
    /// librdkafka does not accept the configuration, or the topic's name.
    pub(super) fn new(config: &ClientConfig, context: C, topic: &str) -> Result<Self, KafkaError> {
        let consumer = BaseConsumer::from_config_and_context(config, context)?;
        let invalid = || KafkaError::ClientCreation(format!("topic \"{topic}\": librdkafka does not take this name"));
        let name = CString::new(topic).map_err(|_| invalid())?;
        // SAFETY: the handle is alive as long as the consumer is; the name ends in a zero byte, and librdkafka copies it. A null pointer
        // for the topic's settings means those of the client's configuration.
        let handle = unsafe { rd_kafka_topic_new(consumer.client().native_ptr(), name.as_ptr(), ptr::null_mut()) };
        let topic = Owned::new(handle, rd_kafka_topic_destroy).map_err(|_| invalid())?;
        Ok(Self { reading: Mutex::default(), topic, consumer })
    }

    /// The consumer, for polling and for questions to the brokers.
    pub(super) const fn consumer(&self) -> &BaseConsumer<C> {
        &self.consumer
    }

    /// Reads this partition from this offset on. If it was being read already, that reading ends.
    ///
    /// # Errors
    ///
    /// librdkafka's code.
    pub(super) fn read_from(&self, partition: i32, offset: i64) -> Result<(), RDKafkaErrorCode> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop_one(&mut reading, partition);
        // SAFETY: the handle is alive as long as the consumer is.
        let queue = unsafe { rd_kafka_queue_get_main(self.consumer.client().native_ptr()) };
        let queue = Owned::new(queue, rd_kafka_queue_destroy)?;
        // SAFETY: topic and queue are alive; librdkafka keeps its own reference to the queue.
        let started = unsafe { rd_kafka_consume_start_queue(self.topic.as_ptr(), partition, offset, queue.as_ptr()) };
        if started != 0 {
            // SAFETY: the function takes no argument, and returns the error of this thread's last call.
            return Err(unsafe { rd_kafka_last_error() }.into());
        }
        reading.insert(partition);
        Ok(())
    }

    /// Stops reading. Records that were fetched and not polled are dropped. Returns the partitions that were being read.
    pub(super) fn stop(&self) -> BTreeSet<i32> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let were_read = reading.clone();
        for partition in &were_read {
            self.stop_one(&mut reading, *partition);
        }
        were_read
    }

    fn stop_one(&self, reading: &mut BTreeSet<i32>, partition: i32) {
        if reading.remove(&partition) {
            // SAFETY: the topic is alive, and its partition is being read. The call fails only if it is not.
            unsafe { rd_kafka_consume_stop(self.topic.as_ptr(), partition) };
        }
    }
}

impl<C: ConsumerContext> Drop for PartitionConsumer<C> {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rdkafka::consumer::DefaultConsumerContext;
    use rdkafka::message::Message;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// A broker with this many records in the partition `topic`/0, and a consumer of it.
    fn consumer(
        records: usize,
        group: Option<&str>,
    ) -> (MockCluster<'static, rdkafka::producer::DefaultProducerContext>, PartitionConsumer<DefaultConsumerContext>)
    {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("topic", 1, 1).unwrap();
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
        (cluster, PartitionConsumer::new(&config, DefaultConsumerContext, "topic").unwrap())
    }

    /// The offset of the next record.
    fn next(consumer: &PartitionConsumer<DefaultConsumerContext>) -> i64 {
        consumer.consumer().poll(LONG).unwrap().unwrap().offset()
    }

    #[test]
    fn it_reads_from_the_given_offset_with_and_without_a_group() {
        for group in [None, Some("group")] {
            let (_cluster, consumer) = consumer(5, group);
            consumer.read_from(0, 3).unwrap();
            assert_eq!((next(&consumer), next(&consumer)), (3, 4));
        }
    }

    /// Records that were fetched from the old offset are not delivered after the new one was set.
    #[test]
    fn reading_from_another_offset_drops_the_records_that_were_fetched() {
        let (_cluster, consumer) = consumer(5, None);
        consumer.read_from(0, 0).unwrap();
        assert_eq!(next(&consumer), 0);
        consumer.read_from(0, 4).unwrap();
        assert_eq!(next(&consumer), 4);
        assert_eq!(consumer.stop(), BTreeSet::from([0]));
        assert_eq!(consumer.stop(), BTreeSet::new());
        consumer.read_from(0, 2).unwrap();
        assert_eq!(next(&consumer), 2);
    }
}
