//! What `observe` holds, decides and renders of many elections, in virtual time: the records are made up here and come from no Kafka. The cost of
//! fetching them is not in it; `observe` and `history` measure that.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::figures::Row;
use harness::process::Process;
use neli_kafka::TopicsEvent;
use neli_kafka::names::MOST_ROLES;
use neli_proto::kafka::{LogRange, LogsAnswer};
use neli_proto::leadership::ReadAt;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::Topics;
use neli_proto::record::LogRecord;
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use neli_run::command::observe::State;
use nix::sys::resource::{UsageWho, getrusage};

use crate::Arguments;
use crate::bulk_writer::Author;
use crate::meter::number;
use crate::observe::{History, key};

/// So many elections share a topic.
const IN_A_TOPIC: usize = 1_000;
/// The candidates of each election.
const CANDIDATES: usize = 3;
/// The virtual seconds in which each leader writes a heartbeat a second.
const SECONDS: u64 = 10;
const DAY_MS: u64 = 24 * 3_600_000;
const NOW_MS: u64 = 1_769_860_800_000;

/// All elections of a process.
struct World {
    observed: State,
    topics: Vec<String>,
    authors: Vec<Author>,
    /// The next offset, of each topic.
    next: i64,
    used: Duration,
}

/// Measures the memory with a day's terms, and the processor time of each thing that the process does.
pub(crate) fn measure(arguments: &Arguments) -> Vec<Row> {
    let topics = arguments.elections.div_ceil(IN_A_TOPIC);
    let of_each = arguments.elections / topics;
    let history = History::of_terms(of_each, arguments.terms);
    let mut world = World {
        observed: State::new(Topics::new(FIRST_SPAN, MOST_ROLES), None),
        topics: (0..topics).map(|number| format!("observed-{number}.neli")).collect(),
        authors: (0..of_each).map(Author::new).collect(),
        next: 0,
        used: Duration::ZERO,
    };
    let when = format!("{} elections of {} terms in {topics} topics", of_each * topics, arguments.terms);
    let row = |what: &str, unit: &'static str, value: f64| Row::new(format!("{when}: {what}"), unit, vec![value]);
    let resident = || Process::child(std::process::id()).megabytes("status", &["VmRSS:"]).expect("it runs");
    let empty = resident();
    world.answer(0, history.records());
    for offset in 0..history.records() {
        let (number, record) = history.record(&world.authors, offset);
        let written_ms = written_ms(u64::try_from(offset).expect("no offset is negative") / of_each as u64, arguments);
        world.write(0, written_ms, &key(number), &record);
    }
    world.hellos();
    assert!(world.observed.topics.is_complete(), "all topics were read");
    let mut rows = vec![row("resident memory of their history", "MB", resident() - empty)];
    let (mut ticks, mut answers, before) = (Duration::ZERO, Duration::ZERO, world.used);
    for second in 1..=SECONDS {
        for number in 0..of_each {
            let beat = history.beat(&world.authors, number);
            world.write(second, NOW_MS + second * 1_000, &key(number), &beat);
        }
        ticks += timed(|| {
            world.observed.tick(at(second));
            while world.observed.topics.poll_action().is_some() {}
        })
        .1;
        let end = world.next;
        answers += world.answer(second, end);
    }
    let records = SECONDS * (of_each * topics) as u64;
    let each = |spent: Duration| number(u64::try_from(spent.as_nanos()).expect("less than a year"));
    rows.push(row(
        "processor time of a heartbeat",
        "µs",
        each(world.used.saturating_sub(before)) / 1e3 / number(records),
    ));
    rows.push(row("processor time each second, without records", "ms", each(ticks) / 1e6 / number(SECONDS)));
    rows.push(row("processor time of Kafka's answer, every 5 s", "ms", each(answers) / 1e6 / number(SECONDS)));
    let at = at(SECONDS);
    let rendered: [(&str, &dyn Fn() -> String); 3] = [
        ("the page", &|| world.observed.page(at)),
        ("/metrics", &|| world.observed.metrics(at)),
        ("/elections", &|| world.observed.json(at)),
    ];
    for (what, render) in rendered {
        let (text, spent) = timed(render);
        rows.push(row(&format!("processor time of {what}"), "ms", each(spent) / 1e6));
        rows.push(row(what, "MB", number(text.len() as u64) / 1e6));
    }
    rows.push(row("resident memory after that", "MB", resident() - empty));
    rows
}

/// When the records of this turn were written: the terms begin at equal distances over a day, and the last one has just begun.
fn written_ms(turn: u64, arguments: &Arguments) -> u64 {
    let (terms, in_a_term) = (arguments.terms as u64, History::SHORTEST_TERM as u64);
    let term = turn / in_a_term;
    let from_ms = if term + 1 == terms { NOW_MS - 5_000 } else { NOW_MS - DAY_MS + DAY_MS / terms * term };
    from_ms + turn % in_a_term * 1_000
}

/// What the reader is to do is left undone.
fn handle(observed: &mut State, second: u64, event: TopicsEvent) {
    observed.handle(at(second), event).expect("nobody refuses");
    while observed.topics.poll_action().is_some() {}
}

impl World {
    /// Kafka's answer that each log has this end.
    fn answer(&mut self, second: u64, end: i64) -> Duration {
        let logs = || Ok(BTreeMap::from([(0, Ok(LogRange { start: 0, recent: 0, end }))]));
        let topics: BTreeMap<Box<str>, LogsAnswer> = self
            .topics
            .iter()
            .map(|name| (name.as_str().into(), LogsAnswer { identity: TopicIdentity::Unnamed, logs: logs() }))
            .collect();
        let event = TopicsEvent::Answered { asked: at(second).now, topics };
        timed(|| handle(&mut self.observed, second, event)).1
    }

    /// A record in each topic.
    fn write(&mut self, second: u64, written_ms: u64, key: &str, value: &str) {
        let offset = self.next;
        let record = || LogRecord {
            offset,
            key: Some(key.as_bytes().into()),
            value: Some(value.as_bytes().into()),
            written_ms: Some(written_ms),
            is_brokers_time: true,
        };
        self.next += 1;
        let read = |(number, topic): (u32, &String)| TopicsEvent::Read {
            reading: number,
            topic: topic.as_str().into(),
            partition: 0,
            record: record(),
        };
        // The readings of the topics are numbered in the order of their names.
        let mut names: Vec<&String> = self.topics.iter().collect();
        names.sort();
        let events: Vec<TopicsEvent> = (1..).zip(names).map(read).collect();
        let observed = &mut self.observed;
        self.used += timed(|| events.into_iter().for_each(|event| handle(observed, second, event))).1;
    }

    /// A hello of each candidate.
    fn hellos(&mut self) {
        for number in 0..self.authors.len() {
            for candidate in 0..CANDIDATES {
                let author = Author::new(number + candidate * self.authors.len());
                self.write(0, NOW_MS, &format!("{}/hello", key(number)), &author.hello());
            }
        }
    }
}

const fn at(second: u64) -> ReadAt {
    ReadAt { now: Time::from_nanos((1_000 + second) * 1_000_000_000), wall_ms: NOW_MS + second * 1_000 }
}

/// The result, and this process's time on processors until then.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = used();
    let done = work();
    (done, used().saturating_sub(before))
}

fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("every thread has it");
    let micros = [usage.user_time(), usage.system_time()].map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    Duration::from_micros(micros.iter().sum::<i64>().unsigned_abs())
}
