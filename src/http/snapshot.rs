//! The state that the main loop publishes for readers.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::fact::Runs;
use neli_proto::leadership::{Leadership, ReadAt};
use neli_proto::node::{OtherCandidate, Status};
use neli_proto::precedence::HELLO_HOLDS;
use neli_proto::record::JobState;
use neli_proto::time::Time;

use super::tally::{Histogram, Tally};

/// The main loop publishes once a second; after this time without a snapshot it counts as stalled.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// The constant part.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) member: String,
    pub(crate) elector: &'static str,
    pub(crate) lease: Duration,
}

/// The state of this process at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) about: Arc<About>,
    /// When the main loop published it.
    pub(crate) at: Time,
    pub(crate) broker: Broker,
    pub(crate) echoes: Histogram,
    pub(crate) roles: Vec<Arc<RoleSnapshot>>,
}

/// Whether Kafka answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broker {
    /// Whether the journal was read to its end once.
    pub(crate) was_reached: bool,
    /// Since when no broker answers, and why.
    pub(crate) outage: Option<(Time, String)>,
    /// Since when the brokers refuse this candidate's records, and why.
    pub(crate) refusal: Option<(Time, String)>,
    /// Since when the group does not take this process's member, and why.
    pub(crate) group: Option<(Time, String)>,
}

impl Broker {
    /// Whether a broker answers.
    pub(super) const fn is_up(&self) -> bool {
        self.was_reached && self.outage.is_none()
    }
}

/// The state in one election.
#[derive(Debug)]
pub(crate) struct RoleSnapshot {
    /// Its name or number.
    pub(crate) label: String,
    pub(crate) partition: i32,
    /// When the node's state was taken.
    pub(crate) at: Time,
    pub(crate) status: Status,
    /// With a schedule: when the next window begins, as the end of a sentence.
    pub(crate) next: String,
    pub(crate) tally: Tally,
    /// `--once`, `--window` or `--schedule`.
    pub(crate) runs: Option<RunsSnapshot>,
}

/// The runs of a key, or of an election's windows.
#[derive(Clone, Debug)]
pub(crate) struct RunsSnapshot {
    pub(crate) runs: Runs,
    /// When the next window begins, in milliseconds since 1970.
    pub(crate) next_window_ms: Option<u64>,
    /// When two windows will have passed without a success, in milliseconds since 1970.
    pub(crate) success_due_ms: Option<u64>,
}

impl Snapshot {
    /// For how long the main loop has been stalled, if it is.
    pub(super) fn hangs_for(&self, now: Time) -> Option<Duration> {
        Some(now.since(self.at)).filter(|age| *age >= HANGS_AFTER)
    }
}

impl RoleSnapshot {
    /// Whether this process leads, by its lease, even if its main loop has stalled since.
    pub(super) fn leads(&self, now: Time) -> bool {
        matches!(self.status.position, Position::Leading { .. }) && !self.lease_left(now).is_zero()
    }

    /// Who leads, as far as this process knows.
    pub(super) fn leadership(&self, broker: &Broker, at: ReadAt) -> Leadership<'_> {
        self.status.leadership(at, broker.outage.is_none())
    }

    /// The runs, if this process leads: others read the facts when they lead.
    pub(super) fn known_runs(&self, now: Time) -> Option<&RunsSnapshot> {
        self.runs.as_ref().filter(|_| self.leads(now))
    }

    /// The rest of this process's lease.
    pub(super) fn lease_left(&self, now: Time) -> Duration {
        self.status.lease_end.map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Whether the main process of its job runs.
    pub(super) const fn has_running_job(&self) -> bool {
        let Position::Leading { job, .. } = &self.status.position else { return false };
        job.pid.is_some() && matches!(job.state, JobState::Running | JobState::Stopping)
    }

    /// Whether it is a standby.
    pub(super) const fn stands_by(&self) -> bool {
        matches!(self.status.position, Position::Claiming | Position::Listening | Position::Standby(_))
    }

    /// The other candidates by their recent hellos, with the age of each hello; none after this process has left the election.
    pub(super) fn others(&self, now: Time) -> impl Iterator<Item = (&OtherCandidate, Duration)> {
        let more = now.since(self.at);
        let is_read = self.status.position != Position::Departed;
        let others = self.status.standbys.iter().map(move |other| (other, other.age + more));
        others.filter(move |(_, age)| is_read && *age < HELLO_HOLDS)
    }

    /// The number of standbys, as far as is known.
    pub(super) fn standbys(&self, now: Time) -> usize {
        self.others(now).count() + usize::from(self.stands_by())
    }
}

/// The place of the last snapshot. The main loop never waits for readers.
#[derive(Debug)]
pub(crate) struct Board(Mutex<Arc<Snapshot>>);

impl Board {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self(Mutex::new(Arc::new(snapshot)))
    }

    /// Publishes the snapshot; skips it while a reader holds the lock, which takes only as long as one increment of a
    /// counter.
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
