//! What a subcommand prints.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context as _, Result};

use crate::exit::ExitStatus;

/// The reader of stdout has closed the pipe, because it needs no more output.
#[derive(Debug, thiserror::Error)]
#[error("stdout is closed")]
struct Closed;

/// Success, if `written` is no error.
///
/// # Errors
///
/// stdout can't be written (a full disk), as with coreutils. A reader that has closed the pipe is no error.
pub fn written(written: io::Result<()>) -> Result<ExitStatus> {
    match checked(written.and_then(|()| io::stdout().flush())) {
        Ok(()) => Ok(ExitStatus::Success),
        Err(error) => unless_closed(error),
    }
}

/// Prints this text.
///
/// # Errors
///
/// As for [`written`].
pub(super) fn print(text: &str) -> Result<ExitStatus> {
    written(io::stdout().write_all(text.as_bytes()))
}

/// The same error for the caller of a function that prints again and again: [`unless_closed`] knows a closed pipe.
///
/// # Errors
///
/// `written` is one.
pub(super) fn checked(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        written => written.context("stdout"),
    }
}

/// Success, if the reader of stdout has closed the pipe.
///
/// # Errors
///
/// Any other error.
pub(super) fn unless_closed(error: anyhow::Error) -> Result<ExitStatus> {
    if error.is::<Closed>() { Ok(ExitStatus::Success) } else { Err(error) }
}
