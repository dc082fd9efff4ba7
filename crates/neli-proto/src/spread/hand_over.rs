//! Handing over: a process that holds more than its share stands down in one role after another, each for a candidate that holds less than
//! its share.

use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::plan::Candidates;
use super::{Action, Holding, Spread, VACANCY_COUNTS};
use crate::precedence::Assignment;
use crate::record::MemberId;
use crate::time::Time;

/// A process that holds one role more than others, but not more than the largest share, hands it over only if nothing has changed for this
/// long, because another process may be about to do the same.
const COUNTS_ARE_KNOWN: Duration = Duration::from_millis(300);

impl Spread {
    /// When a role that may not be handed over yet may become due. Only one role is handed over at a time. If no candidate takes it, it is
    /// treated like any other vacancy.
    pub(super) fn hand_over_due(&self) -> Option<Time> {
        if !self.is_on || self.pending.is_some() {
            return None;
        }
        [self.not_before, self.changed_at + COUNTS_ARE_KNOWN].into_iter().filter(|at| *at > self.now).min()
    }

    /// Hands over one role if one is due and none is being handed over.
    pub(super) fn hand_over_if_due(&mut self, candidates: &Candidates) {
        // Of a claim in flight it is not known whether it adds a role.
        let claims = self.roles.iter().any(|role| role.holding == Holding::Claiming);
        if !self.is_on || self.pending.is_some() || self.now < self.not_before || claims {
            return;
        }
        let Some((role, to)) = self.beyond_share(candidates) else {
            self.chosen = None;
            return;
        };
        if self.has_shown_itself(&to) {
            self.actions.push_back(Action::HandOver { role, to: to.clone() });
            (self.chosen, self.pending) = (None, Some((role, to)));
        }
    }

    /// Whether the candidate that is to have a role has given a sign of life since it was chosen. If not, it is asked for one: no job is stopped
    /// for one that has died.
    fn has_shown_itself(&mut self, chosen: &MemberId) -> bool {
        let now = self.now;
        let (id, since) = self.chosen.take_if(|(id, _)| id == chosen).unwrap_or_else(|| (chosen.clone(), now));
        let member = self.members.known(&id);
        let has = member.heard >= Some(since);
        if !has && member.asked(now) {
            self.questions.push_back(id.clone());
        }
        self.chosen = Some((id, since));
        has
    }

    /// A role that this process holds beyond its share, and the candidate that should hold it.
    fn beyond_share(&self, candidates: &Candidates) -> Option<(usize, MemberId)> {
        let mut loads = candidates.loads.clone();
        loop {
            let shares = loads.fair_shares(candidates.total);
            let receiver = loads.receiver(candidates.own, &shares)?;
            let most = shares.iter().max().copied().unwrap_or_default();
            let is_clear = loads.held[candidates.own] > most;
            if !is_clear && self.now < self.changed_at + COUNTS_ARE_KNOWN {
                return None;
            }
            let to = &candidates.ids[receiver];
            if let Some(role) = self.last_taken_for(to) {
                return Some((role, to.clone()));
            }
            // It stands for none of them. Its share is for others.
            loads.most[receiver] = loads.held[receiver];
        }
    }

    /// The role to hand over to this candidate, of those for which it stands: the role taken last has done the least
    /// work. A role that came from the candidate is not sent back while there is another. With the group, a role that is assigned to this
    /// process comes last: it would be the first to claim it when the role is vacant again.
    fn last_taken_for(&self, to: &MemberId) -> Option<usize> {
        let led = self.roles.iter().enumerate().filter(|(_, role)| role.holding == Holding::Leading);
        let led = led.filter(|(_, role)| !role.left_by.contains(to));
        let key = |role: &Role| (role.last_other.as_ref() != Some(to), role.assignment != Assignment::Own, role.since);
        led.max_by_key(|(_, role)| key(role)).map(|(role, _)| role)
    }

    /// Notes whether the candidate took the role that was handed over to it, once that is known. If this process leads it again, or it is vacant for
    /// a long time, the candidate did not. `changed`: the role whose holder has just changed.
    pub(super) fn look_at_pending(&mut self, changed: Option<usize>) {
        let now = self.now;
        let is_over = |number: usize| match self.roles[number].holding {
            Holding::Done | Holding::Held { .. } => true,
            // It still leads a role that it has not begun to hand over.
            Holding::Leading => changed == Some(number),
            Holding::Vacant { .. } => !self.roles[number].counts(now),
            Holding::Claiming | Holding::Ending | Holding::Unknown => false,
        };
        let Some((role, to)) = self.pending.take_if(|(role, _)| is_over(*role)) else { return };
        let role = &self.roles[role];
        match self.members.all.get_mut(&to) {
            Some(member) if role.leader() == Some(&to) => member.not_taken = 0,
            Some(member) if role.holding != Holding::Done => member.took_nothing(now),
            Some(_) | None => {}
        }
    }
}

// ---- the known state of one role -----------------------------------------------------------------------------------

/// More candidates than are likely to be there.
const MOST_THAT_LEFT: usize = 100;

/// The known state of one role.
#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    pub(super) holding: Holding,
    /// Since when `holding` has had this value; of a role that is led, when this process took it.
    pub(super) since: Time,
    /// The last leader other than this process.
    pub(super) last_other: Option<MemberId>,
    /// The candidate that should claim the role when it becomes vacant.
    pub(super) successor: Option<MemberId>,
    /// A candidate that gave the role up. It claims the role only if no other candidate does so for a long time.
    pub(super) given_up_by: Option<MemberId>,
    /// The candidates that do not stand for the role: their lists of roles lack it, their jobs for it have ended, or failed too often, or its
    /// election was ended. The last ones; the others have gone long ago.
    pub(super) left_by: Vec<MemberId>,
    pub(super) assignment: Assignment,
    /// The claim delay of the last action, if there was one.
    pub(super) delay: Option<Duration>,
    pub(super) is_told: bool,
}

impl Role {
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
        if !matches!(holding, Holding::Vacant { .. }) {
            self.given_up_by = None;
        }
        if let Holding::Held { by } = &holding {
            self.last_other = Some(by.clone());
        } else if let Holding::Vacant { successor: Some(successor) } = &holding {
            self.successor = Some(successor.clone());
        }
        self.since = now;
        match (mem::replace(&mut self.holding, holding), &self.holding) {
            // A claim while another term is current is possible only after that term's leader was silent for its lease.
            (Holding::Held { by }, Holding::Claiming | Holding::Leading) => Some(by),
            (Holding::Held { by }, Holding::Held { by: next }) if by != *next => Some(by),
            _ => None,
        }
    }

    /// The leader according to the journal, if it is not this process.
    pub(super) const fn leader(&self) -> Option<&MemberId> {
        if let Holding::Held { by } = &self.holding { Some(by) } else { None }
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
