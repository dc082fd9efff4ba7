//! Many elections in one topic: each candidate reads the records of all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::figures::Row;
use harness::journal;
use harness::kafka::Broker;
use harness::wait;
use nix::sys::signal::Signal;

use crate::bulk_writer::{Author, BulkWriter};
use crate::meter::{self, number};
use crate::{Arguments, PROGRAM};

/// How long a candidate is left alone before it counts as settled.
const SETTLED: Duration = Duration::from_millis(1500);

/// The number of producers that write the other elections' records.
const CONNECTIONS: usize = 16;

/// Measures one election alone, and among many.
pub(crate) fn measure(broker: &Broker, arguments: &Arguments, tell: &mut dyn FnMut(Vec<Row>)) {
    tell(one_of(broker, 1, arguments));
    tell(one_of(broker, arguments.elections, arguments));
}

/// Measures one real election beside the beats of the others, one per second for each.
fn one_of(broker: &Broker, elections: usize, arguments: &Arguments) -> Vec<Row> {
    let election = TestElection::new(PROGRAM, &broker.kafka(), Elector::Log);
    // The settings that neli-run would use.
    let settings = [("retention.ms", "86400000"), ("message.timestamp.type", "LogAppendTime")];
    broker.kafka().create_topic(&election.topic(), &settings);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if elections > 1 {
            scope.spawn(|| beat_for(broker, &election.topic(), elections - 1, &over));
        }
        let measured = among(broker, &election, elections, arguments);
        over.store(true, Ordering::Relaxed);
        measured
    })
}

/// Writes the beats of this many leaders, each at a different time within a second.
fn beat_for(broker: &Broker, topic: &str, elections: usize, over: &AtomicBool) {
    // A broker handles one request of a connection at a time: one connection could not carry a thousand appends a second.
    let forges: Vec<BulkWriter> = (0..CONNECTIONS).map(|_| BulkWriter::of_many(&broker.kafka(), topic)).collect();
    let authors: Vec<(String, Author)> =
        (0..elections).map(|number| (format!("other-{number}/0"), Author::new(number))).collect();
    let began = wait::now();
    let between = 1_000_000_000 / elections as u64;
    for ((count, (key, author)), bulk_writer) in (0_u64..).zip(authors.iter().cycle()).zip(forges.iter().cycle()) {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let second = i64::try_from(count / elections as u64).expect("a few seconds");
        bulk_writer.write(key, &author.beat(second + 2, 0, second));
        bulk_writer.poll();
        let due = began + (count + 1) * between;
        wait::pause(Duration::from_nanos(due.saturating_sub(wait::now())));
    }
    // Records that a busy broker has not accepted by now are not needed any more.
}

fn among(broker: &Broker, election: &TestElection, elections: usize, arguments: &Arguments) -> Vec<Row> {
    let when = if elections == 1 { "alone in its topic".to_owned() } else { format!("one of {elections} elections") };
    let mut leader = election.candidate().start();
    let mut term = leader.await_lead();
    election.await_witness(term);
    let mut starts = Vec::new();
    let mut samples = Vec::new();
    for _ in 0..arguments.n {
        let mut successor = election.candidate().start();
        starts.push((successor.started_at, successor.await_event("standby").at));
        wait::pause(SETTLED);
        leader.signal(Signal::SIGTERM);
        let next = successor.await_lead();
        election.await_witness(next);
        samples.push((election.last_instruction(term), election.first_instruction(next)));
        leader.status();
        (leader, term) = (successor, next);
    }
    let mut rows = vec![
        Row::between(format!("{when}: process start to standing by"), starts),
        Row::between(format!("{when}: TERM, old job's end to new job's start"), samples),
    ];

    // A job that uses no processor time.
    election.close([leader]);
    let mut leader = election.candidate().job(["sleep", "1000"]).start();
    leader.await_lead();
    let mut standby = election.candidate().start();
    standby.await_event("standby");
    wait::pause(SETTLED);
    let groups = [&[leader.process()], &[leader.guard()], &[standby.process()]];
    let names = ["the leader", "its guard", "the standby"];
    let end = || u64::try_from(journal::end(&broker.kafka(), &election.topic())).expect("an offset");
    let (began, before) = (wait::now(), end());
    let cost = meter::cost(broker, &groups.map(|group| &group[..]), arguments.seconds);
    let (ended, after) = (wait::now(), end());
    let written = number(after - before) / (number(ended - began) / 1e9);
    rows.push(Row::new(format!("{when}: records a second in the topic"), "", vec![written]));
    rows.extend(cost.rows(&when, &names));
    for (name, process) in names.iter().zip(groups) {
        let resident = process[0].megabytes("status", &["VmRSS:"]).expect("the process runs");
        rows.push(Row::new(format!("{when}: resident memory of {name}"), "MB", vec![resident]));
    }
    let go = |mut candidate: Running| {
        candidate.signal(Signal::SIGTERM);
        candidate.status();
    };
    go(standby);
    go(leader);
    rows
}
