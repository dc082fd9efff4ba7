//! When a record was read and written, and its age.

use core::time::Duration;

use crate::time::{Time, millis};

/// A time at which a record was read or is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadAt {
    /// The time by the monotonic clock, which the rules use.
    pub now: Time,
    /// The time by this machine's wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
}

/// When a record was read, and when it was appended by the broker's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// When it was read.
    pub read: Time,
    /// When it was appended, in milliseconds since 1970; `None` if the record has no timestamp.
    pub written_ms: Option<u64>,
    /// Whether it was read live, as it was written. Then its age is the time since the reading.
    pub is_live: bool,
}

/// The source of an age.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgeBy {
    /// The time of the reading.
    Receipt,
    /// The broker's timestamp.
    Timestamp,
}

impl Receipt {
    /// The record's age; `broker_now` is the broker's clock now.
    pub(crate) fn age(self, now: Time, broker_now: u64) -> Duration {
        match (self.is_live, self.written_ms) {
            (false, Some(written_ms)) => Duration::from_millis(broker_now.saturating_sub(written_ms)),
            (true, _) | (false, None) => now.since(self.read),
        }
    }

    /// The source of its age.
    #[must_use]
    pub const fn age_by(self) -> AgeBy {
        if self.is_live || self.written_ms.is_none() { AgeBy::Receipt } else { AgeBy::Timestamp }
    }

    /// How long before a later record it was appended, by the broker's clock.
    pub(crate) fn written_before(self, later: Self) -> Option<Duration> {
        let span = later.written_ms?.checked_sub(self.written_ms?)?;
        Some(Duration::from_millis(span))
    }

    /// When it was appended, in milliseconds since 1970: by the broker's clock, or by this machine's if the record
    /// has no timestamp.
    #[must_use]
    pub fn at_ms(self, at: ReadAt) -> u64 {
        self.written_ms.unwrap_or_else(|| at.wall_ms.saturating_sub(millis(at.now.since(self.read))))
    }
}
