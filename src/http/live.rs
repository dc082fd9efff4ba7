//! Bodies of answers: one piece, or the status as it changes (server-sent events).

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use neli_kafka::clock;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::answer::AnswerSource;
use super::snapshot::Snapshot;

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
