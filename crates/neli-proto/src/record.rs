//! The journal's records, bytes both ways: one line of JSON each, at most 1 KiB.
//!
//! What the law and the rules read (`v`, `kind`, offsets, `lease_ms`, `what`) must be right, or the record is
//! nonsense. Anything else that is missing or odd is unknown, and unknown fields are ignored.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use fields::{Fields, is_default};

pub use hello::Hello;
pub use overlap::Overlap;
pub use why::Why;

mod fields;
mod hello;
mod overlap;
mod why;

/// An offset in the partition; -1 is "before the first".
pub type Offset = i64;

/// The largest record that is read as one.
pub const MAX_BYTES: usize = 1024;

/// The bounds of a lease (docs/protocol.md, Timing).
pub const LEASE_MS: core::ops::RangeInclusive<u64> = 300..=60_000;

/// A candidate's random id, made at its start.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct MemberId(Box<str>);

impl MemberId {
    /// The id made of 128 random bits.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into())
    }

    /// The id.
    #[must_use]
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

/// One record, as read. Who wrote it is unknown where the record does not say.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Record {
    /// Who wrote it.
    pub member: Option<MemberId>,
    /// How the writer is called.
    pub name: Option<Box<str>>,
    /// The writer's own count of its records.
    pub seq: Option<u64>,
    /// What it says.
    pub body: Body,
}

/// What a record says.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Body {
    /// The leader is alive.
    Beat {
        /// The leader's term.
        term: Offset,
        /// As of here, `term` was current.
        seen: Offset,
        /// The leader's lease, in milliseconds.
        lease_ms: u64,
        /// What the job does.
        state: Option<JobState>,
        /// The job's main process.
        pid: Option<u32>,
        /// 1 for the first run in this term.
        attempt: Option<u32>,
        /// For how long it has been in this state, in milliseconds of the leader's clock.
        since_ms: Option<u64>,
        /// `--overlap`; left out without it.
        #[serde(flatten)]
        overlap: Option<Overlap>,
    },
    /// A candidate asks to lead.
    Claim {
        /// Everything up to here has been judged.
        after: Offset,
        /// The lease that the candidate would have, in milliseconds.
        lease_ms: u64,
        /// `--overlap`; left out without it.
        #[serde(flatten)]
        overlap: Option<Overlap>,
    },
    /// A candidate exists. Its key is not the election's, so that it never counts in the law.
    Hello {
        /// The machine.
        host: Option<Box<str>>,
        /// The supervisor.
        pid: Option<u32>,
        /// The program's version.
        version: Option<Box<str>>,
        /// `group` or `log`.
        elector: Option<Box<str>>,
        /// The id by which the group's coordinator knows it; none while it is no member.
        #[serde(skip_serializing_if = "Option::is_none")]
        group_member: Option<Box<str>>,
        /// `--priority`: who has more claims first; left out where it is 0.
        #[serde(skip_serializing_if = "is_default")]
        priority: u16,
        /// `--overlap`, in milliseconds; left out without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        overlap_ms: Option<u64>,
        /// The candidate can't tell who leads, and claims nothing for so long after this hello unless a record tells. Left out
        /// where it can tell.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_ms: Option<u64>,
        /// The last one: the candidate stood by, and goes. Left out else.
        #[serde(skip_serializing_if = "is_default")]
        leaves: bool,
    },
    /// The term is over: no process of its job is left.
    Release {
        /// The term that ends.
        term: Offset,
        /// As of here, `term` was current.
        seen: Offset,
        /// Why; free text to a reader, a [`Why`] when we wrote it.
        why: Option<Box<str>>,
        /// The job's exit status, 0 to 255.
        exit: Option<u8>,
        /// For how many milliseconds after the lease's end something of the job was still alive; written only when it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_ms: Option<u64>,
        /// The writer held the partition in its group under this id, and has left: the group gives the partition to another.
        #[serde(skip_serializing_if = "Option::is_none")]
        group_member: Option<Box<str>>,
        /// `--once`: the run of this key has ended by itself, with `exit`: done with 0, failed else.
        #[serde(skip_serializing_if = "Option::is_none")]
        once: Option<Box<str>>,
        /// For whom the writer stood down, so that roles are spread.
        #[serde(skip_serializing_if = "Option::is_none")]
        successor: Option<MemberId>,
    },
    /// An operator asks for something.
    Request {
        /// What.
        what: What,
        /// The term that it is about; none with `end`.
        term: Option<Offset>,
        /// Who asks.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
}

/// What a leader's job does, as its beats tell.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Between two runs.
    Restarting,
    /// Its main process is alive.
    Running,
    /// Not started yet.
    Starting,
    /// It has been asked to stop, or only what it left behind is alive.
    Stopping,
}

/// What an operator may ask for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Every candidate stops its job and exits 0.
    End,
    /// The leader stands down.
    Resign,
}

impl Record {
    /// The record that a line of JSON says; none when it says none that this version knows.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_BYTES {
            return None;
        }
        let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        if fields.get("v")?.as_u64()? != 1 {
            return None;
        }
        let fields = Fields(&fields);
        Some(Self {
            member: fields.text("member").map(MemberId),
            name: fields.text("name"),
            seq: fields.number("seq"),
            body: Body::parse(&fields)?,
        })
    }

    /// The release that a guard writes for its dead supervisor: nobody else writes one with that reason, and the guard knows no more
    /// than this. `late_ms`: as in [`Body::Release`].
    #[must_use]
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
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            v: u8,
            member: &'a Option<MemberId>,
            name: &'a Option<Box<str>>,
            seq: Option<u64>,
            #[serde(flatten)]
            body: &'a Body,
        }
        let Self { member, name, seq, body } = self;
        // A struct of strings and numbers always has a JSON form.
        serde_json::to_vec(&Line { v: 1, member, name, seq: *seq, body }).unwrap_or_default()
    }

    /// Whether the record makes sense at `offset`: it speaks only of what came before it.
    #[must_use]
    pub fn makes_sense_at(&self, offset: Offset) -> bool {
        match self.body {
            Body::Claim { after, lease_ms, .. } => (-1..offset).contains(&after) && LEASE_MS.contains(&lease_ms),
            Body::Beat { term, seen, lease_ms, .. } => {
                0 <= term && term <= seen && seen < offset && LEASE_MS.contains(&lease_ms)
            }
            Body::Release { term, seen, .. } => 0 <= term && term <= seen && seen < offset,
            Body::Request { what: What::Resign, term, .. } => term.is_some_and(|term| (0..offset).contains(&term)),
            Body::Request { what: What::End, .. } => true,
            // A hello under the election's key is no word of the election's.
            Body::Hello { .. } => false,
        }
    }
}

impl Body {
    fn parse(fields: &Fields<'_>) -> Option<Self> {
        Some(match fields.0.get("kind")?.as_str()? {
            "beat" => Self::Beat {
                term: fields.offset("term")?,
                seen: fields.offset("seen")?,
                lease_ms: fields.number("lease_ms")?,
                state: fields.enum_value("state"),
                pid: fields.number("pid"),
                attempt: fields.number("attempt"),
                since_ms: fields.number("since_ms"),
                overlap: Overlap::parse(fields),
            },
            "claim" => Self::Claim {
                after: fields.offset("after")?,
                lease_ms: fields.number("lease_ms")?,
                overlap: Overlap::parse(fields),
            },
            "hello" => Self::Hello {
                host: fields.text("host"),
                pid: fields.number("pid"),
                version: fields.text("version"),
                elector: fields.text("elector"),
                group_member: fields.text("group_member"),
                priority: fields.number("priority").unwrap_or_default(),
                overlap_ms: fields.number("overlap_ms"),
                waits_ms: fields.number("waits_ms"),
                leaves: fields.flag("leaves"),
            },
            "release" => Self::Release {
                term: fields.offset("term")?,
                seen: fields.offset("seen")?,
                why: fields.text("why"),
                exit: fields.number("exit"),
                late_ms: fields.number("late_ms"),
                group_member: fields.text("group_member"),
                once: fields.text("once"),
                successor: fields.text("successor").map(MemberId),
            },
            "request" => Self::Request {
                what: fields.enum_value("what")?,
                term: fields.offset("term"),
                by: fields.text("by"),
                reason: fields.text("reason"),
            },
            _ => return None,
        })
    }

    /// What a claim or a beat tells of `--overlap`.
    #[must_use]
    pub const fn overlap(&self) -> Option<Overlap> {
        match self {
            Self::Beat { overlap, .. } | Self::Claim { overlap, .. } => *overlap,
            Self::Hello { .. } | Self::Release { .. } | Self::Request { .. } => None,
        }
    }

    /// The lease that the record tells of.
    #[must_use]
    pub fn lease(&self) -> Option<Duration> {
        match self {
            Self::Beat { lease_ms, .. } | Self::Claim { lease_ms, .. } => Some(Duration::from_millis(*lease_ms)),
            Self::Hello { .. } | Self::Release { .. } | Self::Request { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
