//! Candidates that run their job once per key (`--once`): each key is done in the end, and no job runs for a key that is known to be done.
//!
//! Each slot uses the same keys in order: it takes the next one when its candidate has exited with 0. The ends that the jobs have recorded
//! are compared with the journal and the topic of facts.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::journal::{self, Raw};
use harness::wait;
use serde_json::Value;

use crate::fault::Dice;
use crate::job_run::{End, JobRun};
use crate::report::journal as records_of;
use crate::run::Run;

/// How many runs of a key may fail; it is more than a test can reach.
pub(crate) const RETRIES: &str = "10000";

/// The exit status of a job that fails.
pub(crate) const FAILURE: i32 = 3;

/// A broker's times are in whole milliseconds.
pub(crate) const TICK_MS: u64 = 2;

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

/// The records of a term.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// When its claim was appended, by the broker's clock.
    pub(crate) claimed_ms: Option<u64>,
    /// When the fact was appended that its run succeeded.
    done_ms: Option<u64>,
    /// The offset and the content of its effective release.
    pub(crate) release: Option<(u64, Value)>,
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
        let life = u64::try_from(life).expect("not that many");
        self.of_candidate.insert((slot, life), self.present[slot]);
        let ends_after_ms = 100 + u64::try_from(dice.below(900)).expect("a few");
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
        while self.keys.as_ref().is_some_and(|keys| keys.present.iter().any(|key| *key <= last)) {
            if !self.violations.is_empty() || self.ground.is_given_up() {
                return;
            }
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                let at = self.keys.as_ref().map(|keys| keys.present.clone());
                self.violations.push(format!("not all keys up to {last} are done in the end: the slots are at {at:?}"));
            }
        }
    }

    /// Compares the ends that the jobs recorded with the facts. Returns the violations.
    pub(crate) fn judge_keys(&mut self) -> Vec<String> {
        let Some(mut keys) = self.keys.take() else { return Vec::new() };
        let recorded = self.recorded();
        let nothing = Recorded::default();
        let about = |term: u64| recorded.get(&term).unwrap_or(&nothing);
        let mut violations = Vec::new();
        let mut by_key: BTreeMap<usize, Vec<&JobRun>> = BTreeMap::new();
        for job_run in self.histories.iter().flat_map(|history| &history.job_runs).filter(|job_run| job_run.main != 0) {
            if let Some(key) = keys.key_of(job_run) {
                by_key.entry(key).or_default().push(job_run);
            }
        }
        let passed = keys.present.iter().copied().max().unwrap_or_default();
        for key in 0..passed {
            let runs = by_key.get(&key).map_or(&[][..], Vec::as_slice);
            if !runs.iter().any(|run| run.end == End::Success) {
                violations.push(format!("candidates have taken key {key} for done, and no job of it has succeeded"));
            }
        }
        let mut again: BTreeMap<String, usize> = BTreeMap::new();
        for (key, runs) in &by_key {
            for first in runs.iter().filter(|run| run.end == End::Success && !run.abandoned) {
                let Recorded { done_ms, release, .. } = about(first.term);
                let Some(second) = runs.iter().find(|run| run.term > first.term) else { continue };
                let is_before =
                    |done: u64| about(second.term).claimed_ms.is_some_and(|claimed| done + TICK_MS < claimed);
                let release = release.as_ref().filter(|(offset, _)| *offset < second.term).map(|(_, release)| release);
                let why = release.map_or("none", |release| release["why"].as_str().unwrap_or("none"));
                let names_it = release.is_some_and(|release| release["once"].is_string() && release["exit"] == 0);
                let terms = (first.term, second.term);
                if names_it || done_ms.is_some_and(is_before) {
                    violations.push(format!(
                        "key {key} was done in term {}, which was known, and ran in term {}",
                        terms.0, terms.1
                    ));
                } else if ["exited", "failed"].contains(&why) {
                    violations.push(format!(
                        "key {key} was done in term {}, was released without that, and ran in term {}",
                        terms.0, terms.1
                    ));
                } else {
                    *again.entry(format!("release {why}")).or_default() += 1;
                }
            }
        }
        let runs: usize = by_key.values().map(Vec::len).sum();
        let succeeded = by_key.values().flatten().filter(|run| run.end == End::Success).count();
        keys.shown = format!(
            "keys {passed} done, {runs} runs, {succeeded} of them succeeded; run again since the success was not known: {again:?}",
        );
        self.keys = Some(keys);
        violations
    }

    /// The records of each term in the journal and in the topic of facts.
    pub(crate) fn recorded(&self) -> BTreeMap<u64, Recorded> {
        let kafka = self.ground.cluster().kafka();
        let topic = format!("{}.neli", self.group);
        let written: BTreeMap<u64, u64> =
            journal::read(&kafka, &topic).iter().map(|raw| (offset(raw), raw.written_ms)).collect();
        let mut recorded: BTreeMap<u64, Recorded> = BTreeMap::new();
        for line in records_of(self, 0).0.iter().filter(|line| line["verdict"] == "effective") {
            let (record, at) = (&line["record"], line["offset"].as_u64().expect("an offset"));
            if record["kind"] == "claim" {
                recorded.entry(at).or_default().claimed_ms = written.get(&at).copied();
            } else if let ("release", Some(term)) =
                (record["kind"].as_str().unwrap_or_default(), record["term"].as_u64())
            {
                recorded.entry(term).or_default().release = Some((at, record.clone()));
            }
        }
        for raw in journal::read(&kafka, &format!("{topic}.once")) {
            let fact: Value =
                raw.payload.as_deref().and_then(|fact| serde_json::from_slice(fact).ok()).unwrap_or_default();
            if let ("done", Some(term)) = (fact["outcome"].as_str().unwrap_or_default(), fact["term"].as_u64()) {
                recorded.entry(term).or_default().done_ms.get_or_insert(raw.written_ms);
            }
        }
        recorded
    }
}

fn offset(raw: &Raw) -> u64 {
    u64::try_from(raw.offset).expect("an offset")
}
