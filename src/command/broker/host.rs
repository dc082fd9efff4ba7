//! The embedded broker's process: librdkafka's mock cluster, and the door by which candidates come in.
//!
//! One process per [`Place`]: it holds the lock for as long as it lives, and the kernel lets go of it at any death. The
//! marker is made before the first candidate is let in, and removed only when no job can be running any more: the last
//! candidate has been gone for the linger (its guard kills the job within milliseconds of its death), and the leases that a
//! killed broker before this one may have left are over.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use neli::clock;
use neli::embedded::place::Place;
use neli::embedded::{Greeting, Reply, Request, Start};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;

use crate::command::broker::marker::{self, Marker};
use crate::process::descriptors;
use crate::process::sealed_file;

/// For a broker that is just ending we wait this long.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries for the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// A request is one short line; whoever sends more is shown the door.
const MAX_REQUEST: usize = 4096;

/// A broker that runs, and whose door is open.
pub struct Host {
    place: Place,
    /// Held until the end.
    _lock: Flock<File>,
    signals: SignalFd,
    listener: UnixListener,
    cluster: MockCluster<'static, DefaultProducerContext>,
    greeting: Greeting,
    guests: Vec<Guest>,
    /// How long to wait for another candidate after the last has gone.
    linger: Duration,
    /// Since when nobody is in; none while somebody is.
    empty_since: Option<Time>,
}

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// Another one runs here.
    #[error("an embedded broker is running already; --embedded finds it")]
    Another,
    /// The machine says no.
    #[error("the embedded broker can't be started: {0}")]
    Io(#[from] io::Error),
    /// librdkafka says no.
    #[error("the embedded broker can't be started: {0}")]
    Kafka(#[from] KafkaError),
}

impl From<Errno> for NotOpened {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// A candidate that has been let in, or somebody with a question.
struct Guest {
    stream: UnixStream,
    /// A request that has not come to its end.
    heard: Vec<u8>,
}

/// Reads on stdin where the broker is to be, for how long it waits for another candidate after the last, and for how long it
/// doubts what a killed one left ([`Host::open`]); and lets go of everything inherited: a session of its own, `/` as working directory, `/dev/null` on stdin, no descriptor above 2.
///
/// To be called first thing, while there is one thread and nothing has been opened.
///
/// # Errors
///
/// The kernel's; what is on stdin was not written by [`Seeker`](neli::embedded::Seeker); the directory is not this user's alone.
pub fn detach() -> io::Result<(Place, Duration, Duration)> {
    // It fails for the leader of a process group, which has what this is for.
    let _ = unistd::setsid();
    unistd::chdir("/")?;
    let Start { directory, linger_ms, doubt_ms } = sealed_file::read(0)?;
    let null = File::open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    // It has got stdin's number itself, which the reading closed; else it is closed here.
    let _ = null.into_raw_fd();
    descriptors::close_all_but(&[0, 1, 2])?;
    Ok((Place::at(Path::new(&directory))?, Duration::from_millis(linger_ms), Duration::from_millis(doubt_ms)))
}

impl Host {
    /// Opens a broker here. One that finds that the one before was killed says for so long, `doubt`, that its empty journal is
    /// no vacancy. After this TERM and INT are heard by [`Host::serve`] alone.
    ///
    /// # Errors
    ///
    /// Another broker runs here, or the machine or librdkafka says no.
    pub fn open(place: &Place, linger: Duration, doubt: Duration) -> Result<Self, NotOpened> {
        let lock = lock(place)?;
        // Before librdkafka's threads, so that none of theirs is interrupted.
        let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        ends.thread_block()?;
        let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // Whoever held the lock before is gone by now: its leases are the older.
        let sure_from = marker::sure_from(place, clock::now(), doubt)?;
        Marker::of_living().write(place)?;
        let cluster = MockCluster::new(1)?;
        let greeting = Greeting { bootstrap: cluster.bootstrap_servers(), sure_from };
        // Whoever held the lock before is dead, and its socket with it.
        remove(&place.socket())?;
        let listener = UnixListener::bind(place.socket())?;
        listener.set_nonblocking(true)?;
        let empty_since = Some(clock::now());
        let place = place.clone();
        Ok(Self { place, _lock: lock, signals, listener, cluster, greeting, guests: Vec::new(), linger, empty_since })
    }

    /// Where it is, as librdkafka takes it.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.greeting.bootstrap
    }

    /// Serves candidates until TERM or INT; and, when `idle_ends`, until nobody has been in for the linger. The marker goes
    /// only when nobody has been in for the linger.
    ///
    /// # Errors
    ///
    /// The kernel's. The marker is there then.
    pub fn serve(mut self, idle_ends: bool) -> io::Result<()> {
        while !(self.is_stopped()? || idle_ends && self.is_idle()) {
            self.wait(idle_ends)?;
            self.let_in()?;
            let cluster = &self.cluster;
            self.guests.retain_mut(|guest| guest.is_served(cluster));
            match (self.guests.is_empty(), self.empty_since) {
                (false, _) => self.empty_since = None,
                (true, None) => self.empty_since = Some(clock::now()),
                (true, Some(_)) => {}
            }
        }
        // Whoever knocks from here on is not let in, and starts another broker, which waits for our lock.
        remove(&self.place.socket())?;
        let sure_from = self.greeting.sure_from;
        match self.is_idle() {
            true if clock::now() >= sure_from => remove(&self.place.marker()),
            true => Marker::of_ended(sure_from).write(&self.place),
            false => Ok(()),
        }
    }

    fn is_stopped(&mut self) -> io::Result<bool> {
        Ok(self.signals.read_signal()?.is_some())
    }

    fn is_idle(&self) -> bool {
        self.empty_since.is_some_and(|since| clock::now().since(since) >= self.linger)
    }

    /// Waits until somebody knocks, asks or goes, a signal comes, or the linger is over.
    fn wait(&self, idle_ends: bool) -> io::Result<()> {
        let left = self.empty_since.filter(|_| idle_ends).map(|since| (since + self.linger).since(clock::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            // A millisecond more, so that it is over then.
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let sources = [self.signals.as_fd(), self.listener.as_fd()];
        let sources = sources.into_iter().chain(self.guests.iter().map(|guest| guest.stream.as_fd()));
        let mut sources: Vec<PollFd<'_>> = sources.map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
        match poll(&mut sources, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn let_in(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.guests.extend(Guest::greet(stream, &self.greeting)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The lock, once whoever has it is gone; unless that one's door is open.
fn lock(place: &Place) -> Result<Flock<File>, NotOpened> {
    let mut file = File::options().create(true).truncate(false).write(true).open(place.lock())?;
    let begun = clock::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(errno.into()),
        };
        if UnixStream::connect(place.socket()).is_ok() || clock::now().since(begun) > LOCK_PATIENCE {
            return Err(NotOpened::Another);
        }
        thread::park_timeout(LOCK_INTERVAL);
    }
}

/// Removes a file; that it is gone already is as good.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Guest {
    /// None when it has gone already.
    fn greet(stream: UnixStream, greeting: &Greeting) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let mut guest = Self { stream, heard: Vec::new() };
        guest.say(greeting).ok()?;
        Some(guest)
    }

    /// Answers what was asked; false when it has gone.
    fn is_served(&mut self, cluster: &MockCluster<'static, DefaultProducerContext>) -> bool {
        let mut buffer = [0; 512];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.heard.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                if self.say(&Reply { error: answer(&line, cluster).err() }).is_err() {
                    return false;
                }
            }
            if self.heard.len() > MAX_REQUEST {
                return false;
            }
        }
    }

    fn say(&mut self, what: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        // Short enough for an empty socket's buffer: it never waits.
        self.stream.write_all(&line)
    }
}

fn answer(line: &[u8], cluster: &MockCluster<'static, DefaultProducerContext>) -> Result<(), String> {
    let Request { create_topic, partitions } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match cluster.create_topic(&create_topic, partitions, 1) {
        Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
