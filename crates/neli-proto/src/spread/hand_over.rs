//! Handing over: whoever holds more than its share stands down in one role after the other, each for somebody who holds less than his.

use core::time::Duration;

use super::plan::Candidates;
use super::{Action, By, HandedOver, Holding, Role, Spread, VACANCY_COUNTS};
use crate::precedence::Standing;
use crate::record::MemberId;
use crate::time::Time;

/// After somebody has come or gone nothing is handed over for so long: everybody is to know of it.
const CANDIDATES_ARE_KNOWN: Duration = Duration::from_secs(1);

/// Who holds one role more than others, and not more than anybody may, hands it over only when nothing has changed for so long:
/// another may be about to do it.
const COUNTS_ARE_KNOWN: Duration = Duration::from_millis(300);

/// The group has assigned a partition to another for so long before its roles are handed over: it may be about to come back.
const ASSIGNMENT_IS_KNOWN: Duration = Duration::from_secs(1);

/// What another gave up is handed to it again only when nothing else has changed for so long: that may make shares fair as well.
const SHARES_ARE_SETTLED: Duration = Duration::from_secs(10);

impl Spread {
    /// Nothing is handed over until all others have learnt who is there.
    pub(super) fn await_others(&mut self, now: Time) {
        self.not_before = now + CANDIDATES_ARE_KNOWN;
    }

    /// When a role may have to be handed over that may not yet be. While one is being handed over none is; where nobody takes that one, it
    /// is looked at as each vacancy is.
    pub(super) fn hand_over_due(&self) -> Option<Time> {
        if !self.is_on || self.pending.is_some() {
            return None;
        }
        let counts = self.changed_at + COUNTS_ARE_KNOWN;
        let shares = self.changed_otherwise_at + SHARES_ARE_SETTLED;
        let assigned = |role: &Role| {
            let is_elsewhere = role.standing == Standing::Elsewhere && role.holding == Holding::Leading;
            let known = role.standing_since + ASSIGNMENT_IS_KNOWN;
            is_elsewhere.then(|| role.kept.ends().map(|end| end.max(known)))
        };
        let assignments = self.roles.iter().filter(|_| self.by == By::Assignment).filter_map(assigned).flatten();
        [self.not_before, counts, shares].into_iter().chain(assignments).filter(|at| *at > self.now).min()
    }

    /// Hands over one role, if one is to be and none is being handed over.
    pub(super) fn hand_over_if_due(&mut self, candidates: &Candidates) {
        if !self.is_on || self.pending.is_some() || self.now < self.not_before {
            return;
        }
        let next = match self.by {
            By::Assignment => self.assigned_elsewhere(candidates).map(|role| HandedOver { role, to: None }),
            By::Count => self.beyond_share(candidates),
        };
        if let Some(HandedOver { role, to }) = next {
            self.roles[role].kept.offered();
            self.actions.push_back(Action::HandOver { role, to: to.clone() });
            self.pending = Some(HandedOver { role, to });
        }
    }

    /// A role that this process holds beyond its share, and who is to have it.
    fn beyond_share(&self, candidates: &Candidates) -> Option<HandedOver> {
        let shares = candidates.shares();
        let receiver = candidates.loads.receiver(candidates.own, &shares)?;
        let most = shares.iter().max().copied().unwrap_or_default();
        let is_clear = candidates.loads.held[candidates.own] > most;
        if !is_clear && self.now < self.changed_at + COUNTS_ARE_KNOWN {
            return None;
        }
        let to = &candidates.ids[receiver];
        let led = self.roles.iter().enumerate().filter(|(_, role)| role.holding == Holding::Leading);
        // The one that was taken last has done the least; but what has come from there is not sent back, where there is another.
        let last = led.max_by_key(|(_, role)| (role.last_other.as_ref() != Some(to), role.taken));
        last.map(|(role, _)| HandedOver { role, to: Some(to.clone()) })
    }

    /// A role that this process holds although the group has assigned its partition to another. Where somebody takes no more than so
    /// many roles, it may be one that he has left to others.
    fn assigned_elsewhere(&self, candidates: &Candidates) -> Option<usize> {
        if self.members.all().iter().any(|member| member.max_roles.is_some()) {
            return None;
        }
        let are_settled = self.now >= self.changed_otherwise_at + SHARES_ARE_SETTLED;
        let are_fair = !are_settled || candidates.loads.is_fair_to_others(candidates.own);
        self.roles.iter().position(|role| {
            role.holding == Holding::Leading
                && role.standing == Standing::Elsewhere
                && self.now >= role.standing_since + ASSIGNMENT_IS_KNOWN
                && role.kept.is_over(self.now, are_fair)
        })
    }

    /// A role's holder has changed: whether the one that was being handed over has been taken.
    pub(super) fn hand_over_seen(&mut self, now: Time, number: usize) {
        let Some(pending) = self.pending.take_if(|pending| pending.role == number) else { return };
        match &self.roles[number].holding {
            Holding::Held { by } => {
                let by = by.clone();
                self.settle(now, &pending, Some(&by));
            }
            // Nobody else has taken it.
            Holding::Leading => self.settle(now, &pending, None),
            Holding::Claiming | Holding::Ending | Holding::Unknown | Holding::Vacant { .. } => {
                self.pending = Some(pending);
            }
            Holding::Done => {}
        }
    }

    /// A role that nobody has taken for long is waited for no more.
    pub(super) fn give_up_pending(&mut self) {
        let now = self.now;
        let is_over = |pending: &mut HandedOver| {
            let role = &self.roles[pending.role];
            matches!(role.holding, Holding::Vacant { .. }) && now.since(role.since) >= VACANCY_COUNTS
        };
        if let Some(pending) = self.pending.take_if(is_over) {
            self.settle(now, &pending, None);
        }
    }

    /// Takes note of who has taken what was handed over.
    fn settle(&mut self, now: Time, pending: &HandedOver, taken_by: Option<&MemberId>) {
        if let Some(to) = &pending.to
            && let Some(member) = self.members.by_id(to)
        {
            if taken_by == Some(to) {
                member.succeeded();
            } else {
                member.failed(now);
            }
        }
    }
}
