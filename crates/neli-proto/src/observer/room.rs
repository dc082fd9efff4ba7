//! Whether the standbys may lead another role, by the `--max-roles` of each.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{KnownCandidate, Standby};

/// The limits of candidates that together may lead fewer roles than there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoRoom {
    /// The number of candidates.
    pub candidates: usize,
    /// The number of roles that they may lead together.
    pub most: u32,
    /// The values of `--max-roles`, without repetition.
    pub max_roles: BTreeSet<u32>,
}

impl NoRoom {
    /// For a role without a leader: the limits of its standbys, if all of them together may lead fewer than `roles` roles; `None` if they
    /// may lead enough or one of them has no limit. A candidate that leads another role is a standby of this one.
    #[must_use]
    pub fn of(standbys: &[Standby<'_>], roles: u32) -> Option<Self> {
        Self::of_limits(standbys.iter().map(|standby| standby.candidate.max_roles), roles)
    }

    /// For a role with a leader: the limits of all candidates, if they may lead no more than `roles` roles together.
    /// While all of these are led, no standby may lead this one too.
    #[must_use]
    pub fn for_successor(standbys: &[Standby<'_>], leader: &KnownCandidate, roles: u32) -> Option<Self> {
        let candidates = standbys.iter().map(|standby| standby.candidate).chain([leader]);
        Self::of_limits(candidates.map(|candidate| candidate.max_roles), roles.saturating_add(1))
    }

    fn of_limits(limits: impl Iterator<Item = Option<u32>>, roles: u32) -> Option<Self> {
        let limits: Option<Vec<u32>> = limits.collect();
        let limits = limits.filter(|limits| !limits.is_empty())?;
        let most = limits.iter().fold(0, |most: u32, limit| most.saturating_add(*limit));
        let is_full = most < roles;
        is_full.then(|| Self { candidates: limits.len(), most, max_roles: limits.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::leadership::Receipt;
    use crate::time::Time;

    fn candidate(max_roles: Option<u32>) -> KnownCandidate {
        KnownCandidate {
            member: "ab".into(),
            name: None,
            host: None,
            pid: None,
            version: None,
            elector: None,
            group_refuses: None,
            priority: 0,
            has_many_roles: true,
            max_roles,
            overlaps: false,
            undecided_for: Duration::ZERO,
            received: Receipt { read: Time::from_nanos(1), written_ms: None, is_live: true },
        }
    }

    #[test]
    fn a_successor_has_room_unless_all_limits_together_are_used_up() {
        for (leader, other, is_full) in
            [(Some(1), Some(1), true), (Some(2), Some(1), false), (None, Some(1), false), (Some(1), None, false)]
        {
            let (leader, other) = (candidate(leader), candidate(other));
            let standbys = [Standby { candidate: &other, age: Duration::ZERO, failed_runs: 0 }];
            assert_eq!(NoRoom::for_successor(&standbys, &leader, 2).is_some(), is_full, "{leader:?}, {other:?}");
        }
    }

    fn room(limits: &[Option<u32>], roles: u32) -> Option<(usize, u32, Vec<u32>)> {
        let candidates: Vec<KnownCandidate> = limits.iter().copied().map(candidate).collect();
        let standby = |candidate| Standby { candidate, age: Duration::ZERO, failed_runs: 0 };
        let standbys: Vec<Standby<'_>> = candidates.iter().map(standby).collect();
        let full = NoRoom::of(&standbys, roles)?;
        Some((full.candidates, full.most, full.max_roles.into_iter().collect()))
    }

    #[test]
    fn there_is_room_unless_all_limits_together_are_too_low() {
        assert_eq!(room(&[Some(2), Some(2)], 5), Some((2, 4, [2].into())));
        assert_eq!(room(&[Some(2), Some(1), Some(2)], 6), Some((3, 5, [1, 2].into())));
        assert_eq!(room(&[Some(2), Some(2)], 4), None);
        assert_eq!(room(&[Some(2), None], 9), None, "one without a limit");
        assert_eq!(room(&[], 9), None, "nobody is there");
        assert_eq!(room(&[Some(u32::MAX), Some(1)], u32::MAX), None);
    }
}
