//! The server: a thread of its own, with limits on the load that clients can cause.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener, ToSocketAddrs as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, Result};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::libc;
use nix::sys::socket::{Backlog, listen as listen_with};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, LocalSet, spawn_local, yield_now};
use tokio::time::{sleep, timeout};

use super::{Payload, Site, answer_to, follows, response, text};
use crate::config::Listen;
use crate::exit::{ExitStatus, with_status};
use crate::text::reason;

/// The most connections that may follow the status.
const FOLLOWERS: usize = 16;
/// The most large answers that are sent at once.
const LARGE_ANSWERS: usize = 4;
/// An answer above this size is large.
const LARGE: usize = 1 << 20;
/// How many connections may wait in the kernel's queue. Beyond that it drops requests for a connection, which come again a second later at
/// the earliest. The kernel may have a lower bound (`somaxconn`).
const QUEUE: i32 = 1_024;
/// The pause after a failure for lack of descriptors or memory.
const RETRY: Duration = Duration::from_millis(100);
/// The time limit for a complete request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
/// After this time a connection is closed, even if the client has not read all of the answer. A page that follows the status connects
/// again.
const CONNECTION_LASTS: Duration = Duration::from_secs(60);
/// The most bytes in a request's line and headers.
const LONGEST_REQUEST: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;
/// The size of the thread's stack, in bytes.
const STACK: usize = 512 * 1024;

/// Binds the socket, which then has the port that the kernel chose if 0 was given.
///
/// # Errors
///
/// The name has no address; or the address is not this machine's, not allowed, or in use.
pub(crate) fn bind(listen: &Listen) -> Result<TcpListener> {
    let Listen { host, port, shown } = listen;
    let bind = || -> Result<TcpListener> {
        let host = if host.is_empty() { "::" } else { host };
        // After a power failure the server of names may come up later than this machine.
        let addresses =
            (host, *port).to_socket_addrs().map_err(|error| with_status(ExitStatus::UNAVAILABLE, reason(&error)))?;
        // Without IPv6, all IPv4 addresses are used.
        let is_without = |error: &io::Error| {
            error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
        };
        let listener = match TcpListener::bind(&*addresses.collect::<Vec<_>>()) {
            Err(error) if listen.host.is_empty() && is_without(&error) => TcpListener::bind(("0.0.0.0", *port)),
            bound => bound,
        }?;
        listener.set_nonblocking(true)?;
        // The standard library has made the queue shorter.
        listen_with(&listener, Backlog::new(QUEUE)?)?;
        Ok(listener)
    };
    bind().with_context(|| shown.clone())
}

/// Serves a site on a thread of its own, for the life of the process. Must be called with every signal blocked. The thread makes the site first.
///
/// # Errors
///
/// There are no free descriptors, or the thread can't be started.
pub(crate) fn serve(bound: TcpListener, make: impl FnOnce() -> Rc<dyn Site> + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let listener = {
        let _within = runtime.enter();
        tokio::net::TcpListener::from_std(bound)?
    };
    let thread = thread::Builder::new().name("http".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let server = Rc::new(Server {
            site: make(),
            followers: Arc::new(Semaphore::new(FOLLOWERS)),
            large_answers: Arc::new(Semaphore::new(LARGE_ANSWERS)),
        });
        LocalSet::new().block_on(&runtime, server.accept(listener));
    })?;
    Ok(())
}

/// The data that all connections share.
struct Server {
    site: Rc<dyn Site>,
    followers: Arc<Semaphore>,
    large_answers: Arc<Semaphore>,
}

impl Server {
    async fn accept(self: Rc<Self>, listener: tokio::net::TcpListener) {
        let mut admission = Admission::new();
        loop {
            let Ok((stream, client)) = listener.accept().await else {
                sleep(RETRY).await;
                continue;
            };
            admission.retain(|connection: &AbortHandle| !connection.is_finished());
            admission.make_room().iter().for_each(AbortHandle::abort);
            let connection = spawn_local(Rc::clone(&self).connection(stream)).abort_handle();
            if admission.admit(client.ip(), connection) {
                sleep(PAUSE).await;
            } else {
                // So that each connection is read before the next one may take its place.
                yield_now().await;
            }
        }
    }

    /// One request and its answer.
    async fn connection(self: Rc<Self>, stream: TcpStream) {
        let service = service_fn(|request| {
            let answer = self.respond(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_WITHIN)
            .keep_alive(false)
            // Otherwise a client that closes its half at once may get no answer.
            .half_close(true)
            .max_buf_size(LONGEST_REQUEST)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        // An error concerns only this client.
        let _ = timeout(CONNECTION_LASTS, connection).await;
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Payload> {
        let mut response = self.answer(request.method(), request.uri().path());
        let is_refused = response.status() == StatusCode::METHOD_NOT_ALLOWED;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_refused {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }

    /// The answer to a request. A large body or a follower without a free permit is refused.
    fn answer(&self, method: &Method, path: &str) -> Response<Payload> {
        let permit = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_owned().ok();
        let busy = || text(StatusCode::SERVICE_UNAVAILABLE, "too many requests at the same time; try again later");
        let mut place = None;
        let mut answer = if !follows(method, path) {
            answer_to(&*self.site, method, path)
        } else if let Some(place) = permit(&self.followers) {
            let live = Payload::live(Rc::clone(&self.site).events(), place);
            return response(StatusCode::OK, "text/event-stream", live);
        } else {
            busy()
        };
        if answer.body().len() > LARGE {
            place = permit(&self.large_answers);
            if place.is_none() {
                answer = busy();
            }
        }
        answer.map(|body| Payload { body: Some(body), events: None, _place: place })
    }
}

/// The most connections at once.
const CONNECTIONS: usize = 64;
/// So many connections are accepted without a pause, more than a crowd can make the kernel queue in the pauses.
const BURST: usize = 32;
/// The pause after that. With it a flood of connections costs a bounded part of a processor.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// The open connections, the oldest first, each with its client's address.
#[derive(Debug)]
pub(super) struct Admission<C> {
    open: VecDeque<(IpAddr, C)>,
    /// How many were accepted since the last pause.
    accepted: usize,
}

impl<C> Admission<C> {
    pub(super) const fn new() -> Self {
        Self { open: VecDeque::new(), accepted: 0 }
    }

    /// Forgets the connections that have ended.
    pub(super) fn retain(&mut self, is_open: impl Fn(&C) -> bool) {
        self.open.retain(|(_, connection)| is_open(connection));
    }

    /// The connection that must be closed for one more: the oldest of the address that has the most. So a client that has few keeps them,
    /// whatever others do, and of those behind one address the newest, which has not been answered yet, is kept.
    pub(super) fn make_room(&mut self) -> Option<C> {
        if self.open.len() < CONNECTIONS {
            return None;
        }
        let of = |address: IpAddr| self.open.iter().filter(|(other, _)| *other == address).count();
        // Of several the last one counts, so the oldest comes last.
        let oldest_of_most = (0..self.open.len()).rev().max_by_key(|at| of(self.open[*at].0))?;
        self.open.remove(oldest_of_most).map(|(_, connection)| connection)
    }

    /// Notes a new connection; returns true if a pause must follow.
    pub(super) fn admit(&mut self, address: IpAddr, connection: C) -> bool {
        self.open.push_back((address, connection));
        self.accepted = (self.accepted + 1) % BURST;
        self.accepted == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const PROBE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn a_crowd_takes_the_place_of_its_own_connections_only() {
        let mut admission = Admission::new();
        admission.admit(PROBE, 0);
        let closed: Vec<i32> = (1..=1_000)
            .filter_map(|number| {
                let closed = admission.make_room();
                admission.admit(CROWD, number);
                closed
            })
            .collect();
        // The probe's own is the oldest.
        assert_eq!(closed, (1..=937).collect::<Vec<_>>());
        admission.retain(|number| *number != 1_000);
        assert_eq!(admission.make_room(), None);
    }

    #[test]
    fn of_one_address_the_oldest_makes_room() {
        let mut admission = Admission::new();
        for number in 0..64 {
            admission.admit(CROWD, number);
        }
        assert_eq!(admission.make_room(), Some(0));
        admission.admit(PROBE, 64);
        assert_eq!(admission.make_room(), Some(1));
    }

    #[test]
    fn a_thousand_waiting_connections_are_accepted_with_thirty_one_pauses() {
        let mut admission = Admission::new();
        let pauses = (0..1_000).filter(|number| admission.admit(CROWD, *number)).count();
        assert_eq!(pauses, 31);
    }
}
