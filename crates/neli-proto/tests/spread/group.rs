//! The consumer group: which member each role's partition is assigned to, and when each process is told.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::precedence::Standing;
use neli_proto::record::MemberId;
use neli_proto::spread::By;

use super::world::{Event, World};

/// After a death the group takes the member for gone.
pub(crate) const SESSION: Duration = Duration::from_secs(6);

/// A rebalance takes so long, at most.
const REBALANCE: Duration = Duration::from_millis(110);

/// The coordinator, and the assignor of its members.
pub(crate) struct Group {
    members: BTreeSet<usize>,
    /// To whom the partition of each role is assigned.
    assignment: Vec<Option<usize>>,
}

impl Group {
    pub(crate) fn of(roles: usize) -> Self {
        Self { members: BTreeSet::new(), assignment: vec![None; roles] }
    }

    fn count(&self, member: usize) -> usize {
        self.assignment.iter().filter(|owner| **owner == Some(member)).count()
    }

    /// The member with the fewest partitions.
    fn fewest(&self) -> Option<usize> {
        self.members.iter().copied().min_by_key(|member| self.count(*member))
    }

    /// Takes one partition from whoever has two more than another. Gives the role and who had it.
    fn revoke_one(&mut self) -> Option<(usize, usize)> {
        let fewest = self.count(self.fewest()?);
        let most = self.members.iter().copied().max_by_key(|member| self.count(*member))?;
        let role = self.assignment.iter().rposition(|owner| *owner == Some(most))?;
        (self.count(most) >= fewest + 2).then(|| {
            self.assignment[role] = self.fewest();
            (role, most)
        })
    }
}

impl World {
    pub(crate) fn join_group(&mut self, process: usize) {
        if self.by == By::Assignment {
            self.group.members.insert(process);
            self.await_rebalance();
        }
    }

    pub(crate) fn leave_group(&mut self, process: usize) {
        if self.group.members.remove(&process) {
            self.await_rebalance();
        }
    }

    fn await_rebalance(&mut self) {
        let late = self.up_to(REBALANCE);
        self.at(self.now + late, Event::GroupChanged);
    }

    /// What is free goes to those that have the fewest; then each gives up what it has beyond the others, and is told so before the one
    /// that is given it.
    pub(crate) fn rebalance(&mut self) {
        for role in 0..self.group.assignment.len() {
            if self.group.assignment[role].is_none_or(|owner| !self.group.members.contains(&owner)) {
                self.group.assignment[role] = self.group.fewest();
            }
        }
        while let Some((role, process)) = self.group.revoke_one() {
            let late = self.up_to(REBALANCE);
            self.at(self.now + late, Event::Revoked { process, role });
        }
        for process in self.group.members.clone() {
            let late = REBALANCE + self.up_to(REBALANCE);
            self.at(self.now + late, Event::Assigned { process });
        }
    }

    /// A process learns which partitions are its. A role in which it cools off is in no group.
    pub(crate) fn assigned(&mut self, process: usize) {
        if !self.group.members.contains(&process) {
            return;
        }
        for role in 0..self.group.assignment.len() {
            let is_own = self.group.assignment[role] == Some(process);
            self.stand(process, role, if is_own { Standing::Assigned } else { Standing::Elsewhere });
        }
    }

    /// A process learns that it has lost one; what it leads there ends.
    pub(crate) fn revoked(&mut self, process: usize, role: usize) {
        self.stand(process, role, Standing::Elsewhere);
        self.revokes += usize::from(self.stand_down(process, role, "revoked"));
    }

    fn stand(&mut self, process: usize, role: usize, standing: Standing) {
        let now = self.now;
        let Some(it) = self.processes[process].as_mut().filter(|it| it.role_states[role].cools_off.is_none()) else {
            return;
        };
        if it.role_states[role].standing == standing {
            return;
        }
        it.role_states[role].standing = standing;
        it.spread.stand(now, role, standing);
        self.perform(process);
        self.await_claim(process, role);
    }

    /// How many roles are led by others than the group has chosen.
    pub(crate) fn misplaced(&self) -> usize {
        let leaders = self.group.assignment.iter().zip(self.leaders());
        let is_misplaced = |(owner, leader): &(&Option<usize>, &Option<MemberId>)| {
            let owner = owner.and_then(|owner| self.processes[owner].as_ref());
            owner.is_some_and(|owner| Some(&owner.member) != leader.as_ref())
        };
        leaders.filter(is_misplaced).count()
    }
}
