//! `--overlap`: which two jobs may run at the same time, and for how long.

use neli_proto::record::{Body, Offset};

use super::World;
use crate::machine::Machine;

impl World {
    /// Whether the claim of `by` was sent to overlap `term`.
    pub(super) fn is_overlapped(&self, term: Offset, by: Offset) -> bool {
        let claim = self.log.part.at(by).map(|(_, record)| &record.body);
        claim.and_then(Body::overlap).is_some_and(|overlap| overlap.over == Some(term))
    }

    /// Whether these two may have jobs now: the claim of one overlaps the other's term, whose lease has not ended. If the other has
    /// read the claim, and neither it nor its guard was stopped since then, `--overlap` also limits the time since then.
    pub(super) fn may_overlap(&self, one: &Machine, other: &Machine) -> bool {
        let (Some(term), Some(other_term)) = (one.guard.living_term(), other.guard.living_term()) else { return false };
        if term > other_term {
            return self.may_overlap(other, one);
        }
        let is_in_time = one.overlapped_until.is_none_or(|until| self.now <= until + self.setup.guard_late);
        is_in_time && self.is_overlapped(term, other_term) && self.is_leased(term, other_term)
    }

    /// Whether the lease of `term` may still run: its last effective record was sent before the claim of `by`.
    fn is_leased(&self, term: Offset, by: Offset) -> bool {
        let lease = self.log.part.at(term).and_then(|(_, claim)| claim.body.lease());
        let claimed = self.log.part.at(by).map(|(appended, _)| appended);
        claimed.zip(lease).is_some_and(|(claimed, lease)| self.now <= claimed + lease)
    }
}
