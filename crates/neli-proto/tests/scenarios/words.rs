//! The words of one line: a verb, arguments, and `key=value` pairs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use neli_proto::guard::SeenEnd;
use neli_proto::job::JobStatus;
use neli_proto::record::{MemberId, Offset, Why};
use neli_proto::time::Time;

/// The time at which every scenario begins, long after the boot.
const BEGIN: Time = Time::from_nanos(1_000_000_000_000);

/// One line.
pub(crate) struct Words<'a> {
    line: &'a str,
    parts: Vec<&'a str>,
    used: RefCell<BTreeSet<usize>>,
}

impl<'a> Words<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        Self { line, parts: line.split_whitespace().collect(), used: RefCell::new(BTreeSet::from([0])) }
    }

    /// The first word.
    pub(crate) fn verb(&self) -> &'a str {
        self.parts[0]
    }

    /// The word at `index`, 1 for the first after the verb.
    pub(crate) fn word(&self, index: usize) -> &'a str {
        self.used.borrow_mut().insert(index);
        self.parts.get(index).unwrap_or_else(|| panic!("{}: a word is missing", self.line))
    }

    /// The number at `index`.
    pub(crate) fn number<T: FromStr>(&self, index: usize) -> T {
        let word = self.word(index);
        word.parse().unwrap_or_else(|_| panic!("{}: {word} is no number", self.line))
    }

    /// `3..7` at `index`.
    pub(crate) fn range(&self, index: usize) -> Range<Offset> {
        let word = self.word(index);
        let ends = word.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
        ends.unwrap_or_else(|| panic!("{}: {word} is no range", self.line))
    }

    /// Fails if the value is missing.
    pub(crate) fn needed<T>(&self, key: &str, value: Option<T>) -> T {
        value.unwrap_or_else(|| panic!("{}: {key} is missing", self.line))
    }

    /// Whether the line contains this word.
    pub(crate) fn says(&self, wanted: &str) -> bool {
        let at = self.parts.iter().position(|word| *word == wanted);
        self.used.borrow_mut().extend(at);
        at.is_some()
    }

    /// The value of `key`, if the line contains it.
    pub(crate) fn value(&self, key: &str) -> Option<&'a str> {
        let of_key = |word: &&'a str| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
        let (at, value) = self.parts.iter().enumerate().find_map(|(at, word)| Some((at, of_key(word)?)))?;
        self.used.borrow_mut().insert(at);
        Some(value)
    }

    /// The value of `key` as a number.
    pub(crate) fn number_of<T: FromStr>(&self, key: &str) -> Option<T> {
        let value = self.value(key)?;
        Some(value.parse().unwrap_or_else(|_| panic!("{}: {value} is no number", self.line)))
    }

    /// The value of `key` as a duration.
    pub(crate) fn span_of(&self, key: &str) -> Option<Duration> {
        self.value(key).map(span)
    }

    /// The value of `key` as a point in time.
    pub(crate) fn time_of(&self, key: &str) -> Option<Time> {
        self.span_of(key).map(|span| BEGIN + span)
    }

    /// How a process ended: `status=3`, `signal=9`.
    pub(crate) fn status(&self) -> JobStatus {
        let exited = || JobStatus::Exited(self.needed("status", self.number_of("status")));
        self.number_of("signal").map_or_else(exited, JobStatus::Signaled)
    }

    /// The value of `why` as a reason.
    pub(crate) fn why(&self) -> Why {
        why(self.needed("why", self.value("why")))
    }

    /// Fails if a word of the line was not used, because that is a mistake in the scenario.
    pub(crate) fn check_all_used(&self) {
        let used = self.used.borrow();
        let unread = (0..self.parts.len()).find(|index| !used.contains(index));
        if let Some(index) = unread {
            panic!("{}: {} has no meaning here", self.line, self.parts[index]);
        }
    }
}

/// `1s`, `150ms`, `1.5s`.
pub(crate) fn span(word: &str) -> Duration {
    humantime::parse_duration(word).unwrap_or_else(|error| panic!("{word}: {error}"))
}

/// The time `span` after the beginning.
pub(crate) fn time(word: &str) -> Time {
    BEGIN + span(word)
}

/// The beginning.
pub(crate) const fn begin() -> Time {
    BEGIN
}

/// A time in the notation of the scenarios.
pub(crate) fn shown_time(time: Time) -> String {
    shown(time.since(BEGIN))
}

/// The end of a job that was killed: `gone-at=1.2s lived-at=1.1s`.
pub(crate) fn seen_end(words: &Words<'_>) -> Option<SeenEnd> {
    words.time_of("gone-at").map(|gone_at| SeenEnd { gone_at, lived_at: words.time_of("lived-at") })
}

pub(crate) fn shown_end(end: SeenEnd) -> String {
    let lived = end.lived_at.map(|at| format!(", last seen alive at {}", shown_time(at))).unwrap_or_default();
    format!("{}{lived}", shown_time(end.gone_at))
}

/// A duration in the notation of the scenarios: whole milliseconds, and the rest as a fraction.
pub(crate) fn shown(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1_000.0;
    if span.subsec_nanos().is_multiple_of(1_000_000) { format!("{millis:.0}ms") } else { format!("{millis:.2}ms") }
}

/// The member with this name in the scenarios.
pub(crate) fn member(word: &str) -> MemberId {
    MemberId::from(word)
}

/// The reason with this name in the journal.
pub(crate) fn why(word: &str) -> Why {
    Why::parse(word).unwrap_or_else(|| panic!("{word} is no reason"))
}
