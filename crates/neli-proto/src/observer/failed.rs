//! How often in a row the runs of each candidate have failed.

use alloc::collections::BTreeMap;

use crate::record::{MemberId, Why};

/// With more candidates than this, those that are gone are forgotten: a process that is started again and again has a new member id each time.
const MOST: usize = 1_000;

/// The failed runs of each candidate since its last run that succeeded.
#[derive(Clone, Debug)]
pub(super) struct FailedRuns {
    by_member: BTreeMap<MemberId, u32>,
}

impl FailedRuns {
    pub(super) const fn new() -> Self {
        Self { by_member: BTreeMap::new() }
    }

    /// Counts the run that ended with a release. `is_there` tells whether a candidate is known by a recent hello.
    pub(super) fn released(
        &mut self,
        member: &MemberId,
        why: Option<Why>,
        exit: Option<u8>,
        is_there: impl Fn(&MemberId) -> bool,
    ) {
        let Some(Why::Exited | Why::Failed) = why else { return };
        if exit == Some(0) {
            self.by_member.remove(member);
            return;
        }
        *self.by_member.entry(member.clone()).or_default() += 1;
        if self.by_member.len() > MOST {
            self.by_member.retain(|known, _| known == member || is_there(known));
        }
    }

    /// The failed runs of a candidate in a row.
    pub(super) fn of(&self, member: &MemberId) -> u32 {
        self.by_member.get(member).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn of_a_few_candidates_each_is_kept() {
        let mut failed = FailedRuns::new();
        let [one, other] = ["one", "other"].map(MemberId::from);
        for member in [&one, &other, &other] {
            failed.released(member, Some(Why::Failed), Some(1), |_| false);
        }
        assert_eq!([&one, &other].map(|member| failed.of(member)), [1, 2]);
        failed.released(&other, Some(Why::Exited), Some(0), |_| false);
        assert_eq!([&one, &other].map(|member| failed.of(member)), [1, 0]);
    }

    #[test]
    fn of_very_many_candidates_only_those_that_are_there_are_kept() {
        let mut failed = FailedRuns::new();
        let member = |number: usize| MemberId::from(&*format!("m{number}"));
        for number in 0..=MOST {
            failed.released(&member(number), Some(Why::Exited), Some(1), |known| *known == member(7));
        }
        assert_eq!([0, 7, MOST].map(|number| failed.of(&member(number))), [0, 1, 1]);
        assert_eq!(failed.by_member.len(), 2);
    }
}
