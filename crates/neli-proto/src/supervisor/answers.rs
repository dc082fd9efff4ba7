//! What a supervisor makes of its guard's answers.

use super::{JobStatus, Supervisor};
use crate::guard::{Answer, CommandKind, Step};
use crate::time::Time;

/// Nothing is left of a run's tree. The guard's answer makes it, or the look after the guard's death; between two runs it is kept.
/// Without it no proof can be made that nothing is left of a term's job.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct TreeEnd(());

impl TreeEnd {
    /// Of a term in which nothing has been started yet.
    pub(super) const fn of_no_run() -> Self {
        Self(())
    }
}

impl Supervisor {
    /// Takes in what the guard has answered. That the job was stopped by a signal is told by [`Event::JobStopped`](super::Event),
    /// with what the terminal shows; which processes were left behind is a person's to know.
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
            Answer::Exited { code, signal, left, foreground } => {
                let status = status_of(code, signal);
                self.interrupted_by(now, status, foreground);
                self.main_exited(now, status, left);
            }
            Answer::Fenced { term, gone_at } => self.fenced(term, gone_at, TreeEnd(())),
            Answer::Gone => self.gone(now, TreeEnd(())),
            Answer::Killed => self.killed_at_timeout(),
            Answer::NotStarted { at: Step::InTime, .. } => self.fenced(self.term(), None, TreeEnd(())),
            Answer::NotStarted { errno, at: at @ (Step::Exec | Step::Fork | Step::Lease) } => {
                self.not_started(errno, at);
                self.gone_without_start(now, TreeEnd(()));
            }
            Answer::Started { pid } => self.started(now, number_of(pid).unwrap_or_default()),
            Answer::Stuck { pids } => self.stuck(pids.into_iter().filter_map(number_of).collect()),
            Answer::CommandEnded { kind: CommandKind::Lead, .. }
            | Answer::LeftBehind { .. }
            | Answer::Stopped { .. } => {}
        }
        self.look_after_health(now);
    }

    /// Nothing is left of what the dead guard has left.
    pub(super) fn orphans_gone(&mut self, now: Time) {
        self.gone(now, TreeEnd(()));
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
