//! The parameters of a run.

use std::path::PathBuf;
use std::time::Duration;

use harness::candidate::Elector;

use crate::fault::Fault;
use crate::slot::lease_ms;
use crate::special_runs::SpecialRun;
use crate::windows::Windows;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    /// Index and number of the elections. Only the first one affects the brokers and the machine.
    pub(crate) election: usize,
    pub(crate) elections: usize,
    pub(crate) duration: Duration,
    pub(crate) candidates: usize,
    pub(crate) brokers: usize,
    pub(crate) elector: Elector,
    /// The number of roles of each candidate.
    pub(crate) roles: usize,
    /// How long a leader that stops keeps its job running beside its successor's.
    pub(crate) overlap: Option<Duration>,
    /// Whether each candidate runs its job once for a key, and the next one runs the next key.
    pub(crate) keys: bool,
    /// The job runs once in each of these windows.
    pub(crate) windows: Option<Windows>,
    /// Only these faults; all of them if empty.
    pub(crate) only: Vec<Fault>,
    /// The run, if it has a name.
    pub(crate) special_run: Option<SpecialRun>,
    /// Whether to use mostly faults that change the leader, at a higher rate.
    pub(crate) changes: bool,
    /// Whether no job ends by itself, nor at a stop signal, so that each uses its whole lease.
    pub(crate) stubborn: bool,
    /// The program's active mutant.
    pub(crate) mutant: Option<String>,
}

impl Parameters {
    /// The longest lease of all slots.
    pub(crate) fn longest_lease(&self) -> Duration {
        let longest = (0..self.candidates).map(|slot| lease_ms(self.special_run, slot)).max();
        Duration::from_millis(longest.unwrap_or_default())
    }

    /// Whether the job runs once for a key or a window: between two runs there is no leader, or no job.
    pub(crate) fn runs_once(&self) -> bool {
        self.keys || self.windows.is_some()
    }

    /// Whether this election's faults may affect the brokers and the machine, which all elections share.
    pub(crate) fn strikes_what_is_shared(&self) -> bool {
        self.election == 0
    }
}
