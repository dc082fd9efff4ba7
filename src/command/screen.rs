//! Shows a page repeatedly, in place on a terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use anyhow::Result;

use crate::command::stdout::checked;
use crate::process::system;

/// A terminal on which each page replaces the previous one.
pub(super) struct Screen {
    is_first: bool,
}

impl Screen {
    pub(super) const fn of_stdout() -> Self {
        Self { is_first: true }
    }

    /// Shows a page.
    ///
    /// # Errors
    /// stdout can't be written.
    pub(super) fn show(&mut self, page: &str) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let mut stdout = io::stdout();
        checked(stdout.write_all(frame(page, rows(), is_first).as_bytes()).and_then(|()| stdout.flush()))
    }
}

/// Whether stdout is a terminal on which a page can replace the previous one.
pub(super) fn is_drawable() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// The terminal's rows; `None` without a terminal.
pub(super) fn rows() -> Option<usize> {
    system::rows(io::stdout().as_fd())
}

/// The bytes that replace the previous page: they begin at the first line, clear each line to its end, and clear all lines below. Lines
/// that do not fit are left out.
fn frame(page: &str, rows: Option<usize>, is_first: bool) -> String {
    // The last row has no line end, which would scroll the page.
    let shown = page.lines().take(rows.map_or(usize::MAX, |rows| rows.saturating_sub(1).max(1)));
    let begin = if is_first { "\u{1b}[2J\u{1b}[H" } else { "\u{1b}[H" };
    let lines: String = shown.flat_map(|line| [line, "\u{1b}[K\n"]).collect();
    format!("{begin}{lines}\u{1b}[J")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_replaces_the_previous_one_and_fits() {
        assert_eq!(frame("a\nb\n", Some(24), true), "\u{1b}[2J\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
        assert_eq!(frame("a\nb\nc\n", Some(3), false), "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
    }
}
