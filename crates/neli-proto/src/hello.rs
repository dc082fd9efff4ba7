//! Hellos: a candidate says that it is there, with the data that the others need about it. A process that stands in many elections says one
//! for all of them. The keys of hellos differ from those of elections, so that the law ignores them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mapping::Mapping;
use crate::record::{MAX_BYTES, MemberId, Offset, fields_of, is_default, kind_of, or_unknown, parsed, to_line};
use crate::role_set::RoleSet;

/// The longest time that a process waits with its exit for the delivery of its last hello, without which the others count it as alive for up to 75 s
/// longer.
pub const LAST_HELLO_TAKES: Duration = Duration::from_millis(200);

/// The kind of its record.
const KIND: &str = "hello";

/// A hello. What is not known, or is as it is for most candidates, is left out.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Hello {
    /// The writer's member id.
    pub member: MemberId,
    /// The writer's name.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The writer's own number of the record; `None` in the hello of a process with many roles.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The machine's name.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<str>>,
    /// The process id.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The program's version.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
    /// The elector, `group` or `log`.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub elector: Option<Box<str>>,
    /// The writer's member id in the consumer group; `None` while it is not a member, or has many roles.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub group_member: Option<Box<str>>,
    /// Why the group does not take the writer, in Kafka's words; `None` if it does. Only displayed.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub group_refuses: Option<Box<str>>,
    /// The address where the writer answers by HTTP (`--listen`). Only displayed.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub listen: Option<Box<str>>,
    /// `--roles` as typed; `None` if the writer is a candidate of one role.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub roles: Option<Box<str>>,
    /// The number of partitions of the topic, over which the roles are mapped.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// `--priority`: a candidate of a higher one claims a vacancy first.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub priority: u16,
    /// `--overlap`, in milliseconds.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub overlap_ms: Option<u64>,
    /// `--once`, `--window` or `--schedule` with the options that go with it, as typed, without the key. Only compared and displayed.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub once: Option<Box<str>>,
    /// `--max-roles`: the most roles that the writer leads.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub max_roles: Option<u32>,
    /// The offset of its first hello, or of a claim of its that took effect before; `None` while neither was read back.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub joined: Option<Offset>,
    /// A candidate that shall say hello now. It is to have a role, if it is still there.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub asks: Option<MemberId>,
    /// The time after this hello, in milliseconds, during which the writer does not claim the roles for which its records do not show who
    /// leads, unless a record shows it; `None` if they do for all roles.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub waits_ms: Option<u64>,
    /// The roles for which the writer no longer stands, by the numbers of its own mapping: they were ended, or their job ended by itself and
    /// is not run again.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "RoleSet::is_empty")]
    pub left: RoleSet,
    /// Whether the writer leaves: it leads no role any more, and will lead none.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub leaves: bool,
}

impl Hello {
    /// A hello with these alone.
    pub fn new(member: MemberId, name: Option<Box<str>>) -> Self {
        Self { member, name, ..Self::default() }
    }

    /// Parses a line of JSON; `None` if it is no hello, or does not contain its writer.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_BYTES {
            return None;
        }
        fields_of(line).filter(|fields| kind_of(fields) == Some(KIND)).and_then(parsed)
    }

    /// The hello as a line of JSON, without a line end. If it is too long to be read, what is only displayed is left out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let line = self.to_line();
        if line.len() <= MAX_BYTES {
            return line;
        }
        let shortest = Self {
            name: None,
            host: None,
            version: None,
            group_refuses: None,
            listen: None,
            once: None,
            ..self.clone()
        };
        shortest.to_line()
    }

    fn to_line(&self) -> Vec<u8> {
        to_line(Some(KIND), self)
    }

    /// The name that the writer's next process has as well: without the process id, with which the name ends where none was given.
    pub(crate) fn lasting_name(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        let is_own = |pid: &str| self.pid.is_some_and(|own| pid.parse() == Ok(own));
        Some(name.rsplit_once(':').filter(|(_, pid)| is_own(pid)).map_or(name, |(host, _)| host))
    }

    /// Whether the writer takes roles: only after its first hello was read back and the others could answer it.
    pub(crate) const fn takes_roles(&self) -> bool {
        !self.leaves && (self.joined.is_some() || self.roles.is_none())
    }

    /// Whether the writer stands for none of its roles any more, as in the hello that is written for a dead process.
    pub(crate) fn stands_for_no_role(&self) -> bool {
        self.left.has_first(self.mapping().count())
    }

    /// What the hello says about one role, whose number in the writer's own mapping this is: a process that has left the role leaves as far
    /// as that role is concerned.
    #[must_use]
    pub fn about(self, role: u32) -> Self {
        let leaves = self.leaves_role(role);
        Self { leaves, ..self }
    }

    /// Whether the writer stands no longer for the role with this number in its own mapping.
    pub(crate) fn leaves_role(&self, role: u32) -> bool {
        self.leaves || self.left.contains(role)
    }

    /// The writer's mapping of roles to partitions.
    pub fn mapping(&self) -> Mapping {
        match (&self.roles, self.partitions) {
            (Some(typed), Some(partitions)) => Mapping::new(typed, partitions),
            _ => Mapping::of_one_role(),
        }
    }
}

// ---- the question of an operator who is there --------------------------------------------------------------------

/// The value of `asks` in a question to all candidates.
const ALL: &str = "all";

/// A question to all candidates of a group: a hello without a writer, which each of them answers with its own.
pub fn question(by: &str) -> Vec<u8> {
    to_line(Some(KIND), &BTreeMap::from([("asks", ALL), ("name", by)]))
}

/// Whether this is such a question.
pub(crate) fn is_question(line: &[u8]) -> bool {
    fields_of(line).is_some_and(|fields| {
        let has_writer = fields.get("member").is_some_and(Value::is_string);
        kind_of(&fields) == Some(KIND) && !has_writer && fields.get("asks").is_some_and(|asks| asks == ALL)
    })
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn hello() -> Hello {
        Hello {
            host: Some("web1".into()),
            pid: Some(7),
            version: Some("1".into()),
            elector: Some("log".into()),
            roles: Some("ingest,bill".into()),
            partitions: Some(2),
            ..Hello::new("ab".into(), Some("web1".into()))
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let full = Hello {
            seq: Some(9),
            group_member: Some("neli-run-2".into()),
            overlap_ms: Some(150),
            group_refuses: Some("Inconsistent group protocol".into()),
            listen: Some("192.0.2.1:9464".into()),
            priority: 10,
            once: Some("--window 1d --retries 2".into()),
            max_roles: Some(3),
            joined: Some(41),
            asks: Some("cd".into()),
            waits_ms: Some(7),
            left: RoleSet::parse("1"),
            leaves: true,
            ..hello()
        };
        for hello in [hello(), full] {
            assert_eq!(Hello::parse(&hello.to_bytes()), Some(hello));
        }
        assert_eq!(
            core::str::from_utf8(&hello().to_bytes()).unwrap(),
            r#"{"v":1,"kind":"hello","member":"ab","name":"web1","host":"web1","pid":7,"version":"1","elector":"log","roles":"ingest,bill","partitions":2}"#
        );
    }

    /// Earlier versions read a field that is left out as one that is null.
    #[test]
    fn the_hello_of_a_candidate_of_one_role_has_no_roles() {
        let hello = |leaves| Hello { seq: Some(7), leaves, ..Hello::new("m1".into(), Some("a:1".into())) }.to_bytes();
        let head = r#"{"v":1,"kind":"hello","member":"m1","name":"a:1","seq":7"#;
        assert_eq!(hello(false), format!("{head}}}").into_bytes());
        assert_eq!(hello(true), format!(r#"{head},"leaves":true}}"#).into_bytes());
    }

    #[test]
    fn the_hello_of_a_candidate_of_one_role_is_read_too() {
        let line = br#"{"v":1,"kind":"hello","member":"ab","name":"web1","seq":1,"host":null,"elector":"log"}"#;
        let hello = Hello::parse(line).unwrap();
        assert_eq!((hello.mapping(), hello.leaves), (Mapping::of_one_role(), false));
        for line in [r#"{"v":2,"kind":"hello","member":"ab"}"#, r#"{"v":1,"kind":"beat","member":"ab"}"#, "[]"] {
            assert_eq!(Hello::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_line_as_long_as_a_record_may_be_is_read_and_a_longer_one_is_not() {
        let shortest = Hello { name: Some("".into()), ..hello() }.to_bytes().len();
        for (length, is_read) in [(MAX_BYTES - 1, true), (MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            let line = Hello { name: Some("x".repeat(length - shortest).into()), ..hello() }.to_line();
            assert_eq!((line.len(), Hello::parse(&line).is_some()), (length, is_read));
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
            let longest = Hello {
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
            let read = Hello::parse(&longest.to_bytes()).expect("it is short enough");
            assert_eq!((read.mapping(), read.joined), (longest.mapping(), longest.joined));
            assert_eq!(read.left, RoleSet::parse(&longest.left.text()));
        }
    }

    /// A candidate of an earlier version takes it for nobody's hello.
    #[test]
    fn a_question_is_a_hello_without_a_writer() {
        let line = question("ann@db1");
        assert_eq!(core::str::from_utf8(&line).unwrap(), r#"{"v":1,"kind":"hello","asks":"all","name":"ann@db1"}"#);
        assert!(is_question(&line));
        assert_eq!(Hello::parse(&line), None);
        for other in [
            r#"{"v":1,"kind":"hello","member":"ab","asks":"all"}"#,
            r#"{"v":1,"kind":"hello","asks":"ab"}"#,
            r#"{"v":1,"kind":"beat","asks":"all"}"#,
        ] {
            assert!(!is_question(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn roles_are_taken_after_the_first_hello_and_until_the_last() {
        let said_again = Hello { joined: Some(41), ..hello() };
        let of_one_role = Hello { roles: None, partitions: None, ..hello() };
        assert!(!hello().takes_roles(), "those that are there may still answer it");
        assert!(said_again.takes_roles());
        assert!(of_one_role.takes_roles(), "it stands in its election from its first hello on");
        assert!(!Hello { leaves: true, ..said_again }.takes_roles());
    }
}
