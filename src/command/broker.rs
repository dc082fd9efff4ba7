//! `neli-run broker`: the embedded broker, by hand or started by the first candidate of `--embedded`. It is a broker in a thread of this process,
//! and a socket to which candidates connect.
//!
//! There is one for each [`BrokerDirectory`]: it holds the lock of the broker while it lives, and the kernel releases the lock when it dies.
//! It begins only when no process of an earlier broker is left ([`BrokerDirectory::hold`]). Until then a job may run under a lease of
//! which its empty journal says nothing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use neli_kafka::clock;
use neli_kafka::embedded::{BrokerDirectory, BrokerFinder, Connection};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

use crate::cli::parsed_args::ParsedArgs;
use crate::command::look::limit;
use crate::command::{output, reading};
use crate::exit::ExitStatus;
use crate::process::descriptors;
use crate::process::ready::Ready;

/// How long to wait for another broker that is ending.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts to take the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// The pause before candidates are accepted again after a lack of descriptors or memory.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);
/// A request is one short line; a client that sends more is disconnected.
const MAX_REQUEST: u64 = 4096;

/// Other tools can use the address, but a candidate must use `--embedded`: it asks the broker's process to create a topic, and not by
/// Kafka's protocol.
const USAGE: &str = "neli-run: this user's candidates find this broker with --embedded (neli-run --embedded --group NAME -- \
                     COMMAND). Don't give its address to --brokers: this broker makes no topics for Kafka's clients";

/// Runs the broker until TERM or INT, or until no candidate has been connected for `--idle-timeout`. Prints its address on stdout, and explains
/// on stderr how to use it.
///
/// # Errors
///
/// Another broker runs already, or a process of an earlier one; the broker can't be started, or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let idle_timeout = limit(args, "idle-timeout")?;
    // It may outlive the process that started it, and must keep no pipe or lock of that one open.
    descriptors::close_all_but(&[0, 1, 2]).context(NOT_STARTED)?;
    let directory = BrokerFinder::of_user()?.directory;
    // It is held until the end of the process.
    let _lock = lock(&directory)?;
    // No other broker accepts candidates now, so none can join those that are left.
    if let Some(left) = directory.holder().context(NOT_STARTED)? {
        bail!("{left}");
    }
    reading::run(LocalSet::new().run_until(run(&directory, idle_timeout)))?;
    Ok(ExitStatus::SUCCESS)
}

/// A system call has failed, or librdkafka has refused.
const NOT_STARTED: &str = "the embedded broker can't be started";

async fn run(directory: &BrokerDirectory, idle_timeout: Option<Duration>) -> Result<()> {
    let broker = Connection::to_own_broker().context(NOT_STARTED)?;
    let (signals, sender) = BlockingStream::pair().context(NOT_STARTED)?;
    let signals = SignalDelivery::with_pipe(signals, sender, SignalOnly, [SIGINT, SIGTERM]).context(NOT_STARTED)?;
    let signal = Ready::of(signals.get_read()).context(NOT_STARTED)?;
    // The process that held the lock before is dead, so its socket is unused.
    remove(&directory.socket()).context(NOT_STARTED)?;
    let listener = UnixListener::bind(directory.socket()).context(NOT_STARTED)?;
    output::print(&format!("{}\n", broker.bootstrap()))?;
    // stderr may be closed; then the hint is lost.
    let _ = writeln!(io::stderr(), "{USAGE}");
    tokio::select! {
        () = signal.wait() => {}
        () = serve(listener, broker, idle_timeout) => {}
    }
    // A candidate that connects from now on is not accepted. It starts another broker, which waits for the lock.
    remove(&directory.socket()).context("the embedded broker")
}

/// Serves candidates until none has been connected for the idle timeout.
async fn serve(listener: UnixListener, broker: Connection, idle_timeout: Option<Duration>) {
    let (broker, mut clients) = (Rc::new(broker), JoinSet::new());
    loop {
        let idle_timeout = idle_timeout.filter(|_| clients.is_empty());
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(clients.spawn_local(serve_client(stream, Rc::clone(&broker)))),
                // For lack of descriptors or memory. The candidate waits; without this pause the loop would not.
                Err(_) => sleep(SHORTAGE_PAUSE).await,
            },
            Some(_) = clients.join_next() => {}
            () = sleep(idle_timeout.unwrap_or_default()), if idle_timeout.is_some() => return,
        }
    }
}

/// Takes the lock after the other broker has exited; fails if that broker still accepts connections.
fn lock(directory: &BrokerDirectory) -> Result<Flock<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(directory.lock());
    let mut file = file.context(NOT_STARTED)?;
    let begun = clock::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(io::Error::from(errno)).context(NOT_STARTED),
        };
        if BlockingStream::connect(directory.socket()).is_ok() || clock::now().since(begun) > LOCK_TIMEOUT {
            bail!("an embedded broker is running already; --embedded finds it");
        }
        thread::park_timeout(LOCK_INTERVAL);
    }
}

/// Removes a file; a missing file counts as removed.
fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Serves a candidate's connection until it ends: it either stays open for the candidate's life or makes one request. Each message is a line of
/// JSON, which candidates of other versions understand: first the broker's address; then to each request, a topic to be created and the number of its
/// partitions, why that failed, or null.
async fn serve_client(mut stream: UnixStream, broker: Rc<Connection>) -> io::Result<()> {
    send(&mut stream, json!({ "bootstrap": broker.bootstrap() })).await?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut stream).take(MAX_REQUEST).read_until(b'\n', &mut line).await?;
        if !line.ends_with(b"\n") {
            return Ok(());
        }
        send(stream.get_mut(), json!({ "error": answer(&line, &broker).err() })).await?;
    }
}

async fn send(stream: &mut UnixStream, what: Value) -> io::Result<()> {
    stream.write_all(format!("{what}\n").as_bytes()).await
}

/// Creates the topic of this request.
///
/// # Errors
///
/// Why it was not created.
fn answer(line: &[u8], broker: &Connection) -> Result<(), String> {
    let request: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let partitions = request["partitions"].as_i64().and_then(|partitions| i32::try_from(partitions).ok());
    let (topic, partitions) =
        request["create_topic"].as_str().zip(partitions).ok_or("not a topic's name and number of partitions")?;
    broker.create_topic(topic, partitions).map_err(|error| error.to_string())
}
