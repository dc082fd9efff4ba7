//! The data about a candidate in its hello.

use alloc::boxed::Box;

use super::{Body, MemberId, Record};

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
