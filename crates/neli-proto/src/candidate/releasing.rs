//! R6: a release is written when nothing is left, and then nothing more.

use super::standing_down::lets_another_lead;
use super::{Candidate, End, NothingLeft, Releasing, Role};
use crate::candidate::{Action, Loss, Milestone};
use crate::precedence::SPREAD;
use crate::record::{Body, Offset, Why};
use crate::time::Time;

impl Candidate {
    pub(super) fn nothing_left(
        &mut self,
        now: Time,
        why: Why,
        (exit, gone_at): (Option<u8>, Option<Time>),
        leaving: bool,
    ) {
        let is_cut = matches!(self.role, Role::Fenced { loss: Loss::HistoryCut, .. });
        let (term, give_up, why, (stood_down, late)) = match &self.role {
            Role::Leading(lead) => {
                let why = lead.stopping.unwrap_or(why);
                // R7: until one lease after the last effective record that was sent.
                (lead.term, lead.last_effective_sent + self.timings.lease, why, (None, None))
            }
            Role::Fenced { term, why, stood_down, lease_end, loss } => {
                let late = gone_at.map(|gone_at| gone_at.since(*lease_end)).filter(|late| !late.is_zero());
                if *loss != Loss::Superseded {
                    let left = lease_end.since(gone_at.unwrap_or(now));
                    let (term, why, loss) = (*term, *why, *loss);
                    self.actions.push_back(Action::Reached(Milestone::Fenced { term, why, loss, left, late }));
                }
                (*term, *lease_end, *why, (*stood_down, late))
            }
            Role::AwaitingJudgement { .. }
            | Role::Claiming { .. }
            | Role::Departed
            | Role::Releasing(_)
            | Role::Standby { .. }
            | Role::Suspended => return,
        };
        if leaving {
            self.leaving.get_or_insert(why);
            self.leave_group();
        }
        if lets_another_lead(why) || stood_down.is_some_and(lets_another_lead) {
            self.cool_off(now);
        }
        let anew = matches!(why, Why::Fenced | Why::GuardDied);
        // R6: a release is written only while the term is current in our own view. After a cut the view is of another history, in
        // which a term of that number may be another's.
        let is_current = self.listener.journal().term() == Some(term) && !is_cut;
        if is_current {
            self.release(now, term, (why, End { exit, late }), (give_up, anew), NothingLeft);
        } else {
            self.role = Role::Standby { not_before: now };
            self.ask_anew(now);
        }
    }

    pub(super) fn release(
        &mut self,
        now: Time,
        term: Offset,
        (why, end): (Why, End),
        (give_up, anew): (Time, bool),
        _: NothingLeft,
    ) {
        self.highest_term = self.highest_term.max(term);
        // Whoever goes waits no longer than the lease would have lasted (R7); whoever stays has nothing better to do.
        let goes = self.leaving.is_some() || self.suspending;
        let give_up = give_up.max(if goes { now } else { now + self.timings.lease });
        let seq = self.send_release(term, why, end);
        self.role = Role::Releasing(Releasing { term, seq, why, end, again_at: None, give_up, anew });
    }

    pub(super) fn send_release(&mut self, term: Offset, why: Why, end: End) -> u64 {
        let seen = self.listener.last();
        let seq = self.next_seq();
        let group_member = self.left_as.clone();
        let late_ms = end.late.map(|late| u64::try_from(late.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
        self.send(
            seq,
            Body::Release { term, seen, why: Some(why.as_str().into()), exit: end.exit, late_ms, group_member },
        );
        seq
    }

    /// Not at once again: what could not be delivered may have been refused before it was sent. (A claim may have arrived all
    /// the same: only the journal tells. Its time is up with its lease.)
    pub(super) fn undelivered(&mut self, now: Time, seq: u64) {
        let interval = self.timings.heartbeat_interval;
        if let Role::Releasing(releasing) = &mut self.role
            && releasing.seq == seq
        {
            releasing.again_at = Some(now + interval);
        }
    }

    /// A second release is void, so it may be sent as often as there is time; but only while the term is current.
    pub(super) fn release_again(&mut self, now: Time) {
        let Role::Releasing(Releasing { term, why, end, .. }) = self.role else { return };
        if self.listener.journal().term() != Some(term) {
            return self.release_is_over(now, false);
        }
        let seq = self.send_release(term, why, end);
        if let Role::Releasing(releasing) = &mut self.role {
            (releasing.seq, releasing.again_at) = (seq, None);
        }
    }

    pub(super) fn release_is_over(&mut self, now: Time, delivered: bool) {
        let Role::Releasing(Releasing { term, why, anew, .. }) = self.role else { return };
        self.actions.push_back(Action::Reached(Milestone::Released { term, why, delivered }));
        // R2: what came back too late may have voided a claim of ours, or of somebody's who retries in step.
        let not_before = if why == Why::ClaimExpired { now + self.random.up_to(SPREAD) } else { now };
        self.role = Role::Standby { not_before };
        self.standing_by = None;
        if anew {
            self.ask_anew(now);
        }
    }

    /// R5: after a fence it stands again like any other, from R1.
    pub(super) fn ask_anew(&mut self, now: Time) {
        if self.leaving.is_none() && !self.suspending {
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Ask);
        }
    }
}
