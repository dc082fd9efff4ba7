//! The answer for each path. A rendered body is cached for a moment, so that repeated requests cost little. A body is one piece, or the status
//! as it changes (server-sent events).

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::{Method, StatusCode};
use neli_kafka::clock;
use neli_proto::leadership::ReadAt;
use neli_proto::time::Time;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::snapshot::{Board, RoleSnapshot, Snapshot};
use super::{metrics, status};
use crate::report::log::spoken;

/// For this time a rendered snapshot is used again.
const FRESH_FOR: Duration = Duration::from_millis(100);

const PAGE: &str = include_str!("page.html");

/// The answer to a request.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The status as it changes, until the client closes the connection.
    Live,
    /// This body.
    Whole { status: StatusCode, kind: ContentType, body: Bytes },
}

/// The content type of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ContentType {
    Html,
    Json,
    Metrics,
    Text,
}

impl ContentType {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Metrics => "text/plain; version=0.0.4; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}

/// The source of the answers.
#[derive(Debug)]
pub(super) struct AnswerSource {
    board: Arc<Board>,
    metrics: CachedBody,
    status: CachedBody,
}

impl AnswerSource {
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self { board, metrics: CachedBody::default(), status: CachedBody::default() }
    }

    pub(super) fn look(&self) -> Arc<Snapshot> {
        self.board.look()
    }

    /// The answer to a request; a query (`?`) after the path is ignored.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Answer {
        if *method != Method::GET && *method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: nothing can be changed here");
        }
        let now = clock::now();
        match path {
            "/" => ok(ContentType::Html, Bytes::from_static(PAGE.as_bytes())),
            "/events" => Answer::Live,
            "/healthz" => health(&self.look(), now),
            "/leader" => leader(&self.look(), self.look().roles.iter(), now),
            "/metrics" => ok(ContentType::Metrics, self.metrics(now)),
            "/readyz" => readiness(&self.look(), now),
            "/status" => ok(ContentType::Json, self.status(self.look(), now)),
            _ => match path.strip_prefix("/leader/") {
                Some(label) => leader(&self.look(), named(&self.look().roles, label), now),
                None => text(
                    StatusCode::NOT_FOUND,
                    "no such path; the paths are / /events /healthz /leader /leader/ROLE /metrics /readyz /status",
                ),
            },
        }
    }

    fn metrics(&self, now: Time) -> Bytes {
        self.metrics.get(now, self.look(), |snapshot| metrics::render(snapshot, now))
    }

    /// The status as JSON.
    pub(super) fn status(&self, snapshot: Arc<Snapshot>, now: Time) -> Bytes {
        let moment = ReadAt { now, wall_ms: clock::wall_ms() };
        self.status.get(now, snapshot, |snapshot| status::render(snapshot, moment))
    }
}

/// The last rendered body, with its time and its snapshot.
#[derive(Debug, Default)]
struct CachedBody(RefCell<Option<(Time, Arc<Snapshot>, Bytes)>>);

impl CachedBody {
    fn get(&self, now: Time, snapshot: Arc<Snapshot>, render: impl FnOnce(&Snapshot) -> String) -> Bytes {
        let mut cached = self.0.borrow_mut();
        let is_fresh =
            |(at, of, _): &(Time, Arc<Snapshot>, Bytes)| now.since(*at) < FRESH_FOR && Arc::ptr_eq(of, &snapshot);
        let fresh = cached.take().filter(is_fresh);
        let (_, _, bytes) = cached.insert(fresh.unwrap_or_else(|| {
            let bytes = render(&snapshot).into();
            (now, snapshot, bytes)
        }));
        bytes.clone()
    }
}

/// Whether the main loop runs.
fn health(snapshot: &Snapshot, now: Time) -> Answer {
    match snapshot.hangs_for(now) {
        None => text(StatusCode::OK, "ok"),
        Some(age) => unavailable(&format!("the main loop has not run for {}", spoken(age))),
    }
}

/// Whether the main loop runs, and this process could lead: a broker answers, and the journal was read.
fn readiness(snapshot: &Snapshot, now: Time) -> Answer {
    match (&snapshot.broker.outage, snapshot.hangs_for(now)) {
        (_, Some(_)) => health(snapshot, now),
        (Some((since, why)), None) => {
            unavailable(&format!("no broker reached for {}: {why}", spoken(now.since(*since))))
        }
        (None, None) if !snapshot.broker.is_up() => unavailable("the journal is not read yet"),
        (None, None) => text(StatusCode::OK, "ok"),
    }
}

/// The role with this name or number. If a role's name looks like a number, the name takes precedence.
fn named<'a>(roles: &'a [Arc<RoleSnapshot>], label: &str) -> Option<&'a Arc<RoleSnapshot>> {
    let by_name = roles.iter().find(|role| role.label == label);
    by_name.or_else(|| roles.get(label.parse::<usize>().ok()?))
}

/// Whether this process leads one of these roles.
fn leader<'a>(snapshot: &Snapshot, roles: impl IntoIterator<Item = &'a Arc<RoleSnapshot>>, now: Time) -> Answer {
    let roles: Vec<&RoleSnapshot> = roles.into_iter().map(Arc::as_ref).collect();
    match (roles.iter().find(|role| role.leads(now)), roles.as_slice()) {
        (_, []) => text(StatusCode::NOT_FOUND, "this process has no such role"),
        (Some(role), _) => text(StatusCode::OK, &format!("leading, term {}", role.status.term().unwrap_or(-1))),
        (None, [role]) => {
            let moment = ReadAt { now, wall_ms: clock::wall_ms() };
            unavailable(&format!("not leading; {}", status::why_not_here(snapshot, role, moment)))
        }
        (None, roles) => unavailable(&format!("not leading; none of its {} roles", roles.len())),
    }
}

fn ok(kind: ContentType, body: Bytes) -> Answer {
    Answer::Whole { status: StatusCode::OK, kind, body }
}

fn unavailable(why: &str) -> Answer {
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

pub(super) fn text(status: StatusCode, line: &str) -> Answer {
    Answer::Whole { status, kind: ContentType::Text, body: format!("{line}\n").into() }
}

/// The time between two checks for a new snapshot. The main loop does not announce it, because it would have to wake this thread.
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

/// An event for each snapshot that is published.
pub(super) struct Live {
    source: Rc<AnswerSource>,
    interval: Interval,
    last: Option<Arc<Snapshot>>,
    /// The permit for one client that follows the status.
    _place: OwnedSemaphorePermit,
}

impl Live {
    pub(super) fn new(source: Rc<AnswerSource>, place: OwnedSemaphorePermit) -> Self {
        let mut interval = interval(LOOKS_EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { source, interval, last: None, _place: place }
    }

    /// The next event. It is rendered when the connection has room: a slow reader gets fewer events, not late ones.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            ready!(self.interval.poll_tick(context));
            let snapshot = self.source.look();
            if self.last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &snapshot)) {
                self.last = Some(Arc::clone(&snapshot));
                let status = self.source.status(snapshot, clock::now());
                return Poll::Ready([b"data: ", status.as_ref(), b"\n"].concat().into());
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
