//! What is to be done once, and what a node does for it.

use alloc::boxed::Box;

use crate::fact::Fact;
use crate::record::Why;
use crate::schedule::{self, CatchUp};
use crate::window::Span;

/// What is to be done once, by whom.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// `--once`: the key. `--window`: the window's.
    pub key: Box<str>,
    /// `--window`: the window that the wall clock showed at the start.
    pub window: Option<Span>,
    /// `--schedule`: the job runs in each window, and which key that is the wall clock says at each run.
    pub schedule: Option<CatchUp>,
    /// `--retries`: so many runs that failed are followed by another, counted across machines.
    pub retries: u32,
    /// `--done-status`: with what those exit who find the key done.
    pub done_status: u8,
}

/// Why the job is not run.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Skip {
    /// The key that needs no run.
    pub key: Box<str>,
    /// What was found: of windows it may be about a newer one.
    pub fact: Fact,
    /// What to exit with.
    pub status: u8,
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Record this fact, and report what becomes of it under this number.
    Append {
        /// The number.
        id: u32,
        /// The fact; the writer's wall clock is filled in.
        fact: Fact,
    },
    /// Whether a vacancy may be claimed.
    HoldClaims(bool),
    /// Nothing of the job runs, and the outcome of its run is recorded, or can't be: the term ends.
    Finish {
        /// Another run of the key may follow.
        again: bool,
    },
    /// Say so.
    Note(Note),
    /// Read the key's facts to an end that is asked for from now on; whatever was read before under another number is dropped.
    Read {
        /// The number.
        id: u32,
    },
    /// The job may be started, under the term that is led; for this window, where it is for one.
    Run(Option<Span>),
    /// Go for good: the job is not to be run.
    Skip,
    /// The facts can't be read or written: let another lead.
    StandDown,
    /// `--schedule`: a stop that was held back until the outcome was recorded.
    Stop(Why),
    /// `--schedule`: nothing runs before the next window, and the lead is kept.
    Wait,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The job is not run, and why.
    Skipped(Skip),
    /// The topic of facts was missing, and the journal tells of a run of this key, which was recorded there.
    FactsLost(Box<str>),
    /// What is recorded is about a window that lies more than a window ahead of the wall clock: it counts for nothing.
    NotBelieved(Fact),
    /// The facts can't be read or written, and nothing runs because of it.
    Unavailable(Box<str>),
    /// `--schedule`: what is not run, and why.
    Schedule(schedule::Note),
    /// `--schedule`: the next run is due at this time of the wall clock, in milliseconds since 1970.
    Waiting {
        /// That time.
        until_ms: u64,
    },
    /// `--schedule`: that a window is over without a run could not be recorded yet.
    SkipNotRecorded(Box<str>),
    /// `--schedule`: an earlier leader's run of this window was begun and not finished, and the window is over.
    Unfinished(Fact),
    /// The run's outcome could not be recorded yet.
    NotRecorded(Box<str>),
}
