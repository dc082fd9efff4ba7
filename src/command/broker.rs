//! `neli-run broker`: the embedded broker, by hand or started by the first candidate of `--embedded`. It is librdkafka's mock cluster, and a
//! socket to which candidates connect.
//!
//! There is one for each [`BrokerDirectory`]: it holds the lock of the broker while it lives, and the kernel releases the lock when it dies.
//! It begins only when no process of an earlier broker is left ([`BrokerDirectory::hold`]). Until then a job may run under a lease of
//! which its empty journal says nothing.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use neli_kafka::clock;
use neli_kafka::embedded::directory::BrokerDirectory;
use neli_kafka::embedded::{BrokerFinder, BrokerInfo, Reply, Request};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::command::output;
use crate::exit::ExitStatus;
use crate::process::descriptors;

/// How long to wait for another broker that is ending.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts to take the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// The pause before candidates are accepted again after a lack of descriptors or memory.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);
/// A request is one short line; a client that sends more is disconnected.
const MAX_REQUEST: usize = 4096;

/// Other tools can use the address, but a candidate must use `--embedded`: it asks the broker's process to create a topic, and not by
/// Kafka's protocol.
const USAGE: &str = "neli-run: this user's candidates find this broker with --embedded (neli-run --embedded --group NAME -- \
                     COMMAND). Don't give its address to --brokers: this broker makes no topics for Kafka's clients";

/// Runs the broker until TERM or INT, or until no candidate has been connected for `idle_timeout`. Prints its address on stdout, and explains
/// on stderr how to use it.
///
/// # Errors
///
/// Another broker runs already, or a process of an earlier one; the broker can't be started, or stdout can't be written.
pub fn main(idle_timeout: Option<Duration>) -> Result<ExitStatus> {
    // It may outlive the process that started it, and must keep no pipe or lock of that one open.
    descriptors::close_all_but(&[0, 1, 2]).map_err(not_started)?;
    let directory = BrokerFinder::of_user()?.directory;
    let broker = EmbeddedBroker::open(directory, idle_timeout)?;
    output::print(&format!("{}\n", broker.info.bootstrap))?;
    // stderr may be closed; then the hint is lost.
    let _ = writeln!(io::stderr(), "{USAGE}");
    broker.serve().map_err(|error| anyhow!("the embedded broker: {error}"))?;
    Ok(ExitStatus::Success)
}

/// A broker that runs and accepts connections.
struct EmbeddedBroker {
    directory: BrokerDirectory,
    /// The lock is held until the end of the process.
    _lock: Flock<File>,
    signals: SignalDelivery<UnixStream, SignalOnly>,
    listener: UnixListener,
    cluster: MockCluster<'static, DefaultProducerContext>,
    info: BrokerInfo,
    clients: Vec<ClientConnection>,
    /// How long to wait for another candidate after the last one has disconnected.
    idle_timeout: Option<Duration>,
    /// When the last candidate disconnected; `None` while a candidate is connected.
    empty_since: Option<Time>,
}

/// Why no broker was started: a system call has failed, or librdkafka has refused.
fn not_started(error: impl Display) -> anyhow::Error {
    anyhow!("the embedded broker can't be started: {error}")
}

/// A candidate's connection: it either stays open for the candidate's life or makes one request.
struct ClientConnection {
    stream: UnixStream,
    /// A request that was not read completely yet.
    received: Vec<u8>,
}

impl EmbeddedBroker {
    /// Opens a broker. From then on SIGTERM and SIGINT are received only by [`EmbeddedBroker::serve`].
    fn open(directory: BrokerDirectory, idle_timeout: Option<Duration>) -> Result<Self> {
        let lock = lock(&directory)?;
        // No other broker accepts candidates now, so none can join those that are left.
        if let Some(left) = directory.holder().map_err(not_started)? {
            bail!("{left}");
        }
        let cluster = MockCluster::new(1).map_err(not_started)?;
        Self::on(cluster, directory, lock, idle_timeout).map_err(not_started)
    }

    fn on(
        cluster: MockCluster<'static, DefaultProducerContext>,
        directory: BrokerDirectory,
        lock: Flock<File>,
        idle_timeout: Option<Duration>,
    ) -> io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        let signals = SignalDelivery::with_pipe(signals, sender, SignalOnly, [SIGINT, SIGTERM])?;
        let info = BrokerInfo { bootstrap: cluster.bootstrap_servers() };
        // The process that held the lock before is dead, so its socket is unused.
        remove(&directory.socket())?;
        let listener = UnixListener::bind(directory.socket())?;
        listener.set_nonblocking(true)?;
        let empty_since = Some(clock::now());
        let clients = Vec::new();
        Ok(Self { directory, _lock: lock, signals, listener, cluster, info, clients, idle_timeout, empty_since })
    }

    /// Serves candidates until SIGTERM or SIGINT, or until no candidate has been connected for the idle timeout.
    fn serve(mut self) -> io::Result<()> {
        while self.signals.pending().next().is_none() && self.idle_left().is_none_or(|left| !left.is_zero()) {
            self.wait()?;
            self.accept_clients()?;
            let cluster = &self.cluster;
            self.clients.retain_mut(|client| client.is_served(cluster));
            match (self.clients.is_empty(), self.empty_since) {
                (false, _) => self.empty_since = None,
                (true, None) => self.empty_since = Some(clock::now()),
                (true, Some(_)) => {}
            }
        }
        // A candidate that connects from now on is not accepted. It starts another broker, which waits for the lock.
        remove(&self.directory.socket())
    }

    /// How long to wait for another candidate; `None` without a limit.
    fn idle_left(&self) -> Option<Duration> {
        Some((self.empty_since? + self.idle_timeout?).since(clock::now()))
    }

    /// Waits until a candidate connects, sends a request or disconnects, a signal comes, or the idle timeout is over.
    fn wait(&self) -> io::Result<()> {
        let timeout = self.idle_left().map_or(PollTimeout::NONE, |left| {
            // One millisecond more, so that the timeout has certainly passed.
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let sources = [self.signals.get_read().as_fd(), self.listener.as_fd()];
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
fn lock(directory: &BrokerDirectory) -> Result<Flock<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(directory.lock());
    let mut file = file.map_err(not_started)?;
    let begun = clock::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(not_started(io::Error::from(errno))),
        };
        if UnixStream::connect(directory.socket()).is_ok() || clock::now().since(begun) > LOCK_TIMEOUT {
            bail!("an embedded broker is running already; --embedded finds it");
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
                if self.send(&Reply { error: answer(&line, cluster).err() }).is_err() {
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

/// Creates the topic of this request.
///
/// # Errors
///
/// Why it was not created.
fn answer(line: &[u8], cluster: &MockCluster<'static, DefaultProducerContext>) -> Result<(), String> {
    let Request { create_topic, partitions } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match cluster.create_topic(&create_topic, partitions, 1) {
        Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
