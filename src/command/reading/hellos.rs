//! The hellos of candidates with `--roles`: all are in partition 0, whatever the partition of a role's election.

use neli::program::{Key, ReadRecord};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::record::Offset;

use super::key_of_election;

/// How far partition 0 was read, in addition to the election's partition.
#[derive(Debug, Default)]
pub(super) struct HellosElsewhere {
    /// The log's end when the reading began, once it is known.
    end: Option<Offset>,
    next: Offset,
}

impl HellosElsewhere {
    /// Handles the log's first and next offset; returns the offset to read from, the first time.
    pub(super) fn ends(&mut self, start: Offset, end: Offset) -> Option<Offset> {
        if self.end.is_some() {
            return None;
        }
        let from = start.max(end - FIRST_SPAN);
        (self.end, self.next) = (Some(end), from);
        Some(from)
    }

    /// Notes that everything below `next` has been read.
    pub(super) fn caught_up(&mut self, next: Offset) {
        self.next = self.next.max(next);
    }

    /// Whether the hellos were read up to the end that they had when the reading began.
    pub(super) fn are_read(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}

/// Whether a record is a hello of a candidate of the group, for any role.
pub(in crate::command) fn is_hello(group: &str, record: &ReadRecord) -> bool {
    match record.key {
        Key::AnyHello | Key::Hello(_) => true,
        Key::Election(_) => false,
        Key::Other => {
            let election = record.other_key.as_deref().and_then(key_of_election);
            election.is_some_and(|election| election.is_hello && election.group == group)
        }
    }
}
