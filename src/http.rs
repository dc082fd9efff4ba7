//! `--listen`: the state of this process, for monitoring, load balancers and users. It is read-only.
//!
//! A thread of its own serves the state that the main loop has published last, so the main loop never waits for it. Clients are limited:
//! one request for each connection, some thousand connections a second, a maximum number at a time, and a time limit for each.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use neli_proto::time::Time;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

mod answer;
mod metrics;
mod server;
mod snapshot;
mod status;

pub(crate) use answer::AnswerSource;
pub(crate) use metrics::{Exposition, Metric, counter, flag, gauge, label, number, seconds};
pub(crate) use server::{bind, serve};
pub(crate) use snapshot::{About, Board, Echoes, Histogram, RoleSnapshot, Snapshot, Tally, note_sent, publish};

/// The most descriptors that the server uses.
pub(crate) const OPEN_FILES: u64 = 80;

/// The answers of a server. It is made and used on the server's thread alone.
pub(crate) trait Site {
    /// The answer to a `GET` or `HEAD` of this path, which is without its query (`?`), and not `/events`.
    fn answer(&self, path: &str) -> Response<Bytes>;

    /// The events for one client that follows.
    fn events(self: Rc<Self>) -> Events;
}

/// Returns the next event as it is sent, unless nothing has changed since the last call. It is called when the connection has room: a slow reader
/// gets fewer events, not late ones.
pub(crate) type Events = Box<dyn FnMut() -> Option<Bytes>>;

/// The content types of bodies.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JAVA_SCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
/// Prometheus' text format.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Whether a request asks for the state as it changes, until the client closes the connection.
fn follows(method: &Method, path: &str) -> bool {
    is_read(method) && path == "/events"
}

/// The answer of a site to any other request; a query (`?`) after the path is ignored.
fn answer_to(site: &dyn Site, method: &Method, path: &str) -> Response<Bytes> {
    if is_read(method) {
        site.answer(path)
    } else {
        text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: nothing can be changed here")
    }
}

pub(crate) fn ok(content_type: &'static str, body: Bytes) -> Response<Bytes> {
    response(StatusCode::OK, content_type, body)
}

pub(crate) fn unavailable(why: &str) -> Response<Bytes> {
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

pub(crate) fn text(status: StatusCode, line: &str) -> Response<Bytes> {
    response(status, TEXT, format!("{line}\n").into())
}

fn response<B>(status: StatusCode, content_type: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What was rendered last, with its time. It is used again for a moment, so that many requests cost little.
pub(crate) struct Kept<T>(RefCell<Option<(Time, T)>>);

impl<T: Clone> Kept<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(None))
    }

    /// What was rendered in the last moment, if it is still right.
    pub(crate) fn get(
        &self,
        now: Time,
        moment: Duration,
        is_right: impl FnOnce(&T) -> bool,
        render: impl FnOnce() -> T,
    ) -> T {
        let mut kept = self.0.borrow_mut();
        let fresh = kept.take().filter(|(at, rendered)| now.since(*at) < moment && is_right(rendered));
        kept.insert(fresh.unwrap_or_else(|| (now, render()))).1.clone()
    }
}

/// The time between two checks for a change. Nothing announces it, because that would have to wake this thread.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// The body of an answer: one piece, or an event for each change.
struct Payload {
    /// The piece, until it is sent.
    body: Option<Bytes>,
    events: Option<(Events, Interval)>,
    /// The permit for a large answer, or for one client that follows.
    _place: Option<OwnedSemaphorePermit>,
}

impl Payload {
    fn live(events: Events, place: OwnedSemaphorePermit) -> Self {
        let mut interval = interval(LOOKS_EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { body: None, events: Some((events, interval)), _place: Some(place) }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { body, events, .. } = self.get_mut();
        let Some((events, interval)) = events else {
            return Poll::Ready(body.take().map(|body| Ok(Frame::data(body))));
        };
        loop {
            ready!(interval.poll_tick(context));
            if let Some(event) = events() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        // Events have no end.
        self.body.as_ref().map_or_else(SizeHint::default, |body| SizeHint::with_exact(body.len() as u64))
    }
}

#[cfg(test)]
mod tests;
