//! The job of one election under its guard: the guard's process and socket, and what is needed to kill the job when its guard
//! can't.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use neli::program::clock;

use crate::guard::{GuardConfig, GuardHandle, Order};
use crate::process::cgroup::{Cgroup, CgroupMaker};
use crate::process::ready::Ready;
use crate::supervise::main_process::MainProcess;
use crate::supervise::orphans::Orphans;

/// This program, even where its file has been replaced since.
pub(super) const PROGRAM: &str = "/proc/self/exe";

/// The guard of a job that is not started yet.
pub(super) struct PreparedJob {
    pub(super) guard_config: GuardConfig,
    pub(super) guard: GuardHandle,
    pub(super) cgroup: Option<Rc<Cgroup>>,
}

impl PreparedJob {
    /// A guard for a role's job, by one of the functions that start one.
    ///
    /// # Errors
    ///
    /// When there are no descriptors, no memory or no process to spare.
    pub(super) fn make(
        cgroups: &mut CgroupMaker,
        mut guard_config: GuardConfig,
        start: impl FnOnce(&Path, &GuardConfig) -> io::Result<GuardHandle>,
    ) -> io::Result<Self> {
        let cgroup = cgroups.make().ok().map(Rc::new);
        guard_config.cgroup = cgroup.as_ref().map(|cgroup| cgroup.as_fd().as_raw_fd());
        let guard = start(Path::new(PROGRAM), &guard_config)?;
        Ok(Self { guard_config, guard, cgroup })
    }
}

/// The job of one election, by way of the guard that runs it.
pub(super) struct GuardedJob {
    /// What each guard is started with.
    pub(super) config: GuardConfig,
    pub(super) guard: GuardHandle,
    pub(super) ready: Ready,
    /// The guard's socket is closed: nothing more comes from it but its end, by SIGCHLD.
    pub(super) is_silent: bool,
    /// The job's main process, by the descriptor that its guard has sent.
    pub(super) main: Option<MainProcess>,
    /// What a dead guard left, while it is not all gone.
    pub(super) orphans: Option<Orphans>,
    /// The job's control group, where one could be made.
    cgroup: Option<Rc<Cgroup>>,
}

impl GuardedJob {
    /// Within a runtime.
    pub(super) fn new(prepared: PreparedJob) -> io::Result<Self> {
        let PreparedJob { guard_config, guard, cgroup } = prepared;
        let ready = Ready::of_socket(&guard)?;
        Ok(Self { config: guard_config, guard, ready, is_silent: false, main: None, orphans: None, cgroup })
    }

    /// Whether the guard has nothing to guard or to release, needs no order, and has left nothing.
    pub(super) fn is_idle(&self) -> bool {
        let guard = &self.guard;
        !self.is_silent && !guard.owes_release() && !guard.has_backlog() && self.orphans.is_none()
    }

    /// Sends an order. What the guard has no room for waits. That it takes nothing more, the supervisor notices by the lack of
    /// answers.
    pub(super) fn send(&self, order: &Order) {
        let _ = self.guard.send(order);
    }

    /// The same with the descriptor of a command's output.
    pub(super) fn send_with(&self, order: &Order, output: OwnedFd) {
        let _ = self.guard.send_with(order, Some(output));
    }

    /// Starts another guard in place of this one, which ends with its socket.
    pub(super) fn start_guard(&mut self) -> io::Result<()> {
        // Nothing is left of the one before.
        self.cgroup.iter().for_each(|cgroup| cgroup.cancel_kill());
        let guard = GuardHandle::start(Path::new(PROGRAM), &self.config)?;
        (self.ready, self.guard, self.is_silent) = (Ready::of_socket(&guard)?, guard, false);
        Ok(())
    }

    /// The guard's socket is closed: whatever it is, it guards no more.
    pub(super) fn guard_fell_silent(&mut self) {
        self.is_silent = true;
        // It is dead, or about to be.
        let _ = self.guard.kill();
        self.main.iter().for_each(MainProcess::kill);
        // Where no thread can be started for it, the group is killed when the guard has died.
        let _ = self.cgroup.iter().all(|cgroup| cgroup.kill_in_background());
    }

    /// Kills a guard that does not answer, and has what is found of its job killed too: the guard may take long to die (in state D,
    /// frozen), and its job must not wait for that. Whether there is anything to be killed: not when the guard has died.
    pub(super) fn kill_hung_guard(&mut self, lease: Duration) -> bool {
        // It may be dead already, which SIGCHLD shows.
        let _ = self.guard.kill();
        if self.guard.was_waited_for() {
            return false;
        }
        let main = self.main.as_ref().and_then(MainProcess::try_clone);
        let orphans = Orphans::of_hung_guard(self.guard.pid(), clock::now(), main, self.cgroup.clone(), lease);
        self.orphans = Some(orphans);
        true
    }

    /// The guard has died: whether something of its job is left is asked anew, and it is not called stuck any more.
    pub(super) fn guard_was_waited_for(&mut self) {
        self.orphans.take_if(|orphans| orphans.have_guard());
    }

    /// The guard is dead: what it left is this process's to kill, which is its subreaper.
    pub(super) fn inherit_orphans(&mut self, lease: Duration) {
        self.orphans = Some(Orphans::new(clock::now(), self.main.take(), self.cgroup.clone(), lease));
    }
}
