//! Relays with `neli-run` and with the library, on a real Kafka and a real PostgreSQL, while their leaders are stopped, killed and cut
//! off.

mod postgres;
mod records;
mod setup;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use harness::cluster::Cluster;
use harness::network::Flow;
use harness::wait;
use nix::sys::signal::Signal;
use outbox::{Error, Row, Table, Topic};
use postgres::{Postgres, runtime};
use records::{PARTITIONS, read, seen_once};
use setup::{Kind, Relay, Setup};

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

/// If Kafka refuses a row, no later row of its key is stored, however late the relay learns of that. Otherwise a reader that skips lower ids would
/// never see the row, when Kafka takes it at last.
#[test]
fn no_row_is_stored_before_an_earlier_one_that_kafka_refuses() {
    let cluster = Cluster::start(1, 0);
    let (kafka, name) = (cluster.kafka(), "changes");
    kafka.create_partitioned_topic(name, PARTITIONS);
    kafka.set_topic(name, &[("max.message.bytes", "700000")]);
    // No two rows are sent together.
    let rows = [(1, 600_000), (2, 990_000), (3, 600_000)];
    let rows = rows.map(|(id, bytes)| Row { id, key: "a".to_owned(), payload: "x".repeat(bytes) });
    runtime().block_on(async {
        let topic = Topic::open(kafka.address(), name).expect("a producer");
        let mut sent = pin!(topic.send(&rows));
        let _ = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        wait::pause(Duration::from_secs(2));
        sent.await.expect_err("the second row is too large");
    });
    kafka.set_topic(name, &[("max.message.bytes", "1048588")]);
    wait::until_true("rows that are stored", || {
        runtime().block_on(async { Topic::open(kafka.address(), name).expect("a producer").send(&rows).await }).is_ok()
    });
    assert!(seen_once(&read(&kafka, name)).into_iter().eq(1..=3));
}

#[test]
fn a_job_that_is_stopped_finishes_what_it_has_begun() {
    stop_leaders(Kind::Job);
}

#[test]
fn a_library_relay_that_is_stopped_finishes_what_it_has_begun() {
    stop_leaders(Kind::Library);
}

/// A relay that is stopped finishes its current rows: no row is sent twice.
fn stop_leaders(kind: Kind) {
    // No leader dies, so no lease should end, however busy the machine is.
    let setup = Setup::new(kind, 2, Duration::from_secs(60));
    let mut relays: Vec<Relay> = (0..2).map(|machine| setup.relay(machine)).collect();
    let written = setup.write_while(|| {
        for _ in 0..6 {
            let (leader, _) = setup.leader(&relays);
            setup.await_progress();
            let mut stopped = relays.remove(leader);
            stopped.running.signal(Signal::SIGTERM);
            relays.push(setup.relay(stopped.machine));
            assert_eq!(stopped.running.status(), 0, "{:?}", stopped.running.strange_lines());
        }
    });
    let records = setup.assert_all_relayed(written);
    assert_eq!(i64::try_from(records.len()), Ok(written), "no row was sent twice");
    end(relays);
}

/// A fault of a leader.
#[derive(Clone, Copy, Debug)]
enum Strike {
    /// Its machine is cut off from Kafka for longer than its lease.
    Cut,
    /// Its job is killed.
    Job,
    /// Its machine loses power.
    Machine,
    /// All its processes stop for longer than its lease, and then continue.
    Pause,
    /// It is stopped (SIGTERM).
    Stop,
    /// `neli-run` is killed.
    Supervisor,
}

#[test]
fn rows_survive_jobs_that_are_killed() {
    strike_leaders(
        Kind::Job,
        &[Strike::Cut, Strike::Job, Strike::Machine, Strike::Pause, Strike::Stop, Strike::Supervisor],
    );
}

#[test]
fn rows_survive_library_relays_that_are_killed() {
    strike_leaders(Kind::Library, &[Strike::Cut, Strike::Machine, Strike::Pause, Strike::Stop]);
}

/// Injects each fault twice, in random order.
fn strike_leaders(kind: Kind, strikes: &[Strike]) {
    let setup = Setup::new(kind, 3, Duration::from_secs(2));
    let mut relays: Vec<Relay> = (0..3).map(|machine| setup.relay(machine)).collect();
    let mut strikes = strikes.repeat(2);
    let mut random = wait::now();
    for at in (1..strikes.len()).rev() {
        // A linear congruential generator (Knuth's MMIX), so that every order may occur.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        strikes.swap(at, usize::try_from(random >> 33).expect("31 bits") % (at + 1));
    }
    let written = setup.write_while(|| {
        for strike in &strikes {
            let (leader, term) = setup.leader(&relays);
            setup.await_progress();
            strike.falls_on(&setup, &mut relays[leader], term);
        }
        setup.await_progress();
    });
    let records = setup.assert_all_relayed(written);
    println!("{kind:?}: {strikes:?}: {written} rows, {} records", records.len());
    end(relays);
}

impl Strike {
    /// `term`: in which this relay led. On a busy machine another may lead by now.
    fn falls_on(self, setup: &Setup, relay: &mut Relay, term: i64) {
        let processes = relay.processes();
        let signal_all = |signal| processes.iter().for_each(|process| process.signal(signal));
        match self {
            Self::Cut => {
                setup.set_flow(relay.machine, Flow::Lost);
                setup.await_term_after(term);
                return setup.set_flow(relay.machine, Flow::Open);
            }
            Self::Job => {
                let runs = relay.running.count("job_started");
                processes[2..].iter().for_each(|job| job.signal(Signal::SIGKILL));
                return wait::until_true("a job that is started again", || relay.running.count("job_started") > runs);
            }
            Self::Machine => {
                // All are stopped first, so that none of them sees another die.
                signal_all(Signal::SIGSTOP);
                signal_all(Signal::SIGKILL);
            }
            Self::Pause => {
                signal_all(Signal::SIGSTOP);
                setup.await_term_after(term);
                return signal_all(Signal::SIGCONT);
            }
            Self::Stop => relay.running.signal(Signal::SIGTERM),
            Self::Supervisor => relay.running.signal(Signal::SIGKILL),
        }
        relay.running.status();
        *relay = setup.relay(relay.machine);
    }
}

fn end(relays: Vec<Relay>) {
    for mut relay in relays {
        relay.running.signal(Signal::SIGTERM);
        relay.running.status();
    }
}
