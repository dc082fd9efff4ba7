//! Windows: spans of wall-clock time, for each of which the job succeeds once. The caller computes the window of a wall clock, because this
//! module has no calendar.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

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
    #[must_use]
    pub(crate) fn believes(self, other: Self) -> bool {
        other.from_ms <= self.until_ms
    }
}
