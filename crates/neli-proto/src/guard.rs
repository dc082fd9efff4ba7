//! The guard of one job: a process between the supervisor and the job, which enforces the deadline (R4). This module decides; the guard's
//! process passes [`Event`]s in and performs [`Action`]s.
//!
//! - At the deadline the job's whole tree is killed, even if the supervisor does not act.
//! - When the supervisor's end of the socket closes, or the supervisor dies, the tree is killed at once. A silent or stopped supervisor has
//!   no effect: the deadline stays.
//! - When the supervisor is dead, all of its orders were read, the tree is gone and the term is not released, the guard releases the term in
//!   the supervisor's place (R6). A closed socket alone is a reason to kill, but not to release.
//! - Runs follow each other: the next one starts when no process of the previous one is left.

use alloc::collections::VecDeque;
use core::mem;
use core::time::Duration;

pub use killing::{KillMethod, KillRound, Killing, SeenEnd, has_tree_ended};
pub use message::{Action, Answer, CommandKind, Event, Grant, Named, Order, Remains, Step, Target, TreeGone};
pub use obeying::SupervisorLife;
pub use queue::Queue;
pub use run::RunPhase;
pub use starts::GuardStarts;

use crate::job::CommandEnd;
use crate::time::Time;
use obeying::Commands;
use run::GuardedRun;
use tenure::Tenure;

mod killing;
mod message;
mod obeying;
mod queue;
mod run;
mod starts;
mod tenure;

/// More actions than are ever waiting at once. At the deadline no memory may be allocated: at the job's memory limit, which the guard
/// shares, an allocation may stall or fail.
const ACTIONS: usize = 32;

/// How long a check of the job's tree may take while the guard is idle, and its share of the time: one part in this many.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_SHARE: u32 = 100;

/// How long the second thread leaves a kill to the first one, of the guard's process and of the supervisor's; a part of the shortest kill
/// margin, 20 ms.
pub const FIRST_THREAD_ACTS_WITHIN: Duration = Duration::from_millis(5);

/// No command is started this shortly before the deadline, or in the last part of a short lease, one part in this many. A fork, like a
/// check, needs memory and may stall, and the kill would wait for it.
const NO_FORK: Duration = Duration::from_millis(100);
const NO_FORK_SHARE: u32 = 10;

/// The guard of one job.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Guard {
    /// A process that is alive this long after SIGKILL is stuck.
    patience: Duration,
    /// The time from a deadline to the lease's end.
    kill_margin: Duration,
    supervisor: SupervisorLife,
    /// The last term that was granted.
    tenure: Option<Tenure>,
    run: Option<GuardedRun>,
    /// The term and the number of the last run.
    last_run: Option<(i64, u64)>,
    commands: Commands,
    /// Whether the deadline came while the run was alive.
    fenced: bool,
    /// Whether the lease was extended since the last check of the job's tree was possible, so that its processes are known at the deadline. The
    /// guard checks only just after the lease was extended: at the job's memory limit a check may stall, and it must end long before the deadline.
    may_look: bool,
    /// The earliest time of the next check.
    look_at: Time,
    /// Whether there is nothing left to do.
    is_over: bool,
    actions: VecDeque<Action>,
}

impl Guard {
    /// A guard without orders. A process that is alive for `patience` after SIGKILL counts as stuck; it is a lease.
    pub fn new(patience: Duration) -> Self {
        Self { patience, actions: VecDeque::with_capacity(ACTIONS), ..Self::default() }
    }

    /// A guard whose deadlines are this long before the lease's end, so that a release for a dead supervisor can report that the job
    /// outlived the lease.
    #[must_use]
    pub fn with_kill_margin(self, kill_margin: Duration) -> Self {
        Self { kill_margin, ..self }
    }

    /// The state of the run, if there is one, and whether SIGKILL was sent.
    pub fn run_phase(&self) -> Option<(RunPhase, bool)> {
        self.run.as_ref().map(|run| (run.phase, run.is_being_killed()))
    }

    /// The state of the supervisor's process, as far as it is known.
    pub const fn supervisor_life(&self) -> SupervisorLife {
        self.supervisor
    }

    /// The next action.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When a second thread of the guard's process kills all that it knows of the run, and from then on again and again, unless this has moved
    /// the time: the first thread has acted by then, unless it stalls (R4). `None` without a run.
    pub fn second_thread_kills_at(&self, now: Time) -> Option<Time> {
        let run = self.run.as_ref()?;
        let due = if run.is_being_killed() { Some(now) } else { self.deadline() };
        due.map(|due| due + FIRST_THREAD_ACTS_WITHIN)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let run = self.run.as_ref().and_then(GuardedRun::due);
        [self.deadline(), run, self.commands.due()].into_iter().flatten().min()
    }

    /// Performs what is due, the deadline first. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.fence(now);
        if self.is_over {
            return;
        }
        self.commands.handle_timeout(now, &mut self.actions);
        let lease_end = self.lease_end();
        let Some(run) = self.run.as_mut().filter(|run| run.due().is_some_and(|due| now >= due)) else { return };
        if run.is_being_killed() {
            // Killing a large tree takes longer than the supervisor waits for a guard that may hang.
            self.actions.push_back(Action::Answer(Answer::StillKilling));
        } else {
            self.actions.push_back(Action::Answer(Answer::Killed));
            let look_until = end_of_look(self.tenure, now).filter(|_| !run.has_main());
            self.actions.extend(look_until.map(|until| Action::AnswerLeftBehind { until }));
        }
        run.kill(now, self.patience, lease_end, &mut self.actions);
        if run.killing.as_mut().is_some_and(|killing| killing.is_stuck(now)) {
            self.actions.push_back(Action::AnswerStuck);
            // This holds for each way in which the run ends: earlier answers stay valid, and the lease runs out by itself.
            self.forbid_release();
        }
    }

    /// R4: no job may run after the deadline. This only performs that, at once. It must be called first whenever the guard wakes up.
    pub fn fence(&mut self, now: Time) {
        if self.is_over || self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.run.is_some() {
            self.fenced = true;
        } else if let Some(tenure) = self.tenure {
            self.actions.push_back(fenced(tenure.term(), None));
        }
        self.end_term(now);
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, event: Event) {
        // The deadline is checked before each order, which may have come too late.
        self.fence(now);
        if self.is_over {
            return;
        }
        match event {
            Event::AllRead => self.supervisor.all_was_read(),
            Event::CommandEnded { kind, end } => {
                let is_killed = self.run.as_ref().is_some_and(GuardedRun::is_being_killed);
                let end = if is_killed { CommandEnd::Abandoned } else { end };
                self.commands.ended(kind, end, &mut self.actions);
            }
            Event::Executed => self.run.iter_mut().for_each(|run| run.executed(&mut self.actions)),
            Event::Killed(seen) => {
                if let Some(killing) = self.run.as_mut().and_then(|run| run.killing.as_mut()) {
                    killing.performed(now, seen, self.supervisor.has_gone());
                }
            }
            Event::Learnt { begun } => self.look_at = now + now.since(begun) * LOOK_SHARE,
            Event::MainEnded { status } => {
                let may_look = end_of_look(self.tenure, now).is_some();
                if let Some(run) = &mut self.run {
                    run.main_ended(status, may_look, &mut self.actions);
                    self.commands.abandon(&mut self.actions);
                }
            }
            Event::MainStopped { signal } => {
                self.run.iter_mut().for_each(|run| run.main_stopped(signal, &mut self.actions));
            }
            Event::NotStarted { errno, at } => self.not_started(errno, at),
            Event::Ordered(order) => self.obey(now, &order),
            Event::SocketClosed => self.socket_closed(now),
            Event::SupervisorDied => self.supervisor_died(now),
            Event::Waited(remains) => self.waited(now, remains),
        }
        self.end_if_done();
    }

    fn lease_end(&self) -> Option<Time> {
        self.tenure.map(|tenure| tenure.lease_end(self.kill_margin))
    }

    fn deadline(&self) -> Option<Time> {
        self.tenure.and_then(|tenure| tenure.deadline())
    }

    /// Whether a fork now can't delay the kill at the deadline.
    fn has_time_to_fork(&self, now: Time) -> bool {
        let needed = NO_FORK.min(self.patience / NO_FORK_SHARE);
        self.deadline().is_some_and(|deadline| now + needed < deadline)
    }

    // ---- the run ------------------------------------------------------------------------------------------------

    /// Ends the term: nothing may be started or extended under it any more, and its job may not run.
    fn end_term(&mut self, now: Time) {
        if let Some(tenure) = self.tenure.as_mut().filter(|tenure| tenure.deadline().is_some()) {
            tenure.end();
            self.actions.push_back(Action::ShowEnd);
        }
        if self.run.as_ref().is_some_and(|run| !run.is_being_killed()) {
            self.kill(now);
        }
    }

    /// Nothing may be released for the term any more.
    fn forbid_release(&mut self) {
        self.tenure.iter_mut().for_each(Tenure::forbid_release);
    }

    fn kill(&mut self, now: Time) {
        let lease_end = self.lease_end();
        if let Some(run) = &mut self.run {
            run.kill(now, self.patience, lease_end, &mut self.actions);
        }
    }

    fn not_started(&mut self, errno: i32, at: Step) {
        match at {
            Step::Exec | Step::InTime => {
                self.run.iter_mut().for_each(|run| run.not_executed(errno, at, &mut self.actions));
            }
            Step::Fork | Step::Lease => {
                self.run = None;
                self.actions.push_back(Action::Answer(Answer::NotStarted { errno, at }));
                // The deadline may have come during the attempt. It must not count for the next run.
                let term = self.take_fenced();
                self.actions.extend(term.map(|term| fenced(term, None)));
            }
        }
    }

    fn waited(&mut self, now: Time, remains: Remains) {
        if let Some(run) = &mut self.run {
            match remains {
                Remains::Nothing(proof) => self.end_run(now, proof),
                // Only the guard's descendants are asked to stop.
                Remains::Elsewhere if !run.is_being_killed() => {
                    let look_until = end_of_look(self.tenure, now);
                    self.actions.extend(look_until.map(|until| Action::AnswerLeftBehind { until }));
                    self.kill(now);
                }
                Remains::Children | Remains::Elsewhere => {
                    run.kill_remaining(now, &mut self.actions);
                }
            }
        }
        self.learn_if_calm(now);
    }

    /// Ends the run, of which no process is left.
    fn end_run(&mut self, now: Time, _: TreeGone) {
        let run = self.run.take();
        let end = run.as_ref().and_then(|run| run.killing.as_ref()).map(|killing| killing.end(now));
        self.tenure.iter_mut().for_each(|tenure| tenure.job_ended(end, self.kill_margin));
        self.actions.push_back(Action::TakeBack);
        // One that has ended but can't be waited for, such as one that is traced, does not count for the next run.
        self.commands = Commands::default();
        let failure = run.and_then(|run| run.failure);
        let term = self.take_fenced();
        let is_plain = failure.is_none() && term.is_none();
        self.actions.extend(failure.map(Action::Answer));
        self.actions.extend(term.map(|term| fenced(term, end)));
        if is_plain {
            self.actions.push_back(Action::Answer(Answer::Gone));
        }
        self.actions.push_back(Action::BeginAnew);
    }

    /// The term whose deadline came while the run was alive; returned once.
    fn take_fenced(&mut self) -> Option<i64> {
        mem::take(&mut self.fenced).then_some(self.tenure)?.map(|tenure| tenure.term())
    }

    fn learn_if_calm(&mut self, now: Time) {
        if !mem::take(&mut self.may_look) || now < self.look_at {
            return;
        }
        let is_calm = self.run.as_ref().is_some_and(|run| run.due().is_none());
        if let Some(until) = end_of_look(self.tenure, now).filter(|_| is_calm) {
            self.actions.push_back(Action::Learn { until });
        }
    }
}

/// When a check of the job's tree that begins now must end; `None` if the deadline is too near.
fn end_of_look(tenure: Option<Tenure>, now: Time) -> Option<Time> {
    let deadline = tenure.and_then(|tenure| tenure.deadline())?;
    (now + LOOK * 2 <= deadline).then(|| now + LOOK)
}

/// When a search for all processes of the job that begins now must end: it may take almost the whole time up to the deadline. `None` if the
/// deadline is too near.
fn end_of_search(tenure: Option<Tenure>, now: Time) -> Option<Time> {
    let deadline = tenure.and_then(|tenure| tenure.deadline())?;
    (now + LOOK * 2 <= deadline).then(|| deadline - LOOK)
}

const fn fenced(term: i64, end: Option<SeenEnd>) -> Action {
    Action::Answer(Answer::Fenced { term, end })
}

#[cfg(test)]
mod tests;
