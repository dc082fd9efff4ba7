//! What happens on this machine: the job, its guard, and what the process was told.

use super::Candidate;
use super::state::{Input, State};
use crate::record::{Offset, Why};
use crate::supervisor::{JobIs, Local, Wanted};
use crate::time::Time;

/// What a candidate last saw of its machine, besides the job's state.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Seen {
    is_stopped: bool,
    is_suspended: bool,
    is_unhealthy: bool,
}

impl Candidate {
    /// What it wants of the job of the term that it holds; `None` while it holds none.
    #[must_use]
    pub fn wants(&self) -> Option<Wanted> {
        self.state.wants()
    }

    /// Whether it waits for the end of this term's job.
    pub(crate) fn awaits_end_of(&self, term: Offset) -> bool {
        self.wants().is_some_and(|wanted| wanted.grant.term == term)
    }

    /// Handles the state of this machine, as far as it has changed.
    pub fn set_local(&mut self, now: Time, local: Local) {
        let Local { job, lacks_guard, is_stopped, is_suspended } = local;
        let seen = self.seen;
        (self.seen.is_stopped, self.seen.is_suspended) = (is_stopped, is_suspended);
        if lacks_guard != self.common.guard_is_missing {
            self.on_local(now, |candidate| candidate.common.guard_is_missing = lacks_guard);
        }
        if is_stopped && !seen.is_stopped {
            self.stand_down(now, Why::Stopped, true);
        }
        if is_suspended && !seen.is_suspended {
            self.stand_down(now, Why::Suspended, false);
        }
        if seen.is_suspended && !is_suspended {
            self.on_local(now, |candidate| {
                candidate.common.suspending = false;
                candidate.step(now, Input::Continued);
            });
        }
        if let Some(job) = job {
            self.set_job(now, job);
        }
    }

    fn set_job(&mut self, now: Time, job: JobIs) {
        let lost = |why: Option<Why>| why.map(|why| Input::GuardFenced { why });
        match job {
            JobIs::Alive { term, report, is_unhealthy, fenced } => {
                let became_unhealthy = is_unhealthy && !self.seen.is_unhealthy;
                self.seen.is_unhealthy = is_unhealthy;
                if became_unhealthy {
                    self.stand_down(now, Why::Unhealthy, false);
                }
                if self.awaits_end_of(term) {
                    if let Some(input) = lost(fenced).filter(|_| !matches!(self.state, State::Fenced(_))) {
                        self.on_local(now, |candidate| candidate.step(now, input));
                    } else if self.state.is_news(report) {
                        self.on_local(now, |candidate| candidate.step(now, Input::Job(report)));
                    }
                }
            }
            JobIs::Gone(end) => {
                self.seen.is_unhealthy = false;
                if self.awaits_end_of(end.proof.term()) {
                    self.on_local(now, |candidate| {
                        if let Some(input) = lost(end.fenced) {
                            candidate.step(now, input);
                        }
                        candidate.step(now, Input::NothingLeft(end.into()));
                    });
                }
            }
        }
    }

    /// Stands down: leaves for good (`leaving`), cools off, or waits until the process continues (`Suspended`).
    pub fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        self.on_local(now, |candidate| candidate.told_to_stand_down(now, why, leaving));
    }

    /// Ends the wait for a claim or for a release's delivery, at the second request to stop. (A candidate that was asked to stop has
    /// released a term that is not judged.)
    pub fn give_up(&mut self, now: Time) {
        self.step(now, Input::GivenUp);
        self.step(now, Input::MoveOn);
    }

    /// Forbids claims while `are_held`.
    pub(crate) fn hold_claims(&mut self, now: Time, are_held: bool) {
        let ends = self.common.claims_are_held && !are_held;
        self.common.claims_are_held = are_held;
        if ends {
            self.handle_timeout(now);
        }
    }

    /// Handles something on this machine. The end of a lease is handled before, because nothing can extend a lease that has ended.
    pub(super) fn on_local(&mut self, now: Time, happens: impl FnOnce(&mut Self)) {
        if self.state == State::Departed {
            return;
        }
        self.step(now, Input::TimePassed);
        happens(self);
        self.handle_timeout(now);
    }

    pub(super) fn told_to_stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        self.common.stands_down(why, leaving);
        self.step(now, Input::StandDown { why });
    }
}
