//! Handles the guard's answers, and creates the proof that no process of a job's tree is left.

use super::watch::Watch;
use super::{Job, JobStatus, Run, Supervisor};
use crate::guard::{Answer, CommandKind, Grant, SeenEnd, Step};
use crate::record::{Offset, Why};
use crate::restart::Backoff;
use crate::time::Time;

/// The proof that no process of a term's last run is left, or that no run was started under the term. It is kept between two runs, and the
/// proof that no process of the term's job is left needs it. Only this file creates it: when a term begins, when the guard's answer shows
/// it, when the check after a guard's death finds no process, and when no guard could be started.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct TreeEnd {
    term: Offset,
}

impl TreeEnd {
    /// The term of the tree.
    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn into_term(self) -> Offset {
        self.term
    }
}

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
            Answer::Fenced { term, end } => self.fenced(end, TreeEnd { term }),
            Answer::Gone => self.tree_gone(now, None),
            Answer::Killed => self.killed_at_timeout(),
            Answer::Ready => self.next_guard.is_set_up(),
            Answer::NoRun { term, run } => self.no_run(now, term, run),
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
        self.look_after_guard();
        self.look_after_health(now);
    }

    /// Begins a term that was won; no run has been started under it.
    pub(super) fn begin_term(&mut self, grant: Grant, holds: bool) -> TreeEnd {
        self.grant = Some(grant);
        (self.run, self.next_attempt, self.over, self.holds) = (Run::new(0, 0), 1, None, holds);
        self.backoff = Backoff::default();
        if self.next_guard.due.is_none() {
            self.watch = Some(Watch::new(grant.until));
        }
        TreeEnd { term: grant.term }
    }

    /// Handles that there is no guard, so that a run which was ordered since the last one's end has not begun.
    pub(super) fn guard_not_started(&mut self) {
        self.watch = None;
        let is_ordered = matches!(self.job, Job::Ordered | Job::Stopping { main: None, .. });
        if let Some(end) = self.tree_end().filter(|_| is_ordered && !self.run.started) {
            self.nothing_left(Why::GuardDied, end);
        }
    }

    /// Handles the guard's answer that no process is alive, and that this run was its last. If it is the present run, the report of its end
    /// was lost; otherwise its end was handled before.
    fn no_run(&mut self, now: Time, term: Offset, run: u64) {
        let may_be_alive = matches!(self.job, Job::Ordered | Job::Running { .. } | Job::Stopping { .. });
        let is_present = self.term() == Some(term) && u64::from(self.run.number) == run;
        if may_be_alive && is_present {
            self.tree_gone(now, None);
        }
    }

    /// Handles that no process of the present or last tree is left, according to its guard, or, if the guard is dead, to this process's own
    /// check, of which the end was seen.
    pub(super) fn tree_gone(&mut self, now: Time, seen: Option<SeenEnd>) {
        if let Some(end) = self.tree_end() {
            self.gone(now, seen, end);
        }
    }

    /// The proof of the end of the term's present or last tree. The caller must have the report of that end.
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
