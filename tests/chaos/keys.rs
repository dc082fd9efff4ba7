//! Candidates that run their job once per key (`--once`): each key is done in the end, and no job runs for a key that is known to be done.
//!
//! Each slot uses the same keys in order: it takes the next one when its candidate has exited with 0. The ends that the jobs have recorded
//! are compared with the journal and the topic of facts.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::journal::{self, Raw};
use harness::judge::recorded::recorded;
use harness::judge::{self, History, JobRun, Judged};
use harness::wait;

use crate::fault::Dice;
use crate::report::journal as records_of;
use crate::run::Run;

/// How many runs of a key may fail; it is more than a test can reach.
pub(crate) const RETRIES: &str = "10000";

/// The exit status of a job that fails.
pub(crate) const FAILURE: i32 = 3;

/// The key of each candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// The number of the present key of each slot's candidate.
    present: Vec<usize>,
    /// The key of every candidate so far, by its slot and its number there.
    of_candidate: BTreeMap<(usize, u64), usize>,
    /// A summary of the results, once they are judged.
    pub(crate) shown: String,
}

/// The parameters of one candidate.
#[derive(Clone, Debug)]
pub(crate) struct KeyedJob {
    pub(crate) key: String,
    /// The job ends by itself after this time with this status.
    pub(crate) ends_after_ms: u64,
    pub(crate) status: i32,
}

fn name_of(key: usize) -> String {
    format!("k{key}")
}

impl Keys {
    pub(crate) fn new(slots: usize) -> Self {
        Self { present: vec![0; slots], ..Self::default() }
    }

    /// The parameters of a slot's next candidate.
    pub(crate) fn next(&mut self, slot: usize, life: usize, dice: &mut Dice) -> KeyedJob {
        let life = u64::try_from(life).expect("a small number");
        self.of_candidate.insert((slot, life), self.present[slot]);
        let ends_after_ms = 100 + u64::try_from(dice.below(900)).expect("a small number");
        KeyedJob { key: name_of(self.present[slot]), ends_after_ms, status: if dice.chance(0.2) { FAILURE } else { 0 } }
    }

    /// Notes that a slot's candidate has exited with 0, so its key is done.
    pub(crate) fn is_done(&mut self, slot: usize) {
        self.present[slot] += 1;
    }

    fn key_of(&self, job_run: &JobRun) -> Option<usize> {
        self.of_candidate.get(&(job_run.slot, job_run.life)).copied()
    }
}

impl Run<'_> {
    /// Runs the loop until one more key is done for each slot.
    pub(crate) fn await_keys(&mut self, patience: Duration) {
        let Some(keys) = &self.keys else { return };
        let last = keys.present.iter().copied().max().unwrap_or_default();
        let end = wait::after(patience);
        while let Some(violation) =
            self.keys.as_ref().and_then(|keys| judge::keys::not_all_are_done(&keys.present, last))
        {
            if !self.violations.is_empty() || self.environment.is_given_up() {
                return;
            }
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                self.violations.push(violation);
            }
        }
    }

    /// Compares the ends that the jobs recorded with the facts. Returns the violations.
    pub(crate) fn judge_keys(&mut self) -> Vec<String> {
        let Some(mut keys) = self.keys.take() else { return Vec::new() };
        let recorded = recorded(&records_of(self, 0).0, &self.journal(), &self.facts());
        self.read_histories();
        let job_runs = self.histories.iter().flat_map(|history| &history.job_runs).filter(|job_run| job_run.main != 0);
        let runs: Vec<(usize, &JobRun)> =
            job_runs.filter_map(|job_run| keys.key_of(job_run).map(|key| (key, job_run))).collect();
        let passed = keys.present.iter().copied().max().unwrap_or_default();
        let Judged { shown, violations } = judge::keys::judge(passed, &runs, &recorded);
        keys.shown = shown;
        self.keys = Some(keys);
        violations
    }

    /// Reads the lines that jobs have written by now. A job writes its end before the end is recorded, so this is called after the records
    /// were read.
    pub(crate) fn read_histories(&mut self) {
        self.histories.iter_mut().for_each(History::read);
    }

    /// The journal as it is stored.
    pub(crate) fn journal(&self) -> Vec<Raw> {
        self.stored("")
    }

    /// The topic of facts as it is stored.
    pub(crate) fn facts(&self) -> Vec<Raw> {
        self.stored(".once")
    }

    /// The records of a topic; none if no candidate has come so far as to make it.
    fn stored(&self, suffix: &str) -> Vec<Raw> {
        let (kafka, topic) = (self.environment.cluster().kafka(), format!("{}.neli{suffix}", self.group));
        if kafka.has_topic(&topic) { journal::read(&kafka, &topic) } else { Vec::new() }
    }
}
