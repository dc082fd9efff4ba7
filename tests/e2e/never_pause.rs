//! The recipe for work that must never pause: two elections, on machines of their own, each of which runs the job.

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use nix::sys::signal::Signal;

use crate::{election, with_both_electors};

with_both_electors! {
    /// Whatever happens to one of the two, handovers and deaths, the job of the other runs: there is always one, and never two of one
    /// election.
    fn one_of_two_elections_always_runs_the_job(elector) {
        let mut halves = [Half::new(election(elector)), Half::new(election(elector))];
        for round in 0..6 {
            let signal = if round % 3 == 2 { Signal::SIGKILL } else { Signal::SIGTERM };
            halves[round % 2].hand_over(signal);
        }
        let spans = halves.map(Half::close);
        // From the moment both run until one is ended for good.
        let begin = spans.iter().map(|spans| spans[0].0).max().expect("two");
        let end = spans.iter().map(|spans| spans[spans.len() - 1].1).min().expect("two");
        let mut all = spans.concat();
        all.sort_unstable();
        let mut covered = begin;
        for (first, last) in all {
            assert!(first <= covered || covered >= end, "no job ran for {} ms", (first - covered) / 1_000_000);
            covered = covered.max(last);
        }
        assert!(covered >= end);
    }
}

/// One of the two elections, and the candidates on its machines.
struct Half {
    election: TestElection,
    leader: Running,
    standby: Running,
}

impl Half {
    fn new(election: TestElection) -> Self {
        let mut leader = election.candidate().start();
        election.await_witness(leader.await_lead());
        let mut standby = election.candidate().start();
        standby.await_event("standby");
        Self { election, leader, standby }
    }

    /// The leader ends, by this signal, and the standby's job runs; another stands by then.
    fn hand_over(&mut self, signal: Signal) {
        self.leader.signal(signal);
        self.election.await_witness(self.standby.await_lead());
        self.leader.status();
        let mut next = self.election.candidate().start();
        next.await_event("standby");
        self.leader = std::mem::replace(&mut self.standby, next);
    }

    /// When its jobs ran, the first and the last instruction of each that is known, in nanoseconds.
    fn close(self) -> Vec<(u64, u64)> {
        let Self { election, leader, standby } = self;
        // The standby first: nobody leads after the leader.
        standby.signal(Signal::SIGTERM);
        election.close([standby, leader]);
        election.testimony().spans().into_values().collect()
    }
}
