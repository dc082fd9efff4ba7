//! Several brokers, and a way of its own for each candidate to each of them.
//!
//! Each broker has a listener for each candidate, and advertises the wire that leads there in its place: whatever a
//! candidate is told of the cluster, it goes by its own wires. We ourselves go past them all.

use std::io;
use std::iter;
use std::net::SocketAddr;
use std::time::Duration;

use rdkafka::metadata::MetadataPartition;
use rdkafka::producer::{BaseProducer, Producer};

use crate::kafka::{Broker, Kafka};
use crate::network::{Network, Wire};
use crate::node::{Door, Node, OFFSETS_PARTITIONS, free_port};
use crate::request::Request;
use crate::wait;

/// How long the cluster may take for what it is asked.
const PATIENCE_MS: i32 = 5_000;

/// Brokers that are controllers, too: each has a vote.
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Broker>,
    /// Each candidate's, to each broker.
    wires: Vec<Vec<Wire>>,
    _network: Network,
}

impl Cluster {
    /// So many brokers, that take requests, and wires for so many candidates.
    #[must_use]
    pub fn start(brokers: usize, candidates: usize) -> Self {
        Self::of(brokers, candidates, |node| node)
    }

    /// The same, of brokers that notice each other's deaths as late as Kafka does by default.
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
        // The last of several gets a disk that can be filled, where we may make one.
        let place = |(index, node)| Broker::of(node, index > 0 && index == last);
        let mut brokers: Vec<Broker> = iter::zip(0.., nodes).map(place).collect();
        // None is ready before most of them are there.
        brokers.iter_mut().for_each(Broker::launch);
        brokers.iter().for_each(Broker::await_ready);
        let cluster = Self { brokers, wires, _network: network };
        cluster.await_whole();
        cluster
    }

    /// The Kafka that they are, past all wires.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        Kafka::of_all(&self.addresses())
    }

    /// The Kafka that they are to a candidate.
    #[must_use]
    pub fn kafka_of(&self, candidate: usize) -> Kafka {
        Kafka::of_all(&self.wires[candidate].iter().map(|wire| format!("127.0.0.1:{}", wire.port)).collect::<Vec<_>>())
    }

    /// The way from a candidate to a broker.
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

    /// Which broker leads a partition, as far as the cluster says.
    #[must_use]
    pub fn leader_of(&self, topic: &str, partition: i32) -> Option<usize> {
        leader_of(&self.kafka(), topic, partition)
    }

    /// Which broker is the active controller, as far as the living ones know.
    #[must_use]
    pub fn controller(&self) -> Option<usize> {
        let living = self.brokers.iter().filter(|broker| broker.lives());
        let (_, leader) = living.filter_map(Broker::quorum).filter(|(_, leader)| *leader > 0).max()?;
        usize::try_from(leader - 1).ok()
    }

    /// Whether each replica of a topic is in sync: whichever broker dies next, the others have everything.
    #[must_use]
    pub fn is_in_sync(&self, topic: &str) -> bool {
        let client: BaseProducer = self.kafka().client().create().expect("a client");
        let Ok(metadata) = client.client().fetch_metadata(Some(topic), Duration::from_secs(2)) else { return false };
        let partitions = metadata.topics().first().map_or(&[][..], |topic| topic.partitions());
        let whole = |partition: &MetadataPartition| partition.isr().len() == partition.replicas().len();
        !partitions.is_empty() && partitions.iter().all(whole)
    }

    /// Every broker's `HOST:PORT`, past all wires.
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

/// Which broker leads a partition, as far as this Kafka says.
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
    // Java's `String.hashCode`, less its sign, as Kafka takes it.
    let hash = group.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % OFFSETS_PARTITIONS
}

/// Makes a broker of the cluster of these addresses the preferred leader of partition 0 of a topic, and lets it lead.
///
/// # Errors
/// No broker answered. Whether one did as it was asked, [`Cluster::leader_of`] says.
pub fn move_leader(addresses: &[String], topic: &str, to: usize) -> io::Result<()> {
    let others = (0..addresses.len()).filter(|other| *other != to);
    let replicas: Vec<i32> =
        iter::once(to).chain(others).map(|broker| i32::try_from(broker + 1).expect("a few")).collect();
    ask(addresses, &reassignment(topic, &replicas))?;
    ask(addresses, &preferred_election(topic))
}

/// Sends a request to the first broker that answers; it hands it on to the controller.
fn ask(addresses: &[String], request: &Request) -> io::Result<()> {
    let mut answers = addresses.iter().map(|address| request.send(address));
    let answered = answers.by_ref().find(Result::is_ok);
    answered.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into())).map(drop)
}

/// `AlterPartitionReassignments`, version 0: the same replicas, another one preferred.
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

/// `ElectLeaders`, version 1: the preferred one.
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
