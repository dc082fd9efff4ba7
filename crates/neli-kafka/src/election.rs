//! The election, and the connection to Kafka: plain data, as a configuration gives it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use neli_proto::record::label_of_group;
use serde::{Deserialize, Serialize};

use crate::names::role_number;

/// One election: (topic, partition, key).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ElectionId {
    /// `--group`.
    pub group: String,
    /// `--topic`, or `<group>.neli`.
    pub topic: String,
    /// The partition; that of the role.
    pub partition: i32,
    /// The role.
    pub role: u32,
    /// The role's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_name: Option<String>,
}

impl ElectionId {
    /// The key of the election's records: `<group>/<role>`, with the role's name, or its number if it has none.
    pub fn key(&self) -> String {
        format!("{}/{}", self.group, self.label())
    }

    /// The role's label: its name, or its number.
    pub fn label(&self) -> String {
        self.role_name.clone().unwrap_or_else(|| self.role.to_string())
    }

    /// The key of the records by which its candidates introduce themselves: `<group>/<role>/hello`.
    pub fn hello_key(&self) -> String {
        format!("{}/hello", self.key())
    }
}

/// The elections of one group in one topic that share a [`Session`](crate::Session): one for each role. Role `r` is on partition
/// `r mod partitions`, so that a topic with fewer partitions than roles has several elections on each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Elections {
    /// `--group`.
    pub group: String,
    /// `--topic`, or `<group>.neli`.
    pub topic: String,
    /// The roles; never empty.
    pub roles: Range<u32>,
    /// The names of the roles from number 0 on; empty if they have numbers alone.
    pub names: Arc<[String]>,
}

impl Elections {
    /// The partition of a role in a topic with this many partitions.
    pub fn partition_of(role: u32, partitions: i32) -> i32 {
        // Less than `partitions`, which is an i32.
        (role % partitions.unsigned_abs().max(1)).cast_signed()
    }

    /// The election of a role in a topic with this many partitions.
    pub fn election(&self, role: u32, partitions: i32) -> ElectionId {
        let (group, topic) = (self.group.clone(), self.topic.clone());
        let role_name = self.names.get(role as usize).cloned();
        ElectionId { group, topic, partition: Self::partition_of(role, partitions), role, role_name }
    }

    /// The label of each role, in the order of their numbers.
    pub fn labels(&self) -> Vec<String> {
        self.roles.clone().map(|role| self.election(role, 1).label()).collect()
    }

    /// The partitions that hold one of the roles, in a topic with this many partitions.
    pub fn partitions_in_use(&self, partitions: i32) -> BTreeSet<i32> {
        let as_many = self.roles.clone().take(usize::try_from(partitions).unwrap_or_default());
        as_many.map(|role| Self::partition_of(role, partitions)).collect()
    }

    /// Whether there are several roles, or a list of names: the process then says one hello for all of them, and
    /// reads that of every other process.
    pub fn are_many(&self) -> bool {
        self.roles.len() > 1 || !self.names.is_empty()
    }

    /// The partition of the hellos of processes with many roles, whatever the partitions of the roles' elections.
    pub const PARTITION_OF_HELLOS: i32 = 0;

    /// The key of the hellos of a process with many roles: that of its first role. They are in
    /// [one partition](Self::PARTITION_OF_HELLOS).
    pub fn hello_key(&self) -> String {
        self.election(self.roles.start, 1).hello_key()
    }

    /// Whether a record with this key is a hello of a candidate of the group, for whichever role.
    pub(crate) fn is_hello(&self, key: &[u8]) -> bool {
        label_of_group(key, &self.group).is_some_and(|(_, is_hello)| is_hello)
    }

    /// The roles as they are said in hellos: their number, or their names with commas between them.
    pub fn typed(&self) -> String {
        if self.names.is_empty() { self.roles.len().to_string() } else { self.names.join(",") }
    }

    fn number_named(&self, label: &[u8]) -> Option<u32> {
        u32::try_from(self.names.iter().position(|name| name.as_bytes() == label)?).ok()
    }

    /// The role to which a record with this key belongs, and whether it is a hello.
    pub(crate) fn find(&self, key: &[u8]) -> Option<(u32, bool)> {
        let (label, is_hello) = label_of_group(key, &self.group)?;
        let role =
            if self.names.is_empty() { role_number(str::from_utf8(label).ok()?) } else { self.number_named(label) }?;
        self.roles.contains(&role).then_some((role, is_hello))
    }
}

impl From<&ElectionId> for Elections {
    /// That of one role alone, which is called by its number.
    fn from(election: &ElectionId) -> Self {
        let ElectionId { group, topic, role, .. } = election;
        Self { group: group.clone(), topic: topic.clone(), roles: *role..*role + 1, names: Arc::default() }
    }
}

/// The connection to Kafka.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Client {
    /// `--brokers`: bootstrap servers, as librdkafka takes them; `None` with `--embedded`: the small broker on this machine's loopback, found or
    /// started.
    pub bootstrap: Option<String>,
    /// The user's librdkafka properties in the given order (a later one wins). None of them is one that the protocol sets itself.
    pub properties: Properties,
}

/// librdkafka properties. Some are secrets, so no value is ever shown.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Properties(pub Vec<(String, String)>);

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

impl Properties {
    /// The value that counts.
    pub fn find(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(candidate, _)| candidate == key).map(|(_, value)| value.as_str())
    }
}

/// Whether the property's value is secret: librdkafka calls the property sensitive, and it is no user name and no file name.
pub fn is_secret(key: &str) -> bool {
    ["password", "passphrase", "secret", "key.pem", "oauthbearer.config"].iter().any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elections(roles: Range<u32>) -> Elections {
        Elections { group: "g/1".to_owned(), topic: "t".to_owned(), roles, names: Arc::default() }
    }

    #[test]
    fn a_named_role_is_found_by_its_name_alone() {
        let names = ["ingest", "bill"].map(str::to_owned);
        let elections = Elections { names: names.into(), ..elections(0..2) };
        let election = elections.election(1, 3);
        assert_eq!((election.key().as_str(), election.partition), ("g/1/bill", 1));
        assert_eq!(elections.find(b"g/1/bill"), Some((1, false)));
        assert_eq!(elections.find(b"g/1/ingest/hello"), Some((0, true)));
        assert_eq!(elections.find(b"g/1/1"), None);
    }

    #[test]
    fn a_role_is_found_by_the_keys_of_its_records_alone() {
        let elections = elections(3..12);
        for role in 3..12 {
            let election = elections.election(role, 4);
            assert_eq!(elections.find(election.key().as_bytes()), Some((role, false)));
            assert_eq!(elections.find(election.hello_key().as_bytes()), Some((role, true)));
        }
        for (key, is_hello) in
            [("g/1/2/hello", true), ("g/1/bill/hello", true), ("g/1/0", false), ("g/1//hello", false)]
        {
            assert_eq!(elections.is_hello(key.as_bytes()), is_hello, "{key}");
        }
        assert!(!elections.is_hello(b"g/1/0/0/hello"), "of a group called g/1/0");
        for key in ["g/1/2", "g/1/12", "g/1/03", "g/1/+3", "g/1/", "g/1", "g/3", "g/1/3/", "g/1/3/hell", "g/1//hello"] {
            assert_eq!(elections.find(key.as_bytes()), None, "{key}");
        }
    }

    #[test]
    fn roles_share_partitions_where_there_are_fewer() {
        let partitions =
            |roles: Range<u32>, count| elections(roles).partitions_in_use(count).into_iter().collect::<Vec<_>>();
        assert_eq!(partitions(0..1, 1), [0]);
        assert_eq!(partitions(0..2, 6), [0, 1]);
        assert_eq!(partitions(0..1000, 3), [0, 1, 2]);
        assert_eq!(partitions(5..6, 3), [2]);
        assert_eq!(elections(0..8).election(7, 3).partition, 1);
    }
}
