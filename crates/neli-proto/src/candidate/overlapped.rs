//! `--overlap`: another candidate has claimed. The job that runs here must stop within the overlap, or with the lease (O3).

use super::Common;
use super::action::Action;
use super::fenced::Fenced;
use super::reasons::rank;
use super::releasing::{JobTerm, Releasing};
use super::state::{Input, State};
use crate::note::Note;
use crate::record::{JobState, Offset, Why};
use crate::supervisor::{Does, JobEnd, Loss, Wanted};
use crate::time::Time;

/// A term that has ended while its job continues beside the next leader's. Its lease is not extended any more.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Overlapped {
    term: Offset,
    /// The last thing that the leader wanted of its job.
    wanted: Wanted,
    /// The term of the candidate that has claimed.
    by_term: Offset,
    /// The reason for which it stands down.
    why: Why,
    lease_end: Time,
    /// When the job is asked to stop, unless the next leader's job runs before; `None` after it was asked.
    asks_at: Option<Time>,
    /// When the remaining processes of the job are killed.
    kill_at: Time,
}

impl Overlapped {
    /// Handles the claim of `by_term`. A job that was not asked to stop continues until the next leader's job runs, but at most for half of
    /// the time.
    pub(super) fn begin(
        common: &mut Common,
        now: Time,
        wanted: Wanted,
        why: Why,
        lease_end: Time,
        by_term: Offset,
    ) -> Self {
        let term = wanted.grant.term;
        let within = common.timings.overlap().unwrap_or_default();
        let by = common.leader_name();
        common.actions.push_back(Action::Note(Note::Overlapped { term, by_term, by, within }));
        Self { term, wanted, by_term, why, lease_end, asks_at: Some(now + within / 2), kill_at: now + within }
    }

    /// SIGKILL follows when the time is over.
    pub(super) fn wants(&self) -> Wanted {
        let stop = Does::Stop { why: self.why, by: Some(self.kill_at) };
        let does = if self.asks_at.is_some() { Does::Run } else { stop };
        Wanted { does, ..self.wanted }
    }

    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn lease_end(&self) -> Time {
        self.lease_end
    }

    pub(super) fn due(&self, common: &Common) -> Option<Time> {
        [Some(self.deadline(common)), self.asks_at].into_iter().flatten().min()
    }

    fn deadline(&self, common: &Common) -> Time {
        self.lease_end - common.timings.kill_margin()
    }

    pub(super) fn step(mut self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::GuardFenced { why } => return self.lose(why, Loss::LeaseOver),
            Input::HistoryCut => return self.lose(Why::Fenced, Loss::HistoryCut),
            // The run has ended by itself. No other one begins beside the next leader's.
            Input::Job(job) if job.state == JobState::Restarting && self.asks_at.is_some() => {
                return self.stop();
            }
            Input::NothingLeft(end) if end.proof.term() == self.term => return self.nothing_left(common, now, *end),
            Input::StandDown { why } => {
                if rank(why) > rank(self.why) {
                    self.why = why;
                }
            }
            Input::TimedOut => {
                if self.asks_at.is_some_and(|asks_at| now >= asks_at) {
                    return self.stop();
                }
            }
            Input::TimePassed => {
                if now >= self.deadline(common) {
                    return self.lose(Why::Fenced, Loss::LeaseOver);
                }
            }
            Input::ViewChanged => return self.view_changed(common),
            Input::BeatEffective { .. }
            | Input::ClaimEffective(_)
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GivenUp
            | Input::Job(_)
            | Input::MoveOn
            | Input::NamedSuccessor
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::Revoked
            | Input::TopicJudged { .. }
            | Input::Undelivered { .. } => {}
        }
        State::Overlapped(self)
    }

    /// Asks the job to stop, once.
    pub(super) fn stop(self) -> State {
        State::Overlapped(Self { asks_at: None, ..self })
    }

    fn view_changed(self, common: &mut Common) -> State {
        match common.current_term() {
            Some(term) if term.offset == self.by_term && term.has_run && self.asks_at.is_some() => self.stop(),
            // At the time of that claim no process can be left here. If one is, a clock was wrong, as in every case in which a leader is
            // superseded.
            Some(term) if term.offset > self.by_term => {
                let (by_term, by) = (Some(term.offset), term.name.clone());
                common.actions.push_back(Action::Note(Note::Superseded { term: self.term, by_term, by }));
                self.lose(Why::Fenced, Loss::Superseded)
            }
            Some(_) | None => State::Overlapped(self),
        }
    }

    /// R5: the lease is over, but processes of the job may be left.
    fn lose(&self, why: Why, loss: Loss) -> State {
        let (wanted, lease_end) = (self.wanted, self.lease_end);
        let (stood_down, overlapped_by) = (Some(self.why), Some(self.by_term));
        State::Fenced(Fenced { wanted, why, stood_down, lease_end, loss, overlapped_by })
    }

    fn nothing_left(self, common: &mut Common, now: Time, end: JobEnd) -> State {
        let Self { why, by_term, lease_end, .. } = self;
        let overlapped_by = Some(by_term);
        let term = JobTerm { why, stood_down: None, held_until: lease_end, late: None, is_cut: false, overlapped_by };
        Releasing::of_job(common, now, end, term)
    }
}
