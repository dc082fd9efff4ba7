//! Recipes of the pages: lines of commands that are made of options and of other programs.

use std::fs;

use harness::candidate::{Elector, Running};
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;
use crate::roles::{are_all_led, candidate, close, led, numbers};

/// A semaphore: of five machines three work, one role each, and another takes the place of one that stops.
#[test]
fn a_semaphore_admits_three_machines() {
    let election = election(Elector::Log);
    let start = || candidate(&election, "3").option("--max-roles", "1").start();
    let mut candidates: Vec<Running> = (0..5).map(|_| start()).collect();
    let at_work = |candidates: &[Running]| candidates.iter().filter(|candidate| led(candidate).len() == 1).count();
    for left in [5, 4] {
        wait::until_true("three at work", || {
            are_all_led(&election, &candidates, &numbers(3)) && at_work(&candidates) == 3
        });
        assert!(candidates.iter().all(|candidate| led(candidate).len() <= 1), "{left} machines");
        if left == 5 {
            let busy = candidates.iter().position(|candidate| led(candidate).len() == 1).expect("three are");
            let mut stopped = candidates.swap_remove(busy);
            stopped.signal(Signal::SIGTERM);
            stopped.status();
        }
    }
    close(&election, candidates, &numbers(3));
}

/// `timeout` ends a run with 124, or with 137 if it has to use SIGKILL. Both are failures: they are tried again, and are the exit status at last.
#[test]
fn a_run_that_takes_too_long_has_failed() {
    let stubborn = "trap '' TERM; while :; do sleep 0.1; done";
    for (options, command, status) in [(&["0.3"][..], "exec sleep 600", 124), (&["-k", "0.2", "0.3"], stubborn, 137)] {
        let election = election(Elector::Log);
        let job = [&["timeout"], options, &["sh", "-c", command]].concat();
        let candidate = election.candidate().job(job).option("--once", "k").option("--retries", "1");
        let ended = election.directory().join("ended");
        let line = format!("echo ${{NELI_EXIT:-$((128 + NELI_SIGNAL))}} >> {}", ended.display());
        let mut run = candidate.option("--on-exit", line).start();
        assert_eq!(run.status(), status, "{run:?}");
        assert_eq!(run.count("job_started"), 2, "it is tried again");
        let ended = fs::read_to_string(&ended).expect("the hook has written it");
        assert_eq!(ended, format!("{status}\n{status}\n"), "as a shell shows it");
        assert_eq!(election.ask("status", &["--once", "k"]).status, 3, "it is not done");
    }
}
