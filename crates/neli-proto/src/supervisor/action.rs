//! What a supervisor wants done, and what it reports of the job.

use alloc::vec::Vec;
use core::time::Duration;

use super::{JobStatus, RunEnd};
use crate::guard::Order;
use crate::health::Failure;
use crate::record::Why;
use crate::supervisor::LocalEvent;
use crate::window::Span;

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// At the end, die of this signal: it was the terminal's.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Send it to the whole of `neli-run`'s process group: the job alone has had it.
        to_group: bool,
    },
    /// End with this status.
    Exit(Ending),
    /// Give up waiting for a claim or a delivery.
    GiveUpWaiting,
    /// Kill the guard, since it does not answer, and what can be found of the job beside it.
    KillGuard,
    /// The guard is dead: kill what it left, and say [`Event::OrphansGone`](super::Event::OrphansGone) when nothing is.
    KillOrphans,
    /// Say whose the terminal's foreground is: [`Event::ForegroundSeen`](super::Event::ForegroundSeen).
    LookAtForeground,
    /// Say so.
    Note(Note),
    /// Tell the guard.
    Order(Order),
    /// A run under a term that is held has ended by itself, and nothing of it is left: the node says what follows.
    RunEnded(RunEnd),
    /// Start a new guard.
    StartGuard,
    /// Tell the candidate.
    Tell(LocalEvent),
}

/// With what status to end, and whose it is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ending {
    /// Nothing led to a status of the job's: the election was ended.
    Ended,
    /// The job's own.
    Job(JobStatus),
    /// The lead was lost.
    Lost(Lost),
    /// The job failed too often.
    RestartLimit,
    /// Kafka refuses for good, or the topic may not carry an election.
    Refused,
    /// `--once`: the job was not to be run, and this is the status for that.
    Skipped(u8),
    /// Something could not be killed.
    Stuck,
    /// Stopped by this signal while no job was alive.
    StoppedBy(i32),
    /// Not leading within `--wait`.
    WaitedEnough,
}

/// What became of the job when the lead was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lost {
    /// It was killed because the right to run it was over.
    Fenced,
    /// It was killed at the stop timeout.
    Killed,
    /// It stopped by itself in time, or none ran.
    Stopped,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The guard does not answer, and is killed with the job.
    GuardHangs,
    /// The guard died, or was killed because it did not answer.
    GuardLost,
    /// The health command failed, and that counts; of so many failures in a row that are one too many.
    HealthFailed(Failure, u32),
    /// The main process ended.
    JobExited {
        /// How.
        status: JobStatus,
        /// For how long it ran.
        ran: Duration,
        /// It was not asked to end.
        by_itself: bool,
    },
    /// The job has stopped itself where nobody could continue it, and was continued. Said once.
    JobContinued,
    /// The job wants the terminal, is stopped for it, and `neli-run` has not got it. Said once.
    JobInBackground,
    /// SIGKILL was needed.
    JobKilled {
        /// Why the job was being stopped.
        why: Why,
    },
    /// The main process runs.
    JobStarted {
        /// Its process id.
        pid: u32,
        /// 1 for the first run in this term.
        attempt: u32,
        /// The window that it is for, where it is for one.
        window: Option<Span>,
    },
    /// COMMAND could not be started.
    NotStarted {
        /// The error's number.
        errno: i32,
    },
    /// The run is over, and another follows.
    Restarting {
        /// The number of the next run in this term.
        attempt: u32,
        /// How long after the end of the old tree.
        delay: Duration,
    },
    /// The barrier began.
    Stopping {
        /// Why.
        why: Why,
        /// From the stop signal to SIGKILL.
        timeout: Duration,
    },
    /// The lead was won, and the first run waits.
    Settling {
        /// For how long.
        delay: Duration,
    },
    /// The main process runs, and no descriptor is left to watch it by.
    StartedUnseen,
    /// These can't be killed.
    Stuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// So many failures in a row: another machine is to try.
    Unhealthy(Failure),
}
