//! The data that an observer has besides the last term: candidates, silences, and each change.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use crate::hello::Hello;
use crate::late_beat::{DELIVERY, longest_interval};
use crate::leadership::{Job, Leader, Receipt, Release, shown};
use crate::listener::silence;
use crate::record::{Offset, What};
use crate::restart;
use crate::time::millis;
use crate::timings::LONGEST_LEASE;

/// Void claims.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VoidClaims {
    /// The number of void claims.
    pub count: u32,
    /// The candidate of the last one.
    pub by: Option<Box<str>>,
    /// When the last one was read and written.
    pub received: Receipt,
}

/// A candidate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownCandidate {
    /// Its last hello. The elections in which a process stands share it.
    pub hello: Arc<Hello>,
    /// When the hello was read and written.
    pub received: Receipt,
    /// The same of its first hello; `None` if that was not read.
    pub first: Option<Receipt>,
}

/// A standby.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standby<'a> {
    /// The candidate.
    pub candidate: &'a KnownCandidate,
    /// The age of its last hello.
    pub age: Duration,
    /// For how long it has listened, if its first hello was read.
    pub listens: Option<Duration>,
    /// The number of its failed runs in a row.
    pub failed_runs: u32,
}

/// A change by a record.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Change {
    /// `--overlap`: no process is left of the job of this term, which ran beside the leader's.
    EarlierJobGone { term: Offset },
    /// A leader that had missed heartbeats has written a record after this time, and still leads.
    SilenceEnded { silent: Duration },
    /// The leader's job.
    Job(Job),
    /// A heartbeat was appended so late after the previous record, by this gap, that the leader's lease was over: the leader no longer leads.
    LateBeat { gap: Duration },
    /// Before this record the leader had been silent for longer than its lease: by the broker's timestamps if the record was read late. If it
    /// is read live, only another's claim shows it, and [`Observer::silent_at`](super::Observer::silent_at) came before.
    FellSilent(Silence),
    /// A new term; [`Observer::leader`](super::Observer::leader) is its leader.
    Led,
    /// Records are missing, so the leader is unknown.
    Missing,
    /// `--overlap`: the job of this term may run beside the leader's from now on, for the lease at most. The name is its leader's, if it was read.
    Overlapped { term: Offset, name: Option<Box<str>>, lease: Duration },
    /// The term is over.
    Released(Release),
    /// A request of the operator `by`. It may name a candidate that is to lead next.
    Requested { what: What, by: Option<Box<str>>, reason: Option<Box<str>>, successor: Option<Box<str>> },
    /// `--overlap`: the leader must stop; its job continues until another candidate has claimed.
    Yields,
}

impl Standby<'_> {
    /// The rest of its wait before it claims, because its last runs failed.
    #[must_use]
    pub fn back_off(&self) -> Duration {
        restart::back_off(self.failed_runs)
    }
}

/// A leader that was silent for longer than its lease, or has missed heartbeats.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Silence {
    /// The leader's term.
    pub term: Offset,
    /// The leader's name.
    pub name: Box<str>,
    /// Its lease.
    pub lease: Duration,
    /// The length of the silence, until now or until the next record.
    pub silent: Duration,
    /// Since when, or from when on, other candidates may claim, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Silence {
    /// The silence of this leader of length `silent` up to a time in milliseconds since 1970.
    #[must_use]
    pub fn of(leader: &Leader, silent: Duration, until_ms: u64) -> Self {
        let since_ms = until_ms.saturating_sub(millis(silent)).saturating_add(millis(silence(leader.lease)));
        Self { term: leader.term, name: leader.shown().into(), lease: leader.lease, silent, since_ms }
    }
}

impl Leader {
    /// The time in which two of the leader's beats are read, if it is alive.
    pub(super) fn two_beats(&self) -> Duration {
        // The time between two records that were read does not show the interval, because a leader also beats when its job's state changes.
        longest_interval(self.lease) * 2 + DELIVERY
    }
}

impl KnownCandidate {
    /// `--max-roles`: the most roles that it leads; `None` without a limit. A limit of as many roles as there are is none.
    #[must_use]
    pub fn max_roles(&self) -> Option<u32> {
        self.hello.max_roles.filter(|most| *most < self.hello.mapping().count())
    }

    /// How long after its hello it claims nothing, because the records don't show it who leads; zero if they show it. No candidate waits
    /// longer than for the longest lease: more is a mistake of the writer's.
    #[must_use]
    pub fn undecided_for(&self) -> Duration {
        Duration::from_millis(self.hello.waits_ms.unwrap_or_default()).min(silence(LONGEST_LEASE))
    }

    /// Its name, or its member id if it has no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.hello.name.as_deref(), Some(&self.hello.member))
    }
}
