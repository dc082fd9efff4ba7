//! `--priority` and `--preempt`: which candidate should lead, and requests to a leader of lower priority.

use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{election, with_both_electors};

with_both_electors! {
    /// Of the standbys, the one with the highest priority leads next, with any number of other standbys.
    fn the_highest_priority_claims_first(elector) {
        let election = election(elector);
        let mut first = of_priority(&election, 5).start();
        first.await_lead();
        let mut others: Vec<_> = [0, 10, 1, 0].map(|priority| of_priority(&election, priority).start()).into();
        for other in &mut others {
            other.await_event("standby");
        }
        await_hellos(&election, 5);
        first.signal(Signal::SIGTERM);
        election.await_witness(others[1].await_lead());
        others[1].signal(Signal::SIGTERM);
        election.await_witness(others[2].await_lead());
        assert_eq!([0, 3].map(|index| others[index].count("leading")), [0, 0]);
        others.push(first);
        election.close(others);
    }

    /// A leader of lower priority is asked to resign, and one of equal priority is not. After that the lead does not move again.
    fn a_leader_of_lower_priority_is_asked_to_stand_down(elector) {
        let election = election(elector);
        let mut low = of_priority(&election, 1).start();
        let term = low.await_lead();
        election.await_witness(term);
        let mut high = preempting(&election, 10).start();
        let asked = high.await_event("preempting");
        assert_eq!(["term", "priority", "own"].map(|field| asked.number(field)), [term, 1, 10]);
        assert!(asked.at - high.started_at >= u64::try_from(PREEMPT_AFTER.as_nanos()).expect("a small number"));
        let resigned = low.await_event("resigned");
        assert!(resigned.text("reason").contains("its priority is 10, and the leader's 1"), "{resigned:?}");
        assert_eq!(resigned.text("by"), "high");
        let next = high.await_lead();
        election.await_witness(next);
        assert_eq!(low.await_release().text("why"), "resigned");

        let mut equal = preempting(&election, 10).option("--name", "equal").start();
        equal.await_event("standby");
        // The wait is several times the usual time. The candidate of still higher priority shows below that requests work.
        assert!(equal.await_event_within("preempting", PREEMPT_AFTER * 5).is_none());
        let mut highest = preempting(&election, 11).option("--name", "highest").start();
        election.await_witness(highest.await_lead());
        assert_eq!([&low, &high, &equal, &highest].map(|candidate| candidate.count("leading")), [1, 1, 0, 1]);
        election.close([low, high, equal, highest]);
    }
}

const PREEMPT_AFTER: Duration = Duration::from_secs(1);

fn of_priority(election: &TestElection, priority: u16) -> Candidate {
    election.candidate().option("--priority", priority.to_string())
}

fn preempting(election: &TestElection, priority: u16) -> Candidate {
    of_priority(election, priority).option("--preempt", "1s").option("--name", "high")
}

/// Waits until this many candidates have sent a hello.
pub(crate) fn await_hellos(election: &TestElection, count: usize) {
    let key = format!("{}/hello", election.key()).into_bytes();
    wait::until_true("hellos", || {
        let records = harness::journal::read(Kafka::shared(), &election.topic());
        let hellos = records.into_iter().filter(|record| record.key == key).filter_map(|record| record.payload);
        let members: std::collections::BTreeSet<String> = hellos
            .map(|hello| serde_json::from_slice::<serde_json::Value>(&hello).expect("a line of JSON"))
            .map(|hello| hello["member"].to_string())
            .collect();
        members.len() >= count
    });
}
