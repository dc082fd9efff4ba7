//! The actions of a supervisor.

use super::JobStatus;
use crate::guard::Order;
use crate::note::Note;

/// An action that the supervisor's owner must perform.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Exit, and then die of this signal, since it came from the terminal.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Whether to send it to the whole process group of `neli-run`, since so far only the job has received it.
        to_group: bool,
    },
    /// Exit with this status.
    Exit(Ending),
    /// Stop waiting for a claim or a delivery.
    GiveUpWaiting,
    /// Kill the guard, which does not answer, and all processes of the job that can be found.
    KillGuard,
    /// Kill the processes that the dead guard left, and report [`Event::OrphansGone`](super::Event::OrphansGone) when none is left.
    KillOrphans,
    /// Report which group has the terminal's foreground: [`Event::ForegroundSeen`](super::Event::ForegroundSeen).
    LookAtForeground,
    /// Tell users.
    Note(Note),
    /// Send this order to the guard.
    Order(Order),
    /// Start a new guard.
    StartGuard,
}

/// The cause of the exit, which gives its status.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ending {
    /// The election was ended.
    Ended,
    /// The job's own status.
    Job(JobStatus),
    /// The lead was lost.
    Lost(Lost),
    /// The job failed too often.
    RestartLimit,
    /// Kafka refuses for good, or the topic may not carry an election.
    Refused,
    /// `--once`: the job must not be run; this is the exit status for that.
    Skipped(u8),
    /// A process could not be killed.
    Stuck,
    /// Stopped by this signal while no job was alive.
    StoppedBy(i32),
    /// The candidate did not lead within `--wait`.
    WaitedEnough,
}

/// How the job ended when the lead was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lost {
    /// It was killed because the lease was over.
    Fenced,
    /// It was killed at the stop timeout.
    Killed,
    /// It stopped by itself in time, or none was running.
    Stopped,
}
