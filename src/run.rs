//! To come.

use crate::config::Config;
use crate::exit::ExitStatus;

/// To come.
#[must_use]
pub fn run(config: Config) -> ExitStatus {
    drop(config);
    ExitStatus::Success
}
