//! What happens in an election, as events.

use std::time::Instant;

use neli_proto::candidate::{Milestone, StandbyReason};
use neli_proto::node::{self, Note};
use neli_proto::{candidate, supervisor};

use crate::clock;
use crate::reason::Reason;
use crate::wording;

/// Who leads, as far as is known.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
/// # let lead = election.lead().await?;
/// if let Some(leader) = election.leader() {
///     let name = leader.name.as_deref().unwrap_or("somebody");
///     println!("{name} leads in term {}{}", leader.term, if leader.is_self { ", here" } else { "" });
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Leader {
    /// How it is called: what it was given by [`Builder::name`](crate::Builder::name), or `neli-run --name`. An address, for example, to
    /// which requests are routed. `None` where the records that were read do not tell.
    pub name: Option<String>,
    /// The term: the fencing token of its lease.
    pub term: i64,
    /// It is this candidate.
    pub is_self: bool,
    /// Since when this process knows that it leads, in this term: its claim was read then. A process that has started later has read that
    /// then, too. `None` where it is not known.
    pub since: Option<Instant>,
}

impl Leader {
    /// The leader as a candidate knows it, where `known` is what was known before.
    pub(crate) fn of(leader: node::Leader, known: Option<&Self>) -> Self {
        let before = known.filter(|known| known.term == leader.term).and_then(|known| known.since);
        let since = before.or_else(|| leader.since.map(clock::instant_of));
        Self { name: leader.name.map(Into::into), term: leader.term, is_self: leader.is_self, since }
    }
}

/// What has happened to a candidate, in the order in which it happened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
/// # let mut events = election.events();
/// # drop(election.lead().await?);
/// # while let Some(event) = events.next().await {
/// match event {
///     neli::Event::Acquired { term } => println!("leading in term {term}"),
///     neli::Event::Standby { leader: Some(leader) } => println!("{leader} leads"),
///     neli::Event::Warning { message } => eprintln!("{message}"),
/// #   neli::Event::Released { .. } => break,
///     _ => {}
/// }
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// It leads: [`Election::lead`](crate::Election::lead) gives the lead.
    Acquired {
        /// The term.
        term: i64,
    },
    /// The lease has run out, or another has claimed the lead, and nothing runs under it any more. Each term ends with this or with
    /// [`Released`](Self::Released), unless a task that never ends ends the candidate ([`Error::Blocked`](crate::Error::Blocked)).
    Fenced {
        /// The term.
        term: i64,
    },
    /// The events before this one came faster than they were taken, and so many of them are lost.
    Missed {
        /// How many.
        count: u64,
    },
    /// The term was released: another may lead. Or nobody knows: where it was not delivered, the others wait until the lease has run out.
    Released {
        /// The term.
        term: i64,
        /// Why.
        reason: Reason,
        /// Whether Kafka has acknowledged it.
        delivered: bool,
    },
    /// The lead is to be given up: what runs under it is awaited until the stop timeout.
    Revoked {
        /// The term.
        term: i64,
        /// Why.
        reason: Reason,
    },
    /// It stands by.
    Standby {
        /// The leader's name; `None` if nobody leads, or if the leader is unknown.
        leader: Option<String>,
    },
    /// A warning, in one line: the election goes on.
    Warning {
        /// That line.
        message: String,
    },
}

impl Event {
    /// What of the node's notes is one.
    pub(crate) fn of(note: &Note) -> Option<Self> {
        Some(match note {
            Note::Milestone(Milestone::Fenced { term, .. }) => Self::Fenced { term: *term },
            Note::Milestone(Milestone::Released { term, why, delivered }) => {
                Self::Released { term: *term, reason: Reason::of(*why), delivered: *delivered }
            }
            Note::Milestone(Milestone::Standby(StandbyReason { leader, .. })) => {
                Self::Standby { leader: leader.as_deref().map(Into::into) }
            }
            Note::Milestone(Milestone::TopicRemade) => Self::warning(
                "the topic was deleted and made again: records of the old topic no longer count, and fencing tokens \
                 may start from 0 again",
            ),
            Note::Job { term, note: supervisor::Note::Stopping { why, .. } } => {
                Self::Revoked { term: *term, reason: Reason::of(*why) }
            }
            Note::Election(candidate::Note::UnusedPartitions) => Self::warning(
                "the topic has more partitions than this group uses, and Kafka moves them between members when one \
                 joins: use a topic with one partition",
            ),
            Note::Election(_)
            | Note::HookFailed { .. }
            | Note::Job { .. }
            | Note::Milestone(_)
            | Note::Once(_)
            | Note::Refused(_) => return None,
        })
    }

    pub(crate) fn warning(message: &str) -> Self {
        Self::Warning { message: wording::of_library(message) }
    }
}
