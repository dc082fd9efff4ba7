//! The broker of the whole test run, and wires to it, each of which one test has for itself: a broker for each such test would take three seconds
//! of a processor to start.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, OnceLock};

use super::{Broker, Kafka};
use crate::network::{Flow, LinkConditions, Network, Wire};
use crate::node::{Door, Node, free_port};

/// So many tests have a wire at a time.
const WIRES: usize = 4;

/// The wires that no test has.
static FREE: Mutex<[bool; WIRES]> = Mutex::new([true; WIRES]);
static GIVEN_BACK: Condvar = Condvar::new();

/// A broker, and wires to it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) broker: Broker,
    wires: Vec<Wire>,
    _network: Network,
}

impl Shared {
    /// A static is never dropped, so the broker ends when its pipe closes, at the end of the process.
    pub(super) fn get() -> &'static Self {
        static SHARED: OnceLock<Shared> = OnceLock::new();
        SHARED.get_or_init(|| {
            let network = Network::start();
            let ports: Vec<u16> = (0..WIRES).map(|_| free_port()).collect();
            let wires: Vec<Wire> =
                ports.iter().map(|port| network.wire(SocketAddr::from(([127, 0, 0, 1], *port)))).collect();
            let doors = ports.iter().zip(&wires).map(|(port, wire)| Door { port: *port, advertised: wire.port });
            Self {
                broker: Broker::start(Node::of_the_test_run().with_doors(doors.collect())),
                wires,
                _network: network,
            }
        })
    }
}

/// The broker of the whole test run through a wire.
#[derive(Debug)]
pub struct Wired {
    wire: usize,
    kafka: Kafka,
}

impl Wired {
    /// Waits for a wire that no test has.
    #[must_use]
    pub fn take() -> Self {
        let shared = Shared::get();
        let free = FREE.lock().expect("no panic while it was locked");
        let mut free = GIVEN_BACK.wait_while(free, |free| !free.contains(&true)).expect("no panic while it was locked");
        let wire = free.iter().position(|is_free| *is_free).expect("one is free");
        free[wire] = false;
        Self { wire, kafka: Kafka::at(&format!("127.0.0.1:{}", shared.wires[wire].port)) }
    }

    /// The broker, not through the wire.
    #[must_use]
    pub fn direct(&self) -> Kafka {
        Shared::get().broker.kafka()
    }

    /// The broker through the wire.
    #[must_use]
    pub fn kafka(&self) -> &Kafka {
        &self.kafka
    }

    /// The wire.
    #[must_use]
    pub fn wire(&self) -> &Wire {
        &Shared::get().wires[self.wire]
    }

    /// Nothing passes, as if the broker were stopped: connections stay open, and no request is answered.
    pub fn freeze(&self) {
        self.wire().set(LinkConditions { there: Flow::Held, back: Flow::Held, ..LinkConditions::default() });
    }

    /// What was held arrives.
    pub fn thaw(&self) {
        self.wire().set(LinkConditions::default());
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        let wire = self.wire();
        wire.falsify_ends(0);
        wire.garble(0);
        wire.lose_acknowledgements(false);
        wire.hide_brokers(false);
        wire.set(LinkConditions::default());
        wire.reset();
        FREE.lock().expect("no panic while it was locked")[self.wire] = true;
        GIVEN_BACK.notify_one();
    }
}
