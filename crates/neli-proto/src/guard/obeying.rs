//! How the guard handles its orders.

use super::action::Action;
use super::commands;
use super::message::{Answer, CommandKind, Grant, Order};
use super::run::GuardedRun;
use super::tenure::{GrantOutcome, Tenure};
use super::{Guard, end_of_search, fenced};
use crate::command::CommandEnd;
use crate::time::Time;

impl Guard {
    pub(super) fn obey(&mut self, now: Time, order: &Order) {
        match *order {
            Order::Command { kind, id, kill_at } => self.start_command(now, kind, id, kill_at),
            Order::HandOn => {
                if let Some(run) = self.run.as_mut().filter(|_| !self.supervisor.has_gone()) {
                    run.hand_on(&mut self.actions);
                }
            }
            Order::Kill => match &self.run {
                None => self.answer_no_run(),
                // The report of its end is the answer.
                Some(run) if run.is_being_killed() => {}
                Some(_) => {
                    self.actions.push_back(Action::Answer(Answer::Killed));
                    self.kill(now);
                }
            },
            Order::Lease(grant) => self.extend(now, grant),
            Order::Over { term } => {
                if self.holds(term) {
                    self.end_term(now);
                }
            }
            Order::Released { term } => {
                if self.holds(term) {
                    self.end_term(now);
                    self.forbid_release();
                }
            }
            Order::Signal { signal, to } => {
                if let Some(run) = &mut self.run {
                    run.signal(signal, to, &mut self.actions);
                }
            }
            Order::Spawn { grant, run, attempt, window } => {
                if let Some(until) = self.spawn(now, grant, run) {
                    self.actions.push_back(Action::Start { term: grant.term, until, attempt, window });
                }
            }
            Order::Stop { signal, kill_at } => {
                let look_until = end_of_search(self.tenure, now);
                match &mut self.run {
                    None => self.answer_no_run(),
                    Some(run) => run.stop(signal, kill_at, look_until, &mut self.actions),
                }
            }
            Order::TakeBack => self.actions.push_back(Action::TakeBack),
        }
        if self.supervisor.has_gone() {
            // The guard knows this term only from its last orders.
            self.end_term(now);
        }
    }

    fn holds(&self, term: i64) -> bool {
        self.tenure.is_some_and(|tenure| tenure.term() == term)
    }

    fn extend(&mut self, now: Time, grant: Grant) {
        if self.run.is_some() && !self.holds(grant.term) {
            // The job of one term never runs on another term's lease.
            return;
        }
        match self.take_grant(now, grant) {
            GrantOutcome::Granted(until) => {
                self.actions.push_back(Action::ShowDeadline { term: grant.term, until });
                self.actions.push_back(Action::Answer(Answer::Extended { until }));
                self.tree.may_be_looked_at = true;
            }
            // While processes are being killed, the report of the run's end is the answer.
            GrantOutcome::Refused if self.run.is_some() => {}
            GrantOutcome::Refused => self.actions.push_back(fenced(grant.term, None)),
        }
    }

    fn take_grant(&mut self, now: Time, grant: Grant) -> GrantOutcome {
        let (tenure, outcome) = Tenure::granted(self.tenure, grant, now);
        self.tenure = Some(tenure);
        outcome
    }

    /// Begins a run unless there is one already, so that no order can cause two jobs at once. Returns before when its job must execute.
    fn spawn(&mut self, now: Time, grant: Grant, run: u64) -> Option<Time> {
        if self.run.is_some() {
            return None;
        }
        let GrantOutcome::Granted(until) = self.take_grant(now, grant) else {
            self.actions.push_back(fenced(grant.term, None));
            return None;
        };
        if self.supervisor.has_gone() {
            return None;
        }
        self.actions.push_back(Action::Answer(Answer::Accepted { until }));
        (self.run, self.last_run) = (Some(GuardedRun::new()), Some((grant.term, run)));
        Some(until)
    }

    /// Answers that there is no run. Otherwise a supervisor that has lost the report of the end would wait for ever.
    fn answer_no_run(&mut self) {
        let answer = self.last_run.map(|(term, run)| Answer::NoRun { term, run });
        self.actions.extend(answer.map(Action::Answer));
    }

    /// Starts a command, but only beside a job that runs, and not shortly before the deadline.
    fn start_command(&mut self, now: Time, kind: CommandKind, id: u32, kill_at: Time) {
        let runs = self.run.as_ref().is_some_and(|run| run.has_main() && !run.is_being_killed());
        if !runs || self.supervisor.is_known_dead() {
            self.actions.push_back(commands::ended(kind, id, CommandEnd::Abandoned));
        } else if self.has_time_to_fork(now) {
            self.commands.start(kind, id, kill_at, &mut self.actions);
        } else {
            self.actions.push_back(commands::ended(kind, id, CommandEnd::NoTime));
        }
    }
}
