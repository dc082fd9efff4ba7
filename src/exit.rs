//! The exit statuses with their meanings. The tables in the manual and docs/options.md are generated from [`TABLE`].

use std::error::Error;
use std::{fmt, io};

use anyhow::Result;
use neli_kafka::ClientError;
use neli_proto::supervisor::{Ending, Lost};

use crate::text::{one_line, reason};

/// The exit status of `neli-run`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExitStatus {
    /// This number: the answer of a subcommand, which its section of the manual explains, or one of those below.
    Answer(u8),
    /// How a candidate has ended. Also: wrong options or configuration, as when Kafka refuses.
    Ending(Ending),
}

impl ExitStatus {
    /// A subcommand succeeded.
    pub const SUCCESS: Self = Self::Answer(0);
    /// `assert`: the term is not led, or not for long enough.
    pub(crate) const NOT_LEADER: Self = Self::Answer(83);
    /// Nobody leads, a key is not done, or there is no such election.
    pub(crate) const VACANT: Self = Self::Answer(3);
    /// A subcommand can't tell what was asked: Kafka has not answered in time, or not about all.
    pub(crate) const UNKNOWN: Self = Self::Answer(4);
    /// This machine lacked something that it may have soon.
    pub const UNAVAILABLE: Self = Self::Answer(86);
    /// COMMAND exists but can't be run.
    pub const CANNOT_RUN: Self = Self::Answer(126);
    /// COMMAND was not found.
    pub const NOT_FOUND: Self = Self::Answer(127);

    /// The number that the parent process sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Ending(Ending::Ended) => 0,
            Self::Answer(status) | Self::Ending(Ending::Skipped { status, .. }) => status,
            Self::Ending(Ending::Job(status) | Ending::NotDone { job: Some(status), .. }) => status.code(),
            Self::Ending(Ending::WaitedEnough | Ending::NotDone { signal: None, job: None }) => 75,
            Self::Ending(Ending::Lost(Lost::Stopped)) => 80,
            Self::Ending(Ending::Lost(Lost::Killed)) => 81,
            Self::Ending(Ending::Lost(Lost::Fenced)) => 82,
            Self::Ending(Ending::RestartLimit) => 84,
            Self::Ending(Ending::Stuck) => 85,
            Self::Ending(Ending::Refused) => 125,
            Self::Ending(Ending::StoppedBy(signal) | Ending::NotDone { signal: Some(signal), job: None }) => {
                128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX))
            }
        }
    }
}

/// The statuses for the documentation: the number, and its meaning.
pub const TABLE: &[(&str, &str)] = &[
    (
        "the job's own",
        "The job ended by itself, or after a stop signal to neli-run; between two runs \
         that of the last. 128 + n if signal n killed the job; with --once or --window also if the job ends with 0 after signal \
         n to neli-run: it has not succeeded, unless --stop-signal none let it finish.",
    ),
    (
        "0",
        "Also: the election was ended (--once, --window: 75); a subcommand succeeded; --once or --window: the key, or the window or a \
         newer one, was done (--done-status changes this). If the key has failed and no retry is left: the recorded status.",
    ),
    ("1 to 4", "The answer of a subcommand; its section of the manual explains it."),
    (
        "75",
        "This candidate did not lead within --wait; --once or --window: the election was ended before the key, or the window, was known to be \
         done.",
    ),
    (
        "80",
        "The lead was lost, and the job stopped in time, or no job ran. 80, 81 and 82 occur only with --on-loss exit.",
    ),
    ("81", "The lead was lost, and the job was killed at the stop timeout."),
    (
        "82",
        "The lead was lost, and the job was killed for it: the lease ran out, the guard died, or another's claim took \
         effect.",
    ),
    ("83", "neli-run assert: the term is not led, or --min-left of its lease is not left."),
    ("84", "The job failed more often than --restart-limit allows. Another machine may try."),
    (
        "85",
        "A process of the job, or a guard that did not answer, was alive one lease after SIGKILL. Nothing was released.",
    ),
    (
        "86",
        "This machine had no thread, descriptor or memory to spare, or not --listen's address: another start may succeed.",
    ),
    (
        "125",
        "Wrong options or configuration, or Kafka refuses for good (login, rights, a missing topic with --no-create-topic). \
         One line on stderr says why.",
    ),
    ("126", "COMMAND can't be run. neli-run checks this before it joins the election, and at each start of the job."),
    ("127", "COMMAND was not found. neli-run checks this at the same times."),
    (
        "128 + n",
        "Signal n stopped neli-run while it stood by, or before the first run of the job; with --roles also while any role had no \
         job here: TERM 143, INT 130, QUIT 131, HUP 129.",
    ),
];

/// An error that ends the process with another status than 125: `downcast_ref` finds it below any context.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
struct WithStatus {
    status: ExitStatus,
    line: String,
}

/// The answer, also if it is [unknown](ExitStatus::UNKNOWN) because Kafka has not answered in time, for the reason that `no_answer` gets.
///
/// # Errors
///
/// Any other error.
pub(crate) fn or_no_answer<T>(answer: Result<T>, no_answer: impl FnOnce(String) -> T) -> Result<T> {
    answer.or_else(|error| match error.downcast_ref() {
        Some(WithStatus { status: ExitStatus::UNKNOWN, line }) => Ok(no_answer(line.clone())),
        _ => Err(error),
    })
}

/// An error with another exit status than 125.
pub(crate) fn with_status(status: ExitStatus, line: impl fmt::Display) -> anyhow::Error {
    WithStatus { status, line: line.to_string() }.into()
}

/// The exit status of an error: 125 (wrong options or configuration, or Kafka refuses), unless it has another one, or is a shortage.
pub fn status_of(error: &anyhow::Error) -> ExitStatus {
    match error.downcast_ref() {
        Some(WithStatus { status, .. }) => *status,
        None if error.chain().any(is_of_shortage) => ExitStatus::UNAVAILABLE,
        None => ExitStatus::Ending(Ending::Refused),
    }
}

fn is_of_shortage(link: &(dyn Error + 'static)) -> bool {
    link.downcast_ref().is_some_and(is_shortage) || matches!(link.downcast_ref(), Some(ClientError::Shortage(_)))
}

/// Whether there is no thread, descriptor or memory to spare for now, or an address is not this machine's yet, or still another process's.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let is_address = matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable);
    is_address || neli_kafka::is_shortage(error)
}

/// The one line that the user sees: what failed, and why, as `{:#}`, with the system's errors in words alone.
pub fn line_of(error: &anyhow::Error) -> String {
    let links = error.chain().map(|link| link.downcast_ref().map_or_else(|| link.to_string(), reason));
    one_line(&links.collect::<Vec<String>>().join(": "))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use nix::libc;

    use super::*;

    #[test]
    fn a_signal_s_status_is_a_shell_s() {
        assert_eq!(ExitStatus::Ending(Ending::StoppedBy(15)).code(), 143);
        assert_eq!(ExitStatus::Ending(Ending::StoppedBy(64)).code(), 192);
    }

    #[test]
    fn a_refusal_is_one_line_whatever_was_typed() {
        let refusal = anyhow!("--group a\nb\u{1b}[2J: must be something else");
        assert_eq!(line_of(&refusal), "--group a\\nb\\u{1b}[2J: must be something else");
    }

    #[test]
    fn an_error_s_line_says_what_failed_and_why_and_its_status_is_found_below() {
        let error = anyhow::Error::from(io::Error::from_raw_os_error(2)).context("--log-file /x").context("the log");
        assert_eq!(
            (line_of(&error), status_of(&error)),
            ("the log: --log-file /x: no such file or directory".into(), ExitStatus::Ending(Ending::Refused))
        );
        let error = anyhow::Error::from(io::Error::from_raw_os_error(libc::EAGAIN)).context("24 threads can't be made");
        assert_eq!(status_of(&error), ExitStatus::UNAVAILABLE);
        let error = anyhow::Error::from(ClientError::Shortage("no thread".to_owned()));
        assert_eq!(status_of(&error.context("the session")), ExitStatus::UNAVAILABLE);
        let error = with_status(ExitStatus::NOT_FOUND, "job: not found").context("COMMAND");
        assert_eq!((line_of(&error), status_of(&error)), ("COMMAND: job: not found".into(), ExitStatus::NOT_FOUND));
    }
}
