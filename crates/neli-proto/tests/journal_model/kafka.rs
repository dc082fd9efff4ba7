//! The partition as a broker stores it: the records, their times, and what was deleted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use neli_proto::record::{Body, Offset, Record};
use neli_proto::time::Time;

use crate::fingerprint;
use crate::records::Written;

/// Assumption 4: younger records are not deleted.
pub(crate) const DELETED_AFTER: Duration = Duration::from_secs(120);

/// An immutable record with its fingerprint.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    written: Rc<Written>,
    print: u128,
}

impl Sealed {
    pub(crate) fn new(written: impl Into<Written>) -> Self {
        let written = written.into();
        let print = fingerprint::of(&written);
        Self { written: Rc::new(written), print }
    }

    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// The record, if it is no hello.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.written.record()
    }
}

impl PartialEq for Sealed {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Hash for Sealed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.print);
    }
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = match &*self.written {
            Written::Hello(hello) => return write!(f, "{}'s hello", hello.name.as_deref().unwrap_or("somebody")),
            Written::Record(record) => record,
        };
        let by = record.name.as_deref().unwrap_or("somebody");
        match &record.body {
            Body::Beat { term, seen, .. } => write!(f, "{by}'s beat of term {term}, seen {seen}"),
            Body::Claim { after, overlap, .. } => {
                let over = overlap.and_then(|overlap| overlap.over);
                let over = over.map(|over| format!(", over term {over}")).unwrap_or_default();
                write!(f, "{by}'s claim, after {after}{over}")
            }
            Body::Release { term, seen, why, .. } => {
                write!(f, "{by}'s release of term {term}, seen {seen}, {}", why.as_deref().unwrap_or("no reason"))
            }
            Body::Request { what, term, .. } => write!(f, "a request: {what:?} {term:?}"),
        }
    }
}

/// The content of an offset.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Slot {
    /// A deleted record or a transaction marker, which readers do not get.
    Absent,
    /// An undecodable record under the election's key.
    Nonsense,
    /// A record under another key.
    Other,
    /// A record of the election.
    Record(Sealed),
}

#[derive(Clone, Debug, Hash)]
struct Entry {
    slot: Slot,
    appended: Time,
}

/// The partition.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Log {
    start: Offset,
    entries: Vec<Entry>,
}

impl Log {
    /// A log that begins with `others` records under other keys.
    pub(crate) fn with_others(others: Offset, now: Time) -> Self {
        let entries = (0..others).map(|_| Entry { slot: Slot::Other, appended: now }).collect();
        Self { start: 0, entries }
    }

    pub(crate) fn start(&self) -> Offset {
        self.start
    }

    pub(crate) fn end(&self) -> Offset {
        Offset::try_from(self.entries.len()).unwrap_or(Offset::MAX)
    }

    pub(crate) fn append(&mut self, now: Time, slot: Slot) -> Offset {
        self.entries.push(Entry { slot, appended: now });
        self.end() - 1
    }

    /// The first entry at or after `from` that is delivered to readers.
    pub(crate) fn next_from(&self, from: Offset) -> Option<(Offset, &Slot)> {
        let skipped = usize::try_from(from).ok()?;
        let mut offsets = (from..).zip(self.entries.get(skipped..)?);
        offsets.find(|(_, entry)| !matches!(entry.slot, Slot::Absent)).map(|(offset, entry)| (offset, &entry.slot))
    }

    /// The record at an offset, with its append time.
    pub(crate) fn at(&self, offset: Offset) -> Option<(Time, &Record)> {
        let entry = self.entries.get(usize::try_from(offset).ok()?)?;
        match &entry.slot {
            Slot::Record(sealed) => sealed.record().map(|record| (entry.appended, record)),
            Slot::Absent | Slot::Nonsense | Slot::Other => None,
        }
    }

    /// The offsets whose records may be deleted by compaction.
    pub(crate) fn old_records(&self, now: Time, any_age: bool) -> impl Iterator<Item = Offset> {
        let old = move |entry: &Entry| any_age || now.since(entry.appended) >= DELETED_AFTER;
        let old_record = move |entry: &Entry| matches!(entry.slot, Slot::Record(_)) && old(entry);
        let here = (0..).zip(&self.entries).filter(|(offset, _)| *offset >= self.start);
        here.filter(move |(_, entry)| old_record(entry)).map(|(offset, _)| offset)
    }

    pub(crate) fn delete(&mut self, offset: Offset) {
        if let Some(entry) = usize::try_from(offset).ok().and_then(|index| self.entries.get_mut(index)) {
            entry.slot = Slot::Absent;
        }
    }

    /// The log's first offset if all old records were deleted.
    pub(crate) fn start_after_cut(&self, now: Time, any_age: bool) -> Offset {
        let is_young = |entry: &Entry| !any_age && now.since(entry.appended) < DELETED_AFTER;
        let young = self.entries.iter().position(is_young);
        young.and_then(|index| Offset::try_from(index).ok()).unwrap_or(self.end())
    }

    pub(crate) fn cut_to(&mut self, start: Offset) {
        self.start = start;
    }
}
