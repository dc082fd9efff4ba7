//! How the kernel shares the processors out to a thread: `SCHED_OTHER`, `SCHED_FIFO`, ...

use std::ffi::{c_int, c_ulong};
use std::io;

use nix::libc;
use nix::sys::prctl;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::process::system;

/// A thread's policy and priority. The nice value stands beside it, and is kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Scheduling {
    policy: c_int,
    /// 0 but for `SCHED_FIFO` and `SCHED_RR`.
    pub(crate) priority: c_int,
    /// In nanoseconds. The kernel takes it away with real-time scheduling, and gives children none.
    timer_slack: c_ulong,
}

impl Scheduling {
    /// Before everything that is not real-time itself; the higher the `priority`, the more so.
    pub(crate) const fn real_time(priority: c_int) -> Self {
        Self { policy: libc::SCHED_FIFO, priority, timer_slack: 0 }
    }

    /// Behind everything else.
    pub(crate) const fn last_of_all() -> Self {
        Self { policy: libc::SCHED_IDLE, priority: 0, timer_slack: 0 }
    }

    /// The scheduling of this thread.
    ///
    /// # Errors
    ///
    /// The kernel does not report it.
    pub(crate) fn current() -> io::Result<Self> {
        let (policy, priority) = system::scheduler()?;
        let timer_slack = c_ulong::try_from(prctl::get_timerslack()?).map_err(io::Error::other)?;
        Ok(Self { policy, priority, timer_slack })
    }

    /// Whether it goes before all that is not real-time itself, and children have it too.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(self.policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }

    /// The one that goes before it and before all that is not real-time; `None` where there is none.
    pub(crate) fn next_higher(self) -> Option<Self> {
        /// The highest priority, and what a guard has above an ordinary job: 1 is for what it kills.
        const HIGHEST: c_int = 99;
        const ABOVE_ORDINARY: c_int = 2;
        match self.policy {
            libc::SCHED_FIFO | libc::SCHED_RR => (self.priority < HIGHEST).then(|| Self::real_time(self.priority + 1)),
            libc::SCHED_DEADLINE => None,
            _ => Some(Self::real_time(ABOVE_ORDINARY)),
        }
    }

    /// That of what this process kills: just below its own, so that it goes before everything else that this one goes
    /// before, and never lower than real-time.
    pub(crate) fn for_killed() -> Self {
        let own = Self::current().ok().filter(|own| own.is_real_time()).map_or(0, |own| own.priority);
        Self::real_time((own - 1).max(1))
    }

    /// Gives it to a thread; 0 is the one that calls.
    ///
    /// # Errors
    ///
    /// `EPERM` when this process may not; `ESRCH` when there is no such thread.
    pub(crate) fn set_for(self, thread: Pid) -> io::Result<()> {
        // Async-signal-safe: nothing but the call.
        system::set_scheduler(thread, self.policy, self.priority)
    }

    /// Gives it to this thread, as it was there when it was [`current`](Self::current).
    ///
    /// # Errors
    ///
    /// `EPERM` when this process may not.
    pub(crate) fn restore(self) -> io::Result<()> {
        self.set_for(Pid::from_raw(0))?;
        // Async-signal-safe: nothing but the call.
        Ok(prctl::set_timerslack(self.timer_slack)?)
    }
}
