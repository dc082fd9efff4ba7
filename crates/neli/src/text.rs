//! Errors in words.

use std::io;

use nix::errno::Errno;

/// Why a system call failed, in the words that everybody knows: `no such file or directory`.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().to_lowercase())
}
