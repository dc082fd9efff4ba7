//! Errors as text.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use thiserror::Error;

/// Why a system call failed, by the system's own text: `no such file or directory`.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().to_lowercase())
}

/// Why a client of Kafka could not be made, or did not take a record: one line for people, and never a secret's value. There is
/// nothing to be done about it but to show it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct ClientError(pub(crate) String);

/// That a batch of the journal can't be decoded (R0), and what follows from that.
#[must_use]
pub fn undecodable(topic: &str, offset: i64, error: &str) -> String {
    format!(
        "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): no later record is read, and this candidate does not lead \
         until the batch is deleted"
    )
}

/// A duration as a person would give it, rounded down to whole milliseconds.
#[must_use]
pub fn shown_duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}
