//! The recipe for work that must never pause: two elections on separate machines, both of which run the job.

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use nix::sys::signal::Signal;

use crate::election;

/// During handovers and deaths in one election, the job of the other runs. So there is always one job, and never two of one election.
#[test]
fn one_of_two_elections_always_runs_the_job() {
    let mut halves = [Half::new(election(Elector::Group)), Half::new(election(Elector::Group))];
    for round in 0..6 {
        let signal = if round % 3 == 2 { Signal::SIGKILL } else { Signal::SIGTERM };
        halves[round % 2].hand_over(signal);
    }
    let spans = halves.map(Half::close);
    // The time span from when both jobs run until one of the elections ends.
    let begin = spans.iter().map(|spans| spans[0].0).max().expect("there are two elections");
    let end = spans.iter().map(|spans| spans[spans.len() - 1].1).min().expect("there are two elections");
    let mut all = spans.concat();
    all.sort_unstable();
    let mut covered = begin;
    for (first, last) in all {
        assert!(first <= covered || covered >= end, "no job ran for {} ms", (first - covered) / 1_000_000);
        covered = covered.max(last);
    }
    assert!(covered >= end);
}

/// One of the two elections, with its candidates.
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

    /// Ends the leader by this signal, waits for the standby's job, and starts another standby.
    fn hand_over(&mut self, signal: Signal) {
        self.leader.signal(signal);
        self.election.await_witness(self.standby.await_lead());
        self.leader.status();
        let mut next = self.election.candidate().start();
        next.await_event("standby");
        self.leader = std::mem::replace(&mut self.standby, next);
    }

    /// Ends the election, and returns the first and last known instruction of each job, in nanoseconds.
    fn close(self) -> Vec<(u64, u64)> {
        let Self { election, leader, standby } = self;
        // The standby is stopped first, so that it does not lead when the leader is stopped.
        standby.signal(Signal::SIGTERM);
        election.close([standby, leader]);
        election.testimony().spans().into_values().collect()
    }
}
