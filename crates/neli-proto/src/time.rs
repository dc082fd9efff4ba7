//! A point in time. The protocol's objects can't read a clock; their caller passes the time.

use alloc::boxed::Box;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on `CLOCK_BOOTTIME`, in nanoseconds since the machine's boot (R8).
///
/// The clocks of two machines can't be compared, and the protocol never does.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The machine's boot.
    pub const ZERO: Self = Self(0);

    /// The point `nanos` nanoseconds after the boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point; zero if this point is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The last multiple of `step` that is not after this point; this point itself if `step` is zero.
    pub(crate) fn floor_to(self, step: Duration) -> Self {
        Self(self.0 - self.0.checked_rem(nanos(step)).unwrap_or_default())
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

/// Whole milliseconds, rounded down.
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds, rounded up, so that a duration above zero stays above zero.
pub fn millis_rounded_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

// ---- spans of wall-clock time, for each of which a job succeeds once -----------------------------------------------

/// A span of wall-clock time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Span {
    /// Its first moment.
    #[serde(rename = "window_from_ms")]
    pub from_ms: u64,
    /// The first moment of the next one.
    #[serde(rename = "window_until_ms")]
    pub until_ms: u64,
}

/// A window and its key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Window {
    /// Its start in RFC 3339, UTC: the key of its run.
    pub key: Box<str>,
    /// Its time span.
    pub span: Span,
}

impl Span {
    /// Whether a machine whose wall clock shows this window accepts that `other` has begun on another machine. Clocks may differ by one
    /// window at most.
    pub(crate) fn believes(self, other: Self) -> bool {
        other.from_ms <= self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_saturate_at_both_ends() {
        let late = Time::from_nanos(u64::MAX - 1);
        assert_eq!(late + Duration::from_secs(1), Time::from_nanos(u64::MAX));
        assert_eq!(Time::from_nanos(5) - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(late), Duration::ZERO);
    }

    #[test]
    fn a_multiple_is_rounded_to_itself() {
        let floor = |nanos, step| Time::from_nanos(nanos).floor_to(Duration::from_nanos(step)).as_nanos();
        assert_eq!([floor(29, 10), floor(30, 10), floor(9, 10), floor(9, 0)], [20, 30, 0, 9]);
    }
}
