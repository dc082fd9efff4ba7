//! The embedded broker's process: librdkafka's mock cluster, and the socket to which candidates connect.
//!
//! There is one process for each [`BrokerDirectory`]: it holds the lock while it lives, and the kernel releases the lock when it dies. The
//! marker is created before the first candidate connects. It is removed only when no job can be running any more. This is so if the last
//! candidate has been disconnected for the idle timeout (its guard kills the job within milliseconds of its death), or if there is no topic
//! in which a candidate could have led; and if the leases of a killed broker before this one are over.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use neli::program::clock;
use neli::program::embedded::directory::BrokerDirectory;
use neli::program::embedded::{BrokerInfo, Reply, Request, Start};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer as _};

use crate::command::broker::marker::{self, Marker};
use crate::process::descriptors;
use crate::process::sealed_file;

/// How long to wait for another broker that is ending.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts to take the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// The time limit of the question about the topics.
const TOPICS_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before candidates are accepted again after a lack of descriptors or memory.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);
/// A request is one short line; a client that sends more is disconnected.
const MAX_REQUEST: usize = 4096;

/// A broker that runs and accepts connections.
pub struct EmbeddedBroker {
    directory: BrokerDirectory,
    /// The lock is held until the end of the process.
    _lock: Flock<File>,
    signals: SignalFd,
    listener: UnixListener,
    cluster: MockCluster<'static, DefaultProducerContext>,
    info: BrokerInfo,
    clients: Vec<ClientConnection>,
    /// How long to wait for another candidate after the last one has disconnected.
    idle_timeout: Duration,
    /// When the last candidate disconnected; `None` while a candidate is connected.
    empty_since: Option<Time>,
    /// Whether a candidate has connected here.
    was_joined: bool,
}

/// Why no broker was started.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another broker runs in this directory.
    #[error("an embedded broker is running already; --embedded finds it")]
    Another,
    /// A system call failed.
    #[error("the embedded broker can't be started: {0}")]
    Io(#[from] io::Error),
    /// librdkafka refused.
    #[error("the embedded broker can't be started: {0}")]
    Kafka(#[from] KafkaError),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// A candidate's connection: it either stays open for the candidate's life or makes one request.
struct ClientConnection {
    stream: UnixStream,
    /// A request that was not read completely yet.
    received: Vec<u8>,
}

/// The settings with which a broker is opened.
#[derive(Debug)]
pub struct BrokerSettings {
    /// The directory in which candidates find it.
    pub directory: BrokerDirectory,
    /// How long it waits for another candidate after the last one has disconnected.
    pub idle_timeout: Duration,
    /// If the previous broker was killed: how long this one tells its candidates that its empty journal does not prove a vacancy.
    pub distrust: Duration,
}

/// Reads the settings of the broker from stdin. Then detaches from the parent: a new session, `/` as working directory, `/dev/null` on
/// stdin, and no descriptor above 2.
///
/// Must be called first, while there is one thread and no open file.
///
/// # Errors
///
/// A system call fails; or stdin does not contain what [`BrokerFinder`](neli::program::embedded::BrokerFinder) writes; or the directory is
/// accessible to other users.
pub fn detach() -> io::Result<BrokerSettings> {
    // It fails for the leader of a process group, which is detached already.
    let _ = unistd::setsid();
    unistd::chdir("/")?;
    let Start { directory, idle_timeout_ms, distrust_ms } = sealed_file::read(0)?;
    let null = File::open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    // The opened file may have stdin's number itself, because reading has closed stdin. Otherwise it is closed here.
    let _ = null.into_raw_fd();
    descriptors::close_all_but(&[0, 1, 2])?;
    Ok(BrokerSettings {
        directory: BrokerDirectory::at(Path::new(&directory))?,
        idle_timeout: Duration::from_millis(idle_timeout_ms),
        distrust: Duration::from_millis(distrust_ms),
    })
}

impl EmbeddedBroker {
    /// Opens a broker. From then on SIGTERM and SIGINT are received only by [`EmbeddedBroker::serve`].
    ///
    /// # Errors
    ///
    /// Another broker runs here, or a system call failed, or librdkafka refused.
    pub fn open(settings: BrokerSettings) -> Result<Self, OpenError> {
        let BrokerSettings { directory, idle_timeout, distrust } = settings;
        let lock = lock(&directory)?;
        // Blocked before librdkafka starts its threads, so that none of them is interrupted.
        let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        ends.thread_block()?;
        let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // The previous holder of the lock has ended by now, so its leases are older than this time.
        let trusted_from = marker::trusted_from(&directory, clock::now(), distrust)?;
        Marker::of_living().write(&directory)?;
        let cluster = MockCluster::new(1)?;
        let info = BrokerInfo { bootstrap: cluster.bootstrap_servers(), trusted_from };
        // The process that held the lock before is dead, so its socket is unused.
        remove(&directory.socket())?;
        let listener = UnixListener::bind(directory.socket())?;
        listener.set_nonblocking(true)?;
        let empty_since = Some(clock::now());
        Ok(Self {
            directory,
            _lock: lock,
            signals,
            listener,
            cluster,
            info,
            clients: Vec::new(),
            idle_timeout,
            empty_since,
            was_joined: false,
        })
    }

    /// The broker's address in the form that librdkafka needs.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.info.bootstrap
    }

    /// Serves candidates until SIGTERM or SIGINT and, with `idle_ends`, until no candidate has been connected for the idle timeout. The
    /// marker is removed only if no candidate has been connected for that time, or none can have led here.
    ///
    /// # Errors
    ///
    /// A system call fails. The marker then stays.
    pub fn serve(mut self, idle_ends: bool) -> io::Result<()> {
        while !(self.is_stopped()? || idle_ends && self.is_idle()) {
            self.wait(idle_ends)?;
            self.accept_clients()?;
            let cluster = &self.cluster;
            self.clients.retain_mut(|client| client.is_served(cluster));
            match (self.clients.is_empty(), self.empty_since) {
                (false, _) => (self.empty_since, self.was_joined) = (None, true),
                (true, None) => self.empty_since = Some(clock::now()),
                (true, Some(_)) => {}
            }
        }
        // A candidate that connects from now on is not accepted. It starts another broker, which waits for the lock.
        remove(&self.directory.socket())?;
        let trusted_from = self.info.trusted_from;
        match self.is_idle() && self.was_joined || self.is_unused() {
            true if clock::now() >= trusted_from => remove(&self.directory.marker()),
            true => Marker::of_ended(trusted_from).write(&self.directory),
            false => Ok(()),
        }
    }

    fn is_stopped(&mut self) -> io::Result<bool> {
        Ok(self.signals.read_signal()?.is_some())
    }

    fn is_idle(&self) -> bool {
        self.empty_since.is_some_and(|since| clock::now().since(since) >= self.idle_timeout)
    }

    /// Whether no candidate can have led here, because there is no topic. A client that knows the address need not connect to the socket,
    /// and may lead in a topic that another client has created.
    fn is_unused(&self) -> bool {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.info.bootstrap).set("allow.auto.create.topics", "false");
        let client: Result<BaseProducer, KafkaError> = config.create();
        let topics = client.and_then(|client| client.client().fetch_metadata(None, TOPICS_TIMEOUT));
        topics.is_ok_and(|metadata| metadata.topics().is_empty())
    }

    /// Waits until a candidate connects, sends a request or disconnects, a signal comes, or the idle timeout is over.
    fn wait(&self, idle_ends: bool) -> io::Result<()> {
        let left = self.empty_since.filter(|_| idle_ends).map(|since| (since + self.idle_timeout).since(clock::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            // One millisecond more, so that the timeout has certainly passed.
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let sources = [self.signals.as_fd(), self.listener.as_fd()];
        let sources = sources.into_iter().chain(self.clients.iter().map(|client| client.stream.as_fd()));
        let mut sources: Vec<PollFd<'_>> = sources.map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
        match poll(&mut sources, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn accept_clients(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.clients.extend(ClientConnection::accept(stream, &self.info)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_shortage(&error) => {
                    // The candidate waits. Without this pause the loop would not, because the listener stays readable.
                    thread::park_timeout(SHORTAGE_PAUSE);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether the process, or the machine, has no free descriptor or no memory now.
fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| SHORTAGES.contains(&error))
}

/// Takes the lock after the other broker has exited; fails if that broker still accepts connections.
fn lock(directory: &BrokerDirectory) -> Result<Flock<File>, OpenError> {
    let mut file = File::options().create(true).truncate(false).write(true).open(directory.lock())?;
    let begun = clock::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(errno.into()),
        };
        if UnixStream::connect(directory.socket()).is_ok() || clock::now().since(begun) > LOCK_TIMEOUT {
            return Err(OpenError::Another);
        }
        thread::park_timeout(LOCK_INTERVAL);
    }
}

/// Removes a file; a missing file counts as removed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl ClientConnection {
    /// The connection; `None` if the client has disconnected.
    fn accept(stream: UnixStream, info: &BrokerInfo) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let mut client = Self { stream, received: Vec::new() };
        client.send(info).ok()?;
        Some(client)
    }

    /// Answers the request; returns false if the client has disconnected.
    fn is_served(&mut self, cluster: &MockCluster<'static, DefaultProducerContext>) -> bool {
        let mut buffer = [0; 512];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                if self.send(&Reply { error: answer(&line, cluster).err().map(|error| error.to_string()) }).is_err() {
                    return false;
                }
            }
            if self.received.len() > MAX_REQUEST {
                return false;
            }
        }
    }

    fn send(&mut self, what: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        // The answer fits into an empty socket buffer, so this never blocks.
        self.stream.write_all(&line)
    }
}

/// Why the topic was not created.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Kafka(KafkaError),
    #[error(transparent)]
    Unreadable(#[from] serde_json::Error),
}

fn answer(line: &[u8], cluster: &MockCluster<'static, DefaultProducerContext>) -> Result<(), AnswerError> {
    let Request { create_topic, partitions } = serde_json::from_slice(line)?;
    match cluster.create_topic(&create_topic, partitions, 1) {
        Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
        Err(error) => Err(AnswerError::Kafka(error)),
    }
}
