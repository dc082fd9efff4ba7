//! The events of Kafka: those that a client's threads send to their session, and those that a session reports to its process.
//!
//! An event of an election is the candidate's from the place where it is parsed.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::fact::FactsEvent;
use neli_proto::kafka::Event;
use neli_proto::record::LogRecord;
use neli_proto::time::Time;
use neli_proto::topic::{TopicFacts, TopicIdentity};

/// An event that one of the threads of a client sends. The threads wait while the channel is full; the caller's thread never sends one. A `reading`
/// has the number that was given to [`Reader::start`](crate::reader::Reader::start); `role` and `seq` are those that were given to
/// [`Producer::send`](crate::producer::Producer::send).
#[derive(Debug)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum KafkaEvent {
    /// A record that was sent is in the log.
    Delivered { role: u32, seq: u64 },
    /// An event of a member of the consumer group, by the member's number: what a former member reports must not be attributed to its successor.
    Group { member: u32, event: GroupEvent },
    /// The answer to `Producer::identify`, which asked just after `asked`: the topic that exists under the name, with its number of partitions (0 if
    /// it is missing), and the partitions that the answer concerns.
    Identified { asked: Time, identity: TopicIdentity, count: i32, partitions: Vec<i32> },
    /// A record that was sent was not acknowledged in time, or never will be. `may_be_in_log`: all the same; otherwise Kafka has refused it for good.
    NotDelivered { role: u32, seq: u64, error: String, may_be_in_log: bool },
    /// The topic was found, with this many partitions. Sent once by each reading of more than one role, before its other events.
    Partitions(i32),
    /// An event that the session passes on as it is.
    Process(SessionEvent),
    /// A record was read, in the order of the log: the next ones have higher offsets. What it is for this process: an event of an election, or a
    /// hello in partition 0 for a process with several roles; none if it is of no concern.
    Read { reading: u32, partition: i32, offset: i64, record: Option<SessionEvent> },
    /// A record was read for display.
    ReadForDisplay { reading: u32, partition: i32, record: LogRecord },
    /// An event of the reading of a partition that concerns all its elections: [`Event::Answered`], first and every 20 s;
    /// [`Event::TopicIdentified`], if the topic is unknown; [`Event::HistoryCut`], if the next offset is out of range; [`Event::ReachedEnd`] or
    /// [`Event::Undecodable`].
    Reading { reading: u32, partition: i32, event: Event },
    /// The answer to `Producer::judge`, which asked just after `asked`: the facts about the topic that R0 judges.
    Topic { asked: Time, facts: TopicFacts },
}

impl From<SessionEvent> for KafkaEvent {
    fn from(event: SessionEvent) -> Self {
        Self::Process(event)
    }
}

/// An event of a member of the consumer group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GroupEvent {
    /// The group has settled: these partitions, of those in use, are this member's now, besides those that it holds already; the others in use are
    /// not.
    Assigned { partitions: BTreeSet<i32> },
    /// After [`Member::leave`](crate::group::Member::leave): the coordinator has removed this member, or 500 ms have passed, or waiting is
    /// useless. The caller need not wait for the member any more.
    Left,
    /// The group's coordinator has given the member this id.
    Named { id: String },
    /// The group does not take the member, which tries again. Repeated until the group has settled with it.
    Refused(Refusal),
    /// These partitions, of those in use, were revoked, and the revocation has been acknowledged. `lost`: they were lost, not revoked: the session
    /// has expired, or the coordinator can't be reached.
    Revoked { partitions: BTreeSet<i32>, lost: bool },
    /// The coordinator has not answered the member for [long](crate::questions::REPLACED_AFTER): another member is to join. Repeated after each such
    /// time.
    Unanswered,
    /// The topic has partitions besides those in use, and the group also assigns these to its members. Each member reports this once,
    /// before it holds any of them.
    UnusedPartitions,
}

/// Why the group does not take a member.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// Kafka's words, in a few of them.
    pub words: String,
    /// One line: the group, the cause, and what to do.
    pub line: String,
}

/// An event that a session reports to its process.
#[derive(Debug)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum SessionEvent {
    /// Kafka refuses to append a record that was sent, or has not acknowledged it in time: one line, with Kafka's reason. librdkafka may
    /// try again; no other event follows before it gives the record up.
    AppendRefused { error: String },
    /// The time without a heartbeat after which the controller takes a broker for dead. Reported if the value could be read and is new, and there are
    /// other brokers.
    BrokerSession(Duration),
    /// A topic was missing, and this process created it, with so many replicas of each partition, while so many brokers of the cluster were up.
    Created { topic: String, replicas: usize, brokers: usize },
    /// An explanation for the log: why a question is repeated.
    Debug(String),
    /// An event of one election, which has this role.
    Election { role: u32, event: Event },
    /// The result of the reading of a key's facts that has this number, or of the fact that was sent with it.
    Facts { id: u32, event: FactsEvent },
    /// The group does not take this process's member, by this line with the group, the cause, and what to do; the member tries again, and the
    /// elections go on without it. `None` once the group has taken the member, or the process has left the group.
    Group { refusal: Option<String> },
    /// A hello was read in partition 0, of this process or another candidate of the group; only where there are many roles.
    Hello { offset: i64, value: Box<[u8]> },
    /// A hello of this process with several roles is in the log.
    HelloDelivered,
    /// No broker answers, for this last reason, with host and port if they are known: sent when that begins and when the reason changes. `None` once
    /// one answers again.
    Outage { error: Option<String> },
    /// Kafka or librdkafka refuses for good; or the topic must not carry a role's election (R0). The role, if it concerns no other; and one line with
    /// the cause, its value and the right value.
    Refused { role: Option<u32>, error: String },
    /// A warning; the process goes on.
    Warning(String),
}
