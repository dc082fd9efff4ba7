//! Candidates whose reader receives nothing, or whose clients get wrong answers: a wrong end of the log, or no broker at all.

use harness::candidate::{Elector, Running};
use harness::cluster::Cluster;
use harness::election::TestElection;
use harness::kafka::Wired;
use harness::network::LinkConditions;
use harness::wait;
use nix::sys::signal::Signal;

use crate::PROGRAM;

/// A standby whose reader is connected and receives nothing replaces the reader until one works; then it takes over as usual.
#[test]
fn a_standby_whose_reader_hangs() {
    const FETCH: i16 = 1;
    let wired = Wired::take();
    let (kafka, seen) = (wired.direct(), wired.kafka());
    let election = TestElection::new(PROGRAM, &kafka, Elector::Log);
    let mut leader = election.candidate().option("--name", "leader").lease("5s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    // (If `--brokers` is given twice, the last one counts.) librdkafka itself would close the connection only after its own timeout.
    let standby = election.candidate().option("--name", "standby").option("--brokers", seen.address()).lease("5s");
    let mut standby = standby.property("socket.timeout.ms", "300000").start();
    standby.await_event("standby");

    let wire = wired.wire();
    wire.set(LinkConditions { swallows: Some(FETCH), ..LinkConditions::default() });
    wire.reset();
    let stuck = || standby.warnings_with("the journal's reader has delivered no record for").len();
    wait::until_true("a reader that is replaced", || stuck() > 0);
    // The replacement hangs too, because its connection was made before.
    wire.set(LinkConditions::default());
    leader.signal(Signal::SIGTERM);
    leader.await_event("released");
    let next = standby.await_lead();
    election.await_witness(next);
    assert!(leader.events("superseded").is_empty(), "{leader:?}");
    election.close([leader, standby]);
}

/// Brokers before 2.2 report a log end that is too low for a moment after a failover. One such answer ends no lead. If it is repeated a
/// second later, the log counts as cut.
#[test]
fn a_log_whose_reported_end_is_below_the_read_records() {
    let wired = Wired::take();
    let wire = wired.wire();
    wire.set(LinkConditions { falsifies: true, ..LinkConditions::default() });
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut run = election.candidate().start();
    let term = run.await_lead();
    election.await_witness(term);
    let read = || election.verdicts().len();
    wait::until_true("a few records", || read() > 5);

    wire.falsify_ends(1);
    // After a reconnect the reader asks where the log ends.
    wire.reset();
    wait::until_true("another answer, which is right", || wire.ends_passed() > 1);
    let before = read();
    wait::until_true("beats that are sent after it", || read() > before + 2);
    assert_eq!((run.events("fenced").len(), run.events("leading").len()), (0, 1), "{run:?}");

    wire.falsify_ends(u32::MAX);
    wire.reset();
    assert_eq!(run.await_event("fenced").text("why"), "history-cut");
    wire.falsify_ends(0);
    election.close([run]);
}

/// One batch that comes with a wrong byte is read again, and ends no lead. librdkafka goes on at an offset from the middle of such a batch, which
/// looks like a log that was cut. One that stays wrong ends the lead with the lease, and
/// is reported once, as is that it was read at last.
#[test]
fn a_batch_that_does_not_fit_its_checksum() {
    let wired = Wired::take();
    let wire = wired.wire();
    wire.set(LinkConditions { falsifies: true, ..LinkConditions::default() });
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut run = election.candidate().lease("5s").start();
    let term = run.await_lead();
    election.await_witness(term);
    let read = || election.verdicts().len();
    let reported = |run: &Running| {
        run.events("error").iter().filter(|error| error.text("message").contains("can't be decoded")).count()
    };
    wire.garble(1);
    wait::until_true("a batch that can't be decoded", || wire.garbled() > 0);
    let before = read();
    wait::until_true("beats that are sent after it", || read() > before + 3);
    assert_eq!((run.events("fenced").len(), run.events("leading").len(), reported(&run)), (0, 1, 0), "{run:?}");

    wire.garble(u32::MAX);
    assert_eq!(run.await_release().text("why"), "fenced");
    wait::until_true("the batch, when all is read anew", || reported(&run) > 1);
    let before = wire.garbled();
    wait::until_true("further attempts to read it", || wire.garbled() > before + 6);
    assert_eq!(reported(&run), 2, "{run:?}");
    assert!(run.warnings_with("was read, or deleted").is_empty(), "{run:?}");
    wire.garble(0);
    let term = run.await_lead();
    election.await_witness(term);
    assert_eq!(run.warnings_with("was read, or deleted").len(), 1, "{run:?}");
    election.close([run]);
}

/// A broker of a cluster of one that was just restarted may answer that there is no broker. librdkafka then forgets all brokers, and
/// 2.12 may never connect again. So each client is given the brokers of `--brokers` again.
#[test]
fn a_broker_that_is_missing_in_its_own_answer() {
    let cluster = Cluster::start(1, 1);
    let wire = cluster.wire(0, 0);
    wire.set(LinkConditions { falsifies: true, ..LinkConditions::default() });
    let election = TestElection::new(PROGRAM, &cluster.kafka_of(0), Elector::Group);
    // librdkafka takes some time for an answer about many partitions. Meanwhile the threads of brokers that it has just forgotten end.
    cluster.kafka().create_partitioned_topic(&election.topic(), 500);
    let mut leader = election.candidate().option("--name", "leader").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let mut standby = election.candidate().option("--name", "standby").start();
    standby.await_event("standby");

    let records = || election.verdicts().len();
    for _ in 0..3 {
        let before = wire.answers_without_brokers();
        wire.hide_brokers(true);
        wire.reset();
        wait::until_true("an answer that names no broker", || wire.answers_without_brokers() > before);
        wire.hide_brokers(false);
        let before = records();
        wait::until_true("records that are written afterwards", || records() > before + 1);
    }
    leader.signal(Signal::SIGTERM);
    let next = standby.await_lead();
    election.await_witness(next);
    election.close([leader, standby]);
}
