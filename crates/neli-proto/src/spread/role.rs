//! The known state of one role.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Holding, VACANCY_COUNTS};
use crate::precedence::Standing;
use crate::record::MemberId;
use crate::time::Time;

/// More candidates than are likely to be there.
const MOST_THAT_LEFT: usize = 100;

/// The known state of one role.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) holding: Holding,
    /// Since when `holding` has had this value.
    pub(super) since: Time,
    /// The last leader, if it ended without a release.
    pub(super) unreleased: Option<MemberId>,
    /// The last leader other than this process.
    pub(super) last_other: Option<MemberId>,
    /// The candidate that should claim the role when it becomes vacant.
    pub(super) successor: Option<MemberId>,
    /// A candidate that gave the role up. It claims the role only if no other candidate does so for a long time.
    pub(super) given_up_by: Option<MemberId>,
    /// The candidates that do not stand for the role: their lists of roles lack it, their jobs for it have ended, or failed too often, or its
    /// election was ended. The last ones; the others have gone long ago.
    pub(super) left_by: Vec<MemberId>,
    /// The value of the process's counter `taken` when this process took the role.
    pub(super) taken: u64,
    pub(super) standing: Standing,
    /// The claim delay of the last action.
    pub(super) last_delay: LastDelay,
}

/// The claim delay of the last action for a role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LastDelay {
    Nothing,
    Extra(Option<Duration>),
}

impl Role {
    /// A role of which nothing is known yet.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            holding: Holding::Unknown,
            since: now,
            unreleased: None,
            last_other: None,
            successor: None,
            given_up_by: None,
            left_by: Vec::new(),
            taken: 0,
            standing: Standing::Unknown,
            last_delay: LastDelay::Nothing,
        }
    }

    /// Notes that this candidate does not stand for the role, or no longer.
    pub(super) fn note_left(&mut self, by: &MemberId) {
        self.left_by.retain(|known| known != by);
        if self.left_by.len() == MOST_THAT_LEFT {
            self.left_by.remove(0);
        }
        self.left_by.push(by.clone());
    }

    /// Notes the present holder of the role. Returns the previous leader if it was replaced without a release.
    pub(super) fn becomes(&mut self, now: Time, holding: Holding) -> Option<MemberId> {
        let mut silent = None;
        if !matches!(holding, Holding::Vacant { .. }) {
            self.given_up_by = None;
        }
        match &holding {
            Holding::Held { by } => {
                silent = self.unreleased.replace(by.clone()).filter(|before| before != by);
                self.last_other = Some(by.clone());
            }
            Holding::Leading => silent = self.unreleased.take(),
            Holding::Vacant { successor } => {
                self.unreleased = None;
                if successor.is_some() {
                    self.successor.clone_from(successor);
                }
            }
            // A claim while another term is current is possible only after that term's leader was silent for its lease.
            Holding::Claiming => silent.clone_from(&self.unreleased),
            Holding::Done | Holding::Ending | Holding::Unknown => {}
        }
        self.holding = holding;
        self.since = now;
        silent
    }

    /// The leader according to the journal, if it is not this process.
    pub(super) const fn leader(&self) -> Option<&MemberId> {
        match &self.holding {
            Holding::Held { by } => Some(by),
            Holding::Claiming
            | Holding::Done
            | Holding::Ending
            | Holding::Leading
            | Holding::Unknown
            | Holding::Vacant { .. } => None,
        }
    }

    /// Whether a candidate is expected to lead the role shortly, if it is vacant. A role that this process has left is
    /// counted by `may_be_held`.
    pub(super) fn counts(&self, now: Time) -> bool {
        match self.holding {
            Holding::Vacant { .. } => now.since(self.since) < VACANCY_COUNTS,
            Holding::Done => false,
            Holding::Claiming | Holding::Ending | Holding::Held { .. } | Holding::Leading | Holding::Unknown => true,
        }
    }

    /// Whether this process has left the role, and this other candidate, if it is there, may lead it.
    pub(super) fn may_be_held(&self, other: &MemberId) -> bool {
        self.holding == Holding::Done && !self.left_by.contains(other)
    }

    /// When the role stops counting in the shares, if its holder does not change.
    pub(super) fn stops_counting_at(&self) -> Option<Time> {
        matches!(self.holding, Holding::Vacant { .. }).then(|| self.since + VACANCY_COUNTS)
    }
}
