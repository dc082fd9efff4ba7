//! A candidate whose runs fail leaves a vacancy to the other candidates for longer and longer times.

use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{election, with_both_electors};

with_both_electors! {
    /// A candidate whose runs failed does not lead again while another one stands by, with each choice of the group.
    fn after_failed_runs_the_others_lead_first(elector) {
        let election = election(elector);
        let mut failing = failing(&election).start();
        let term = failing.await_lead();
        wait::until_true("failed runs", || failing.count("restarting") >= 4);
        let mut others = [election.candidate().start(), election.candidate().start()];
        for other in &mut others {
            other.await_event("standby");
        }
        resign(&election, term);
        let (first, next) = crate::await_leader(&mut others);
        election.await_witness(next);
        // Its back-off has ended, but the other candidate leads.
        resign(&election, next);
        let second = &mut others[1 - first];
        election.await_witness(second.await_lead());
        assert_eq!(failing.count("leading"), 1);
        election.close(others.into_iter().chain([failing]));
    }

    /// A lone candidate leads again after its back-off (500 ms, doubled by each failed run), and not much later.
    fn a_lone_candidate_leads_again_after_its_back_off(elector) {
        let election = election(elector);
        let mut failing = failing(&election).lease("3s").start();
        let term = failing.await_lead();
        wait::until_true("three failed runs", || failing.count("restarting") >= 3);
        failing.guard().signal(Signal::SIGKILL);
        let released = failing.await_release();
        let failed = failing.events("restarting").iter().filter(|event| event.number("term") == term).count();
        let next = failing.await_event("leading");
        let waited = Duration::from_nanos(next.at - released.at);
        let back_off = Duration::from_millis(500) * 2_u32.pow(u32::try_from(failed).expect("a small number") - 1);
        // The test reads a log line slightly after the event.
        assert!(waited + Duration::from_millis(500) > back_off, "{waited:?} after {failed} failed runs");
        assert!(waited < back_off + Duration::from_secs(10), "{waited:?} after {failed} failed runs");
        election.close([failing]);
    }
}

/// A candidate whose runs all end with 1, each after a longer delay than the one before.
fn failing(election: &TestElection) -> Candidate {
    let candidate = election.candidate().job(["sh", "-c", "exit 1"]).option("--restart", "always");
    candidate.option("--restart-delay", "100ms").option("--restart-limit", "none")
}

fn resign(election: &TestElection, term: u64) {
    let text = format!(r#"{{"v":1,"kind":"request","what":"resign","term":{term},"by":"me","reason":"why"}}"#);
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[text.as_bytes()]);
}
