//! What is shown of an election and of a candidate in it: who leads, or why nobody does, who stands by, and what is waited for.

use alloc::boxed::Box;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::listener::silence;
use crate::record::{MemberId, Offset};
use crate::time::Time;

/// Who leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leader {
    /// Its member id; none where only records that do not tell it were read.
    pub member: Option<MemberId>,
    /// How it is called.
    pub name: Option<Box<str>>,
    /// The term: its fencing token.
    pub term: Offset,
    /// Since when this node has known it: it may have led before.
    pub since: Option<Time>,
    /// It is this node.
    pub is_self: bool,
    /// The longest lease that its records name.
    pub lease: Duration,
    /// When its last effective record was read; where that was written before the node began to listen, when it did.
    pub received: Time,
}

impl Leader {
    /// Whether it has been silent for so long that it leads no more (R2).
    #[must_use]
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.received) >= silence(self.lease)
    }
}

/// Why nobody leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Vacancy {
    /// The older records were deleted, and none of this election is left.
    Forgotten,
    /// The topic goes back to its beginning, and nobody has led.
    NeverLed,
    /// The last term was released.
    Released {
        /// That term.
        term: Offset,
        /// Why, as its release says.
        why: Option<Box<str>>,
    },
    /// The records that were read so far do not tell.
    Unknown,
}

/// What was read since a node began to listen; what was written before is not counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Terms that have begun.
    pub terms: u64,
    /// Claims that were void.
    pub void_claims: u64,
    /// Those of them that came after the last effective record of a leader's.
    pub void_in_a_row: u32,
}

/// Another candidate of the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OtherCandidate {
    /// Its member id.
    pub member: MemberId,
    /// How it is called.
    pub name: Option<Box<str>>,
    /// How long ago its last hello was read.
    pub age: Duration,
}

/// What is waited for, and until when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Awaits {
    /// What.
    pub what: Awaited,
    /// When it is no longer waited for, or is there; none where only an event ends it.
    pub until: Option<Time>,
}

/// What a node may wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Awaited {
    /// The node's claim, to be read back.
    Claim,
    /// The node's own claim delay: nobody leads, and others may claim before it.
    ClaimDelay,
    /// SIGCONT.
    Continuation,
    /// After standing down: that another leads, or that two leases have passed.
    CoolOff,
    /// Acknowledgement of the release.
    Delivery,
    /// `--once`: what is recorded of the key; or that what is to be recorded is acknowledged.
    Facts,
    /// That nothing of the job is left; SIGKILL comes at `until`, unless it came.
    JobEnd,
    /// That the job's main process runs.
    JobStart,
    /// R0: whether the topic may carry an election.
    Judgement,
    /// The job's next run.
    NextRun,
    /// R1: the records that were written before the node came.
    Records,
    /// R2: that the leader, or whoever may lead, has been silent for so long that the node may claim.
    Silence,
    /// `--schedule`: that the wall clock shows another window.
    Window,
}

/// A fact that is only shown. No rule depends on it, so it does not tell two states apart: they are equal without it.
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
