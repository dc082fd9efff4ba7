//! The membership of a process's roles in the consumer group: one member stands for all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::precedence::Assignment;
use neli_proto::time::Time;

use super::{Session, SessionEvent};
use crate::clock;
use crate::election::Elections;
use crate::event::{GroupEvent, Refusal};
use crate::group::Member;

/// The time between two tries to make a member.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Session {
    /// Adds the role to the group. The process joins the group with its first role.
    pub(crate) fn join_group(&mut self, role: u32) {
        self.in_group.insert(role);
        if self.member.is_some() {
            self.tell_standing(role);
        } else {
            self.join();
        }
    }

    /// Removes the role from the group. The process leaves the group with its last role. `alone`: no other candidate waits for it there.
    pub(crate) fn leave_group(&mut self, role: u32, alone: bool) {
        self.in_group.remove(&role);
        if self.in_group.is_empty() {
            self.leave(alone);
        }
    }

    /// Removes all roles, and leaves the group.
    pub(crate) fn leave_group_for_good(&mut self, alone: bool) {
        self.in_group.clear();
        self.leave(alone);
    }

    /// Sets whether this process leads the role. While it leads any role, its member does not wait for a rebalance.
    pub(crate) fn set_leads(&mut self, role: u32, leads: bool) {
        let has_changed = if leads { self.leading.insert(role) } else { self.leading.remove(&role) };
        if has_changed {
            self.tell_member_whether_it_leads();
        }
    }

    /// Whether a member has not left yet. If the process ends before, the other members' next rebalance waits for a whole session.
    #[must_use]
    pub const fn is_leaving_group(&self) -> bool {
        self.leaving_members > 0
    }

    /// Stops waiting for members that are leaving.
    pub const fn stop_waiting_for_group(&mut self) {
        self.leaving_members = 0;
    }

    /// Joins the group. Without a thread or a client for a member this is tried again later: no election depends on the group.
    pub(super) fn join(&mut self) {
        let Self { access, settings, event_sender, .. } = self;
        let in_use = settings.elections.partitions_in_use(self.router.partitions().unwrap_or(1));
        (self.held, self.group_member, self.has_unused_partitions) = (None, None, false);
        self.members += 1;
        match Member::join(access, &settings.elections, in_use, self.members, event_sender.clone()) {
            Ok(member) => {
                (self.member, self.joins_again_at) = (Some(member), None);
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
        if let Some(member) = &self.member {
            member.set_leads(!self.leading.is_empty());
        }
    }

    pub(super) fn leave(&mut self, alone: bool) {
        self.joins_again_at = None;
        self.set_refusal(None);
        if let Some(member) = self.member.take() {
            self.leaving_members += 1;
            member.leave(alone);
        }
    }

    pub(super) fn handle_group_event(&mut self, member: u32, event: GroupEvent) {
        // What a former member has reported before it left no longer counts.
        let is_current = self.member.is_some() && member == self.members;
        match event {
            GroupEvent::Left => self.leaving_members = self.leaving_members.saturating_sub(1),
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
