//! The events in Kafka that are reported to a candidate.
//!
//! Nothing here decides: records are bytes, and `neli-proto` decides what they mean.

use std::time::Duration;

use neli_proto::fact::Facts;
use neli_proto::time::Time;
use neli_proto::topic::{TopicFacts, TopicIdentity};

/// An event in Kafka, except those of the consumer group ([`GroupEvent`](crate::kafka::group::GroupEvent)). The threads that send it wait
/// while the channel is full; the caller's thread never sends one.
#[derive(Debug)]
pub enum KafkaEvent {
    /// Kafka refuses to append a record that was sent, or has not acknowledged it in time: one line, with Kafka's reason. librdkafka may
    /// try again; no other event follows before it gives the record up.
    AppendRefused {
        /// The line.
        error: String,
    },
    /// The time without a heartbeat after which the controller takes a broker for dead. Reported if the value could be read and there are
    /// other brokers.
    BrokerSession(Duration),
    /// The topic was missing, and this process created it.
    Created {
        /// Replicas of each partition.
        replicas: usize,
        /// Brokers of the cluster that were up.
        brokers: usize,
    },
    /// An explanation for the log: why a question is repeated.
    Debug(String),
    /// A record that was sent is in the log.
    Delivered {
        /// The role of the record's election, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        role: u32,
        /// The sequence number, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        seq: u64,
        /// The record's offset.
        offset: i64,
    },
    /// No broker answers. Sent when that begins and when the reason changes; [`KafkaEvent::Up`] ends it.
    Down {
        /// The last reason, with host and port if they are known.
        error: String,
    },
    /// A hello of this process with several roles is in the log.
    HelloDelivered,
    /// The answer to [`Producer::identify`](crate::kafka::producer::Producer::identify).
    Identified {
        /// The time just before the request.
        asked: Time,
        /// The topic that exists under the name.
        identity: TopicIdentity,
        /// The number of the topic's partitions; 0 if it is missing.
        count: i32,
        /// The partitions that the answer concerns.
        partitions: Vec<i32>,
    },
    /// A record that was sent was not acknowledged in time, or never will be.
    NotDelivered {
        /// The role of the record's election, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        role: u32,
        /// The sequence number, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        seq: u64,
        /// The reason.
        error: String,
        /// Whether it may be in the log all the same. Otherwise Kafka has refused it for good.
        may_be_in_log: bool,
    },
    /// The result of a question about a key's facts, or of a fact that was sent.
    Facts {
        /// The number of the reading or of the fact.
        id: u32,
        /// The result.
        event: FactsEvent,
    },
    /// The topic was found, with this many partitions. Sent once by each reading of more than one role, before its other events.
    Partitions(i32),
    /// A reading of the journal reports an event.
    Reading {
        /// The reading's number, as it was given to [`Reader::start`](crate::kafka::reader::Reader::start).
        reading: u32,
        /// The partition.
        partition: i32,
        /// The event.
        event: ReadingEvent,
    },
    /// Kafka or librdkafka refuses for good: one line with the cause, its value and the right value.
    Refused {
        /// The line.
        error: String,
    },
    /// The answer to [`Producer::judge`](crate::kafka::producer::Producer::judge).
    Topic {
        /// The time just before the request.
        asked: Time,
        /// The facts about the topic that R0 judges.
        facts: TopicFacts,
    },
    /// A broker answers again.
    Up,
    /// A warning; the candidate goes on.
    Warning(String),
}

/// The result of a question about a key's facts, or of a fact that was sent.
#[derive(Debug)]
pub enum FactsEvent {
    /// The fact is in the log.
    Appended,
    /// The topic was missing, and this process created it.
    Created {
        /// The number of its replicas.
        replicas: usize,
        /// The number of brokers of the cluster that were up.
        brokers: usize,
    },
    /// The fact was refused, or not acknowledged in time. It may still be in the log.
    NotAppended {
        /// The reason.
        error: String,
    },
    /// The topic's facts for the key, up to the end that was asked for.
    Read(Box<Facts>),
    /// The topic is being read, and the reading is not complete yet.
    Reading {
        /// How far the reading is.
        progress: String,
    },
    /// The settings by which the topic is judged, before it is read.
    Topic(TopicFacts),
    /// The topic can't be read now; the reading tries again.
    Unread {
        /// The reason.
        error: String,
    },
}

/// An event of the reading of a partition.
#[derive(Debug)]
pub enum ReadingEvent {
    /// Everything below `next` was handed over, trailing transaction markers included.
    CaughtUp {
        /// The next offset that a record can have.
        next: i64,
    },
    /// The history was cut, or the topic was created anew: the offset to be read is out of range, the log's end lies below a record that
    /// was read, or the topic is gone. This reading ends.
    Cut,
    /// The answer about the log's bounds. The first one of a reading comes before its records and starts listening (R1); later ones,
    /// every 20 s, date markers (L4).
    Ends {
        /// The time just before the request.
        asked: Time,
        /// The first offset that is still stored.
        start: i64,
        /// The offset of the next record.
        end: i64,
    },
    /// A record with any key, in the order of the log.
    Record(ReadRecord),
    /// A batch at or after `offset` can't be decoded (codec, checksum, size). It is not skipped: no later record is handed over. The
    /// reading is retried about twice a second, and each failure is reported.
    Undecodable {
        /// The next offset that was to be handed over.
        offset: i64,
        /// librdkafka's reason.
        error: String,
    },
}

/// A record that was read.
#[derive(Debug)]
pub struct ReadRecord {
    /// The record's offset.
    pub offset: i64,
    /// The key's owner.
    pub key: Key,
    /// The value; none for a tombstone, and for other keys unless the journal is read for display.
    pub value: Option<Box<[u8]>>,
    /// The key of a record of another election, if the journal is read for display.
    pub other_key: Option<Box<[u8]>>,
    /// When the record was appended (or written, on a topic with `CreateTime`), in milliseconds since 1970. For display only.
    pub written_ms: Option<u64>,
    /// Whether the time is the broker's: the topic has `LogAppendTime`.
    pub is_brokers_time: bool,
}

/// The owner of a record, by its Kafka key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key {
    /// A hello of any candidate of the group, in partition 0, for a process with several roles.
    AnyHello,
    /// A record of this role's election: it counts in the law.
    Election(u32),
    /// A hello of a candidate for this role; for a process without roles, that of any candidate of the group in partition 0.
    Hello(u32),
    /// Any other key.
    Other,
}
