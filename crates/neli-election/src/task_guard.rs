//! The guard of a lead's tasks: the guard of `neli-proto`, which decides when a job may run and when it ends. Here the job is the tasks
//! under a [`Lead`](crate::Lead).
//!
//! It gets the node's orders and returns the answers, and the actions on the lease. Every order is answered in the same turn, because there
//! is no process in between: the supervisor never takes this guard for dead.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::guard::{Action, Answer, Event, Guard, KillRound, Order, Remains};
use neli_proto::job::JobStatus;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use crate::lease::NoTask;

/// The signal by which the supervisor asks a job to stop: here it means that the barrier has begun.
pub(crate) const STOP: i32 = 15;

/// The actions, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    /// Tell the node.
    Answer(Answer),
    /// The lead is held: offer it to the task that waits for it.
    Begin {
        /// The term.
        term: Offset,
        /// The lease runs until then.
        until: Time,
    },
    /// Drop the tasks: the lease is over.
    End,
    /// The lease runs until then.
    Extend {
        /// When it ends.
        until: Time,
    },
    /// Ask the tasks to end: the barrier.
    Stop,
}

/// The guard of the tasks under the leads of one election.
#[derive(Debug)]
pub(crate) struct TaskGuard {
    guard: Guard,
    effects: VecDeque<Effect>,
    /// A task that is still there this long after its end is stuck: a lease.
    patience: Duration,
    process: i32,
}

impl TaskGuard {
    /// `process`: the id of this process, by which the journal names the process that runs the job.
    pub(crate) fn new(patience: Duration, process: i32) -> Self {
        Self { guard: Guard::new(patience), effects: VecDeque::new(), patience, process }
    }

    /// Forgets the terms of a log that was cut. No task is alive.
    pub(crate) fn renew(&mut self) {
        self.guard = Guard::new(self.patience);
    }

    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
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
        let answers_before = self.answers();
        self.tell(now, Event::Ordered(order));
        let is_watched = matches!(order, Order::Kill | Order::Lease(_) | Order::Spawn { .. });
        if is_watched && self.answers() == answers_before {
            // A sign of life, which extends nothing.
            self.effects.push_back(Effect::Answer(Answer::Extended { until: Time::ZERO }));
        }
    }

    /// No task runs under the lead any more, and none will.
    pub(crate) fn ended(&mut self, now: Time, _: &NoTask) {
        self.tell(now, Event::MainEnded { status: JobStatus::Exited(0) });
        self.tell(now, Event::Waited(Remains::seen(false, || false)));
    }

    /// The number of answers to be given that the supervisor counts as a sign of life.
    fn answers(&self) -> usize {
        let counts = |effect: &&Effect| {
            matches!(effect, Effect::Answer(Answer::Accepted { .. } | Answer::Extended { .. } | Answer::Fenced { .. }))
        };
        self.effects.iter().filter(counts).count()
    }

    fn tell(&mut self, now: Time, event: Event) {
        self.guard.handle(now, event);
        self.perform(now);
    }

    fn perform(&mut self, now: Time) {
        while let Some(action) = self.guard.poll_action() {
            let effect = match action {
                Action::Answer(answer) => Effect::Answer(answer),
                Action::AnswerStarted => Effect::Answer(Answer::Started { pid: self.process }),
                Action::AnswerStuck => Effect::Answer(Answer::Stuck { pids: vec![self.process] }),
                Action::Kill(_) => {
                    // The tasks were not dropped yet.
                    self.guard.handle(now, Event::Killed(KillRound { lived_at: Some(now), ..KillRound::default() }));
                    continue;
                }
                Action::KillMainGroup | Action::ShowEnd => Effect::End,
                Action::Learn { .. } => {
                    self.guard.handle(now, Event::Learnt { begun: now });
                    continue;
                }
                Action::ShowDeadline { until, .. } => Effect::Extend { until },
                Action::Signal { signal: STOP, .. } => Effect::Stop,
                Action::Start { term, until, .. } => {
                    self.effects.push_back(Effect::Begin { term, until });
                    self.guard.handle(now, Event::Executed);
                    continue;
                }
                // There is no process with an exit status, no terminal and no command; and the supervisor is in this thread, and never gone.
                Action::AnswerExited { .. }
                | Action::AnswerLeftBehind { .. }
                | Action::BeginAnew
                | Action::End
                | Action::HandOn
                | Action::KillCommand(_)
                | Action::Release { .. }
                | Action::RemoveCgroup
                | Action::Signal { .. }
                | Action::SignalRest { .. }
                | Action::StartCommand(_)
                | Action::TakeBack => continue,
            };
            self.effects.push_back(effect);
        }
    }
}

#[cfg(test)]
mod tests;
