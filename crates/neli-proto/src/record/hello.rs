//! The data about a candidate in its hello.

use alloc::boxed::Box;

use alloc::vec::Vec;

use serde::Serialize;

use super::fields::Fields;
use super::{Body, MemberId, Record};

/// The value of `asks` in a question to all candidates.
const ALL: &str = "all";

/// A question to all candidates of a group: a hello without a writer, which each of them answers with its own.
#[must_use]
pub fn question(by: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        v: u8,
        kind: &'static str,
        name: &'a str,
        asks: &'static str,
    }
    // A struct of strings and numbers can always be written as JSON.
    serde_json::to_vec(&Line { v: 1, kind: "hello", name: by, asks: ALL }).unwrap_or_default()
}

/// Whether this is such a question.
#[must_use]
pub fn is_question(line: &[u8]) -> bool {
    let is_one = |fields: Fields| {
        fields.str("kind") == Some("hello") && fields.member("member").is_none() && fields.str("asks") == Some(ALL)
    };
    Fields::parse(line).is_some_and(is_one)
}

/// A hello, whose writer is a candidate of the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Hello {
    /// The writer's member id.
    pub member: MemberId,
    /// The writer's member id in the consumer group, if it is a member.
    pub group_member: Option<Box<str>>,
    /// The writer's name.
    pub name: Option<Box<str>>,
    /// `--priority`: a higher one claims first.
    pub priority: u16,
    /// Whether `--overlap` was given.
    pub overlaps: bool,
    /// Whether the writer is leaving.
    pub leaves: bool,
}

impl Record {
    /// Whether the record is a hello whose writer is leaving.
    #[must_use]
    pub const fn is_last_hello(&self) -> bool {
        matches!(self.body, Body::Hello { leaves: true, .. })
    }

    /// Converts a record under the hello's key; `None` if it does not contain its writer.
    #[must_use]
    pub fn into_hello(self) -> Option<Hello> {
        let (group_member, priority, overlaps, leaves) = match self.body {
            Body::Hello { group_member, priority, overlap_ms, leaves, .. } => {
                (group_member, priority, overlap_ms.is_some(), leaves)
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => {
                (None, 0, false, false)
            }
        };
        let name = self.name;
        self.member.map(|member| Hello { member, group_member, name, priority, overlaps, leaves })
    }
}
