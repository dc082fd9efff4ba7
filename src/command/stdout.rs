//! The end of a subcommand's output.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context as _, Result};

use crate::exit::ExitStatus;

/// Success, if `written` is no error.
///
/// # Errors
///
/// stdout can't be written (a full disk), as with coreutils. A reader that has closed the pipe is no error, because it needs no more
/// output.
pub fn written(written: io::Result<()>) -> Result<ExitStatus> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout"),
        Ok(()) | Err(_) => Ok(ExitStatus::Success),
    }
}
