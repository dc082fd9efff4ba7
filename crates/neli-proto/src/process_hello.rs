//! The hello of a process that stands in many elections. It sends one for all of them, with the data that other processes need about it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::Serialize;

use crate::mapping::Mapping;
use crate::record::{Fields, is_default};
use crate::record::{MAX_BYTES, MemberId, Offset};
use crate::role_set::RoleSet;

/// The content of that hello. A candidate of one role reads it as an ordinary hello.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub struct ProcessHello {
    /// The writer's member id.
    pub member: MemberId,
    /// The writer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The machine's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<str>>,
    /// The process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The program's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
    /// The elector, `group` or `log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elector: Option<Box<str>>,
    /// Why the group does not take the writer, in Kafka's words; `None` if it does. Only displayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_refuses: Option<Box<str>>,
    /// The address where the writer answers by HTTP (`--listen`). Only displayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Box<str>>,
    /// `--roles` as typed; `None` if the writer is a candidate of one role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Box<str>>,
    /// The number of partitions of the topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// `--priority`: a candidate of a higher one claims a vacancy first.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: u16,
    /// `--max-roles`: the most roles that the writer leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_roles: Option<u32>,
    /// The offset of its first hello; `None` in the first hello itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Offset>,
    /// A candidate that shall say hello now. It is to have a role, if it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<MemberId>,
    /// The time after this hello, in milliseconds, during which the writer does not claim the roles for which its records do not show who
    /// leads; `None` if they do for all roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_ms: Option<u64>,
    /// The roles for which the writer no longer stands, by the numbers of its own mapping: they were ended, or their job ended by itself and
    /// is not run again.
    #[serde(skip_serializing_if = "RoleSet::is_empty")]
    pub left: RoleSet,
    /// Whether the writer leaves: it leads no role any more, and will lead none.
    #[serde(skip_serializing_if = "is_default")]
    pub leaves: bool,
}

impl ProcessHello {
    /// Parses a line of JSON: the hello of a process with many roles, or of a candidate of one role; `None` for any other line.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_BYTES {
            return None;
        }
        let fields = Fields::parse(line).filter(|fields| fields.str("kind") == Some("hello"))?;
        Some(Self {
            member: fields.member("member")?,
            name: fields.text("name"),
            host: fields.text("host"),
            pid: fields.number("pid"),
            version: fields.text("version"),
            elector: fields.text("elector"),
            group_refuses: fields.text("group_refuses"),
            listen: fields.text("listen"),
            roles: fields.text("roles"),
            partitions: fields.number("partitions"),
            priority: fields.number("priority").unwrap_or_default(),
            max_roles: fields.number("max_roles"),
            joined: fields.offset("joined"),
            asks: fields.member("asks"),
            waits_ms: fields.number("waits_ms"),
            left: fields.str("left").map(RoleSet::parse).unwrap_or_default(),
            leaves: fields.flag("leaves"),
        })
    }

    /// The hello as a line of JSON, without a line end. If it is too long to be read, what is only displayed is left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let line = self.to_line();
        if line.len() <= MAX_BYTES {
            return line;
        }
        Self { name: None, host: None, version: None, group_refuses: None, listen: None, ..self.clone() }.to_line()
    }

    fn to_line(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            v: u8,
            kind: &'static str,
            #[serde(flatten)]
            hello: &'a ProcessHello,
        }
        // A struct of strings and numbers can always be written as JSON.
        serde_json::to_vec(&Line { v: 1, kind: "hello", hello: self }).unwrap_or_default()
    }

    /// Whether the writer takes roles: only after its first hello was read back and the others could answer it.
    #[must_use]
    pub(crate) const fn takes_roles(&self) -> bool {
        !self.leaves && (self.joined.is_some() || self.roles.is_none())
    }

    /// Whether the writer stands for none of its roles any more, as in the hello that is written for a dead process.
    #[must_use]
    pub(crate) fn stands_for_no_role(&self) -> bool {
        usize::try_from(self.mapping().count()).is_ok_and(|count| self.left.has_first(count))
    }

    /// What the hello says about one role, whose number in the writer's own mapping this is: a process that has left the role leaves as far
    /// as that role is concerned.
    #[must_use]
    pub fn about(self, role: u32) -> Self {
        let leaves = self.leaves || self.left.contains_number(role);
        Self { leaves, ..self }
    }

    /// The writer's mapping of roles to partitions.
    #[must_use]
    pub fn mapping(&self) -> Mapping {
        match (&self.roles, self.partitions) {
            (Some(typed), Some(partitions)) => Mapping::new(typed, partitions),
            _ => Mapping::of_one_role(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Body, Record};

    fn hello() -> ProcessHello {
        ProcessHello {
            member: "ab".into(),
            name: Some("web1".into()),
            host: Some("web1".into()),
            pid: Some(7),
            version: Some("1".into()),
            elector: Some("log".into()),
            group_refuses: None,
            listen: None,
            roles: Some("ingest,bill".into()),
            partitions: Some(2),
            priority: 0,
            max_roles: None,
            joined: None,
            asks: None,
            waits_ms: None,
            left: RoleSet::new(),
            leaves: false,
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let full = ProcessHello {
            group_refuses: Some("Inconsistent group protocol".into()),
            listen: Some("192.0.2.1:9464".into()),
            priority: 10,
            max_roles: Some(3),
            joined: Some(41),
            asks: Some("cd".into()),
            waits_ms: Some(7),
            left: RoleSet::parse("1"),
            leaves: true,
            ..hello()
        };
        for hello in [hello(), full] {
            assert_eq!(ProcessHello::parse(&hello.to_bytes()), Some(hello));
        }
        assert_eq!(
            core::str::from_utf8(&hello().to_bytes()).unwrap(),
            r#"{"v":1,"kind":"hello","member":"ab","name":"web1","host":"web1","pid":7,"version":"1","elector":"log","roles":"ingest,bill","partitions":2}"#
        );
    }

    #[test]
    fn a_candidate_of_one_role_reads_it_as_a_hello() {
        let record = Record::parse(&ProcessHello { priority: 10, ..hello() }.to_bytes()).unwrap();
        assert!(matches!(&record.body, Body::Hello { pid: Some(7), priority: 10, .. }), "{record:?}");
        assert_eq!(record.into_hello().unwrap().member, "ab".into());
    }

    #[test]
    fn the_hello_of_a_candidate_of_one_role_is_read_too() {
        let line = br#"{"v":1,"kind":"hello","member":"ab","name":"web1","seq":1,"host":null,"elector":"log"}"#;
        let hello = ProcessHello::parse(line).unwrap();
        assert_eq!((hello.mapping(), hello.leaves), (Mapping::of_one_role(), false));
        for line in [r#"{"v":2,"kind":"hello","member":"ab"}"#, r#"{"v":1,"kind":"beat","member":"ab"}"#, "[]"] {
            assert_eq!(ProcessHello::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_line_as_long_as_a_record_may_be_is_read_and_a_longer_one_is_not() {
        let shortest = ProcessHello { name: Some("".into()), ..hello() }.to_bytes().len();
        for (length, is_read) in [(MAX_BYTES - 1, true), (MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            let line = ProcessHello { name: Some("x".repeat(length - shortest).into()), ..hello() }.to_line();
            assert_eq!((line.len(), ProcessHello::parse(&line).is_some()), (length, is_read));
        }
    }

    /// A candidate's name has 255 bytes at most, and JSON takes two for a quote; all names of roles have 400, and `left` takes 300.
    #[test]
    fn the_longest_hello_is_read_too() {
        let mut left = RoleSet::new();
        (0..200).for_each(|number| left.insert(2 * number));
        for name in ["n".repeat(255), "\"".repeat(255)] {
            let (name, host) = (Some(name.into()), Some("h".repeat(64).into()));
            let (roles, partitions) = (Some("r,".repeat(200).into()), Some(u32::MAX));
            let (max_roles, joined, waits_ms) = (Some(u32::MAX), Some(Offset::MAX), Some(60_610));
            let left = left.clone();
            let asks = Some(MemberId::from_random(u128::MAX));
            let group_refuses = Some("w".repeat(200).into());
            let listen = Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535".into());
            let longest = ProcessHello {
                name,
                host,
                group_refuses,
                listen,
                roles,
                partitions,
                max_roles,
                joined,
                asks,
                waits_ms,
                left,
                ..hello()
            };
            let read = ProcessHello::parse(&longest.to_bytes()).expect("it is short enough");
            assert_eq!((read.mapping(), read.joined), (longest.mapping(), longest.joined));
            assert_eq!(read.left, RoleSet::parse(&longest.left.text()));
        }
    }

    #[test]
    fn roles_are_taken_after_the_first_hello_and_until_the_last() {
        let said_again = ProcessHello { joined: Some(41), ..hello() };
        let of_one_role = ProcessHello { roles: None, partitions: None, ..hello() };
        assert!(!hello().takes_roles(), "those that are there may still answer it");
        assert!(said_again.takes_roles());
        assert!(of_one_role.takes_roles(), "it stands in its election from its first hello on");
        assert!(!ProcessHello { leaves: true, ..said_again }.takes_roles());
    }
}
