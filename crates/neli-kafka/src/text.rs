//! Errors as text.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use thiserror::Error;

use crate::names::is_invisible;

/// Why a system call failed, by the system's own text: `no such file or directory`.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        // The system's text does not name the limit.
        Some(Errno::EFBIG) => "file too large (ulimit -f)".to_owned(),
        Some(code) => code.desc().to_lowercase(),
        None => error.to_string(),
    }
}

/// Whether there is no thread, descriptor or memory to spare for now.
pub fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EAGAIN | Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM))
}

/// Why a client of Kafka could not be made: one line for people, and never a secret's value.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ClientError {
    /// librdkafka or the system refuses it.
    #[error("{0}")]
    Refused(String),
    /// There is a [shortage](is_shortage).
    #[error("{0}")]
    Shortage(String),
}

impl ClientError {
    /// What failed, for this reason of the system.
    pub(crate) fn of_system(what: &str, error: &io::Error) -> Self {
        let line = format!("{what}: {}", reason(error));
        if is_shortage(error) { Self::Shortage(line) } else { Self::Refused(line) }
    }
}

/// What a message tells the user to do, in the words of the program or the library that shows it.
#[derive(Debug)]
pub struct Words {
    /// Another name for the group.
    pub choose_another_group: &'static str,
    /// Whether a missing topic may be created.
    pub create_topic: &'static str,
    /// The broker may be an embedded one.
    pub own_broker: &'static str,
    /// The elector that needs no group.
    pub use_log_elector: &'static str,
    /// What is set in place of a property that the protocol sets itself: the brokers.
    pub brokers: &'static str,
    /// The elector; the order of candidates depends on the classic protocol.
    pub elector: &'static str,
    /// The group.
    pub group: &'static str,
    /// The lease, from which the value follows.
    pub lease: &'static str,
    /// Whether the topic is made.
    pub topic: &'static str,
    /// A trial in place of librdkafka's own tests; ends a line.
    pub for_a_trial: &'static str,
    /// The feature that the library in librdkafka's reason is built with, if it is one of the program's.
    pub not_built: fn(&str) -> Option<String>,
}

/// The words of a client about which nothing is known.
pub(crate) const NEUTRAL: Words = Words {
    choose_another_group: "choose another",
    create_topic: "let it be created",
    own_broker: "if it is an embedded one, say so",
    use_log_elector: "use the elector that needs no group",
    brokers: "name the brokers",
    elector: "the order of candidates depends on the classic protocol",
    group: "it is the election's name",
    lease: "it follows from the lease",
    topic: "the topic is made as it must be",
    for_a_trial: "",
    not_built: |_| None,
};

/// That a batch of the journal can't be decoded (R0), and what follows from that.
pub(crate) fn undecodable(topic: &str, offset: i64, error: &str) -> String {
    format!(
        "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): no later record is read, and this candidate does not lead \
         until the batch is deleted, by retention or by kafka-delete-records.sh up to the next offset (all candidates wait a minute then)"
    )
}

/// That there is no thread to read a journal, for this reason.
pub(crate) fn without_thread(reason: &str) -> String {
    format!(
        "a journal can't be read for lack of a thread (ulimit -u, pids.max): {reason}; it is tried again, and until then nothing is claimed in it"
    )
}

/// A duration as a person would give it, rounded down to whole milliseconds.
pub fn shown_duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

/// The text with every unseen character escaped, so that it is one line, does not move a terminal's cursor, and is read from
/// left to right.
pub fn one_line(text: &str) -> String {
    escaped(text, |character, line| line.extend(character.escape_default()))
}

/// The text with each unseen character replaced by what `escape` writes.
pub fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) {
            escape(character, &mut line);
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether the character controls a terminal, breaks a line, changes the direction of the text around it, or is invisible. Joiners, which shape
/// words and pictures, are none of these.
fn is_unseen(character: char) -> bool {
    character.is_control() || (is_invisible(character) && !matches!(character, '\u{200c}' | '\u{200d}'))
}
