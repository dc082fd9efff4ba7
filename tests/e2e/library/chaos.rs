//! Processes that are killed and stopped at random: two never act as the leader at the same time, and there is always a leader again.

use std::time::Duration;

use harness::candidate::Elector;
use harness::kafka::Kafka;
use harness::wait;
use harness::with_both_electors;
use neli_proto::random::Random;
use nix::sys::signal::Signal;

use super::test_election;
use super::worker::{Worker, leaders};

const LEASE: Duration = Duration::from_millis(600);

/// Random pauses. A failed test shows their seed.
#[expect(clippy::print_stdout, reason = "the output of a failed test")]
fn new_random() -> Random {
    let seed = wait::now();
    println!("the seed of the pauses is {seed}");
    Random::from_seed(seed)
}

with_both_electors! {
    fn two_processes_never_act_at_once_while_leaders_are_killed_and_stopped(elector) {
        let test_election = test_election(elector);
        let start = || Worker::start(&test_election, Kafka::shared().address(), LEASE);
        let mut workers: Vec<Worker> = (0..3).map(|_| start()).collect();
        let mut random = new_random();
        // The first term may be 0.
        let mut last = None;
        for round in 0..12 {
            // One that was killed may have led twice since the last look.
            let (term, leads) = wait::until("a leader", || {
                let later = leaders(&test_election).into_iter().rev().take_while(|(term, _)| Some(*term) > last);
                let mut ours = later.filter_map(|(term, pid)| {
                    Some((term, workers.iter().position(|worker| worker.process().pid == pid)?))
                });
                ours.next()
            });
            last = Some(term);
            wait::pause(random.up_to(LEASE));
            if round % 3 == 0 {
                workers[leads].process().signal(Signal::SIGKILL);
                workers[leads] = start();
            } else {
                workers[leads].process().signal(Signal::SIGSTOP);
                wait::until_true("another leader", || leaders(&test_election).iter().any(|(term, _)| Some(*term) > last));
                wait::pause(random.up_to(LEASE));
                workers[leads].process().signal(Signal::SIGCONT);
            }
        }
        drop(workers);
        test_election.assert_never_two();
        let terms = leaders(&test_election);
        assert!(terms.len() > 12, "{terms:?}");
    }
}
