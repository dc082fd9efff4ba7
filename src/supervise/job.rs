//! The job of one election with its guard: the guard's process and socket, and the means to kill the job if its guard can't.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::time::Time;

use crate::guard::{GuardConfig, GuardHandle, Order};
use crate::process::cgroup::{Cgroup, CgroupMaker};
use crate::process::ready::Ready;
use crate::supervise::orphans::{MainProcess, Orphans};

/// The path of this program. It works even if the program's file has been replaced since.
pub(super) const PROGRAM: &str = "/proc/self/exe";

/// The guard of a job that has not started.
pub(super) struct PreparedJob {
    pub(super) guard_config: GuardConfig,
    pub(super) guard: GuardHandle,
    pub(super) cgroup: Option<Rc<Cgroup>>,
}

impl PreparedJob {
    /// Starts a guard for a role's job by `start`, one of the functions that can.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, memory or process.
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

/// The job of one election, which its guard runs.
pub(super) struct GuardedJob {
    /// The configuration for each of its guards.
    pub(super) config: GuardConfig,
    pub(super) guard: GuardHandle,
    pub(super) ready: Ready,
    /// Whether the guard's socket is closed. Then SIGCHLD will report the guard's end.
    pub(super) is_silent: bool,
    /// Whether the guard has died, and the node does not know it yet.
    pub(super) is_death_unreported: bool,
    /// The job's main process, according to the descriptor in the guard's answer.
    pub(super) main: Option<Rc<MainProcess>>,
    /// The processes that a dead guard left, or one that hangs or dies, until all are gone.
    pub(super) orphans: Option<Orphans>,
    /// When a process of the job was last seen alive, while its guard was being killed.
    lived_at: Option<Time>,
    /// The job's control group, if one could be created.
    cgroup: Option<Rc<Cgroup>>,
}

impl GuardedJob {
    /// Must be called within a runtime.
    pub(super) fn new(prepared: PreparedJob) -> io::Result<Self> {
        let PreparedJob { guard_config, guard, cgroup } = prepared;
        let ready = Ready::of_socket(&guard)?;
        Ok(Self {
            config: guard_config,
            guard,
            ready,
            is_silent: false,
            is_death_unreported: false,
            main: None,
            orphans: None,
            lived_at: None,
            cgroup,
        })
    }

    /// Whether the guard has nothing to guard, to release or to perform, and has left no process behind.
    pub(super) fn is_idle(&self) -> bool {
        let guard = &self.guard;
        !self.is_silent && !guard.owes_release() && !guard.has_backlog() && self.orphans.is_none()
    }

    /// Sends an order, or queues it if the guard's socket is full. If the guard does not read any more, the supervisor notices the
    /// missing answers.
    pub(super) fn send(&self, order: &Order) {
        let _ = self.guard.send(order);
    }

    /// Sends an order with the descriptor of a command's output.
    pub(super) fn send_with(&self, order: &Order, output: OwnedFd) {
        let _ = self.guard.send_with(order, Some(output));
    }

    /// Starts another guard by `start` in place of this one, which ends when its socket is closed.
    pub(super) fn start_guard(
        &mut self,
        start: impl FnOnce(&Path, &GuardConfig) -> io::Result<GuardHandle>,
    ) -> io::Result<()> {
        // No process of the previous run is left.
        self.cgroup.iter().for_each(|cgroup| cgroup.cancel_kill());
        let guard = start(Path::new(PROGRAM), &self.config)?;
        (self.ready, self.guard) = (Ready::of_socket(&guard)?, guard);
        (self.is_silent, self.is_death_unreported) = (false, false);
        Ok(())
    }

    /// Notes that the guard has ended.
    pub(super) fn note_guards_death(&mut self) {
        self.guard.note_death();
        self.is_death_unreported = true;
    }

    /// Notes the guard's death if it is being killed and has ended. Its tracer may keep it, and then no SIGCHLD reports the death.
    pub(super) fn notice_guards_death(&mut self) {
        if self.orphans.as_ref().is_some_and(Orphans::have_guard) && !self.guard.is_dead() && self.guard.has_ended() {
            self.note_guards_death();
        }
    }

    /// Kills a guard that does not answer or has closed its socket, and all processes of its job that are found. The guard may take long to
    /// die (in state D, frozen), and its job must not live on for that time. Returns false if the guard's death is known, so that nothing was
    /// killed.
    pub(super) fn kill_guard(&mut self, lease: Duration) -> bool {
        if self.guard.is_dead() {
            return false;
        }
        // It may have ended already.
        let _ = self.guard.kill();
        if !self.orphans.as_ref().is_some_and(Orphans::have_guard) {
            let (main, cgroup) = (self.main.clone(), self.cgroup.clone());
            let orphans = Orphans::new(Some(self.guard.pid()), clock::now(), main, cgroup, lease);
            self.orphans = Some(orphans.marked_with(self.config.mark));
        }
        true
    }

    /// Handles the guard's death: determines again which processes of its job are left, and the guard itself no longer counts as stuck.
    pub(super) fn guard_is_dead(&mut self) {
        let now = clock::now();
        self.lived_at =
            self.orphans.take_if(|orphans| orphans.have_guard()).and_then(|orphans| orphans.end(now).lived_at);
    }

    /// Takes over the processes of a dead guard's job: this process is a subreaper, and must kill them.
    pub(super) fn inherit_orphans(&mut self, lease: Duration) {
        let orphans = Orphans::new(None, clock::now(), self.main.take(), self.cgroup.clone(), lease);
        self.orphans = Some(orphans.marked_with(self.config.mark).last_seen_alive(self.lived_at.take()));
    }
}
