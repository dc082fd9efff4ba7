//! A person's word: signals to `neli-run` (interface.md, Signals).

use std::time::Duration;

use super::super::candidacy;
use super::super::record::Why;
use super::super::supervision::{Action, Event, Order};
use super::super::time::Time;
use super::{Job, Stop, Supervisor};

/// Two stop signals nearer than this are one: GNU `timeout` sends two.
const SAME_STOP: Duration = Duration::from_millis(500);

// The numbers of Linux, on every machine that Rust's standard library knows but MIPS and SPARC.
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;
const SIGTTIN: i32 = 21;
const SIGTTOU: i32 = 22;
const SIGWINCH: i32 = 28;

impl Supervisor {
    /// Takes in a signal to `neli-run`.
    pub fn handle_signal(&mut self, now: Time, signal: i32) {
        let stops = signal == self.policy.signal || matches!(signal, SIGINT | SIGTERM);
        match signal {
            SIGCHLD | SIGPIPE | SIGTSTP | SIGTTIN | SIGTTOU => {}
            _ if stops => self.handle(now, Event::StopSignal { signal }),
            SIGQUIT if !self.main_is_alive() => self.handle(now, Event::StopSignal { signal }),
            SIGCONT => self.continued(now),
            SIGQUIT | SIGWINCH => self.handle(now, Event::PassSignal { signal, to_group: true }),
            _ => self.handle(now, Event::PassSignal { signal, to_group: false }),
        }
    }

    pub(super) fn pass_signal(&mut self, signal: i32, to_group: bool) {
        match self.job {
            Job::Ordered | Job::Running { .. } | Job::Stopping { main: Some(_), .. } => {
                self.order(Order::Signal { signal, to_group });
            }
            Job::None | Job::Orphaned | Job::Stopping { main: None, .. } => {}
        }
    }

    pub(super) fn stop_signal(&mut self, now: Time, signal: i32) {
        let Some(stop) = self.stop else {
            let run_alive = self.job_may_be_alive() && self.last_status.is_none();
            self.stop = Some(Stop { signal, at: now, run_alive });
            return self.tell(candidacy::Event::StandDown { why: Why::Stopped, leaving: true });
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
