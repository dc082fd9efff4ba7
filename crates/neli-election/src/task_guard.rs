//! The guard of a lead's tasks: the guard of `neli-proto`, which decides when a job may run and when it ends. Here the job is the tasks
//! under a [`Lead`](crate::Lead).
//!
//! It gets the node's orders and returns the guard's actions, but for those that need no task. Every order is answered in the same turn, because
//! there is no process in between: the supervisor never takes this guard for dead.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::guard::{Action, Answer, Event, Guard, KillRound, Order, Remains};
use neli_proto::job::JobStatus;
use neli_proto::time::Time;

use crate::lease::NoTask;

/// The signal by which the supervisor asks a job to stop: here it means that the barrier has begun.
pub(crate) const STOP: i32 = 15;

/// The guard of the tasks under the leads of one election.
#[derive(Debug)]
pub(crate) struct TaskGuard {
    guard: Guard,
    /// The actions to be performed, in this order.
    actions: VecDeque<Action>,
    /// No task is left, though the lead is not over yet: what they have sent may be in flight.
    has_no_task: bool,
    /// A task that is still there this long after its end is stuck: a lease.
    patience: Duration,
    process: i32,
}

impl TaskGuard {
    /// `process`: the id of this process, by which the journal names the process that runs the job.
    pub(crate) fn new(patience: Duration, process: i32) -> Self {
        Self { guard: Guard::new(patience), actions: VecDeque::new(), has_no_task: false, patience, process }
    }

    /// Forgets the terms of a log that was cut. No task is alive.
    pub(crate) fn renew(&mut self) {
        self.guard = Guard::new(self.patience);
    }

    #[must_use]
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.guard.poll_timeout()
    }

    /// Handles the timeouts that are over by now, the deadline first.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.guard.handle_timeout(now);
        self.perform(now);
    }

    /// Handles an order of the supervisor.
    pub(crate) fn obey(&mut self, now: Time, order: Order) {
        let before = self.actions.len();
        self.tell(now, Event::Ordered(order));
        let is_watched = matches!(order, Order::Kill | Order::Lease(_) | Order::Spawn { .. });
        // What the supervisor counts as a sign of life.
        let is_sign = |action: &Action| {
            matches!(action, Action::Answer(Answer::Accepted { .. } | Answer::Extended { .. } | Answer::Fenced { .. }))
        };
        if is_watched && !self.actions.iter().skip(before).any(is_sign) {
            // One that extends nothing.
            self.actions.push_back(Action::Answer(Answer::Extended { until: Time::ZERO }));
        }
    }

    /// No task runs under the lead any more. [`ended`](Self::ended) follows.
    pub(crate) fn note_no_task(&mut self, _: &NoTask) {
        self.has_no_task = true;
    }

    /// No task runs under the lead any more, and none will.
    pub(crate) fn ended(&mut self, now: Time, _: &NoTask) {
        self.tell(now, Event::MainEnded { status: JobStatus::Exited(0) });
        self.tell(now, Event::Waited(Remains::seen(false, || false)));
    }

    fn tell(&mut self, now: Time, event: Event) {
        self.guard.handle(now, event);
        self.perform(now);
    }

    /// Performs what needs no task.
    fn perform(&mut self, now: Time) {
        while let Some(action) = self.guard.poll_action() {
            if let Action::Kill(_) = action {
                let (none_lived_at, lived_at) = if self.has_no_task { (Some(now), None) } else { (None, Some(now)) };
                self.guard
                    .handle(now, Event::Killed(KillRound { has_seen_all: self.has_no_task, lived_at, none_lived_at }));
            } else if let Action::Learn { .. } = action {
                self.guard.handle(now, Event::Learnt { begun: now });
            } else if let Action::AnswerStarted = action {
                self.actions.push_back(Action::Answer(Answer::Started { pid: self.process }));
            } else if let Action::AnswerStuck = action {
                self.actions.push_back(Action::Answer(Answer::Stuck { pids: vec![self.process] }));
            } else {
                if let Action::Start { .. } = action {
                    self.has_no_task = false;
                    self.guard.handle(now, Event::Executed);
                }
                self.actions.push_back(action);
            }
        }
    }
}

#[cfg(test)]
mod tests;
