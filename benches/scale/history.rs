//! A long journal: the cost of a start, and of reading the whole journal.

use std::process::{Command, Stdio};
use std::time::Duration;

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::bulk_writer::{Author, BulkWriter};
use crate::meter::number;
use crate::{Arguments, PROGRAM};

/// One record in this many belongs to the election.
const OWN: i64 = 10;
/// The records of a term: a claim, beats, a release.
const TERM: i64 = 100;

/// Measures starts on an empty topic and on one with a history; then reads that history from its beginning.
pub(crate) fn measure(broker: &Broker, arguments: &Arguments, tell: &mut dyn FnMut(Vec<Row>)) {
    let n = arguments.n;
    tell(starts(&election(broker), "no history", n));

    let storied = election(broker);
    let began = wait::now();
    write(broker, &storied, arguments.records);
    let took = number(wait::now() - began) / 1e9;
    eprintln_progress(&format!("{} records written in {took:.0} s", arguments.records));
    let history = format!("{} records", arguments.records);
    tell(starts(&storied, &history, n));
    tell(vec![newcomer(&storied, &history)]);
    for how in [&["--json"][..], &[]] {
        tell(watch(broker, &storied, arguments.records, how));
    }
}

/// A new election in a topic of others: the records that it searches for may be anywhere, or not exist.
fn newcomer(storied: &TestElection, history: &str) -> Row {
    const LONG: Duration = Duration::from_secs(600);
    let newcomer = storied.another();
    let topic = storied.topic();
    let mut candidate = newcomer.candidate().option("--topic", &topic);
    candidate = candidate.job(newcomer.witness().set("--end-ms", 0).command());
    let mut candidate = candidate.start();
    let what = format!("{history}, none of its own: process start to the job's first instruction");
    let Some(status) = wait::poll_for(LONG, || candidate.ended()) else {
        return Row::new(format!("{what} (given up)"), "ms", vec![LONG.as_secs_f64() * 1e3]);
    };
    assert_eq!(status, 0, "{candidate:?}");
    let started = newcomer.testimony().starts().next_back().expect("the job ran").at;
    Row::between(what, [(candidate.started_at, started)])
}

/// An election whose topic keeps all records.
fn election(broker: &Broker) -> TestElection {
    let election = TestElection::new(PROGRAM, &broker.kafka(), Elector::Log);
    let settings = [("retention.ms", "-1"), ("message.timestamp.type", "LogAppendTime")];
    broker.kafka().create_topic(&election.topic(), &settings);
    election
}

/// Writes the history of an election among others: terms that each end with a release.
fn write(broker: &Broker, election: &TestElection, records: i64) {
    let bulk_writer = BulkWriter::of_history(&broker.kafka(), &election.topic());
    let own = Author::new(0);
    let others: Vec<(String, Author)> =
        (1..10).map(|number| (format!("other-{number}/0"), Author::new(number))).collect();
    let (mut seq, mut term) = (0, 0);
    // The last record in the topic is the release of the last term.
    let terms = records / (OWN * TERM);
    let others_first = records - terms * OWN * TERM;
    for offset in 0..records {
        let place = offset - others_first;
        if place < 0 || place % OWN != OWN - 1 {
            let (key, author) = &others[usize::try_from(offset % 9).expect("a small number")];
            bulk_writer.write(key, &author.beat(offset / 9, 0, offset - 1));
        } else {
            seq += 1;
            let record = match place / OWN % TERM {
                0 => {
                    term = offset;
                    own.claim(seq, offset - 1)
                }
                last if last == TERM - 1 => own.release(seq, term, offset - 1),
                _ => own.beat(seq, term, offset - 1),
            };
            bulk_writer.write(&election.key(), &record);
        }
        if offset % 1000 == 0 {
            bulk_writer.poll();
        }
    }
    bulk_writer.flush();
    assert_eq!(harness::journal::end(&broker.kafka(), &election.topic()), records, "offsets are as they were told");
}

/// The time from a process's start to its job, and to standing by behind a leader.
fn starts(election: &TestElection, history: &str, n: usize) -> Vec<Row> {
    let mut jobs = Vec::new();
    for _ in 0..n {
        let mut candidate = election.candidate().job(election.witness().set("--end-ms", 0).command()).start();
        assert_eq!(candidate.status(), 0, "{candidate:?}");
        let started = election.testimony().starts().next_back().expect("the job ran").at;
        jobs.push((candidate.started_at, started));
    }
    let mut leader = election.candidate().start();
    election.await_witness(leader.await_lead());
    let mut standbys = Vec::new();
    for _ in 0..n {
        let mut standby = election.candidate().start();
        standbys.push((standby.started_at, standby.await_event("standby").at));
        standby.signal(Signal::SIGTERM);
        standby.status();
    }
    election.close([leader]);
    vec![
        Row::between(format!("{history}: process start to the job's first instruction"), jobs),
        Row::between(format!("{history}: process start to standing by"), standbys),
    ]
}

/// Reads the whole topic by `watch`: its speed, and its median and largest memory.
fn watch(broker: &Broker, election: &TestElection, records: i64, how: &[&str]) -> Vec<Row> {
    let mut watch = Command::new(PROGRAM);
    watch.args(["watch", "--group", &election.group, "--brokers", broker.kafka().address()]);
    watch.args(["--from", "start", "--until-end"]).args(how).stdout(Stdio::null());
    let began = wait::now();
    let mut child = watch.spawn().expect("the program is there");
    let process = Process::child(child.id());
    let mut resident = Vec::new();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        resident.extend(process.megabytes("status", &["VmRSS:"]));
        wait::pause(Duration::from_millis(20));
    };
    let seconds = number(wait::now() - began) / 1e9;
    assert!(status.success(), "watch: {status}");
    let speed = number(u64::try_from(records).expect("a count")) / seconds;
    let what = ["watch --from start --until-end", how.first().copied().unwrap_or_default()].join(" ");
    let what = what.trim_end();
    vec![
        Row::new(format!("{what}: records a second"), "", vec![speed]),
        Row::new(format!("{what}: resident memory, all along"), "MB", resident),
    ]
}

#[expect(clippy::print_stderr, reason = "progress, for whoever waits")]
fn eprintln_progress(what: &str) {
    eprintln!("scale: {what}");
}
