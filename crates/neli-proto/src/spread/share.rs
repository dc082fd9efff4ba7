//! Fair shares: the number of roles that each candidate should hold, and the candidate that should take a vacant role.

use alloc::vec::Vec;

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
        let fits = |each: u32| {
            let sum = self.most.iter().map(|most| u64::from(each.min(*most))).sum::<u64>();
            sum <= u64::from(total)
        };
        let (mut fitting, mut beyond) = (0, total.saturating_add(1));
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                beyond = middle;
            }
        }
        fitting
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
        let can_have = |index: &usize| self.has_room(*index) && !left_by.contains(index);
        let in_turn = (0..count).map(|step| (role + step) % count).filter(can_have);
        let others = in_turn.filter(|&index| Some(index) != given_up_by);
        let highest = others.clone().map(|index| self.priority[index]).max();
        let others = others.filter(|&index| Some(self.priority[index]) == highest);
        let below_share = others.clone().find(|&index| self.held[index] < shares[index]);
        below_share.or_else(|| others.min_by_key(|&index| self.held[index])).or_else(|| given_up_by.filter(can_have))
    }

    /// Whether a candidate has room for one more role.
    pub(super) fn has_room(&self, index: usize) -> bool {
        self.held[index] < self.most[index]
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
