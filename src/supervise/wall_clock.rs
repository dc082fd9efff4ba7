//! The window of the wall clock. The node needs it before it judges the recorded facts, and with a schedule while it leads.
//!
//! No kernel timer on the wall clock is used. The clock is read once a second, which costs less than the heartbeat that a leader sends as
//! often, and notices every change of the clock.

use std::time::Duration;

use neli_proto::time::{Span, Time, Window};

use crate::calendar::Calendar;
use crate::config::{Occasion, Once};

/// The longest delay until a changed clock is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The window of the wall clock, and when it is read.
#[derive(Debug)]
pub(super) struct WallClock {
    calendar: Calendar,
    /// Whether it is read while the node leads, as with a schedule.
    is_followed: bool,
    /// The window that was last passed to the node.
    window_shown: Option<Window>,
    /// When to read the clock again.
    look_at: Time,
    /// The first window that it has shown.
    first_shown: Option<Span>,
}

impl WallClock {
    /// The wall clock with the calendar of these windows; `None` without windows.
    pub(super) fn of(once: &Once) -> Option<Self> {
        let is_followed = matches!(once.occasion, Occasion::Schedule(..));
        once.calendar().map(|calendar| Self::new(calendar.clone(), is_followed))
    }

    const fn new(calendar: Calendar, is_followed: bool) -> Self {
        Self { calendar, is_followed, window_shown: None, look_at: Time::ZERO, first_shown: None }
    }

    /// When to read the clock again, while the node leads.
    pub(super) fn look_at(&self) -> Option<Time> {
        self.is_followed.then_some(self.look_at)
    }

    /// When the next window begins, in milliseconds since 1970.
    pub(super) fn next_window_ms(&self) -> Option<u64> {
        Some(self.window_shown.as_ref()?.span.until_ms)
    }

    /// When the second window without a success is over, after the one that has succeeded last, or else after the first one that was shown.
    pub(super) fn success_due_ms(&self, success: Option<Span>) -> Option<u64> {
        self.calendar.next_starts(success.or(self.first_shown)?.until_ms).nth(1)
    }

    /// The present window, if the node must get it: if it has changed, or if `anyway`.
    pub(super) fn look(&mut self, now: Time, wall_ms: u64, anyway: bool) -> Option<Window> {
        let is_same =
            |window_shown: &Window| window_shown.span.from_ms <= wall_ms && wall_ms < window_shown.span.until_ms;
        let is_new = !self.window_shown.as_ref().is_some_and(is_same);
        let window = if is_new {
            self.window_shown.insert(self.calendar.window(wall_ms))
        } else {
            self.window_shown.as_ref()?
        };
        self.first_shown.get_or_insert(window.span);
        let left = Duration::from_millis(window.span.until_ms.saturating_sub(wall_ms));
        self.look_at = now + left.min(LOOK_EVERY);
        (is_new || anyway).then(|| window.clone())
    }
}
