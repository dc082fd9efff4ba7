//! The events of a session: some concern the whole session, others one of its elections.

use std::time::Duration;

use neli_proto::candidate::Event as CandidateEvent;
use neli_proto::many_roles::ManyRoles;
use neli_proto::precedence::Standing;
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{Record, is_question};
use neli_proto::time::Time;
use neli_proto::topic::{TopicFacts, TopicIdentity};

use crate::kafka::event::FactsEvent;

/// An event of a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// Kafka refuses to append a record, or has not acknowledged it in time: one line, with Kafka's reason. The record may be sent again;
    /// there is no other event about it until it is given up.
    AppendRefused {
        /// The line.
        error: String,
    },
    /// The cluster treats a broker as dead after this time without a heartbeat. Sent if the time could be read and there are other
    /// brokers.
    BrokerSession(Duration),
    /// The topic was missing, and this process has created it.
    Created {
        /// Replicas of each partition.
        replicas: usize,
        /// Brokers of the cluster that were up.
        brokers: usize,
    },
    /// A detail for the debug log, for example that a question is asked again, and why.
    Debug(String),
    /// No broker answers. Sent when that begins and when its reason changes; [`SessionEvent::Up`] ends it.
    Down {
        /// The last reason, with host and port where they are known.
        error: String,
    },
    /// The result of a question about a key's facts, or of a fact that was sent.
    Facts {
        /// As given to [`Session::read_facts`](crate::program::Session::read_facts) or
        /// [`Session::append_fact`](crate::program::Session::append_fact).
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
    /// A hello of this process is in the log.
    HelloDelivered,
    /// Kafka or librdkafka refuses for good: one line that names the thing, the value, and what would be right.
    Refused {
        /// The line.
        error: String,
    },
    /// An event of one election.
    Role {
        /// Its role.
        role: u32,
        /// The event.
        event: RoleEvent,
    },
    /// A broker answers again.
    Up,
    /// A warning: the session goes on.
    Warning(String),
}

/// An event of one election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RoleEvent {
    /// Its partition was assigned to this process's member of the group.
    Assigned,
    /// Every record below `next` was handed over. Transaction markers at the end of the log count as handed over.
    CaughtUp {
        /// The next offset that a record can have.
        next: i64,
    },
    /// The log of its partition was cut, or the topic was created again: the reading is over.
    Cut,
    /// A record that was sent is in the log.
    Delivered {
        /// As given to [`Session::send`](crate::program::Session::send).
        seq: u64,
    },
    /// The group has settled, and its partition is assigned to another member.
    Elsewhere,
    /// Whether the group does not take this process's member.
    GroupRefuses {
        /// Kafka's words; `None` once it does.
        words: Option<String>,
    },
    /// Where the log of its partition begins and ends. The first of a reading comes before any of its records.
    Ends {
        /// Noted just before asking.
        asked: Time,
        /// The first offset that is kept.
        start: i64,
        /// The offset of the next record.
        end: i64,
    },
    /// The id of the topic with this name.
    Identified {
        /// Noted just before asking.
        asked: Time,
        /// The topic's identity, or that there is none.
        identity: TopicIdentity,
    },
    /// The group's coordinator has given this id to this process's member.
    Named {
        /// The id.
        id: String,
    },
    /// A record that was sent was not acknowledged in time, or never will be. It may be in the log nevertheless.
    NotDelivered {
        /// As given to [`Session::send`](crate::program::Session::send).
        seq: u64,
    },
    /// At each offset from `first` to `last` there is a record of another election.
    Passed {
        /// The first.
        first: i64,
        /// The last.
        last: i64,
    },
    /// A record of this election, or a hello of one of its candidates.
    Read {
        /// Where it is.
        offset: i64,
        /// Whether it is a hello, by its key.
        is_hello: bool,
        /// Its value; none for a tombstone.
        value: Option<Box<[u8]>>,
        /// When it was appended, in milliseconds since 1970, if it has a timestamp.
        written_ms: Option<u64>,
    },
    /// Its partition was revoked from this process's member, which has acknowledged that.
    Revoked {
        /// The partition was lost, not handed over in order: the session has expired, or the coordinator can't be reached.
        lost: bool,
    },
    /// The topic's settings for R0; none for the embedded broker's topic, which has no settings.
    Topic(Option<TopicFacts>),
    /// A batch at or after `offset` can't be decoded, and nothing behind it is read; repeated twice a second.
    Undecodable {
        /// The next offset that was to be handed over.
        offset: i64,
        /// librdkafka's reason.
        error: String,
    },
    /// The topic has partitions without a role, which the group assigns to members too.
    UnusedPartitions,
}

impl RoleEvent {
    /// For the spread of a process's roles, before the role's candidate gets the event. `partitions`: of the topic,
    /// once that is known.
    pub(crate) fn tell_many(&self, many: &mut ManyRoles, now: Time, role: usize, partitions: Option<i32>) {
        match self {
            Self::Assigned => many.stand(now, role, Standing::Assigned),
            Self::Cut => many.history_cut(role),
            Self::Elsewhere | Self::Revoked { lost: false } => many.stand(now, role, Standing::Elsewhere),
            Self::Ends { end, .. } => {
                if let Some(partitions) = partitions {
                    many.listens(now, role, *end, partitions.unsigned_abs());
                }
            }
            Self::Revoked { lost: true } => many.stand(now, role, Standing::Unknown),
            Self::Topic(None) => many.topic_judged(now, role),
            Self::CaughtUp { .. }
            | Self::Delivered { .. }
            | Self::GroupRefuses { .. }
            | Self::Identified { .. }
            | Self::Named { .. }
            | Self::NotDelivered { .. }
            | Self::Passed { .. }
            | Self::Read { .. }
            | Self::Topic(Some(_))
            | Self::Undecodable { .. }
            | Self::UnusedPartitions => {}
        }
    }

    /// The event for the election's candidate.
    ///
    /// # Errors
    ///
    /// Facts about the topic have to be judged first (R0).
    pub(crate) fn for_candidate(self) -> Result<CandidateEvent, Box<TopicFacts>> {
        Ok(match self {
            Self::Assigned => CandidateEvent::StandingChanged(Standing::Assigned),
            Self::CaughtUp { next } => CandidateEvent::ReachedEnd { next },
            Self::Cut => CandidateEvent::HistoryCut,
            Self::Delivered { seq } => CandidateEvent::Delivered { seq },
            Self::Elsewhere => CandidateEvent::StandingChanged(Standing::Elsewhere),
            Self::GroupRefuses { words } => CandidateEvent::GroupRefuses { words: words.map(Into::into) },
            Self::Ends { asked, start, end } => CandidateEvent::Answered { asked, start, end },
            Self::Identified { asked, identity } => CandidateEvent::TopicIdentified { asked, identity },
            Self::Named { id } => CandidateEvent::Named { id: id.into() },
            Self::NotDelivered { seq } => CandidateEvent::Undelivered { seq },
            Self::Passed { first, last } => CandidateEvent::Passed { first, last },
            Self::Read { offset, is_hello, value, written_ms } => {
                let record = value.as_deref().and_then(Record::parse);
                let process = value.as_deref().filter(|_| is_hello).and_then(ProcessHello::parse);
                if let Some(hello) = process.filter(|process| process.roles.is_some()) {
                    CandidateEvent::ReadProcessHello { offset, hello: Box::new(hello) }
                } else if is_hello && value.as_deref().is_some_and(is_question) {
                    CandidateEvent::HelloAsked { offset }
                } else if is_hello {
                    CandidateEvent::ReadOther { offset, hello: record.and_then(Record::into_hello) }
                } else {
                    CandidateEvent::Read { offset, record, written_ms }
                }
            }
            Self::Revoked { lost: false } => CandidateEvent::Revoked,
            Self::Revoked { lost: true } => CandidateEvent::StandingChanged(Standing::Unknown),
            Self::Topic(None) => CandidateEvent::TopicJudged { cut_is_harmless: false, gaps_are_markers: false },
            Self::Topic(Some(facts)) => return Err(Box::new(facts)),
            Self::Undecodable { .. } => CandidateEvent::Undecodable,
            Self::UnusedPartitions => CandidateEvent::UnusedPartitions,
        })
    }
}
