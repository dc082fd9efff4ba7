//! The status of an election and of a candidate: the leader or the cause of the vacancy, the standbys, and the event that the candidate
//! waits for.

use alloc::boxed::Box;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::late_beat::LateBeat;
use crate::listener::silence;
use crate::record::{MemberId, Offset};
use crate::time::Time;

/// The leader, as far as it is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leader {
    /// Its member id; `None` if no record that was read contains it.
    pub member: Option<MemberId>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The term: its fencing token.
    pub term: Offset,
    /// When this node first read one of its records as the leader; it may have led before.
    pub since: Option<Time>,
    /// Whether the leader is this node.
    pub is_self: bool,
    /// The longest lease in its records.
    pub lease: Duration,
    /// When its last effective record was read. If the record is older than this node's listening, it is when listening began.
    pub received: Time,
    /// The late heartbeat, if its last heartbeats were appended after its lease was over, by the broker's timestamps: then it does not
    /// lead.
    pub late: Option<LateBeat>,
    /// For how long it writes nothing until it is shown as silent.
    pub overdue_after: Duration,
}

/// Whether there is a leader, as far as a candidate knows. The same in every place that shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Known {
    /// There is one.
    Led,
    /// The leader has missed three heartbeats: it may be dead, and its lease may still run.
    Overdue,
    /// The leader has been silent for longer than its lease, so it no longer leads.
    Silent,
    /// There is none, for a [`Vacancy`].
    Vacant,
    /// It is unknown: Kafka does not answer, or the records that were read don't show it.
    Nothing,
}

impl Leader {
    /// When it will have missed three heartbeats, unless a record comes before.
    #[must_use]
    pub fn overdue_at(&self) -> Time {
        self.received + self.overdue_after
    }

    /// From when on another candidate may claim, unless a record comes before (R2).
    #[must_use]
    pub fn claimable_at(&self) -> Time {
        self.received + silence(self.lease)
    }

    /// Whether it has been silent for so long that its lease must have ended (R2).
    #[must_use]
    pub fn is_silent(&self, now: Time) -> bool {
        self.late.is_some() || now >= self.claimable_at()
    }
}

/// Why there is no leader.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Vacancy {
    /// Older records were deleted, and no record of this election is left.
    Forgotten,
    /// The topic is complete from its first record, and no term has begun.
    NeverLed,
    /// The last term was released.
    Released {
        /// The released term.
        term: Offset,
        /// The reason in the release.
        why: Option<Box<str>>,
    },
    /// The records that were read so far don't decide it.
    Unknown,
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

/// The event that a node waits for, and its time limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Awaits {
    /// The event.
    pub what: Awaited,
    /// When the event occurs or the wait for it ends; `None` if there is no such time.
    pub until: Option<Time>,
}

/// The events that a node may wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Awaited {
    /// The node's claim is read back.
    Claim,
    /// The node's own claim delay ends. There is no leader, and other candidates may claim before.
    ClaimDelay,
    /// SIGCONT arrives.
    Continuation,
    /// After standing down: another candidate leads, or two leases have passed.
    CoolOff,
    /// The release is acknowledged.
    Delivery,
    /// `--once`: the key's facts are read, or a fact that was written is acknowledged.
    Facts,
    /// No process of the job is left; SIGKILL is sent at `until` unless it was sent before.
    JobEnd,
    /// The job's main process runs.
    JobStart,
    /// R0: the check whether the topic is fit for an election has finished.
    Judgement,
    /// The job's next run.
    NextRun,
    /// R1: the records written before the node started are read.
    Records,
    /// R2: the leader, or a candidate that may lead, has been silent for long enough to claim.
    Silence,
    /// `--schedule`: the wall clock enters another window.
    Window,
}

/// A value that is only displayed. No rule depends on it, so comparing two states ignores it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown<T>(pub(crate) T);

impl<T> Eq for Shown<T> {}

impl<T> Hash for Shown<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> PartialEq for Shown<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_for_display_do_not_distinguish_two_states() {
        let since = |nanos| Shown(Some(Time::from_nanos(nanos)));
        assert_eq!(since(1), since(2));
    }
}
