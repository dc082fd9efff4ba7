//! What the loop does with its children: each is waited for when it has ended, and what a dead guard leaves is killed.

use neli::program::clock;
use neli_proto::supervisor::Event;
use nix::unistd::Pid;

use super::{MainLoop, translate};
use crate::process::procfs;
use crate::process::reap::{self, Change, WaitStatus};
use crate::supervise::orphans::{Left, Orphans};

impl MainLoop {
    /// Children have changed (SIGCHLD).
    pub(super) fn handle_children(&mut self) {
        let changes = self.reap_children();
        let guard = self.role.job.guard.pid();
        let mut guard_died = false;
        for change in changes.iter().filter(|change| change.pid == guard) {
            match change.status {
                WaitStatus::Exited(_) | WaitStatus::Killed(_) => guard_died = true,
                // Somebody stopped it: it must go on.
                WaitStatus::Stopped(_) => {
                    let _ = self.role.job.guard.cont();
                }
            }
        }
        if guard_died {
            // What it answered before it died is still to be read.
            self.handle_answers();
            self.role.job.guard_was_waited_for();
            self.job_event(Event::GuardDied);
            self.perform();
        } else {
            self.kill_orphans();
        }
    }

    /// Waits for every child that has ended; what was ours alone is no longer taken for it.
    pub(super) fn reap_children(&mut self) -> Vec<Change> {
        let brokers = self.brokers_started.clone();
        // One that ends at once is on the list before it is waited for.
        let mut brokers = brokers.lock();
        let changes = reap::reap(|ended| self.role.commands.end_group(ended)).changes;
        for change in &changes {
            if let Some(event) = self.role.commands.hook_changed(change) {
                self.role.node.handle(clock::now(), event);
            }
            match change.status {
                WaitStatus::Exited(_) | WaitStatus::Killed(_) => {
                    brokers.retain(|child| *child != change.pid);
                    if change.pid == self.role.job.guard.pid() {
                        self.role.job.guard.note_waited_for();
                    }
                }
                WaitStatus::Stopped(_) => {}
            }
        }
        // Another thread's, as those that follow one that was gone are, and nobody else waits for them.
        brokers.retain(|child| !reap::reap_one(*child));
        changes
    }

    pub(super) fn kill_hung_guard(&mut self) {
        // Without a descriptor /proc can't be read, and nothing be found to kill.
        self.reserve.give_up();
        if self.role.job.kill_hung_guard(self.config.timings.lease()) {
            self.kill_orphans();
        }
    }

    pub(super) fn inherit_orphans(&mut self) {
        // As above.
        self.reserve.give_up();
        self.role.job.inherit_orphans(self.config.timings.lease());
        self.kill_orphans();
    }

    /// To be called at each child's end, and when it is time.
    pub(super) fn kill_orphans(&mut self) {
        let Some(mut orphans) = self.role.job.orphans.take() else { return };
        match self.kill_what_is_left(&mut orphans) {
            Left::Nothing => {
                self.reserve.fill();
                self.session.terminal.take_back();
                self.job_event(Event::OrphansGone);
            }
            Left::Something => self.role.job.orphans = Some(orphans),
            Left::Stuck(pids) => {
                self.role.job.orphans = Some(orphans);
                let pids = pids.into_iter().filter_map(translate::number_of).collect();
                self.job_event(Event::OrphansStuck { pids });
            }
        }
    }

    fn kill_what_is_left(&mut self, orphans: &mut Orphans) -> Left {
        {
            // None is started between the look at the list and the look at what there is to be killed.
            let brokers = self.brokers_started.lock();
            orphans.spare(self.children_of_no_job(&brokers));
            orphans.kill(clock::now());
        }
        // A guard that has not died is waited for in `handle_children`, which reports its death.
        if !orphans.have_guard() {
            self.reap_children();
        }
        // The number of one that was waited for may be an orphan's by now.
        let brokers = self.brokers_started.lock();
        orphans.spare(self.children_of_no_job(&brokers));
        orphans.left(clock::now())
    }

    /// Our children that are no part of a job, and were not waited for.
    fn children_of_no_job(&self, brokers: &[Pid]) -> Vec<Pid> {
        let hooks = self.role.commands.hook_pids();
        brokers.iter().copied().chain(hooks).chain(procfs::children_of_other_threads()).collect()
    }
}
