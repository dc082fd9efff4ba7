//! Text that is shown to users: one line without control characters.

use std::ffi::OsStr;

pub use neli::program::{reason, shown_duration};
use nix::libc;
use nix::sys::signal::Signal;

/// The text with every control character escaped, so that it is one line, does not move a terminal's cursor, and is read from left to
/// right.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_layout(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether the character breaks a line, or changes the direction of the text around it. Those inside words (joiners) are none of these.
const fn is_layout(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The value. It is quoted if its beginning or end would not be visible in a sentence.
#[must_use]
pub fn quoted(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    if text.is_empty() || text.contains(|character: char| character.is_whitespace() || "'\"`\\".contains(character)) {
        format!("'{text}'")
    } else {
        text.into_owned()
    }
}

/// The longest beginning of the text that fits into this many bytes.
#[must_use]
pub fn cut(text: &str, longest: usize) -> &str {
    let end = text.char_indices().map(|(at, character)| at + character.len_utf8()).take_while(|end| *end <= longest);
    text.get(..end.last().unwrap_or(0)).unwrap_or_default()
}

/// The signal's name: `SIGTERM`, `SIGRTMIN+1`. (Neither nix nor signal-hook has names for the real-time signals.)
#[must_use]
pub fn signal_name(number: i32) -> String {
    if let Ok(signal) = Signal::try_from(number) {
        return signal.as_str().to_owned();
    }
    match number - libc::SIGRTMIN() {
        0 => "SIGRTMIN".to_owned(),
        above if above > 0 && number <= libc::SIGRTMAX() => format!("SIGRTMIN+{above}"),
        _ => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that another candidate has chosen must not change the order or the lines of the text around it.
    #[test]
    fn characters_that_reverse_or_break_a_line_are_escaped() {
        assert_eq!(one_line("a\u{202e}b\u{2066}c\u{2028}d\ne\u{7f}"), r"a\u{202e}b\u{2066}c\u{2028}d\ne\u{7f}");
        assert_eq!(one_line("Zoë \u{1f469}\u{200d}\u{1f4bb}"), "Zoë \u{1f469}\u{200d}\u{1f4bb}");
    }
}
