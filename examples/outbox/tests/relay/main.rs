//! The relay under `neli-run`, on a real Kafka and a real PostgreSQL, while its leaders are stopped and killed.

mod postgres;
mod records;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use harness::candidate::{Candidate, Running};
use harness::kafka::Kafka;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;
use outbox::{Error, Table};
use postgres::{Postgres, runtime};
use records::{PARTITIONS, read, seen_once};

/// So many keys are written of.
const KEYS: i64 = 5;

/// `neli-run`: that of the variable, or built from the sources beside this example.
fn program() -> &'static Path {
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
struct Scene {
    postgres: Postgres,
    kafka: &'static Kafka,
    name: String,
}

impl Scene {
    fn new(name: &str) -> Self {
        let kafka = Kafka::shared();
        let name = format!("{name}-{:x}", wait::now());
        kafka.create_partitioned_topic(&name, PARTITIONS);
        Self { postgres: Postgres::start(), kafka, name }
    }

    /// Starts one more machine's relay.
    fn relay(&self) -> Running {
        let candidate = Candidate::new(program())
            .option("--group", &self.name)
            .option("--topic", format!("{}.neli", self.name))
            .option("--brokers", self.kafka.address())
            .lease("2s")
            .option("--restart", "always")
            .option("--restart-delay", "100ms")
            .option("--restart-limit", "none");
        let candidate = candidate
            .variable("OUTBOX_DATABASE", self.postgres.database())
            .variable("OUTBOX_BROKERS", self.kafka.address())
            .variable("OUTBOX_TOPIC", &self.name);
        candidate.job([env!("CARGO_BIN_EXE_outbox")]).start()
    }

    /// The relay that has led last.
    fn leader(&self, relays: &mut [Running]) -> usize {
        wait::until("a relay that leads", || {
            let latest = |relay: &Running| relay.events("leading").last().map(|event| event.number("term"));
            let terms = relays.iter().map(latest).enumerate();
            let (leader, term) = terms.max_by_key(|(_, term)| *term)?;
            (i64::try_from(term?).ok()? == self.postgres.number("SELECT coalesce(max(term), -1) FROM outbox_fence"))
                .then_some(leader)
        })
    }

    fn relayed(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM outbox WHERE relayed_in IS NOT NULL")
    }

    /// Waits until rows are relayed that were not there before.
    fn await_progress(&self) {
        let so_far = self.postgres.number("SELECT coalesce(max(id), 0) FROM outbox");
        let query = format!("SELECT count(*) FROM outbox WHERE id > {so_far} AND relayed_in IS NOT NULL");
        wait::until_true("rows that are relayed", || self.postgres.number(&query) >= 20);
    }

    /// Writes rows until it is told to stop; how many there are.
    fn write<'a>(&'a self, scope: &'a thread::Scope<'a, '_>, stop: &'a AtomicBool) -> ScopedJoinHandle<'a, i64> {
        scope.spawn(move || {
            self.postgres.run(async |client| {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (key, payload) = (format!("account-{}", count % KEYS), format!("change {count}"));
                    let insert = "INSERT INTO outbox (key, payload) VALUES ($1, $2)";
                    client.execute(insert, &[&key, &payload]).await.expect("a row");
                    count += 1;
                    // Some hundred a second: the leaders are to have something under way whenever they die.
                    wait::pause(Duration::from_millis(2));
                }
                count
            })
        })
    }

    /// Every row came, in order by key; and whoever led before marked nothing once the next had begun.
    fn assert_all_relayed(&self, written: i64) -> Vec<(String, i64)> {
        wait::until_true("all rows that are relayed", || self.relayed() == written);
        let records = read(self.kafka, &self.name);
        let seen = seen_once(&records);
        assert!(seen.iter().copied().eq(1..=written), "{} of {written} rows came", seen.len());
        let late =
            "SELECT count(*) FROM marks AS late JOIN marks AS before ON before.n < late.n AND before.term > late.term";
        assert_eq!(self.postgres.number(late), 0, "marks of a term that was over");
        assert_eq!(self.postgres.number("SELECT count(*) FROM marks"), written, "each row is marked once");
        records
    }
}

/// The processes of a candidate, the job among them.
fn processes(relay: &mut Running) -> Vec<Process> {
    let job =
        relay.events("job_started").last().and_then(|event| Process::find(i32::try_from(event.number("pid")).ok()?));
    [relay.process(), relay.guard()].into_iter().chain(job).collect()
}

#[test]
fn a_relay_of_an_earlier_term_marks_nothing() {
    let postgres = Postgres::start();
    let database = postgres.database();
    postgres.run(async |client| {
        client.execute("INSERT INTO outbox (key, payload) VALUES ('a', '1'), ('b', '2')", &[]).await.expect("rows");
    });
    runtime().block_on(async {
        let before = Table::open(&database, "relay", 5).await.expect("the first term");
        let rows = before.pending(10).await.expect("rows");
        assert_eq!(rows.iter().map(|row| (row.id, row.key.as_str())).collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
        let after = Table::open(&database, "relay", 7).await.expect("a later term");
        assert!(matches!(before.mark(&rows).await, Err(Error::Fenced { term: 5 })));
        assert_eq!(after.pending(10).await.expect("rows"), rows, "nothing was marked");
        assert!(matches!(Table::open(&database, "relay", 6).await, Err(Error::Fenced { term: 6 })));
        after.mark(&rows[..1]).await.expect("its own term");
        Table::open(&database, "relay", 7).await.expect("the same term, by a job that was started again");
        Table::open(&database, "another", 0).await.expect("each relay has a fence of its own");
        assert_eq!(after.pending(10).await.expect("rows"), rows[1..]);
    });
}

/// What is under way when a relay is told to stop is finished: not one row is sent twice.
#[test]
fn a_relay_that_is_stopped_finishes_what_it_has_begun() {
    let scene = Scene::new("stopped");
    let mut relays = vec![scene.relay(), scene.relay()];
    let stop = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writer = scene.write(scope, &stop);
        for _ in 0..6 {
            let leader = scene.leader(&mut relays);
            scene.await_progress();
            let mut stopped = relays.remove(leader);
            stopped.signal(Signal::SIGTERM);
            relays.push(scene.relay());
            assert_eq!(stopped.status(), 0, "{:?}", stopped.strange_lines());
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("rows are written")
    });
    let records = scene.assert_all_relayed(written);
    assert_eq!(i64::try_from(records.len()), Ok(written), "no row was sent twice");
    end(relays);
}

/// What a leader suffers.
#[derive(Clone, Copy, Debug)]
enum Strike {
    /// Its job is killed.
    Job,
    /// Its machine loses power.
    Machine,
    /// All of it stands still for longer than its lease, and goes on then.
    Pause,
    /// It is told to stop.
    Stop,
    /// `neli-run` is killed.
    Supervisor,
}

#[test]
fn rows_survive_leaders_that_are_killed() {
    let scene = Scene::new("killed");
    let mut relays = vec![scene.relay(), scene.relay(), scene.relay()];
    let mut strikes = [Strike::Job, Strike::Machine, Strike::Pause, Strike::Stop, Strike::Supervisor].repeat(2);
    let mut random = wait::now();
    for at in (1..strikes.len()).rev() {
        // A linear congruential generator (Knuth's MMIX): any order of the strikes is to pass.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        strikes.swap(at, usize::try_from(random >> 33).expect("31 bits") % (at + 1));
    }
    let stop = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writer = scene.write(scope, &stop);
        for strike in &strikes {
            let leader = scene.leader(&mut relays);
            scene.await_progress();
            strike.falls_on(&scene, &mut relays, leader);
        }
        scene.await_progress();
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("rows are written")
    });
    let records = scene.assert_all_relayed(written);
    println!("{strikes:?}: {written} rows, {} records", records.len());
    end(relays);
}

impl Strike {
    fn falls_on(self, scene: &Scene, relays: &mut Vec<Running>, leader: usize) {
        let processes = processes(&mut relays[leader]);
        let signal_all = |signal| processes.iter().for_each(|process| process.signal(signal));
        match self {
            Self::Job => {
                let runs = relays[leader].count("job_started");
                processes[2..].iter().for_each(|job| job.signal(Signal::SIGKILL));
                wait::until_true("a job that is started again", || relays[leader].count("job_started") > runs);
                return;
            }
            Self::Machine => {
                // Stopped first, so that none of them sees another one die.
                signal_all(Signal::SIGSTOP);
                signal_all(Signal::SIGKILL);
            }
            Self::Pause => {
                signal_all(Signal::SIGSTOP);
                let term = scene.postgres.number("SELECT max(term) FROM outbox_fence");
                wait::until_true("a later term", || scene.postgres.number("SELECT max(term) FROM outbox_fence") > term);
                signal_all(Signal::SIGCONT);
                return;
            }
            Self::Stop => relays[leader].signal(Signal::SIGTERM),
            Self::Supervisor => relays[leader].signal(Signal::SIGKILL),
        }
        relays.remove(leader).status();
        relays.push(scene.relay());
    }
}

fn end(relays: Vec<Running>) {
    for mut relay in relays {
        relay.signal(Signal::SIGTERM);
        relay.status();
    }
}
