//! The effects of signals to `neli-run` (man/neli-run.1.in, SIGNALS).

use core::time::Duration;

use super::signals::{SIGCHLD, SIGCONT, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use super::{Job, Stop, Supervisor};
use crate::guard::{Order, Target};
use crate::record::Why;
use crate::supervisor::Action;
use crate::time::Time;

/// Two stop signals within this time count as one: GNU `timeout` sends two.
const SAME_STOP: Duration = Duration::from_millis(500);

impl Supervisor {
    /// Handles a signal to `neli-run`.
    pub fn handle_signal(&mut self, now: Time, signal: i32) {
        let stops = self.policy.stop.signal == Some(signal) || matches!(signal, SIGINT | SIGTERM);
        match signal {
            SIGCHLD | SIGTSTP => {}
            _ if stops => self.stop_signal(now, signal),
            SIGQUIT if !self.takes_signals() => self.stop_signal(now, signal),
            SIGCONT => self.continued(),
            SIGQUIT | SIGWINCH => self.pass_signal(signal, Target::Group),
            _ => self.pass_signal(signal, Target::Main),
        }
        self.look_after_health(now);
    }

    pub(super) fn pass_signal(&mut self, signal: i32, to: Target) {
        if self.takes_signals() {
            self.order(Order::Signal { signal, to });
        }
    }

    /// Whether the main process is alive or about to be. The guard keeps a signal until the process has executed.
    pub(super) const fn takes_signals(&self) -> bool {
        match self.job {
            Job::Ordered | Job::Running { .. } | Job::Stopping { main: Some(_), .. } => true,
            Job::Held { .. }
            | Job::None
            | Job::Orphaned
            | Job::Restarting { .. }
            | Job::Stopping { main: None, .. } => false,
        }
    }

    pub(super) fn stop_signal(&mut self, now: Time, signal: i32) {
        let Some(stop) = self.stop else {
            self.stop = Some(Stop { signal, at: now, amid_runs: self.job != Job::None });
            return;
        };
        if now.since(stop.at) < SAME_STOP {
            return;
        }
        if self.job == Job::None {
            self.actions.push_back(Action::GiveUpWaiting);
        } else {
            self.kill(Why::Stopped);
        }
    }
}
