//! A network that can be broken: wires between a candidate and a broker, each with a weather of its own.
//!
//! A wire is a TCP proxy. It does to a stream what a network does: bytes come late, or slowly, or not at all, in one
//! direction or in both; a connection is reset, or refused. Bytes are never lost from the middle of a stream: what a real
//! network drops is sent again, or the connection ends.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::channel;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::node::free_port;

/// How a wire carries the bytes of one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Flow {
    /// Each piece this much later.
    Late(Duration),
    /// Not at all, and never: a connection that lost something ends when the weather changes.
    Lost,
    /// Not at all; what was held arrives when the weather changes.
    Held,
    /// At once.
    #[default]
    Open,
    /// This many bytes a second.
    Trickle(u32),
}

/// What a wire does at present.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Weather {
    /// Towards the broker.
    pub there: Flow,
    /// Towards the candidate.
    pub back: Flow,
    /// Nobody listens, and what was connected is reset.
    pub refuses: bool,
    /// Requests with this API key never reach the broker, on connections that are made from now on.
    pub swallows: Option<i16>,
}

/// What a wire is told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct State {
    weather: Weather,
    /// Grows with each reset of all connections.
    resets: u64,
}

/// All wires; they end with it.
#[derive(Debug)]
pub struct Network {
    handle: Handle,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

/// A way to a broker.
#[derive(Debug)]
pub struct Wire {
    /// Where it is entered, on 127.0.0.1.
    pub port: u16,
    state: watch::Sender<State>,
}

impl Network {
    /// One thread carries it all.
    #[must_use]
    pub fn start() -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let (say, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            say.send(runtime.handle().clone()).expect("the thread that started us waits");
            // An error is the end, too: the sender is gone.
            let _ = runtime.block_on(ended);
        });
        Self { handle: receiver.recv().expect("a thread that has a runtime"), _end: end }
    }

    /// A wire to a broker, in fair weather.
    #[must_use]
    pub fn wire(&self, to: SocketAddr) -> Wire {
        let (state, receiver) = watch::channel(State::default());
        let port = free_port();
        let _task = self.handle.spawn(serve(port, to, receiver));
        Wire { port, state }
    }
}

impl Wire {
    /// Changes the weather, for the connections that are there and for those to come.
    pub fn set(&self, weather: Weather) {
        self.state.send_modify(|state| state.weather = weather);
    }

    /// What the weather is.
    #[must_use]
    pub fn weather(&self) -> Weather {
        self.state.borrow().weather
    }

    /// Resets every connection; new ones are welcome.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.resets += 1);
    }
}

/// Listens whenever it may, until the wire is dropped.
async fn serve(port: u16, to: SocketAddr, mut state: watch::Receiver<State>) {
    let handed_on = state.clone();
    loop {
        if state.wait_for(|state| !state.weather.refuses).await.is_err() {
            return;
        }
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is ours");
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    // What failed before it was accepted is the client's to try again.
                    if let Ok((client, _)) = accepted {
                        tokio::spawn(carry(client, to, handed_on.clone()));
                    }
                }
                refuses = state.wait_for(|state| state.weather.refuses) => {
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
async fn carry(mut client: TcpStream, to: SocketAddr, mut state: watch::Receiver<State>) {
    let resets = state.borrow().resets;
    if let Ok(mut broker) = TcpStream::connect(to).await {
        // Small requests are not to wait for each other in here.
        let _ = client.set_nodelay(true).and_then(|()| broker.set_nodelay(true));
        let (mut there, mut back) = (state.clone(), state.clone());
        let mut requests = state.borrow().weather.swallows.map(|key| Requests { key, begun: Vec::new() });
        let (client_reads, client_writes) = client.split();
        let (broker_reads, broker_writes) = broker.split();
        let both = async {
            tokio::try_join!(
                pump(client_reads, broker_writes, &mut there, requests.as_mut(), |weather| weather.there),
                pump(broker_reads, client_writes, &mut back, None, |weather| weather.back),
            )
        };
        tokio::select! {
            carried = both => {
                if carried.is_ok() {
                    // Each side has said all it had to say.
                    return;
                }
            }
            _ = state.wait_for(|state| state.resets != resets || state.weather.refuses) => {}
        }
        let _ = broker.set_zero_linger();
    }
    let _ = client.set_zero_linger();
}

/// Pieces that a direction of a connection holds at most: more is left with whoever sends.
const PIECES: usize = 64;

/// Carries one direction of one connection to its end. What comes is taken while what came before is still under way: else late
/// pieces would add up.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    state: &mut watch::Receiver<State>,
    mut requests: Option<&mut Requests>,
    flow: fn(&Weather) -> Flow,
) -> io::Result<()> {
    let (taken, mut pieces) = channel(PIECES);
    let take = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer).await?;
            let piece = &buffer[..read];
            let piece = match requests.as_mut().filter(|_| read > 0) {
                Some(requests) => requests.let_through(piece),
                None => piece.to_vec(),
            };
            if piece.is_empty() && read > 0 {
                // Swallowed; an empty piece means the end.
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

/// The requests of one connection, of which some are swallowed.
struct Requests {
    /// The API key of those.
    key: i16,
    /// What is there of the request that is not whole yet.
    begun: Vec<u8>,
}

impl Requests {
    /// Takes the next piece of the stream; what of it and before it is to go on.
    fn let_through(&mut self, piece: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(piece);
        let mut through = Vec::new();
        // Four bytes of length, two of the API key.
        while let Some((length, _)) = self.begun.split_first_chunk::<4>() {
            let whole = 4 + usize::try_from(u32::from_be_bytes(*length)).expect("a request fits into memory");
            if self.begun.len() < whole {
                break;
            }
            let request: Vec<u8> = self.begun.drain(..whole).collect();
            if request.get(4..6) != Some(&self.key.to_be_bytes()) {
                through.extend(request);
            }
        }
        through
    }
}

/// Carries a piece as the weather lets it; an empty one is the end.
async fn forward(
    mut piece: &[u8],
    since: Instant,
    to: &mut WriteHalf<'_>,
    state: &mut watch::Receiver<State>,
    flow: fn(&Weather) -> Flow,
) -> io::Result<()> {
    const SLICE: Duration = Duration::from_millis(20);
    let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
    loop {
        let present = flow(&state.borrow_and_update().weather);
        match present {
            Flow::Open => break,
            Flow::Held => drop(state.changed().await.map_err(gone)?),
            Flow::Lost => {
                // Whatever else comes is lost as well, and then nothing can follow.
                state.wait_for(|state| flow(&state.weather) != Flow::Lost).await.map_err(gone)?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Flow::Late(by) => {
                sleep_until(since + by).await;
                break;
            }
            Flow::Trickle(rate) => {
                let size = usize::try_from(rate / 50).map_or(1, |size| size.clamp(1, piece.len().max(1)));
                let (first, rest) = piece.split_at(size.min(piece.len()));
                sleep(SLICE).await;
                to.write_all(first).await?;
                piece = rest;
                if piece.is_empty() {
                    break;
                }
            }
        }
    }
    if piece.is_empty() { to.shutdown().await } else { to.write_all(piece).await }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net;

    use super::*;
    use crate::wait;

    /// A broker that says what it hears, and a wire to it.
    fn wire() -> (Network, Wire) {
        let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let network = Network::start();
        let wire = network.wire(listener.local_addr().expect("it is bound"));
        thread::spawn(move || {
            while let Ok((mut connection, _)) = listener.accept() {
                thread::spawn(move || {
                    let mut answers = connection.try_clone().expect("a descriptor to spare");
                    // However the connection ends, its test has seen it.
                    let _ = io::copy(&mut connection, &mut answers);
                });
            }
        });
        (network, wire)
    }

    fn connect(wire: &Wire) -> net::TcpStream {
        let connection = wait::until("a wire that listens", || net::TcpStream::connect(("127.0.0.1", wire.port)).ok());
        connection.set_read_timeout(Some(wait::PATIENCE)).expect("a time");
        connection
    }

    fn read_byte(connection: &mut net::TcpStream) -> io::Result<u8> {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    #[test]
    fn bytes_pass_both_ways() {
        let (_network, wire) = wire();
        let mut connection = connect(&wire);
        connection.write_all(b"ab").expect("said");
        connection.shutdown(net::Shutdown::Write).expect("all is said");
        let mut heard = String::new();
        connection.read_to_string(&mut heard).expect("heard to its end");
        assert_eq!(heard, "ab");
    }

    #[test]
    fn bytes_held_in_one_direction_arrive_when_it_clears() {
        let (_network, wire) = wire();
        let mut connection = connect(&wire);
        wire.set(Weather { back: Flow::Held, ..Weather::default() });
        connection.write_all(b"a").expect("said");
        connection.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
        assert!(read_byte(&mut connection).is_err(), "nothing comes");
        connection.set_read_timeout(Some(wait::PATIENCE)).expect("a time");
        wire.set(Weather::default());
        assert_eq!(read_byte(&mut connection).expect("heard"), b'a');
    }

    #[test]
    fn a_connection_with_lost_bytes_is_reset_when_it_clears() {
        let (_network, wire) = wire();
        let mut connection = connect(&wire);
        connection.write_all(b"a").expect("said");
        read_byte(&mut connection).expect("heard");
        wire.set(Weather { there: Flow::Lost, ..Weather::default() });
        connection.write_all(b"b").expect("said");
        // It is lost only once it was taken, and nothing here tells when.
        wait::pause(Duration::from_millis(50));
        wire.set(Weather::default());
        assert!(read_byte(&mut connection).is_err());
        let mut anew = connect(&wire);
        anew.write_all(b"c").expect("said");
        assert_eq!(read_byte(&mut anew).expect("heard"), b'c');
    }

    #[test]
    fn slow_and_late_bytes_arrive_whole() {
        let (_network, wire) = wire();
        for flow in [Flow::Trickle(1000), Flow::Late(Duration::from_millis(5))] {
            let mut connection = connect(&wire);
            wire.set(Weather { there: flow, ..Weather::default() });
            let said: Vec<u8> = (0..100).collect();
            connection.write_all(&said).expect("said");
            let mut heard = [0; 100];
            connection.read_exact(&mut heard).expect("heard");
            assert_eq!(heard[..], said);
        }
    }

    #[test]
    fn a_reset_or_refused_connection_ends_at_once() {
        let (_network, wire) = wire();
        let mut connection = connect(&wire);
        connection.write_all(b"a").expect("said");
        read_byte(&mut connection).expect("heard");
        wire.reset();
        assert_eq!(read_byte(&mut connection).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
        wire.set(Weather { refuses: true, ..Weather::default() });
        wait::until_true("a wire that refuses", || net::TcpStream::connect(("127.0.0.1", wire.port)).is_err());
        wire.set(Weather::default());
        connect(&wire);
    }
}
