//! The parts that all elections of a run share: the brokers, the machine, and the progress.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use harness::cluster::{Cluster, coordinator_partition, leader_of};
use harness::judge::Counts;
use harness::kafka::Kafka;
use harness::network::Wire;

use crate::run::Parameters;
use crate::special_runs::SpecialRun;

/// The shared parts of all elections. Only the first election breaks and repairs them; such a fault disturbs all elections.
pub(crate) struct Environment {
    cluster: RwLock<Cluster>,
    disturbed: Mutex<Vec<(u64, u64)>>,
    given_up: AtomicBool,
    counts: Mutex<Vec<Counts>>,
}

impl Environment {
    /// Brokers that have a wire for every candidate of all elections.
    pub(crate) fn new(cluster: Cluster, elections: usize) -> Self {
        Self {
            cluster: RwLock::new(cluster),
            disturbed: Mutex::default(),
            given_up: AtomicBool::new(false),
            counts: Mutex::new(vec![Counts::default(); elections]),
        }
    }

    /// Resets the counters for the next run.
    pub(crate) fn begin_anew(&self) {
        self.disturbed.lock().expect("no panic while it was locked").clear();
        self.given_up.store(false, Ordering::Relaxed);
    }

    pub(crate) fn cluster(&self) -> RwLockReadGuard<'_, Cluster> {
        self.cluster.read().expect("no panic while it was locked")
    }

    pub(crate) fn cluster_to_change(&self) -> RwLockWriteGuard<'_, Cluster> {
        self.cluster.write().expect("no panic while it was locked")
    }

    /// Changes the wire from one of an election's slots to a broker.
    pub(crate) fn wire(&self, parameters: &Parameters, slot: usize, broker: usize, change: impl FnOnce(&Wire)) {
        change(self.cluster().wire(candidate(parameters, slot), broker));
    }

    /// The Kafka for one of an election's slots, through its wires.
    pub(crate) fn kafka_of(&self, parameters: &Parameters, slot: usize) -> Kafka {
        self.cluster().kafka_of(candidate(parameters, slot))
    }

    /// The broker that leads a role's partition of an election's topic.
    pub(crate) fn leader_of(&self, group: &str, role: usize) -> Option<usize> {
        self.leader(&format!("{group}.neli"), i32::try_from(role).expect("a small number"))
    }

    /// Whether all replicas that an election needs are in sync, so that any broker can fail.
    pub(crate) fn is_whole(&self, group: &str) -> bool {
        let cluster = self.cluster();
        [&format!("{group}.neli"), "__consumer_offsets"].iter().all(|topic| cluster.is_in_sync(topic))
    }

    /// The broker that coordinates a group.
    pub(crate) fn coordinator_of(&self, group: &str) -> Option<usize> {
        self.leader("__consumer_offsets", coordinator_partition(group))
    }

    fn leader(&self, topic: &str, partition: i32) -> Option<usize> {
        // The lock is released first, so that no other thread waits for the answer.
        let kafka = self.cluster().kafka();
        leader_of(&kafka, topic, partition)
    }

    /// Marks a time span in which something shared was broken.
    pub(crate) fn disturb(&self, from: u64, until: u64) {
        self.disturbed.lock().expect("no panic while it was locked").push((from, until));
    }

    /// The time spans in which something shared was broken.
    pub(crate) fn disturbed(&self) -> Vec<(u64, u64)> {
        self.disturbed.lock().expect("no panic while it was locked").clone()
    }

    /// Notes that an election has shown a violation, so that the others can stop.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Records an election's progress.
    pub(crate) fn has_come_to(&self, election: usize, counts: Counts) {
        self.counts.lock().expect("no panic while it was locked")[election] = counts;
    }

    /// The progress of all, in one line.
    pub(crate) fn progress(&self) -> String {
        let counts = self.counts.lock().expect("no panic while it was locked").clone();
        let all = counts.iter().fold(Counts::default(), Counts::and);
        let mut text = format!("{all} (");
        for (at, one) in counts.iter().enumerate() {
            let _ = write!(text, "{}{}", if at == 0 { "" } else { " " }, one.leaderships);
        }
        text + ")"
    }
}

fn candidate(parameters: &Parameters, slot: usize) -> usize {
    if parameters.special_run.and_then(SpecialRun::shared_conditions).is_some() {
        return 0;
    }
    parameters.election * parameters.candidates + slot
}
