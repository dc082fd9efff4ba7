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

/// An event that one of the threads of a client sends. The threads wait while the channel is full; the caller's thread never sends one.
#[derive(Debug)]
pub enum KafkaEvent {
    /// A record that was sent is in the log.
    Delivered {
        /// The role of the record's election, as given to [`Producer::send`](crate::producer::Producer::send).
        role: u32,
        /// The sequence number, as given to [`Producer::send`](crate::producer::Producer::send).
        seq: u64,
    },
    /// An event of a member of the consumer group. What a former member reports must not be attributed to its successor.
    Group {
        /// The member's number.
        member: u32,
        /// The event.
        event: GroupEvent,
    },
    /// The answer to `Producer::identify`.
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
        /// The role of the record's election, as given to [`Producer::send`](crate::producer::Producer::send).
        role: u32,
        /// The sequence number, as given to [`Producer::send`](crate::producer::Producer::send).
        seq: u64,
        /// The reason.
        error: String,
        /// Whether it may be in the log all the same. Otherwise Kafka has refused it for good.
        may_be_in_log: bool,
    },
    /// The topic was found, with this many partitions. Sent once by each reading of more than one role, before its other events.
    Partitions(i32),
    /// An event that the session passes on as it is.
    Process(SessionEvent),
    /// A record was read, in the order of the log. The next ones have higher offsets.
    Read {
        /// The reading's number, as it was given to [`Reader::start`](crate::reader::Reader::start).
        reading: u32,
        /// The partition.
        partition: i32,
        /// The record's offset.
        offset: i64,
        /// What it is for this process: an event of an election, or a hello in partition 0 for a process with several roles; none if it is of no
        /// concern.
        record: Option<SessionEvent>,
    },
    /// A record was read for display.
    ReadForDisplay {
        /// The reading's number.
        reading: u32,
        /// The partition.
        partition: i32,
        /// The record.
        record: LogRecord,
    },
    /// An event of the reading of a partition that concerns all its elections: [`Event::Answered`], first and every 20 s;
    /// [`Event::TopicIdentified`], if the topic is unknown; [`Event::HistoryCut`], if the next offset is out of range; [`Event::ReachedEnd`] or
    /// [`Event::Undecodable`].
    Reading {
        /// The reading's number.
        reading: u32,
        /// The partition.
        partition: i32,
        /// The event.
        event: Event,
    },
    /// The answer to `Producer::judge`.
    Topic {
        /// The time just before the request.
        asked: Time,
        /// The facts about the topic that R0 judges.
        facts: TopicFacts,
    },
}

impl From<SessionEvent> for KafkaEvent {
    fn from(event: SessionEvent) -> Self {
        Self::Process(event)
    }
}

/// An event of a member of the consumer group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GroupEvent {
    /// The group has settled: these partitions are this member's now, besides those that it holds already, and the others in use are not.
    Assigned {
        /// The added partitions that are in use.
        partitions: BTreeSet<i32>,
    },
    /// After [`Member::leave`](crate::group::Member::leave): the coordinator has removed this member, or 500 ms have passed, or waiting is
    /// useless. The caller need not wait for the member any more.
    Left,
    /// The group's coordinator has given the member this id.
    Named {
        /// The id.
        id: String,
    },
    /// The group does not take the member, which tries again. Repeated until the group has settled with it.
    Refused(Refusal),
    /// The partitions were revoked, and the revocation has been acknowledged.
    Revoked {
        /// The partitions that are in use.
        partitions: BTreeSet<i32>,
        /// The partitions were lost, not revoked: the session has expired, or the coordinator can't be reached.
        lost: bool,
    },
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
pub enum SessionEvent {
    /// Kafka refuses to append a record that was sent, or has not acknowledged it in time: one line, with Kafka's reason. librdkafka may
    /// try again; no other event follows before it gives the record up.
    AppendRefused {
        /// The line.
        error: String,
    },
    /// The time without a heartbeat after which the controller takes a broker for dead. Reported if the value could be read and is another than before,
    /// and there are other brokers.
    BrokerSession(Duration),
    /// A topic was missing, and this process created it.
    Created {
        /// Its name.
        topic: String,
        /// Replicas of each partition.
        replicas: usize,
        /// Brokers of the cluster that were up.
        brokers: usize,
    },
    /// An explanation for the log: why a question is repeated.
    Debug(String),
    /// An event of one election.
    Election {
        /// Its role.
        role: u32,
        /// The event.
        event: Event,
    },
    /// The result of a question about a key's facts, or of a fact that was sent.
    Facts {
        /// The number of the reading or of the fact.
        id: u32,
        /// The result.
        event: FactsEvent,
    },
    /// The group does not take this process's member, or does again. The member tries again; the elections go on without it.
    Group {
        /// Why it does not: one line with the group, the cause, and what to do. `None` once the group has taken the member, or the process
        /// has left the group.
        refusal: Option<String>,
    },
    /// A hello was read in partition 0, of this process or another candidate of the group; only where there are many roles.
    Hello {
        /// Where it is.
        offset: i64,
        /// Its value.
        value: Box<[u8]>,
    },
    /// A hello of this process with several roles is in the log.
    HelloDelivered,
    /// No broker answers, which is sent when that begins and when the reason changes; or one answers again.
    Outage {
        /// The last reason, with host and port if they are known; `None` once a broker answers.
        error: Option<String>,
    },
    /// Kafka or librdkafka refuses for good; or the topic must not carry a role's election (R0).
    Refused {
        /// The role, if it concerns no other.
        role: Option<u32>,
        /// One line with the cause, its value and the right value.
        error: String,
    },
    /// A warning; the process goes on.
    Warning(String),
}
