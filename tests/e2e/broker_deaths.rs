//! The default lease is long enough that the unclean death of any one broker does not affect a job.
//!
//! A record becomes readable only after the controller has taken the dead broker for dead: 9 s after the broker's last heartbeat with
//! Kafka's defaults, and later if the controller died too. A shorter lease ends the job.

use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::cluster::{Cluster, coordinator_partition, move_leader};
use harness::election::TestElection;
use harness::wait;

use crate::PROGRAM;

/// A broker's part in the cluster and in its elections.
#[derive(Clone, Copy, Debug)]
enum Part {
    Controller,
    Coordinator,
    /// Neither the partition's leader nor the active controller.
    Follower,
    Leader,
}

/// An election with a leader and a standby.
struct Setup {
    election: TestElection,
    candidates: [Running; 2],
    leader: usize,
    term: u64,
    /// The time from the sending of a beat to the guard's deadline: the lease minus the kill margin.
    deadline_after: Duration,
}

impl Setup {
    /// With the default timings.
    fn new(cluster: &Cluster, elector: Elector, topic: &str) -> Self {
        Self::with(cluster, elector, topic, |candidate| candidate)
    }

    fn with(cluster: &Cluster, elector: Elector, topic: &str, options: impl Fn(Candidate) -> Candidate) -> Self {
        let election = TestElection::new(PROGRAM, &cluster.kafka(), elector);
        let witness = election.witness().set("--every-us", 20_000).set("--limit-ms", 600_000);
        let candidate = options(election.candidate().option("--topic", topic).job(witness.command()));
        let mut candidates = [candidate.start(), candidate.start()];
        let (leader, term) = crate::await_leader(&mut candidates);
        election.await_witness(term);
        candidates[1 - leader].await_event("standby");
        let lease = Duration::from_millis(candidates[leader].await_event("started").number("lease_ms"));
        Self { election, candidates, leader, term, deadline_after: lease * 49 / 50 }
    }

    /// The latest deadline that the job has read.
    fn deadline(&self) -> u64 {
        self.election.testimony().of(self.term).next_back().map_or(0, |line| line.deadline)
    }

    /// The shortest time to the deadline since then.
    fn least_left(&self, since: u64) -> Duration {
        let testimony = self.election.testimony();
        let lines = testimony.of(self.term).filter(|line| line.at > since);
        Duration::from_nanos(lines.map(|line| line.deadline.saturating_sub(line.at)).min().expect("it ran"))
    }

    /// Waits until a beat that was sent after `at` has been read back.
    fn await_beat_sent_after(&self, at: u64) {
        let renewed = at + u64::try_from(self.deadline_after.as_nanos()).expect("a small number");
        // On a busy machine brokers need long; the lease is the bound.
        let is_renewed = wait::poll_for(self.deadline_after, || (self.deadline() > renewed).then_some(()));
        assert!(is_renewed.is_some(), "no lease that is renewed within {:?}", self.deadline_after);
    }

    /// Asserts that no job was stopped, and that there was no warning that a job might have to stop.
    fn assert_undisturbed(&self, what: &str) {
        let testimony = self.election.testimony();
        assert_eq!(testimony.signals().count(), 0, "{what}: signals at the job");
        for event in ["fence_warning", "fenced", "stopping", "job_exited", "released", "superseded"] {
            let said = self.candidates[self.leader].count(event);
            assert_eq!(said, 0, "{what}: {event}: {:?}", self.candidates[self.leader]);
        }
        assert_eq!(self.candidates[1 - self.leader].count("leading"), 0, "{what}");
    }
}

/// The broker with this part, which will be killed.
fn broker_of(part: Part, cluster: &Cluster, topic: &str, group: &str) -> usize {
    let leader = wait::until("a leader of the partition", || cluster.leader_of(topic, 0));
    let controller = wait::until("an active controller", || cluster.controller());
    match part {
        Part::Controller => controller,
        Part::Coordinator => {
            wait::until("a coordinator", || cluster.leader_of("__consumer_offsets", coordinator_partition(group)))
        }
        Part::Follower => {
            let neither = |broker: &usize| *broker != leader && *broker != controller;
            (0..cluster.brokers().len()).find(neither).expect("one of three")
        }
        Part::Leader => leader,
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

/// A broker of each part is killed by SIGKILL and restarted, one after the other.
#[test]
fn no_job_is_disturbed_at_the_defaults() {
    let mut cluster = Cluster::with_default_sessions(3, 0);
    is_warned_of_a_short_lease(&cluster);
    let topic = "broker-deaths";
    let setups = Elector::ALL.map(|elector| Setup::new(&cluster, elector, topic));
    let group = setups.iter().find(|setup| setup.election.elector() == Elector::Group).expect("one of all");
    let group = group.election.group.clone();
    for part in [Part::Follower, Part::Leader, Part::Coordinator, Part::Controller] {
        // The partitions have different leaders, so that a group member's session with its coordinator is not affected by these deaths.
        for topic in [topic, "__consumer_offsets"] {
            wait::until_true("replicas in sync", || cluster.is_in_sync(topic));
        }
        if matches!(part, Part::Leader) {
            // This broker is only the leader, because the controller's death is a separate case.
            let controller = wait::until("an active controller", || cluster.controller());
            let other = (controller + 1) % cluster.brokers().len();
            move_leader(&cluster.addresses(), topic, other).expect("a broker answers");
            wait::until_true("another leader", || cluster.leader_of(topic, 0) == Some(other));
        }
        let broker = broker_of(part, &cluster, topic, &group);
        let killed = wait::now();
        cluster.broker(broker).end();
        for setup in &setups {
            setup.await_beat_sent_after(killed);
            setup.assert_undisturbed(&format!("death of the {part:?}"));
        }
        let left: Vec<Duration> = setups.iter().map(|setup| setup.least_left(killed)).collect();
        println!("death of broker {broker}, the {part:?}: at the least {left:?} of the lease were left");
        cluster.broker(broker).begin();
    }
    for setup in setups {
        setup.assert_undisturbed("when all was over");
        assert_eq!(setup.candidates.iter().find_map(warned_of_the_lease), None);
        setup.election.close(setup.candidates);
    }
}

/// A partition with a single replica has no leader while its broker restarts. The topic still counts as the same.
#[test]
fn a_partition_without_a_leader_for_seconds_disturbs_no_job() {
    let mut cluster = Cluster::start(3, 0);
    // On a busy machine a broker may need nearly a lease to stop and to start, and the lease can't be longer.
    assert!((0..3).any(|number| is_undisturbed_by_a_restart(&mut cluster, &format!("one-replica-{number}"))));
}

/// Restarts the broker of a topic with one replica. Returns false if that took so long that it shows nothing.
fn is_undisturbed_by_a_restart(cluster: &mut Cluster, topic: &str) -> bool {
    cluster.kafka().create_topic(topic, &[("message.timestamp.type", "LogAppendTime")]);
    let setups = Elector::ALL.map(|elector| Setup::with(cluster, elector, topic, |candidate| candidate.lease("60s")));
    let leader = wait::until("a leader of the partition", || cluster.leader_of(topic, 0));
    let stopped = wait::now();
    let broker = cluster.broker(leader);
    broker.ask_to_shut_down();
    wait::until_true("a broker that has shut down", || !broker.lives());
    broker.end();
    wait::until_true("a partition without a leader", || cluster.leader_of(topic, 0).is_none());
    // This is longer than the time after which an unknown topic counts as deleted.
    wait::pause(Duration::from_secs(7));
    cluster.broker(leader).begin();
    let begun = wait::now();
    let is_soon = Duration::from_nanos(begun - stopped) < Duration::from_secs(35);
    for setup in setups {
        if is_soon {
            setup.await_beat_sent_after(begun);
            setup.assert_undisturbed("a restart of the only replica's broker");
        }
        setup.election.close(setup.candidates);
    }
    is_soon
}
