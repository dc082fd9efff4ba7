//! The settings of a job that succeeds once per key, and its actions for the node.

use alloc::boxed::Box;

use crate::fact::Fact;
use crate::note::Note;
use crate::schedule::CatchUp;
use crate::window::Span;

/// The key or window for which the job succeeds once, and the policy of the candidate.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// `--once`: the key. `--window`: the window's key.
    pub key: Box<str>,
    /// `--window`: the window that the wall clock showed at the start.
    pub window: Option<Span>,
    /// `--schedule`: the job runs in each window; each run takes its key from the wall clock.
    pub schedule: Option<CatchUp>,
    /// `--retries`: the number of failed runs that are followed by another, counted on all machines.
    pub retries: u32,
    /// `--done-status`: the exit status of a candidate that finds the key done.
    pub done_status: u8,
}

impl Policy {
    /// Whether its runs are those of windows, and not of a key.
    pub(super) const fn runs_in_windows(&self) -> bool {
        self.window.is_some() || self.schedule.is_some()
    }
}

/// An action for the node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Append this fact, and report the result under this number.
    Append {
        /// The number.
        id: u32,
        /// The fact; the owner adds its wall clock.
        fact: Fact,
    },
    /// No process of the job is left, and the run's outcome is recorded or given up: release the term.
    Finish {
        /// Whether another run of the key may follow.
        again: bool,
    },
    /// Tell users.
    Note(Note),
    /// Read the key's facts up to an end that is asked for from now on; drop facts that were read for an earlier number.
    Read {
        /// The number.
        id: u32,
    },
    /// Create a new producer, and drop the previous one: facts were not acknowledged for long.
    RenewProducer,
    /// Exit, because the job must not be run.
    Skip,
    /// Let another candidate lead, because the facts can't be read or written.
    StandDown,
}
