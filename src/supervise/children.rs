//! Waits for children that have ended, and kills the processes that a dead guard leaves.

use std::mem;
use std::os::unix::process::ExitStatusExt;

use neli_kafka::{Host, clock};
use neli_proto::node;
use neli_proto::supervisor::Event;
use nix::libc::SIGCONT;
use nix::unistd::Pid;

use crate::guard::GuardHandle;
use crate::process::{procfs, reap};
use crate::supervise::MainLoop;
use crate::supervise::job::{GuardedJob, ORPHANS_DESCRIPTORS, Orphans};
use crate::supervise::role::Role;

/// How many children are waited for before other events are handled.
const REAPED_TOGETHER: usize = 1_024;

impl MainLoop {
    /// Handles changes of children (SIGCHLD).
    pub(super) fn handle_children(&mut self) {
        self.reap_children();
        self.nodes.roles.iter_mut().filter_map(|role| role.job.as_mut()).for_each(GuardedJob::notice_guards_death);
        // The events of one guard's death wait for children too, and may find that another guard has died.
        while let Some(role) = self.take_guards_death() {
            // The answers that the guard sent before its death are read first.
            self.handle_answers(role);
            self.nodes.roles[role].job.iter_mut().for_each(GuardedJob::guard_is_dead);
            self.guard_starts.remove(role);
            self.job_event(role, Event::GuardDied);
            self.perform();
            self.nodes.roles[role].job.iter_mut().for_each(GuardedJob::stop_watching_if_over);
        }
        for role in 0..self.nodes.roles.len() {
            self.kill_orphans(role);
        }
    }

    /// A role whose guard is dead, and whose node does not know it; returned once.
    fn take_guards_death(&mut self) -> Option<usize> {
        let mut jobs = self.nodes.roles.iter_mut().map(|role| role.job.as_mut());
        jobs.position(|job| job.is_some_and(|job| mem::take(&mut job.is_death_unreported)))
    }

    /// Waits for children that have ended, and returns whether others are left. [`handle_children`](Self::handle_children) handles the deaths of
    /// guards.
    pub(super) fn reap_children(&mut self) -> bool {
        let reaped = reap::reap(REAPED_TOGETHER, |ended| {
            self.nodes.roles.iter().for_each(|role| role.hooks.end_group_of(ended));
        });
        self.is_unfinished |= reaped.may_be_more;
        if reaped.is_refused {
            self.warn_once(
                "neli-run may not wait for its children (wait4 or waitid is denied, as a sandbox's filter does): they stay as zombies, and \
                 each hook counts as timed out after 10s; allow both calls",
            );
        }
        for (pid, status) in &reaped.changes {
            let hook = |(role, of_role): (usize, &mut Role)| Some((role, of_role.hooks.observe_child(*pid, *status)?));
            if let Some((role, (id, end))) = self.nodes.roles.iter_mut().enumerate().find_map(hook) {
                self.tell(role, node::Event::HookEnded { id, end });
            }
            if status.stopped_signal().is_some() {
                // Another process stopped the guard, but the guard must run.
                self.job_with_guard(*pid).iter().for_each(|job| drop(job.guard.signal(SIGCONT)));
            } else {
                self.other_children.retain(|child| child != pid);
                if let Some(job) = self.job_with_guard(*pid) {
                    job.note_guards_death(Some(*status));
                }
            }
        }
        reaped.children_left
    }

    /// The job whose guard has this pid and is not known to be dead.
    fn job_with_guard(&mut self, pid: Pid) -> Option<&mut GuardedJob> {
        let mut jobs = self.nodes.roles.iter_mut().filter_map(|role| role.job.as_mut());
        jobs.find(|job| job.guard.pid() == pid && !job.guard.is_dead)
    }

    /// Kills a guard that hangs or has closed its socket, with its job.
    pub(super) fn kill_guard(&mut self, role: usize) {
        let job = self.nodes.roles[role].job.as_mut();
        if self.reserve.lent(|| job.is_some_and(GuardedJob::kill_guard)) {
            self.kill_orphans(role);
        }
    }

    pub(super) fn inherit_orphans(&mut self, role: usize) {
        let job = &mut self.nodes.roles[role].job;
        self.reserve.lent(|| job.iter_mut().for_each(GuardedJob::inherit_orphans));
        self.kill_orphans(role);
    }

    /// Kills the processes that a dead guard left. Must be called at each child's end, and when it is due.
    pub(super) fn kill_orphans(&mut self, role: usize) {
        let Some(mut orphans) = self.nodes.roles[role].job.as_mut().and_then(|job| job.orphans.take()) else { return };
        // Without a free descriptor /proc can't be read, and no process can be found and killed. The reserve is lent for one round at a
        // time, because another thread may take a descriptor meanwhile.
        self.reserve.lend();
        let is_any_left = self.kill_remaining_processes(role, &mut orphans);
        let stuck = if is_any_left { orphans.stuck(clock::now()) } else { None };
        self.reserve.take_back();
        if is_any_left {
            if let Some(job) = &mut self.nodes.roles[role].job {
                job.orphans = Some(orphans);
            }
            self.nodes.touch(role);
            return stuck.into_iter().for_each(|event| self.job_event(role, event));
        }
        let end = orphans.killing.end(clock::now());
        drop(orphans);
        if let Some(job) = &mut self.nodes.roles[role].job {
            job.main = None;
            job.stop_watching_if_over();
        }
        self.reserve.regain(ORPHANS_DESCRIPTORS);
        self.shell.terminal.take_back();
        self.job_event(role, Event::OrphansGone(end));
    }

    /// Returns whether a process may be left.
    fn kill_remaining_processes(&mut self, role: usize, orphans: &mut Orphans) -> bool {
        orphans.tree.exclude(self.children_of_others(role));
        let main = self.nodes.roles[role].job.as_ref().and_then(|job| job.main.as_ref());
        orphans.kill(clock::now(), main);
        // `handle_children` reports the death of a guard that is not known to be dead.
        if orphans.guard.is_none() && !self.reap_children() && orphans.tree.is_nothing_elsewhere() {
            return false;
        }
        // The pid of a child that was waited for may have been reused for an orphan.
        orphans.tree.exclude(self.children_of_others(role));
        orphans.guard.is_some() || !orphans.tree.is_gone()
    }

    /// This process's children that don't belong to this role's job and were not waited for: hooks, the broker, those from before this program, and the
    /// guards of other roles, which kill their own jobs.
    fn children_of_others(&self, role: usize) -> Vec<Pid> {
        let hooks = self.nodes.roles.iter().flat_map(|role| role.hooks.pids());
        let others = self.nodes.roles.iter().enumerate().filter(|(other, _)| *other != role);
        let guards = others.filter_map(|(_, role)| role.job.as_ref()).map(|job| &job.guard);
        let guards = guards.filter(|guard| !guard.is_dead).map(GuardHandle::pid);
        let others = hooks.chain(guards).chain(procfs::children_of_other_threads());
        others.chain(self.other_children.iter().copied()).collect()
    }
}
