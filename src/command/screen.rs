//! A page that is shown again and again: in place on a terminal, one below the other elsewhere.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::process::system;

/// Where the pages go.
pub(super) struct Screen {
    /// Each page stands where the one before did.
    is_in_place: bool,
    is_first: bool,
}

impl Screen {
    /// On stdout, where one page alone is no more than text.
    pub(super) fn of_stdout(is_repeated: bool) -> Self {
        Self { is_in_place: is_repeated && is_drawable(), is_first: true }
    }

    /// Shows a page.
    ///
    /// # Errors
    ///
    /// stdout takes it not.
    pub(super) fn show(&mut self, page: &str) -> io::Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let mut stdout = io::stdout();
        let text = if self.is_in_place {
            frame(page, rows(), is_first)
        } else if is_first {
            page.to_owned()
        } else {
            format!("\n{page}")
        };
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

/// Whether stdout is a terminal on which a page can be drawn again in its place.
pub(super) fn is_drawable() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// The terminal's rows; none where stdout is no terminal.
pub(super) fn rows() -> Option<usize> {
    system::rows(io::stdout().as_fd())
}

/// What draws a page over the one before: from the first line on, each line to its end, and nothing is left below. As much as fits.
fn frame(page: &str, rows: Option<usize>, is_first: bool) -> String {
    // In the last row nothing ends with a new line, which would move all others.
    let shown = page.lines().take(rows.map_or(usize::MAX, |rows| rows.saturating_sub(1).max(1)));
    let begin = if is_first { "\u{1b}[2J\u{1b}[H" } else { "\u{1b}[H" };
    let lines: String = shown.flat_map(|line| [line, "\u{1b}[K\n"]).collect();
    format!("{begin}{lines}\u{1b}[J")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_drawn_over_the_one_before_and_fits() {
        assert_eq!(frame("a\nb\n", Some(24), true), "\u{1b}[2J\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
        assert_eq!(frame("a\nb\nc\n", Some(3), false), "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
    }
}
