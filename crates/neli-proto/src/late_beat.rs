//! A heartbeat that was appended after its leader's lease was over, for example because a broker finds it in its socket when it runs again.
//! It restarts the silence for the candidates (R2), and extends no lease (R3): its leader was fenced, and no longer leads. And heartbeats that
//! are missed: the leader may be dead, and is shown as silent long before its lease is over. No rule depends on this module: its result is only
//! shown.

use core::time::Duration;

use crate::listener::silence;
use crate::time::millis;
use crate::timings::{LONGEST_DEFAULT_HEARTBEAT_INTERVAL, default_heartbeat_interval, longest_heartbeat_interval};

/// The time that a beat may need from the leader to the reader.
pub(crate) const DELIVERY: Duration = Duration::from_millis(200);

/// A leader that has missed this many heartbeats is shown as silent.
const MISSED: u32 = 3;

/// The longest interval to expect between the heartbeats of a leader with this lease. Its records do not contain the interval: it is at most the
/// longest default one, unless the last two heartbeats were further apart.
pub(crate) fn longest_interval(lease: Duration, last: Option<Duration>) -> Duration {
    last.unwrap_or_default().max(LONGEST_DEFAULT_HEARTBEAT_INTERVAL).min(longest_heartbeat_interval(lease))
}

/// A late heartbeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LateBeat {
    /// The time between it and the previous record, by the broker's timestamps.
    pub gap: Duration,
    /// Two leases after it was appended, in milliseconds since 1970.
    until_ms: u64,
}

impl LateBeat {
    /// The late heartbeat, if a heartbeat that was appended at `written_ms`, after this `gap` since its leader's previous record, is late under the
    /// `lease` in that record. Without timestamps that is unknown.
    pub fn of(gap: Option<Duration>, lease: Duration, written_ms: Option<u64>) -> Option<Self> {
        let (gap, written_ms) = gap.zip(written_ms)?;
        (gap >= silence(lease)).then(|| Self { gap, until_ms: written_ms.saturating_add(millis(lease * 2)) })
    }

    /// Whether a heartbeat that was appended at `written_ms` shows that the leader still leads, and that the broker's clock was set
    /// forward. A leader that was fenced sends no other, and those that waited for the broker are appended before this.
    pub(crate) fn is_refuted_by(self, written_ms: Option<u64>) -> bool {
        written_ms.is_some_and(|written_ms| written_ms > self.until_ms)
    }
}

/// For how long a leader with this lease writes nothing until it is shown as silent: three of its heartbeats. Its records do not contain the
/// interval: it is the last one that was `seen` in its term, and at least the default one.
pub(crate) fn overdue_after(lease: Duration, seen: Option<Duration>) -> Duration {
    let interval = seen.unwrap_or_default().max(default_heartbeat_interval(lease));
    let interval = interval.min(longest_heartbeat_interval(lease));
    (interval * MISSED + DELIVERY).min(silence(lease))
}
