//! To come.

use crate::exit::{ExitStatus, Refusal};

/// To come.
///
/// # Errors
///
/// None yet.
pub fn main() -> Result<ExitStatus, Refusal> {
    Ok(ExitStatus::Success)
}
