//! What a candidate does when time has passed.

use super::Candidate;
use super::lease::Leading;
use super::state::{Overlapped, State};
use crate::record::Why;
use crate::supervisor::{Departure, Loss};
use crate::time::Time;

impl Candidate {
    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if !self.state.takes_part() {
            return None;
        }
        let identity_due = self.common.identity_due(self.state.confirmation());
        [self.state.due(&self.common), self.common.next_hello, identity_due].into_iter().flatten().min()
    }

    /// Performs the actions that are due. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.state.takes_part() {
            return self.move_on(now);
        }
        self.end_lease_if_over(now);
        self.common.perform_due_actions(now);
        self.perform_what_is_due(now);
        self.move_on(now);
        self.common.ask_identity_if_due(now, self.state.confirmation());
    }

    /// Ends a lease that is over. That comes before any other event at this time, because none can extend a lease that has ended.
    pub(super) fn end_lease_if_over(&mut self, now: Time) {
        let (State::Leading(Leading { lease_end, .. }) | State::Overlapped(Overlapped { lease_end, .. })) = &self.state
        else {
            return;
        };
        if now < self.common.deadline(*lease_end) {
            return;
        }
        if let State::Leading(leading) = &self.state {
            leading.note_unconfirmed(&mut self.common, now);
        }
        self.become_fenced(Why::Fenced, Loss::LeaseOver);
    }

    fn perform_what_is_due(&mut self, now: Time) {
        let common = &mut self.common;
        match &mut self.state {
            State::AwaitingJudgement(awaiting) => {
                // The judgement would come too late for this claim.
                if now >= common.claim_expires_at(awaiting.sent) {
                    self.release_unjudged(now, Why::ClaimExpired);
                }
            }
            State::Claiming(claiming) => {
                let sent = claiming.sent;
                if now >= sent + common.timings.lease() {
                    common.claim_went_unanswered(now, sent);
                    self.claim_was_void(now);
                }
            }
            State::Leading(leading) => leading.handle_timeout(common, now),
            State::Overlapped(Overlapped { asks_at, .. }) => {
                asks_at.take_if(|asks_at| now >= *asks_at);
            }
            State::Releasing(releasing) => {
                if now >= releasing.gives_up_at {
                    self.release_is_over(now, false);
                } else if releasing.again_at.is_some_and(|again| now >= again) {
                    if releasing.may_be_sent(common) {
                        releasing.send(common);
                    } else {
                        self.release_is_over(now, false);
                    }
                }
            }
            State::Departed | State::Fenced(_) | State::StandingBy { .. } | State::Suspended => {}
        }
    }

    /// Performs what is due for a candidate that holds nothing, when nothing else happens at this time.
    pub(super) fn move_on(&mut self, now: Time) {
        match self.state {
            State::StandingBy { not_before } => self.stand_by(now, not_before),
            State::Suspended => {
                if let Some(departure) = self.common.departure() {
                    self.become_departed(departure);
                }
            }
            State::AwaitingJudgement(_)
            | State::Claiming(_)
            | State::Departed
            | State::Fenced(_)
            | State::Leading(_)
            | State::Overlapped(_)
            | State::Releasing(_) => {}
        }
    }

    /// Exits, reads again or from further back, claims, or gives up waiting.
    fn stand_by(&mut self, now: Time, not_before: Time) {
        let common = &mut self.common;
        if let Some(departure) = common.departure() {
            return self.become_departed(departure);
        }
        if common.suspending {
            return self.become_suspended();
        }
        common.prepare_claim(now);
        if common.wait_due().is_some_and(|due| now >= due) {
            self.become_departed(Departure::WaitedEnough);
        } else if now >= not_before && common.claim_due(not_before).is_some_and(|due| now >= due) {
            self.become_claiming(now);
        } else {
            common.report_standby(now, not_before);
        }
    }
}
