//! What a run is to be.

use std::path::PathBuf;
use std::time::Duration;

use harness::candidate::Elector;

use crate::fault::Fault;
use crate::named::Named;
use crate::slot::lease_ms;
use crate::windows::Windows;

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    /// Which of the elections it is, and of how many; the first has the brokers and the machine in its hands.
    pub(crate) election: usize,
    pub(crate) elections: usize,
    pub(crate) duration: Duration,
    pub(crate) candidates: usize,
    pub(crate) brokers: usize,
    pub(crate) elector: Elector,
    /// How many roles each candidate stands for.
    pub(crate) roles: usize,
    /// For how long a leader that is to stop keeps its job running beside its successor's.
    pub(crate) overlap: Option<Duration>,
    /// Each candidate runs its job once for a key, and the next one for the next key.
    pub(crate) keys: bool,
    /// The job runs once in each of these windows.
    pub(crate) windows: Option<Windows>,
    /// These faults alone; all of them when there is none.
    pub(crate) only: Vec<Fault>,
    /// The run, where it has a name.
    pub(crate) named: Option<Named>,
    /// Mostly what changes the leader, and at a higher pace.
    pub(crate) changes: bool,
    /// No job ends by itself, nor when it is asked to: each uses its right to the end.
    pub(crate) stubborn: bool,
    /// The mutant that is on in the program.
    pub(crate) mutant: Option<String>,
}

impl Orders {
    /// The longest lease of all slots.
    pub(crate) fn longest_lease(&self) -> Duration {
        let longest = (0..self.candidates).map(|slot| lease_ms(self.named, slot)).max();
        Duration::from_millis(longest.unwrap_or_default())
    }

    /// Whether the job runs once for something: between two runs nobody leads, or no job runs.
    pub(crate) fn runs_once(&self) -> bool {
        self.keys || self.windows.is_some()
    }

    /// Whether this election's faults may strike what all have: the brokers, the machine.
    pub(crate) fn strikes_what_is_shared(&self) -> bool {
        self.election == 0
    }
}
