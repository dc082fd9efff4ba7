//! The answer for each path of a candidate. A rendered body is cached for a moment, so that repeated requests cost little.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use neli_kafka::clock;
use neli_proto::leadership::ReadAt;
use neli_proto::time::Time;

use super::snapshot::{Board, RoleSnapshot, Snapshot};
use super::{Events, HTML, JSON, Kept, METRICS, Site, metrics, ok, status, text, unavailable};
use crate::process::locked;
use crate::text::spoken;

/// For this time a rendered snapshot is used again.
const FRESH_FOR: Duration = Duration::from_millis(100);

const PAGE: &str = include_str!("page.html");

/// The site of a candidate, which answers from the board.
pub(crate) struct AnswerSource {
    board: Arc<Board>,
    metrics: Rendered,
    status: Rendered,
}

/// A snapshot as it was rendered last.
type Rendered = Kept<(Arc<Snapshot>, Bytes)>;

impl Site for AnswerSource {
    fn answer(&self, path: &str) -> Response<Bytes> {
        let (now, snapshot) = (clock::now(), self.look());
        match path {
            "/" => ok(HTML, Bytes::from_static(PAGE.as_bytes())),
            "/healthz" => health(&snapshot, now),
            "/leader" => leader(&snapshot, &snapshot.roles, now),
            "/metrics" => ok(METRICS, kept(&self.metrics, now, &snapshot, |snapshot| metrics::render(snapshot, now))),
            "/readyz" => readiness(&snapshot, now),
            "/status" => ok(JSON, self.status(&snapshot, now)),
            _ => match path.strip_prefix("/leader/") {
                Some(label) => leader(&snapshot, named(&snapshot.roles, label), now),
                None => text(
                    StatusCode::NOT_FOUND,
                    "no such path; the paths are / /events /healthz /leader /leader/ROLE /metrics /readyz /status",
                ),
            },
        }
    }

    fn events(self: Rc<Self>) -> Events {
        let mut last: Option<Arc<Snapshot>> = None;
        Box::new(move || {
            let snapshot = self.look();
            if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &snapshot)) {
                return None;
            }
            let status = self.status(&snapshot, clock::now());
            last = Some(snapshot);
            Some([b"data: ", status.as_ref(), b"\n"].concat().into())
        })
    }
}

impl AnswerSource {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        Self { board, metrics: Kept::new(), status: Kept::new() }
    }

    pub(super) fn look(&self) -> Arc<Snapshot> {
        Arc::clone(&locked(&self.board))
    }

    /// The status as JSON.
    pub(super) fn status(&self, snapshot: &Arc<Snapshot>, now: Time) -> Bytes {
        let moment = ReadAt { now, wall_ms: clock::wall_ms() };
        kept(&self.status, now, snapshot, |snapshot| status::render(snapshot, moment))
    }
}

/// A snapshot as it was rendered last, or is now.
fn kept(last: &Rendered, now: Time, snapshot: &Arc<Snapshot>, render: impl FnOnce(&Snapshot) -> String) -> Bytes {
    let is_of_it = |(of, _): &(Arc<Snapshot>, Bytes)| Arc::ptr_eq(of, snapshot);
    let body = || (Arc::clone(snapshot), render(snapshot).into());
    last.get(now, FRESH_FOR, is_of_it, body).1
}

/// Whether the main loop runs.
fn health(snapshot: &Snapshot, now: Time) -> Response<Bytes> {
    match snapshot.hangs_for(now) {
        None => text(StatusCode::OK, "ok"),
        Some(age) => unavailable(&format!("the main loop has not run for {}", spoken(age))),
    }
}

/// Whether the main loop runs, and this process could lead: a broker answers, and the journal was read.
fn readiness(snapshot: &Snapshot, now: Time) -> Response<Bytes> {
    match (snapshot.kafka.outage.trouble(), snapshot.hangs_for(now)) {
        (_, Some(_)) => health(snapshot, now),
        (Some((since, why)), None) => {
            unavailable(&format!("no broker reached for {}: {why}", spoken(now.since(since))))
        }
        (None, None) if !snapshot.is_up() => unavailable("the journal is not read yet"),
        (None, None) => text(StatusCode::OK, "ok"),
    }
}

/// The role with this name or number. If a role's name looks like a number, the name takes precedence.
fn named<'a>(roles: &'a [Arc<RoleSnapshot>], label: &str) -> Option<&'a Arc<RoleSnapshot>> {
    let by_name = roles.iter().find(|role| role.label == label);
    by_name.or_else(|| roles.get(label.parse::<usize>().ok()?))
}

/// Whether this process leads one of these roles.
fn leader<'a>(
    snapshot: &Snapshot,
    roles: impl IntoIterator<Item = &'a Arc<RoleSnapshot>>,
    now: Time,
) -> Response<Bytes> {
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
