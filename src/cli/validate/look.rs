//! What the subcommands that look at an election take.

use std::time::Duration;

use super::LONGEST;
use crate::cli::parsed_args::ParsedArgs;
use crate::exit::StartupError;

/// `--timeout`.
pub(super) fn timeout(args: &ParsedArgs, default: Duration) -> Result<Duration, StartupError> {
    let Some(value) = args.value("timeout") else { return Ok(default) };
    let timeout = value.duration()?;
    if timeout.is_zero() || timeout > LONGEST {
        return Err(value.refuse("must be more than 0, and at most 365d"));
    }
    Ok(timeout)
}
