//! The end of what a subcommand prints to be read.

use std::io::{self, ErrorKind, Write};

use crate::exit::{ExitStatus, StartupError};
use crate::text::reason;

/// Success, once all that was `written` has left this process.
///
/// # Errors
///
/// stdout took it not (a full disk), as with coreutils. A reader that has gone is none: whoever reads no further has read
/// enough.
pub fn written(written: io::Result<()>) -> Result<ExitStatus, StartupError> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(StartupError::new(format!("stdout: {}", reason(&error))))
        }
        Ok(()) | Err(_) => Ok(ExitStatus::Success),
    }
}
