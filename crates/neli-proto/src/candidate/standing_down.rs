//! R7: stopping on the word, and the group that is left before it.

use super::{Candidate, Role};
use crate::candidate::{Action, Elector, Note, Patience};
use crate::precedence::Standing;
use crate::record::{Offset, What, Why};
use crate::time::Time;
use alloc::boxed::Box;

impl Candidate {
    pub(super) fn requested(
        &mut self,
        now: Time,
        offset: Offset,
        what: What,
        (term, by, reason): (Option<Offset>, &Option<Box<str>>, &Option<Box<str>>),
    ) {
        let (by, reason) = (by.clone(), reason.clone());
        match what {
            What::End => {
                if self.listener.is_bound_by_end_at(offset) && self.leaving != Some(Why::Ended) {
                    self.actions.push_back(Action::Note(Note::Ended { by, reason }));
                    self.stand_down(now, Why::Ended, true);
                }
            }
            What::Resign => {
                if let Some(term) = term.filter(|term| self.may_resign(*term)) {
                    self.actions.push_back(Action::Note(Note::Resigned { term, by, reason }));
                    self.stand_down(now, Why::Resigned, false);
                }
            }
        }
    }

    /// Whether `term` is held here, or still to be released, and not yet standing down for good or for somebody else.
    pub(super) fn may_resign(&self, term: Offset) -> bool {
        let (held, stood_down) = match &self.role {
            Role::AwaitingJudgement { term, .. } => (*term, None),
            Role::Fenced { term, stood_down, .. } => (*term, *stood_down),
            Role::Leading(lead) => (lead.term, lead.stopping),
            Role::Releasing(releasing) => (releasing.term, self.cooling_off.map(|_| Why::Resigned)),
            Role::Claiming { .. } | Role::Departed | Role::Standby { .. } | Role::Suspended => return false,
        };
        held == term && stood_down.is_none_or(|why| rank(why) < rank(Why::Resigned))
    }

    pub(super) fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        if leaving && (self.leaving.is_none() || why == Why::Ended) {
            self.leaving = Some(why);
        }
        self.suspending |= why == Why::Suspended;
        if leaving || self.suspending {
            self.leave_group();
        }
        match &mut self.role {
            Role::AwaitingJudgement { .. } => {
                self.leave_group();
                self.release_unjudged(now, why);
            }
            Role::Leading(_) => {
                // Before the barrier: the successor is to be known by the time of the release.
                self.leave_group();
                self.stop_job(why);
            }
            // The claim, or the rest of the job, is awaited; then the cool-off begins, unless it is to begin already.
            Role::Claiming { stood_down, .. } | Role::Fenced { stood_down, .. } => {
                if why != Why::Suspended || stood_down.is_none() {
                    *stood_down = Some(why);
                }
            }
            Role::Departed | Role::Releasing(_) | Role::Standby { .. } | Role::Suspended => {
                if lets_another_lead(why) {
                    self.cool_off(now);
                }
            }
        }
    }

    /// Whoever was suspended stands again like any other, from R1; whoever was about to be is no longer.
    pub(super) fn continued(&mut self, now: Time) {
        self.suspending = false;
        if self.role == Role::Suspended {
            self.role = Role::Standby { not_before: now };
            self.standing_by = None;
            self.ask_anew(now);
        }
    }

    /// Says so once, if a revoke would be heeded otherwise.
    pub(super) fn learn_of_unused_partitions(&mut self) {
        if self.in_group && !self.unused_partitions {
            self.unused_partitions = true;
            self.actions.push_back(Action::Note(Note::UnusedPartitions));
        }
    }

    /// The partition is another's now. A leader to which it was never assigned leads on: it was not taken from it. Where the
    /// group balances partitions that nobody uses, it takes this one as well as any other: that says nothing of the leader.
    pub(super) fn revoked(&mut self, now: Time) {
        let was_assigned = self.precedence.standing() == Standing::Assigned;
        if self.in_group {
            self.precedence.stand(Standing::Elsewhere);
        }
        if !was_assigned || self.unused_partitions {
            return;
        }
        self.stop_job(Why::Revoked);
        self.release_unjudged(now, Why::Revoked);
        if let Role::Claiming { stood_down, .. } = &mut self.role {
            stood_down.get_or_insert(Why::Revoked);
        }
    }

    /// Ends the wait for a claim or for a release's delivery: whoever stops twice does not want to wait.
    pub fn give_up(&mut self, now: Time) {
        match &self.role {
            Role::Claiming { .. } => {
                self.claim_was_void(now);
                self.move_on(now);
            }
            Role::Releasing(_) => {
                self.release_is_over(now, false);
                self.move_on(now);
            }
            // Whoever was told to stop has released a term that is not judged.
            Role::AwaitingJudgement { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Leading(_)
            | Role::Standby { .. }
            | Role::Suspended => {}
        }
    }

    /// The barrier begins, unless it has.
    pub(super) fn stop_job(&mut self, why: Why) {
        let Role::Leading(lead) = &mut self.role else { return };
        match lead.stopping {
            None => {
                lead.stopping = Some(why);
                self.actions.push_back(Action::StopJob(why));
            }
            // The barrier that runs serves; what it is for has changed.
            Some(before) if rank(why) > rank(before) => lead.stopping = Some(why),
            Some(_) => {}
        }
    }

    pub(super) fn leave_group(&mut self) {
        if self.in_group && matches!(self.timings.elector, Elector::Group(_)) {
            self.in_group = false;
            // Where the group balances partitions that nobody uses, what it does next is not foreseen.
            let held = self.precedence.standing() == Standing::Assigned && !self.unused_partitions;
            self.left_as = self.precedence.group_member().filter(|_| held).map(Into::into);
            self.precedence.name(None);
            self.precedence.stand(Standing::Unknown);
            self.actions.push_back(Action::LeaveGroup);
        }
    }

    pub(super) fn join_group(&mut self) {
        if !self.in_group
            && self.leaving.is_none()
            && !self.suspending
            && matches!(self.timings.elector, Elector::Group(_))
        {
            self.in_group = true;
            self.left_as = None;
            self.actions.push_back(Action::JoinGroup);
        }
    }

    /// Whoever claims nothing anyway is in the group, unless it is leaving, cooling off, or could do nothing with what
    /// the group might assign to it.
    pub(super) fn keep_membership(&mut self, now: Time) {
        let is_introduced = self.next_hello.is_some();
        if !is_introduced || self.leaving.is_some() || self.cooling_off.is_some() {
            return;
        }
        let lease = self.timings.lease;
        let is_behind = self.listener.behind_since().is_some_and(|since| now >= since + lease);
        if self.claims_only_when_assigned() && (is_behind || self.claim_unanswered) {
            self.leave_group();
        } else {
            self.join_group();
        }
    }

    /// With `--patience never` the assigned member alone claims: one whose reader has not reached the end for a lease
    /// would hold the assignment and lead nobody.
    pub(super) fn blind_due(&self) -> Option<Time> {
        let may_leave = self.in_group && self.cooling_off.is_none() && self.claims_only_when_assigned();
        self.listener.behind_since().filter(|_| may_leave).map(|since| since + self.timings.lease)
    }

    pub(super) fn claims_only_when_assigned(&self) -> bool {
        match self.timings.elector {
            Elector::Group(Patience::Never) => true,
            Elector::Group(Patience::For(_)) | Elector::Log => false,
        }
    }

    /// R7: nothing is claimed until another leads, or for two leases; a member joins again after it.
    pub(super) fn cool_off(&mut self, now: Time) {
        self.cooling_off = Some(now + self.timings.lease * 2);
    }

    pub(super) fn cool_off_is_over(&mut self) {
        self.cooling_off = None;
    }
}

/// Of two reasons to stop, the one of the higher rank says what happens afterwards.
pub(super) const fn rank(why: Why) -> u8 {
    match why {
        Why::Ended => 3,
        Why::Exited | Why::Refused | Why::Stopped => 2,
        Why::Resigned | Why::RestartLimit | Why::Suspended | Why::Unhealthy => 1,
        Why::Fenced | Why::GuardDied | Why::Revoked | Why::ClaimExpired | Why::SupervisorDied => 0,
    }
}

/// Whether another is to lead first (R7).
pub(super) const fn lets_another_lead(why: Why) -> bool {
    match why {
        Why::Resigned | Why::RestartLimit | Why::Unhealthy => true,
        Why::Ended
        | Why::Exited
        | Why::Fenced
        | Why::GuardDied
        | Why::Refused
        | Why::Revoked
        | Why::ClaimExpired
        | Why::Stopped
        | Why::SupervisorDied
        | Why::Suspended => false,
    }
}
