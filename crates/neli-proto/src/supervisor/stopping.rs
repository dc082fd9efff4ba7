//! Handles the candidate's decisions: the job may run, until when, and when it must end.

use core::time::Duration;

use super::{Job, Killed, Supervisor};
use crate::guard::{Grant, Order};
use crate::note::Note;
use crate::record::{JobState, Why};
use crate::supervisor::StopPolicy;
use crate::time::Time;
use crate::window::Span;

impl Supervisor {
    /// Handles that the term is held, and passes it to the guard: if this process dies, the guard releases the term.
    pub(super) fn held(&mut self, now: Time, grant: Grant) {
        let settles_until = Some(self.policy.settle).filter(|settle| !settle.is_zero()).map(|settle| now + settle);
        self.job = Job::Held { end: self.begin_term(grant, true), settles_until };
        self.extended(now, grant);
    }

    pub(super) fn may_run(&mut self, now: Time, window: Option<Span>, attempt: u32) {
        if let Job::Held { end, settles_until } = &self.job {
            let end = end.clone();
            let delay = settles_until.map_or(Duration::ZERO, |until| until.since(now));
            (self.window, self.next_attempt) = (window, attempt);
            self.job = Job::Restarting { at: now + delay, end };
            if !delay.is_zero() {
                self.note(Note::Settling { term: self.noted_term(), delay });
            }
            self.start_run_if_due(now);
        }
    }

    pub(super) fn waits(&mut self, now: Time) {
        if let Job::Held { .. } = self.job {
            self.report(JobState::Restarting, None, now);
        }
    }

    pub(super) fn led(&mut self, now: Time, grant: Grant) {
        let settle = self.policy.settle;
        self.job = Job::Restarting { at: now + settle, end: self.begin_term(grant, false) };
        if settle.is_zero() {
            return self.start_run_if_due(now);
        }
        self.note(Note::Settling { term: self.noted_term(), delay: settle });
        // The guard must get the term at once, since it must release it if this process dies.
        self.extended(now, grant);
    }

    pub(super) fn extended(&mut self, now: Time, grant: Grant) {
        if let Some(watch) = &mut self.watch {
            watch.ask(now, grant.until);
            self.grant = Some(grant);
            self.order(Order::Lease(grant));
        } else if self.next_guard.due.is_some() {
            self.grant = Some(grant);
        }
    }

    /// Begins the barrier. Without a living run it is over at once.
    pub(super) fn stop(&mut self, now: Time, reason: Why) {
        self.stop_in(now, reason, self.policy.stop.timeout);
    }

    /// Begins the barrier if another candidate leads already: SIGKILL follows after this time at the latest, also in a barrier that has
    /// begun.
    pub(super) fn stop_within(&mut self, now: Time, reason: Why, within: Duration) {
        let timeout = within.min(self.policy.stop.timeout);
        self.stop_in(now, reason, timeout);
        if let Job::Stopping { kill_at, .. } = &mut self.job {
            let sooner = now + timeout;
            if kill_at.is_none_or(|kill_at| sooner < kill_at) {
                *kill_at = kill_at.map(|_| sooner);
                // It got the stop signal already.
                self.order(Order::Stop { signal: None, kill_at: sooner });
            }
        }
    }

    fn stop_in(&mut self, now: Time, reason: Why, timeout: Duration) {
        match &mut self.job {
            Job::Ordered => self.begin_to_stop(now, reason, None, timeout),
            Job::Running { pid, since } => {
                let main = (*pid, *since);
                self.begin_to_stop(now, reason, Some(main), timeout);
            }
            // The processes that the job left got the stop signal already, but this does not count as an end by itself any more. The first
            // timeout applies. Because of the order, the guard repeats the report of the end, in case it was lost.
            Job::Stopping { why: why @ Why::Exited, kill_at, .. } => {
                *why = reason;
                let kill_at = kill_at.unwrap_or(now + timeout);
                self.order(Order::Stop { signal: None, kill_at });
            }
            Job::Held { end, .. } | Job::Restarting { end, .. } => {
                let end = end.clone();
                self.nothing_left(reason, end);
            }
            Job::None | Job::Orphaned | Job::Stopping { .. } => {}
        }
    }

    fn begin_to_stop(&mut self, now: Time, why: Why, main: Option<(u32, Time)>, timeout: Duration) {
        self.note(Note::Stopping { term: self.noted_term(), why, timeout });
        let kill_at = now + timeout;
        self.order_stop_by(kill_at);
        self.job = Job::Stopping { why, main, kill_at: Some(kill_at) };
        self.report(JobState::Stopping, main.map(|(pid, _)| pid), now);
    }

    /// Handles that the lease is over or another candidate took over: there is no barrier.
    pub(super) fn lose(&mut self, now: Time) {
        self.kill(Why::Fenced);
        // No later beat makes the guard answer. Its next answer is that no process is left.
        if let Some(watch) = &mut self.watch {
            watch.ask_for_end(now);
        }
    }

    pub(super) fn kill(&mut self, why: Why) {
        let main = match self.job {
            Job::Running { pid, since } => Some((pid, since)),
            Job::Stopping { main, .. } => main,
            Job::Ordered => None,
            Job::Held { ref end, .. } | Job::Restarting { ref end, .. } => {
                let end = end.clone();
                return self.nothing_left(why, end);
            }
            // There is no job, or it is being killed already.
            Job::None | Job::Orphaned => return,
        };
        self.run.note_kill(if why == Why::Fenced { Killed::ForLoss } else { Killed::InBarrier });
        self.job = Job::Stopping { why, main, kill_at: None };
        self.order(Order::Kill);
    }

    /// Orders the guard to send the stop signal to the processes that did not get it in this barrier.
    pub(super) fn order_stop_by(&mut self, kill_at: Time) {
        let StopPolicy { signal, timeout, .. } = self.policy.stop;
        self.order(Order::Stop { signal: signal.filter(|_| !timeout.is_zero()), kill_at });
    }
}
