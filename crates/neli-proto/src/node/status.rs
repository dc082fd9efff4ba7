//! A snapshot of a node for logs, service managers and status pages.

use alloc::vec::Vec;

use crate::candidate::Position;
use crate::status::{Awaits, Counts, Known, Leader, OtherCandidate, Vacancy};
use crate::time::Time;

/// The state of a node at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// The leader, as far as the records that were read show it. A leader that is silent is shown until another candidate leads.
    pub leader: Option<Leader>,
    /// Why there is no leader, as far as the records show it; `None` if there is one.
    pub vacancy: Option<Vacancy>,
    /// The node's state in the election; if it leads, the state of its job.
    pub position: Position,
    /// When the node's own lease ends if no beat extends it; `None` while it holds none.
    pub lease_end: Option<Time>,
    /// The event that the node waits for, if any.
    pub awaits: Option<Awaits>,
    /// When the node departs because of `--wait`, unless it leads before.
    pub departs_at: Option<Time>,
    /// The other candidates by their hellos of the last 75 s, at most 1,000. The leader is not included.
    pub standbys: Vec<OtherCandidate>,
    /// Counters since the node began to listen.
    pub counts: Counts,
    /// Whether the node is leaving for good when it holds no term.
    pub is_leaving: bool,
}

impl Status {
    /// Whether there is a leader, as far as is known. If Kafka does not answer (`is_answered`), nothing shows who leads, except that a lease
    /// runs: the own one, or that of a leader whose last record is too young for a missed heartbeat.
    #[must_use]
    pub fn known(&self, now: Time, is_answered: bool) -> Known {
        match (&self.leader, &self.vacancy) {
            _ if matches!(self.position, Position::Departed | Position::Listening) => Known::Nothing,
            (Some(leader), _) if leader.is_self && self.lease_end.is_some_and(|end| now < end) => Known::Led,
            (Some(leader), _) if leader.late.is_none() && now < leader.overdue_at() => Known::Led,
            _ if !is_answered => Known::Nothing,
            (Some(leader), _) if leader.is_silent(now) => Known::Silent,
            (Some(_), _) => Known::Overdue,
            (None, Some(Vacancy::Forgotten | Vacancy::NeverLed | Vacancy::Released { .. })) => Known::Vacant,
            (None, Some(Vacancy::Unknown) | None) => Known::Nothing,
        }
    }
}
