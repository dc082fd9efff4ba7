//! The other elections in a topic: for a message about a mistyped group, or about a role that does not exist.

use std::collections::BTreeSet;

use neli::program::{ElectionId, Key, ReadRecord};
use neli_proto::mapping::Mapping;
use neli_proto::process_hello::ProcessHello;

use super::{ElectionKey, is_hello, key_of_election};

/// The other elections whose records were read.
#[derive(Clone, Debug, Default)]
pub(in crate::command) struct Others {
    /// The groups of other elections in the partition.
    pub(in crate::command) groups: BTreeSet<String>,
    /// The mapping in the last hello of a candidate of this group with many roles.
    pub(in crate::command) mapping: Option<Mapping>,
}

impl Others {
    /// Handles a record that is not the election's own. Returns whether it is the hello of a candidate that stands for the election's role.
    pub(in crate::command) fn take_in(&mut self, election: &ElectionId, record: &ReadRecord) -> bool {
        if is_hello(&election.group, record) {
            let process = record.value.as_deref().and_then(ProcessHello::parse);
            return process.is_some_and(|process| self.number_in(&process.mapping(), election).is_some());
        }
        if let (Key::Other, Some(ElectionKey { group, .. })) =
            (&record.key, record.other_key.as_deref().and_then(key_of_election))
            && group != election.group
        {
            self.groups.insert(group.to_owned());
        }
        false
    }

    /// Keeps the mapping of a candidate of this group. Returns the number that it gives to the election's role, if it contains the role.
    pub(in crate::command) fn number_in(&mut self, mapping: &Mapping, election: &ElectionId) -> Option<u32> {
        if *mapping != Mapping::of_one_role() {
            self.mapping = Some(mapping.clone());
        }
        mapping.number(&election.label())
    }

    /// The roles of the group's candidates, if they don't contain the election's role.
    pub(in crate::command) fn other_roles(&self, election: &ElectionId) -> Option<&Mapping> {
        self.mapping.as_ref().filter(|mapping| mapping.number(&election.label()).is_none())
    }
}
