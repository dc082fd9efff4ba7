//! What a subcommand prints: a first line with the answer, and rows of a label and a text, or a table. It is coloured only on a terminal, and
//! wrapped to the terminal's width. On a terminal one page may replace the other.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::libc::winsize;

use crate::exit::ExitStatus;
use crate::process::system;
use crate::text::{one_line, wrapped};

/// The column where the texts of the rows begin.
const INDENT: usize = 11;
/// A text beside its label, or in the last column of a table, has at least so many columns; otherwise it stands below its label, indented by two,
/// or the table has no columns.
const LEAST_WIDTH: usize = 20;

/// The longest bar.
const LONGEST_BAR: usize = 30;

/// The meaning of a line, shown by its colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tone {
    /// The state is good.
    Good,
    /// The state is unknown.
    Unknown,
    /// The state needs attention.
    Bad,
}

/// The style of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Style {
    /// Whether lines are coloured.
    pub(super) is_coloured: bool,
    /// The terminal's columns; `None` without a terminal.
    pub(super) columns: Option<usize>,
}

/// A page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Page {
    head: (Tone, String),
    rows: Vec<(&'static str, String)>,
}

impl Style {
    /// The style for stdout: coloured on a terminal, unless `NO_COLOR` is set or the terminal has no colours.
    pub(super) fn of_stdout() -> Self {
        let is_colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_coloured: is_drawable() && !is_colourless, columns: of_window(|size| size.ws_col) }
    }

    /// A bar that is filled to `part` of `whole`, and a space after it; empty if there is no room.
    pub(super) fn bar(self, part: Duration, whole: Duration) -> String {
        let width = self.width();
        let length = width.saturating_sub(indent_within(INDENT, width)).min(LONGEST_BAR);
        let full = (part.as_millis() * length as u128).div_ceil(whole.as_millis().max(1));
        let full = usize::try_from(full).unwrap_or(length).min(length);
        format!("{}{} ", "#".repeat(full), "-".repeat(length - full))
    }

    /// The most columns of a line.
    pub(super) fn width(self) -> usize {
        self.columns.unwrap_or(usize::MAX)
    }

    /// The text in this tone's colour.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let colour = match tone {
            Tone::Good => 32,
            Tone::Unknown => 33,
            Tone::Bad => 31,
        };
        if self.is_coloured { format!("\u{1b}[1;{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Page {
    /// A page with this first line.
    pub(super) fn new(tone: Tone, head: &str) -> Self {
        Self { head: (tone, one_line(head)), rows: Vec::new() }
    }

    /// Adds a row; one without a label belongs to the row above it.
    pub(super) fn row(&mut self, label: &'static str, text: &str) {
        self.rows.push((label, one_line(text)));
    }

    /// All lines of the page.
    pub(super) fn render(&self, style: Style) -> String {
        let (tone, head) = &self.head;
        let head = wrapped(head, style.width()).into_iter().map(|line| style.paint(*tone, &line) + "\n");
        let rows = self.rows.iter().map(|(label, text)| hanging(label, INDENT, text, style.width()));
        head.chain(rows).collect()
    }
}

/// Rows in columns as wide as their texts, below a row of headings; the last column is wrapped. On a terminal too
/// narrow for that: one line per column with its name before it, and an empty line between two rows.
pub(super) fn columns<const N: usize>(head: [&str; N], rows: &[[String; N]], style: Style) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let texts = rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count());
        texts.chain(head.get(column).map(|head| head.len())).max().unwrap_or_default()
    });
    let before_last: usize = widths.iter().take(N - 1).map(|width| width + 2).sum();
    let terminal = style.width();
    if indent_within(before_last, terminal) != before_last {
        let paragraphs = rows.iter().map(|row| {
            let lines = head.iter().zip(row).map(|(name, cell)| format!("{}: {cell}", name.to_lowercase()));
            lines.flat_map(|line| wrapped(&line, terminal)).map(|line| line + "\n").collect::<String>()
        });
        return paragraphs.collect::<Vec<_>>().join("\n");
    }
    let head = head.map(str::to_owned);
    let lines = std::iter::once(&head).chain(rows).map(|row| {
        let cells = row.iter().zip(widths).take(N - 1).map(|(text, width)| format!("{text:width$}  "));
        let last = row.last().map(String::as_str).unwrap_or_default();
        hanging(&cells.collect::<String>(), before_last, last, terminal)
    });
    lines.collect()
}

/// Where a text begins that is to begin in this column, on a terminal of such a width.
const fn indent_within(indent: usize, width: usize) -> usize {
    if indent + LEAST_WIDTH > width { 2 } else { indent }
}

/// The text in lines of at most this many columns, indented, behind `begin` in the first one, or below it.
pub(super) fn hanging(begin: &str, indent: usize, text: &str, width: usize) -> String {
    let (mut lines, mut begin, within) = (String::new(), begin, indent_within(indent, width));
    if within != indent && !begin.is_empty() {
        lines += begin.trim_end();
        lines.push('\n');
        begin = "";
    }
    for part in wrapped(text, width.saturating_sub(within)) {
        lines += format!("{begin:within$}{part}").trim_end();
        lines.push('\n');
        begin = "";
    }
    lines
}

/// The text, or as much of it as fits this width.
pub(super) fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    if width < 2 { kept } else { kept + ".." }
}

/// Shows a page, which replaces the previous one on the terminal.
///
/// # Errors
/// stdout can't be written.
pub(super) fn show(page: &str) -> Result<()> {
    write(&frame(page, rows()))
}

/// Writes this text at once, for a function that goes on: [`unless_closed`] knows a closed pipe.
///
/// # Errors
/// stdout can't be written.
pub(super) fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout();
    checked(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Whether stdout is a terminal that has colours, and on which a page can replace the previous one.
pub(super) fn is_drawable() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// The terminal's rows; `None` without a terminal.
pub(super) fn rows() -> Option<usize> {
    of_window(|size| size.ws_row)
}

fn of_window(number: fn(winsize) -> u16) -> Option<usize> {
    system::window_size(io::stdout().as_fd()).map(number).filter(|number| *number > 0).map(usize::from)
}

/// The bytes that replace what the terminal shows: they begin at the first line, clear each line to its end, and clear all lines below. Lines
/// that do not fit are left out.
fn frame(page: &str, rows: Option<usize>) -> String {
    // The last row has no line end, which would scroll the page.
    let shown = page.lines().take(rows.map_or(usize::MAX, |rows| rows.saturating_sub(1).max(1)));
    let lines: String = shown.flat_map(|line| [line, "\u{1b}[K\n"]).collect();
    format!("\u{1b}[H{lines}\u{1b}[J")
}

/// Success, if `written` is no error.
///
/// # Errors
///
/// stdout can't be written (a full disk), as with coreutils. A reader that has closed the pipe is no error.
pub fn written(written: io::Result<()>) -> Result<ExitStatus> {
    checked(written.and_then(|()| io::stdout().flush())).map(|()| ExitStatus::SUCCESS).or_else(unless_closed)
}

/// Prints a line on stderr. If stderr is closed, it is lost.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "neli-run: {}", one_line(line));
}

/// Prints this text.
///
/// # Errors
///
/// As for [`written`].
pub(super) fn print(text: &str) -> Result<ExitStatus> {
    written(io::stdout().write_all(text.as_bytes()))
}

/// The same error for the caller of a function that prints again and again: [`unless_closed`] knows a closed pipe.
///
/// # Errors
///
/// `written` is one.
pub(super) fn checked(written: io::Result<()>) -> Result<()> {
    written.context("stdout")
}

/// Success, if the reader of stdout has closed the pipe.
///
/// # Errors
///
/// Any other error.
pub(super) fn unless_closed(error: anyhow::Error) -> Result<ExitStatus> {
    // It needs no more output.
    let is_closed = error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == ErrorKind::BrokenPipe);
    if is_closed { Ok(ExitStatus::SUCCESS) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut page = Page::new(Tone::Bad, "billing: no leader: db2 has been silent for 108s (lease 15s)");
        page.row("claimable", "since 05:40:50Z (93s)");
        page.row("standbys", "none");
        page
    }

    #[test]
    fn a_page_is_aligned() {
        let plain = Style { is_coloured: false, columns: None };
        let expected = "billing: no leader: db2 has been silent for 108s (lease 15s)\n\
                        claimable  since 05:40:50Z (93s)\n\
                        standbys   none\n";
        assert_eq!(page().render(plain), expected);
        let coloured = Style { is_coloured: true, columns: Some(80) }.paint(Tone::Good, "x");
        assert_eq!(coloured, "\u{1b}[1;32mx\u{1b}[0m");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [20, 39, 40, 80] {
            let text = page().render(Style { is_coloured: false, columns: Some(columns) });
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
        }
        let narrow = page().render(Style { is_coloured: false, columns: Some(20) });
        assert_eq!(
            narrow,
            "billing: no leader:\ndb2 has been silent\nfor 108s (lease 15s)\nclaimable\n  since 05:40:50Z\n  (93s)\nstandbys\n  none\n"
        );
    }

    #[test]
    fn a_bar_shows_the_part_that_is_left() {
        let bar = |columns, left| {
            Style { is_coloured: false, columns }.bar(Duration::from_secs(left), Duration::from_secs(20))
        };
        assert_eq!(bar(Some(20), 20), "################## ");
        assert_eq!(bar(Some(21), 10), "##########--------- ");
        assert_eq!(bar(Some(80), 0), format!("{} ", "-".repeat(30)));
        assert_eq!(bar(None, 30), format!("{} ", "#".repeat(30)));
    }

    #[test]
    fn columns_are_aligned_and_the_last_is_wrapped() {
        let rows = [["0".to_owned(), "first".to_owned(), "ended by a signal to neli-run".to_owned()]];
        let of = |columns| super::columns(["TERM", "BY", "END"], &rows, Style { is_coloured: false, columns });
        assert_eq!(of(None), "TERM  BY     END\n0     first  ended by a signal to neli-run\n");
        assert_eq!(of(Some(33)), "TERM  BY     END\n0     first  ended by a signal to\n             neli-run\n");
        assert_eq!(of(Some(20)), "term: 0\nby: first\nend: ended by a\nsignal to neli-run\n");
    }

    #[test]
    fn a_long_word_is_broken() {
        assert_eq!(wrapped("ab cdefgh i", 3), ["ab", "cde", "fgh", "i"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    #[test]
    fn a_page_replaces_the_previous_one_and_fits() {
        assert_eq!(frame("a\nb\n", Some(24)), "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
        assert_eq!(frame("a\nb\nc\n", Some(3)), "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
    }
}
