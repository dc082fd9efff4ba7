//! The settings of a job that runs once per key, and what the node does for it.

use alloc::boxed::Box;

use crate::fact::Fact;
use crate::record::Why;
use crate::schedule::{self, CatchUp};
use crate::window::Span;

/// The key or window that runs once, and the candidate that runs it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// `--once`: the key. `--window`: the window's.
    pub key: Box<str>,
    /// `--window`: the window that the wall clock showed at the start.
    pub window: Option<Span>,
    /// `--schedule`: the job runs in each window; each run takes its key from the wall clock.
    pub schedule: Option<CatchUp>,
    /// `--retries`: this many failed runs are followed by another; counted across machines.
    pub retries: u32,
    /// `--done-status`: the exit status of a candidate that finds the key done.
    pub done_status: u8,
}

/// Why the job is not run.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Skip {
    /// The key that needs no run.
    pub key: Box<str>,
    /// The fact that was found; for windows it may be about a newer one.
    pub fact: Fact,
    /// The exit status.
    pub status: u8,
}

/// An action for the node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Append this fact, and report the result under this number.
    Append {
        /// The number.
        id: u32,
        /// The fact; the writer's wall clock is filled in.
        fact: Fact,
    },
    /// Whether a vacancy may be claimed.
    HoldClaims(bool),
    /// No process of the job is left, and the run's outcome is recorded or given up: release the term.
    Finish {
        /// Another run of the key may follow.
        again: bool,
    },
    /// Log this.
    Note(Note),
    /// Read the key's facts to an end that is asked for from now on; drop what was read under an earlier number.
    Read {
        /// The number.
        id: u32,
    },
    /// The job may start under the current term; for this window, if there is one.
    Run(Option<Span>),
    /// Exit: the job is not to be run.
    Skip,
    /// The facts can't be read or written: let another candidate lead.
    StandDown,
    /// `--schedule`: a stop that waited until the outcome was recorded.
    Stop(Why),
    /// `--schedule`: no run before the next window; the lead is kept.
    Wait,
}

/// A message for the log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The job is not run, for this reason.
    Skipped(Skip),
    /// The topic of facts was missing, but the journal contains a release that names a run of this key, which was
    /// recorded there.
    FactsLost(Box<str>),
    /// The recorded fact is about a window more than one window ahead of the wall clock, so it does not count (S2).
    NotBelieved(Fact),
    /// The facts can't be read or written, so nothing runs.
    Unavailable(Box<str>),
    /// `--schedule`: these windows are not run, for this reason.
    Schedule(schedule::Note),
    /// `--schedule`: the next run is due at this time of the wall clock, in milliseconds since 1970.
    Waiting {
        /// That time.
        until_ms: u64,
    },
    /// `--schedule`: the fact that a window is over without a run is not recorded yet.
    SkipNotRecorded(Box<str>),
    /// `--schedule`: an earlier leader's run of this window began and did not finish, and the window is over.
    Unfinished(Fact),
    /// The run's outcome is not recorded yet.
    NotRecorded(Box<str>),
}
