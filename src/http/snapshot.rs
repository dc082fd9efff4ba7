//! What the main loop publishes, and where it is looked at.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::node::{OtherCandidate, Status};
use neli_proto::precedence::HELLO_HOLDS;
use neli_proto::record::JobState;
use neli_proto::time::Time;

use super::tally::{Histogram, Tally};

/// A main loop that has published nothing for so long does not turn. It publishes once a second.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// What stays the same.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) member: String,
    pub(crate) elector: &'static str,
    pub(crate) lease: Duration,
}

/// What this process is and knows at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) about: Arc<About>,
    /// When the main loop has published it.
    pub(crate) at: Time,
    pub(crate) broker: Broker,
    pub(crate) echoes: Histogram,
    pub(crate) roles: Vec<Arc<RoleSnapshot>>,
}

/// Whether Kafka does its work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broker {
    /// The journal was read to its end once.
    pub(crate) was_reached: bool,
    /// Since when none has answered, and why.
    pub(crate) outage: Option<(Time, String)>,
    /// Since when they refuse this candidate's records, and why.
    pub(crate) refusal: Option<(Time, String)>,
}

impl Broker {
    /// Whether it answers.
    pub(super) const fn is_up(&self) -> bool {
        self.was_reached && self.outage.is_none()
    }
}

/// The part in one election.
#[derive(Debug)]
pub(crate) struct RoleSnapshot {
    /// Its name or number.
    pub(crate) label: String,
    pub(crate) partition: i32,
    /// When its node was looked at.
    pub(crate) at: Time,
    pub(crate) status: Status,
    /// What the service manager is told, too.
    pub(crate) doing: String,
    pub(crate) tally: Tally,
}

impl Snapshot {
    /// For how long the main loop has not turned, where it should have.
    pub(super) fn hangs_for(&self, now: Time) -> Option<Duration> {
        Some(now.since(self.at)).filter(|age| *age >= HANGS_AFTER)
    }
}

impl RoleSnapshot {
    /// Whether this process leads, by its lease: whatever has become of its main loop since.
    pub(super) fn leads(&self, now: Time) -> bool {
        matches!(self.status.position, Position::Leading { .. }) && !self.lease_left(now).is_zero()
    }

    /// What is left of its own lease.
    pub(super) fn lease_left(&self, now: Time) -> Duration {
        self.status.lease_end.map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Whether the main process of its job runs.
    pub(super) const fn has_running_job(&self) -> bool {
        let Position::Leading { job, .. } = &self.status.position else { return false };
        job.pid.is_some() && matches!(job.state, JobState::Running | JobState::Stopping)
    }

    /// Whether it stands by itself.
    pub(super) const fn stands_by(&self) -> bool {
        matches!(self.status.position, Position::Claiming | Position::Listening | Position::Standby(_))
    }

    /// The other candidates that are known by their hellos of late, and how old those are.
    pub(super) fn others(&self, now: Time) -> impl Iterator<Item = (&OtherCandidate, Duration)> {
        let more = now.since(self.at);
        let others = self.status.standbys.iter().map(move |other| (other, other.age + more));
        others.filter(|(_, age)| *age < HELLO_HOLDS)
    }

    /// How many stand by, as far as is known.
    pub(super) fn standbys(&self, now: Time) -> usize {
        self.others(now).count() + usize::from(self.stands_by())
    }
}

/// Where the last snapshot is. The main loop never waits for whoever looks at it.
#[derive(Debug)]
pub(crate) struct Board(Mutex<Arc<Snapshot>>);

impl Board {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self(Mutex::new(Arc::new(snapshot)))
    }

    /// Publishes it; not while somebody looks at the one before, which takes no longer than to count one more that has it.
    pub(crate) fn publish(&self, snapshot: &Arc<Snapshot>) -> bool {
        let mut last = match self.0.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        *last = Arc::clone(snapshot);
        true
    }

    pub(super) fn look(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
