//! What a hello tells of its writer.

use alloc::boxed::Box;

use super::{Body, MemberId, Record};

/// That a candidate exists.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Hello {
    /// Which.
    pub member: MemberId,
    /// The id by which the group's coordinator knows it, if it is a member.
    pub group_member: Option<Box<str>>,
    /// How it is called.
    pub name: Option<Box<str>>,
    /// `--priority`: who has more claims first.
    pub priority: u16,
    /// `--overlap`: whether it was given.
    pub overlaps: bool,
}

impl Record {
    /// What a record under the hello's key tells of its writer; nothing where it does not say who that is.
    #[must_use]
    pub fn into_hello(self) -> Option<Hello> {
        let (group_member, priority, overlaps) = match self.body {
            Body::Hello { group_member, priority, overlap_ms, .. } => (group_member, priority, overlap_ms.is_some()),
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => (None, 0, false),
        };
        let name = self.name;
        self.member.map(|member| Hello { member, group_member, name, priority, overlaps })
    }
}
