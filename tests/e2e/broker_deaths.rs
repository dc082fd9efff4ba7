//! The default lease is long enough that the unclean death of any one broker does not affect a job.
//!
//! A record becomes readable only after the controller has taken the dead broker for dead: 9 s after the broker's last heartbeat with
//! Kafka's defaults, and later if the controller died too. A shorter lease ends the job.

use std::iter;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::cluster::{Cluster, coordinator_partition, move_leader};
use harness::election::TestElection;
use harness::journal::{Pen, RepeatedRecord};
use harness::wait;

use crate::PROGRAM;

/// What happens to a broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    ControllerDies,
    CoordinatorDies,
    /// A broker that is neither the partition's leader nor the active controller.
    FollowerDies,
    LeaderDies,
    /// The partition has a single replica, and no leader while its broker restarts; the topic still counts as the same.
    OnlyReplicaRestarts,
}

/// An election with a leader and a standby.
struct Setup {
    election: TestElection,
    candidates: [Running; 2],
    leader: usize,
    term: u64,
    lease: Duration,
}

impl Setup {
    fn new(cluster: &Cluster, elector: Elector, topic: &str, fault: Fault) -> Self {
        let election = TestElection::new(PROGRAM, &cluster.kafka(), elector);
        let witness = election.witness().set("--every-us", 20_000).set("--limit-ms", 600_000);
        let mut candidate = election.candidate().option("--topic", topic).job(witness.command());
        if fault == Fault::OnlyReplicaRestarts {
            candidate = candidate.lease("60s");
        }
        let mut candidates = [candidate.start(), candidate.start()];
        let (leader, term) = crate::await_leader(&mut candidates);
        election.await_witness(term);
        candidates[1 - leader].await_event("standby");
        let lease = Duration::from_millis(candidates[leader].await_event("started").number("lease_ms"));
        Self { election, candidates, leader, term, lease }
    }

    /// The time from the sending of a beat to the guard's deadline: the lease minus the kill margin.
    fn deadline_after(&self) -> Duration {
        self.lease * 49 / 50
    }

    /// The latest deadline that the job has read.
    fn deadline(&self) -> u64 {
        self.election.testimony().of(self.term).next_back().map_or(0, |line| line.deadline)
    }

    /// Waits until a beat that was sent after `at` has been read back, for a lease at most. Returns whether it has.
    fn has_beat_sent_after(&self, at: u64) -> bool {
        let renewed = at + u64::try_from(self.deadline_after().as_nanos()).expect("a small number");
        wait::poll_for(self.deadline_after(), || (self.deadline() > renewed).then_some(())).is_some()
    }

    /// Asserts that no job was stopped, and that there was no warning that a job might have to stop.
    fn assert_undisturbed(&self, fault: Fault) {
        let testimony = self.election.testimony();
        assert_eq!(testimony.signals().count(), 0, "{fault:?}: signals at the job");
        for event in ["fence_warning", "fenced", "stopping", "job_exited", "released", "superseded"] {
            let said = self.candidates[self.leader].count(event);
            assert_eq!(said, 0, "{fault:?}: {event}: {:?}", self.candidates[self.leader]);
        }
        assert_eq!(self.candidates[1 - self.leader].count("leading"), 0, "{fault:?}");
        assert_eq!(self.candidates.iter().find_map(warned_of_the_lease), None);
    }
}

/// The broker that a fault is for.
fn broker_for(fault: Fault, cluster: &Cluster, topic: &str, group: &str) -> usize {
    let leader = wait::until("a leader of the partition", || cluster.leader_of(topic, 0));
    let controller = wait::until("an active controller", || cluster.controller());
    match fault {
        Fault::ControllerDies => controller,
        Fault::CoordinatorDies => {
            wait::until("a coordinator", || cluster.leader_of("__consumer_offsets", coordinator_partition(group)))
        }
        Fault::FollowerDies => {
            let neither = |broker: &usize| *broker != leader && *broker != controller;
            (0..cluster.brokers().len()).find(neither).expect("one of three")
        }
        Fault::LeaderDies | Fault::OnlyReplicaRestarts => leader,
    }
}

/// The warning that the lease is too short for a broker's death, if this candidate logged it.
fn warned_of_the_lease(run: &Running) -> Option<String> {
    let warnings = run.events("warning");
    let message = warnings.iter().map(|warning| warning.text("message"));
    message.filter(|message| message.contains("broker.session.timeout.ms")).map(str::to_owned).next()
}

/// Asserts that a candidate with a short lease gets the warning.
fn is_warned_of_a_short_lease(cluster: &Cluster) {
    let election = TestElection::new(PROGRAM, &cluster.kafka(), Elector::Log);
    let run = election.candidate().lease("5s").start();
    let message = wait::until("a warning", || warned_of_the_lease(&run));
    assert!(message.starts_with("--lease 5s: too short for the unclean death of a broker"), "{message}");
    assert!(message.contains("9000 ms") && message.contains("18s is long enough"), "{message}");
    election.close([run]);
}

/// One cluster has all faults, one after the other: two of them would make each other slow.
#[test]
fn no_job_is_disturbed() {
    let mut cluster = Cluster::in_turn();
    is_warned_of_a_short_lease(&cluster);
    for fault in [
        Fault::FollowerDies,
        Fault::LeaderDies,
        Fault::CoordinatorDies,
        Fault::ControllerDies,
        Fault::OnlyReplicaRestarts,
    ] {
        // On a busy machine the brokers that are left may need longer than a lease is made for.
        let is_shown = (0..3).any(|number| is_undisturbed(&mut cluster, fault, &format!("{fault:?}-{number}")));
        assert!(is_shown, "{fault:?}: each time Kafka was away for nearly a lease");
    }
}

/// Causes a fault. Returns false if Kafka was away for so long that it shows nothing.
fn is_undisturbed(cluster: &mut Cluster, fault: Fault, topic: &str) -> bool {
    if fault == Fault::OnlyReplicaRestarts {
        cluster.kafka().create_topic(topic, &[("message.timestamp.type", "LogAppendTime")]);
    }
    let setups = Elector::ALL.map(|elector| Setup::new(cluster, elector, topic, fault));
    let group = setups.iter().find(|setup| setup.election.elector() == Elector::Group).expect("one of all");
    // The partitions have different leaders, so that a group member's session with its coordinator is not affected by these deaths.
    for topic in [topic, "__consumer_offsets"] {
        wait::until_true("replicas in sync", || cluster.is_in_sync(topic));
    }
    if fault == Fault::LeaderDies {
        // This broker is only the leader, because the controller's death is a separate case.
        let controller = wait::until("an active controller", || cluster.controller());
        let other = (controller + 1) % cluster.brokers().len();
        move_leader(&cluster.addresses(), topic, other).expect("a broker answers");
        wait::until_true("another leader", || cluster.leader_of(topic, 0) == Some(other));
    }
    let broker = broker_for(fault, cluster, topic, &group.election.group);
    // Another program's records wait as long for Kafka as a leader's heartbeats do.
    let anothers =
        RepeatedRecord::start(Pen::new(&cluster.kafka(), topic, &[]), "another".to_owned(), "record".to_owned());
    let begun = wait::now();
    if fault == Fault::OnlyReplicaRestarts {
        cluster.broker(broker).ask_to_shut_down();
        wait::until_true("a broker that has shut down", || !cluster.brokers()[broker].lives());
        cluster.broker(broker).end();
        wait::until_true("a partition without a leader", || cluster.leader_of(topic, 0).is_none());
        // This is longer than the time after which an unknown topic counts as deleted.
        wait::pause(Duration::from_secs(7));
        cluster.broker(broker).begin();
    } else {
        cluster.broker(broker).end();
    }
    let have_beats = setups.each_ref().map(|setup| setup.has_beat_sent_after(begun));
    // Its return disturbs no job either.
    if !cluster.brokers()[broker].is_begun() {
        cluster.broker(broker).begin();
    }
    wait::until_true("replicas in sync", || cluster.is_in_sync(topic));
    // The job is warned a heartbeat and a fence warning before the deadline, which are less than a quarter of these leases.
    let shows = anothers.longest_write() < setups[0].lease * 3 / 4;
    for (setup, has_beat) in iter::zip(setups, have_beats) {
        if shows {
            assert!(has_beat, "{fault:?}: no lease that is renewed within {:?}", setup.deadline_after());
            setup.assert_undisturbed(fault);
        }
        setup.election.close(setup.candidates);
    }
    shows
}
