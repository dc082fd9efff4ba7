//! R0: a claim took effect before the topic was judged. The term is held, but no job runs under it, and no record but its release is
//! written.

use super::Common;
use super::leading::Leading;
use super::reading::OwnClaim;
use super::releasing::Releasing;
use super::standing_by::StandingBy;
use super::state::{Input, State};
use crate::record::{Offset, Why};
use crate::time::Time;

/// A claim that took effect before the topic was judged.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct AwaitingJudgement {
    claim: OwnClaim,
    sent: Time,
}

impl AwaitingJudgement {
    /// Holds the term of a claim that was sent at `sent`.
    pub(super) const fn begin(claim: OwnClaim, sent: Time) -> State {
        State::AwaitingJudgement(Self { claim, sent })
    }

    pub(super) const fn term(&self) -> Offset {
        self.claim.term()
    }

    /// When the judgement would come too late for this claim.
    pub(super) fn expires_at(&self, common: &Common) -> Time {
        common.claim_expires_at(self.sent)
    }

    pub(super) fn lease_end(&self, common: &Common) -> Time {
        self.sent + common.timings.lease()
    }

    #[expect(clippy::needless_pass_by_value, reason = "the step of every state has this signature")]
    pub(super) fn step(self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::HistoryCut => StandingBy::from(now),
            Input::Revoked => self.release(common, now, Why::Revoked),
            Input::StandDown { why } => self.release(common, now, why),
            Input::TimedOut if now >= self.expires_at(common) => self.release(common, now, Why::ClaimExpired),
            Input::TopicJudged { .. } => self.judged(common, now),
            Input::ViewChanged if common.superseded(self.term()).is_some() => StandingBy::from(now),
            Input::BeatEffective { .. }
            | Input::ClaimEffective(_)
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GivenUp
            | Input::GuardFenced { .. }
            | Input::Job(_)
            | Input::MoveOn
            | Input::NamedSuccessor
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::TimedOut
            | Input::TimePassed
            | Input::Undelivered { .. }
            | Input::ViewChanged => State::AwaitingJudgement(self),
        }
    }

    /// Handles the judgement that the topic may carry an election.
    fn judged(self, common: &mut Common, now: Time) -> State {
        if now >= self.expires_at(common) {
            self.release(common, now, Why::ClaimExpired)
        } else if common.is_current(self.term()) {
            Leading::begin(common, now, self.claim, self.sent)
        } else {
            Self::drop_term(common, now)
        }
    }

    /// Releases the term, which is not wanted any more. No job has run under it.
    fn release(self, common: &mut Common, now: Time, why: Why) -> State {
        if why.lets_another_lead() {
            common.cool_off(now);
        }
        if common.is_current(self.term()) {
            let lease_end = self.lease_end(common);
            Releasing::of_claim(common, now, self.claim, why, lease_end)
        } else {
            Self::drop_term(common, now)
        }
    }

    /// R6: if the term is no longer current in this candidate's view, no record is written under it. Its lease runs out.
    fn drop_term(common: &mut Common, now: Time) -> State {
        common.ask_anew(now);
        StandingBy::from(now)
    }
}
