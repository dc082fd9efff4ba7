//! A thread that kills the job of a dead guard if the main loop stalls.
//!
//! At a memory limit that this process shares with the job, the main loop may stall for seconds in any call that needs memory, as the guard's first
//! thread may. This thread needs none: it kills the job's control group, and the children of this process with the
//! job's mark. A process that ends leaves its children to this process, where the next round finds them.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use neli_proto::guard::FIRST_THREAD_ACTS_WITHIN;
use nix::libc::SIGKILL;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::Pid;

use crate::process::attributes::Mark;
use crate::process::cgroup::Cgroup;
use crate::process::held::HeldProcess;
use crate::process::reap::keep_children;
use crate::process::tree::{OwnChildren, in_rounds};
use crate::process::{limits, locked, system};

/// The most rounds, in a minute: by then the main loop has reported what it can't kill.
const ROUNDS: u32 = 1_000;

/// So many guards need no memory while the list is locked.
const GUARDS: usize = 64;

/// The thread, which ends with the process.
pub(super) struct OrphanThread {
    /// Is readable when a watched guard is dead.
    deaths: Epoll,
    watched: Mutex<Vec<WatchedGuard>>,
}

/// A guard that is watched, with its job, until this is dropped.
pub(super) struct Watch {
    thread: Arc<OrphanThread>,
    guard: Pid,
}

struct WatchedGuard {
    process: HeldProcess,
    mark: Option<Mark>,
    cgroup: Option<Arc<Cgroup>>,
    rounds: u32,
}

impl OrphanThread {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// No thread can be started, or there is no free descriptor.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let deaths = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let shared = Arc::new(Self { deaths, watched: Mutex::new(Vec::with_capacity(GUARDS)) });
        let (of_thread, children) = (Arc::clone(&shared), OwnChildren::open()?);
        limits::small_thread("neli-orphans").spawn(move || of_thread.run(&children))?;
        Ok(shared)
    }

    /// Watches a guard. `None` if the kernel has no pidfds, or if there is no free descriptor.
    pub(super) fn watch(
        self: &Arc<Self>,
        guard: Pid,
        mark: Option<Mark>,
        cgroup: Option<Arc<Cgroup>>,
    ) -> Option<Watch> {
        let process = HeldProcess::open(guard);
        self.deaths.add(process.pidfd.as_ref()?, EpollEvent::new(EpollFlags::EPOLLIN, 0)).ok()?;
        locked(&self.watched).push(WatchedGuard { process, mark, cgroup, rounds: 0 });
        Some(Watch { thread: Arc::clone(self), guard })
    }

    #[expect(clippy::disallowed_methods, reason = "the time is what the main loop gets")]
    fn run(&self, children: &OwnChildren) {
        limits::use_stack();
        loop {
            let _ = self.deaths.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE);
            thread::sleep(FIRST_THREAD_ACTS_WITHIN);
            in_rounds(|| self.kill_orphans(children));
        }
    }

    /// Kills what dead guards have left; returns whether there was a dead guard.
    fn kill_orphans(&self, children: &OwnChildren) -> bool {
        let mut watched = locked(&self.watched);
        watched.retain(|guard| guard.rounds < ROUNDS);
        let mut is_any = false;
        for guard in watched.iter_mut().filter(|guard| guard.process.tells_end()) {
            is_any = true;
            guard.rounds += 1;
            if let Some(mark) = guard.mark {
                let waited_for = keep_children();
                children.for_each(|child| {
                    if Some(child) != *waited_for && system::limit_of_locks(child) == Ok(mark.0) {
                        let _ = system::signal(child, SIGKILL);
                    }
                });
            }
            // This may block, so it comes last.
            guard.cgroup.iter().for_each(|cgroup| cgroup.kill());
        }
        is_any
    }
}

impl Drop for Watch {
    /// A round that has begun ends before a new run can start.
    fn drop(&mut self) {
        locked(&self.thread.watched).retain(|watched| watched.process.pid != self.guard);
    }
}
