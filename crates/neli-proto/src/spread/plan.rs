//! The plan: the living candidates, the number of roles that each should hold, the candidate that should take each vacancy, and the
//! resulting claim delays of this process.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Action, DELAY_PER_ROLE, Holding, PATIENCE, ROLES_COUNTED, Role, Spread};
use crate::precedence::Assignment;
use crate::record::MemberId;
use crate::time::Time;

/// After a candidate has joined or left, no role is handed over for this long, so that all candidates learn of the change first.
const CANDIDATES_ARE_KNOWN: Duration = Duration::from_secs(1);

/// The living candidates in the order of their ids, and the roles of each.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) ids: Vec<MemberId>,
    /// The index of this process.
    pub(super) own: usize,
    /// The number of roles of each, including those that it is about to claim.
    pub(super) loads: Loads,
    /// The number of roles to share.
    pub(super) total: u32,
    /// The candidate that leads each role, if it is not this process.
    leaders: Vec<Option<usize>>,
}

impl Candidates {
    fn index(&self, id: &MemberId) -> Option<usize> {
        self.ids.binary_search(id).ok()
    }

    /// Those that do not stand for this role any more.
    pub(super) fn that_left(&self, role: &Role) -> Vec<usize> {
        role.left_by.iter().filter_map(|id| self.index(id)).collect()
    }

    pub(super) fn shares(&self) -> Vec<u32> {
        self.loads.fair_shares(self.total)
    }

    /// The part of the claim delay that grows with the number of roles that this process holds.
    fn own_delay(&self) -> Duration {
        let held = &self.loads.held;
        let fewest = held.iter().min().copied().unwrap_or_default();
        DELAY_PER_ROLE * held[self.own].saturating_sub(fewest).min(ROLES_COUNTED)
    }
}

impl Spread {
    /// Computes the plan again from all known data.
    pub(super) fn plan(&mut self) {
        self.is_planned = true;
        let now = self.now;
        self.take_back_delays();
        // A candidate that did not take its role in time gets no role in this plan either.
        self.look_at_pending(None);
        self.members.note_unresponsive(now);
        let mut candidates = self.count_candidates(now);
        if candidates.ids != self.candidates {
            self.candidates.clone_from(&candidates.ids);
            // Until all other candidates know which candidates are alive.
            self.not_before = now + CANDIDATES_ARE_KNOWN;
        }
        self.give_vacancies(&mut candidates, now);
        self.name_successors(&candidates);
        self.tell_delays(&candidates);
        self.hand_over_if_due(&candidates);
    }

    /// Computes again the claim delays that were not returned yet: after a claim of one role there may be no room for another.
    fn take_back_delays(&mut self) {
        let roles = &mut self.roles;
        self.actions.retain(|action| {
            let Action::Delay { role, .. } = action else { return true };
            roles[*role].is_told = false;
            false
        });
    }

    /// The living candidates, and the roles of each.
    fn count_candidates(&mut self, now: Time) -> Candidates {
        self.count_held(now);
        let left: Vec<&Role> = self.roles.iter().filter(|role| role.holding == Holding::Done).collect();
        let count_left =
            |by: &dyn Fn(&Role) -> bool| u32::try_from(left.iter().filter(|role| by(role)).count()).unwrap_or(u32::MAX);
        let mut candidates = Candidates::default();
        // Roles are added at the end of a list, so the longest of the others has all of them.
        let mut beyond = 0;
        for (id, member) in &self.members.all {
            let is_own = *id == self.member;
            if !is_own && !member.is_there(now) {
                continue;
            }
            if is_own {
                candidates.own = candidates.ids.len();
            }
            candidates.ids.push(id.clone());
            // Which of the others lead the roles that this process has left, or does not have, is not known here: each of them may.
            let elsewhere = if is_own { 0 } else { count_left(&|role| role.may_be_held(id)) };
            let held = member.held.saturating_add(elsewhere).saturating_add(member.other_roles);
            beyond = beyond.max(member.other_roles);
            candidates.loads.held.push(held);
            candidates.loads.most.push(self.members.most(now, member, held, is_own));
            candidates.loads.priority.push(member.priority);
        }
        let others = || candidates.ids.iter().filter(|id| **id != self.member);
        let elsewhere = count_left(&|role| others().any(|id| role.may_be_held(id)));
        let counted = self.roles.iter().filter(|role| role.counts(now)).count();
        candidates.total = u32::try_from(counted).unwrap_or(u32::MAX).saturating_add(elsewhere).saturating_add(beyond);
        candidates.leaders =
            self.roles.iter().map(|role| role.leader().and_then(|leader| candidates.index(leader))).collect();
        candidates
    }

    /// Counts the roles of each known candidate. Every leader is known.
    fn count_held(&mut self, now: Time) {
        let (own, roles) = (&self.member, &self.roles);
        self.members.forget_gone(now, |id| id == own || roles.iter().any(|role| role.leader() == Some(id)));
        self.members.all.values_mut().for_each(|member| member.held = 0);
        for role in roles {
            let holder = if role.holding.is_own() { Some(own) } else { role.leader() };
            if let Some(holder) = holder {
                self.members.known(holder).held += 1;
            }
        }
    }

    /// Chooses a successor for each role that is vacant or whose holder has gone. A role keeps its present successor if possible, unless that one
    /// would get more than its share: several leaders may have named it at once, or the group may have given it others.
    fn give_vacancies(&mut self, candidates: &mut Candidates, now: Time) {
        let is_vacant = |number: &usize| match &self.roles[*number].holding {
            Holding::Held { .. } => candidates.leaders[*number].is_none(),
            Holding::Vacant { .. } => true,
            Holding::Claiming | Holding::Done | Holding::Ending | Holding::Leading | Holding::Unknown => false,
        };
        let vacant = (0..self.roles.len()).filter(is_vacant);
        let (counted, long_vacant): (Vec<usize>, Vec<usize>) =
            vacant.partition(|number| self.roles[*number].counts(now));
        for number in long_vacant {
            self.roles[number].successor = None;
        }
        let shares = candidates.shares();
        let mut without_successor = Vec::new();
        for number in self.take_assigned(candidates, shares[candidates.own], counted) {
            let role = &self.roles[number];
            let present = role.successor.as_ref().filter(|successor| role.given_up_by.as_ref() != Some(successor));
            let successor = present
                .and_then(|successor| candidates.index(successor))
                .filter(|&successor| candidates.loads.held[successor] < shares[successor])
                .filter(|successor| !candidates.that_left(role).contains(successor));
            match successor {
                Some(successor) => candidates.loads.held[successor] += 1,
                None => without_successor.push(number),
            }
        }
        let shares = candidates.shares();
        for number in without_successor {
            let given_up_by = self.roles[number].given_up_by.as_ref().and_then(|member| candidates.index(member));
            let left_by = candidates.that_left(&self.roles[number]);
            let successor = candidates.loads.successor(number, &shares, &left_by, given_up_by);
            if let Some(successor) = successor {
                candidates.loads.held[successor] += 1;
            }
            self.roles[number].successor = successor.map(|successor| candidates.ids[successor].clone());
        }
    }

    /// Of these vacant roles, chooses this process for those whose partitions the group has assigned to it, up to its share. It has given up none
    /// of them, and no release names another. Returns the rest.
    fn take_assigned(&mut self, candidates: &mut Candidates, share: u32, vacant: Vec<usize>) -> Vec<usize> {
        let own = candidates.own;
        let mut is_left = |number: &usize| {
            let role = &mut self.roles[*number];
            let is_named = matches!(role.holding, Holding::Vacant { successor: Some(_) });
            let is_assigned = role.assignment == Assignment::Own && role.given_up_by.as_ref() != Some(&self.member);
            let takes = is_assigned && !is_named && candidates.loads.held[own] < share;
            if takes {
                candidates.loads.held[own] += 1;
                role.successor = Some(self.member.clone());
            }
            !takes
        };
        vacant.into_iter().filter(|number| is_left(number)).collect()
    }

    /// For each role of another candidate, chooses the candidate that should hold it if that one goes.
    fn name_successors(&mut self, candidates: &Candidates) {
        let mut without: Vec<Option<(Loads, Vec<u32>)>> = alloc::vec![None; candidates.ids.len()];
        for (number, role) in self.roles.iter_mut().enumerate() {
            let Some(leader) = candidates.leaders[number].filter(|&leader| leader != candidates.own) else { continue };
            let (loads, shares) = without[leader].get_or_insert_with(|| {
                let loads = candidates.loads.without(leader);
                let shares = loads.fair_shares(candidates.total);
                (loads, shares)
            });
            let successor = loads.successor(number, shares, &candidates.that_left(role), None);
            if let Some(successor) = successor {
                loads.held[successor] += 1;
            }
            let successor = successor.map(|successor| &candidates.ids[successor]);
            if role.successor.as_ref() != successor {
                role.successor = successor.cloned();
            }
        }
    }

    /// Returns each claim delay that has changed. The delay of a role that this process holds is not changed, because it has no effect.
    fn tell_delays(&mut self, candidates: &Candidates) {
        let own_held = self.roles.iter().filter(|role| role.holding.is_own()).count();
        let max_roles = self.members.known(&self.member).max_roles;
        let has_room = max_roles.is_none_or(|most| usize::try_from(most).is_ok_and(|most| own_held < most));
        let patience = PATIENCE + candidates.own_delay();
        for (number, role) in self.roles.iter_mut().enumerate() {
            let is_own = role.successor.as_ref() == Some(&self.member);
            let extra = has_room.then_some(if is_own { Duration::ZERO } else { patience });
            let is_told = role.is_told && (role.delay == extra || role.holding.is_own());
            if !is_told && role.holding != Holding::Done {
                (role.delay, role.is_told) = (extra, true);
                self.actions.push_back(Action::Delay { role: number, extra });
            }
        }
    }
}

// Fair shares: the number of roles that each candidate should hold, and the candidate that should take a vacant role.

/// The number of roles that each candidate holds, and the most that it takes, in the order of their ids, which is the same for every
/// process.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    /// The number of roles of each, including those that it is about to claim.
    pub(super) held: Vec<u32>,
    /// The most that each takes.
    pub(super) most: Vec<u32>,
    /// The priority of each.
    pub(super) priority: Vec<u16>,
}

impl Loads {
    /// The number of `total` roles that each should hold, as equal as the limits allow. If they can't be equal, some hold one more: first
    /// those that hold that number already, since that needs the fewest moves; then those with the lowest ids, so that the choice does not
    /// change while roles are handed over.
    pub(super) fn fair_shares(&self, total: u32) -> Vec<u32> {
        let each = self.level(total);
        let mut shares: Vec<u32> = self.most.iter().map(|most| each.min(*most)).collect();
        let placed = shares.iter().fold(0_u32, |sum, share| sum.saturating_add(*share));
        let mut with_room: Vec<usize> = (0..shares.len()).filter(|&index| self.most[index] > each).collect();
        with_room.sort_by_key(|&index| self.held[index] <= each);
        let rest = usize::try_from(total.saturating_sub(placed)).unwrap_or(usize::MAX);
        for index in with_room.into_iter().take(rest) {
            shares[index] += 1;
        }
        shares
    }

    /// The largest number that every candidate can get, each up to its limit.
    fn level(&self, total: u32) -> u32 {
        let mut limits = self.most.clone();
        limits.sort_unstable();
        let (mut rest, count) = (total, u32::try_from(limits.len()).unwrap_or(u32::MAX));
        // What those with the lowest limits can't take is for the others.
        for (limit, count) in limits.into_iter().zip((1..=count).rev()) {
            if limit > rest / count {
                return rest / count;
            }
            rest -= limit;
        }
        total
    }

    /// The candidate that should have `role`, one of the highest priority. Among those below their share the role's number decides, so that
    /// the order in which roles become vacant does not matter; otherwise the candidate that holds the fewest. The candidate that gave the
    /// role up is chosen only if no other can have it. None if nobody that stands for it (`left_by` do not) has room.
    pub(super) fn successor(
        &self,
        role: usize,
        shares: &[u32],
        left_by: &[usize],
        given_up_by: Option<usize>,
    ) -> Option<usize> {
        let count = self.held.len();
        let can_have = |index: &usize| self.held[*index] < self.most[*index] && !left_by.contains(index);
        let in_turn = (0..count).map(|step| (role + step) % count).filter(can_have);
        let others = in_turn.filter(|&index| Some(index) != given_up_by);
        let highest = others.clone().map(|index| self.priority[index]).max();
        let others = others.filter(|&index| Some(self.priority[index]) == highest);
        let below_share = others.clone().find(|&index| self.held[index] < shares[index]);
        below_share.or_else(|| others.min_by_key(|&index| self.held[index])).or_else(|| given_up_by.filter(can_have))
    }

    /// The loads without one candidate, whose roles are to be shared by the others.
    pub(super) fn without(&self, index: usize) -> Self {
        let mut others = self.clone();
        others.held[index] = 0;
        others.most[index] = 0;
        others
    }

    /// The candidate to which `giver` should hand over one role. The n-th role above a share goes to the n-th gap below one, both counted
    /// in the order of ids, so that two givers never choose the same gap. `None` if `giver` holds no more than its share.
    pub(super) fn receiver(&self, giver: usize, shares: &[u32]) -> Option<usize> {
        let beyond = |index: usize| self.held[index].saturating_sub(shares[index]);
        if beyond(giver) == 0 {
            return None;
        }
        let mut skipped: u32 = (0..giver).map(beyond).sum();
        (0..shares.len()).find(|&index| {
            let gap = shares[index].saturating_sub(self.held[index]);
            let is_mine = gap > skipped;
            skipped = skipped.saturating_sub(gap);
            is_mine
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn loads(held: &[u32]) -> Loads {
        Loads { held: held.to_vec(), most: vec![u32::MAX; held.len()], priority: vec![0; held.len()] }
    }

    #[test]
    fn shares_differ_by_one_at_most_and_a_holder_of_one_more_keeps_it() {
        assert_eq!(loads(&[0, 0, 0]).fair_shares(9), [3, 3, 3]);
        assert_eq!(loads(&[1, 0, 4]).fair_shares(5), [2, 1, 2]);
        assert_eq!(loads(&[0, 0, 0]).fair_shares(2), [1, 1, 0]);
        assert_eq!(loads(&[2, 2]).fair_shares(0), [0, 0]);
        for held in [[3, 4, 0], [3, 3, 1], [3, 2, 2]] {
            assert_eq!(loads(&held).fair_shares(7), [3, 2, 2], "the same all along");
        }
    }

    #[test]
    fn a_limit_gives_the_others_more() {
        let limited = |held: &[u32], most: &[u32]| Loads { most: most.to_vec(), ..loads(held) };
        assert_eq!(limited(&[0, 0, 0], &[1, 9, 9]).fair_shares(9), [1, 4, 4]);
        assert_eq!(limited(&[0, 0], &[1, 2]).fair_shares(9), [1, 2], "what nobody may take stays vacant");
        assert_eq!(limited(&[3, 0], &[1, u32::MAX]).fair_shares(3), [1, 2]);
        assert_eq!(limited(&[0, 0, 0], &[2, 9, 9]).fair_shares(7), [2, 3, 2], "one more is for those that may take it");
        assert_eq!(limited(&[1, 2], &[1, 2]).successor(5, &[1, 2], &[], None), None);
    }

    #[test]
    fn a_vacant_role_goes_by_its_number_to_one_below_its_share() {
        let three = loads(&[0, 0, 0]);
        let shares = three.fair_shares(6);
        let successors: Vec<_> = (0..6).map(|role| three.successor(role, &shares, &[], None).unwrap()).collect();
        assert_eq!(successors, [0, 1, 2, 0, 1, 2]);
        assert_eq!(loads(&[2, 1, 2]).successor(0, &[2, 2, 2], &[], None), Some(1));
        assert_eq!(loads(&[3, 2, 2]).successor(0, &[2, 2, 2], &[], None), Some(1), "nobody is below its share");
        assert_eq!(loads(&[2, 1, 2]).successor(0, &[2, 2, 2], &[], Some(1)), Some(0), "it gave the role up");
        assert_eq!(loads(&[1]).successor(0, &[2], &[], Some(0)), Some(0), "there is nobody else");
        assert_eq!(loads(&[2, 1, 2]).successor(0, &[2, 2, 2], &[1], None), Some(0), "it does not stand for the role");
        assert_eq!(loads(&[1]).successor(0, &[2], &[0], Some(0)), None);
    }

    #[test]
    fn a_vacant_role_goes_to_one_of_the_highest_priority_that_can_have_it() {
        let three = Loads { priority: vec![5, 10, 10], ..loads(&[0, 4, 3]) };
        let shares = three.fair_shares(7);
        let successor = |loads: &Loads, left_by, given_up_by| loads.successor(0, &shares, left_by, given_up_by);
        assert_eq!(successor(&three, &[], None), Some(2), "it holds fewer than the other of that priority");
        assert_eq!(successor(&three, &[], Some(2)), Some(1));
        assert_eq!(successor(&three, &[1, 2], None), Some(0));
        let full = Loads { most: vec![9, 4, 3], ..three };
        assert_eq!(successor(&full, &[], None), Some(0), "the others have no room");
    }

    #[test]
    fn no_two_givers_choose_the_same_gap() {
        let held = loads(&[6, 6, 0, 0]);
        let shares = held.fair_shares(12);
        assert_eq!(shares, [3, 3, 3, 3]);
        assert_eq!(held.receiver(0, &shares), Some(2));
        assert_eq!(held.receiver(1, &shares), Some(3));
        assert_eq!(held.receiver(2, &shares), None);
        let held = loads(&[3, 3, 3, 0]);
        let shares = held.fair_shares(9);
        assert_eq!(shares, [3, 2, 2, 2], "the first of them keeps one more");
        assert_eq!([0, 1, 2].map(|giver| held.receiver(giver, &shares)), [None, Some(3), Some(3)]);
    }
}
