//! What the subcommands that look at an election take.

use std::time::Duration;

use super::{LONGEST, duration};
use crate::cli::parsed_args::ParsedArgs;
use crate::config::Assert;
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

/// What `assert` takes: `--epoch` from outside, or the variables that a job has.
pub(super) fn assert(args: &ParsedArgs) -> Result<Assert, StartupError> {
    let of_job = |name: &str| args.environment().raw(name)?.to_str()?.parse().ok();
    let (term, descriptor) = match args.value("epoch") {
        Some(value) => match value.text()?.parse() {
            Ok(term) if term >= 0 => (term, None),
            _ => return Err(value.refuse("must be a term (0 or more), as in NELI_EPOCH")),
        },
        None => match of_job("NELI_EPOCH") {
            Some(term) if term >= 0 => (term, of_job("NELI_LEASE_FD").and_then(|number| i32::try_from(number).ok())),
            _ => return Err(StartupError::new("--epoch is required outside a job: NELI_EPOCH is not set")),
        },
    };
    let min_left = args.value("min-left").map_or(Ok(Duration::ZERO), |value| duration(&value))?;
    Ok(Assert { term, descriptor, min_left, json: args.flag("json")?.is_some() })
}
