//! The group: when a candidate joins it and leaves it, and what it makes of the group's messages.

use alloc::boxed::Box;
use core::time::Duration;

use super::action::Action;
use super::{Common, Judgement};
use crate::precedence::{HELLO_AWAITS_NAME, Standing};
use crate::time::Time;
use crate::timings::{Elector, Patience};

/// The longest id of the group's that is handed on: librdkafka's client id, a hyphen and 36 characters. A record must fit 1 KiB.
const LONGEST_GROUP_MEMBER: usize = 128;

impl Common {
    /// Joins the group once the topic is known to be there, and says hello once it is known to be fit for an election:
    /// nothing but one claim, and its release, is written into one that R0 refuses. What the group assigns takes a while, and is
    /// asked for meanwhile.
    pub(super) fn introduce(&mut self, now: Time) {
        if !self.listener.is_answered() || self.leaving.is_some() || self.suspending || self.next_hello.is_some() {
            return;
        }
        if self.is_of_use_to_group(now) {
            self.join_group();
        }
        if self.judgement != Judgement::Fit {
            return;
        }
        if self.in_group && self.precedence.group_member().is_none() {
            self.next_hello = Some(now + HELLO_AWAITS_NAME);
        } else {
            self.say_hello(now);
        }
    }

    /// The group's coordinator has given us an id: the others are sent it, so that they can foresee whose turn it is.
    pub(super) fn named(&mut self, now: Time, id: Box<str>) {
        // What the group sent before it was left counts no more; nor does what would make a record too long.
        // Nor does the id of a member that stands for many roles: it is given another partition by how many it has, and stays.
        if !self.in_group || id.len() > LONGEST_GROUP_MEMBER || self.is_one_of_many {
            return;
        }
        self.precedence.name(Some(id));
        if self.next_hello.is_some() && !self.suspending {
            self.say_hello(now);
        }
    }

    /// The group has changed this member's standing.
    pub(super) fn stand(&mut self, standing: Standing) {
        // What the group sent before it was left counts no more.
        if self.in_group {
            self.precedence.stand(standing);
        }
    }

    pub(super) fn leave_group(&mut self) {
        if self.in_group && matches!(self.timings.elector(), Elector::Group(_)) {
            self.in_group = false;
            // Where the group balances partitions that nobody uses, what it does next is not foreseen.
            let held = self.precedence.standing() == Standing::Assigned && !self.unused_partitions;
            self.left_as = self.precedence.group_member().filter(|_| held).map(Into::into);
            self.precedence.name(None);
            self.precedence.stand(Standing::Unknown);
            self.actions.push_back(Action::LeaveGroup);
        }
    }

    fn join_group(&mut self) {
        if !self.in_group
            && self.leaving.is_none()
            && !self.suspending
            && matches!(self.timings.elector(), Elector::Group(_))
        {
            self.in_group = true;
            self.left_as = None;
            self.actions.push_back(Action::JoinGroup);
        }
    }

    /// From now on `delay` is added to the claim delay. Who backs off is no member of the group, before its release says so: the group
    /// chooses another, and everybody can foresee which. Where only the group's choice claims, it stays a member.
    pub(super) fn back_off(&mut self, delay: Duration) {
        self.precedence.back_off(delay);
        if self.precedence.is_backing_off() && !self.claims_only_when_assigned() {
            self.leave_group();
        }
    }

    /// A candidate that claims nothing anyway is in the group from its first hello on, unless it is leaving, cooling off, or of no use
    /// to the group. One that has joined for what the group assigns meanwhile, and can't say hello yet, leaves for the last reason too.
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

    /// Whether the group may choose it: not where it backs off, knows of somebody of a higher priority, or could do nothing with what the
    /// group might assign to it.
    fn is_of_use_to_group(&self, now: Time) -> bool {
        if self.claims_only_when_assigned() {
            let lease = self.timings.lease();
            let is_behind = self.listener.behind_since().is_some_and(|since| now >= since + lease);
            !is_behind && !self.claim_unanswered
        } else {
            !self.precedence.is_backing_off() && !self.precedence.is_outranked(now)
        }
    }

    /// With `--patience never` the assigned member alone claims: one whose reader has not reached the end for a lease
    /// would hold the assignment and lead nobody.
    pub(super) fn blind_due(&self) -> Option<Time> {
        let may_leave = self.in_group && self.cooling_off.is_none() && self.claims_only_when_assigned();
        self.listener.behind_since().filter(|_| may_leave).map(|since| since + self.timings.lease())
    }

    fn claims_only_when_assigned(&self) -> bool {
        match self.timings.elector() {
            Elector::Group(Patience::Never) => true,
            Elector::Group(Patience::For(_)) | Elector::Log => false,
        }
    }
}
