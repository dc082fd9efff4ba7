//! The actions of a supervisor, and its reports about the job.

use alloc::vec::Vec;
use core::time::Duration;

use super::JobStatus;
use crate::guard::Order;
use crate::health::Failure;
use crate::record::Why;
use crate::window::Span;

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
    /// Log this note.
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

/// A note for the log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The guard does not answer, and is killed with the job.
    GuardHangs,
    /// The guard died, or was killed because it did not answer.
    GuardLost,
    /// The guard does not end although it was sent SIGKILL.
    GuardStuck {
        /// The processes of its job that are alive, as far as they can be seen.
        pids: Vec<u32>,
        /// Whether all processes could be looked at.
        are_all: bool,
    },
    /// The health command failed, and the failure counts: the failures so far, and the limit.
    HealthFailed(Failure, u32),
    /// The main process ended.
    JobExited {
        /// How it ended.
        status: JobStatus,
        /// How long it ran.
        ran: Duration,
        /// Whether it ended without a stop signal.
        by_itself: bool,
    },
    /// The job stopped itself, no process could continue it, and it was continued. Logged once.
    JobContinued,
    /// The job was stopped because it uses the terminal, which `neli-run` does not have. Logged once.
    JobInBackground,
    /// SIGKILL was needed.
    JobKilled {
        /// The reason of the stop.
        why: Why,
    },
    /// The main process runs.
    JobStarted {
        /// Its process id.
        pid: u32,
        /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
        attempt: u32,
        /// The window that the run is for, if any.
        window: Option<Span>,
    },
    /// COMMAND could not be started.
    NotStarted {
        /// The error's number.
        errno: i32,
    },
    /// The run is over, and another one follows.
    Restarting {
        /// The next run's: 1, and 1 more for each failed run before it.
        attempt: u32,
        /// The delay after the end of the old tree.
        delay: Duration,
    },
    /// The barrier began.
    Stopping {
        /// The reason.
        why: Why,
        /// The time from the stop signal to SIGKILL.
        timeout: Duration,
    },
    /// The lead was won, and the first run waits.
    Settling {
        /// The delay.
        delay: Duration,
    },
    /// The main process runs, but there is no free descriptor to watch it.
    StartedUnseen,
    /// These processes can't be killed.
    Stuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// The failures in a row, because of which another machine should try.
    Unhealthy(Failure),
}
