//! The events on this machine that a supervisor reports to its candidate.

use core::time::Duration;

use super::NothingLeft;
use crate::guard::SeenEnd;
use crate::record::{JobState, KeyedRun, MemberId, Why};
use crate::time::Time;

/// Events on this machine. They come from the supervisor or from the node, because no other object knows when no process of a job is left.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum LocalEvent {
    /// The process was continued by SIGCONT.
    Continued,
    /// The lease of the current term is over, also if the candidate's own deadline is later: the guard fenced the job, or died.
    Fenced {
        /// The reason for the release.
        why: Why,
    },
    /// Whether this machine lacks a guard, so that no job could run under a claim.
    GuardIsMissing(bool),
    /// A candidate that leads must hand its term over, because another member holds fewer roles than its share.
    HandOver {
        /// The member that should lead.
        to: MemberId,
    },
    /// The job's state has changed.
    JobChanged(JobReport),
    /// No process of the job is left, and none will be started under this term (R6).
    NothingLeft(JobEnd),
    /// The time to add to the claim delay from now on; with `None`, the candidate claims nothing.
    SpreadBy(Option<Duration>),
    /// The candidate must leave for good (`Stopped`, `Ended`, ...), stand down and cool off (`Unhealthy`), or stand down until it is
    /// [`Continued`](LocalEvent::Continued) (`Suspended`).
    StandDown {
        /// The reason.
        why: Why,
        /// Whether the candidate leaves for good.
        leaving: bool,
    },
}

/// The end of a term's job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct JobEnd {
    /// The proof that no process is left; it contains the term.
    pub proof: NothingLeft,
    /// Why the term ends, unless the candidate has another reason already.
    pub why: Why,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// Whether the candidate leaves for good.
    pub leaving: bool,
    /// `--once`, `--window`, `--schedule`: the run, if it has ended and `exit` is its outcome.
    pub once: Option<KeyedRun>,
    /// The end of the last process; `None` if that was before the guard's deadline, or if no job was alive then.
    pub seen: Option<SeenEnd>,
    /// The time to add to the claim delay from now on, because the last runs failed; zero if none did.
    pub back_off: Duration,
}

/// The job's state for the beats.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JobReport {
    /// Its state.
    pub state: JobState,
    /// The main process.
    pub pid: Option<u32>,
    /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
    pub attempt: u32,
    /// When the job entered this state.
    pub since: Time,
}
