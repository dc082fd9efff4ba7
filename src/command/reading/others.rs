//! The other elections in a topic: for a message about a mistyped group.

use std::collections::BTreeSet;

use neli_kafka::{ElectionId, Key, ReadRecord};
use neli_proto::process_hello::ProcessHello;

use super::key_of_election;

/// The other elections whose records were read.
#[derive(Clone, Debug, Default)]
pub(in crate::command) struct Others {
    /// The groups of other elections in the partition.
    pub(in crate::command) groups: BTreeSet<String>,
}

impl Others {
    /// Handles a record that is not the election's own. Returns whether it is the hello of a candidate that stands for the election's role.
    pub(in crate::command) fn take_in(&mut self, election: &ElectionId, record: &ReadRecord) -> bool {
        if is_hello(&election.group, record) {
            let process = record.value.as_deref().and_then(ProcessHello::parse);
            return process.is_some_and(|process| number_in(&process, election).is_some());
        }
        if let (Key::Other, Some(key)) = (&record.key, record.other_key.as_deref().and_then(key_of_election))
            && key.group != election.group
        {
            self.groups.insert(key.group.to_owned());
        }
        false
    }
}

/// The number of the election's role for the writer of this hello; `None` if the writer does not stand for the role, or looks for it in another
/// partition.
pub(super) fn number_in(hello: &ProcessHello, election: &ElectionId) -> Option<u32> {
    let mapping = hello.mapping();
    let is_here = |number: &u32| i64::from(number % mapping.partitions()) == i64::from(election.partition);
    mapping.number(&election.label()).filter(is_here)
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
