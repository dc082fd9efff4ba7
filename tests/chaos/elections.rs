//! Several elections in parallel, and the sum of their results.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use harness::judge::{Counts, nanos};
use harness::wait;

use crate::environment::Environment;
use crate::fault::Fault;
use crate::report::Outcome;
use crate::run::{self, Parameters};

/// The interval between two lines of progress.
const TELLS_EVERY: Duration = Duration::from_secs(60);

/// Runs all elections; returns whether all of them pass.
pub(crate) fn hold(elections: &[Parameters], environment: &Environment, progress: Option<&Path>) -> bool {
    let mut progress = progress.map(|path| File::create(path).expect("a file that can be written"));
    let began = wait::now();
    let outcomes: Vec<Option<Outcome>> = thread::scope(|scope| {
        let runs: Vec<_> =
            elections.iter().map(|parameters| scope.spawn(move || one(parameters, environment))).collect();
        let mut next = began + nanos(TELLS_EVERY);
        while !runs.iter().all(thread::ScopedJoinHandle::is_finished) {
            wait::pause(Duration::from_millis(200));
            if wait::now() >= next {
                next += nanos(TELLS_EVERY);
                if let Some(file) = &mut progress {
                    let minutes = (wait::now() - began) / nanos(Duration::from_secs(60));
                    writeln!(file, "{minutes:4} min: {}", environment.progress()).expect("a file that can be written");
                }
            }
        }
        runs.into_iter().map(|run| run.join().ok()).collect()
    });
    let mut all_is_well = true;
    let mut counts = Counts::default();
    let mut strikes: BTreeMap<Fault, u32> = BTreeMap::new();
    let (mut changes, mut latest, mut leaderless) = (0, 0, Duration::ZERO);
    for outcome in &outcomes {
        let Some(outcome) = outcome else {
            println!("chaos: an election gave up");
            all_is_well = false;
            continue;
        };
        println!("{}", outcome.text);
        if let Some(directory) = &outcome.directory {
            println!("  what happened is in {}", directory.display());
        }
        all_is_well &= outcome.violations.is_empty();
        counts = counts.and(&outcome.counts);
        changes += outcome.changes;
        latest = latest.max(outcome.latest);
        leaderless = leaderless.max(outcome.leaderless);
        for (fault, count) in &outcome.strikes {
            *strikes.entry(*fault).or_default() += count;
        }
    }
    let minutes = (wait::now() - began) / nanos(Duration::from_secs(60));
    println!(
        "chaos: {} elections in {minutes} min: {}",
        elections.len(),
        if all_is_well { "all is well" } else { "VIOLATED" }
    );
    println!("  {counts}");
    println!(
        "  changes to another candidate {changes}, latest beat after its deadline {:?}",
        Duration::from_nanos(latest)
    );
    println!("  longest without a leader outside of faults {leaderless:?}");
    let faults: Vec<String> = strikes.iter().map(|(fault, count)| format!("{fault:?} {count}")).collect();
    println!("  faults {}: {}", strikes.values().sum::<u32>(), faults.join(", "));
    all_is_well
}

/// Runs one of them. If it can't be checked, all stop.
fn one(parameters: &Parameters, environment: &Environment) -> Outcome {
    /// Stops all elections if this thread panics.
    struct Alarm<'a>(&'a Environment);
    impl Drop for Alarm<'_> {
        fn drop(&mut self) {
            if thread::panicking() {
                self.0.give_up();
            }
        }
    }
    let _alarm = Alarm(environment);
    run::run(parameters, environment)
}
