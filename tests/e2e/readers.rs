//! What becomes of a candidate whose reader does not read.

use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::network::Weather;
use harness::stage::Stage;
use harness::wait;
use nix::sys::signal::Signal;

use crate::PROGRAM;

/// A standby whose reader is connected and is handed nothing has another reader, again until one reads; then it takes over as ever.
#[test]
fn a_standby_whose_reader_hangs() {
    const FETCH: i16 = 1;
    let cluster = Cluster::start(1, 1);
    let (kafka, seen) = (cluster.kafka(), cluster.kafka_of(0));
    let stage = Stage::new(PROGRAM, &kafka, Elector::Log);
    let mut leader = stage.candidate().option("--name", "leader").lease("5s").start();
    let term = leader.await_lead();
    stage.await_witness(term);
    // The last `--brokers` wins. librdkafka itself would give up the connection after its own time.
    let standby = stage.candidate().option("--name", "standby").option("--brokers", seen.address()).lease("5s");
    let mut standby = standby.property("socket.timeout.ms", "300000").start();
    standby.await_event("standby");

    let wire = cluster.wire(0, 0);
    wire.set(Weather { swallows: Some(FETCH), ..Weather::default() });
    wire.reset();
    let stuck = || standby.warnings_with("the journal's reader has handed over nothing for").len();
    wait::until_true("a reader that is replaced", || stuck() > 0);
    // The reader in its place hangs as well: it has a connection from before.
    wire.set(Weather::default());
    leader.signal(Signal::SIGTERM);
    leader.await_event("released");
    let next = standby.await_lead();
    stage.await_witness(next);
    assert!(leader.events("superseded").is_empty(), "{leader:?}");
    stage.close([leader, standby]);
}
