//! To come.

use crate::config::Watch;
use crate::exit::{ExitStatus, Refusal};

/// To come.
///
/// # Errors
///
/// None yet.
pub fn main(_: &Watch) -> Result<ExitStatus, Refusal> {
    Ok(ExitStatus::Success)
}
