//! The journal's records and their conversion from and to bytes: one line of JSON each, at most 1 KiB.
//!
//! A record is rejected if a field that the rules read (`v`, `kind`, offsets, `lease_ms`, `what`) is missing or wrong. Any other field
//! that is missing or of the wrong type is read as unknown, and unknown fields are ignored.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use why::Why;

mod why;

/// An offset in the partition; -1 stands for the position before the first record.
pub type Offset = i64;

/// The largest record that is parsed; a longer one is ignored.
pub const MAX_BYTES: usize = 1024;

/// The bounds of a lease (docs/protocol.md, Timing).
pub const LEASE_MS: core::ops::RangeInclusive<u64> = 300..=60_000;

/// A candidate's random id, made at its start.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct MemberId(Box<str>);

impl MemberId {
    /// The id made of 128 random bits.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into())
    }

    /// The id.
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for MemberId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One parsed record. The writer is `None` if the record does not contain it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Record {
    /// The writer's member id.
    #[serde(default, deserialize_with = "or_unknown")]
    pub member: Option<MemberId>,
    /// The writer's name.
    #[serde(default, deserialize_with = "or_unknown")]
    pub name: Option<Box<str>>,
    /// The writer's own number of the record.
    #[serde(default, deserialize_with = "or_unknown")]
    pub seq: Option<u64>,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
}

/// The content of a record, by kind.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Body {
    /// The leader is alive.
    Beat {
        /// The leader's term.
        term: Offset,
        /// `term` was the current term up to this offset.
        seen: Offset,
        /// The leader's lease, in milliseconds.
        lease_ms: u64,
        /// The leader's job; `None` if its state is unknown.
        #[serde(flatten)]
        job: Option<Job>,
        /// `--overlap`; left out without it.
        #[serde(flatten)]
        overlap: Option<Overlap>,
    },
    /// A candidate asks to lead.
    Claim {
        /// The candidate has judged every record up to this offset.
        after: Offset,
        /// The lease that the candidate would have, in milliseconds.
        lease_ms: u64,
        /// `--overlap`; left out without it.
        #[serde(flatten)]
        overlap: Option<Overlap>,
    },
    /// The term is over: no process of its job is left.
    Release {
        /// The term that ends.
        term: Offset,
        /// `term` was the current term up to this offset.
        seen: Offset,
        /// The reason. A reader treats it as free text; neli-run writes a [`Why`].
        #[serde(default, deserialize_with = "or_unknown")]
        why: Option<Box<str>>,
        /// The job's exit status, 0 to 255.
        #[serde(default, deserialize_with = "or_unknown")]
        exit: Option<u8>,
        /// How many milliseconds after the lease's end a process of the job was still alive; left out if none was.
        #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
        late_ms: Option<u64>,
        /// The group member id under which the writer held the partition. The writer has left the group, so the group will assign the
        /// partition to another member.
        #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
        group_member: Option<Box<str>>,
        /// The run that has ended by itself with `exit`: done if 0, failed otherwise.
        #[serde(flatten)]
        once: Option<KeyedRun>,
        /// The member for which the writer stood down: to spread the roles, or because an operator asked for it.
        #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
        successor: Option<MemberId>,
    },
    /// A request of an operator.
    Request {
        /// The kind of request.
        what: What,
        /// The term to which the request applies; none with `end`.
        #[serde(default, deserialize_with = "or_unknown")]
        term: Option<Offset>,
        /// The operator's name.
        #[serde(default, deserialize_with = "or_unknown")]
        by: Option<Box<str>>,
        /// The operator's reason.
        #[serde(default, deserialize_with = "or_unknown")]
        reason: Option<Box<str>>,
        /// The member that is to lead next; left out if any may.
        #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
        successor: Option<MemberId>,
    },
}

/// A run of `--once`, `--window` or `--schedule`, in a release.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct KeyedRun {
    /// The key, or the start of the window.
    #[serde(rename = "once")]
    pub key: Box<str>,
    /// Whether it is a window: a key may read like the start of one. Earlier versions don't say.
    #[serde(rename = "window", default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub is_window: Option<bool>,
}

/// A job as a beat describes it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Job {
    /// Its state.
    pub state: JobState,
    /// Its main process.
    #[serde(default, deserialize_with = "or_unknown")]
    pub pid: Option<u32>,
    /// 1, and 1 more for each failed run before it.
    #[serde(default, deserialize_with = "or_unknown")]
    pub attempt: Option<u32>,
    /// How long it had been in this state when the beat was written, in milliseconds of the leader's clock.
    #[serde(default, deserialize_with = "or_unknown")]
    pub since_ms: Option<u64>,
}

/// The state of a leader's job, as its beats report it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Between two runs.
    Restarting,
    /// Its main process is alive.
    Running,
    /// Not started yet.
    #[default]
    Starting,
    /// The job has been asked to stop, or its main process has ended and other processes of it are alive.
    Stopping,
}

impl Job {
    /// What is a change if it differs.
    pub(crate) const fn without_time(self) -> (JobState, Option<u32>, Option<u32>) {
        (self.state, self.pid, self.attempt)
    }
}

impl JobState {
    /// Its name in beats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restarting => "restarting",
            Self::Running => "running",
            Self::Starting => "starting",
            Self::Stopping => "stopping",
        }
    }
}

/// The requests that an operator can make.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Every candidate stops its job and exits 0.
    End,
    /// The leader stands down.
    Resign,
}

impl Record {
    /// Parses a line of JSON; `None` if it is not a record that this version knows.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_BYTES {
            return None;
        }
        // In place of a kind's name serde would also take its number.
        fields_of(line).filter(|fields| kind_of(fields).is_some()).and_then(parsed)
    }

    /// The release that a guard writes for its dead supervisor. No other process writes a release with that reason, and the guard has no
    /// more data than these fields. `late_ms`: as in [`Body::Release`].
    pub fn release_for_dead(
        member: Option<MemberId>,
        name: &str,
        term: Offset,
        seen: Offset,
        seq: u64,
        late_ms: Option<u64>,
    ) -> Self {
        let body = Body::Release {
            term,
            seen,
            why: Some(Why::SupervisorDied.as_str().into()),
            exit: None,
            late_ms,
            group_member: None,
            once: None,
            successor: None,
        };
        Self { member, name: Some(name.into()), seq: Some(seq), body }
    }

    /// The record as a line of JSON, without a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_line(None, self)
    }

    /// Whether the record is consistent at `offset`: it refers only to records before it.
    pub fn makes_sense_at(&self, offset: Offset) -> bool {
        match self.body {
            Body::Claim { after, lease_ms, .. } => (-1..offset).contains(&after) && LEASE_MS.contains(&lease_ms),
            Body::Beat { term, seen, lease_ms, .. } => {
                0 <= term && term <= seen && seen < offset && LEASE_MS.contains(&lease_ms)
            }
            Body::Release { term, seen, .. } => 0 <= term && term <= seen && seen < offset,
            Body::Request { what: What::Resign, term, .. } => term.is_some_and(|term| (0..offset).contains(&term)),
            Body::Request { what: What::End, .. } => true,
        }
    }
}

impl Body {
    /// The `--overlap` fields of a claim or a beat.
    pub const fn overlap(&self) -> Option<Overlap> {
        match self {
            Self::Beat { overlap, .. } | Self::Claim { overlap, .. } => *overlap,
            Self::Release { .. } | Self::Request { .. } => None,
        }
    }

    /// The lease in the record.
    pub fn lease(&self) -> Option<Duration> {
        match self {
            Self::Beat { lease_ms, .. } | Self::Claim { lease_ms, .. } => Some(Duration::from_millis(*lease_ms)),
            Self::Release { .. } | Self::Request { .. } => None,
        }
    }
}

// ---- the fields of claims and beats in an election with `--overlap` ------------------------------------------------

/// A field of each claim and beat of a candidate with `--overlap`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Overlap {
    /// `--overlap`, in milliseconds.
    #[serde(rename = "overlap_ms")]
    pub within_ms: u64,
    /// In a claim: the current term when the claim is sent, whose job may continue for a while. In a beat: the same value as in the
    /// leader's claim, until the leader knows that no process of the earlier job is left.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub over: Option<Offset>,
    /// In a beat: whether the leader must stop, and its job continues until another candidate has claimed.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub yields: bool,
}

/// A record of a topic as a log contains it, of whichever election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its key.
    pub key: Option<Box<[u8]>>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Box<[u8]>>,
    /// When it was appended (or written, on a topic with `CreateTime`), in milliseconds since 1970.
    pub written_ms: Option<u64>,
    /// Whether that is by the broker's clock: the topic has `LogAppendTime`.
    pub is_brokers_time: bool,
}

// ---- reads and writes a line of JSON: a record, a hello or a fact --------------------------------------------

/// Whether the field has its default value, so that it can be left out.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// The fields of a line of JSON; `None` if it is not an object of the version that this program knows.
pub(crate) fn fields_of(line: &[u8]) -> Option<Map<String, Value>> {
    let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
    (fields.get("v")?.as_u64()? == 1).then_some(fields)
}

/// The kind of the record with these fields.
pub(crate) fn kind_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("kind")?.as_str()
}

/// What has these fields; `None` if one that it needs is missing or of another type.
pub(crate) fn parsed<T: DeserializeOwned>(fields: Map<String, Value>) -> Option<T> {
    serde_json::from_value(Value::Object(fields)).ok()
}

/// Reads a field that is unknown if it is of another type.
pub(crate) fn or_unknown<'de, T: Default + DeserializeOwned, D: Deserializer<'de>>(field: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(field)?).unwrap_or_default())
}

/// A line of JSON with these fields, without a line end.
pub(crate) fn to_line(kind: Option<&'static str>, fields: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        v: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'static str>,
        #[serde(flatten)]
        fields: &'a T,
    }
    // Strings and numbers always have a JSON form.
    serde_json::to_vec(&Line { v: 1, kind, fields }).unwrap_or_default()
}

// ---- the Kafka keys of records: which election a record is of ------------------------------------------------------

/// The group, the role's name or number, and whether it is a hello, of a record with this key: `<group>/<role>` or `<group>/<role>/hello`. `None` if
/// it is no election's.
pub(crate) fn election_of(key: &[u8]) -> Option<(&str, &str, bool)> {
    let key = core::str::from_utf8(key).ok()?;
    let (label, is_hello) = key.strip_suffix("/hello").map_or((key, false), |label| (label, true));
    let (group, role) = label.rsplit_once('/')?;
    (!group.is_empty() && !role.is_empty()).then_some((group, role, is_hello))
}

/// The label of the role, and whether it is the key of a hello, if the key is one of this group. Garbage may have any bytes as a label.
pub fn label_of_group<'a>(key: &'a [u8], group: &str) -> Option<(&'a [u8], bool)> {
    let rest = key.strip_prefix(group.as_bytes())?.strip_prefix(b"/")?;
    let (label, is_hello) = rest.strip_suffix(b"/hello").map_or((rest, false), |label| (label, true));
    (!label.is_empty() && !label.contains(&b'/')).then_some((label, is_hello))
}

/// Whether a record is a hello of a candidate of the group, for any role.
pub fn is_hello_of(group: &str, record: &LogRecord) -> bool {
    record.key.as_deref().and_then(|key| label_of_group(key, group)).is_some_and(|(_, is_hello)| is_hello)
}

#[cfg(test)]
mod tests;
