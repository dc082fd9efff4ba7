//! The candidate's side of the embedded broker. The broker is librdkafka's mock of Kafka, in a process that the candidates of one user on
//! one machine share. It is for trials: it stores nothing on disk, and every user of this machine can connect to its loopback port.
//!
//! Candidates find the broker by one directory ([`BrokerDirectory`]). The first candidate that finds no broker starts it. Each candidate
//! keeps a connection open while it lives, and the broker ends ten seconds after the last connection was closed. The broker's process
//! itself is part of neli-run.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use neli_proto::record::LEASE_MS;
use neli_proto::time::{Time, millis};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::kafka::embedded::directory::BrokerDirectory;
use crate::sealed_memfd;

pub mod directory;
pub(crate) mod in_process;

/// The id of the mock's only broker. The mock has no controller: librdkafka would wait for one until the question's time limit.
pub(crate) const BROKER_ID: i32 = 1;

/// How long the broker waits for another candidate after the last one has disconnected.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// After this time no lease of a killed broker's journal can still be valid: the longest lease, and a second for the time between the last
/// record that the broker appended and its death.
pub const DISTRUST: Duration = Duration::from_millis(*LEASE_MS.end() + 1_000);

/// The hidden subcommand that runs the broker: `neli-run broker 0`, which differs from the public one by its argument. Its stdin is a
/// sealed memfd with a `Start`.
pub const MODE: &str = "broker";

/// The time limit for finding or starting the broker.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts to connect.
const CONNECT_INTERVAL: Duration = Duration::from_millis(5);
/// A broker that was started and can't be reached after this time is started again: it may have ended in favour of another one that has
/// ended since.
pub(crate) const START_INTERVAL: Duration = Duration::from_secs(1);

/// Finds or starts the embedded broker.
#[derive(Clone, Debug)]
pub struct BrokerFinder {
    /// The directory.
    pub directory: BrokerDirectory,
    /// The program that is executed as the broker: `/proc/self/exe`.
    pub program: PathBuf,
    /// How long the broker waits for another candidate after the last one has disconnected: [`IDLE_TIMEOUT`].
    pub idle_timeout: Duration,
    /// How long a broker that follows a killed one does not treat its empty journal as vacant: [`DISTRUST`].
    pub distrust: Duration,
    /// The processes that this finder started.
    pub started: StartedBrokers,
}

/// The brokers that this process has started and not yet waited for. They are child processes that are not part of a job. Clones share one
/// list.
#[derive(Clone, Debug, Default)]
pub struct StartedBrokers(Arc<Mutex<Vec<Pid>>>);

impl StartedBrokers {
    /// Locks the list, for a caller that kills processes outside the list or waits for those in it. No broker is started while it is
    /// locked.
    pub fn lock(&self) -> MutexGuard<'_, Vec<Pid>> {
        // A thread that panicked has still left a valid list of numbers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A broker that was found, or started.
#[derive(Debug)]
pub struct FoundBroker {
    /// The connection. The broker may end once it is closed.
    pub connection: Arc<Connection>,
    /// The processes that were started for it, which the caller must reap. Another candidate's broker may have been faster; then the
    /// process that was started here ends at once.
    pub started: Vec<Child>,
}

/// A candidate's first message to the broker.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Start {
    /// The directory where candidates find it.
    pub directory: OsString,
    /// How long the broker waits for another candidate after the last one has disconnected, in milliseconds.
    pub idle_timeout_ms: u64,
    /// If the broker follows a killed one: how long it does not treat its empty journal as vacant, in milliseconds.
    pub distrust_ms: u64,
}

/// The broker's first message to each candidate that connects.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BrokerInfo {
    /// The broker's address, in librdkafka's format.
    pub bootstrap: String,
    /// The time from which an empty journal is vacant.
    pub trusted_from: Time,
}

/// A candidate's request to the broker.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Request {
    /// The topic to create.
    pub create_topic: String,
    /// The number of its partitions.
    pub partitions: i32,
}

/// The broker's answer to a request.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reply {
    /// Why the request failed.
    pub error: Option<String>,
}

impl BrokerFinder {
    /// The user's broker, started from this program.
    ///
    /// # Errors
    ///
    /// The user has no directory for it.
    pub fn of_user() -> io::Result<Self> {
        Ok(Self {
            directory: BrokerDirectory::of_user()?,
            program: PathBuf::from("/proc/self/exe"),
            idle_timeout: IDLE_TIMEOUT,
            distrust: DISTRUST,
            started: StartedBrokers::default(),
        })
    }

    /// Finds the broker; does not start one.
    ///
    /// # Errors
    ///
    /// There is none, or it does not answer.
    pub fn find(&self) -> io::Result<Arc<Connection>> {
        Connection::open(&self.directory).map(Arc::new)
    }

    /// Finds the broker, or starts it. Blocks for some milliseconds if the broker runs, for some tens of milliseconds if it must be
    /// started, and for five seconds at most.
    ///
    /// # Errors
    ///
    /// It can't be started, or does not answer.
    pub fn find_or_start(&self) -> io::Result<FoundBroker> {
        let begun = clock::now();
        let mut started = Vec::new();
        let mut start_at = begun;
        loop {
            let error = match Connection::open(&self.directory) {
                Ok(connection) => return Ok(FoundBroker { connection: Arc::new(connection), started }),
                Err(error) => error,
            };
            let now = clock::now();
            if now.since(begun) > TIMEOUT {
                return Err(io::Error::new(error.kind(), format!("the embedded broker does not answer: {error}")));
            }
            if now >= start_at {
                started.push(self.start()?);
                start_at = now + START_INTERVAL;
            }
            thread::park_timeout(CONNECT_INTERVAL);
        }
    }

    /// The new process closes the descriptors that it inherits in spite of close-on-exec.
    fn start(&self) -> io::Result<Child> {
        let start = Start {
            directory: self.directory.path().into(),
            idle_timeout_ms: millis(self.idle_timeout),
            distrust_ms: millis(self.distrust),
        };
        let mut started = self.started.lock();
        let child = Command::new(&self.program)
            .arg0("neli-run")
            .args([MODE, "0"])
            .env_clear()
            // The variable distinguishes the brokers of several users in a list of processes.
            .envs(std::env::var_os("XDG_RUNTIME_DIR").map(|directory| ("XDG_RUNTIME_DIR", directory)))
            .current_dir("/")
            .stdin(sealed_memfd::write(&start)?)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        started.push(Pid::from_raw(child.id().cast_signed()));
        Ok(child)
    }
}

/// A candidate's connection to the broker. The broker runs while it has a connection.
#[derive(Debug)]
pub struct Connection {
    bootstrap: String,
    trusted_from: Time,
    host: Host,
}

/// The place of a broker.
#[derive(Debug)]
enum Host {
    /// In a process that candidates share.
    Process { directory: BrokerDirectory, stream: UnixStream },
    /// In a thread of this process.
    Thread(in_process::Topics),
}

impl Connection {
    fn open(directory: &BrokerDirectory) -> io::Result<Self> {
        let (stream, info) = connect(directory)?;
        stream.set_read_timeout(None)?;
        let host = Host::Process { directory: directory.clone(), stream };
        Ok(Self { bootstrap: info.bootstrap, trusted_from: info.trusted_from, host })
    }

    /// A connection to a broker in this process, whose journal was never lost.
    const fn to_thread(bootstrap: String, topics: in_process::Topics) -> Self {
        Self { bootstrap, trusted_from: Time::ZERO, host: Host::Thread(topics) }
    }

    /// The broker's address: a loopback address and a port, in librdkafka's format.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The time from which an empty journal is vacant. Until then a job of a killed broker's leader may still run (docs/protocol.md, Words:
    /// vacant). If the previous broker ended in order, or there was none, an empty journal is vacant from the start.
    #[must_use]
    pub const fn trusted_from(&self) -> Time {
        self.trusted_from
    }

    /// Creates the topic, unless it exists.
    ///
    /// # Errors
    ///
    /// The broker is gone, or refuses the request.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> io::Result<()> {
        let directory = match &self.host {
            Host::Process { directory, .. } => directory,
            Host::Thread(topics) => return topics.create(topic, partitions),
        };
        let (mut stream, _) = connect(directory)?;
        let mut line = serde_json::to_vec(&Request { create_topic: topic.to_owned(), partitions })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let reply: Reply = serde_json::from_str(&read_line(&stream)?)?;
        reply.error.map_or(Ok(()), |error| Err(io::Error::other(error)))
    }

    /// Blocks until the broker is gone.
    pub(crate) fn wait_for_end(&self) {
        // A broker in this process lives as long as this object.
        let Host::Process { stream, .. } = &self.host else { return };
        let mut stream = stream;
        loop {
            match stream.read(&mut [0]) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Connects, and reads the broker's first message.
fn connect(directory: &BrokerDirectory) -> io::Result<(UnixStream, BrokerInfo)> {
    let stream = UnixStream::connect(directory.socket())?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let info = serde_json::from_str(&read_line(&stream)?)?;
    Ok((stream, info))
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    // The broker sends nothing after an answer until it gets another request, so the buffer contains no more than this line.
    BufReader::new(stream).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::ConnectionReset.into()) }
}
