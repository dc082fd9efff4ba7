//! What a supervisor makes of its guard's answers, and what proves that nothing is left of a tree.

use super::watch::Watch;
use super::{Job, JobStatus, Run, Supervisor};
use crate::guard::{Answer, CommandKind, Grant, Step};
use crate::record::{Offset, Why};
use crate::restart::Backoff;
use crate::time::Time;

/// Nothing is left of the tree of a term's last run, or nothing was started under that term yet; between two runs it is kept. Without
/// it no proof can be made that nothing is left of the term's job. Only this file makes one: where a term begins, where the guard
/// answers so, where the look after a guard's death says so, and where no guard could be started.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct TreeEnd {
    term: Offset,
}

impl TreeEnd {
    /// Whose tree.
    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn into_term(self) -> Offset {
        self.term
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
            Answer::Fenced { term, gone_at } => self.fenced(gone_at, TreeEnd { term }),
            Answer::Gone => self.tree_gone(now),
            Answer::Killed => self.killed_at_timeout(),
            Answer::NoRun { term, attempt } => self.no_run(now, term, attempt),
            Answer::NotStarted { at: Step::InTime, .. } => {
                if let Some(end) = self.tree_end() {
                    self.fenced(None, end);
                }
            }
            Answer::NotStarted { errno, at: at @ (Step::Exec | Step::Fork | Step::Lease) } => {
                self.not_started(errno, at);
                if let Some(end) = self.tree_end() {
                    self.gone_without_start(now, end);
                }
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

    /// Nothing is left of what the dead guard has left.
    pub(super) fn orphans_gone(&mut self, now: Time) {
        self.tree_gone(now);
    }

    /// A term was won, and nothing has been started under it.
    pub(super) fn begin_term(&mut self, grant: Grant, holds: bool) -> TreeEnd {
        self.grant = Some(grant);
        (self.run, self.backoff, self.over, self.holds) = (Run::new(0), Backoff::default(), None, holds);
        if self.next_guard.due.is_none() {
            self.watch = Some(Watch::new(grant.until));
        }
        TreeEnd { term: grant.term }
    }

    /// There is no guard, so a run that was ordered since the last one's end has never begun.
    pub(super) fn guard_not_started(&mut self) {
        self.watch = None;
        let is_ordered = matches!(self.job, Job::Ordered | Job::Stopping { main: None, .. });
        if let Some(end) = self.tree_end().filter(|_| is_ordered && !self.run.started) {
            self.nothing_left(Why::GuardDied, end);
        }
    }

    /// The guard has nothing alive, and had this run last. If it is the present one, the report of its end was lost; if not,
    /// its end was handled before.
    fn no_run(&mut self, now: Time, term: Offset, attempt: u64) {
        let may_be_alive = matches!(self.job, Job::Ordered | Job::Running { .. } | Job::Stopping { .. });
        let is_present = self.term() == Some(term) && u64::from(self.run.attempt) == attempt;
        if may_be_alive && is_present {
            self.tree_gone(now);
        }
    }

    fn tree_gone(&mut self, now: Time) {
        if let Some(end) = self.tree_end() {
            self.gone(now, end);
        }
    }

    /// The end of the tree that the term has, or had last: whoever calls this has been told of it.
    fn tree_end(&self) -> Option<TreeEnd> {
        self.term().map(|term| TreeEnd { term })
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
