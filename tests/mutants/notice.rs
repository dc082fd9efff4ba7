//! Runs each mutant with all tests that must notice it, and the tests without a mutant.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::copy::{Built, VARIABLE, root};
use crate::mutant::{Mutant, Notice};

/// The model's messages when it has found the breach that a mutant must cause.
const BREACHES: &[&str] = &[
    ": DeadlineMovedBack after ",
    ": KeptForgotten after ",
    ": RanAgain after ",
    ": ReleasedUnread after ",
    ": StartedLate after ",
    ": TakenForGone after ",
    ": TwoJobs after ",
    ": Unjudged after ",
    ": UnstartedKilled after ",
];

/// The messages of the comparison with the law.
const DIFFERENCE: &[&str] = &[
    "the verdict on ",
    "what is known after ",
    "what is known late after ",
    "the last record after ",
    "the last record known late after ",
];

/// A test of the copy that must notice a mutant.
struct Trial<'a> {
    mutant: &'a Mutant,
    program: &'a Path,
    test: &'static str,
    /// The test must print one of these: a failure for another reason does not count.
    says: Vec<&'static str>,
}

const LAW: &str = "the_fold_is_the_law";

/// The messages of the library's tests about a lease that is valid after its end, and about a task that was dropped without a wait for its
/// end.
const LEASE_BREACHES: &[&str] = &["valid after its end", "value: Lost {", "the callback has not run under the lease"];

const SCENARIOS: &str = "every_scenario_has_its_recorded_outcome";

/// The scenarios' messages when a scenario differs, or can't continue because an expected record was never sent.
const OTHERWISE: &[&str] = &["\n  actual: ", " was not sent"];

/// Runs the tests of the copy without a mutant and with each; returns the failures.
pub(crate) fn by_tests(mutants: &[&Mutant], built: &Built) -> Vec<String> {
    let mut trials = Vec::new();
    for mutant in mutants {
        for notice in mutant.noticed_by {
            let (program, test, says) = match notice {
                Notice::Chaos(_) => continue,
                Notice::Law => (built.law.as_path(), LAW, DIFFERENCE.to_vec()),
                Notice::Library(test) => (built.library.as_path(), *test, LEASE_BREACHES.to_vec()),
                Notice::Model(world) => (built.model.as_path(), *world, BREACHES.to_vec()),
                Notice::Node(test, says) => (built.node.as_path(), *test, vec![*says]),
                Notice::Scenarios => (built.scenarios.as_path(), SCENARIOS, OTHERWISE.to_vec()),
            };
            trials.push(Trial { mutant, program, test, says });
        }
    }
    let mut wrong = Vec::new();
    for program in [&built.law, &built.library, &built.model, &built.node, &built.scenarios] {
        let tests: BTreeSet<&str> =
            trials.iter().filter(|trial| trial.program == program).map(|trial| trial.test).collect();
        wrong.extend(fails_without_mutant(program, &tests));
    }
    let left = Mutex::new(trials.iter());
    let next = || left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let slots = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let slots: Vec<_> = (0..slots)
            .map(|_| scope.spawn(|| std::iter::from_fn(next).filter_map(survives).collect::<Vec<_>>()))
            .collect();
        wrong.extend(slots.into_iter().flat_map(|slot| slot.join().unwrap_or_else(|_| vec!["a panic".to_owned()])));
    });
    wrong
}

/// Without a mutant the tests must pass, or their failures would mean nothing.
fn fails_without_mutant(program: &Path, tests: &BTreeSet<&str>) -> Option<String> {
    if tests.is_empty() {
        return None;
    }
    let output = Command::new(program).arg("--exact").args(tests).env_remove(VARIABLE).output();
    let (is_success, text) = outcome(output);
    let all = format!("test result: ok. {} passed", tests.len());
    (!is_success || !text.contains(&all)).then(|| format!("without a mutant: {}\n{text}", program.display()))
}

fn survives(trial: &Trial<'_>) -> Option<String> {
    let Trial { mutant, program, test, says } = trial;
    let mut command = Command::new(program);
    command.args(["--exact", test]).env(VARIABLE, mutant.name).env("A_RULE_IS_BROKEN", "1").env("RUST_BACKTRACE", "0");
    let (is_success, text) = outcome(command.output());
    verdict(is_success, &text, says).map(|wrong| format!("{} ({}): {test} {wrong}\n{text}", mutant.name, mutant.breaks))
}

/// The problem of a test that ended in this way with an active mutant.
fn verdict(is_success: bool, text: &str, says: &[&str]) -> Option<&'static str> {
    if is_success {
        Some("did not notice it")
    } else if says.iter().any(|word| text.contains(word)) {
        None
    } else {
        Some("failed for another reason")
    }
}

fn outcome(output: std::io::Result<std::process::Output>) -> (bool, String) {
    match output {
        Ok(output) => {
            let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            (output.status.success(), text.concat())
        }
        Err(error) => (false, error.to_string()),
    }
}

/// Runs the chaos test with the copy's program, without a mutant and with each; returns the failures.
pub(crate) fn by_chaos(mutants: &[&Mutant], built: &Built) -> Option<String> {
    let mut trials = Vec::new();
    for mutant in mutants {
        for notice in mutant.noticed_by {
            if let Notice::Chaos(faults) = notice {
                trials.push(format!("{}={}", mutant.name, faults.join("+")));
            }
        }
    }
    if trials.is_empty() {
        return None;
    }
    let mut chaos = Command::new(env!("CARGO"));
    chaos.args(["test", "--locked", "--test", "chaos", "--", "--program"]).arg(&built.program);
    chaos.arg("--mutants").arg(trials.join(",")).current_dir(root()).stdin(Stdio::null());
    match chaos.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("the chaos: {status}")),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surviving_mutant_is_reported_and_so_is_a_failure_for_another_reason() {
        assert_eq!(verdict(false, "a world: TwoJobs after 7 steps", BREACHES), None);
        assert_eq!(verdict(true, "test result: ok", BREACHES), Some("did not notice it"));
        assert_eq!(verdict(false, "a world: BusyLoop after 7 steps", BREACHES), Some("failed for another reason"));
    }
}
