//! Text that is shown to users or read by programs: one line, all of whose characters are visible and in their order.

use std::ffi::OsStr;
use std::fmt::Write;

use neli_kafka::names::is_invisible;
pub use neli_kafka::{reason, shown_duration};
use neli_proto::mapping::Differs;
use nix::libc;
use nix::sys::signal::Signal;
use serde::Serialize;

/// How another candidate's roles differ, and what to do.
#[must_use]
pub fn roles_differ(differs: &Differs) -> String {
    differs.line("--roles", "--group")
}

/// A count with its noun, whose plural has an s: `1 term`, `2 terms`.
#[must_use]
pub fn counted(count: impl Into<u128>, what: &str) -> String {
    let count = count.into();
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The text with every unseen character escaped, so that it is one line, does not move a terminal's cursor, and is read from
/// left to right.
#[must_use]
pub fn one_line(text: &str) -> String {
    escaped(text, |character, line| line.extend(character.escape_default()))
}

/// The value as JSON on one line, in which every unseen character is escaped: JSON itself demands that only below U+0020.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    // Outside of strings JSON has none of these characters. What is passed here are strings and numbers under string keys, which always
    // serialize.
    let json = serde_json::to_string(value).unwrap_or_default();
    escaped(&json, |character, line| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(line, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) {
            escape(character, &mut line);
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether the character controls a terminal, breaks a line, changes the direction of the text around it, or is invisible. Joiners, which shape
/// words and pictures, are none of these.
fn is_unseen(character: char) -> bool {
    character.is_control() || (is_invisible(character) && !matches!(character, '\u{200c}' | '\u{200d}'))
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

    #[test]
    fn characters_that_are_invisible_are_escaped() {
        assert_eq!(one_line("db\u{200b}1\u{feff}\u{e0061}"), r"db\u{200b}1\u{feff}\u{e0061}");
    }

    /// U+009B begins a terminal's control sequence, as ESC [ does, and U+0085 and U+2028 are ends of lines for some readers.
    #[test]
    fn json_has_the_same_text_and_none_of_these_characters() {
        let name = "a\u{9b}31m\u{85}\u{2028}\u{202e}\u{200b}\u{7f}\u{e0061}\n\"Zoë";
        let line = json(&name);
        assert_eq!(line, r#""a\u009b31m\u0085\u2028\u202e\u200b\u007f\udb40\udc61\n\"Zoë""#);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), name);
    }
}
