//! What happens in Kafka, as it is reported to a candidate.
//!
//! Nothing here decides: records are bytes, and `neli-proto` decides what they mean.

use std::time::Duration;

use neli_proto::fact::Facts;
use neli_proto::time::Time;
use neli_proto::topic::{TopicFacts, TopicIdentity};

use crate::kafka::embedded::FoundBroker;

/// What happened in Kafka, but for what the consumer group reports ([`GroupEvent`](crate::kafka::group::GroupEvent)). Sent by
/// threads that wait while the channel is full, never by the caller's.
#[derive(Debug)]
pub enum KafkaEvent {
    /// Kafka refuses to append a record that was sent, or has not acknowledged it in time: one line, with Kafka's reason. It may be
    /// tried again by librdkafka, without another event until it is given up.
    AppendRefused {
        /// That line.
        error: String,
    },
    /// A broker is taken for dead after this time without a heartbeat, if that could be read and there are other
    /// brokers.
    BrokerSession(Duration),
    /// The topic was missing, and was created from here.
    Created {
        /// Replicas of each partition.
        replicas: usize,
        /// Brokers of the cluster that were up.
        brokers: usize,
    },
    /// Something that explains what is seen elsewhere: a question that is asked again, and why.
    Debug(String),
    /// A record that was sent is in the log.
    Delivered {
        /// Of which role's election, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        role: u32,
        /// As given to [`Producer::send`](crate::kafka::producer::Producer::send).
        seq: u64,
        /// Where it is.
        offset: i64,
    },
    /// No broker answers. Sent when that begins and when the trouble is another one; [`KafkaEvent::Up`] ends it.
    Down {
        /// The last trouble, with host and port where they are known.
        error: String,
    },
    /// A hello of this process with many roles is in the log.
    HelloDelivered,
    /// The answer to [`Producer::identify`](crate::kafka::producer::Producer::identify).
    Identified {
        /// Noted just before asking.
        asked: Time,
        /// Which topic stands under the name.
        identity: TopicIdentity,
        /// How many partitions that topic has; 0 where it is missing.
        count: i32,
        /// The partitions that the refusal concerns.
        partitions: Vec<i32>,
    },
    /// The embedded broker has died, and another is running at another address: the history starts anew. Readers,
    /// producers and group members start again there.
    Moved(FoundBroker),
    /// A record that was sent was not acknowledged in time, or never will be. It may be in the log all the same.
    NotDelivered {
        /// Of which role's election, as given to [`Producer::send`](crate::kafka::producer::Producer::send).
        role: u32,
        /// As given to [`Producer::send`](crate::kafka::producer::Producer::send).
        seq: u64,
        /// Why.
        error: String,
    },
    /// What has come of a question about a key's facts, or of a fact that was sent.
    Facts {
        /// The number of the reading, or of the fact.
        id: u32,
        /// What.
        event: FactsEvent,
    },
    /// The topic was found, with this many partitions. Sent once by each reading of more than one role, before any
    /// other event of it.
    Partitions(i32),
    /// One of the readings of the journal has come to something.
    Reading {
        /// The reading's number, as it was given to [`Reader::start`](crate::kafka::reader::Reader::start).
        reading: u32,
        /// Which partition's.
        partition: i32,
        /// What.
        event: ReadingEvent,
    },
    /// Kafka, or librdkafka, refuses for good: one line that names the thing, the value, and what would be right.
    Refused {
        /// That line.
        error: String,
    },
    /// The answer to [`Producer::judge`](crate::kafka::producer::Producer::judge).
    Topic {
        /// Noted just before asking.
        asked: Time,
        /// What R0 judges.
        facts: TopicFacts,
    },
    /// A broker answers again.
    Up,
    /// Something odd that stops nothing.
    Warning(String),
}

/// What has come of a question about a key's facts, or of a fact that was sent.
#[derive(Debug)]
pub enum FactsEvent {
    /// The fact is in the log.
    Appended,
    /// The topic was missing, and was made.
    Created {
        /// How many replicas it has.
        replicas: usize,
        /// How many brokers of the cluster were up.
        brokers: usize,
    },
    /// The fact was refused, or not acknowledged in time. It may be in the log all the same.
    NotAppended {
        /// Why.
        error: String,
    },
    /// What the topic holds for the key, up to the end that was asked for.
    Read(Box<Facts>),
    /// The topic is being read, and that takes a while.
    Reading {
        /// How far it is.
        progress: String,
    },
    /// What the topic is judged by, before it is read.
    Topic(TopicFacts),
    /// The topic can't be read yet, and is tried again.
    Unread {
        /// Why.
        error: String,
    },
}

/// What a reading of a partition has come to.
#[derive(Debug)]
pub enum ReadingEvent {
    /// Everything below `next` was handed over, trailing transaction markers included.
    CaughtUp {
        /// The next offset that a record can have.
        next: i64,
    },
    /// The history is cut or made anew: the offset to be read is out of range, the end lies below what was read, or the
    /// topic is gone. This reading reads no more.
    Cut,
    /// The answer to "where does the log begin and end?". The first of a reading comes before any of its records, and
    /// starts listening (R1); later ones, every 20 s, date markers (L4).
    Ends {
        /// Noted just before asking.
        asked: Time,
        /// The first offset that is kept.
        start: i64,
        /// The offset of the next record.
        end: i64,
    },
    /// A record, whatever its key, in the order of the log.
    Record(ReadRecord),
    /// A batch at or after `offset` can't be decoded (codec, checksum, size). It is not skipped: nothing after it is
    /// handed over, and it is tried again, with one of these each time, about twice a second.
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
    /// Where it is.
    pub offset: i64,
    /// Whose it is.
    pub key: Key,
    /// Its value; none for a tombstone, and for other keys, unless the journal is read to be looked at.
    pub value: Option<Box<[u8]>>,
    /// The key of a record of another election, where the journal is read to be looked at.
    pub other_key: Option<Box<[u8]>>,
    /// When it was appended (or written, on a topic with `CreateTime`), in milliseconds since 1970. For display only.
    pub written_ms: Option<u64>,
    /// That time is by the broker's clock: the topic has `LogAppendTime`.
    pub is_brokers_time: bool,
}

/// Whose a record is, by its Kafka key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key {
    /// A hello of any candidate of the group, in partition 0, to a process with many roles.
    AnyHello,
    /// The election's of this role: it counts in the law.
    Election(u32),
    /// A hello of one of the candidates for this role.
    Hello(u32),
    /// Anything else.
    Other,
}
