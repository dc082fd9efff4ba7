//! Several brokers, and a separate network path from each candidate to each broker.
//!
//! Each broker has a listener for each candidate, and advertises the address of that candidate's wire on it. So every connection of a
//! candidate goes through its own wires, also if it got the address from another broker. The test itself connects directly.

use std::io;
use std::iter;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use rdkafka::metadata::MetadataPartition;
use rdkafka::producer::{BaseProducer, Producer};

use crate::in_turn::{InTurn, Turn};
use crate::kafka::{Broker, Kafka};
use crate::network::{Network, Wire};
use crate::node::{Door, Node, OFFSETS_PARTITIONS, QUIET, free_port};
use crate::request::Request;
use crate::wait;

/// The timeout of a request to the cluster.
const PATIENCE_MS: i32 = 5_000;

/// Brokers that are also controllers: each of them votes in the quorum.
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Broker>,
    /// For each candidate, its wire to each broker.
    wires: Vec<Vec<Wire>>,
    _network: Network,
}

impl Cluster {
    /// `count` brokers that accept requests, with wires for `candidates` candidates.
    #[must_use]
    pub fn start(brokers: usize, candidates: usize) -> Self {
        Self::of(brokers, candidates, |node| node)
    }

    /// Three brokers of the whole test run, for tests that stop none of them: Kafka's default sessions cost a quarter of the heartbeats.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::of(3, 0, |node| node.with_default_session().with_setting(QUIET)))
    }

    /// Three brokers that one test at a time may kill, with wires for a candidate and with Kafka's default sessions. All three run when its turn
    /// begins; topics of other tests remain.
    pub fn in_turn() -> Turn<Self> {
        static CLUSTER: InTurn<Cluster> = InTurn::new();
        CLUSTER.take(|| Self::with_default_sessions(3, 1), Self::await_all, Self::launch_ended)
    }

    /// Like [`Cluster::start`], but the controller notices a broker's death as late as with Kafka's defaults.
    #[must_use]
    pub fn with_default_sessions(brokers: usize, candidates: usize) -> Self {
        Self::of(brokers, candidates, Node::with_default_session)
    }

    fn of(brokers: usize, candidates: usize, adjust: impl Fn(Node) -> Node) -> Self {
        let network = Network::start();
        let mut wires: Vec<Vec<Wire>> = iter::repeat_with(Vec::new).take(candidates).collect();
        let mut doors = Vec::new();
        for _ in 0..brokers {
            let of_broker = wires.iter_mut().map(|wires| {
                let port = free_port();
                let wire = network.wire(SocketAddr::from(([127, 0, 0, 1], port)));
                let door = Door { port, advertised: wire.port };
                wires.push(wire);
                door
            });
            doors.push(of_broker.collect());
        }
        let nodes: Vec<Node> = Node::cluster(doors).into_iter().map(adjust).collect();
        let last = nodes.len() - 1;
        // The last of several brokers gets a disk that can be filled, if this machine allows mounting one.
        let place = |(index, node)| Broker::of(node, index > 0 && index == last);
        let mut brokers: Vec<Broker> = iter::zip(0.., nodes).map(place).collect();
        // No broker becomes ready before a majority of them runs, so all are started first.
        brokers.iter_mut().for_each(Broker::launch);
        brokers.iter().for_each(Broker::await_ready);
        let cluster = Self { brokers, wires, _network: network };
        cluster.await_whole();
        cluster
    }

    /// Starts the brokers that were ended: at the end of the process nobody removes the directory, and the disk, of one that does not run.
    fn launch_ended(&mut self) {
        self.brokers.iter_mut().filter(|broker| !broker.is_begun()).for_each(Broker::launch);
    }

    fn await_all(&mut self) {
        self.brokers.iter().for_each(Broker::await_ready);
        self.await_whole();
    }

    /// Direct access to the cluster, not through the wires.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        Kafka::of_all(&self.addresses())
    }

    /// The cluster for this candidate, through its wires.
    #[must_use]
    pub fn kafka_of(&self, candidate: usize) -> Kafka {
        Kafka::of_all(&self.wires[candidate].iter().map(|wire| format!("127.0.0.1:{}", wire.port)).collect::<Vec<_>>())
    }

    /// The wire from a candidate to a broker.
    #[must_use]
    pub fn wire(&self, candidate: usize, broker: usize) -> &Wire {
        &self.wires[candidate][broker]
    }

    /// The brokers.
    #[must_use]
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// Whether the last broker's disk can be filled.
    #[must_use]
    pub fn has_a_small_disk(&self) -> bool {
        self.brokers.last().is_some_and(Broker::has_a_small_disk)
    }

    /// One of the brokers.
    pub fn broker(&mut self, index: usize) -> &mut Broker {
        &mut self.brokers[index]
    }

    /// The broker that leads a partition according to the cluster's metadata.
    #[must_use]
    pub fn leader_of(&self, topic: &str, partition: i32) -> Option<usize> {
        leader_of(&self.kafka(), topic, partition)
    }

    /// The broker that is the active controller, according to the brokers that are alive.
    #[must_use]
    pub fn controller(&self) -> Option<usize> {
        let living = self.brokers.iter().filter(|broker| broker.lives());
        let (_, leader) = living.filter_map(Broker::quorum).filter(|(_, leader)| *leader > 0).max()?;
        usize::try_from(leader - 1).ok()
    }

    /// Whether all replicas of a topic are in sync, so that any broker can die without loss.
    #[must_use]
    pub fn is_in_sync(&self, topic: &str) -> bool {
        let client: BaseProducer = self.kafka().client().create().expect("a client");
        let Ok(metadata) = client.client().fetch_metadata(Some(topic), Duration::from_secs(2)) else { return false };
        let partitions = metadata.topics().first().map_or(&[][..], |topic| topic.partitions());
        let whole = |partition: &MetadataPartition| partition.isr().len() == partition.replicas().len();
        !partitions.is_empty() && partitions.iter().all(whole)
    }

    /// Every broker's `HOST:PORT` for direct connections.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.brokers.iter().map(Broker::address).collect()
    }

    /// Waits until every broker knows of every broker.
    fn await_whole(&self) {
        for broker in &self.brokers {
            let client: BaseProducer = broker.kafka().client().create().expect("a client");
            wait::until_true("a cluster that is whole", || {
                let metadata = client.client().fetch_metadata(None, wait::PATIENCE);
                metadata.is_ok_and(|metadata| metadata.brokers().len() == self.brokers.len())
            });
        }
    }
}

/// The broker that leads a partition according to this Kafka's metadata.
#[must_use]
pub fn leader_of(kafka: &Kafka, topic: &str, partition: i32) -> Option<usize> {
    let client: BaseProducer = kafka.client().create().expect("a client");
    let metadata = client.client().fetch_metadata(Some(topic), Duration::from_secs(2)).ok()?;
    let partitions = metadata.topics().first()?.partitions();
    let leader = partitions.iter().find(|found| found.id() == partition)?.leader();
    usize::try_from(leader - 1).ok()
}

/// The partition of `__consumer_offsets` whose leader coordinates a group.
#[must_use]
pub fn coordinator_partition(group: &str) -> i32 {
    // Kafka takes Java's `String.hashCode` without its sign.
    let hash = group.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % OFFSETS_PARTITIONS
}

/// Makes one broker the preferred leader of partition 0 of a topic, and requests its election.
///
/// # Errors
///
/// No broker answered. [`Cluster::leader_of`] shows whether the election took place.
pub fn move_leader(addresses: &[String], topic: &str, to: usize) -> io::Result<()> {
    let others = (0..addresses.len()).filter(|other| *other != to);
    let replicas: Vec<i32> =
        iter::once(to).chain(others).map(|broker| i32::try_from(broker + 1).expect("a small number")).collect();
    ask(addresses, &reassignment(topic, &replicas))?;
    ask(addresses, &preferred_election(topic))
}

/// Sends a request to the first broker that answers; that broker forwards it to the controller.
fn ask(addresses: &[String], request: &Request) -> io::Result<()> {
    let mut answers = addresses.iter().map(|address| request.send(address));
    let answered = answers.by_ref().find(Result::is_ok);
    answered.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into())).map(drop)
}

/// `AlterPartitionReassignments`, version 0: the same replicas with another preferred one.
fn reassignment(topic: &str, replicas: &[i32]) -> Request {
    let mut request = Request::new(45, 0);
    request.no_tags();
    request.i32(PATIENCE_MS);
    request.compact_length(1);
    request.compact_text(topic);
    request.compact_length(1);
    request.i32(0);
    request.compact_length(replicas.len());
    for replica in replicas {
        request.i32(*replica);
    }
    for _ in ["partition", "topic", "request"] {
        request.no_tags();
    }
    request
}

/// `ElectLeaders`, version 1: elects the preferred replica.
fn preferred_election(topic: &str) -> Request {
    let mut request = Request::new(43, 1);
    request.i8(0);
    request.i32(1);
    request.text(topic);
    request.i32(1);
    request.i32(0);
    request.i32(PATIENCE_MS);
    request
}
