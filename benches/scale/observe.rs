//! `observe`: its start over topics with a history, and its cost while their leaders write.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::wait;

use crate::bulk_writer::{Author, BulkWriter};
use crate::meter::{self, number};
use crate::{Arguments, PROGRAM};

/// The elections are in so many topics.
const TOPICS: usize = 10;
/// So many records a second are written into each.
const RECORDS_A_SECOND: u64 = 30;
/// The longest time in which the day before is read.
const LONG: Duration = Duration::from_secs(5 * 60);

/// Measures a start, and the cost of staying.
pub(crate) fn measure(broker: &Broker, arguments: &Arguments) -> Vec<Row> {
    let of_each = arguments.elections.div_ceil(TOPICS);
    let records = usize::try_from(arguments.records).expect("a number of records") / TOPICS;
    let topics: Vec<String> = (0..TOPICS).map(|number| format!("observed-{number}.neli")).collect();
    let authors: Vec<Author> = (0..of_each).map(Author::new).collect();
    let history = History::of(of_each, records / of_each, arguments.terms);
    for topic in &topics {
        broker.kafka().create_topic(topic, &[]);
        let writer = BulkWriter::of_history(&broker.kafka(), topic);
        history.write(&writer, &authors);
        writer.flush();
    }

    let when =
        format!("{} elections of {} terms in {TOPICS} topics of {records} records", of_each * TOPICS, arguments.terms);
    let began = wait::now();
    let observe = Observe::start(broker);
    wait::until_true("the topics to be read", || observe.get("/readyz").starts_with("HTTP/1.1 200"));
    let page = observe.get("/");
    let complete = wait::now();
    assert!(page.contains(&format!(">{} elections: ", of_each * TOPICS)), "the page has all elections");
    let resident = || observe.process.megabytes("status", &["VmRSS:"]).expect("it runs");
    let row = |what: &str, unit: &'static str, value: f64| Row::new(format!("{when}: {what}"), unit, vec![value]);
    let known = || {
        wait::poll_for(LONG, || (!observe.get("/elections").contains("\"known_since\":\"")).then_some(()))
            .expect("in time");
    };
    let mut rows = vec![
        Row::between(format!("{when}: process start to a complete page"), [(began, complete)]),
        row("its page", "kB", number(page.len() as u64) / 1e3),
        row("its page without a second's change: time of an answer", "ms", answer_ms(&observe)),
        row("resident memory then", "MB", resident()),
        Row::between(
            format!("{when}: process start to 24 hours in each strip"),
            [(began, {
                known();
                wait::now()
            })],
        ),
        row("its page then", "kB", number(observe.get("/").len() as u64) / 1e3),
        row("resident memory then, with the page", "MB", resident()),
    ];
    let over = AtomicBool::new(false);
    let cost = thread::scope(|scope| {
        scope.spawn(|| write(broker, &topics, &authors, &history, &over));
        let cost = meter::cost(broker, &[&[observe.process]], arguments.seconds);
        over.store(true, Ordering::Relaxed);
        cost
    });
    rows.extend(cost.rows(&format!("{when}, {RECORDS_A_SECOND} more a second in each"), &["observe"]));
    rows.push(row("resident memory at the end", "MB", resident()));
    rows
}

fn answer_ms(observe: &Observe) -> f64 {
    let began = wait::now();
    observe.get("/");
    number(wait::now() - began) / 1e6
}

/// The key of an election's records.
pub(crate) fn key(number: usize) -> String {
    format!("team-{number}/0")
}

/// What stands in a topic before the start: the elections write in turn, up to now, and all but their last terms are released.
pub(crate) struct History {
    /// The number of elections.
    elections: i64,
    /// The number of each election's records.
    of_each: i64,
    /// The number of its terms.
    terms: usize,
}

impl History {
    fn of(elections: usize, of_each: usize, terms: usize) -> Self {
        let [elections, of_each] = [elections, of_each].map(|count| i64::try_from(count).expect("64 bits"));
        Self { elections, of_each, terms }
    }

    /// A claim, a heartbeat and a release.
    pub(crate) const SHORTEST_TERM: usize = 3;

    /// The shortest one with so many terms.
    pub(crate) fn of_terms(elections: usize, terms: usize) -> Self {
        Self::of(elections, Self::SHORTEST_TERM * terms, terms)
    }

    /// The number of all records.
    pub(crate) const fn records(&self) -> i64 {
        self.of_each * self.elections
    }

    /// The number of the election whose record is at this offset, and the record.
    pub(crate) fn record(&self, authors: &[Author], offset: i64) -> (usize, String) {
        let (turn, number) = (offset / self.elections, usize::try_from(offset % self.elections).expect("64 bits"));
        let (per_term, author) = (self.per_term(), &authors[number]);
        let term = self.term(turn, offset);
        let record = match turn % per_term {
            0 if turn <= self.last_claim() => author.claim(1, offset - 1),
            last if last == per_term - 1 && turn < self.last_claim() => author.release(2, term, offset - 1),
            _ => author.beat(2, term, offset - 1),
        };
        (number, record)
    }

    fn write(&self, writer: &BulkWriter, authors: &[Author]) {
        let (all, now_ms) = (self.records(), wait::wall_ms());
        for offset in 0..all {
            let (number, record) = self.record(authors, offset);
            writer.write_at(now_ms - (all - offset) * 1_000 / RECORDS_A_SECOND.cast_signed(), &key(number), &record);
        }
    }

    fn per_term(&self) -> i64 {
        self.of_each / i64::try_from(self.terms).expect("64 bits")
    }

    /// In which turn the last term was claimed.
    fn last_claim(&self) -> i64 {
        self.per_term() * (i64::try_from(self.terms).expect("64 bits") - 1)
    }

    /// The term of an election's record in this turn.
    fn term(&self, turn: i64, offset: i64) -> i64 {
        let claimed = (turn / self.per_term() * self.per_term()).min(self.last_claim());
        offset - (turn - claimed) * self.elections
    }

    /// A heartbeat in its last term.
    pub(crate) fn beat(&self, authors: &[Author], number: usize) -> String {
        let term = self.last_claim() * self.elections + i64::try_from(number).expect("64 bits");
        authors[number].beat(2, term, term)
    }
}

/// Writes the beats of all leaders until it is over.
fn write(broker: &Broker, topics: &[String], authors: &[Author], history: &History, over: &AtomicBool) {
    let writers: Vec<BulkWriter> = topics.iter().map(|topic| BulkWriter::of_many(&broker.kafka(), topic)).collect();
    let (began, between) = (wait::now(), 1_000_000_000 / RECORDS_A_SECOND / TOPICS as u64);
    for (count, number) in (1_u64..).zip((0..authors.len()).cycle().flat_map(|number| [number; TOPICS])) {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let writer = &writers[usize::try_from(count).expect("64 bits") % TOPICS];
        writer.write(&key(number), &history.beat(authors, number));
        writer.poll();
        wait::pause(Duration::from_nanos((began + count * between).saturating_sub(wait::now())));
    }
}

/// A running `observe`.
struct Observe {
    child: Child,
    process: Process,
    address: String,
}

impl Observe {
    fn start(broker: &Broker) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["observe", "--listen", "127.0.0.1:0", "--brokers", &broker.address()]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("http://")?.1.trim_end_matches('/').to_owned()));
        thread::spawn(move || lines.for_each(drop));
        let (process, address) = (Process::child(child.id()), address.expect("it listens"));
        Self { child, process, address }
    }

    /// The whole answer.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Observe {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("a child can be ended");
    }
}
