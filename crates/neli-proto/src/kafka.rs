//! What a candidate and the clients of Kafka have to do with each other: the events that it handles, and what it requests. They are made where
//! they arise, and nothing copies them into other types on their way.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::hello::{Hello, is_question};
use crate::precedence::Assignment;
use crate::record::{Offset, Record};
use crate::time::Time;
use crate::topic::TopicIdentity;

/// Events in Kafka: in the journal, the topic and the group.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Event {
    /// The log contains `start..end`, as of `asked`, which is just before the request.
    Answered { asked: Time, start: Offset, end: Offset },
    /// The record of this candidate with this sequence number has been acknowledged.
    Delivered { seq: u64 },
    /// The group does not take this member, for a reason in Kafka's words; or does again (`None`).
    GroupRefuses { words: Option<Box<str>> },
    /// Another process with several roles sent its one hello for all of them. The record's offset is reported in the same way as those of
    /// other keys.
    HelloReceived(Box<Hello>),
    /// The partition's history was cut, or the partition was created anew.
    HistoryCut,
    /// The group's coordinator has given this member this id.
    Named { id: Box<str> },
    /// The records at the offsets from `first` to `last` have other keys. A reader for several candidates reports them to each candidate
    /// before the candidate's next event, and at the latest before an offset that is missing (L4).
    Passed { first: Offset, last: Offset },
    /// The record at `offset` has another key. It is a question that each candidate answers with a hello.
    HelloAsked { offset: Offset },
    /// The record at `offset` is a hello of this election, or of a process with many roles in the same group. A candidate of such a process gets
    /// [`HelloReceived`](Event::HelloReceived) instead.
    ReadHello { offset: Offset, hello: Box<Hello> },
    /// The record at `offset` is the election's; `None` if it can't be parsed. It was appended at `written_ms`, in milliseconds since 1970, which
    /// is only displayed; `None` without a timestamp.
    Read { offset: Offset, record: Option<Record>, written_ms: Option<u64> },
    /// Every record below `next` has been handed over, and the log ended there.
    ReachedEnd { next: Offset },
    /// The partition was revoked, not lost.
    Revoked,
    /// The group has changed the member's assignment.
    AssignmentChanged(Assignment),
    /// A broker has reported the id of the topic with the election's topic's name, asked for just after `asked`.
    TopicIdentified { asked: Time, identity: TopicIdentity },
    /// R0: the topic was checked and may carry an election.
    TopicJudged {
        /// An empty log whose head was cut is vacant.
        cut_is_harmless: bool,
        /// The topic deletes only whole segments from its start, so an offset that is missing in between is a marker (L4).
        gaps_are_markers: bool,
    },
    /// A batch can't be decoded, so no record after it can be read: `offset` was the next that was to be handed over. It is repeated as long as that
    /// is so. The reason is for display only; there is none the first time, since the answer may have been damaged on its way.
    Undecodable { offset: Offset, error: Option<Box<str>> },
    /// The topic has more partitions than roles. The group then moves partitions at each join, so a revocation shows nothing about the
    /// leader.
    UnusedPartitions,
    /// The record of this candidate with this sequence number could not be delivered. It may be in the log all the same; otherwise it never will be.
    Undelivered { seq: u64, may_be_in_log: bool },
}

/// What a candidate wants to be done in Kafka.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each variant says what is to be done")]
pub enum Request {
    /// Ask for the topic's id until there is an answer ([`Event::TopicIdentified`]).
    Identify,
    /// Join the group, if the elector is `group`.
    JoinGroup,
    /// Leave the group.
    LeaveGroup,
    /// Ask soon for the log's end ([`Event::Answered`]).
    LookForEnd,
    /// R1: start a new reader, ask it for the end offset, and drop the previous reader; make the topic be judged (R0).
    ReadAnew,
    /// Read from this offset, which is in the log.
    ReadFrom(Offset),
    /// Create a new producer, and drop the previous one.
    RenewProducer,
    /// Hand this hello to the producer.
    SayHello(Box<Hello>),
    /// Hand this record, under the election's key, to the producer. Its send time is the time of the input that caused it (R3).
    Send { record: Record },
}

impl Event {
    /// A record with the election's key.
    pub fn of_record(offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) -> Self {
        Self::Read { offset, record: value.and_then(Record::parse), written_ms }
    }

    /// A record with the key of a hello.
    pub fn of_hello(offset: Offset, value: Option<&[u8]>) -> Self {
        match value.and_then(Hello::parse) {
            Some(hello) => Self::ReadHello { offset, hello: Box::new(hello) },
            None if value.is_some_and(is_question) => Self::HelloAsked { offset },
            None => Self::Passed { first: offset, last: offset },
        }
    }
}

// ---- what a session that shows all elections has to do with Kafka ---------------------------------------------------

/// What the session is to do.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum TopicsAction {
    /// Asks now which topics there are, and does not wait until that is due.
    Ask,
    /// Reads a partition's log from an offset on. The reading's number is for [`Topics::read`](crate::observer::Topics::read).
    ReadFrom { topic: Box<str>, partition: i32, offset: Offset, reading: u32 },
    /// Reads a topic once more, beside the first reading: from the first record on that is not older than this time.
    ReadSince {
        /// The topic.
        topic: Box<str>,
        /// The time, in milliseconds since 1970.
        since_ms: u64,
        /// The offsets where the first reading began. A partition without an earlier record of that time is not read.
        before: BTreeMap<i32, Offset>,
        /// The number of the reading, for [`Topics::past_begins`](crate::observer::Topics::past_begins).
        reading: u32,
    },
    /// Ends the reading that [`ReadSince`](Self::ReadSince) began.
    StopPast,
    /// Stops reading a topic, in both readings.
    Stop { topic: Box<str> },
}

/// What brokers say of a topic's logs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogsAnswer {
    /// Which topic has the name.
    pub identity: TopicIdentity,
    /// Each partition's log; or why the topic can't be read.
    pub logs: Result<BTreeMap<i32, LogAnswer>, Box<str>>,
}

/// A reading begins no later than this before the present. Within 20 s each leader writes a heartbeat, whatever its lease, and within 30 s each
/// standby a hello, so both are found; the rest is for a clock that differs from the brokers'.
pub const RECENT: Duration = Duration::from_secs(5 * 60);

/// A partition's log, or why nothing is known of it.
pub type LogAnswer = Result<LogRange, Box<str>>;

/// The offsets of a partition's log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogRange {
    /// The first offset.
    pub start: Offset,
    /// That of the first record that is younger than [`RECENT`]; `end` if there is none.
    pub recent: Offset,
    /// The next offset.
    pub end: Offset,
}
