//! The consumer group: when a candidate joins and leaves it, and how it handles the group's messages.

use alloc::boxed::Box;
use core::time::Duration;

use super::{Action, Election};
use crate::kafka::Request;
use crate::note::Note;
use crate::precedence::{Assignment, HELLO_AWAITS_NAME};
use crate::time::Time;
use crate::timings::Elector;

/// The longest group member id that is sent to others: librdkafka's client id, a hyphen and 36 characters. A record must fit into 1 KiB.
const LONGEST_GROUP_MEMBER: usize = 128;

/// The candidate's membership of the group.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Membership {
    /// Whether it is a member, or about to be.
    pub(super) is_member: bool,
    /// Why the group does not take it, if it does not.
    pub(super) refusal: Option<Box<str>>,
    /// The id under which it held the partition when it left the group; the release contains it.
    pub(super) left_as: Option<Box<str>>,
    /// The topic has more partitions than roles: a revoke ends no lead.
    pub(super) unused_partitions: bool,
}

impl Election {
    /// Joins the group when the topic is known to exist, because the group takes a while to assign a partition. Sends the hello when the
    /// topic is known to be fit for an election: into one that R0 refuses the candidate writes nothing.
    pub(super) fn introduce(&mut self, now: Time) {
        if !self.listener.is_answered() || !self.stays() || self.next_hello.is_some() {
            return;
        }
        if self.is_of_use_to_group(now) {
            self.join_group();
        }
        if !self.is_judged {
            return;
        }
        if self.group.is_member && self.precedence.group_member.is_none() {
            self.next_hello = Some(now + HELLO_AWAITS_NAME);
        } else {
            self.say_hello(now);
        }
    }

    /// Handles the member id from the group's coordinator. The candidate sends it to the others, so that they can predict which of them
    /// claims next.
    pub(super) fn named(&mut self, now: Time, id: Box<str>) {
        // Ignored are: messages that the group sent before the candidate left it; an id that would make a record too long; and the id of a
        // member with several roles, because the group assigns partitions to it by their number, and it stays a member.
        if !self.group.is_member || id.len() > LONGEST_GROUP_MEMBER || self.precedence.is_one_of_many {
            return;
        }
        self.precedence.group_member = Some(id);
        if self.next_hello.is_some() && !self.suspending {
            self.say_hello(now);
        }
    }

    /// Handles that the group does not take this member, or does again. That changes nothing but what operators see: without an assignment the
    /// candidate claims as before its join was answered, and a lead does not depend on the group.
    pub(super) fn group_refuses(&mut self, now: Time, words: Option<Box<str>>) {
        if self.group.is_member && self.group.refusal != words {
            self.group.refusal = words;
            if self.next_hello.is_some() && !self.suspending {
                self.say_hello(now);
            }
        }
    }

    /// Handles a change of this member's assignment in the group.
    pub(super) fn stand(&mut self, assignment: Assignment) {
        // Messages that the group sent before the candidate left it are ignored.
        if self.group.is_member {
            self.precedence.set_assignment(assignment);
        }
    }

    pub(super) fn leave_group(&mut self) {
        if self.group.is_member && matches!(self.timings.elector(), Elector::Group(_)) {
            (self.group.is_member, self.group.refusal) = (false, None);
            // If the group also assigns partitions without a role, its next assignment can't be predicted.
            let held = self.precedence.assignment == Assignment::Own && !self.group.unused_partitions;
            self.group.left_as = self.precedence.group_member.take().filter(|_| held);
            self.precedence.set_assignment(Assignment::Unknown);
            self.actions.push_back(Action::Kafka(Request::LeaveGroup));
        }
    }

    fn join_group(&mut self) {
        if !self.group.is_member && self.stays() && matches!(self.timings.elector(), Elector::Group(_)) {
            self.group.is_member = true;
            self.group.left_as = None;
            self.actions.push_back(Action::Kafka(Request::JoinGroup));
        }
    }

    /// Adds `delay` to the claim delay from now on. A candidate that backs off leaves the group before its release announces it. The group
    /// then chooses another member, and every candidate can predict which one. With `--patience never` only the assigned member claims, so
    /// it stays.
    pub(super) fn back_off(&mut self, delay: Duration) {
        self.precedence.back_off = delay;
        if self.precedence.is_backing_off() && !self.claims_only_when_assigned() {
            self.leave_group();
        }
    }

    /// Keeps a candidate in the group from its first hello on, unless it is leaving, cooling off, or the group should not choose it. A
    /// candidate that joined early and can't send its hello yet leaves for the last reason too.
    pub(super) fn keep_membership(&mut self, now: Time) {
        if self.leaving.is_some() || self.cooling_off.is_some() {
            return;
        }
        if !self.is_of_use_to_group(now) {
            self.leave_group();
        } else if self.next_hello.is_some() {
            self.join_group();
        }
    }

    /// Whether the group may choose this candidate. It may not while the candidate backs off, knows a candidate of higher priority,
    /// lacks a guard, or could not use a partition that the group might assign to it.
    fn is_of_use_to_group(&self, now: Time) -> bool {
        if self.claims_only_when_assigned() {
            let lease = self.timings.lease;
            let is_behind = self.listener.behind_since().is_some_and(|since| now >= since + lease);
            !is_behind && self.next_claim.unanswered_since.is_none() && !self.next_claim.lacks_guard
        } else {
            !self.precedence.is_backing_off() && !self.precedence.is_outranked(now) && !self.next_claim.lacks_guard
        }
    }

    /// When a member with `--patience never` leaves the group, because its reader has not reached the end of the log for a lease. Only the
    /// assigned member claims, so it would hold the assignment without ever leading.
    pub(super) fn blind_due(&self) -> Option<Time> {
        let may_leave = self.group.is_member && self.cooling_off.is_none() && self.claims_only_when_assigned();
        self.listener.behind_since().filter(|_| may_leave).map(|since| since + self.timings.lease)
    }

    fn claims_only_when_assigned(&self) -> bool {
        self.timings.elector() == Elector::Group(None)
    }

    /// Reports the unused partitions once, if a revocation would end a lead otherwise.
    pub(super) fn learn_of_unused_partitions(&mut self) {
        if self.group.is_member && !self.group.unused_partitions && !self.precedence.is_one_of_many {
            self.group.unused_partitions = true;
            self.actions.push_back(Action::Note(Note::UnusedPartitions));
        }
    }
}
