use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::recorded::{Recorded, TICK_MS, number_of};
use super::{End, JobRun, Judged};

/// The number of later windows in which the job must have run in the end.
const NEXT_WINDOWS: usize = 2;

/// The latest window in which a job has run. A daemon whose job fails leads on, and its job fails again.
pub fn latest<'a>(runs: impl Iterator<Item = &'a JobRun>) -> u64 {
    runs.filter_map(|run| run.window).max().unwrap_or_default()
}

/// The violation that the job has not run in some more windows, each later than `last`.
pub fn not_run_after<'a>(last: u64, runs: impl Iterator<Item = &'a JobRun>) -> Option<String> {
    let later: BTreeSet<u64> = runs.filter_map(|run| run.window).filter(|window| *window > last).collect();
    (later.len() < NEXT_WINDOWS).then(|| format!("the windows after {last} are not run in the end"))
}

/// Compares the ends that the jobs wrote with the records: those of each term, and the time at which a window was recorded as done
/// (`done`, by term and window).
pub fn judge<'a>(
    runs: impl Iterator<Item = &'a JobRun>,
    recorded: &BTreeMap<u64, Recorded>,
    done: &BTreeMap<(u64, u64), u64>,
) -> Judged {
    let runs = runs.filter(|run| run.main != 0);
    let mut runs: Vec<(u64, &JobRun)> = runs.filter_map(|run| run.window.map(|window| (window, run))).collect();
    runs.sort_by_key(|(_, run)| run.span.0);
    let facts =
        Facts { recorded, done, last_topic: runs.iter().map(|(_, run)| run.generation).max().unwrap_or_default() };
    let mut judged = Judged::default();
    for (term, window) in done.keys() {
        let is_it = |(of, run): &&(u64, &JobRun)| (of, run.term) == (window, *term);
        let ends: Vec<_> = runs.iter().filter(is_it).map(|(_, run)| (run.end, run.abandoned)).collect();
        if !ends.iter().any(|(end, abandoned)| *end == End::Success || *abandoned) {
            judged.violations.push(format!(
                "window {window} is recorded as done in term {term}, and no job of it has succeeded: {ends:?}"
            ));
        }
    }
    let (mut again, mut earlier) = (BTreeMap::<String, usize>::new(), 0);
    for (at, (window, first)) in runs.iter().enumerate() {
        if first.end != End::Success || first.abandoned {
            continue;
        }
        let mut is_next = true;
        for (other, second) in &runs[at + 1..] {
            if other > window || second.span.0 <= first.span.1 {
                continue;
            }
            match facts.repetition(*window, first, second) {
                Err(how) => {
                    judged.violations.push(format!(
                        "window {window} was done in term {}, {how} window {other} ran in term {}",
                        first.term, second.term
                    ));
                    break;
                }
                Ok(why) if is_next => {
                    *again.entry(format!("release {why}")).or_default() += 1;
                    earlier += usize::from(other < window);
                }
                Ok(_) => {}
            }
            is_next = false;
        }
    }
    let succeeded = runs.iter().filter(|(_, run)| run.end == End::Success);
    let windows: BTreeSet<u64> = succeeded.clone().map(|(window, _)| *window).collect();
    judged.shown = format!(
        "windows {} done, {} runs, {} of them succeeded; run again since the success was not known: {again:?}, {earlier} of them for an \
         earlier window",
        windows.len(),
        runs.len(),
        succeeded.count(),
    );
    judged
}

/// What is recorded, and of which topic.
struct Facts<'a> {
    recorded: &'a BTreeMap<u64, Recorded>,
    done: &'a BTreeMap<(u64, u64), u64>,
    /// How often the topic had been created again at the end: of the topics before, no journal is left.
    last_topic: u32,
}

impl Facts<'_> {
    /// How the release of the first run's term explains the second run of this window, or an earlier one, after the first one's success;
    /// an error is a violation.
    fn repetition(&self, window: u64, first: &JobRun, second: &JobRun) -> Result<&str, &'static str> {
        let (has_first_journal, has_second_journal) =
            (first.generation == self.last_topic, second.generation == self.last_topic);
        let same_lead = (first.generation, first.term) == (second.generation, second.term);
        let done_ms = self.done.get(&(first.term, window)).copied();
        let claimed_ms = self.recorded.get(&second.term).filter(|_| has_second_journal).and_then(|of| of.claimed_ms);
        let release = self.recorded.get(&first.term).filter(|_| has_first_journal).and_then(|of| of.release.as_ref());
        let is_before = |(offset, _): &&(u64, Value)| has_second_journal && *offset < second.term;
        let release = release.filter(is_before).map(|(_, release)| release);
        let why = release.map_or("none", |release| release["why"].as_str().unwrap_or("none"));
        let names_it = release
            .is_some_and(|release| release["exit"] == 0 && release["once"].as_str().map(number_of) == Some(window));
        let was_known = done_ms.zip(claimed_ms).is_some_and(|(done, claimed)| done + TICK_MS < claimed);
        if same_lead || names_it || was_known {
            Err("which was known, and")
        } else if ["exited", "failed"].contains(&why) {
            Err("was released without that, and")
        } else {
            Ok(why)
        }
    }
}

#[cfg(test)]
mod tests;
