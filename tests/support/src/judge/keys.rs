use std::collections::BTreeMap;

use super::recorded::{Recorded, TICK_MS};
use super::{End, JobRun, Judged};

/// The violation that a slot has not seen the key after `last` done. `present` is the number of each slot's present key: a slot takes the
/// next one when its candidate says that its key is done.
#[must_use]
pub fn not_all_are_done(present: &[usize], last: usize) -> Option<String> {
    let is_behind = present.iter().any(|key| *key <= last);
    is_behind.then(|| format!("not all keys up to {last} are done in the end: the slots are at {present:?}"))
}

/// Compares the ends that the jobs recorded with what candidates took for done (the first `passed` keys), and with the facts. `runs` are
/// all runs, each with the number of its key.
#[must_use]
pub fn judge(passed: usize, runs: &[(usize, &JobRun)], recorded: &BTreeMap<u64, Recorded>) -> Judged {
    let mut violations = Vec::new();
    let mut by_key: BTreeMap<usize, Vec<&JobRun>> = BTreeMap::new();
    for (key, job_run) in runs {
        by_key.entry(*key).or_default().push(job_run);
    }
    for key in 0..passed {
        let runs = by_key.get(&key).map_or(&[][..], Vec::as_slice);
        if !runs.iter().any(|run| run.end == End::Success) {
            violations.push(format!("candidates have taken key {key} for done, and no job of it has succeeded"));
        }
    }
    let mut again: BTreeMap<String, usize> = BTreeMap::new();
    for (key, runs) in &mut by_key {
        runs.sort_by_key(|run| run.term);
        for first in runs.iter().filter(|run| run.end == End::Success && !run.abandoned) {
            let mut is_next = true;
            for second in runs.iter().filter(|run| run.term > first.term) {
                let terms = (first.term, second.term);
                match repetition(terms, recorded) {
                    Err(how) => {
                        violations
                            .push(format!("key {key} was done in term {}, {how} ran in term {}", terms.0, terms.1));
                        break;
                    }
                    Ok(why) if is_next => *again.entry(format!("release {why}")).or_default() += 1,
                    Ok(_) => {}
                }
                is_next = false;
            }
        }
    }
    let succeeded = runs.iter().filter(|(_, run)| run.end == End::Success).count();
    let shown = format!(
        "keys {passed} done, {} runs, {succeeded} of them succeeded; run again since the success was not known: {again:?}",
        runs.len()
    );
    Judged { shown, violations }
}

/// How the release of the earlier term explains a run in the later term after a success in the earlier one; an error is a violation.
fn repetition(terms: (u64, u64), recorded: &BTreeMap<u64, Recorded>) -> Result<&str, &'static str> {
    let nothing = Recorded::default();
    let claimed_ms = recorded.get(&terms.1).and_then(|of| of.claimed_ms);
    let first = recorded.get(&terms.0);
    let done_ms = first.unwrap_or(&nothing).done_ms;
    let release = first.and_then(|of| of.release.as_ref()).filter(|(offset, _)| *offset < terms.1);
    let release = release.map(|(_, release)| release);
    let why = release.map_or("none", |release| release["why"].as_str().unwrap_or("none"));
    let names_it = release.is_some_and(|release| release["once"].is_string() && release["exit"] == 0);
    let was_known = done_ms.zip(claimed_ms).is_some_and(|(done, claimed)| done + TICK_MS < claimed);
    if names_it || was_known {
        Err("which was known, and")
    } else if ["exited", "failed"].contains(&why) {
        Err("was released without that, and")
    } else {
        Ok(why)
    }
}

#[cfg(test)]
mod tests;
