//! The guard of a lead's tasks: the guard of `neli-proto`, which decides when a job may run and when it ends. Here the job is the tasks
//! under a [`Lead`](crate::Lead).
//!
//! It gets the node's orders and returns the guard's actions, of which it performs those that need no task by itself. Every order is answered in
//! the same turn, because there is no process in between: the supervisor never takes this guard for dead.

use std::time::Duration;

use neli_proto::guard::{Action, Answer, Event, Guard, KillRound, Order, Remains};
use neli_proto::job::JobStatus;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use crate::lease::NoTask;

/// The signal by which the supervisor asks a job to stop: here it means that the barrier has begun.
pub(crate) const STOP: i32 = 15;

/// The guard of the tasks under the leads of one election.
#[derive(Debug)]
pub(crate) struct TaskGuard {
    guard: Guard,
    /// The supervisor waits for a sign of life.
    owes_answer: bool,
    /// A task that is still there this long after its end is stuck: a lease.
    patience: Duration,
    process: i32,
}

impl TaskGuard {
    /// `process`: the id of this process, by which the journal names the process that runs the job.
    pub(crate) fn new(patience: Duration, process: i32) -> Self {
        Self { guard: Guard::new(patience), owes_answer: false, patience, process }
    }

    /// Forgets the terms of a log that was cut. No task is alive.
    pub(crate) fn renew(&mut self) {
        self.guard = Guard::new(self.patience);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.guard.poll_timeout()
    }

    /// Handles the timeouts that are over by now, the deadline first.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.guard.handle_timeout(now);
    }

    /// Handles an order of the supervisor.
    pub(crate) fn obey(&mut self, now: Time, order: Order) {
        self.guard.handle(now, Event::Ordered(order));
        self.owes_answer |= matches!(order, Order::Kill | Order::Lease(_) | Order::Spawn { .. });
    }

    /// No task runs under the lead any more, and none will.
    pub(crate) fn ended(&mut self, now: Time, _: &NoTask) {
        self.guard.handle(now, Event::MainEnded { status: JobStatus::Exited(0) });
        self.guard.handle(now, Event::Waited(Remains::seen(false, || false)));
    }

    /// The next action: an answer, or one on the tasks or their lease.
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        loop {
            let action = match self.guard.poll_action() {
                // A sign of life, which extends nothing.
                None if self.owes_answer => Action::Answer(Answer::Extended { until: Time::ZERO }),
                None => return None,
                Some(Action::AnswerStarted) => Action::Answer(Answer::Started { pid: self.process }),
                Some(Action::AnswerStuck) => Action::Answer(Answer::Stuck { pids: vec![self.process] }),
                Some(Action::Kill(_)) => {
                    // The tasks were not dropped yet.
                    self.guard.handle(now, Event::Killed(KillRound { lived_at: Some(now), ..KillRound::default() }));
                    continue;
                }
                Some(Action::Learn { .. }) => {
                    self.guard.handle(now, Event::Learnt { begun: now });
                    continue;
                }
                Some(action) => action,
            };
            if let Action::Start { .. } = action {
                self.guard.handle(now, Event::Executed);
            }
            if let Action::Answer(Answer::Accepted { .. } | Answer::Extended { .. } | Answer::Fenced { .. }) = action {
                self.owes_answer = false;
            }
            return Some(action);
        }
    }
}

#[cfg(test)]
mod tests;
