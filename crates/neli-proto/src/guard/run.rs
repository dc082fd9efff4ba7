//! One run of the job, from the order until no process of it is left.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::killing::{KillMethod, Killing};
use super::message::{Action, Answer, Order, Step, Target};
use super::queue::Queue;
use crate::job::JobStatus;
use crate::time::Time;

const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;

/// A run: the job, and all processes that descend from it. It begins with its order.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct GuardedRun {
    pub(super) phase: RunPhase,
    /// Signals that wait until the main process has executed.
    held_back: Queue<Order, ()>,
    /// Why it could not execute.
    pub(super) failure: Option<Answer>,
    /// Whether the main process's group was asked to stop.
    group_was_asked: bool,
    /// When the barrier ends with SIGKILL.
    kill_at: Option<Time>,
    /// Set once SIGKILL was sent.
    pub(super) killing: Option<Killing>,
}

/// The state of a run, by its main process.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RunPhase {
    /// It was ordered, and is not known to have executed.
    #[default]
    Starting,
    /// It has executed, or failed to.
    Running,
    /// It was waited for, and other processes may be left.
    MainEnded,
}

impl GuardedRun {
    /// When the run must be handled next.
    pub(super) fn due(&self) -> Option<Time> {
        self.killing.as_ref().map_or(self.kill_at, Killing::due)
    }

    /// Whether its main process was not waited for.
    pub(super) fn has_main(&self) -> bool {
        self.phase != RunPhase::MainEnded
    }

    /// Whether SIGKILL was sent.
    pub(super) const fn is_being_killed(&self) -> bool {
        self.killing.is_some()
    }

    /// Gives it the terminal's foreground if possible, and SIGCONT.
    pub(super) fn hand_on(&mut self, actions: &mut VecDeque<Action>) {
        if self.has_main() {
            actions.push_back(Action::HandOn);
            self.signal(SIGCONT, Target::Group, actions);
        }
    }

    /// Passes a signal on as soon as the job has executed.
    pub(super) fn signal(&mut self, signal: i32, to: Target, actions: &mut VecDeque<Action>) {
        match self.phase {
            RunPhase::Starting => self.held_back.put(&Order::Signal { signal, to }, None),
            RunPhase::Running => actions.push_back(Action::Signal { signal, to }),
            RunPhase::MainEnded => {}
        }
    }

    /// Begins the barrier: asks the job to stop, and notes when SIGKILL is due.
    ///
    /// `look_until`: until when its remaining processes may be searched for; `None` if SIGKILL is too near.
    pub(super) fn stop(
        &mut self,
        signal: Option<i32>,
        kill_at: Time,
        look_until: Option<Time>,
        actions: &mut VecDeque<Action>,
    ) {
        self.kill_at = Some(kill_at);
        let Some(signal) = signal else { return };
        if self.has_main() {
            self.group_was_asked = true;
            self.signal(signal, Target::Group, actions);
            self.signal(SIGCONT, Target::Group, actions);
        } else if let Some(until) = look_until {
            actions.push_back(Action::SignalRest { signal, but_group: self.group_was_asked, until });
        }
    }

    /// Sends SIGKILL to all its processes, now and until none is left. Those that are alive after `patience` are stuck.
    pub(super) fn kill(
        &mut self,
        now: Time,
        patience: Duration,
        lease_end: Option<Time>,
        actions: &mut VecDeque<Action>,
    ) {
        let main = self.has_main().then_some(Action::KillMainGroup);
        let killing = self.killing.get_or_insert_with(|| Killing::new(now, patience).looking_at(lease_end));
        let methods = killing.round(now);
        // A look before the first SIGKILL shows nothing after it.
        let (before, after) = if methods.contains(&KillMethod::Look) { (None, main) } else { (main, None) };
        actions.extend(before.into_iter().chain([Action::Kill(methods)]).chain(after));
    }

    /// Handles a child that has ended: if it had children, they are the guard's now. If a whole round is due, the timeout begins it.
    pub(super) fn kill_remaining(&mut self, now: Time, actions: &mut VecDeque<Action>) {
        let killing = self.killing.as_mut().filter(|killing| now < killing.again_at());
        actions.extend(killing.map(|killing| Action::Kill(killing.round(now))));
    }

    /// Notes that the job has executed.
    pub(super) fn executed(&mut self, actions: &mut VecDeque<Action>) {
        if self.phase == RunPhase::Starting {
            actions.push_back(Action::AnswerStarted);
            self.pass_on_held_back(actions);
        }
    }

    /// Notes that the job could not execute, and that its child ends.
    pub(super) fn not_executed(&mut self, errno: i32, at: Step, actions: &mut VecDeque<Action>) {
        self.failure = Some(Answer::NotStarted { errno, at });
        self.pass_on_held_back(actions);
    }

    fn pass_on_held_back(&mut self, actions: &mut VecDeque<Action>) {
        self.phase = RunPhase::Running;
        while let Some(Order::Signal { signal, to }) = self.held_back.take_first() {
            actions.push_back(Action::Signal { signal, to });
        }
    }

    /// Handles a stop of the main process.
    pub(super) fn main_stopped(&mut self, signal: i32, actions: &mut VecDeque<Action>) {
        if self.phase == RunPhase::Starting && signal == SIGTSTP {
            // A stop is handled only after it has executed.
            actions.push_back(Action::Signal { signal: SIGCONT, to: Target::Main });
        }
        if !self.is_being_killed() {
            actions.push_back(Action::Answer(Answer::Stopped { signal }));
        }
    }

    /// Handles the end of the main process. As a shell does, the guard takes the terminal back, even if processes of the job are left.
    ///
    /// `may_look`: whether there is time for a check of the tree before the deadline.
    pub(super) fn main_ended(&mut self, status: JobStatus, may_look: bool, actions: &mut VecDeque<Action>) {
        self.phase = RunPhase::MainEnded;
        actions.push_back(match self.failure {
            Some(_) => Action::TakeBack,
            None => Action::AnswerExited { status, look: may_look && !self.is_being_killed() },
        });
    }
}
