//! When something was said, and how long ago that is.

use core::time::Duration;

use crate::time::Time;

/// When something is read, or looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadAt {
    /// By the clock that the rules go by.
    pub now: Time,
    /// By this machine's wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
}

/// When a record was read, and when it was appended by the broker's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// When it was read.
    pub read: Time,
    /// When it was appended, in milliseconds since 1970; none where the record does not say.
    pub written_ms: Option<u64>,
    /// It was read as it was written: its age is that of its reading.
    pub is_live: bool,
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What an age is told by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgeBy {
    /// When the record was read.
    Receipt,
    /// The broker's timestamp.
    Timestamp,
}

impl Receipt {
    /// How old it is; `broker_now` is what the broker's clock says.
    pub(super) fn age(self, now: Time, broker_now: u64) -> Duration {
        match (self.is_live, self.written_ms) {
            (false, Some(written_ms)) => Duration::from_millis(broker_now.saturating_sub(written_ms)),
            (true, _) | (false, None) => now.since(self.read),
        }
    }

    /// What its age is told by.
    #[must_use]
    pub const fn age_by(self) -> AgeBy {
        if self.is_live || self.written_ms.is_none() { AgeBy::Receipt } else { AgeBy::Timestamp }
    }

    /// How long before the other record it was appended, by the broker's clock.
    pub(super) fn written_before(self, later: Self) -> Option<Duration> {
        let span = later.written_ms?.checked_sub(self.written_ms?)?;
        Some(Duration::from_millis(span))
    }

    /// When it was appended, in milliseconds since 1970: by the broker's clock, or, where the record does not say, by this
    /// machine's.
    #[must_use]
    pub fn at_ms(self, at: ReadAt) -> u64 {
        self.written_ms.unwrap_or_else(|| at.wall_ms.saturating_sub(millis(at.now.since(self.read))))
    }
}
