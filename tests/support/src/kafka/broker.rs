//! Brokers that the tests start.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use nix::sys::signal::Signal;
use rdkafka::producer::{BaseProducer, Producer};
use tempfile::TempDir;

use super::Kafka;
use crate::in_turn::{InTurn, Turn};
use crate::network::{LinkConditions, Network, Wire};
use crate::node::Node;
use crate::process::Process;
use crate::tls::{Authority, SecureAddresses};
use crate::{accounts, install, wait};

/// The longest time until a broker listens. Several brokers that start at once share the processors, and a busy machine has few.
const STARTS_WITHIN: Duration = Duration::from_mins(3);

/// A broker that the tests started: a child process that ends with this one.
#[derive(Debug)]
pub struct Broker {
    node: Node,
    /// The certificate authority of its certificates, if it has TLS.
    authority: Option<Authority>,
    directory: TempDir,
    running: Option<Running>,
    small_disk: bool,
    /// The file with the number of seconds by which the broker's wall clock is moved.
    clock: Option<PathBuf>,
    /// The permit, which is returned when the broker is dropped.
    permit: Option<BrokerPermit>,
}

/// The shell that supervises a broker's Java, and Java itself.
#[derive(Debug)]
struct Running {
    shell: Child,
    java: Process,
}

/// Starts Java ($@) and reads the pipe on stdin. When the pipe is closed, for any reason, the shell kills Java, and deletes the directory
/// ($1) unless a line asks to keep it. As Java's parent the shell can't kill another process that got the same pid. The shell has a process
/// group of its own, so that Ctrl-C does not reach it. Java starts first, because it would inherit the signals that the shell ignores.
const MINDER: &str = r#"
    directory=$1; shift
    "$@" </dev/null >>"$directory/log" 2>&1 &
    trap '' INT TERM HUP
    echo $!
    exec >/dev/null
    read -r word
    kill -9 $!
    wait $!
    [ "$word" = keep ] && exit
    mountpoint -q "$directory/data" && umount -l "$directory/data"
    rm -rf "$directory"
"#;

impl Broker {
    /// A broker for a single test, which the test may stop. At most two exist at a time.
    #[must_use]
    pub fn own() -> Self {
        Self::own_with("")
    }

    /// The same with this setting, a line.
    #[must_use]
    pub fn own_with(setting: &'static str) -> Self {
        let permit = BrokerPermit::take();
        let mut broker = Self::start(Node::alone().with_setting(setting));
        broker.permit = Some(permit);
        broker
    }

    /// A broker for a single test, with a policy for new topics (`TopicPolicy.java`).
    #[must_use]
    pub fn with_topic_policy() -> Self {
        let permit = BrokerPermit::take();
        let mut broker = Self::start(Node::alone().with_topic_policy());
        broker.permit = Some(permit);
        broker
    }

    /// A broker with a wall clock of its own, which [`Self::pass`] moves, and that deletes at once what a compacted topic need not keep.
    #[must_use]
    pub fn with_a_clock() -> Self {
        let permit = BrokerPermit::take();
        let mut broker = Self::of(Node::alone().that_deletes_at_once(), false);
        let clock = broker.directory.path().join("clock");
        fs::write(&clock, "0").expect("the directory is ours");
        (broker.clock, broker.permit) = (Some(clock), Some(permit));
        broker.begin();
        broker
    }

    /// Sets its wall clock to this time after the start, in one step as the kernel does.
    pub fn pass(&self, time: Duration) {
        let clock = self.clock.as_ref().expect("it was started with a clock");
        let next = clock.with_extension("next");
        fs::write(&next, time.as_secs().to_string()).expect("the directory is ours");
        fs::rename(&next, clock).expect("the directory is ours");
    }

    /// A broker with TLS listeners as well, for all tests that need them; it ends with this process.
    pub fn shared_with_tls() -> &'static Self {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Node::of_the_test_run().with_tls()))
    }

    /// A broker, and a wire to its listener with logins and without TLS; the broker advertises the wire's address there.
    #[must_use]
    pub fn behind_a_wire(network: &Network) -> (Self, Wire, String) {
        let node = Node::alone();
        let wire = network.wire(node.accounts_address().parse().expect("an address"));
        let address = format!("127.0.0.1:{}", wire.port);
        let broker = Self::start(node.with_accounts_advertised_at(wire.port));
        (broker, wire, address)
    }

    /// Like [`Broker::behind_a_wire`], for the listener with logins and TLS; one test at a time has it.
    pub fn with_tls_behind_a_wire() -> Turn<(Self, Wire, String)> {
        static BEHIND: InTurn<(Broker, Wire, String)> = InTurn::new();
        static NETWORK: OnceLock<Network> = OnceLock::new();
        let make = || {
            let node = Node::alone().with_tls();
            let direct = node.secure_addresses().expect("it has TLS").accounts;
            let wire = NETWORK.get_or_init(Network::start).wire(direct.parse().expect("an address"));
            let address = format!("127.0.0.1:{}", wire.port);
            let broker = Self::start(node.with_secure_accounts_advertised_at(wire.port));
            (broker, wire, address)
        };
        BEHIND.take(make, |(_, wire, _)| wire.set(LinkConditions::default()), |_| ())
    }

    /// The authority that signed its certificates.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.authority.as_ref().expect("it was started with TLS")
    }

    /// The addresses of the listeners with TLS.
    #[must_use]
    pub fn secure_addresses(&self) -> SecureAddresses {
        self.node.secure_addresses().expect("it was started with TLS")
    }

    /// A broker that accepts requests. A failure says what to install.
    pub(super) fn start(node: Node) -> Self {
        let mut broker = Self::of(node, false);
        broker.begin();
        accounts::grant(&broker.node.address());
        broker
    }

    /// A broker that has not been started. If `wants_small_disk`, its disk is small, provided that this machine allows mounting one.
    pub(crate) fn of(node: Node, wants_small_disk: bool) -> Self {
        let distribution = install::kafka();
        let directory = install::broker_directory();
        let authority = node.secure_addresses().map(|_| Authority::of_broker(directory.path()));
        let mut broker =
            Self { node, authority, directory, running: None, small_disk: false, clock: None, permit: None };
        let data = broker.data();
        fs::create_dir(&data).expect("the directory is ours");
        broker.small_disk = wants_small_disk && mount_small_disk(&data);
        install::copy_all(&distribution.formatted, &data).expect("copied");
        if install::has_own_controller() {
            let identity = data.join("meta.properties");
            let text = fs::read_to_string(&identity).expect("part of what is formatted");
            fs::write(identity, broker.node.identity(&text)).expect("the directory is ours");
        }
        fs::write(broker.settings(), broker.node.settings(&data, broker.authority.as_ref()))
            .expect("the directory is ours");
        broker
    }

    /// Access to the broker.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        Kafka { address: self.node.address(), accounts_address: Some(self.node.accounts_address()) }
    }

    /// The address of its controller; `None` with `ZooKeeper`.
    #[must_use]
    pub fn controller_address(&self) -> Option<String> {
        install::has_own_controller().then(|| format!("127.0.0.1:{}", self.node.controller()))
    }

    /// Starts it, or starts it again after [`Self::end`] with the same ports and data. Returns when it accepts requests.
    pub fn begin(&mut self) {
        self.launch();
        self.await_ready();
    }

    /// Starts it without waiting.
    pub fn launch(&mut self) {
        let distribution = install::kafka();
        let mut minder = Command::new("sh");
        minder.args(["-c", MINDER, "sh"]).arg(self.directory.path());
        minder.args(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", self.node.heap(), "-Dlog4j2.level=WARN"]);
        minder.arg(format!("-XX:SharedArchiveFile={}", distribution.classes.display()));
        let mut class_path = distribution.class_path.clone();
        if self.node.has_topic_policy() {
            class_path = format!("{class_path}:{}", install::topic_policy().display());
        }
        minder.args(["-cp", &class_path]);
        if install::has_own_controller() {
            minder.arg("kafka.Kafka");
        } else {
            minder
                .arg(install::with_zookeeper())
                .arg(self.node.controller())
                .arg(self.directory.path().join("zookeeper"));
        }
        minder.arg(self.settings());
        if let Some(clock) = &self.clock {
            minder.env("LD_PRELOAD", install::stepped_clock()).env("STEPPED_CLOCK", clock);
        }
        minder.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = minder.spawn().expect("every Linux has a shell");

        let mut pid = String::new();
        BufReader::new(shell.stdout.as_mut().expect("piped"))
            .read_line(&mut pid)
            .expect("the shell prints the pid of its child");
        let pid = pid.trim().parse().expect("a pid");
        let Some(java) = Process::find(pid) else { self.give_up() };
        self.running = Some(Running { shell, java });
    }

    /// Waits until it accepts requests.
    pub fn await_ready(&self) {
        let java = self.java();
        let address: SocketAddr = self.node.address().parse().expect("an address");
        let listens = wait::poll_for(STARTS_WITHIN, || {
            if !java.lives() {
                self.give_up();
            }
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()
        });
        assert!(listens.is_some(), "the broker does not listen after {STARTS_WITHIN:?}");
        // The broker listens slightly before it lists itself in its metadata.
        let client: BaseProducer = self.kafka().client().create().expect("a client");
        wait::until("a broker that answers", || {
            let metadata = client.client().fetch_metadata(None, Duration::from_secs(5)).ok()?;
            (!metadata.brokers().is_empty()).then_some(())
        });
    }

    /// Whether its disk can be filled.
    #[must_use]
    pub fn has_a_small_disk(&self) -> bool {
        self.small_disk
    }

    /// Fills its disk.
    pub fn fill_disk(&self) {
        assert!(self.small_disk, "every user can write to the other disk");
        let mut filler = fs::File::create(self.filler()).expect("the directory is ours");
        // The loop ends when a write fails, because the disk is full.
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    /// Frees the space on its disk.
    pub fn empty_disk(&self) {
        fs::remove_file(self.filler()).expect("the directory is ours");
    }

    fn filler(&self) -> PathBuf {
        self.data().join("filler")
    }

    /// Whether it was started and has not been ended since.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Whether its process is alive.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.java.lives())
    }

    /// Asks it to hand over its partitions and exit (SIGTERM). Call [`Self::end`] once [`Self::lives`] is false.
    pub fn ask_to_shut_down(&self) {
        self.java().signal(Signal::SIGTERM);
    }

    /// Kills it as a power cut would: at once, with its data kept.
    pub fn end(&mut self) {
        self.stop("keep");
    }

    /// Stops its process (SIGSTOP): connections stay open, and no request is answered.
    pub fn freeze(&self) {
        self.java().signal(Signal::SIGSTOP);
        wait::until_true("a stopped broker", || self.java().is_stopped());
    }

    /// Continues its process (SIGCONT).
    pub fn thaw(&self) {
        self.java().signal(Signal::SIGCONT);
    }

    /// Its directory, with its data.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// `HOST:PORT` of the listener where every client has all rights.
    #[must_use]
    pub fn address(&self) -> String {
        self.node.address()
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> Process {
        self.java()
    }

    /// The bytes of a topic's partition 0 in the segments on its disk.
    #[must_use]
    pub fn segment_bytes(&self, topic: &str) -> u64 {
        let files = fs::read_dir(self.data().join(format!("{topic}-0"))).expect("a topic has a directory");
        let segments = files
            .map(|file| file.expect("readable"))
            .filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
        segments.map(|file| file.metadata().expect("readable").len()).sum()
    }

    /// The quorum of controllers according to this broker: the epoch and the leader's id; `None` if the epoch is below 1.
    pub(crate) fn quorum(&self) -> Option<(i64, i64)> {
        let text = fs::read_to_string(self.data().join("__cluster_metadata-0/quorum-state")).ok()?;
        let state: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some((state["leaderEpoch"].as_i64()?, state["leaderId"].as_i64()?))
    }

    fn java(&self) -> Process {
        self.running.as_ref().expect("it runs").java
    }

    fn stop(&mut self, word: &str) {
        if let Some(Running { mut shell, .. }) = self.running.take() {
            // The pipe is dropped at the end of this statement, and the end of file ends Java. The write fails if the shell has ended
            // already.
            let _ = writeln!(shell.stdin.take().expect("piped"), "{word}");
            shell.wait().expect("a child can be waited for");
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn settings(&self) -> PathBuf {
        self.directory.path().join("properties")
    }

    fn give_up(&self) -> ! {
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(30).collect();
        let tail: String = tail.into_iter().rev().fold(String::new(), |mut tail, line| {
            let _ = writeln!(tail, "{line}");
            tail
        });
        panic!("Kafka did not start (it needs Java 17 or later: apt-get install default-jdk-headless):\n{tail}");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop("");
        if self.small_disk {
            // A broker that was ended keeps its disk until now. For other brokers the unmount fails, and is not needed.
            let _ = Command::new("umount").arg("-l").arg(self.data()).stderr(Stdio::null()).status();
        }
        self.node.give_back();
        drop(self.permit.take());
    }
}

/// Mounts a file system in memory; returns whether this machine allows it.
fn mount_small_disk(at: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=256m", "neli-run-harness"]).arg(at);
    mount.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The right to a broker for one test: the machine has memory for a limited number.
#[derive(Debug)]
struct BrokerPermit;

/// The number of permits left.
static BROKER_PERMITS: (Mutex<usize>, Condvar) = (Mutex::new(2), Condvar::new());

impl BrokerPermit {
    fn take() -> Self {
        let left = BROKER_PERMITS.0.lock().expect("no panic while it was locked");
        *BROKER_PERMITS.1.wait_while(left, |left| *left == 0).expect("no panic while it was locked") -= 1;
        Self
    }
}

impl Drop for BrokerPermit {
    fn drop(&mut self) {
        *BROKER_PERMITS.0.lock().expect("no panic while it was locked") += 1;
        BROKER_PERMITS.1.notify_one();
    }
}
