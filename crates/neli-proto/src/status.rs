//! What a candidate shows: a snapshot for logs, service managers and status pages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::job::JobReport;
use crate::leadership::{LastTerm, Leader, Leadership, ReadAt, Release, TermState, Unknown};
use crate::note::StandbyReason;
use crate::record::{MemberId, Offset, Why};
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
    /// When the node claims, unless a record of another candidate comes before; `None` if it does not stand by, or waits for something that has no
    /// time.
    pub claims_at: Option<Time>,
    /// `--schedule`: when the next window that may run begins, in milliseconds since 1970, while it waits for the wall clock to enter one.
    pub next_window_ms: Option<u64>,
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
    pub fn leader(&self) -> Option<&Leader> {
        let is_read_anew = self.term_state == TermState::Unread && self.last_term.release.is_none();
        let is_led = self.term_state == TermState::Led || is_read_anew;
        self.last_term.leader.as_ref().filter(|_| is_led && self.position != Position::Departed)
    }

    /// The release of the last term.
    pub fn release(&self) -> Option<&Release> {
        let is_shown = self.term_state == TermState::Released && self.position != Position::Departed;
        self.last_term.release.as_ref().filter(|_| is_shown)
    }

    /// The term of the leader, or of the last release.
    pub fn term(&self) -> Option<Offset> {
        self.leader().map(|leader| leader.term).or(self.release().map(|release| release.term))
    }

    /// Who leads, as far as is known. If Kafka does not answer (`is_answered`), nothing shows it, except that a lease runs: the own one, or
    /// that of a leader whose last record is too young for a missed heartbeat.
    pub fn leadership(&self, at: ReadAt, is_answered: bool) -> Leadership<'_> {
        if self.position == Position::Departed {
            return Leadership::Unknown(Unknown::Left);
        }
        self.last_leadership(at, is_answered)
    }

    /// The same; of a process that has just left the election, as it was then.
    pub fn last_leadership(&self, at: ReadAt, is_answered: bool) -> Leadership<'_> {
        if let Some(leader) = self.leader().filter(|leader| leader.is_self) {
            let age = at.now.since(leader.last_record.read);
            return match self.lease_end.filter(|end| at.now < *end) {
                Some(end) => Leadership::Led { leader, age, left: end.since(at.now) },
                // Nothing of its job is left, and no other candidate has claimed.
                None if is_answered && matches!(self.position, Position::Standby(_)) => leader.silent(age),
                None => Leadership::Unknown(Unknown::LeaseOver { is_answered }),
            };
        }
        let current = self.last_term.leadership(self.term_state, |received| received.age(at.now, at.wall_ms));
        if is_answered { current } else { current.unanswered() }
    }

    /// Whether there is a leader, as far as is known.
    pub fn is_led(&self, now: Time, is_answered: bool) -> bool {
        // The wall clock shows only the age of a release.
        self.leadership(ReadAt { now, wall_ms: 0 }, is_answered).is_led()
    }
}

/// The state of a candidate as seen from outside.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Position {
    /// A claim is in flight.
    Claiming,
    /// It has exited.
    Departed,
    /// The lease is over, but processes of the job may be left.
    Fenced { term: Offset },
    /// It leads.
    Leading {
        term: Offset,
        job: JobReport,
        /// Why the job was asked to stop, if it was.
        stopping: Option<Why>,
    },
    /// It reads the records from before its start (R1).
    #[default]
    Listening,
    /// `--overlap`: this term has ended, and another candidate leads, and this job continues beside the other's for a limited time.
    Overlapped { term: Offset },
    /// No process of the job is left, and the release is in flight.
    Releasing { term: Offset },
    /// It stands by. The value is the one that was logged last, so that status and log agree.
    Standby(Option<StandbyReason>),
    /// It holds nothing. The process is suspended until SIGCONT, or about to be.
    Suspended,
}

/// Counters since the node began to listen; earlier records are not counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Number of terms that have begun.
    pub terms: u64,
    /// Number of void claims.
    pub void_claims: u64,
    /// Number of void claims since the last effective record of a leader.
    pub void_in_a_row: u32,
}

/// Another candidate of the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OtherCandidate {
    /// Its member id.
    pub member: MemberId,
    /// Its name.
    pub name: Option<Box<str>>,
    /// How long ago its last hello was read.
    pub age: Duration,
}
