//! One election: the records that it writes, and its connections.

use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::cluster::Cluster;
use harness::election::TestElection;
use harness::figures::Row;
use harness::journal;
use harness::kafka::{Broker, Kafka};
use harness::wait;
use nix::sys::signal::Signal;

use crate::meter::number;
use crate::{Arguments, PROGRAM};

/// The time after which a candidate counts as settled.
const SETTLED: Duration = Duration::from_secs(5);
/// The time after which a candidate's connections are counted: by then those that only the start needs are closed.
const AT_REST: Duration = Duration::from_secs(10);

/// Records and bytes in the log's segment, per day.
pub(crate) fn bytes(broker: &Broker, elector: Elector, arguments: &Arguments) -> Vec<Row> {
    let election = TestElection::new(PROGRAM, &broker.kafka(), elector);
    let candidates = [settled(&election), settled(&election)];
    // A whole number of hello intervals, so that hellos are counted with the right weight.
    let seconds = arguments.seconds.next_multiple_of(30);
    let look = || (broker.segment_bytes(&election.topic()), journal::read(&broker.kafka(), &election.topic()));
    let (bytes_before, before) = look();
    wait::pause(Duration::from_secs(seconds));
    let (bytes_after, after) = look();
    election.close(candidates);

    let fresh = &after[before.len()..];
    let hellos = fresh.iter().filter(|record| record.key.ends_with(b"/hello")).count() as u64;
    let beats = fresh.len() as u64 - hellos;
    let content =
        fresh.iter().map(|record| record.key.len() + record.payload.as_ref().map_or(0, Vec::len)).sum::<usize>();
    let mean = |of_hellos: bool| {
        let sizes = fresh.iter().filter(|record| record.key.ends_with(b"/hello") == of_hellos);
        let sizes: Vec<usize> =
            sizes.map(|record| record.key.len() + record.payload.as_ref().map_or(0, Vec::len)).collect();
        number(sizes.iter().sum::<usize>() as u64) / number(sizes.len().max(1) as u64)
    };
    let segment = number(bytes_after - bytes_before);
    let around = (segment - number(content as u64)) / number(fresh.len() as u64);
    let a_day = |count: u64| number(count) * 86_400.0 / number(seconds);
    let row = |what: &str, unit: &'static str, value: f64| Row::new(what, unit, vec![value]);
    let of_leader = a_day(beats) * (mean(false) + around) / 1e6;
    let of_candidate = a_day(hellos) / 2.0 * (mean(true) + around) / 1e6;
    vec![
        row("a beat in the segment, key and batch included", "B", mean(false) + around),
        row("a hello in the segment, key and batch included", "B", mean(true) + around),
        row("beats a day", "", a_day(beats)),
        row("beats a day, in the segment", "MB", of_leader),
        row("hellos a day, of each candidate", "", a_day(hellos) / 2.0),
        row("hellos a day, of each candidate, in the segment", "MB", of_candidate),
    ]
}

/// Connections of a leader and of a standby, on one broker and on three.
pub(crate) fn connections(broker: &Broker, elector: Elector) -> Vec<Row> {
    let mut rows = connected(&broker.kafka(), elector, "one broker");
    let cluster = Cluster::start(3, 0);
    rows.extend(connected(&cluster.kafka(), elector, "three brokers"));
    rows
}

fn connected(kafka: &Kafka, elector: Elector, brokers: &str) -> Vec<Row> {
    let election = TestElection::new(PROGRAM, kafka, elector);
    let mut candidates = [settled(&election), settled(&election)];
    wait::pause(AT_REST);
    let mut rows = Vec::new();
    for (name, candidate) in ["leader", "standby"].into_iter().zip(&mut candidates) {
        let process = candidate.process();
        let row =
            |what: &str, count: usize| Row::new(format!("{brokers}, {name}: {what}"), "", vec![number(count as u64)]);
        rows.push(row("connections", process.connections()));
        rows.push(row("threads", process.threads().expect("the process runs")));
        rows.push(row("descriptors", process.descriptors().len()));
    }
    let [leader, standby] = &mut candidates;
    for candidate in [standby, leader] {
        candidate.signal(Signal::SIGTERM);
        candidate.status();
    }
    rows
}

/// A candidate that has led or stood by for a while.
fn settled(election: &TestElection) -> Running {
    let candidate = election.candidate().start();
    wait::until_true("a candidate that has come", || candidate.count("standby") + candidate.count("leading") > 0);
    wait::pause(SETTLED);
    candidate
}
