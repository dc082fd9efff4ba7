//! The consumer group: the assignment of the roles' partitions to members, and when each process gets it.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::precedence::Assignment;

use super::world::{Event, World};

/// The time after which the group removes a dead member.
pub(crate) const SESSION: Duration = Duration::from_secs(6);

/// The longest duration of a rebalance.
const REBALANCE: Duration = Duration::from_millis(110);

/// The coordinator, and the assignor of its members.
pub(crate) struct Group {
    members: BTreeSet<usize>,
    /// The member to which each role's partition is assigned.
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

    /// Takes one partition from a member that has two more than another. Returns the role and its previous member.
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
        self.group.members.insert(process);
        self.await_rebalance();
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

    /// Assigns free partitions to the members with the fewest. Then members with too many give some up, and are notified before the new
    /// members are.
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

    /// Gives a process its assignment. A process that backs off in a role is not in the group for that role.
    pub(crate) fn assigned(&mut self, process: usize) {
        if !self.group.members.contains(&process) {
            return;
        }
        for role in 0..self.group.assignment.len() {
            let is_own = self.group.assignment[role] == Some(process);
            self.stand(process, role, if is_own { Assignment::Own } else { Assignment::Elsewhere });
        }
    }

    /// Notifies a process that a partition was revoked. That ends no lead.
    pub(crate) fn revoked(&mut self, process: usize, role: usize) {
        self.stand(process, role, Assignment::Elsewhere);
    }

    fn stand(&mut self, process: usize, role: usize, standing: Assignment) {
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
}
