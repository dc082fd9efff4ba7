//! The hellos of candidates with `--roles`: all stand in partition 0, wherever the election of a role does.

use neli::program::{Key, ReadRecord};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::record::Offset;

use super::key_of_election;

/// How far partition 0 is read, beside the one of the election.
#[derive(Debug, Default)]
pub(super) struct HellosElsewhere {
    /// Where it ended when the reading began, once that is known.
    end: Option<Offset>,
    next: Offset,
}

impl HellosElsewhere {
    /// Where they stand.
    pub(super) const PARTITION: i32 = 0;

    /// Where the log begins and ends; from where it is to be read, the first time.
    pub(super) fn ends(&mut self, start: Offset, end: Offset) -> Option<Offset> {
        if self.end.is_some() {
            return None;
        }
        let from = start.max(end - FIRST_SPAN);
        (self.end, self.next) = (Some(end), from);
        Some(from)
    }

    /// Everything below `next` has been read.
    pub(super) fn caught_up(&mut self, next: Offset) {
        self.next = self.next.max(next);
    }

    /// Whether all that was there when the reading began has been read.
    pub(super) fn are_read(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}

/// Whether a record is the hello of a candidate of the group, for whichever role.
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
