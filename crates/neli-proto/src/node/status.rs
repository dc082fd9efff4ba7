//! A snapshot of a node for logs, service managers and status pages.

use alloc::vec::Vec;

use crate::candidate::Position;
use crate::leadership::{LastTerm, Leader, Leadership, ReadAt, Release, TermState, Unknown};
use crate::record::Offset;
use crate::status::{Awaits, Counts, OtherCandidate};
use crate::time::Time;

/// The state of a node at one moment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// The last term, as far as its records were read.
    pub last_term: LastTerm,
    /// What the law says of it.
    pub term_state: TermState,
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
    /// The leader, as far as the records that were read show it. A leader that is silent is shown until another candidate leads; one that
    /// has left the election does not know it any more.
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        let is_led = match self.term_state {
            TermState::Led => true,
            TermState::Unread => self.last_term.release.is_none(),
            TermState::Forgotten | TermState::NeverLed | TermState::Released | TermState::Undecided => false,
        };
        self.last_term.leader.as_ref().filter(|_| is_led && self.position != Position::Departed)
    }

    /// The release of the last term.
    #[must_use]
    pub fn release(&self) -> Option<&Release> {
        let is_shown = self.term_state == TermState::Released && self.position != Position::Departed;
        self.last_term.release.as_ref().filter(|_| is_shown)
    }

    /// The term of the leader, or of the last release.
    #[must_use]
    pub fn term(&self) -> Option<Offset> {
        self.leader().map(|leader| leader.term).or(self.release().map(|release| release.term))
    }

    /// Who leads, as far as is known. If Kafka does not answer (`is_answered`), nothing shows it, except that a lease runs: the own one, or
    /// that of a leader whose last record is too young for a missed heartbeat.
    #[must_use]
    pub fn leadership(&self, at: ReadAt, is_answered: bool) -> Leadership<'_> {
        if self.position == Position::Departed {
            return Leadership::Unknown(Unknown::Left);
        }
        self.last_leadership(at, is_answered)
    }

    /// The same; of a process that has just left the election, as it was then.
    #[must_use]
    pub fn last_leadership(&self, at: ReadAt, is_answered: bool) -> Leadership<'_> {
        if let Some(leader) = self.leader().filter(|leader| leader.is_self) {
            let age = at.now.since(leader.last_record.read);
            return match self.lease_end.filter(|end| at.now < *end) {
                Some(end) => Leadership::Led { leader, age, left: end.since(at.now) },
                None => Leadership::Unknown(Unknown::LeaseOver),
            };
        }
        let current = self.last_term.leadership(self.term_state, |received| received.age(at.now, at.wall_ms));
        if is_answered { current } else { current.unanswered() }
    }

    /// Whether there is a leader, as far as is known.
    #[must_use]
    pub fn is_led(&self, now: Time, is_answered: bool) -> bool {
        // The wall clock shows only the age of a release.
        self.leadership(ReadAt { now, wall_ms: 0 }, is_answered).is_led()
    }
}
