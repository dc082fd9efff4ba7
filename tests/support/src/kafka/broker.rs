//! Brokers of our own.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use rdkafka::producer::{BaseProducer, Producer};
use tempfile::TempDir;

use super::Kafka;
use crate::network::{Network, Wire};
use crate::node::Node;
use crate::process::Process;
use crate::tls::{Authority, SecureAddresses};
use crate::{accounts, install, wait};

/// How long a broker may take until it listens: several that start at once share the processors, and a busy machine has few.
const STARTS_WITHIN: Duration = Duration::from_mins(3);

/// A broker that we started: our own process, that dies with us.
#[derive(Debug)]
pub struct Broker {
    node: Node,
    /// Who signed its certificate, where it has one.
    authority: Option<Authority>,
    directory: TempDir,
    running: Option<Running>,
    small_disk: bool,
    /// Given back when it is dropped.
    permit: Option<BrokerPermit>,
}

/// The shell that minds a broker's Java, and Java.
#[derive(Debug)]
struct Running {
    shell: Child,
    java: Process,
}

/// Starts Java ($@) beside a `read` of the pipe that is our stdin: when that ends, however its other end came to close, Java is
/// killed, and the directory ($1) with it unless a word says that it will be needed again. As Java's parent the shell
/// can't kill a stranger of the same pid, and in a process group of its own no Ctrl-C reaches it. What it ignores Java
/// would, too, were it started later.
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
    /// A broker for one test alone, that it may stop; no more than two of them at a time.
    #[must_use]
    pub fn own() -> Self {
        let permit = BrokerPermit::take();
        let mut broker = Self::start(Node::alone());
        broker.permit = Some(permit);
        broker
    }

    /// One that can be reached by TLS, too; there is to be one of it.
    #[must_use]
    pub fn with_tls() -> Self {
        Self::start(Node::alone().with_tls())
    }

    /// A broker, and a wire to its listener without TLS where one must log in; its address is the wire's.
    #[must_use]
    pub fn behind_a_wire(network: &Network) -> (Self, Wire, String) {
        let node = Node::alone();
        let wire = network.wire(node.accounts_address().parse().expect("an address"));
        let address = format!("127.0.0.1:{}", wire.port);
        let broker = Self::start(node.with_accounts_advertised_at(wire.port));
        (broker, wire, address)
    }

    /// The same of one with TLS, to the listener with TLS.
    #[must_use]
    pub fn with_tls_behind_a_wire(network: &Network) -> (Self, Wire, String) {
        let node = Node::alone().with_tls();
        let direct = node.secure_addresses().expect("it has TLS").accounts;
        let wire = network.wire(direct.parse().expect("an address"));
        let address = format!("127.0.0.1:{}", wire.port);
        let broker = Self::start(node.with_secure_accounts_advertised_at(wire.port));
        (broker, wire, address)
    }

    /// Who signed its certificates.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.authority.as_ref().expect("it was started with TLS")
    }

    /// The listeners with TLS.
    #[must_use]
    pub fn secure_addresses(&self) -> SecureAddresses {
        self.node.secure_addresses().expect("it was started with TLS")
    }

    /// A broker that takes requests; the error says what to install.
    pub(super) fn start(node: Node) -> Self {
        let mut broker = Self::of(node, false);
        broker.begin();
        accounts::grant(&broker.node.address());
        broker
    }

    /// A broker that has yet to begin. Its disk is small where that is wanted and we may mount
    /// one.
    pub(crate) fn of(node: Node, wants_small_disk: bool) -> Self {
        let distribution = install::kafka();
        let directory = install::scratch();
        let authority = node.secure_addresses().map(|_| Authority::of_broker(directory.path()));
        let mut broker = Self { node, authority, directory, running: None, small_disk: false, permit: None };
        let data = broker.data();
        fs::create_dir(&data).expect("the directory is ours");
        broker.small_disk = wants_small_disk && mount_small_disk(&data);
        for entry in fs::read_dir(&distribution.formatted).expect("formatted") {
            let path = entry.expect("readable").path();
            fs::copy(&path, data.join(path.file_name().expect("a file"))).expect("copied");
        }
        let identity = data.join("meta.properties");
        let text = fs::read_to_string(&identity).expect("part of what is formatted");
        fs::write(identity, broker.node.identity(&text)).expect("the directory is ours");
        fs::write(broker.settings(), broker.node.settings(&data, broker.authority.as_ref()))
            .expect("the directory is ours");
        broker
    }

    /// The Kafka that it is.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        Kafka { address: self.node.address(), accounts_address: Some(self.node.accounts_address()) }
    }

    /// Starts it, again after [`Self::end`], with the same ports and what it had written; returns when it takes requests.
    pub fn begin(&mut self) {
        self.launch();
        self.await_ready();
    }

    /// Starts it, and waits for nothing.
    pub fn launch(&mut self) {
        let distribution = install::kafka();
        let mut minder = Command::new("sh");
        minder.args(["-c", MINDER, "sh"]).arg(self.directory.path());
        minder.args(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", self.node.heap(), "-Dlog4j2.level=WARN"]);
        minder.args(["-cp", &distribution.class_path, "kafka.Kafka"]).arg(self.settings());
        minder.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = minder.spawn().expect("every Linux has a shell");

        let mut pid = String::new();
        BufReader::new(shell.stdout.as_mut().expect("piped"))
            .read_line(&mut pid)
            .expect("the shell says its child's pid");
        let pid = pid.trim().parse().expect("a pid");
        let Some(java) = Process::find(pid) else { self.give_up() };
        self.running = Some(Running { shell, java });
    }

    /// Waits until it takes requests.
    pub fn await_ready(&self) {
        let java = self.java();
        let address: SocketAddr = self.node.address().parse().expect("an address");
        let listens = wait::poll_for(STARTS_WITHIN, || {
            if !java.lives() {
                self.give_up();
            }
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()
        });
        assert!(listens.is_some(), "waited {STARTS_WITHIN:?} in vain for a broker that listens");
        // It listens a little before it knows itself.
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

    /// Leaves no room on its disk.
    pub fn fill_disk(&self) {
        assert!(self.small_disk, "another disk is everybody's");
        let mut filler = fs::File::create(self.filler()).expect("the directory is ours");
        // Until there is no room: that it fails is what it is for.
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    /// Leaves room again.
    pub fn empty_disk(&self) {
        fs::remove_file(self.filler()).expect("the directory is ours");
    }

    fn filler(&self) -> PathBuf {
        self.data().join("filler")
    }

    /// Whether it was started, and has not been ended since.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Whether its process is there.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.java.lives())
    }

    /// Asks it to hand over and go (SIGTERM); it is gone when [`Self::lives`] says so, and is then still to be ended.
    pub fn ask_to_shut_down(&self) {
        self.java().signal(Signal::SIGTERM);
    }

    /// Ends it as a power cut does: at once, with what it had written kept.
    pub fn end(&mut self) {
        self.stop("keep");
    }

    /// Stops its process (SIGSTOP): connections stay, answers don't come.
    pub fn freeze(&self) {
        self.java().signal(Signal::SIGSTOP);
        wait::until_true("a stopped broker", || self.java().is_stopped());
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.java().signal(Signal::SIGCONT);
    }

    /// Whatever it is, its data included, lies here.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// `HOST:PORT`, where whoever comes may do everything.
    #[must_use]
    pub fn address(&self) -> String {
        self.node.address()
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> Process {
        self.java()
    }

    /// The bytes of a topic's partition 0, in the segments on its disk.
    #[must_use]
    pub fn segment_bytes(&self, topic: &str) -> u64 {
        let files = fs::read_dir(self.data().join(format!("{topic}-0"))).expect("a topic has a directory");
        let segments = files
            .map(|file| file.expect("readable"))
            .filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
        segments.map(|file| file.metadata().expect("readable").len()).sum()
    }

    /// The quorum of controllers as it knows it: the epoch, and the node that leads it; none below 1.
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
            // Dropped at the end of this statement: the end of file is what ends Java. A shell that is gone takes no word.
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
            // One that was ended before keeps it until now; another is rid of it already.
            let _ = Command::new("umount").arg("-l").arg(self.data()).stderr(Stdio::null()).status();
        }
        self.node.give_back();
        drop(self.permit.take());
    }
}

/// A disk in memory; whether we may have one.
fn mount_small_disk(at: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=256m", "neli-run-harness"]).arg(at);
    mount.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The right to a broker of one's own: a machine has memory for so many.
#[derive(Debug)]
struct BrokerPermit;

/// The permits that are left.
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
