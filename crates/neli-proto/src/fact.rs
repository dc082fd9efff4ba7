//! The record of a key's runs in the topic `<topic>.once`, bytes both ways, and what the records of a key come to.
//!
//! A key has two places in that topic, which is compacted: one where a success stands, and one where the last run stands that was
//! begun or has failed. A record of a run that reaches the log late, when another run has succeeded already, then replaces no
//! success.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::{MemberId, Offset};

/// What the name of the topic with the facts adds to the journal's.
pub const TOPIC_SUFFIX: &str = ".once";

/// How a key's run stands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ended by itself with status 0.
    Done,
    /// It ended by itself otherwise.
    Failed,
    /// It is about to be started, or was; how it ended is not written.
    Running,
}

/// What is recorded of a key's run.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub struct Fact {
    /// The key.
    pub key: Box<str>,
    /// How the run stands.
    pub outcome: Outcome,
    /// The term under which it runs, or ran.
    pub term: Offset,
    /// Who runs it, or ran it.
    pub member: Option<MemberId>,
    /// How the runner is called.
    pub name: Option<Box<str>>,
    /// The job's exit status, once it has ended.
    pub exit: Option<u8>,
    /// 1, and 1 more for each run of the key that has failed before, on any machine.
    pub attempt: u32,
    /// For how long the job ran, in milliseconds.
    pub ran_ms: Option<u64>,
    /// When this was written, in milliseconds since 1970 by the writer's wall clock. For display only.
    pub at_ms: Option<u64>,
}

/// Where in the topic a fact stands.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Place {
    /// A run that was begun, or has failed.
    Attempt,
    /// A success.
    Done,
}

/// A record that stands where a fact should and is none.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Unreadable;

/// What the topic says of a key, read from its start to an end.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Facts {
    /// The success.
    pub done: Option<Fact>,
    /// The last run that was begun or has failed.
    pub attempt: Option<Fact>,
    /// What stands where the success should is no fact that this version can read.
    pub done_is_unreadable: bool,
    /// The same of the last run.
    pub attempt_is_unreadable: bool,
}

impl Fact {
    /// Where it stands.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self.outcome {
            Outcome::Done => Place::Done,
            Outcome::Failed | Outcome::Running => Place::Attempt,
        }
    }

    /// The fact that a line of JSON says.
    ///
    /// # Errors
    ///
    /// It says none that this version knows.
    pub fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        Self::of_json(line).ok_or(Unreadable)
    }

    fn of_json(line: &[u8]) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        if fields.get("v")?.as_u64()? != 1 {
            return None;
        }
        let text = |field: &str| fields.get(field)?.as_str().map(Box::<str>::from);
        let number = |field: &str| fields.get(field)?.as_u64();
        Some(Self {
            key: text("key")?,
            outcome: Outcome::deserialize(fields.get("outcome")?).ok()?,
            term: fields.get("term")?.as_i64()?,
            member: text("member").map(|member| MemberId::from(&*member)),
            name: text("name"),
            exit: number("exit").and_then(|exit| exit.try_into().ok()),
            attempt: number("attempt")?.try_into().ok()?,
            ran_ms: number("ran_ms"),
            at_ms: number("at_ms"),
        })
    }

    /// The fact as a line of JSON, without a line end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            v: u8,
            #[serde(flatten)]
            fact: &'a Fact,
        }
        // A struct of strings and numbers always has a JSON form.
        serde_json::to_vec(&Line { v: 1, fact: self }).unwrap_or_default()
    }
}

impl Facts {
    /// Whether something stands there that this version can't read.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        self.done_is_unreadable || self.attempt_is_unreadable
    }

    /// Takes in the next record at this place; none is a record without a value, which takes back what stood there.
    pub fn take(&mut self, place: Place, value: Option<&[u8]>) {
        let (known, is_unreadable) = match place {
            Place::Attempt => (&mut self.attempt, &mut self.attempt_is_unreadable),
            Place::Done => (&mut self.done, &mut self.done_is_unreadable),
        };
        let fact = value.map(Fact::parse);
        *is_unreadable = matches!(fact, Some(Err(Unreadable)));
        match fact {
            None => *known = None,
            Some(Err(Unreadable)) => {}
            // One that reached the log late is older than what stands there.
            Some(Ok(fact)) => {
                if known.as_ref().is_none_or(|known| known.term <= fact.term) {
                    *known = Some(fact);
                }
            }
        }
    }
}

/// The Kafka key under which a fact about `key` stands in the topic: `<group>/<role>/<KEY>`, where `election` is the election's own
/// key. In KEY `%` and `/` are written `%25` and `%2F`, so that two elections never share one.
#[must_use]
pub fn record_key(election: &str, key: &str, place: Place) -> String {
    let key = key.replace('%', "%25").replace('/', "%2F");
    match place {
        Place::Attempt => format!("{election}/{key}%attempt"),
        Place::Done => format!("{election}/{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(outcome: Outcome, term: Offset) -> Fact {
        Fact {
            key: "v1.42".into(),
            outcome,
            term,
            member: Some(MemberId::from("m")),
            name: Some("db2".into()),
            exit: None,
            attempt: 1,
            ran_ms: None,
            at_ms: None,
        }
    }

    fn come_to(records: &[(Place, Option<&[u8]>)]) -> Facts {
        let mut facts = Facts::default();
        for (place, value) in records {
            facts.take(*place, *value);
        }
        facts
    }

    #[test]
    fn a_fact_comes_back_as_it_was_written() {
        for outcome in [Outcome::Done, Outcome::Failed, Outcome::Running] {
            let fact = Fact { exit: Some(3), ran_ms: Some(3_200), at_ms: Some(1_769_860_801_123), ..fact(outcome, 57) };
            assert_eq!(Fact::parse(&fact.to_bytes()), Ok(fact));
        }
        let line = br#"{"v":1,"key":"k","outcome":"done","term":7,"attempt":2,"of a later version":[]}"#;
        let expected = Fact { key: "k".into(), member: None, name: None, attempt: 2, ..fact(Outcome::Done, 7) };
        assert_eq!(Fact::parse(line), Ok(expected));
        for nonsense in [&b""[..], b"{}", br#"{"v":2,"key":"k","outcome":"done","term":7,"attempt":2}"#, b"\xff"] {
            assert_eq!(Fact::parse(nonsense), Err(Unreadable));
        }
    }

    #[test]
    fn a_record_that_came_late_replaces_nothing_newer() {
        let [begun, failed, late] =
            [(Outcome::Running, 9), (Outcome::Failed, 9), (Outcome::Running, 5)].map(|(how, term)| fact(how, term));
        let bytes = [&begun, &failed, &late].map(Fact::to_bytes);
        let facts = come_to(&bytes.each_ref().map(|bytes| (Place::Attempt, Some(&**bytes))));
        assert_eq!(facts, Facts { attempt: Some(failed), ..Facts::default() });
    }

    #[test]
    fn a_record_without_a_value_takes_back_and_one_that_is_no_fact_is_noticed() {
        let done = fact(Outcome::Done, 5).to_bytes();
        assert_eq!(come_to(&[(Place::Done, Some(&done)), (Place::Done, None)]), Facts::default());
        let nonsense = (Place::Done, Some(&b"nonsense"[..]));
        assert!(come_to(&[nonsense]).is_unreadable());
        assert_eq!(come_to(&[nonsense, (Place::Done, None)]), Facts::default());
    }

    #[test]
    fn no_two_keys_of_any_elections_share_a_place() {
        let of = |election, key| record_key(election, key, Place::Done);
        assert_eq!(of("billing/0", "v1.42"), "billing/0/v1.42");
        assert_ne!(of("g/0", "a/0/b"), of("g/0/a/0", "b"));
        assert_ne!(of("g/0", "a%2F"), of("g/0", "a/"));
        assert_ne!(of("g/0", "a%attempt"), record_key("g/0", "a", Place::Attempt));
    }
}
