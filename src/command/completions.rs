//! `completions`: what a shell is to know of the command line, drawn from its definition.

use std::io::Write;

use clap_complete::Shell;

use crate::cli;
use crate::cli::given::{Given, quoted};
use crate::exit::{ExitStatus, Refusal};

/// Prints the completions of the shell that was asked for.
///
/// # Errors
///
/// When it is none of bash, fish and zsh.
pub fn main(given: &Given) -> Result<ExitStatus, Refusal> {
    let word = given.words("SHELL").pop().unwrap_or_default();
    let shell = match word.to_str() {
        Some("bash") => Shell::Bash,
        Some("fish") => Shell::Fish,
        Some("zsh") => Shell::Zsh,
        _ => return Err(Refusal::new(format!("{}: must be bash, fish or zsh", quoted(&word)))),
    };
    // Whoever reads no further has read enough.
    let _ = std::io::stdout().write_all(&script(shell));
    Ok(ExitStatus::Success)
}

/// A shell's completions.
#[must_use]
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::definition(), "neli-run", &mut script);
    script
}
