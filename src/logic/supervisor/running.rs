//! A run of the job, as the guard tells of it: from its start until nothing is left.

use super::super::candidacy;
use super::super::flaw::{Flaw, broken};
use super::super::record::{JobState, Offset, Why};
use super::super::supervision::{Action, Ending, JobStatus, Note, Order};
use super::super::time::Time;
use super::{Job, Supervisor};

impl Supervisor {
    pub(super) fn started(&mut self, now: Time, pid: u32) {
        self.note(Note::JobStarted { pid, attempt: 1 });
        match &mut self.job {
            Job::Ordered => {
                self.job = Job::Running { pid, since: now };
                self.report(JobState::Running, Some(pid), now);
            }
            // A stop went behind the spawn: the barrier already runs.
            Job::Stopping { main, .. } => *main = Some((pid, now)),
            Job::None | Job::Orphaned | Job::Running { .. } => {}
        }
    }

    pub(super) fn not_started(&mut self, code: u8, error: String) {
        self.note(Note::NotStarted { error });
        self.last_status = Some(JobStatus::Exited(code));
        self.nothing_left(Why::Exited);
    }

    pub(super) fn main_exited(&mut self, now: Time, status: JobStatus, left: bool) {
        let since = match self.job {
            Job::Running { since, .. } | Job::Stopping { main: Some((_, since)), .. } => since,
            Job::None | Job::Ordered | Job::Orphaned | Job::Stopping { main: None, .. } => now,
        };
        self.last_status = Some(status);
        self.note(Note::JobExited { status, ran: now.since(since) });
        match &mut self.job {
            Job::Stopping { main, .. } => *main = None,
            Job::None | Job::Orphaned => {}
            Job::Ordered | Job::Running { .. } => {
                self.job = Job::Stopping { why: Why::Exited, main: None };
                if left && broken(Flaw::MainEndTakenForAll) {
                    return self.nothing_left(Why::Exited);
                }
                if left {
                    // A daemon that the job left behind counts as running work: it is asked, then killed.
                    self.order_stop(now);
                    self.report(JobState::Stopping, None, now);
                }
            }
        }
    }

    pub(super) fn gone(&mut self) {
        match self.job {
            Job::None => {}
            Job::Stopping { why, .. } => self.nothing_left(why),
            Job::Ordered | Job::Running { .. } => self.nothing_left(Why::Exited),
            Job::Orphaned => {
                self.nothing_left(Why::GuardDied);
                self.actions.push_back(Action::StartGuard);
            }
        }
    }

    pub(super) fn killed_at_timeout(&mut self) {
        self.killed = true;
        if let Job::Stopping { why, .. } = self.job {
            self.note(Note::JobKilled { why });
        }
    }

    pub(super) fn fenced(&mut self, term: Offset) {
        if term == self.term && self.job != Job::None {
            self.killed = true;
            self.tell(candidacy::Event::Fenced { why: Why::Fenced });
            self.nothing_left(Why::Fenced);
        }
    }

    /// The net below the guard: what it left is killed, and only then is anything said to be over.
    pub(super) fn guard_died(&mut self) {
        self.watch = None;
        self.note(Note::GuardLost);
        if self.job == Job::None {
            self.actions.push_back(Action::StartGuard);
        } else {
            self.killed = true;
            self.job = Job::Orphaned;
            self.tell(candidacy::Event::Fenced { why: Why::GuardDied });
            self.actions.push_back(Action::KillOrphans);
        }
    }

    pub(super) fn stuck(&mut self, pids: Vec<u32>) {
        self.note(Note::Stuck { pids });
        self.actions.push_back(Action::Exit(Ending::Stuck));
    }

    pub(super) fn nothing_left(&mut self, why: Why) {
        if self.job == Job::None {
            return;
        }
        self.job = Job::None;
        self.watch = None;
        self.order(Order::Over { term: self.term });
        let exit = self.last_status.map(JobStatus::code);
        let leaving = why == Why::Exited || self.stop.is_some();
        self.tell(candidacy::Event::NothingLeft { why, exit, leaving });
    }
}
