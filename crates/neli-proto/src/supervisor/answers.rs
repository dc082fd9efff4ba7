//! Handles the guard's answers.

use super::{Job, JobStatus, Supervisor};
use crate::guard::{Answer, CommandKind, Step};
use crate::record::{Offset, Why};
use crate::time::Time;

impl Supervisor {
    /// Handles an answer of the guard. A job that a signal stopped is handled by [`Event::JobStopped`](super::Event), which also contains
    /// the terminal's state. Processes that were left behind are only logged.
    pub fn handle_answer(&mut self, now: Time, answer: Answer) {
        match answer {
            Answer::Accepted { until } | Answer::Extended { until } => {
                if let Some(watch) = &mut self.watch {
                    watch.answered(until);
                }
            }
            Answer::CommandEnded { kind: CommandKind::Health, id, end } => {
                self.health_ended(now, id, end, "".into());
            }
            Answer::Exited { code, signal, ended_at, left, foreground } => {
                let status = status_of(code, signal);
                self.interrupted_by(now, status, foreground);
                self.main_exited(now, ended_at, status, left);
            }
            Answer::Fenced { term, end } => self.fenced(term, end),
            Answer::Gone => self.gone(now, None),
            Answer::Killed => self.killed_at_timeout(),
            Answer::Ready => self.next_guard.is_set_up(),
            Answer::NoRun { term, run } => self.no_run(now, term, run),
            Answer::NotStarted { at: Step::InTime, .. } => {
                if let Some(term) = self.term() {
                    self.fenced(term, None);
                }
            }
            Answer::NotStarted { errno, at: at @ (Step::Exec | Step::Fork | Step::Lease) } => {
                self.not_started(errno, at);
                self.gone_without_start(now);
            }
            Answer::Started { pid } => self.started(now, number_of(pid).unwrap_or_default()),
            Answer::StartedUnseen { pid } => self.started_unseen(now, number_of(pid).unwrap_or_default()),
            Answer::StillKilling => {
                if let Some(watch) = &mut self.watch {
                    watch.still_kills(now);
                }
            }
            Answer::Stuck { pids } => self.stuck(pids.into_iter().filter_map(number_of).collect()),
            Answer::CommandEnded { kind: CommandKind::Lead, .. }
            | Answer::LeftBehind { .. }
            | Answer::Stopped { .. } => {}
        }
        self.look_after_health(now);
    }

    /// Handles that there is no guard, so that a run which was ordered since the last one's end has not begun.
    pub(super) fn guard_not_started(&mut self) {
        self.watch = None;
        let is_ordered = matches!(self.job, Job::Ordered | Job::Stopping { main: None, .. });
        if is_ordered && !self.run.started {
            self.end_term(Why::GuardDied);
        }
    }

    /// Handles the guard's answer that no process is alive, and that this run was its last. If it is the present run, the report of its end
    /// was lost; otherwise its end was handled before.
    fn no_run(&mut self, now: Time, term: Offset, run: u64) {
        let may_be_alive = matches!(self.job, Job::Ordered | Job::Running { .. } | Job::Stopping { .. });
        let is_present = self.term() == Some(term) && u64::from(self.run.number) == run;
        if may_be_alive && is_present {
            self.gone(now, None);
        }
    }
}

fn status_of(code: Option<i32>, signal: Option<i32>) -> JobStatus {
    match (code, signal) {
        (_, Some(signal)) => JobStatus::Signaled(signal),
        (code, None) => JobStatus::Exited(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)),
    }
}

fn number_of(pid: i32) -> Option<u32> {
    u32::try_from(pid).ok()
}
