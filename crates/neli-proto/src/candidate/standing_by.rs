//! The state without a term: when a candidate claims a vacancy or a silence (R2), and when it gives up waiting.

use core::time::Duration;

use super::action::Action;
use super::claiming::Claiming;
use super::releasing::Releasing;
use super::state::{Input, State};
use super::suspended::Suspended;
use super::{Common, Judgement};
use crate::journal::View;
use crate::kafka::Request;
use crate::listener::Predecessor;
use crate::note::{Note, StandbyReason, Waiting};
use crate::precedence::{Delay, RANDOM_DELAY};
use crate::supervisor::Departure;
use crate::time::Time;

/// No term is held.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct StandingBy {
    /// The candidate claims nothing before this time.
    not_before: Time,
}

impl StandingBy {
    /// Claims nothing before `not_before`.
    pub(super) const fn from(not_before: Time) -> State {
        State::StandingBy(Self { not_before })
    }

    pub(super) fn due(&self, common: &Common) -> Option<Time> {
        let due = [
            self.claim_due(common),
            common.wait_due(),
            common.cooling_off,
            common.blind_due(),
            common.stuck_due(),
            common.preempts_at(),
        ];
        due.into_iter().flatten().min()
    }

    pub(super) fn step(self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            // A claim that was given up took effect late: its lease is over (R5).
            Input::ClaimEffective(claim) => return Releasing::of_expired_claim(common, now, claim),
            Input::MoveOn => return self.move_on(common, now),
            // R2: the other candidates leave the vacancy to the named successor, so it needs no delay after an earlier void claim.
            Input::NamedSuccessor => return Self::from(now),
            Input::StandDown { why } => {
                if why.lets_another_lead() {
                    common.cool_off(now);
                }
            }
            Input::TopicJudged { is_misread } => {
                if is_misread {
                    common.ask_anew(now);
                }
            }
            Input::BeatEffective { .. }
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GivenUp
            | Input::GuardFenced { .. }
            | Input::HistoryCut
            | Input::Job(_)
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::Revoked
            | Input::TimedOut
            | Input::TimePassed
            | Input::Undelivered { .. }
            | Input::ViewChanged => {}
        }
        State::StandingBy(self)
    }

    /// Performs what is due: exits, reads again or from further back, claims, or gives up waiting.
    fn move_on(self, common: &mut Common, now: Time) -> State {
        if let Some(departure) = common.departure() {
            return common.depart(departure);
        }
        if common.suspending {
            return Suspended::begin(common);
        }
        common.replace_reader_if_stuck(now);
        if common.listener.ask_further_back(now) {
            common.actions.push_back(Action::Kafka(Request::ReadAnew));
        }
        common.keep_membership(now);
        common.draw_delay(now);
        common.preempt_if_due(now);
        if common.wait_due().is_some_and(|due| now >= due) {
            return common.depart(Departure::WaitedEnough);
        }
        if now >= self.not_before && self.claim_due(common).is_some_and(|due| now >= due) {
            return Claiming::begin(common, now);
        }
        self.report(common, now);
        State::StandingBy(self)
    }

    /// When the claim is due (R2); `None` if that is unknown, or if it is never due.
    pub(super) fn claim_due(&self, common: &Common) -> Option<Time> {
        let has_claimed_unjudged = common.judgement == Judgement::Awaited { claimed: true };
        let is_barred = common.may_not_claim() || common.cooling_off.is_some() || common.leaving.is_some();
        if has_claimed_unjudged || is_barred {
            return None;
        }
        let claim_window = common.listener.claim_window()?;
        if claim_window.confirmed_from.is_some_and(|from| !common.is_topic_confirmed_since(from)) {
            return None;
        }
        // A term that is taken over from a leader that yields must be led at once.
        if claim_window.over.is_some() && common.judgement != Judgement::Fit {
            return None;
        }
        let delay = common.claim_delay(claim_window.since, claim_window.predecessor)?;
        let draw = common.draw?;
        let due = claim_window.since + delay.fixed + delay.random.mul_f64(draw.share.as_secs_f64());
        common.beside_roles.claim_due(due.max(self.not_before))
    }

    /// Reports why it stands by, if that has changed.
    fn report(&self, common: &mut Common, now: Time) {
        if !common.listener.is_caught_up() || common.judgement != Judgement::Fit {
            return;
        }
        let (leader, term, why) = match common.listener.journal().view() {
            // Our own release is in flight, or our own silence is waited for: there is no leader.
            View::Led(term) if term.member.as_ref() == Some(&common.identity.member) => return,
            View::Led(term) => (term.name.clone(), Some(term.offset), Some(Waiting::Led)),
            _ if common.cooling_off.is_some() => (None, None, Some(Waiting::CoolingOff)),
            View::Undecided(_) if common.listener.was_cut() => (None, None, Some(Waiting::Cut)),
            View::Undecided(_) => (None, None, Some(Waiting::Undecided)),
            View::NeverLed | View::Released { .. } if common.guard_is_missing => (None, None, Some(Waiting::NoGuard)),
            // A claim that is almost due is not worth a log line.
            View::NeverLed | View::Released { .. }
                if self.claim_due(common).is_some_and(|due| due < now + RANDOM_DELAY) =>
            {
                return;
            }
            View::NeverLed | View::Released { .. } if common.precedence.is_backing_off() => {
                (None, None, Some(Waiting::BackingOff))
            }
            View::NeverLed | View::Released { .. } if common.beside_roles.awaits_answer(now) => {
                (None, None, Some(Waiting::Answer))
            }
            View::NeverLed | View::Released { .. } => (None, None, Some(Waiting::Precedence)),
        };
        let standby = StandbyReason { leader, term, why };
        if common.standing_by.as_ref() != Some(&standby) {
            common.standing_by = Some(standby.clone());
            common.actions.push_back(Action::Note(Note::Standby(standby)));
        }
    }
}

/// The time that `--wait 0` allows for Kafka's first answer.
const WAIT_FOR_KAFKA: Duration = Duration::from_secs(5);

/// librdkafka may need this time to notice a dead connection and continue reading.
const READER_RECOVERS: Duration = Duration::from_secs(5);

/// The random part of a claim's delay.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Draw {
    /// The vacancy or silence for which it was drawn.
    since: Time,
    /// The drawn share of the span, in parts of a second: a later assignment may widen the span.
    share: Duration,
}

impl Common {
    fn claim_delay(&self, at: Time, predecessor: Predecessor) -> Option<Delay> {
        // If there are more partitions than roles, the group's next assignment can't be predicted.
        let is_foreseeable = predecessor != Predecessor::Silent || !self.unused_partitions;
        self.precedence.delay(at, if is_foreseeable { predecessor } else { Predecessor::Gone })
    }

    /// Draws a delay once for each vacancy or silence, and again after a void claim.
    fn draw_delay(&mut self, now: Time) {
        let Some(claim_window) = self.listener.claim_window() else {
            self.draw = None;
            return;
        };
        if self.draw.is_none_or(|draw| draw.since != claim_window.since) {
            let may_claim = self.claim_delay(now, claim_window.predecessor).is_some();
            let share = self.random.up_to(Duration::from_secs(1));
            self.draw = may_claim.then_some(Draw { since: claim_window.since, share });
        }
    }

    /// When `--wait` is over; `None` if that would cut short the wait for the silence of a leader whose records have not been read.
    pub(super) fn wait_due(&self) -> Option<Time> {
        let until = self.wait_until?;
        let after_first_answer = if until == self.started { self.started + WAIT_FOR_KAFKA } else { until };
        if self.may_not_claim() {
            // An answer that is still missing may be a reason to exit with another status.
            Some(after_first_answer)
        } else if self.listener.has_read_other_leader() || self.claim_unanswered {
            Some(until)
        } else if self.listener.is_answered() {
            None
        } else {
            Some(after_first_answer)
        }
    }

    /// The time after which a reader that has delivered no record is replaced, if the log grows.
    fn patience_with_reader(&self) -> Duration {
        self.timings.lease().max(READER_RECOVERS)
    }

    /// When a standby's reader is replaced. A leader's reader is replaced when its lease ends.
    fn stuck_due(&self) -> Option<Time> {
        self.listener.stuck_since().map(|since| since + self.patience_with_reader())
    }

    fn replace_reader_if_stuck(&mut self, now: Time) {
        if self.stuck_due().is_some_and(|due| now >= due) {
            let silent = self.patience_with_reader();
            self.actions.push_back(Action::Note(Note::ReaderStuck { end: self.listener.known_end(), silent }));
            self.ask_anew(now);
        }
    }
}
