//! Text that is shown to users or read by programs: one line, all of whose characters are visible and in their order.

use std::ffi::OsStr;
use std::fmt::{Display, Write};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use neli_kafka::escaped;
pub use neli_kafka::{one_line, reason, shown_duration};
use neli_proto::mapping::Differs;
use nix::libc;
use nix::sys::signal::Signal;
use serde::Serialize;

/// With which options of these a candidate stands: those of a hello, or none.
pub(crate) fn with_options_of_once(options: &str) -> String {
    if options.is_empty() { "without --once, --window and --schedule".to_owned() } else { format!("with {options}") }
}

/// How another candidate's roles differ, and what to do.
pub(crate) fn roles_differ(differs: &Differs) -> String {
    differs.line("--roles", "--group")
}

/// Why a process could not be started.
pub(crate) fn why_not_started(error: &io::Error) -> String {
    format!("{}{}", reason(error), limit_of_starts(error))
}

/// The limit for which a process could not be started, if it is one that the system's text does not name.
pub(crate) fn limit_of_starts(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::WouldBlock { " (ulimit -u, pids.max)" } else { "" }
}

/// A count with its noun, whose plural has an s: `1 term`, `2 terms`.
pub(crate) fn counted(count: impl Into<u128>, what: &str) -> String {
    let count = count.into();
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// These one after the other: `db1, db2`.
pub(crate) fn list(all: impl IntoIterator<Item = impl Display>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

/// A duration, but for one in months, which are `M`: `5M` is meant to be five minutes.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok().filter(|_| !text.contains('M'))
}

/// A text for HTML or XML, also within the quotes of an attribute, with every unseen character escaped.
pub(crate) fn html(text: &str) -> String {
    let escapes = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    escapes.iter().fold(one_line(text), |text, (letter, escape)| text.replace(*letter, escape))
}

/// The value as JSON on one line, in which every unseen character is escaped: JSON itself demands that only below U+0020.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Outside of strings JSON has none of these characters. What is passed here are strings and numbers under string keys, which always
    // serialize.
    let json = serde_json::to_string(value).unwrap_or_default();
    escaped(&json, |character, line| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(line, "\\u{unit:04x}");
        }
    })
}

/// The value. It is quoted if its beginning or end would not be visible in a sentence.
pub(crate) fn quoted(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    if text.is_empty() || text.contains(|character: char| character.is_whitespace() || "'\"`\\".contains(character)) {
        format!("'{text}'")
    } else {
        text.into_owned()
    }
}

/// The longest beginning of the text that fits into this many bytes.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
    let end = text.char_indices().map(|(at, character)| at + character.len_utf8()).take_while(|end| *end <= longest);
    text.get(..end.last().unwrap_or(0)).unwrap_or_default()
}

/// The text in lines of at most this many columns, broken between words, or inside a word that is longer than a line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    in_lines(text.split(' '), width)
}

/// These words in such lines.
pub(crate) fn in_lines<'a>(words: impl IntoIterator<Item = &'a str>, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in words {
        let mut rest: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + rest.len() > width {
            lines.push(String::new());
            length = 0;
        }
        while rest.len() > width {
            let head: String = rest.drain(..width).collect();
            lines.last_mut().iter_mut().for_each(|line| line.push_str(&head));
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            length += rest.len();
            line.extend(rest);
        }
    }
    lines
}

/// A duration for users: `40ms`, `1.25s`, `2m 5s`.
pub(crate) fn spoken(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        ms @ 1_000..60_000 => {
            let digits = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            format!("{}s", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

/// A duration for comparison: `400ms`, `4.2s`, `108s`, `14m 3s`, `3h 12m`, `5d 3h`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..10 => spoken(Duration::from_millis(u64::from(span.subsec_millis()) / 100 * 100 + seconds * 1_000)),
        10..120 => format!("{seconds}s"),
        120..7_200 => two(seconds / 60, "m", seconds % 60, "s"),
        7_200..172_800 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

fn two(one: u64, unit: &str, more: u64, smaller: &str) -> String {
    if more == 0 { format!("{one}{unit}") } else { format!("{one}{unit} {more}{smaller}") }
}

/// Milliseconds since 1970 as UTC in RFC 3339. A record in the topic may contain a later time than the year 9999: it is shown as the last
/// moment of that year.
pub(crate) fn timestamp(wall_ms: u64) -> String {
    humantime::format_rfc3339_millis(wall_time(wall_ms)).to_string()
}

/// The same time without milliseconds.
pub fn to_the_second(wall_ms: u64) -> String {
    humantime::format_rfc3339_seconds(wall_time(wall_ms)).to_string()
}

/// Only the time of the day, in UTC, without its milliseconds: `05:40:50Z`.
pub(crate) fn time_of_day(wall_ms: u64) -> String {
    to_the_second(wall_ms).chars().skip(11).collect()
}

/// A date and time, in UTC, without its milliseconds: `2026-01-31 05:40:50Z`.
pub(crate) fn date(wall_ms: u64) -> String {
    to_the_second(wall_ms).replace('T', " ")
}

fn wall_time(wall_ms: u64) -> SystemTime {
    const LAST: u64 = 253_402_300_799_999;
    UNIX_EPOCH + Duration::from_millis(wall_ms.min(LAST))
}

/// The signal's name: `SIGTERM`, `SIGRTMIN+1`. (Neither nix nor signal-hook has names for the real-time signals.)
pub(crate) fn signal_name(number: i32) -> String {
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

    #[test]
    fn times_are_in_utc() {
        assert_eq!(time_of_day(1_769_860_800_123), "12:00:00Z");
        assert_eq!(date(1_769_860_800_123), "2026-01-31 12:00:00Z");
    }

    #[test]
    fn a_duration_is_readable() {
        let said = [0, 40, 999, 1_000, 1_250, 8_000, 59_999, 125_400].map(|ms| spoken(Duration::from_millis(ms)));
        assert_eq!(said, ["0ms", "40ms", "999ms", "1s", "1.25s", "8s", "59.999s", "2m 5s"]);
    }

    #[test]
    fn a_span_is_short_and_can_be_compared() {
        let shown =
            [40, 4_250, 108_700, 843_000, 11_520_000, 442_800_000, 7_200_000].map(Duration::from_millis).map(span);
        assert_eq!(shown, ["40ms", "4.2s", "108s", "14m 3s", "3h 12m", "5d 3h", "2h"]);
    }

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
