//! What a server serves: the answer for each path, and a body, which is one piece, or the state as it changes (server-sent events).

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::{Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// The answers of a server. It is made and used on the server's thread alone.
pub(crate) trait Site {
    /// The answer to a `GET` or `HEAD` of this path, which is without its query (`?`).
    fn answer(&self, path: &str) -> Answer;

    /// The events for one client that follows.
    fn events(self: Rc<Self>) -> Events;
}

/// Returns the next event as it is sent, unless nothing has changed since the last call. It is called when the connection has room: a slow reader
/// gets fewer events, not late ones.
pub(crate) type Events = Box<dyn FnMut() -> Option<Bytes>>;

/// The answer to a request.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// The state as it changes, until the client closes the connection.
    Live,
    /// This body.
    Whole { status: StatusCode, kind: ContentType, body: Bytes },
}

/// The content type of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ContentType {
    Html,
    JavaScript,
    Json,
    Metrics,
    Text,
}

impl ContentType {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::JavaScript => "text/javascript; charset=utf-8",
            Self::Json => "application/json",
            Self::Metrics => "text/plain; version=0.0.4; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}

/// The answer of a site to a request; a query (`?`) after the path is ignored.
pub(super) fn answer(site: &dyn Site, method: &Method, path: &str) -> Answer {
    if *method != Method::GET && *method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: nothing can be changed here");
    }
    site.answer(path)
}

pub(crate) fn ok(kind: ContentType, body: Bytes) -> Answer {
    Answer::Whole { status: StatusCode::OK, kind, body }
}

pub(crate) fn unavailable(why: &str) -> Answer {
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

pub(crate) fn text(status: StatusCode, line: &str) -> Answer {
    Answer::Whole { status, kind: ContentType::Text, body: format!("{line}\n").into() }
}

/// The time between two checks for a change. Nothing announces it, because that would have to wake this thread.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// The body of an answer.
pub(super) enum Payload {
    Live(Live),
    Whole(Whole),
}

/// One piece, until it is sent; it holds its permit for large answers until then.
pub(super) struct Whole {
    pub(super) body: Option<Bytes>,
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// An event for each change.
pub(super) struct Live {
    events: Events,
    interval: Interval,
    /// The permit for one client that follows.
    _place: OwnedSemaphorePermit,
}

impl Live {
    pub(super) fn new(site: Rc<dyn Site>, place: OwnedSemaphorePermit) -> Self {
        let mut interval = interval(LOOKS_EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { events: site.events(), interval, _place: place }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            ready!(self.interval.poll_tick(context));
            if let Some(event) = (self.events)() {
                return Poll::Ready(event);
            }
        }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Live(live) => live.poll_event(context).map(|event| Some(Ok(Frame::data(event)))),
            Self::Whole(whole) => Poll::Ready(whole.body.take().map(|body| Ok(Frame::data(body)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(Whole { body: None, .. }))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Live(_) => SizeHint::default(),
            Self::Whole(whole) => SizeHint::with_exact(whole.body.as_ref().map_or(0, |body| body.len() as u64)),
        }
    }
}
