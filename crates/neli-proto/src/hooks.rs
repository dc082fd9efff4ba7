//! The times of the hooks: `--on-lead` at the job's start, `--on-exit` when nothing of a run is left, `--on-fence` after a fence, `--on-standby`
//! when standing by begins, and at exit after a lead.
//!
//! They run in parallel, and only the exit waits for them. The guard runs `--on-lead` and ends it with the job's tree; the supervisor runs
//! the others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::action::{Action, HookRun};
use crate::guard::{CommandKind, Order};
use crate::job::{ANSWER_TAKES, CommandEnd};
use crate::note::Note;
use crate::record::{Offset, Why};
use crate::time::Time;

pub use crate::action::EndedRun;
pub use crate::job::Hook;

/// A hook that runs for longer is killed.
pub const LIMIT: Duration = Duration::from_secs(10);

/// At most this many hooks of ended runs run at once; the next one ends the oldest. A job that is run again and again would fill the machine.
const MOST_OF_RUNS: usize = 8;

/// The hooks of one candidate.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Hooks {
    /// The configured hooks.
    given: Vec<Hook>,
    phase: Phase,
    /// The last lead's term.
    term: Option<Offset>,
    /// The last run, from its end until nothing of it is left.
    ended: Option<EndedRun>,
    last_id: u32,
    /// The running hooks with their numbers, and until when each may run. The guard runs the lead's: until when it may report the end.
    running: Vec<(Hook, u32, Time)>,
    actions: VecDeque<Action>,
}

/// The last event for which hooks were run.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Phase {
    /// None yet.
    #[default]
    Begun,
    /// The lead, and why it ended, if it has.
    Led(&'static str),
    /// Standing by.
    StandingBy,
}

impl Hooks {
    /// The hooks of a candidate that starts.
    pub(crate) fn new(given: Vec<Hook>) -> Self {
        Self { given, ..Self::default() }
    }

    /// The next action.
    #[must_use]
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.running.iter().map(|(.., until)| *until).min()
    }

    /// Performs what is due. Early calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        for (hook, id, _) in self.running.extract_if(.., |(.., until)| now >= *until) {
            let end = if hook == Hook::Lead {
                CommandEnd::Unanswered
            } else {
                self.actions.push_back(Action::KillHook { id });
                CommandEnd::TimedOut
            };
            self.actions.push_back(Action::Note(Note::HookFailed { hook, end }));
        }
    }

    /// The hook with this number has ended.
    pub(crate) fn ended(&mut self, id: u32, end: CommandEnd) {
        let ended = self.running.extract_if(.., |(_, running, _)| *running == id).next();
        if let Some((hook, ..)) = ended.filter(|_| end.is_failure()) {
            self.actions.push_back(Action::Note(Note::HookFailed { hook, end }));
        }
    }

    /// The process is about to exit.
    pub(crate) fn exiting(&mut self, now: Time) {
        if let Phase::Led(why) = self.phase {
            self.stand_by(now, why);
        }
    }

    /// The lead was won. Its hook runs beside the first run.
    pub(crate) fn won(&mut self, term: Offset) {
        if !self.given.is_empty() {
            (self.term, self.phase) = (Some(term), Phase::Led(""));
        }
    }

    /// The first run of a lead was ordered.
    pub(crate) fn led(&mut self, now: Time, term: Offset) {
        self.term = Some(term).filter(|_| !self.given.is_empty());
        self.enter(now, Phase::Led(""), Hook::Lead, "");
    }

    /// A run has ended, and processes that it left may still be alive.
    pub(crate) fn run_ended(&mut self, run: EndedRun) {
        self.ended = Some(run).filter(|_| self.given.contains(&Hook::Exit));
    }

    /// The run that has ended, until [`nothing_is_left`](Self::nothing_is_left).
    pub(crate) const fn ended_run(&self) -> Option<EndedRun> {
        self.ended
    }

    /// Nothing is left of the run that has ended.
    pub(crate) fn nothing_is_left(&mut self, now: Time) {
        let Some(ended) = self.ended.take() else { return };
        let mut of_runs = self.running.iter().filter(|(hook, ..)| *hook == Hook::Exit);
        if let Some(&(_, id, _)) = of_runs.next().filter(|_| of_runs.count() + 1 >= MOST_OF_RUNS) {
            self.actions.push_back(Action::KillHook { id });
            self.ended(id, CommandEnd::Replaced);
        }
        self.run(now, Hook::Exit, if ended.by_itself { "exited" } else { "stopped" }, Some(ended));
    }

    /// The lease ran out, and no process of the job is left; or another candidate's claim took effect (`superseded`).
    pub(crate) fn fenced(&mut self, now: Time, why: &'static str) {
        self.enter(now, Phase::Led(why), Hook::Fence, why);
    }

    /// A term was released, or the release failed.
    pub(crate) fn released(&mut self, now: Time, why: Why) {
        // A claim that was read back too late was no lead.
        if let Phase::Led(_) = self.phase {
            self.stand_by(now, why.as_str());
        }
    }

    /// Standing by began, or another candidate leads.
    pub(crate) fn stood_by(&mut self, now: Time) {
        match self.phase {
            Phase::Begun => self.stand_by(now, ""),
            Phase::Led(why) => self.stand_by(now, why),
            Phase::StandingBy => {}
        }
    }

    /// Ends the wait for hooks: the running ones are killed.
    pub(crate) fn give_up(&mut self) {
        let killed = self.running.extract_if(.., |(hook, ..)| *hook != Hook::Lead);
        self.actions.extend(killed.map(|(_, id, _)| Action::KillHook { id }));
    }

    /// Whether none of the supervisor's hooks is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.iter().all(|(hook, ..)| *hook == Hook::Lead)
    }

    fn stand_by(&mut self, now: Time, why: &'static str) {
        self.enter(now, Phase::StandingBy, Hook::Standby, why);
    }

    fn enter(&mut self, now: Time, phase: Phase, hook: Hook, why: &'static str) {
        // Without any hook there is no state to keep.
        if !self.given.is_empty() {
            // The hook of the lead ended with the job.
            self.running.retain(|(hook, ..)| *hook != Hook::Lead);
            self.phase = phase;
            self.run(now, hook, why, None);
        }
    }

    fn run(&mut self, now: Time, hook: Hook, why: &'static str, ended: Option<EndedRun>) {
        if !self.given.contains(&hook) {
            return;
        }
        self.last_id += 1;
        let (id, kill_at) = (self.last_id, now + LIMIT);
        self.actions.push_back(match hook {
            Hook::Exit | Hook::Fence | Hook::Standby => {
                self.running.push((hook, id, kill_at));
                // The node knows the attempt of a run that goes on.
                let attempt = ended.map_or(0, |ended| ended.attempt);
                Action::RunHook(HookRun { hook, id, why, term: self.term, attempt, ended })
            }
            Hook::Lead => {
                self.running.push((hook, id, kill_at + ANSWER_TAKES));
                Action::Order(Order::Command { kind: CommandKind::Lead, id, kill_at })
            }
        });
    }
}

#[cfg(test)]
mod tests;
