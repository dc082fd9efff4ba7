//! The guard, as guard.md has it: it alone starts the job, and kills it at the deadline. Its twin of flesh and blood is
//! `driver/guard/watch.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::candidate::Right;
use neli_proto::record::Offset;
use neli_proto::supervisor::{Event, JobStatus, Order};
use neli_proto::time::Time;

use crate::flaws::{WorldFlaw, is_flawed};
use crate::setup::Setup;

/// The guard's process, the job below it, and the orders that it has not read.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Guard {
    pub(crate) life: Life,
    pub(crate) orders: VecDeque<Order>,
    pub(crate) tenure: Option<Tenure>,
    pub(crate) job: Option<Job>,
}

/// How a process is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum Life {
    /// It runs when it has something to do.
    #[default]
    Awake,
    /// Stopped: it does nothing at all.
    Asleep,
    /// Dead, and not yet waited for: its end of the socket is closed, its children are not yet its parent's.
    Dying,
    /// Dead.
    Dead,
}

/// The last term that was granted.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Tenure {
    pub(crate) right: Right,
    /// Nothing is started or extended under it any more.
    over: bool,
    /// Nothing is to be released for it any more.
    released: bool,
}

/// The job's processes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Job {
    pub(crate) term: Offset,
    pub(crate) main: bool,
    /// A daemon that outlives the main process.
    pub(crate) child: bool,
    /// A command that runs beside it, or what that has left.
    pub(crate) command: bool,
    /// It was asked to stop, and is killed at this time.
    pub(crate) kill_at: Option<Time>,
}

impl Guard {
    /// When it has something to do, if nothing happens; `late` by as much as it may be scheduled late.
    pub(crate) fn due(&self, late: Duration) -> Option<Time> {
        if self.life != Life::Awake {
            return None;
        }
        let deadline = self.tenure.filter(|tenure| !tenure.over).map(|tenure| tenure.right.until + late);
        let kill_at = self.job.and_then(|job| job.kill_at);
        [deadline, kill_at].into_iter().flatten().min()
    }

    /// Does what is due: the deadline, then the stop timeout.
    pub(crate) fn handle_timeout(&mut self, now: Time, words: &mut VecDeque<Event>) {
        self.fence_if_due(now, words);
        if self.job.and_then(|job| job.kill_at).is_some_and(|at| now >= at) {
            words.push_back(Event::KilledAtTimeout);
            self.kill_job(words);
            words.push_back(Event::Gone);
        }
    }

    /// Carries out an order, as read at `now`.
    pub(crate) fn obey(&mut self, now: Time, order: Order, setup: &Setup, words: &mut VecDeque<Event>) {
        let unchecked = is_flawed(WorldFlaw::SupervisorSpawns) && matches!(order, Order::Spawn { .. });
        if !unchecked {
            self.fence_if_due(now, words);
        }
        match order {
            Order::Extend(right) => {
                if self.job.is_some_and(|job| job.term != right.term) {
                    return;
                }
                if self.grant(now, right) {
                    words.extend(self.tenure.map(|tenure| Event::Answered { until: tenure.right.until }));
                } else if self.job.is_none() {
                    words.push_back(Event::Fenced { term: right.term, gone_at: None });
                }
            }
            Order::Kill => {
                if self.job.is_some() {
                    words.push_back(Event::KilledAtTimeout);
                    self.kill_job(words);
                    words.push_back(Event::Gone);
                }
            }
            Order::Over { term } => {
                if let Some(tenure) = self.tenure.as_mut().filter(|tenure| tenure.right.term == term) {
                    tenure.over = true;
                    if self.job.is_some() {
                        self.kill_job(words);
                        words.push_back(Event::Gone);
                    }
                }
            }
            Order::HandOn | Order::Signal { .. } | Order::TakeBack => {}
            Order::Spawn { right, .. } => {
                if self.job.is_some() {
                    return;
                }
                if !self.grant(now, right) && !unchecked {
                    words.push_back(Event::Fenced { term: right.term, gone_at: None });
                    return;
                }
                words.extend(self.tenure.map(|tenure| Event::Answered { until: tenure.right.until }));
                words.push_back(Event::Started { pid: 1 });
                let (child, command) = (setup.jobs_have_children, setup.jobs_have_commands);
                self.job = Some(Job { term: right.term, main: true, child, command, kill_at: None });
            }
            Order::Stop { kill_at, .. } => {
                if let Some(job) = &mut self.job {
                    job.kill_at = Some(kill_at);
                }
            }
        }
    }

    /// The term was released and delivered, or another leads.
    pub(crate) fn note_released(&mut self, term: Offset) {
        if let Some(tenure) = self.tenure.as_mut().filter(|tenure| tenure.right.term == term) {
            (tenure.over, tenure.released) = (true, true);
        }
    }

    /// The supervisor is dead: kills, and then says what is to be released for it.
    pub(crate) fn outlive_supervisor(&mut self) -> Option<Right> {
        let to_release = self.tenure.filter(|tenure| !tenure.released).map(|tenure| tenure.right);
        if is_flawed(WorldFlaw::GuardReleasesFirst) && self.job.is_some() && to_release.is_some() {
            self.note_released(to_release?.term);
            return to_release;
        }
        self.job = None;
        self.life = Life::Dead;
        to_release
    }

    /// The main process ends by itself. What it left, if anything, goes on; what ran beside it is killed.
    pub(crate) fn main_ends(&mut self, words: &mut VecDeque<Event>) {
        let Some(job) = &mut self.job else { return };
        job.main = false;
        words.push_back(Event::MainExited { status: JobStatus::Exited(0), left: job.child, foreground: false });
        job.command &= is_flawed(WorldFlaw::CommandForgotten);
        if !job.child {
            self.job = self.job.filter(|job| job.command);
            words.push_back(Event::Gone);
        }
    }

    /// What the main process left ends too.
    pub(crate) fn child_ends(&mut self, words: &mut VecDeque<Event>) {
        let Some(job) = &mut self.job else { return };
        job.child = false;
        if !job.main {
            self.job = None;
            words.push_back(Event::Gone);
        }
    }

    fn fence_if_due(&mut self, now: Time, words: &mut VecDeque<Event>) {
        let Some(tenure) = self.tenure.as_mut().filter(|tenure| !tenure.over && now >= tenure.right.until) else {
            return;
        };
        tenure.over = true;
        let term = tenure.right.term;
        self.kill_job(words);
        words.push_back(Event::Fenced { term, gone_at: None });
    }

    fn kill_job(&mut self, words: &mut VecDeque<Event>) {
        if let Some(job) = self.job.take().filter(|job| job.main) {
            words.push_back(Event::MainExited { status: JobStatus::Signaled(9), left: job.child, foreground: false });
        }
    }

    /// Whether the job may run under `right`, as of `now`: a lease that ended is not taken up again, and no term at or
    /// below one that was held before.
    fn grant(&mut self, now: Time, right: Right) -> bool {
        let tenure = match self.tenure {
            Some(held) if held.right.term > right.term => return false,
            Some(held) if held.right.term == right.term => {
                let may_extend = !held.over && now < held.right.until;
                Tenure {
                    right: Right {
                        term: right.term,
                        seen: right.seen.max(held.right.seen),
                        next_seq: right.next_seq.max(held.right.next_seq),
                        until: if may_extend { right.until.max(held.right.until) } else { held.right.until },
                    },
                    ..held
                }
            }
            _ => Tenure { right, over: false, released: false },
        };
        let over = tenure.over || now >= tenure.right.until;
        self.tenure = Some(Tenure { over, ..tenure });
        !over
    }
}
