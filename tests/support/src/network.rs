//! A network that can be broken: TCP proxies ("wires") between a candidate and a broker, each with its own state.
//!
//! A wire treats a stream as a network does: it delays bytes, slows them down or holds them, in one direction or both; it resets
//! connections or refuses them. It never drops bytes from the middle of a stream, because TCP would retransmit them or end the connection.

use std::io;
use std::net::{self, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::channel;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::node::bound_port;
use frames::{Falsified, Frames};

mod frames;

/// How a wire carries the bytes of one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Flow {
    /// Each chunk is delayed by this time.
    Late(Duration),
    /// Nothing is delivered. A connection that lost bytes is closed when the state changes.
    Lost,
    /// Nothing is delivered until the state changes; then all held bytes are delivered.
    Held,
    /// Bytes are delivered at once.
    #[default]
    Open,
    /// This many bytes a second are delivered.
    Trickle(u32),
}

/// The present state of a wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkConditions {
    /// Towards the broker.
    pub there: Flow,
    /// Towards the candidate.
    pub back: Flow,
    /// The wire does not listen, and existing connections are reset.
    pub refuses: bool,
    /// Requests with this API key never reach the broker, on connections that are opened from now on.
    pub swallows: Option<i16>,
    /// Answers can be falsified ([`Wire::falsify_ends`], [`Wire::garble`], ..), on connections that are opened from now on.
    pub falsifies: bool,
}

/// The settings of a wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct WireState {
    conditions: LinkConditions,
    /// Incremented by each reset of all connections.
    resets: u64,
}

/// All wires; they end when this is dropped.
#[derive(Debug)]
pub struct Network {
    handle: Handle,
    /// Its drop ends the thread.
    _end: oneshot::Sender<()>,
}

/// A path to a broker.
#[derive(Debug)]
pub struct Wire {
    /// The port on 127.0.0.1 where the wire listens.
    pub port: u16,
    state: watch::Sender<WireState>,
    falsified: Arc<Falsified>,
}

impl Network {
    /// Starts the one thread that serves all wires.
    #[must_use]
    pub fn start() -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let (say, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            say.send(runtime.handle().clone()).expect("the thread that started us waits");
            // An error also means that the sender was dropped.
            let _ = runtime.block_on(ended);
        });
        Self { handle: receiver.recv().expect("a thread that has a runtime"), _end: end }
    }

    /// A wire to a broker that delivers everything at once.
    #[must_use]
    pub fn wire(&self, to: SocketAddr) -> Wire {
        let (state, receiver) = watch::channel(WireState::default());
        let (port, listener) = bound_port();
        let falsified = Arc::new(Falsified::default());
        let _task = self.handle.spawn(serve(port, listener, to, receiver, Arc::clone(&falsified)));
        Wire { port, state, falsified }
    }
}

impl Wire {
    /// Sets the state of existing and future connections.
    pub fn set(&self, conditions: LinkConditions) {
        self.state.send_modify(|state| state.conditions = conditions);
    }

    /// The present state.
    #[must_use]
    pub fn conditions(&self) -> LinkConditions {
        self.state.borrow().conditions
    }

    /// Makes the next `answers` answers about the end of a log report an end that is two records too low.
    pub fn falsify_ends(&self, answers: u32) {
        self.falsified.set_ends(answers);
    }

    /// How many answers about the end of a log have passed since then.
    #[must_use]
    pub fn ends_passed(&self) -> u32 {
        self.falsified.ends_passed()
    }

    /// Sets whether answers about the cluster contain no broker, like those of a broker that was just restarted in a cluster of one.
    pub fn hide_brokers(&self, hides: bool) {
        self.falsified.hide_brokers(hides);
    }

    /// How many answers without brokers have passed.
    #[must_use]
    pub fn answers_without_brokers(&self) -> u32 {
        self.falsified.hidden()
    }

    /// Sets whether the answers that records were appended are lost.
    pub fn lose_acknowledgements(&self, loses: bool) {
        self.falsified.lose_acknowledgements(loses);
    }

    /// Gives the first heartbeat of each of the next `answers` answers with heartbeats a wrong byte.
    pub fn garble(&self, answers: u32) {
        self.falsified.garble(answers);
    }

    /// How many answers have had a wrong byte.
    #[must_use]
    pub fn garbled(&self) -> u32 {
        self.falsified.garbled()
    }

    /// Resets every connection; new ones are accepted.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.resets += 1);
    }
}

/// Listens while the state allows it, until the wire is dropped.
async fn serve(
    port: u16,
    listener: net::TcpListener,
    to: SocketAddr,
    mut state: watch::Receiver<WireState>,
    falsified: Arc<Falsified>,
) {
    let handed_on = state.clone();
    let mut first = Some(listener).filter(|_| !state.borrow().conditions.refuses);
    loop {
        if state.wait_for(|state| !state.conditions.refuses).await.is_err() {
            return;
        }
        let listener = match first.take() {
            Some(listener) => listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)),
            None => TcpListener::bind(("127.0.0.1", port)).await,
        };
        let listener = listener.expect("the port is ours");
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    // If a connection failed before it was accepted, the client tries again.
                    if let Ok((client, _)) = accepted {
                        tokio::spawn(carry(client, to, handed_on.clone(), Arc::clone(&falsified)));
                    }
                }
                refuses = state.wait_for(|state| state.conditions.refuses) => {
                    if refuses.is_err() {
                        return;
                    }
                    break;
                }
            }
        }
    }
}

/// Carries one connection to its end.
async fn carry(
    mut client: TcpStream,
    to: SocketAddr,
    mut state: watch::Receiver<WireState>,
    falsified: Arc<Falsified>,
) {
    let resets = state.borrow().resets;
    if let Ok(mut broker) = TcpStream::connect(to).await {
        // Small requests must not wait for each other in the proxy (Nagle's algorithm).
        let _ = client.set_nodelay(true).and_then(|()| broker.set_nodelay(true));
        let (mut there, mut back) = (state.clone(), state.clone());
        let LinkConditions { swallows, falsifies, .. } = state.borrow().conditions;
        let mut frames =
            (swallows.is_some() || falsifies).then(|| frames::both(swallows, falsifies.then_some(falsified)));
        let (mut requests, mut answers) = frames.as_mut().map(|(there, back)| (there, back)).unzip();
        let (client_reads, client_writes) = client.split();
        let (broker_reads, broker_writes) = broker.split();
        let both = async {
            tokio::try_join!(
                pump(client_reads, broker_writes, &mut there, requests.take(), |conditions| conditions.there),
                pump(broker_reads, client_writes, &mut back, answers.take(), |conditions| conditions.back),
            )
        };
        tokio::select! {
            carried = both => {
                if carried.is_ok() {
                    // Both sides have sent their end of stream.
                    return;
                }
            }
            _ = state.wait_for(|state| state.resets != resets || state.conditions.refuses) => {}
        }
        let _ = broker.set_zero_linger();
    }
    let _ = client.set_zero_linger();
}

/// The largest number of chunks that one direction of a connection buffers; beyond that the sender has to wait.
const PIECES: usize = 64;

/// Carries one direction of one connection to its end. It reads while earlier chunks are still delayed, because otherwise the delays
/// would add up.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    state: &mut watch::Receiver<WireState>,
    mut frames: Option<&mut Frames>,
    flow: fn(&LinkConditions) -> Flow,
) -> io::Result<()> {
    let (taken, mut pieces) = channel(PIECES);
    let take = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer).await?;
            let piece = &buffer[..read];
            let piece = match frames.as_mut().filter(|_| read > 0) {
                Some(frames) => frames.let_through(piece),
                None => piece.to_vec(),
            };
            if piece.is_empty() && read > 0 {
                // The request was swallowed; an empty chunk would mean the end of the stream.
                continue;
            }
            if taken.send((Instant::now(), piece)).await.is_err() || read == 0 {
                return Ok(());
            }
        }
    };
    let carry = async {
        while let Some((since, piece)) = pieces.recv().await {
            forward(&piece, since, &mut to, state, flow).await?;
            if piece.is_empty() {
                break;
            }
        }
        Ok(())
    };
    tokio::try_join!(take, carry).map(|_| ())
}

/// Delivers a chunk as the state demands; an empty chunk is the end of the stream.
async fn forward(
    piece: &[u8],
    since: Instant,
    to: &mut WriteHalf<'_>,
    state: &mut watch::Receiver<WireState>,
    flow: fn(&LinkConditions) -> Flow,
) -> io::Result<()> {
    const SLICE: Duration = Duration::from_millis(20);
    let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
    let mut rest = piece;
    loop {
        let present = flow(&state.borrow_and_update().conditions);
        match present {
            Flow::Open => break,
            Flow::Held => drop(state.changed().await.map_err(gone)?),
            Flow::Lost => {
                // Later chunks are lost as well; after a loss the connection can't continue.
                state.wait_for(|state| flow(&state.conditions) != Flow::Lost).await.map_err(gone)?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Flow::Late(by) => {
                sleep_until(since + by).await;
                break;
            }
            Flow::Trickle(rate) => {
                let size = usize::try_from(rate / 50).map_or(1, |size| size.max(1));
                let (slice, after) = rest.split_at(size.min(rest.len()));
                sleep(SLICE).await;
                to.write_all(slice).await?;
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
        }
    }
    if piece.is_empty() { to.shutdown().await } else { to.write_all(rest).await }
}

#[cfg(test)]
mod tests;
