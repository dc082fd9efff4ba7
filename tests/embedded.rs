//! The embedded broker with real processes: it is found, shared, stopped in order, killed, and started again.
#![expect(clippy::unwrap_used, reason = "a test fails where it can't go on")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use neli::program::embedded::directory::BrokerDirectory;
use neli::program::embedded::{BrokerFinder, FoundBroker, StartedBrokers};
use neli::program::{
    Access, ElectionId, Elections, IfMissing, KafkaEvent, Key, Producer, Properties, Reader, SessionEvent, Source,
    broker_watch, clock,
};
use neli_proto::candidate::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rdkafka::producer::{BaseProducer, Producer as _};
use tokio::sync::mpsc::{Receiver, channel};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

fn finder(directory: &Path, idle_timeout_ms: u64) -> BrokerFinder {
    let directory = BrokerDirectory::at(&directory.join("neli-run")).unwrap();
    BrokerFinder {
        directory,
        program: PathBuf::from(PROGRAM),
        idle_timeout: Duration::from_millis(idle_timeout_ms),
        distrust: Duration::from_secs(61),
        started: StartedBrokers::default(),
    }
}

fn find(finder: &BrokerFinder) -> FoundBroker {
    finder.find_or_start().unwrap()
}

/// Whether the broker vouches that an empty journal means that there is no leader.
fn is_sure(found: &FoundBroker) -> bool {
    found.connection.trusted_from() <= clock::now()
}

fn only(mut started: Vec<Child>) -> Child {
    assert_eq!(started.len(), 1);
    started.remove(0)
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
    assert!(second.started.is_empty());
    assert_eq!(first.connection.bootstrap(), second.connection.bootstrap());
    assert!(is_sure(&first));

    let mut broker = only(first.started);
    drop(first.connection);
    second.connection.create_topic("t", 1).unwrap();
    assert!(broker.try_wait().unwrap().is_none());
    drop(second.connection);
    assert!(broker.wait().unwrap().success());
    let left = fs::read_dir(finder.directory.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["broker.lock"]);

    assert!(is_sure(&find(&finder)));
}

#[test]
fn a_candidate_that_connects_while_the_broker_ends_is_admitted_or_finds_another() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 10);
    for _ in 0..20 {
        let found = find(&finder);
        found.connection.create_topic("t", 1).unwrap();
        assert!(is_sure(&found));
    }
}

#[test]
fn candidates_that_start_at_the_same_time_share_one_broker() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 2_000);
    let all: Vec<_> = (0..8).map(|_| finder.clone()).map(|finder| thread::spawn(move || find(&finder))).collect();
    let all: Vec<FoundBroker> = all.into_iter().map(|one| one.join().unwrap()).collect();
    let bootstrap = all[0].connection.bootstrap();
    assert!(all.iter().all(|found| found.connection.bootstrap() == bootstrap && is_sure(found)));
}

#[test]
fn the_broker_after_a_killed_one_distrusts_its_empty_journal() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 50);
    let found = find(&finder);
    let before = found.connection.bootstrap().to_owned();
    let mut broker = only(found.started);
    let (seen, mut saw) = channel(4);
    broker_watch::watch(finder.clone(), found.connection, seen).unwrap();
    broker.kill().unwrap();
    broker.wait().unwrap();

    let moved = await_seen(&mut saw, |seen| {
        if let KafkaEvent::Process(SessionEvent::Moved(found)) = seen { Some(found) } else { None }
    });
    assert!(!is_sure(&moved));
    assert_ne!(moved.connection.bootstrap(), before);
    // This broker ends while a client is connected, so it can't know whether that client's job still runs.
    drop(saw);
    let mut broker = only(moved.started);
    terminate(&broker);
    broker.wait().unwrap();
    assert!(!is_sure(&find(&finder)));
}

/// Starts a broker, kills it, and finds its successor.
fn start_after_a_kill(finder: &BrokerFinder) -> FoundBroker {
    // While it has a client it does not end by itself.
    let FoundBroker { started, connection, .. } = find(finder);
    let mut broker = only(started);
    broker.kill().unwrap();
    broker.wait().unwrap();
    drop(connection);
    find(finder)
}

/// The distrust ends a fixed time after the start of the next broker, for each candidate that connects then.
#[test]
fn the_distrust_after_a_kill_ends() {
    let directory = tempfile::tempdir().unwrap();
    let distrust = Duration::from_millis(400);
    let finder = BrokerFinder { distrust, ..finder(directory.path(), 50) };
    let before = clock::now();
    let found = start_after_a_kill(&finder);
    // Whether this time is over already depends on the machine's load.
    let trusted_from = found.connection.trusted_from();
    assert!(trusted_from >= before + distrust);
    harness::wait::until_true("the end of the distrust", || clock::now() >= trusted_from);
    let second = find(&finder);
    assert!(second.started.is_empty() && is_sure(&second));
    drop((found.connection, second.connection));
    assert!(only(found.started).wait().unwrap().success());
    assert!(!finder.directory.marker().exists());
}

/// A broker that ends in order before the distrust is over leaves the rest of it to the next broker. A reboot ends it at once.
#[test]
fn the_next_broker_continues_the_distrust_and_a_reboot_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let finder = finder(directory.path(), 50);
    let found = start_after_a_kill(&finder);
    assert!(!is_sure(&found));
    let trusted_from = found.connection.trusted_from();
    // The broker ends in order: it had no client for the idle timeout. The time of distrust is not over.
    drop(found.connection);
    assert!(only(found.started).wait().unwrap().success());
    let next = find(&finder);
    assert_eq!(next.connection.trusted_from(), trusted_from);

    let mut broker = only(next.started);
    broker.kill().unwrap();
    broker.wait().unwrap();
    let marker = fs::read_to_string(finder.directory.marker()).unwrap();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(finder.directory.marker(), marker.replace(boot_id.trim_end(), "another")).unwrap();
    assert!(is_sure(&find(&finder)));
}

#[test]
fn it_inherits_no_descriptor_and_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    // This descriptor has no close-on-exec flag, like one that a shell passes on.
    let kept = nix::unistd::dup(fs::File::open("/dev/zero").unwrap()).unwrap();
    let found = find(&finder(directory.path(), 50));
    let mut broker = only(found.started);
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
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, broker.id().to_string());
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
        if let KafkaEvent::Delivered { seq, offset, .. } = seen {
            delivered.push((seq, offset));
        } else if let KafkaEvent::ReadForDisplay { reading, record, .. } = seen {
            records.push((reading, record.offset, record.key, record.value));
        } else if let KafkaEvent::Reading { event: Event::ReachedEnd { next }, .. } = seen {
            caught_up = next;
        }
    }
    assert_eq!(delivered, [(1, 0), (2, 1), (3, 2)]);
    let value = |text: &str| Some(Box::from(text.as_bytes()));
    let ours = [(1, 0, Key::Hello(0), value("hello")), (1, 1, Key::Election(0), value("claim"))];
    assert_eq!(records[..2], ours);
    assert_eq!(records[2], (1, 2, Key::Other, value("stranger")));
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
    assert!(found.started.is_empty());
    assert_eq!(found.connection.bootstrap(), address);
    assert_eq!(in_the_foreground(directory.path()).output().unwrap().status.code(), Some(125));

    found.connection.create_topic("t", 1).unwrap();
    terminate(&broker);
    assert!(broker.wait().unwrap().success());
    // A client was connected, so its job may still run, and the next broker must assume that.
    assert!(!is_sure(&find(&finder)));
}

/// A broker that is stopped at once had no topic, so no candidate could lead, and the next broker does not distrust its empty journal.
/// If a client that knows the address has created a topic, a candidate may have led, even if no client has connected to the Unix socket.
#[test]
fn after_a_stop_the_journal_is_distrusted_only_if_a_topic_existed() {
    for is_used in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let finder = finder(directory.path(), 50);
        let (mut broker, address) = start_in_the_foreground(directory.path());
        if is_used {
            let kafka = harness::kafka::Kafka::at(&address);
            let mut client = kafka.client();
            let client: BaseProducer = client.set("allow.auto.create.topics", "true").create().unwrap();
            let metadata = client.client().fetch_metadata(Some("t"), harness::wait::PATIENCE).unwrap();
            assert_eq!(metadata.topics().len(), 1);
        }
        terminate(&broker);
        assert!(broker.wait().unwrap().success());
        assert_eq!(finder.directory.marker().exists(), is_used);
        assert_eq!(is_sure(&find(&finder)), !is_used);
    }
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
