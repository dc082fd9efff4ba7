//! What a candidate does at what happens on this machine: to the job, to its guard, and to the process.

use super::Candidate;
use super::state::{Claiming, Fenced, State};
use crate::record::{JobState, Offset, Why};
use crate::supervisor::{JobIs, JobReport, Local, Loss, Wanted};
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
        if lacks_guard != self.election.next_claim.lacks_guard {
            self.on_local(now, |candidate| candidate.election.next_claim.lacks_guard = lacks_guard);
        }
        if is_stopped && !seen.is_stopped {
            self.stand_down(now, Why::Stopped, true);
        }
        if is_suspended && !seen.is_suspended {
            self.stand_down(now, Why::Suspended, false);
        }
        if seen.is_suspended && !is_suspended {
            self.on_local(now, |candidate| candidate.go_on(now));
        }
        if let Some(job) = job {
            self.set_job(now, job);
        }
    }

    fn set_job(&mut self, now: Time, job: JobIs) {
        let held = self.wants().map(|wanted| wanted.grant.term);
        match job {
            JobIs::Alive { term, report, is_unhealthy, fenced } => {
                let became_unhealthy = is_unhealthy && !self.seen.is_unhealthy;
                self.seen.is_unhealthy = is_unhealthy;
                if became_unhealthy {
                    self.stand_down(now, Why::Unhealthy, false);
                }
                if held == Some(term) && self.is_news(report, fenced) {
                    self.on_local(now, |candidate| candidate.job_is(now, report, fenced));
                }
            }
            JobIs::Gone(end) => {
                self.seen.is_unhealthy = false;
                if held == Some(end.proof.term()) {
                    self.on_local(now, |candidate| {
                        candidate.guard_has_fenced(end.fenced);
                        candidate.release_job(now, end);
                    });
                }
            }
        }
    }

    fn is_news(&self, report: JobReport, fenced: Option<Why>) -> bool {
        if let State::Leading(leading) = &self.state {
            return fenced.is_some() || leading.job != report;
        }
        matches!(self.state, State::Overlapped(_)) && (fenced.is_some() || report.state == JobState::Restarting)
    }

    /// Handles a new state of the job.
    fn job_is(&mut self, now: Time, report: JobReport, fenced: Option<Why>) {
        self.guard_has_fenced(fenced);
        if let State::Leading(leading) = &mut self.state {
            leading.job_changed(now, report);
        } else if let State::Overlapped(overlapped) = &mut self.state
            && report.state == JobState::Restarting
        {
            // The run has ended by itself. No other one begins beside the next leader's.
            overlapped.asks_at = None;
        }
    }

    /// The lease is over, also if the own deadline is later: the guard fenced the job for this reason, or died.
    fn guard_has_fenced(&mut self, why: Option<Why>) {
        if let Some(why) = why {
            self.become_fenced(why, Loss::LeaseOver);
        }
    }

    /// Stands down: leaves for good (`leaving`), cools off, or waits until the process continues (`Suspended`).
    pub fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        self.on_local(now, |candidate| candidate.stand_down_for(now, why, leaving));
    }

    pub(super) fn stand_down_for(&mut self, now: Time, why: Why, leaving: bool) {
        let election = &mut self.election;
        election.stands_down(why, leaving);
        match &mut self.state {
            State::AwaitingJudgement { .. } => self.release_unjudged(now, why),
            // The candidate first waits for the claim, or for the end of the job's processes. Then the cool-off begins, unless it must begin
            // already.
            State::Claiming(Claiming { stood_down, .. }) | State::Fenced(Fenced { stood_down, .. }) => {
                if why != Why::Suspended || stood_down.is_none() {
                    *stood_down = Some(why);
                }
            }
            State::Leading(leader) => leader.stand_down(election, now, why),
            State::Overlapped(overlapped) => {
                if why.rank() > overlapped.why.rank() {
                    overlapped.why = why;
                }
            }
            State::Releasing(_) | State::StandingBy { .. } | State::Suspended => {
                if why.lets_another_lead() {
                    election.cool_off(now);
                }
            }
            State::Departed(_) => {}
        }
    }

    /// The process continues after it was suspended: it stands for election again from R1, as after a start.
    fn go_on(&mut self, now: Time) {
        self.election.suspending = false;
        if self.state == State::Suspended {
            self.election.standing_by = None;
            self.election.ask_anew(now);
            self.become_standby(now);
        }
    }

    /// Ends the wait for a claim or for a release's delivery, at the second request to stop. (A candidate that was asked to stop has
    /// released a term that is not judged.)
    pub fn give_up(&mut self, now: Time) {
        // Each has an effect in its own state only.
        self.claim_was_void(now);
        self.release_is_over(now, false);
        self.move_on(now);
    }

    /// Forbids claims while `are_held`.
    pub(crate) fn hold_claims(&mut self, now: Time, are_held: bool) {
        let ends = self.election.next_claim.is_held && !are_held;
        self.election.next_claim.is_held = are_held;
        if ends {
            self.handle_timeout(now);
        }
    }

    /// Handles something on this machine, after the end of a lease that is over.
    pub(super) fn on_local(&mut self, now: Time, happens: impl FnOnce(&mut Self)) {
        if self.departed().is_some() {
            return;
        }
        self.end_lease_if_over(now);
        happens(self);
        self.handle_timeout(now);
    }
}
