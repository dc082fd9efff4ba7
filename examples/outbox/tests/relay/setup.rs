//! An outbox, a Kafka, and an election of relays.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::candidate::{Candidate, Running};
use harness::cluster::Cluster;
use harness::network::{Flow, LinkConditions};
use harness::process::Process;
use harness::wait;

use crate::postgres::Postgres;
use crate::records::{PARTITIONS, read, seen_once};

/// The number of keys of the rows.
const KEYS: i64 = 5;

/// How a relay stands for election.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// As a job of `neli-run`.
    Job,
    /// By itself, with the library.
    Library,
}

/// The path of `neli-run`: that of the variable, or built from the sources beside this example.
fn neli_run() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(path) = std::env::var_os("NELI_RUN") {
            return path.into();
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--quiet", "--bin", "neli-run", "--message-format", "json"]);
        let built =
            cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).output().expect("cargo runs this test");
        let lines = String::from_utf8_lossy(&built.stdout);
        let path = lines.split("\"executable\":\"").nth(1).and_then(|rest| rest.split('"').next());
        path.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&built.stderr))).into()
    })
}

/// An outbox, a topic, and an election of relays.
pub struct Setup {
    kind: Kind,
    lease: Duration,
    pub postgres: Postgres,
    kafka: Cluster,
    name: String,
}

/// One machine's relay.
pub struct Relay {
    kind: Kind,
    /// The index of its path to Kafka.
    pub machine: usize,
    pub running: Running,
}

impl Relay {
    /// The last term in which it has begun to relay.
    fn term(&self) -> Option<i64> {
        let lines = self.running.strange_lines();
        lines.iter().rev().find_map(|line| line.strip_prefix("outbox: relaying in term ")?.parse().ok())
    }

    /// Its processes; the last one is the relay.
    pub fn processes(&mut self) -> Vec<Process> {
        let Self { kind, running, .. } = self;
        if *kind == Kind::Library {
            return vec![running.process()];
        }
        let started = running.events("job_started");
        let job = started.last().and_then(|event| Process::find(i32::try_from(event.number("pid")).ok()?));
        [running.process(), running.guard()].into_iter().chain(job).collect()
    }
}

impl Setup {
    /// A setup for this many relays.
    pub fn new(kind: Kind, relays: usize, lease: Duration) -> Self {
        let kafka = Cluster::start(1, relays);
        let name = format!("outbox-{:x}", wait::now());
        kafka.kafka().create_partitioned_topic(&name, PARTITIONS);
        Self { kind, lease, postgres: Postgres::start(), kafka, name }
    }

    /// Starts a relay on one of the machines.
    pub fn relay(&self, machine: usize) -> Relay {
        let kafka = self.kafka.kafka_of(machine);
        let lease_ms = self.lease.as_millis().to_string();
        let candidate = match self.kind {
            Kind::Job => Candidate::new(neli_run())
                .option("--group", &self.name)
                .option("--brokers", kafka.address())
                .lease(&format!("{lease_ms}ms"))
                .option("--restart", "always")
                .option("--restart-delay", "100ms")
                .option("--restart-limit", "none")
                .job([env!("CARGO_BIN_EXE_outbox")]),
            Kind::Library => Candidate::new(Path::new(env!("CARGO_BIN_EXE_outbox-library")))
                .variable("OUTBOX_GROUP", &self.name)
                .variable("OUTBOX_LEASE_MS", lease_ms),
        };
        let candidate = candidate
            .variable("OUTBOX_DATABASE", self.postgres.database())
            .variable("OUTBOX_BROKERS", kafka.address())
            .variable("OUTBOX_TOPIC", &self.name);
        Relay { kind: self.kind, machine, running: candidate.start() }
    }

    /// Sets how the network between a relay and Kafka delivers bytes.
    pub fn set_flow(&self, machine: usize, flow: Flow) {
        self.kafka.wire(machine, 0).set(LinkConditions { there: flow, back: flow, ..LinkConditions::default() });
    }

    /// The highest term that has begun to relay.
    pub fn term(&self) -> i64 {
        self.postgres.number("SELECT coalesce(max(term), -1) FROM outbox_fence")
    }

    /// Waits until a later term than this one has begun to relay.
    pub fn await_term_after(&self, term: i64) {
        wait::until_true("a later term", || self.term() > term);
    }

    /// The relay that leads, and its term.
    pub fn leader(&self, relays: &[Relay]) -> (usize, i64) {
        wait::until("a relay that leads", || {
            let term = self.term();
            relays.iter().position(|relay| relay.term() == Some(term)).map(|leader| (leader, term))
        })
    }

    fn relayed(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM outbox WHERE relayed_in IS NOT NULL")
    }

    /// Waits until more rows are relayed.
    pub fn await_progress(&self) {
        let so_far = self.postgres.number("SELECT coalesce(max(id), 0) FROM outbox");
        let query = format!("SELECT count(*) FROM outbox WHERE id > {so_far} AND relayed_in IS NOT NULL");
        wait::until_true("rows that are relayed", || self.postgres.number(&query) >= 20);
    }

    /// Writes rows while `during` runs; returns their number.
    pub fn write_while(&self, during: impl FnOnce()) -> i64 {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| self.write_until(&stop));
            let stops = SetOnDrop(&stop);
            during();
            drop(stops);
            writer.join().expect("rows are written")
        })
    }

    fn write_until(&self, stop: &AtomicBool) -> i64 {
        self.postgres.run(async |client| {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let (key, payload) = (format!("account-{}", count % KEYS), format!("change {count}"));
                let insert = "INSERT INTO outbox (key, payload) VALUES ($1, $2)";
                client.execute(insert, &[&key, &payload]).await.expect("a row");
                count += 1;
                // Some hundred rows a second, so that a leader is always sending when it dies.
                wait::pause(Duration::from_millis(2));
            }
            count
        })
    }

    /// Asserts that every row arrived, in order by key, and that no earlier leader marked a row once the next had begun.
    pub fn assert_all_relayed(&self, written: i64) -> Vec<(String, i64)> {
        wait::until_true("all rows that are relayed", || self.relayed() == written);
        let records = read(&self.kafka.kafka(), &self.name);
        let seen = seen_once(&records);
        assert!(seen.iter().copied().eq(1..=written), "{} of {written} rows came", seen.len());
        let late =
            "SELECT count(*) FROM marks AS late JOIN marks AS before ON before.n < late.n AND before.term > late.term";
        assert_eq!(self.postgres.number(late), 0, "marks of a term that was over");
        assert_eq!(self.postgres.number("SELECT count(*) FROM marks"), written, "each row is marked once");
        records
    }
}

/// Ends the writer after a panic too: the scope waits for its thread.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
