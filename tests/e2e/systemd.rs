//! Messages to a service manager (`Type=notify`), which are received by a socket of the test.

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::{Kafka, SilentBroker};
use harness::process::Process;
use harness::{install, wait};
use nix::sys::signal::Signal;

use crate::{PROGRAM, bare, election};

/// The notify socket of a unit of `Type=notify`.
struct Manager {
    socket: UnixDatagram,
    name: String,
    /// Lines that were received and not returned yet.
    received: Vec<String>,
    /// The directory of a socket that has a path.
    _directory: Option<tempfile::TempDir>,
}

impl Manager {
    /// A socket with a path.
    fn new() -> Self {
        // A socket's path may have 107 bytes, and a path in `target/` may be longer.
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self::at(socket, path.display().to_string(), Some(directory))
    }

    /// A socket in the abstract namespace.
    fn nowhere() -> Self {
        let name = format!("neli-run-{:x}-{}", wait::now(), std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        Self::at(UnixDatagram::bind_addr(&address).expect("a socket"), format!("@{name}"), None)
    }

    fn at(socket: UnixDatagram, name: String, directory: Option<tempfile::TempDir>) -> Self {
        socket.set_read_timeout(Some(wait::PATIENCE)).expect("a timeout");
        Self { socket, name, received: Vec::new(), _directory: directory }
    }

    /// Makes the candidate a unit of this manager.
    fn unit(&self, candidate: Candidate) -> Candidate {
        candidate.variable("NOTIFY_SOCKET", &self.name)
    }

    /// Waits for a line with this beginning, skipping others, and returns the rest of it. The limit counts for the whole wait, because other
    /// messages, such as those of a watchdog, may arrive all the time.
    fn await_line(&mut self, beginning: &str) -> String {
        let end = wait::after(wait::PATIENCE);
        let mut skipped = Vec::new();
        loop {
            while !self.received.is_empty() {
                let line = self.received.remove(0);
                if let Some(rest) = line.strip_prefix(beginning) {
                    return rest.to_owned();
                }
                skipped.push(line);
            }
            let message = self.receive().filter(|_| wait::now() < end);
            self.received = message.unwrap_or_else(|| {
                panic!("no line within {:?} begins with {beginning:?}; these came: {skipped:?}", wait::PATIENCE)
            });
        }
    }

    /// The lines of the next message.
    fn receive(&self) -> Option<Vec<String>> {
        let mut bytes = [0; 4_096];
        match self.socket.recv(&mut bytes) {
            Ok(length) => Some(String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Discards all messages received so far; returns their number.
    fn forget(&mut self) -> usize {
        self.received.clear();
        self.socket.set_nonblocking(true).expect("the socket can be set");
        let count = std::iter::from_fn(|| self.receive()).count();
        self.socket.set_nonblocking(false).expect("the socket can be set");
        count
    }
}

/// A candidate is ready before any broker answers. Until then the status shows what it waits for.
#[test]
fn ready_comes_before_any_broker() {
    let election = TestElection::unreachable(PROGRAM);
    let broker = SilentBroker::start();
    for mut manager in [Manager::new(), Manager::nowhere()] {
        let candidate = bare().option("--group", &election.group).option("--brokers", broker.address()).job(["true"]);
        let run = manager.unit(candidate).start();
        let first = manager.receive().expect("a word");
        assert_eq!(first[..2], ["READY=1", "STATUS=reading the journal"], "{first:?}");
        let status = manager.await_line("STATUS=reading the journal; ");
        assert!(status.starts_with("no broker reached since 20") && status.contains(&broker.address()), "{status}");
        run.signal(Signal::SIGTERM);
        manager.await_line("STOPPING=1");
    }
}

/// While Kafka refuses to append a candidate's records, the status shows the reason in Kafka's words.
#[test]
fn a_refused_append_is_shown_until_a_record_is_appended() {
    const FIT: (&str, &str) = ("message.timestamp.type", "LogAppendTime");
    let election = election(Elector::Log);
    let (kafka, topic) = (Kafka::shared(), election.topic());
    kafka.create_topic(&topic, &[("max.message.bytes", "100"), FIT]);
    let mut manager = Manager::new();
    let mut run = manager.unit(election.candidate().lease("3s")).start();
    let status = manager
        .await_line("STATUS=standing by: nobody leads; its last claim was refused; Kafka refuses its records since 20");
    assert!(status.contains("Message size too large; max.message.bytes must be"), "{status}");
    kafka.set_topic(&topic, &[FIT]);
    let term = run.await_lead();
    // The claim may be read before its acknowledgement arrives, which ends the reason.
    while manager.await_line(&format!("STATUS=leading, term {term}, job ")).contains("refuses") {}
    election.close([run]);
}

/// A candidate that exits with an error is never ready.
#[test]
fn a_refused_candidate_is_never_ready() {
    let election = TestElection::unreachable(PROGRAM);
    let broker = SilentBroker::start();
    let missing = election.directory().join("no").join("log");
    let refused: [(&[&str], &Path); 2] =
        [(&["no-such-command-anywhere"], Path::new("/dev/null")), (&["true"], &missing)];
    for (job, log) in refused {
        let mut manager = Manager::new();
        let candidate = bare().option("--group", &election.group).option("--brokers", broker.address());
        let mut run = manager.unit(candidate.option("--log-file", log).job(job)).start();
        assert!([125, 127].contains(&run.status()));
        assert_eq!(manager.forget(), 0);
    }
}

/// The status shows the state, from standing by to the end.
#[test]
fn the_status_shows_the_state() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "db1").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut manager = Manager::new();
    let mut second = manager.unit(election.candidate()).start();
    manager.await_line("READY=1");
    manager.await_line(&format!("STATUS=standing by: db1 leads (term {term})"));
    first.signal(Signal::SIGTERM);

    let term = second.await_lead();
    let job = second.await_job().pid;
    manager.await_line(&format!("STATUS=leading, term {term}, job {job} running"));
    second.signal(Signal::SIGTERM);
    manager.await_line(&format!("STATUS=leading, term {term}, job {job} stopping: a signal to neli-run"));
    manager.await_line("STOPPING=1");
    // A release takes two milliseconds, and on a busy machine it is over before its status is sent.
    manager.await_line("STATUS=has left the election");
    election.close([first, second]);
}

/// With many roles the status names those that are led here.
#[test]
fn the_status_of_many_roles_names_those_that_are_led() {
    let election = election(Elector::Log);
    let mut manager = Manager::new();
    let many = |roles: &str| election.candidate().job(["sleep", "100000"]).option("--roles", roles);
    let limited = many("bill,ingest,report").option("--max-roles", "2").start();
    wait::until_true("two leads", || limited.count("leading") == 2);
    let other = manager.unit(many("bill,ingest,report")).start();
    let led = manager.await_line("STATUS=leading 1 of 3 roles (");
    assert!(["bill)", "ingest)", "report)"].contains(&led.as_str()), "{led}");
    other.signal(Signal::SIGTERM);
    manager.await_line("STOPPING=1");
    manager.await_line("STATUS=leading 0 of 3 roles");
    limited.signal(Signal::SIGTERM);
}

/// A stop that takes long keeps requesting the time that it needs, so that `TimeoutStopSec` does not end a barrier early.
#[test]
fn a_long_barrier_asks_for_time() {
    let election = election(Elector::Log);
    let mut manager = Manager::new();
    let job = election.witness().with("--ignore-stop");
    let candidate = election.candidate().job(job.command()).option("--stop-timeout", "5m").option("--on-fence", "true");
    let mut leader = manager.unit(candidate).start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.signal(Signal::SIGTERM);
    manager.await_line("STOPPING=1");
    let mut extension = || manager.await_line("EXTEND_TIMEOUT_USEC=").parse::<u64>().expect("a number");
    let (first, second) = (extension(), extension());
    // The stop timeout, a lease (20 s by default) for processes that do not die of SIGKILL at once, a lease for the release, and the time of a
    // hook, since the exit waits also for one that a fence has begun.
    assert!(first >= (300 + 20 + 20 + 10) * 1_000_000, "{first}");
    assert!(second < first, "{second} and {first}");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    election.close([leader]);
}

/// If the main loop hangs, no watchdog message is sent.
#[test]
fn a_stopped_supervisor_sends_no_watchdog_message() {
    let election = election(Elector::Log);
    let mut manager = Manager::new();
    let candidate = manager.unit(election.candidate()).variable("WATCHDOG_USEC", "100000");
    let for_itself = ["sh", "-c", r#"WATCHDOG_PID=$$ exec "$@""#, "sh"];
    let leader = candidate.start_behind(&for_itself);
    manager.await_line("READY=1");
    for _ in 0..3 {
        manager.await_line("WATCHDOG=1");
    }
    leader.signal(Signal::SIGSTOP);
    wait::until_true("a stopped supervisor", || leader.process().is_stopped());
    manager.forget();
    wait::pause(Duration::from_millis(500));
    assert_eq!(manager.forget(), 0);
    leader.signal(Signal::SIGCONT);
    manager.await_line("WATCHDOG=1");
    election.close([leader]);
}

/// The job does not get `NOTIFY_SOCKET`, because its messages would count as ours.
#[test]
fn no_other_process_gets_the_manager_s_address() {
    let runtime = install::scratch();
    let election = TestElection::unreachable(PROGRAM);
    let mut manager = Manager::new();
    let candidate = bare().flag("--embedded").option("--group", &election.group).job(election.witness().command());
    let candidate = candidate.variable("XDG_RUNTIME_DIR", runtime.path()).variable("WATCHDOG_USEC", "30000000");
    let mut leader = manager.unit(candidate).start();
    manager.await_line("WATCHDOG=1");
    let term = leader.await_lead();
    election.await_witness(term);
    let family = leader.process().descendants();
    let names: Vec<_> = family.iter().filter_map(|process| process.name()).collect();
    assert!(family.len() >= 3, "a guard, a job and a broker: {names:?}");
    for process in family {
        let environment = environment(process);
        for name in ["NOTIFY_SOCKET", "WATCHDOG_"] {
            assert!(!environment.contains(name), "{process:?} of {names:?}: {environment}");
        }
    }
    assert!(environment(leader.process()).contains("NOTIFY_SOCKET"), "the test would notice");
    end_with_broker(leader, runtime.path());
}

/// A manager that does not read its socket affects no lead.
#[test]
fn a_manager_that_reads_nothing_delays_nothing() {
    let election = election(Elector::Log);
    let manager = Manager::new();
    // Its queue is filled first.
    let stranger = UnixDatagram::unbound().expect("a socket");
    stranger.set_nonblocking(true).expect("the socket can be set");
    while stranger.send_to(b"STATUS=x", &manager.name).is_ok() {}
    let candidate = manager.unit(election.candidate()).variable("WATCHDOG_USEC", "20000").lease("5s");
    let mut leader = candidate.option("--heartbeat-interval", "200ms").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let beats =
        || election.testimony().of(term).map(|line| line.deadline).collect::<std::collections::BTreeSet<_>>().len();
    wait::until_true("a lease that is renewed", || beats() > 5);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    election.close([leader]);
}

/// An invalid address gets one warning and is otherwise ignored.
#[test]
fn an_invalid_address_is_reported() {
    let election = election(Elector::Log);
    let mut run = election.candidate().variable("NOTIFY_SOCKET", "vsock:2:1234").job(["true"]).start();
    assert_eq!(run.status(), 0);
    let warnings = run.events("warning");
    assert_eq!(
        warnings.iter().filter(|event| event.text("message").contains("NOTIFY_SOCKET=vsock:2:1234: ")).count(),
        1
    );
}

fn environment(process: Process) -> String {
    let path: PathBuf = format!("/proc/{}/environ", process.pid).into();
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Ends the leader and the broker, which would wait ten seconds for another candidate.
fn end_with_broker(leader: Running, runtime: &Path) {
    drop(leader);
    for process in Process::with_variable("XDG_RUNTIME_DIR", runtime) {
        process.signal(Signal::SIGKILL);
    }
}
