//! The candidate's word: the job may run, for how long, and that it may no longer.

use super::super::candidacy::Right;
use super::super::flaw::{Flaw, broken};
use super::super::record::{JobState, Why};
use super::super::supervision::{Note, Order};
use super::super::time::Time;
use super::{Job, Supervisor, Watch};

impl Supervisor {
    pub(super) fn led(&mut self, now: Time, right: Right) {
        (self.job, self.term) = (Job::Ordered, right.term);
        (self.last_status, self.killed) = (None, false);
        self.watch = Some(Watch { unanswered: 1, since: now, answered_until: right.until });
        self.order(Order::Spawn { right, attempt: 1 });
    }

    pub(super) fn extended(&mut self, now: Time, right: Right) {
        if let Some(watch) = &mut self.watch {
            watch.ask(now);
            self.order(Order::Extend(right));
        }
    }

    /// The barrier.
    pub(super) fn stop(&mut self, now: Time, why: Why) {
        if self.job == Job::Ordered && broken(Flaw::StopBehindSpawnTakenForDone) {
            return self.nothing_left(why);
        }
        match self.job {
            Job::Ordered | Job::Running { .. } => {
                let main = match self.job {
                    Job::Running { pid, since } => Some((pid, since)),
                    Job::None | Job::Ordered | Job::Orphaned | Job::Stopping { .. } => None,
                };
                self.note(Note::Stopping { why });
                self.job = Job::Stopping { why, main };
                self.order_stop(now);
                self.report(JobState::Stopping, main.map(|(pid, _)| pid), now);
            }
            Job::None | Job::Orphaned | Job::Stopping { .. } => {}
        }
    }

    /// The lease is over, or was taken: no barrier.
    pub(super) fn lose(&mut self, now: Time) {
        self.kill(Why::Fenced);
        // No beat asks the guard for a sign of life any more; that nothing is left is its answer to this, and whatever
        // deadline it answered holds no longer.
        if let Some(watch) = &mut self.watch {
            watch.ask(now);
            watch.answered_until = watch.answered_until.min(now);
        }
    }

    pub(super) fn kill(&mut self, why: Why) {
        if self.job == Job::None {
            return;
        }
        self.killed = true;
        let main = match self.job {
            Job::Running { pid, since } => Some((pid, since)),
            Job::Stopping { main, .. } => main,
            Job::None | Job::Ordered => None,
            // It is being killed already.
            Job::Orphaned => return,
        };
        self.job = Job::Stopping { why, main };
        self.order(Order::Kill);
    }

    pub(super) fn order_stop(&mut self, now: Time) {
        let signal = (!self.policy.timeout.is_zero()).then_some(self.policy.signal);
        self.order(Order::Stop { signal, kill_at: now + self.policy.timeout });
    }
}
