//! To come.

use crate::cli::given::Given;
use crate::exit::{ExitStatus, Refusal};

/// To come.
///
/// # Errors
///
/// None yet.
pub fn main(_: &Given) -> Result<ExitStatus, Refusal> {
    Ok(ExitStatus::Success)
}
