//! The state that the main loop publishes for readers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::fact::Account;
use neli_proto::node::{OtherCandidate, Status};
use neli_proto::note::Note;
use neli_proto::precedence::HELLO_HOLDS;
use neli_proto::record::{JobState, MemberId, Offset, Why};
use neli_proto::reminder::Troubles;
use neli_proto::supervisor::JobStatus;
use neli_proto::time::Time;

/// The main loop publishes once a second; after this time without a snapshot it counts as stalled.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// The constant part.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) member: MemberId,
    pub(crate) elector: &'static str,
    pub(crate) lease: Duration,
}

/// The state of this process at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) about: Arc<About>,
    /// When the main loop published it.
    pub(crate) at: Time,
    pub(crate) kafka: Troubles,
    /// Whether the journals were read to their ends once.
    pub(crate) was_reached: bool,
    pub(crate) echoes: Histogram,
    pub(crate) roles: Vec<Arc<RoleSnapshot>>,
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
    pub(crate) tally: Tally,
    /// `--once`, `--window` or `--schedule`: the runs of the key, or of the election's windows.
    pub(crate) runs: Option<Account>,
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

    /// Whether a broker answers, and the journals were read.
    pub(super) fn is_up(&self) -> bool {
        self.was_reached && self.kafka.is_answered()
    }
}

impl RoleSnapshot {
    /// Whether this process leads, by its lease, even if its main loop has stalled since.
    pub(super) fn leads(&self, now: Time) -> bool {
        matches!(self.status.position, Position::Leading { .. }) && !self.lease_left(now).is_zero()
    }

    /// The runs, if this process leads: others read the facts when they lead.
    pub(super) fn known_runs(&self, now: Time) -> Option<&Account> {
        self.runs.as_ref().filter(|_| self.leads(now))
    }

    /// The rest of this process's lease.
    pub(super) fn lease_left(&self, now: Time) -> Duration {
        self.status.lease_end.map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Whether the main process of its job runs.
    pub(super) const fn has_running_job(&self) -> bool {
        if let Position::Leading { job, .. } = &self.status.position {
            job.pid.is_some() && matches!(job.state, JobState::Running | JobState::Stopping)
        } else {
            matches!(self.status.position, Position::Overlapped { .. })
        }
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
pub(crate) type Board = Mutex<Arc<Snapshot>>;

/// Publishes the snapshot; skips it while a reader holds the lock, which takes only as long as one increment of a
/// counter.
pub(crate) fn publish(board: &Board, snapshot: Snapshot) -> bool {
    let mut last = match board.try_lock() {
        Ok(last) => last,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    *last = Arc::new(snapshot);
    true
}

/// The counters of one election since this process started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    /// Leads that ended because the right to run was over.
    pub(super) fences: u64,
    /// The term of the last one, of which several notes tell.
    fenced: Option<Offset>,
    /// Runs of the job that followed another one in the same term.
    pub(super) restarts: u64,
    /// The term of the last run.
    started: Option<Offset>,
    /// Runs that ended with status 0; by themselves with another status, and by a signal; and those that were told to stop.
    pub(super) exits: [u64; 4],
}

/// The labels of the runs in [`Tally::exits`].
pub(super) const RESULTS: [&str; 4] = ["success", "failure", "signal", "stopped"];

impl Tally {
    /// Counts a note.
    pub(crate) fn note(&mut self, note: &Note) {
        // A job that obeyed the stop signal before its guard had to kill it was not fenced, and its release alone tells of the end.
        if let Note::Fenced { term, .. }
        | Note::Superseded { term, .. }
        | Note::Released { term, why: Why::Fenced, .. } = note
        {
            self.fences += u64::from(self.fenced.replace(*term) != Some(*term));
        } else if let Note::JobStarted { term, .. } = note {
            self.restarts += u64::from(self.started.replace(*term) == Some(*term));
        } else if let Note::JobExited { status, by_itself, .. } = note {
            let result = match status {
                JobStatus::Exited(0) => 0,
                JobStatus::Exited(_) | JobStatus::Signaled(_) if !*by_itself => 3,
                JobStatus::Exited(_) => 1,
                JobStatus::Signaled(_) => 2,
            };
            self.exits[result] += 1;
        }
    }
}

/// The upper limits of the histogram's buckets, in milliseconds. There is one more bucket above the last limit.
pub(super) const BOUNDS_MS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/// Own records of one election that were sent and not read yet, each by its number and the time of its sending.
pub(crate) type Echoes = VecDeque<(u64, Time)>;

/// The most records among them, so that they do not become more and more while no broker answers.
const MOST_ECHOES: usize = 64;

/// Notes that a record was sent.
pub(crate) fn note_sent(echoes: &mut Echoes, now: Time, seq: u64) {
    if echoes.len() == MOST_ECHOES {
        echoes.pop_front();
    }
    echoes.push_back((seq, now));
}

/// The times from the sending of own records to their reading.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Histogram {
    /// The number of records in each bucket.
    pub(super) buckets: [u64; BOUNDS_MS.len() + 1],
    /// The sum of all times.
    pub(super) sum: Duration,
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let fits = |bound: &u64| took <= Duration::from_millis(*bound);
        self.buckets[BOUNDS_MS.iter().position(fits).unwrap_or(BOUNDS_MS.len())] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// Notes that a record was read. Own records that were sent before it and were not read are lost.
    pub(crate) fn note_read(&mut self, echoes: &mut Echoes, now: Time, seq: u64) {
        while let Some((sent_seq, sent)) = echoes.front().copied().filter(|(sent_seq, _)| *sent_seq <= seq) {
            echoes.pop_front();
            if sent_seq == seq {
                self.add(now.since(sent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was announced may never come: the lead may end in its delay.
    #[test]
    fn a_run_counts_as_repeated_once_it_follows_another_in_its_term() {
        let mut tally = Tally::default();
        for (term, restarts) in [(3, 0), (3, 1), (3, 2), (9, 2), (9, 3)] {
            tally.note(&Note::JobStarted { term, pid: 7, attempt: 1, window: None });
            tally.note(&Note::Restarting { term, attempt: 2, delay: Duration::from_secs(1) });
            assert_eq!(tally.restarts, restarts, "term {term}");
        }
    }

    #[test]
    fn each_record_that_comes_back_is_counted_once() {
        let (mut echoes, mut histogram) = (Echoes::default(), Histogram::default());
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        (0..100).for_each(|seq| note_sent(&mut echoes, at(seq), seq));
        histogram.note_read(&mut echoes, at(200), 35);
        assert_eq!(histogram, Histogram::default(), "it is not kept for so long");
        histogram.note_read(&mut echoes, at(101), 98);
        histogram.note_read(&mut echoes, at(102), 98);
        histogram.note_read(&mut echoes, at(20_000), 99);
        assert_eq!((histogram.buckets[2], histogram.buckets[13]), (1, 1));
        assert_eq!(histogram.sum, Duration::from_millis(3 + 19_901));
    }
}
