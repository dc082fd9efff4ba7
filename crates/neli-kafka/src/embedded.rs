//! The candidate's side of the embedded broker: `neli-run broker`, which the candidates of one user on one machine share. The broker is
//! librdkafka's mock of Kafka. It is for trials: it stores nothing on disk, and every user of this machine can connect to its loopback port.
//!
//! Candidates find the broker by one directory ([`BrokerDirectory`]). The first candidate that finds no broker starts it. Each candidate
//! keeps a connection open while it lives, and the broker ends ten seconds after the last connection was closed. If the broker ends earlier,
//! its journal is lost, and its candidates end too. The next broker begins only when none of them and none of their guards is left:
//! [`BrokerDirectory::hold`] (`docs/protocol.md`, The embedded broker).

use std::ffi::{OsStr, OsString, c_int};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::geteuid;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;
use serde_json::{Value, json};

use crate::text::shown_duration;
use crate::{clock, threads};

/// The id of the mock's only broker. The mock has no controller: librdkafka would wait for one until the question's time limit.
pub const BROKER_ID: i32 = 1;

/// How long the broker that a candidate starts waits for another candidate after the last one has disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for finding or starting the broker.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts to connect.
const CONNECT_INTERVAL: Duration = Duration::from_millis(5);
/// The least time between two starts. A broker that was started is started again only once it has ended: perhaps in favour of another one
/// that has ended since.
const START_INTERVAL: Duration = Duration::from_secs(1);

/// Finds or starts the embedded broker.
#[derive(Clone, Debug)]
pub struct BrokerFinder {
    /// The directory.
    pub directory: BrokerDirectory,
    /// `XDG_RUNTIME_DIR`, by which the broker finds the same directory. It also distinguishes the brokers of several users in a list of
    /// processes.
    runtime: Option<OsString>,
    /// The program that is executed as the broker: `/proc/self/exe`.
    pub program: PathBuf,
    /// How long the broker waits for another candidate after the last one has disconnected.
    pub idle_timeout: Duration,
}

/// A broker that was found, or started.
#[derive(Debug)]
pub struct FoundBroker {
    /// Its directory, where each guard of this candidate holds the lock too.
    pub directory: BrokerDirectory,
    /// The lock of the candidates, to be held until this process ends.
    pub lock: File,
    /// The connection. The broker may end once it is closed.
    pub connection: Arc<Connection>,
    /// The process that was started for it, which the caller must reap. Another candidate's broker may have been faster; then the process
    /// that was started here ends at once.
    pub started: Option<Child>,
}

impl BrokerFinder {
    /// The user's broker, started from this program.
    ///
    /// # Errors
    ///
    /// The user has no directory for it.
    pub fn of_user() -> io::Result<Self> {
        Self::with_runtime(std::env::var_os("XDG_RUNTIME_DIR"))
    }

    /// The broker of the user whose `XDG_RUNTIME_DIR` is this directory.
    ///
    /// # Errors
    ///
    /// As for [`of_user`](Self::of_user).
    pub fn with_runtime(runtime: Option<OsString>) -> io::Result<Self> {
        let directory = BrokerDirectory::at(&choose(runtime.as_deref(), geteuid().as_raw(), Path::is_dir))?;
        Ok(Self { directory, runtime, program: PathBuf::from("/proc/self/exe"), idle_timeout: IDLE_TIMEOUT })
    }

    /// Finds the broker; does not start one.
    ///
    /// # Errors
    ///
    /// There is none, or it does not answer.
    pub fn find(&self) -> io::Result<Arc<Connection>> {
        Connection::open(&self.directory).map(Arc::new).map_err(|error| self.explained(error))
    }

    /// Finds the broker, or starts it, and holds the lock of the candidates. Blocks for some milliseconds if the
    /// broker runs, for some tens of milliseconds if it must be started, and for five seconds at most.
    ///
    /// # Errors
    ///
    /// A process of an earlier broker is left; or the broker can't be started, or does not answer.
    pub fn find_or_start(&self) -> io::Result<FoundBroker> {
        let begun = clock::now();
        let mut started: Option<Child> = None;
        let mut start_at = begun;
        loop {
            let error = match Connection::open(&self.directory) {
                Ok(connection) => {
                    let (directory, lock) = (self.directory.clone(), self.directory.hold()?);
                    return Ok(FoundBroker { directory, lock, connection: Arc::new(connection), started });
                }
                Err(error) => error,
            };
            let now = clock::now();
            if now.since(begun) > TIMEOUT {
                return Err(self
                    .explained(io::Error::new(error.kind(), format!("the embedded broker does not answer: {error}"))));
            }
            let has_ended = started.as_mut().map_or(Ok(true), |broker| broker.try_wait().map(|end| end.is_some()))?;
            if has_ended && now >= start_at && self.directory.holder()?.is_none() {
                started = Some(self.start()?);
                start_at = now + START_INTERVAL;
            }
            thread::park_timeout(CONNECT_INTERVAL);
        }
    }

    /// This error of a connection; or the reason why there is no broker, if no other can begin.
    fn explained(&self, error: io::Error) -> io::Error {
        match (error.kind(), self.directory.holder()) {
            (io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound, Ok(Some(left))) => io::Error::other(left),
            _ => error,
        }
    }

    /// Starts `neli-run broker` in the background. It closes the descriptors that it inherits in spite of close-on-exec.
    fn start(&self) -> io::Result<Child> {
        Command::new(&self.program)
            .arg0("neli-run")
            .args(["broker", "--idle-timeout", &shown_duration(self.idle_timeout)])
            .env_clear()
            .envs(self.runtime.iter().map(|directory| ("XDG_RUNTIME_DIR", directory)))
            .current_dir("/")
            // Ctrl-C reaches the candidate that started it, and not the broker of the others.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}

/// A candidate's connection to the broker. The broker runs while it has a connection.
#[derive(Debug)]
pub struct Connection {
    bootstrap: String,
    host: Host,
}

/// The place of a broker.
#[derive(Debug)]
enum Host {
    /// In a process that candidates share.
    Process { directory: BrokerDirectory, stream: UnixStream },
    /// In a thread of this process, which creates the topics that it is sent.
    Thread(Sender<TopicOfThread>),
}

impl Connection {
    fn open(directory: &BrokerDirectory) -> io::Result<Self> {
        let (stream, bootstrap) = connect(directory)?;
        stream.set_read_timeout(None)?;
        Ok(Self { bootstrap, host: Host::Process { directory: directory.clone(), stream } })
    }

    /// Starts a broker in this process: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing on disk. It lives
    /// until the last clone of the connection is dropped.
    ///
    /// # Errors
    ///
    /// The machine has no thread, port or descriptor to spare.
    pub fn to_own_broker() -> io::Result<Self> {
        let (bootstrap_sender, bootstrap) = mpsc::channel();
        let (topics, asked) = mpsc::channel();
        threads::start("neli-broker", move || host(&bootstrap_sender, &asked))?;
        let bootstrap = bootstrap.recv().map_err(|_| io::Error::other("its thread has ended"))?;
        Ok(Self { bootstrap: bootstrap.map_err(io::Error::other)?, host: Host::Thread(topics) })
    }

    /// The broker's address: a loopback address and a port, in librdkafka's format.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The socket, which becomes readable when the broker has ended; none if the broker is a thread of this process, which lives as long as
    /// this object.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        match &self.host {
            Host::Process { stream, .. } => Some(stream.as_fd()),
            Host::Thread(_) => None,
        }
    }

    /// Creates the topic, unless it exists.
    ///
    /// # Errors
    ///
    /// The broker is gone, or refuses the request.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> io::Result<()> {
        let directory = match &self.host {
            Host::Process { directory, .. } => directory,
            Host::Thread(topics) => {
                let (answer, answered) = mpsc::channel();
                let gone = || io::Error::from(io::ErrorKind::ConnectionReset);
                topics.send((topic.to_owned(), partitions, answer)).map_err(|_| gone())?;
                return answered.recv().map_err(|_| gone())?.map_err(io::Error::other);
            }
        };
        let (mut stream, _) = connect(directory)?;
        writeln!(stream, "{}", json!({ "create_topic": topic, "partitions": partitions }))?;
        let answer: Value = serde_json::from_str(&read_line(&stream)?)?;
        answer["error"].as_str().map_or(Ok(()), |error| Err(io::Error::other(error)))
    }
}

/// Connects, and reads the broker's first message, which has its address.
fn connect(directory: &BrokerDirectory) -> io::Result<(UnixStream, String)> {
    let stream = UnixStream::connect(directory.socket())?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let info: Value = serde_json::from_str(&read_line(&stream)?)?;
    let bootstrap = info["bootstrap"].as_str().ok_or(io::ErrorKind::InvalidData)?;
    Ok((stream, bootstrap.to_owned()))
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    // The broker sends nothing after an answer until it gets another request, so the buffer contains no more than this line.
    BufReader::new(stream).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::ConnectionReset.into()) }
}

// ---- a broker in this process: in that of `neli-run broker`, or in that of a program that uses the library ---------

/// A topic to be created by the broker's thread, with its number of partitions, and where the answer goes.
type TopicOfThread = (String, i32, Sender<Result<(), KafkaError>>);

/// Runs the broker while there is a connection that may ask for topics.
fn host(bootstrap: &Sender<Result<String, KafkaError>>, asked: &Receiver<TopicOfThread>) {
    let cluster = match MockCluster::new(1) {
        Ok(cluster) => cluster,
        Err(error) => return drop(bootstrap.send(Err(error))),
    };
    let _ = bootstrap.send(Ok(cluster.bootstrap_servers()));
    while let Ok((topic, partitions, answer)) = asked.recv() {
        let _ = answer.send(match cluster.create_topic(&topic, partitions, 1) {
            Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
            Err(error) => Err(error),
        });
    }
}

// ---- the place of the broker that candidates share ------------------------------------------------------------------
//
// The directory by which the candidates of a user on a machine find the embedded broker, and the lock that tells a new broker whether a
// process of an earlier one is left.

/// The longest path of a socket, in bytes (`sockaddr_un` without the zero at its end).
const MAX_SOCKET_PATH: usize = 107;

/// A directory of this user that no other user can enter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerDirectory {
    path: PathBuf,
}

impl BrokerDirectory {
    /// This directory. It is created if it is missing.
    ///
    /// # Errors
    ///
    /// It can't be created, another user could enter it, or its path is too long for a socket in it.
    pub fn at(path: &Path) -> io::Result<Self> {
        let directory = Self { path: path.to_owned() };
        let shown = path.display();
        if directory.socket().as_os_str().len() > MAX_SOCKET_PATH {
            return Err(io::Error::other(format!("{shown}: too long a name for a socket in it; set XDG_RUNTIME_DIR")));
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io::Error::new(error.kind(), format!("{shown}: {error}")));
            }
            Ok(()) | Err(_) => {}
        }
        // Links are not followed, because a link's owner could change it.
        let found = fs::symlink_metadata(path)?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other(format!("{shown}: not a directory of this user's alone (mode 0700)")));
        }
        Ok(directory)
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The broker's socket, to which candidates connect.
    pub fn socket(&self) -> PathBuf {
        self.path.join("broker.sock")
    }

    /// The lock file, which the broker locks while it lives.
    pub fn lock(&self) -> PathBuf {
        self.path.join("broker.lock")
    }

    /// Holds the lock of the candidates, beside others, until the file is closed: a candidate does so from before it reads the journal until
    /// it ends, and a guard from before it starts a job. The lock belongs to this process alone (fcntl(2), `F_SETLK`): no process that it
    /// starts has it. It is lost if the process closes the file by another descriptor, so nothing else in the process may open it.
    ///
    /// # Errors
    ///
    /// The file can't be opened or locked.
    pub fn hold(&self) -> io::Result<File> {
        let file = self.candidates()?;
        fcntl(&file, FcntlArg::F_SETLK(&whole_file(libc::F_RDLCK)))?;
        Ok(file)
    }

    /// The line about another process that holds that lock: a candidate or a guard that an ended broker has left. This process must not hold the
    /// lock, or loses it.
    ///
    /// # Errors
    ///
    /// The file can't be opened, or the kernel can't be asked.
    pub fn holder(&self) -> io::Result<Option<String>> {
        let mut lock = whole_file(libc::F_WRLCK);
        fcntl(&self.candidates()?, FcntlArg::F_GETLK(&mut lock))?;
        let process = match lock.l_pid {
            0 => "a process in another PID namespace".to_owned(),
            pid => format!("process {pid}"),
        };
        Ok((c_int::from(lock.l_type) != libc::F_UNLCK).then(|| {
            format!(
                "the last broker has ended, and its journal with it, but {process}, which is a candidate of it or a guard, still runs, and so may \
                 its job; end it, or wait until it has ended"
            )
        }))
    }

    fn candidates(&self) -> io::Result<File> {
        File::options().create(true).truncate(false).read(true).write(true).open(self.path.join("candidates.lock"))
    }
}

/// A lock of this kind on a whole file.
fn whole_file(kind: c_int) -> libc::flock {
    libc::flock {
        // The kinds are small numbers.
        l_type: kind.try_into().unwrap_or_default(),
        l_whence: libc::SEEK_SET.try_into().unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// The directory of a user's broker: `neli-run` below `variable` (`XDG_RUNTIME_DIR`), else `/run/user/<uid>/neli-run`, else
/// `/tmp/neli-run-<uid>`.
fn choose(variable: Option<&OsStr>, uid: u32, is_dir: impl Fn(&Path) -> bool) -> PathBuf {
    let system = PathBuf::from(format!("/run/user/{uid}"));
    let variable = variable.map(PathBuf::from).filter(|path| path.is_absolute());
    match variable.into_iter().chain([system]).find(|path| is_dir(path)) {
        Some(path) => path.join("neli-run"),
        None => PathBuf::from(format!("/tmp/neli-run-{uid}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_users_runtime_directory_is_preferred() {
        let at = |variable: Option<&str>, there: &[&str]| {
            choose(variable.map(OsStr::new), 7, |path| there.iter().any(|known| Path::new(known) == path))
        };
        assert_eq!(at(Some("/x"), &["/x", "/run/user/7"]), Path::new("/x/neli-run"));
        assert_eq!(at(Some("/x"), &["/run/user/7"]), Path::new("/run/user/7/neli-run"));
        assert_eq!(at(Some("x"), &["x"]), Path::new("/tmp/neli-run-7"));
        assert_eq!(at(None, &[]), Path::new("/tmp/neli-run-7"));
    }

    #[test]
    fn a_directory_that_others_could_enter_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("neli-run");
        let directory = BrokerDirectory::at(&inner).unwrap();
        assert_eq!(BrokerDirectory::at(&inner).unwrap(), directory);
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(BrokerDirectory::at(&inner).is_err());
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o700)).unwrap();
        symlink(&inner, base.path().join("link")).unwrap();
        assert!(BrokerDirectory::at(&base.path().join("link")).is_err());
        assert!(BrokerDirectory::at(&base.path().join("x".repeat(100))).is_err());
    }
}
