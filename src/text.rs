//! Text that is shown to users: one line without control characters.

use std::ffi::OsStr;

pub use neli::program::{reason, shown_duration};
use nix::libc;
use nix::sys::signal::Signal;

/// The text with every control character escaped, so that it is one line and does not move a terminal's cursor.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
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
