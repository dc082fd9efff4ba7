//! The lease is over, but processes of the job may be left. No record is written until they are gone.

use super::Common;
use super::action::Action;
use super::releasing::{JobTerm, Releasing};
use super::state::{Input, State};
use crate::note::Note;
use crate::record::{Offset, Why};
use crate::supervisor::{JobEnd, Loss, Wanted};
use crate::time::Time;

/// A term whose lease is over, and whose job is being killed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Fenced {
    /// The last thing that the leader wanted of its job.
    pub(super) wanted: Wanted,
    /// The reason that the release will carry.
    pub(super) why: Why,
    /// The reason for which it was standing down before the fence. It decides what follows the fence.
    pub(super) stood_down: Option<Why>,
    pub(super) lease_end: Time,
    pub(super) loss: Loss,
    /// `--overlap`: the term by whose claim this one was overlapped, before its lease ended.
    pub(super) overlapped_by: Option<Offset>,
}

impl Fenced {
    pub(super) const fn term(&self) -> Offset {
        self.wanted.grant.term
    }

    pub(super) const fn stood_down(&self) -> Option<Why> {
        self.stood_down
    }

    pub(super) const fn lease_end(&self) -> Time {
        self.lease_end
    }

    pub(super) fn step(mut self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::HistoryCut => self.loss = Loss::HistoryCut,
            Input::NothingLeft(end) if end.proof.term() == self.term() => return self.nothing_left(common, now, *end),
            // The candidate first waits for the end of the job's processes. Then the cool-off begins, unless it must begin already.
            Input::StandDown { why } => {
                if why != Why::Suspended || self.stood_down.is_none() {
                    self.stood_down = Some(why);
                }
            }
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
            | Input::Revoked
            | Input::TimedOut
            | Input::TimePassed
            | Input::TopicJudged { .. }
            | Input::Undelivered { .. }
            | Input::ViewChanged => {}
        }
        State::Fenced(self)
    }

    fn nothing_left(self, common: &mut Common, now: Time, end: JobEnd) -> State {
        let term = self.term();
        let Self { why, stood_down, lease_end, loss, overlapped_by, .. } = self;
        let late = end.seen.and_then(|seen| seen.overrun(lease_end));
        if loss != Loss::Superseded {
            let left = lease_end.since(end.seen.map_or(now, |seen| seen.gone_at));
            common.actions.push_back(Action::Note(Note::Fenced { term, why, loss, left, late }));
        }
        let is_cut = loss == Loss::HistoryCut;
        let term = JobTerm { why, stood_down, held_until: lease_end, late, is_cut, overlapped_by };
        Releasing::of_job(common, now, end, term)
    }
}
