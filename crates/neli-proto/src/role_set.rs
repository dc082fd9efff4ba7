//! A set of roles, as a hello states those for which its writer no longer stands.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest text of a set, in bytes. It is one field of a record of 1,024 bytes at most; a set that would take more is stated in part.
const LONGEST_TEXT: usize = 300;

/// A set of roles by their numbers.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct RoleSet {
    /// The first and the last role of each run of roles without a gap, in their order, with a gap between two of them.
    runs: Vec<(u32, u32)>,
}

impl RoleSet {
    /// The set without a role.
    pub const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// The set of the roles from 0 on, as many as this.
    pub fn of_first(count: u32) -> Self {
        Self { runs: count.checked_sub(1).map(|last| (0, last)).into_iter().collect() }
    }

    /// Whether the roles from 0 on are in it, as many as this.
    pub(crate) fn has_first(&self, count: u32) -> bool {
        count == 0 || self.runs.first().is_some_and(|(first, last)| *first == 0 && *last >= count - 1)
    }

    /// Whether no role is in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether a role is in it.
    pub(crate) fn contains(&self, role: u32) -> bool {
        self.runs.iter().any(|(first, last)| (*first..=*last).contains(&role))
    }

    /// The number of roles in it.
    pub(crate) fn count(&self) -> u32 {
        self.runs.iter().map(|(first, last)| last - first + 1).fold(0, u32::saturating_add)
    }

    /// Adds a role.
    pub fn insert(&mut self, role: u32) {
        self.insert_run(role, role);
    }

    /// Takes out the roles of another set.
    pub(crate) fn remove(&mut self, others: &Self) {
        for &(low, high) in &others.runs {
            for (first, last) in core::mem::take(&mut self.runs) {
                if first < low {
                    self.runs.push((first, last.min(low - 1)));
                }
                if high < last {
                    self.runs.push((first.max(high + 1), last));
                }
            }
        }
    }

    fn insert_run(&mut self, mut first: u32, mut last: u32) {
        self.runs.retain(|(low, high)| {
            let is_apart = first > high.saturating_add(1) || *low > last.saturating_add(1);
            if !is_apart {
                (first, last) = (first.min(*low), last.max(*high));
            }
            is_apart
        });
        let at = self.runs.partition_point(|(low, _)| *low < first);
        self.runs.insert(at, (first, last));
    }

    /// The set of a text such as `0,4-7`. Parts that are none are left out.
    pub fn parse(text: &str) -> Self {
        let mut roles = Self::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse())
                && first <= last
            {
                roles.insert_run(first, last);
            }
        }
        roles
    }

    /// The text: numbers and ranges of numbers, such as `0,4-7`. Too many are left out at the end.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (first, last) in &self.runs {
            let whole = text.len();
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a `String` can't fail.
            let _ = if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
            if text.len() > LONGEST_TEXT {
                text.truncate(whole);
                break;
            }
        }
        text
    }
}

impl Serialize for RoleSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for RoleSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::random::Random;

    #[test]
    fn it_is_read_as_it_was_written() {
        for text in ["", "0", "0,4-7", "1-2,4,6-4294967295"] {
            assert_eq!(RoleSet::parse(text).text(), text);
        }
        for (text, meant) in [("3,1,2", "1-3"), ("7-4,x,1-,-2,5", "5"), ("4-9,0-6", "0-9"), ("4294967296", "")] {
            assert_eq!(RoleSet::parse(text).text(), meant, "{text}");
        }
    }

    #[test]
    fn the_first_roles() {
        for (count, text) in [(0, ""), (1, "0"), (4, "0-3")] {
            assert_eq!(RoleSet::of_first(count).text(), text);
        }
        for (text, most) in [("", 0), ("1-9", 0), ("0,2-9", 1), ("0-3", 4)] {
            let roles = RoleSet::parse(text);
            assert_eq!((0..9).rfind(|count| roles.has_first(*count)), Some(most), "{text}");
        }
    }

    #[test]
    fn roles_are_taken_out() {
        for (text, out, rest, count) in [
            ("", "0-9", "", 0),
            ("0-9", "", "0-9", 10),
            ("0-9", "3", "0-2,4-9", 9),
            ("0-9", "0,9", "1-8", 8),
            ("2-4,6-8", "0-3,7-20", "4,6", 2),
            ("2-4,6-8", "0,5,9", "2-4,6-8", 6),
            ("2-4,6-8", "2-8", "", 0),
        ] {
            let mut roles = RoleSet::parse(text);
            roles.remove(&RoleSet::parse(out));
            assert_eq!((&*roles.text(), roles.count()), (rest, count), "{text} without {out}");
        }
    }

    #[test]
    fn it_has_the_roles_that_were_added() {
        let mut random = Random::from_seed(7);
        let mut below =
            |bound: u64| u32::try_from(random.up_to(core::time::Duration::from_nanos(bound)).as_nanos()).unwrap();
        for _ in 0..500 {
            let (mut roles, mut expected) = (RoleSet::new(), BTreeSet::new());
            assert!(roles.is_empty());
            for _ in 0..=below(12) {
                let (first, length) = (below(16), below(4));
                (first..=first + length).for_each(|role| roles.insert(role));
                expected.extend(first..=first + length);
            }
            let all: BTreeSet<u32> = (0..24).filter(|role| roles.contains(*role)).collect();
            assert_eq!((all, roles.is_empty()), (expected, false));
            assert_eq!(RoleSet::parse(&roles.text()), roles, "one text for one set");
        }
    }

    #[test]
    fn a_text_of_the_longest_length_is_whole() {
        // Each number but the last takes four bytes with its comma.
        let mut roles = RoleSet::parse("10000000");
        (0..).map(|number| 100 + 2 * number).take((LONGEST_TEXT - 8) / 4).for_each(|number| roles.insert(number));
        let longest = roles.text();
        assert_eq!((longest.len(), longest.ends_with(",10000000")), (LONGEST_TEXT, true), "{longest}");
        roles.insert(50);
        assert!(!roles.text().ends_with(",10000000"), "the last one is left out");
    }

    #[test]
    fn a_set_that_is_too_long_is_stated_in_part() {
        let mut roles = RoleSet::new();
        (0..1_000).for_each(|number| roles.insert(2 * number));
        let text = roles.text();
        let stated = RoleSet::parse(&text);
        assert!((LONGEST_TEXT - 5..=LONGEST_TEXT).contains(&text.len()), "{text}");
        assert!(stated.contains(0) && (0..2_000).all(|role| roles.contains(role) || !stated.contains(role)), "{text}");
    }
}
