//! The day before a topic's reading began. So that the present state of all elections is known soon, a topic is first read from shortly before the
//! ends of its logs. After that it is read once more, from a day ago on, beside the first reading, which goes on. Where the second reading has
//! reached the first one, it has judged the same records and those before them by the same law, so its terms replace those of the first: nothing is
//! put together from two halves.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::mem;

use super::{Judged, Place, Topic};
use crate::leadership::ReadAt;
use crate::record::{LogRecord, Offset};

/// The reading of a topic's day before.
#[derive(Clone, Debug)]
pub(super) struct Past {
    /// The topic.
    pub(super) name: Box<str>,
    /// The number of the reading.
    pub(super) reading: u32,
    topic: Topic,
    /// The partitions that have not reached the first reading.
    behind: BTreeSet<i32>,
    /// What has come since the last answer.
    heard: u64,
}

impl Past {
    pub(super) fn new(name: Box<str>, reading: u32) -> Self {
        // The time until the first answer counts as heard: the question for the offsets was asked just now.
        Self { name, reading, topic: Topic::default(), behind: BTreeSet::new(), heard: 1 }
    }

    /// Whether nothing has come between two answers.
    pub(super) const fn stands_still(&mut self) -> bool {
        mem::replace(&mut self.heard, 0) == 0
    }

    /// Handles the offsets where the day begins. Returns whether all of it was read before.
    pub(super) fn begins(&mut self, at: ReadAt, from: &BTreeMap<i32, Offset>, first: &Topic) -> bool {
        self.heard += 1;
        for (partition, bounds, first_from) in first.begins() {
            if let Some(offset) = from.get(&partition).filter(|offset| **offset < first_from) {
                self.topic.begin(at, partition, bounds, *offset);
                self.behind.insert(partition);
            }
        }
        self.behind.is_empty()
    }

    /// Handles a record. `first` is the first reading, which has read the record's partition up to `first_next`. Returns what the law says of a
    /// record that the first reading does not know.
    pub(super) fn read(
        &mut self,
        at: ReadAt,
        partition: i32,
        record: &LogRecord,
        (first, first_next): (&mut Topic, Offset),
    ) -> Option<(Place, Judged)> {
        self.heard += 1;
        if !self.behind.contains(&partition) {
            return None;
        }
        // If the record is further on, there is none in between.
        let judged = if record.offset < first_next { self.topic.read(at, partition, record) } else { None };
        if record.offset + 1 >= first_next {
            self.behind.remove(&partition);
            first.take_past(partition, &mut self.topic);
        }
        judged.filter(|_| first.begin_of(partition).is_some_and(|from| record.offset < from))
    }

    /// Whether every partition has reached the first reading.
    pub(super) fn is_over(&self) -> bool {
        self.behind.is_empty()
    }

    /// What was read.
    pub(super) const fn topic(&self) -> &Topic {
        &self.topic
    }
}
