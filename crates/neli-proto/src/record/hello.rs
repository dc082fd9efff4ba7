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
    /// It goes.
    pub leaves: bool,
}

impl Record {
    /// Whether it is a hello that says that its writer goes.
    #[must_use]
    pub const fn is_last_hello(&self) -> bool {
        matches!(self.body, Body::Hello { leaves: true, .. })
    }

    /// What a record under the hello's key tells of its writer; nothing where it does not say who that is.
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
