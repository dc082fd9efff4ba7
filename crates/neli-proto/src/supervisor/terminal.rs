//! The terminal's effects on the job and on `neli-run` (man/neli-run.1.in, TERMINAL): the foreground, jobs that are stopped because of it,
//! Ctrl-C, Ctrl-\ and Ctrl-Z, and a terminal that is gone.

use core::mem;
use core::time::Duration;

use super::{Job, Stop, Supervisor};
use crate::guard::{Order, Target};
use crate::note::Note;
use crate::record::{JobState, Why};
use crate::supervisor::{Action, Ending, Foreground, JobStatus};
use crate::time::Time;

/// The time between two checks of the foreground while a stopped job waits for it. No signal reports it, and some shells' `fg` does not
/// send SIGCONT to a job that they do not know to be stopped.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How long the processes that the main process has left have to end too, before they are asked to stop, and logged as left: if it had the
/// foreground, the terminal may have sent its signal to the whole group, and the main process is only the first to end, with any status; and
/// those of commands that ran beside the job are being killed.
pub(super) const REST_ENDS_WITHIN: Duration = Duration::from_millis(100);

/// The supervisor's data about the terminal.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Terminal {
    /// When to check the foreground next, if the stopped job waits for it.
    look_at: Option<Time>,
    /// The signal that ended the job while it had the foreground.
    pub(super) interrupted_by: Option<i32>,
    /// The signal that was typed while `neli-run` had the foreground.
    typed: Option<i32>,
    /// Whether it was logged that a job uses the terminal from the background.
    said_in_background: bool,
    /// Whether it was logged that no process can continue a job.
    said_continued: bool,
    /// Whether the terminal is gone.
    gone: bool,
}

/// The terminal's signal that this exit status means, in a shell's encoding or directly.
const fn signal_of(status: JobStatus) -> Option<i32> {
    match status {
        JobStatus::Exited(130) | JobStatus::Signaled(SIGINT) => Some(SIGINT),
        JobStatus::Exited(131) | JobStatus::Signaled(SIGQUIT) => Some(SIGQUIT),
        JobStatus::Exited(_) | JobStatus::Signaled(_) => None,
    }
}

impl Supervisor {
    /// Handles an end of the job by a typed key: Ctrl-C ends the whole command, not only one run of it.
    pub(super) fn interrupted_by(&mut self, now: Time, status: JobStatus, foreground: bool) {
        self.stop_looking();
        let Some(signal) = signal_of(status).filter(|_| foreground) else { return };
        self.terminal.interrupted_by = Some(signal);
        if self.stop.is_none() {
            self.stop_signal(now, signal);
        }
    }

    /// A process that was ended by a typed key dies of the key's signal, so that a script that called it ends too. Returns the matching
    /// ending: if the terminal signalled `neli-run` and the job was stopped for that, the job's own status does not count.
    pub(super) fn die_of_the_terminals_signal(&mut self, ending: Ending) -> Ending {
        let interrupted_by = self.terminal.interrupted_by;
        let typed = self.terminal.typed.filter(|typed| self.stop.is_some_and(|stop| stop.signal == *typed));
        let of_job = matches!(ending, Ending::Job(status) if interrupted_by == signal_of(status));
        let (signal, to_group) = if of_job && interrupted_by.is_some() {
            (interrupted_by, true)
        } else if matches!(ending, Ending::Job(_) | Ending::StoppedBy(_)) {
            (typed, false)
        } else {
            return ending;
        };
        let Some(signal) = signal else { return ending };
        self.actions.push_back(Action::DieOf { signal, to_group });
        if to_group { ending } else { Ending::StoppedBy(signal) }
    }

    pub(super) fn job_stopped(&mut self, now: Time, signal: i32, foreground: Foreground, continuable: bool) {
        let runs = matches!(self.job, Job::Ordered | Job::Running { .. });
        let stops = matches!(self.job, Job::Stopping { .. });
        match signal {
            SIGTSTP if runs && continuable => self.suspend(true),
            SIGTSTP if runs => {
                self.pass_signal(SIGCONT, Target::Group);
                if !self.terminal.said_continued {
                    self.terminal.said_continued = true;
                    self.note_stopped(signal);
                }
            }
            // It got the stop signal, and can't end while it is stopped.
            SIGTSTP if stops => {
                self.suspend(continuable);
                self.pass_signal(SIGCONT, Target::Group);
            }
            SIGTTIN | SIGTTOU if runs || stops => {
                self.terminal.look_at = Some(now);
                self.foreground_seen(now, foreground);
            }
            // Who stopped it may continue it. A barrier continues it before it sends the stop signal.
            _ => {
                if matches!(self.job, Job::Running { .. }) && !mem::replace(&mut self.run.said_stopped, true) {
                    self.note_stopped(signal);
                }
            }
        }
    }

    fn note_stopped(&mut self, signal: i32) {
        self.note(Note::JobStopped { pid: self.report.pid, signal });
    }

    /// Handles the result of a check for a job that waits for the foreground.
    pub(super) fn foreground_seen(&mut self, now: Time, foreground: Foreground) {
        if self.terminal.look_at.is_none() {
            return;
        }
        match foreground {
            Foreground::Job | Foreground::NeliRun => {
                self.stop_looking();
                self.order(Order::HandOn);
            }
            Foreground::Elsewhere => {
                self.terminal.look_at = Some(now + LOOK_INTERVAL);
                if !self.terminal.said_in_background {
                    self.terminal.said_in_background = true;
                    self.note_stopped(SIGTTIN);
                }
            }
        }
    }

    /// Ends the checks, because the job that waited is gone.
    pub(super) const fn stop_looking(&mut self) {
        self.terminal.look_at = None;
    }

    pub(super) fn look_due(&self) -> Option<Time> {
        self.terminal.look_at.filter(|_| self.takes_signals())
    }

    pub(super) fn look_if_due(&mut self, now: Time) {
        if self.look_due().is_some_and(|due| now >= due) {
            self.terminal.look_at = Some(now + LOOK_INTERVAL);
            self.actions.push_back(Action::LookAtForeground);
        }
    }

    /// Has the processes that the main process has left asked to stop, unless they end within this time.
    pub(super) fn ask_rest(&mut self, now: Time, within: Duration) {
        self.run.ask_rest_at = Some(now + within.min(self.policy.stop.timeout));
        self.ask_rest_if_due(now);
    }

    /// When to ask the rest of the job to stop; `None` if none is left.
    pub(super) fn ask_rest_due(&self) -> Option<Time> {
        self.run.ask_rest_at.filter(|_| matches!(self.job, Job::Stopping { main: None, kill_at: Some(_), .. }))
    }

    pub(super) fn ask_rest_if_due(&mut self, now: Time) {
        if let (Some(due), Job::Stopping { kill_at: Some(kill_at), .. }) = (self.ask_rest_due(), &self.job)
            && now >= due
        {
            let kill_at = *kill_at;
            self.run.ask_rest_at = None;
            self.order_stop_by(kill_at);
            self.set_report(JobState::Stopping, None, now);
        }
    }

    /// Releases the lead and then suspends the process, because a stopped leader can't keep its lease.
    pub(super) fn suspend(&mut self, continuable: bool) {
        if !continuable || self.stop.is_some() {
            return;
        }
        if self.job_may_be_alive() {
            self.order(Order::TakeBack);
        }
        self.is_suspended = true;
    }

    /// Handles that the process continues.
    pub(super) fn continued(&mut self) {
        self.pass_signal(SIGCONT, Target::Group);
        self.is_suspended = false;
    }

    /// Handles a terminal that is gone. Several signals count as one, because the kernel and the shell each send one.
    fn terminal_gone(&mut self, now: Time) {
        self.pass_signal(SIGHUP, Target::Group);
        if !self.terminal.gone {
            self.terminal.gone = true;
            self.stop_signal(now, SIGHUP);
        }
    }
}

// ---- the effects of signals to `neli-run` (man/neli-run.1.in, SIGNALS) ---------------------------------------------

/// Two stop signals within this time count as one: GNU `timeout` sends two.
const SAME_STOP: Duration = Duration::from_millis(500);

impl Supervisor {
    /// Handles a signal to `neli-run`. `by_terminal`: HUP since the terminal is gone, or INT or QUIT, which were typed, and which the terminal
    /// sent to the whole process group.
    pub fn handle_signal(&mut self, now: Time, signal: i32, by_terminal: bool) {
        if by_terminal && signal != SIGHUP {
            self.terminal.typed = Some(signal);
        }
        let stops = self.policy.stop.signal == Some(signal) || matches!(signal, SIGINT | SIGTERM);
        match signal {
            SIGCHLD | SIGTSTP => {}
            SIGHUP if by_terminal => self.terminal_gone(now),
            _ if stops => self.stop_signal(now, signal),
            SIGQUIT if !self.takes_signals() => self.stop_signal(now, signal),
            SIGCONT => self.continued(),
            SIGQUIT | SIGWINCH => self.pass_signal(signal, Target::Group),
            _ => self.pass_signal(signal, Target::Main),
        }
        self.look_after_health(now);
    }

    /// Handles that the job's terminal is gone, of which the kernel has told only the job.
    pub(crate) fn jobs_terminal_gone(&mut self, now: Time) {
        if self.job_may_be_alive() {
            self.handle_signal(now, SIGHUP, true);
        }
    }

    pub(super) fn pass_signal(&mut self, signal: i32, to: Target) {
        if self.takes_signals() {
            self.order(Order::Signal { signal, to });
        }
    }

    /// Whether the main process is alive or about to be. The guard keeps a signal until the process has executed.
    pub const fn takes_signals(&self) -> bool {
        matches!(self.job, Job::Ordered | Job::Running { .. } | Job::Stopping { main: Some(_), .. })
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
            self.gives_up = true;
        } else {
            self.kill(now, Why::Stopped);
        }
    }
}

// The numbers of Linux's signals, on every machine that Rust's standard library supports except MIPS and SPARC.

pub(super) const SIGHUP: i32 = 1;
pub(super) const SIGINT: i32 = 2;
pub(super) const SIGQUIT: i32 = 3;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGTERM: i32 = 15;
pub(super) const SIGCHLD: i32 = 17;
pub(super) const SIGCONT: i32 = 18;
pub(super) const SIGTSTP: i32 = 20;
pub(super) const SIGTTIN: i32 = 21;
pub(super) const SIGTTOU: i32 = 22;
pub(super) const SIGWINCH: i32 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_decoded_to_the_terminal_s_signals_and_no_other() {
        let signal_in = |status| signal_of(status);
        assert_eq!([signal_in(JobStatus::Signaled(2)), signal_in(JobStatus::Exited(130))], [Some(SIGINT); 2]);
        assert_eq!([signal_in(JobStatus::Signaled(3)), signal_in(JobStatus::Exited(131))], [Some(SIGQUIT); 2]);
        for other in [JobStatus::Exited(2), JobStatus::Exited(0), JobStatus::Signaled(15), JobStatus::Exited(143)] {
            assert_eq!(signal_in(other), None);
        }
    }
}
