//! No term is held, and the process is suspended or about to be. It claims and sends nothing until SIGCONT.

use super::Common;
use super::action::Action;
use super::releasing::Releasing;
use super::standing_by::StandingBy;
use super::state::{Input, State};
use crate::time::Time;

/// Suspended, or about to be.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Suspended;

impl Suspended {
    /// Suspends the process.
    pub(super) fn begin(common: &mut Common) -> State {
        common.actions.push_back(Action::Suspend);
        State::Suspended(Self)
    }

    pub(super) fn step(self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            // A claim that was given up took effect late.
            Input::ClaimEffective(claim) => return Releasing::of_expired_claim(common, now, claim),
            // It stands for election again from R1, as after a start.
            Input::Continued => {
                common.standing_by = None;
                common.ask_anew(now);
                return StandingBy::from(now);
            }
            Input::MoveOn => {
                if let Some(departure) = common.departure() {
                    return common.depart(departure);
                }
            }
            Input::StandDown { why } => {
                if why.lets_another_lead() {
                    common.cool_off(now);
                }
            }
            Input::BeatEffective { .. }
            | Input::ClaimVoid { .. }
            | Input::Delivered { .. }
            | Input::GivenUp
            | Input::GuardFenced { .. }
            | Input::HistoryCut
            | Input::Job(_)
            | Input::NamedSuccessor
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::Revoked
            | Input::TimedOut
            | Input::TimePassed
            | Input::TopicJudged { .. }
            | Input::Undelivered { .. }
            | Input::ViewChanged => {}
        }
        State::Suspended(self)
    }
}
