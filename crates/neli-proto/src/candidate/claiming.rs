//! R2: when a vacancy or a silence is claimed, what becomes of the claim, and when a candidate gives up.

use core::time::Duration;

use super::standing_down::lets_another_lead;
use super::{Candidate, End, Judgement, NothingLeft, Role, WAIT_FOR_KAFKA};
use crate::candidate::{Action, Departure, Note, Timings};
use crate::precedence::SPREAD;
use crate::record::{Body, Offset, Why};
use crate::time::Time;

/// After a void claim the next is spread over at least so many round trips.
const ROUND_TRIPS: u32 = 4;

impl Candidate {
    /// Whatever the new state of affairs calls for: leaving, reading further back, claiming, giving up.
    pub(super) fn move_on(&mut self, now: Time) {
        let not_before = match self.role {
            Role::Standby { not_before } => not_before,
            Role::Suspended => now,
            Role::AwaitingJudgement { .. }
            | Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Leading(_)
            | Role::Releasing(_) => return,
        };
        if let Some(why) = self.leaving {
            let departure = if why == Why::Ended { Departure::Ended } else { Departure::Left };
            return self.depart(departure);
        }
        if self.suspending {
            if self.role != Role::Suspended {
                self.role = Role::Suspended;
                self.actions.push_back(Action::Suspend);
            }
            return;
        }
        if self.listener.reads_further_back(now) {
            self.actions.push_back(Action::Ask);
        }
        self.keep_membership(now);
        self.draw_delay(now);
        if self.wait_due().is_some_and(|due| now >= due) {
            return self.depart(Departure::WaitedEnough);
        }
        if now >= not_before && self.claim_due().is_some_and(|due| now >= due) {
            return self.claim(now);
        }
        self.note_standby(now);
    }

    /// Throws the dice once for each vacancy or silence, and anew after a void claim.
    pub(super) fn draw_delay(&mut self, now: Time) {
        let Some(opening) = self.listener.claim_window() else {
            self.draw = None;
            return;
        };
        if self.draw.is_none_or(|(since, _)| since != opening.since) {
            let random = self.precedence.delay(now, opening.after_death).map(|delay| delay.random);
            // A standing that comes later may widen the span: what is drawn is the share of it.
            let drawn = self.random.up_to(Duration::from_secs(1));
            self.draw = random.map(|_| (opening.since, drawn));
        }
    }

    /// When the claim is due (R2); none while that isn't known, or never.
    pub(super) fn claim_due(&self) -> Option<Time> {
        let Role::Standby { not_before } = self.role else { return None };
        let has_claimed_unjudged = self.judgement == Judgement::Awaited { claimed: true };
        if has_claimed_unjudged || self.cooling_off.is_some() || self.leaving.is_some() {
            return None;
        }
        let opening = self.listener.claim_window()?;
        if opening.confirmed_from.is_some_and(|from| !self.is_topic_confirmed_since(from)) {
            return None;
        }
        let delay = self.precedence.delay(opening.since, opening.after_death)?;
        let (_, share) = self.draw?;
        Some((opening.since + delay.fixed + delay.random.mul_f64(share.as_secs_f64())).max(not_before))
    }

    pub(super) fn claim(&mut self, now: Time) {
        let after = self.listener.last();
        let seq = self.next_seq();
        let lease_ms = self.lease_ms();
        self.send(seq, Body::Claim { after, lease_ms });
        self.role = Role::Claiming { seq, sent: now, stood_down: None };
        if let Judgement::Awaited { claimed } = &mut self.judgement {
            *claimed = true;
        }
        // Kafka gives no answer: that has been said, and each lease brings another try.
        if !self.claim_unanswered {
            self.standing_by = None;
            self.actions.push_back(Action::Note(Note::Claiming { after }));
        }
    }

    /// A claim was not read back within its lease: it is not known whether the producer fails or the reader. The log's end shows
    /// whether there is more to be read; a producer that fails for two leases is renewed.
    pub(super) fn claim_went_unanswered(&mut self, now: Time, sent: Time) {
        self.claim_unanswered = true;
        self.actions.push_back(Action::LookForEnd);
        let since = *self.unanswered_since.get_or_insert(sent);
        if now >= since + self.timings.lease * 2 {
            self.unanswered_since = Some(now);
            self.actions.push_back(Action::RenewProducer);
            self.ask_identity_again();
        }
    }

    /// Something was read.
    pub(super) fn kafka_answers(&mut self) {
        (self.claim_unanswered, self.unanswered_since) = (false, None);
    }

    /// R2: after a void claim a fresh random delay, so that those that retry in step do not void each other for ever. Another's
    /// claim voids ours when it comes in while ours is on its way: where that takes long, the delay must be longer still.
    pub(super) fn claim_was_void(&mut self, now: Time) {
        let not_before = now + self.random.up_to(self.spread_after_void(now));
        if let Role::Claiming { stood_down: Some(why), .. } = self.role
            && lets_another_lead(why)
        {
            self.cool_off(now);
        }
        self.draw = None;
        self.role = Role::Standby { not_before };
    }

    /// Any claim that comes in within a round trip of ours voids it, or is voided by it. So a crowd needs a round trip for each
    /// of its members, or its claims void each other without end. A claim that nobody answered tells nothing of the round trip.
    fn spread_after_void(&self, now: Time) -> Duration {
        let Role::Claiming { sent, .. } = self.role else { return SPREAD };
        let round_trip = now.since(sent);
        if round_trip >= self.timings.lease {
            SPREAD
        } else {
            let ways = self.precedence.standbys(now).max(ROUND_TRIPS);
            SPREAD.max(round_trip.saturating_mul(ways)).min(self.timings.lease)
        }
    }

    /// R3: the lease runs from the claim's sending; R5: a claim that comes back too late is released.
    pub(super) fn claim_took_effect(&mut self, now: Time, term: Offset, sent: Time, stood_down: Option<Why>) {
        let lease_end = sent + self.timings.lease;
        if stood_down.is_some_and(lets_another_lead) {
            self.cool_off(now);
        }
        if let Some(why) = self.leaving.or(stood_down) {
            return self.release(now, term, (why, End::default()), (lease_end, false), NothingLeft);
        }
        let is_late = now >= self.claim_expires_at(sent);
        if is_late || term <= self.highest_term {
            return self.release(now, term, (Why::ClaimExpired, End::default()), (lease_end, false), NothingLeft);
        }
        if self.judgement != Judgement::Fit {
            self.role = Role::AwaitingJudgement { term, sent };
            return;
        }
        self.lead(now, term, sent);
    }

    /// R0: the topic may carry an election, and a claim in it had taken effect before that was known.
    pub(super) fn lead_if_judged(&mut self, now: Time) {
        let Role::AwaitingJudgement { term, sent } = self.role else { return };
        if now >= self.claim_expires_at(sent) {
            self.release_unjudged(now, Why::ClaimExpired);
        } else if self.listener.journal().term() == Some(term) {
            self.lead(now, term, sent);
        } else {
            self.drop_unjudged(now);
        }
    }

    /// A term that is held while the topic is not judged is not wanted, or no longer: nothing of it ever ran.
    pub(super) fn release_unjudged(&mut self, now: Time, why: Why) {
        let Role::AwaitingJudgement { term, sent } = self.role else { return };
        if lets_another_lead(why) {
            self.cool_off(now);
        }
        if self.listener.journal().term() == Some(term) {
            let lease_end = sent + self.timings.lease;
            self.release(now, term, (why, End::default()), (lease_end, false), NothingLeft);
        } else {
            self.drop_unjudged(now);
        }
    }

    /// R6: a term that is no longer current in our own view is not written under. Its lease passes.
    fn drop_unjudged(&mut self, now: Time) {
        self.role = Role::Standby { not_before: now };
        self.ask_anew(now);
    }

    /// From then on a claim that was sent at `sent` is too late: the job would be warned of the fence before a beat had
    /// an interval's time to come back. Where beats are always as slow, no job could ever stay.
    pub(super) fn claim_expires_at(&self, sent: Time) -> Time {
        let Timings { lease, heartbeat_interval, kill_margin, fence_warning, .. } = &self.timings;
        sent + lease.saturating_sub(*heartbeat_interval + *kill_margin + *fence_warning)
    }

    /// When `--wait` is over; none where it must not cut the silence of an unheard leader short.
    pub(super) fn wait_due(&self) -> Option<Time> {
        let until = self.wait_until?;
        if self.listener.heard_leader() || self.claim_unanswered {
            Some(until)
        } else if self.listener.is_answered() {
            None
        } else {
            let at_once = until == self.started;
            Some(if at_once { self.started + WAIT_FOR_KAFKA } else { until })
        }
    }

    pub(super) fn depart(&mut self, departure: Departure) {
        self.leave_group();
        self.role = Role::Departed;
        self.next_hello = None;
        self.actions.push_back(Action::Depart(departure));
    }
}
