//! The membership of a process's roles in the consumer group: one member stands for all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::precedence::Assignment;
use neli_proto::time::Time;

use super::{Session, SessionEvent};
use crate::clock;
use crate::election::Elections;
use crate::group::{GroupEvent, GroupReport, Member, Refusal};

/// The time between two tries to make a member.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Session {
    /// Adds the role to the group. The process joins the group with its first role.
    pub fn join_group(&mut self, role: u32) {
        self.in_group.insert(role);
        if self.members.is_in_group() {
            self.tell_standing(role);
        } else {
            self.join();
        }
    }

    /// Removes the role from the group. The process leaves the group with its last role. `alone`: no other candidate waits for it there.
    pub fn leave_group(&mut self, role: u32, alone: bool) {
        self.in_group.remove(&role);
        if self.in_group.is_empty() {
            self.leave(alone);
        }
    }

    /// Removes all roles, and leaves the group.
    pub fn leave_group_for_good(&mut self, alone: bool) {
        self.in_group.clear();
        self.leave(alone);
    }

    /// Sets whether this process leads the role. While it leads any role, its member does not wait for a rebalance.
    pub fn set_leads(&mut self, role: u32, leads: bool) {
        let has_changed = if leads { self.leading.insert(role) } else { self.leading.remove(&role) };
        if has_changed {
            self.tell_member_whether_it_leads();
        }
    }

    /// Whether a member has not left yet. If the process ends before, the other members' next rebalance waits for a whole session.
    #[must_use]
    pub const fn is_leaving_group(&self) -> bool {
        self.members.are_leaving()
    }

    /// Stops waiting for members that are leaving.
    pub const fn stop_waiting_for_group(&mut self) {
        self.members.stop_waiting();
    }

    /// Joins the group. Without a thread or a client for a member this is tried again later: no election depends on the group.
    pub(super) fn join(&mut self) {
        let Self { access, settings, report_sender, .. } = self;
        let in_use = settings.elections.partitions_in_use(self.router.partitions().unwrap_or(1));
        (self.held, self.group_member, self.has_unused_partitions) = (None, None, false);
        let join = |number| Member::join(access, &settings.elections, in_use, number, report_sender.clone());
        match self.members.join(join) {
            Ok(()) => {
                self.joins_again_at = None;
                self.tell_member_whether_it_leads();
            }
            Err(error) => {
                self.joins_again_at = Some(clock::now() + AGAIN_AFTER);
                let line = format!("group \"{}\": it can't be joined: {error}", self.settings.elections.group);
                self.set_refusal(Some(Refusal { words: error.to_string(), line }));
            }
        }
    }

    /// Tries again to join the group, if there was no member. Called with each event of Kafka.
    pub(super) fn join_again(&mut self, now: Time) {
        if self.joins_again_at.is_some_and(|at| now >= at) {
            self.join();
        }
    }

    /// Reports whether the group takes the member, if that has changed.
    fn set_refusal(&mut self, refusal: Option<Refusal>) {
        if self.refusal != refusal {
            self.refusal.clone_from(&refusal);
            let (line, words) = refusal.map(|Refusal { line, words }| (line, words.into_boxed_str())).unzip();
            self.tell_members(|_| Some(Event::GroupRefuses { words: words.clone() }));
            self.outputs.push_back(SessionEvent::Group { refusal: line });
        }
    }

    fn tell_member_whether_it_leads(&self) {
        if let Some(member) = self.members.current() {
            member.set_leads(!self.leading.is_empty());
        }
    }

    pub(super) fn leave(&mut self, alone: bool) {
        self.joins_again_at = None;
        self.set_refusal(None);
        if let Some(member) = self.members.leave() {
            member.leave(alone);
        }
    }

    pub(super) fn handle_group_report(&mut self, report: GroupReport) {
        let is_current = self.members.is_current(report.member);
        match report.event {
            GroupEvent::Left => self.members.left(),
            GroupEvent::Debug(message) => self.outputs.push_back(SessionEvent::Debug(message)),
            GroupEvent::Assigned { .. }
            | GroupEvent::Named { .. }
            | GroupEvent::Refused(_)
            | GroupEvent::Revoked { .. }
            | GroupEvent::UnusedPartitions
                if !is_current => {}
            GroupEvent::Assigned { partitions } => self.assigned(&partitions),
            GroupEvent::Named { id } => {
                self.group_member = Some(id.clone());
                self.tell_members(|_| Some(Event::Named { id: id.as_str().into() }));
            }
            GroupEvent::Refused(refusal) => self.set_refusal(Some(refusal)),
            GroupEvent::Revoked { partitions, lost } => {
                if let Some(held) = &mut self.held {
                    held.retain(|partition| !partitions.contains(partition));
                }
                let event = if lost { Event::AssignmentChanged(Assignment::Unknown) } else { Event::Revoked };
                self.tell_members(|of| partitions.contains(&of).then(|| event.clone()));
            }
            GroupEvent::UnusedPartitions => {
                self.has_unused_partitions = true;
                self.tell_members(|_| Some(Event::UnusedPartitions));
            }
        }
    }

    fn assigned(&mut self, partitions: &BTreeSet<i32>) {
        self.set_refusal(None);
        let before = self.held.replace(partitions.clone()).unwrap_or_default();
        self.tell_members(|of| match (partitions.contains(&of), before.contains(&of)) {
            (true, true) => None,
            (true, false) => Some(Event::AssignmentChanged(Assignment::Own)),
            (false, _) => Some(Event::AssignmentChanged(Assignment::Elsewhere)),
        });
    }

    /// Reports to each role in the group what has changed for its partition.
    fn tell_members(&mut self, event: impl Fn(i32) -> Option<Event>) {
        let count = self.router.partitions().unwrap_or(1);
        for role in self.in_group.clone() {
            if let Some(event) = event(Elections::partition_of(role, count)) {
                self.tell(role, event);
            }
        }
    }

    /// If the process is already in the group, a role that is added gets the last report again.
    fn tell_standing(&mut self, role: u32) {
        let partition = Elections::partition_of(role, self.router.partitions().unwrap_or(1));
        let assignment = self.held.as_ref().map(|held| {
            Event::AssignmentChanged(if held.contains(&partition) { Assignment::Own } else { Assignment::Elsewhere })
        });
        let name = self.group_member.as_deref().map(|id| Event::Named { id: id.into() });
        let unused = self.has_unused_partitions.then_some(Event::UnusedPartitions);
        let words = self.refusal.as_ref().map(|refusal| refusal.words.as_str().into());
        let refusal = words.map(|words| Event::GroupRefuses { words: Some(words) });
        for event in [name, unused, assignment, refusal].into_iter().flatten() {
            self.tell(role, event);
        }
    }
}

// ---- the numbers of the members -----------------------------------------------------------------------------------------

/// This process's members of the group: the current one, and earlier ones that are leaving. One member stands for all roles. `M` is [`Member`],
/// except in tests.
#[derive(Debug)]
pub(super) struct Members<M> {
    current: Option<M>,
    /// The number of members so far, which is the number of the last one.
    count: u32,
    /// The members that have not left yet.
    leaving: u32,
}

impl<M> Members<M> {
    /// The members of a process that has not joined the group yet.
    pub(super) const fn none() -> Self {
        Self { current: None, count: 0, leaving: 0 }
    }

    /// Joins the group by a new member, which gets the next number.
    pub(super) fn join<E>(&mut self, join: impl FnOnce(u32) -> Result<M, E>) -> Result<(), E> {
        self.count += 1;
        self.current = Some(join(self.count)?);
        Ok(())
    }

    /// Takes the current member, which is to leave, if there is one. It counts as leaving until it has [left](Self::left).
    pub(super) fn leave(&mut self) -> Option<M> {
        let member = self.current.take()?;
        self.leaving += 1;
        Some(member)
    }

    /// A member that was leaving has left.
    pub(super) fn left(&mut self) {
        self.leaving = self.leaving.saturating_sub(1);
    }

    /// Whether the member with this number is the current one. Reports of earlier members no longer count.
    pub(super) const fn is_current(&self, number: u32) -> bool {
        self.current.is_some() && number == self.count
    }

    /// The current member, if there is one.
    pub(super) const fn current(&self) -> Option<&M> {
        self.current.as_ref()
    }

    /// Whether there is a current member.
    pub(super) const fn is_in_group(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a member is still leaving.
    pub(super) const fn are_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// Stops waiting for members that are leaving.
    pub(super) const fn stop_waiting(&mut self) {
        self.leaving = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_left_is_no_longer_current() {
        let mut members = Members::none();
        let join = |members: &mut Members<u32>| members.join(Ok::<_, String>).map(|()| members.count);
        assert!(!members.is_current(0) && !members.is_current(1));
        let first = join(&mut members).unwrap();
        assert!(members.is_current(first));
        assert_eq!(members.leave(), Some(first));
        assert!(!members.is_current(first), "its words that are still on their way");
        let second = join(&mut members).unwrap();
        assert!(members.is_current(second) && !members.is_current(first));
        assert!(members.are_leaving());
        members.left();
        assert!(!members.are_leaving() && members.is_in_group());
        assert_eq!(members.join(|_| Err("no thread".to_owned())), Err("no thread".to_owned()));
    }
}
