//! Brokers: one for the whole test run, a few for tests that stop theirs, and one that never answers.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;
use std::{env, fs, iter, thread};

use nix::sys::signal::Signal;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, Producer};
use tempfile::TempDir;

use crate::process::Process;
use crate::tls::Authority;
use crate::{accounts, install, wait};

/// A Kafka that can be reached.
#[derive(Debug)]
pub struct Kafka {
    address: String,
    /// The listener that asks who one is; a Kafka that we did not start has none that we know of.
    accounts_address: Option<String>,
}

impl Kafka {
    /// The Kafka of the whole test run: that of `KAFKA_BROKERS`, or a broker of our own. It ends with this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<Kafka, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| match env::var("KAFKA_BROKERS") {
            Ok(address) if !address.is_empty() => Ok(Self::at(&address)),
            _ => {
                // A static is never dropped: the broker goes when its pipe does, with the process.
                static BROKER: OnceLock<Broker> = OnceLock::new();
                let broker = Broker::start(false)?;
                Ok(Self { ..BROKER.get_or_init(|| broker).kafka() })
            }
        });
        shared.as_ref().unwrap_or_else(|why| panic!("{why}"))
    }

    /// One that we know nothing of but where it is.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { address: address.to_owned(), accounts_address: None }
    }

    /// `HOST:PORT` as a bootstrap server; whoever comes may do everything.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The listener where one must be one of [`accounts::Account`], if there is one.
    #[must_use]
    pub fn accounts_address(&self) -> Option<&str> {
        self.accounts_address.as_deref()
    }

    /// A client's configuration.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &self.address).set("allow.auto.create.topics", "false");
        client
    }

    /// Makes a topic of one partition with settings of its own.
    pub fn create_topic(&self, name: &str, settings: &[(&str, &str)]) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let topic = settings
            .iter()
            .fold(NewTopic::new(name, 1, TopicReplication::Fixed(1)), |topic, (key, value)| topic.set(key, value));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let made = runtime.block_on(admin.create_topics([&topic], &AdminOptions::new())).expect("the broker answers");
        for result in made {
            result.expect("the topic is made");
        }
    }

    /// What a topic's configuration says.
    #[must_use]
    pub fn topic_setting(&self, name: &str, key: &str) -> String {
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let asked = [ResourceSpecifier::Topic(name)];
        let answer =
            runtime.block_on(admin.describe_configs(&asked, &AdminOptions::new())).expect("the broker answers");
        let settings = answer.into_iter().next().expect("one was asked for").expect("the topic is there");
        settings.get(key).and_then(|entry| entry.value.clone()).expect("a setting that Kafka knows")
    }

    /// Whether a topic is there.
    #[must_use]
    pub fn has_topic(&self, name: &str) -> bool {
        let client: BaseProducer = self.client().create().expect("a client");
        let metadata = client.client().fetch_metadata(None, wait::PATIENCE).expect("the broker answers");
        metadata.topics().iter().any(|topic| topic.name() == name)
    }
}

/// A broker that we started: our own process, that dies with us.
#[derive(Debug)]
pub struct Broker {
    ports: Ports,
    tls: Option<Authority>,
    directory: TempDir,
    running: Option<Running>,
    /// Given back when it is dropped.
    seat: Option<Seat>,
}

/// The shell that minds a broker's Java, and Java.
#[derive(Debug)]
struct Running {
    shell: Child,
    java: Process,
}

/// The ports of a broker: they stay the same when it is started again.
#[derive(Clone, Copy, Debug)]
struct Ports {
    plain: u16,
    accounts: u16,
    controller: u16,
    tls: u16,
    tls_accounts: u16,
}

/// Starts Java ($@) beside a `read` of the pipe that is our stdin: when that ends, however its other end came to close, Java is
/// killed, and the directory ($1) with it unless a word says that it will be needed again. As Java's parent the shell
/// can't kill a stranger of the same pid, and in a process group of its own no Ctrl-C reaches it.
const MINDER: &str = r#"
    directory=$1; shift
    trap '' INT TERM HUP
    "$@" </dev/null >>"$directory/log" 2>&1 &
    echo $!
    exec >/dev/null
    read -r word
    kill -9 $!
    wait $!
    [ "$word" = keep ] || rm -rf "$directory"
"#;

impl Broker {
    /// A broker for one test alone, that it may stop; no more than two of them at a time.
    #[must_use]
    pub fn own() -> Self {
        let seat = Seat::take();
        let mut broker = Self::start(false).unwrap_or_else(|why| panic!("{why}"));
        broker.seat = Some(seat);
        broker
    }

    /// One that can be reached by TLS, too.
    #[must_use]
    pub fn with_tls() -> Self {
        let seat = Seat::take();
        let mut broker = Self::start(true).unwrap_or_else(|why| panic!("{why}"));
        broker.seat = Some(seat);
        broker
    }

    /// Who signed its certificate.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.tls.as_ref().expect("it was started with TLS")
    }

    /// The listener with TLS where whoever comes may do everything.
    #[must_use]
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.tls)
    }

    /// The listener with TLS where one must log in by SCRAM.
    #[must_use]
    pub fn tls_accounts_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.tls_accounts)
    }

    /// A broker that takes requests; the error says what to install.
    fn start(tls: bool) -> Result<Self, String> {
        let distribution = install::kafka()?;
        let directory = install::scratch();
        let tls = tls.then(|| Authority::new(directory.path(), "authority"));
        let mut broker = Self { ports: Ports::free(), tls, directory, running: None, seat: None };
        let data = broker.data();
        fs::create_dir(&data).expect("the directory is ours");
        for entry in fs::read_dir(&distribution.formatted).expect("formatted") {
            let path = entry.expect("readable").path();
            fs::copy(&path, data.join(path.file_name().expect("a file"))).expect("copied");
        }
        let tls = broker.tls.as_ref().map_or_else(String::new, |authority| broker.ports.tls_settings(authority));
        fs::write(broker.settings(), broker.ports.settings(&data) + &tls).expect("the directory is ours");
        broker.begin();
        accounts::grant(&broker.ports.plain_address());
        Ok(broker)
    }

    /// The Kafka that it is.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        let accounts_address = Some(format!("127.0.0.1:{}", self.ports.accounts));
        Kafka { address: self.ports.plain_address(), accounts_address }
    }

    /// Starts it, again after [`Self::end`], with the same ports and what it had written; returns when it takes requests.
    pub fn begin(&mut self) {
        let distribution = install::kafka().expect("it is there already");
        let mut minder = Command::new("sh");
        minder.args(["-c", MINDER, "sh"]).arg(self.directory.path());
        minder.args(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dlog4j2.level=WARN"]);
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

        let address: SocketAddr = self.ports.plain_address().parse().expect("an address");
        wait::until("a broker that listens", || {
            if !java.lives() {
                self.give_up();
            }
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()
        });
        // It listens a little before it knows itself.
        let client: BaseProducer = self.kafka().client().create().expect("a client");
        wait::until("a broker that answers", || {
            let metadata = client.client().fetch_metadata(None, Duration::from_secs(5)).ok()?;
            (!metadata.brokers().is_empty()).then_some(())
        });
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
        self.ports.give_back();
        drop(self.seat.take());
    }
}

impl Ports {
    /// Three ports that nobody has: below those that the kernel gives to clients, so that they are still free after a restart.
    fn free() -> Self {
        let mut taken = taken().lock().expect("no panic while it was locked");
        let mut next = || {
            let port = iter::repeat_with(candidate_port)
                .find(|port| !taken.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok());
            let port = port.expect("one of thousands");
            taken.insert(port);
            port
        };
        Self { plain: next(), accounts: next(), controller: next(), tls: next(), tls_accounts: next() }
    }

    fn give_back(self) {
        let mut taken = taken().lock().expect("no panic while it was locked");
        for port in [self.plain, self.accounts, self.controller, self.tls, self.tls_accounts] {
            taken.remove(&port);
        }
    }

    fn plain_address(self) -> String {
        format!("127.0.0.1:{}", self.plain)
    }

    /// `server.properties`. Limits that users' brokers have by default are left as they are, but for the broker's own session, for
    /// which one that was killed must wait before it may come back; what costs memory is kept small.
    fn settings(self, data: &Path) -> String {
        let Self { plain, accounts, controller, .. } = self;
        format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{accounts},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{accounts}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=PLAINTEXT\n\
             sasl.enabled.mechanisms=PLAIN\n\
             listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}\n\
             authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
             super.users=User:ANONYMOUS\n\
             broker.session.timeout.ms=3000\n\
             broker.heartbeat.interval.ms=500\n\
             log.dirs={data}\n\
             offsets.topic.num.partitions=4\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.num.partitions=4\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             share.coordinator.state.topic.num.partitions=1\n\
             share.coordinator.state.topic.replication.factor=1\n\
             share.coordinator.state.topic.min.isr=1\n\
             num.network.threads=2\n\
             num.io.threads=4\n\
             log.cleaner.dedupe.buffer.size=4194304\n",
            jaas = accounts::jaas(),
            data = data.display(),
        )
    }
}

impl Ports {
    /// What TLS adds to `server.properties`: of a key that stands there twice Java takes the last.
    fn tls_settings(self, authority: &Authority) -> String {
        let Self { plain, accounts, controller, tls, tls_accounts } = self;
        let secure = format!("SSL://127.0.0.1:{tls},SASL_SSL://127.0.0.1:{tls_accounts}");
        let plain = format!("PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{accounts}");
        format!(
            "listeners={plain},{secure},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners={plain},{secure}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,\
             SSL:SSL,SASL_SSL:SASL_SSL\n\
             listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-256\n\
             listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
             ssl.keystore.type=PEM\n\
             ssl.keystore.location={}\n",
            authority.keystore().display()
        )
    }
}

/// The ports that brokers of this process have or will have again.
fn taken() -> &'static Mutex<HashSet<u16>> {
    static TAKEN: OnceLock<Mutex<HashSet<u16>>> = OnceLock::new();
    TAKEN.get_or_init(Mutex::default)
}

/// Ports to try, each another one; from where, the process decides, so that test runs side by side begin apart.
fn candidate_port() -> u16 {
    const LOWEST: u16 = 15_000;
    const COUNT: u16 = 15_000;
    static STEP: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() * 37 % u32::from(COUNT)).expect("less than COUNT");
    LOWEST + (process + STEP.fetch_add(1, Ordering::Relaxed)) % COUNT
}

/// The right to a broker of one's own: a machine has memory for so many.
#[derive(Debug)]
struct Seat;

/// The seats that are left.
static SEATS: (Mutex<usize>, Condvar) = (Mutex::new(2), Condvar::new());

impl Seat {
    fn take() -> Self {
        let left = SEATS.0.lock().expect("no panic while it was locked");
        *SEATS.1.wait_while(left, |left| *left == 0).expect("no panic while it was locked") -= 1;
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *SEATS.0.lock().expect("no panic while it was locked") += 1;
        SEATS.1.notify_one();
    }
}

/// A broker that accepts and never answers.
#[derive(Debug)]
pub struct SilentBroker {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl SilentBroker {
    /// Listens on a port of its own.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        thread::spawn(move || {
            // Kept open until all is over: a closed connection would be an answer.
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                held.push(connection);
            }
        });
        Self { address, over }
    }

    /// `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for SilentBroker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread; one that has ended already needs no waking.
        let _ = TcpStream::connect(self.address);
    }
}
