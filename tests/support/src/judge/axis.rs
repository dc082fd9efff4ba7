//! A timeline of all events, and the time spans in which something was broken.

use std::fmt::Write as _;
use std::time::Duration;

use crate::wait;

/// A duration in nanoseconds.
#[must_use]
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("centuries are not measured")
}

/// The entries of a run, each with its time on `CLOCK_BOOTTIME`.
#[derive(Debug, Default)]
pub struct Axis {
    entries: Vec<(u64, String, String)>,
    /// The time spans in which something was broken. At all other times there must be a leader.
    disturbed: Vec<(u64, u64)>,
}

impl Axis {
    /// Adds an entry with the present time.
    pub fn note(&mut self, who: &str, what: impl Into<String>) {
        self.note_at(wait::now(), who, what);
    }

    /// Adds an entry with this time.
    pub fn note_at(&mut self, at: u64, who: &str, what: impl Into<String>) {
        self.entries.push((at, who.to_owned(), what.into()));
    }

    /// Keeps only the last `most` entries.
    pub fn forget_all_but(&mut self, most: usize) {
        if self.entries.len() > 2 * most {
            self.entries.sort_by_key(|(at, _, _)| *at);
            self.entries.drain(..self.entries.len() - most);
        }
    }

    /// Marks a time span in which something was broken.
    pub fn disturb(&mut self, from: u64, until: u64) {
        self.disturbed.push((from, until));
    }

    /// The longest undisturbed part of these spans: its length and position.
    #[must_use]
    pub fn longest_undisturbed(&self, spans: &[(u64, u64)]) -> (Duration, (u64, u64)) {
        let mut disturbed = self.disturbed.clone();
        disturbed.sort_unstable();
        let mut longest = (0, 0);
        for (first, last) in spans {
            let mut from = *first;
            for (begin, end) in disturbed.iter().filter(|(begin, end)| end > first && begin < last) {
                if *begin > from && begin - from > longest.1 - longest.0 {
                    longest = (from, *begin);
                }
                from = from.max(*end);
            }
            if *last > from && last - from > longest.1 - longest.0 {
                longest = (from, *last);
            }
        }
        (Duration::from_nanos(longest.1 - longest.0), longest)
    }

    /// All entries in order of time, with times in milliseconds from `origin`.
    pub fn print(&mut self, origin: u64) -> String {
        self.entries.sort_by_key(|(at, _, _)| *at);
        let mut text = String::new();
        for (at, who, what) in &self.entries {
            #[expect(clippy::cast_precision_loss, reason = "for a person's eye")]
            let millis = (*at as f64 - origin as f64) / 1e6;
            let _ = writeln!(text, "{millis:12.3} {who:<8} {what}");
        }
        text
    }
}
