//! The embedded broker with real processes: it is found, shared, stopped in order and killed.
#![expect(clippy::unwrap_used, reason = "a test fails where it can't go on")]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use neli_kafka::embedded::{BrokerFinder, FoundBroker};
use neli_kafka::{Access, ElectionId, Elections, IfMissing, KafkaEvent, Producer, Properties, Reader, Source};
use neli_proto::candidate::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc::{Receiver, channel};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

fn finder(directory: &Path, idle_timeout_ms: u64) -> BrokerFinder {
    let mut finder = BrokerFinder::with_runtime(Some(directory.into())).unwrap();
    finder.program = PathBuf::from(PROGRAM);
    finder.idle_timeout = Duration::from_millis(idle_timeout_ms);
    finder
}

fn find(finder: &BrokerFinder) -> FoundBroker {
    finder.find_or_start().unwrap()
}

fn terminate(process: &Child) {
    kill(Pid::from_raw(process.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
}

/// Waits for the next event that `pick` accepts.
fn await_seen<T>(seen: &mut Receiver<KafkaEvent>, mut pick: impl FnMut(KafkaEvent) -> Option<T>) -> T {
    loop {
        if let Some(picked) = pick(seen.blocking_recv().unwrap()) {
            return picked;
        }
    }
}

#[test]
fn the_second_candidate_finds_the_broker_of_the_first_and_it_ends_in_order_after_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 50);
    let first = find(&finder);
    let second = find(&finder);
    assert!(second.started.is_none());
    assert_eq!(first.connection.bootstrap(), second.connection.bootstrap());

    let mut broker = first.started.unwrap();
    drop(first.connection);
    second.connection.create_topic("t", 1).unwrap();
    assert!(broker.try_wait().unwrap().is_none());
    drop(second.connection);
    assert!(broker.wait().unwrap().success());
    let left = fs::read_dir(finder.directory.path()).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["broker.lock", "candidates.lock"]);
}

#[test]
fn a_candidate_that_connects_while_the_broker_ends_is_admitted_or_finds_another() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 10);
    for _ in 0..20 {
        let found = find(&finder);
        found.connection.create_topic("t", 1).unwrap();
    }
}

#[test]
fn candidates_that_start_at_the_same_time_share_one_broker() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 2_000);
    let all: Vec<_> = (0..8).map(|_| finder.clone()).map(|finder| thread::spawn(move || find(&finder))).collect();
    let all: Vec<FoundBroker> = all.into_iter().map(|one| one.join().unwrap()).collect();
    let bootstrap = all[0].connection.bootstrap();
    assert!(all.iter().all(|found| found.connection.bootstrap() == bootstrap));
}

#[test]
fn a_broker_that_starts_slowly_is_not_started_twice() {
    let directory = tempfile::tempdir().unwrap();
    let [slow, starts] = ["slow", "starts"].map(|name| directory.path().join(name));
    fs::write(&slow, format!("#!/bin/sh\necho >>{}\n/bin/sleep 1.5\nexec {PROGRAM} \"$@\"\n", starts.display()))
        .unwrap();
    fs::set_permissions(&slow, Permissions::from_mode(0o755)).unwrap();
    let mut finder = finder(directory.path(), 50);
    finder.program = slow;
    let found = find(&finder);
    drop(found.connection);
    assert!(found.started.unwrap().wait().unwrap().success());
    assert_eq!(fs::read_to_string(starts).unwrap(), "\n");
}

/// A process that holds the lock of the candidates may have a job, of which a new broker's empty journal says nothing.
#[test]
fn a_new_broker_does_not_begin_while_a_candidate_of_the_killed_one_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let found = find(&finder(directory.path(), 50));
    let mut broker = found.started.unwrap();
    broker.kill().unwrap();
    broker.wait().unwrap();
    let refused = in_the_foreground(directory.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains(&format!("process {}, ", std::process::id())) && why.lines().count() == 1, "{why}");
    drop(found.lock);
    let (mut broker, _) = start_in_the_foreground(directory.path());
    terminate(&broker);
    assert!(broker.wait().unwrap().success());
}

#[test]
fn it_inherits_no_descriptor_and_is_in_no_process_group_of_the_candidate() {
    let directory = tempfile::tempdir().unwrap();
    // This descriptor has no close-on-exec flag, like one that a shell passes on.
    let kept = nix::unistd::dup(fs::File::open("/dev/zero").unwrap()).unwrap();
    let found = find(&finder(directory.path(), 50));
    let mut broker = found.started.unwrap();
    let process = PathBuf::from(format!("/proc/{}", broker.id()));
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    for entry in fs::read_dir(process.join("fd")).unwrap() {
        let path = entry.unwrap().path();
        let target = fs::read_link(&path).unwrap();
        assert_ne!(target, Path::new("/dev/zero"), "{}", path.display());
    }
    for number in ["0", "1", "2"] {
        assert_eq!(fs::read_link(process.join("fd").join(number)).unwrap(), Path::new("/dev/null"));
    }
    let stat = fs::read_to_string(process.join("stat")).unwrap();
    let group = stat.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap();
    assert_eq!(group, broker.id().to_string());
    let environment = fs::read_to_string(process.join("environ")).unwrap();
    assert!(environment.split_terminator('\0').all(|variable| variable.starts_with("XDG_RUNTIME_DIR=")));
    drop((kept, found.connection));
    assert!(broker.wait().unwrap().success());
}

#[test]
fn records_are_written_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let found = find(&finder(directory.path(), 50));
    let access = Access::embedded(&found.connection, &Properties::default());
    let election =
        ElectionId { group: "g".to_owned(), topic: "g.neli".to_owned(), partition: 0, role: 0, role_name: None };
    let (seen, mut saw) = channel(64);
    let elections = Elections::from(&election);
    let source = Source {
        access: access.clone(),
        elections: elections.clone(),
        partitions: None,
        only: None,
        if_missing: IfMissing::Create,
        is_for_display: true,
    };
    let reader = Reader::start(source, 1, seen.clone()).unwrap();
    let pick = |seen| {
        let KafkaEvent::Reading { event: Event::Answered { start, end, .. }, .. } = seen else { return None };
        Some((start, end))
    };
    assert_eq!(await_seen(&mut saw, pick), (0, 0));
    reader.read_from(0, 0);

    let producer = Producer::start(&access, &elections, Duration::from_secs(5), seen).unwrap();
    producer.send(&election, Some(1), "g/0/hello", Some(b"hello")).unwrap();
    producer.send(&election, Some(2), "g/0", Some(b"claim")).unwrap();
    producer.send(&election, Some(3), "other/0", Some(b"stranger")).unwrap();
    let (mut records, mut delivered, mut caught_up) = (Vec::new(), Vec::new(), 0);
    // The reader may come to the end before the producer is told of the last delivery.
    while records.len() < 3 || delivered.len() < 3 || caught_up != 3 {
        let seen = saw.blocking_recv().unwrap();
        if let KafkaEvent::Delivered { seq, .. } = seen {
            delivered.push(seq);
        } else if let KafkaEvent::ReadForDisplay { reading, record, .. } = seen {
            records.push((reading, record.offset, record.key, record.value));
        } else if let KafkaEvent::Reading { event: Event::ReachedEnd { next }, .. } = seen {
            caught_up = next;
        }
    }
    assert_eq!(delivered, [1, 2, 3]);
    let bytes = |text: &str| Some(Box::from(text.as_bytes()));
    let record = |offset, key, value| (1, offset, bytes(key), bytes(value));
    assert_eq!(records, [record(0, "g/0/hello", "hello"), record(1, "g/0", "claim"), record(2, "other/0", "stranger")]);
}

/// The command `neli-run broker`.
fn in_the_foreground(directory: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("broker").env("XDG_RUNTIME_DIR", directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a broker in the foreground; returns its process and the address that it prints.
fn start_in_the_foreground(directory: &Path) -> (Child, String) {
    let mut broker = in_the_foreground(directory).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(broker.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (broker, address.trim_end().to_owned())
}

#[test]
fn in_the_foreground_it_prints_its_address_and_ends_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (mut broker, address) = start_in_the_foreground(directory.path());
    let mut usage = String::new();
    BufReader::new(broker.stderr.take().unwrap()).read_line(&mut usage).unwrap();
    assert!(usage.contains("neli-run --embedded --group NAME -- COMMAND"), "{usage}");
    let finder = finder(directory.path(), 50);
    let found = find(&finder);
    assert!(found.started.is_none());
    assert_eq!(found.connection.bootstrap(), address);
    assert_eq!(in_the_foreground(directory.path()).output().unwrap().status.code(), Some(125));

    found.connection.create_topic("t", 1).unwrap();
    terminate(&broker);
    assert!(broker.wait().unwrap().success());
}

/// While machines are updated, candidates of the version before and of this one share a broker, and either may have started it.
#[test]
fn the_messages_of_broker_and_candidate_are_those_of_every_version() {
    const REQUEST: &str = r#"{"create_topic":"t","partitions":2}"#;
    let line = |stream: &UnixStream| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    let directory = tempfile::tempdir().unwrap();
    let (mut broker, address) = start_in_the_foreground(directory.path());
    let mut candidate = UnixStream::connect(finder(directory.path(), 50).directory.socket()).unwrap();
    assert_eq!(line(&candidate), format!("{{\"bootstrap\":\"{address}\"}}\n"));
    writeln!(candidate, "{REQUEST}").unwrap();
    assert_eq!(line(&candidate), "{\"error\":null}\n");
    writeln!(candidate, "[]").unwrap();
    assert!(line(&candidate).starts_with("{\"error\":\""));
    terminate(&broker);
    assert!(broker.wait().unwrap().success());

    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 50);
    let socket = UnixListener::bind(finder.directory.socket()).unwrap();
    let serve = thread::spawn(move || {
        let accept = || {
            let (mut stream, _) = socket.accept().unwrap();
            writeln!(stream, r#"{{"bootstrap":"localhost:1","of a later version":true}}"#).unwrap();
            stream
        };
        let (_open, mut asking) = (accept(), accept());
        assert_eq!(line(&asking), format!("{REQUEST}\n"));
        writeln!(asking, r#"{{"error":"no room"}}"#).unwrap();
    });
    let found = find(&finder);
    assert_eq!(found.connection.bootstrap(), "localhost:1");
    assert_eq!(found.connection.create_topic("t", 2).unwrap_err().to_string(), "no room");
    serve.join().unwrap();
}

/// A broker that ends takes every journal with it. So at its limit of open files it leaves a further candidate waiting.
#[test]
fn a_candidate_that_connects_at_the_limit_of_open_files_waits() {
    let directory = tempfile::tempdir().unwrap();
    let (mut broker, _) = start_in_the_foreground(directory.path());
    let limit = |most: &str| {
        let options = [format!("--pid={}", broker.id()), format!("--nofile={most}:")];
        assert!(Command::new("prlimit").args(options).status().unwrap().success());
    };
    limit("3");
    let mut candidate = UnixStream::connect(finder(directory.path(), 50).directory.socket()).unwrap();
    candidate.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let refused = candidate.read(&mut [0]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock, "it waits for the broker's answer");
    limit("256");
    candidate.set_read_timeout(Some(harness::wait::PATIENCE)).unwrap();
    assert_eq!(candidate.read(&mut [0]).unwrap(), 1);
    terminate(&broker);
    assert!(broker.wait().unwrap().success());
}
