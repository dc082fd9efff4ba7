//! The scheduling policy and priority of a thread: `SCHED_OTHER`, `SCHED_FIFO`, ...

use std::ffi::{c_int, c_ulong};
use std::io;

use nix::libc;
use nix::sys::prctl;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::process::system;

/// A thread's policy and priority. The nice value is independent of them, and is kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Scheduling {
    policy: c_int,
    /// 0 except for `SCHED_FIFO` and `SCHED_RR`.
    pub(crate) priority: c_int,
    /// The timer slack in nanoseconds. The kernel clears it with real-time scheduling, and does not pass it on to children then.
    timer_slack: c_ulong,
}

impl Scheduling {
    /// Real-time scheduling with this priority; a higher number takes precedence.
    pub(crate) const fn real_time(priority: c_int) -> Self {
        Self { policy: libc::SCHED_FIFO, priority, timer_slack: 0 }
    }

    /// The scheduling of ordinary processes. A thread that was allowed to schedule in real time may return from it. From `SCHED_IDLE` it may
    /// not, unless it has `CAP_SYS_NICE` or a high `RLIMIT_NICE`.
    pub(crate) const fn ordinary() -> Self {
        Self { policy: libc::SCHED_OTHER, priority: 0, timer_slack: 0 }
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

    /// Whether it takes precedence over everything that is not real-time, and is inherited by children.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(self.policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }

    /// The next higher real-time scheduling; `None` if there is none.
    pub(crate) fn next_higher(self) -> Option<Self> {
        /// The highest priority. The guard of an ordinary job uses a priority above 1, which is for processes that it kills.
        const HIGHEST: c_int = 99;
        const ABOVE_ORDINARY: c_int = 2;
        match self.policy {
            libc::SCHED_FIFO | libc::SCHED_RR => (self.priority < HIGHEST).then(|| Self::real_time(self.priority + 1)),
            libc::SCHED_DEADLINE => None,
            _ => Some(Self::real_time(ABOVE_ORDINARY)),
        }
    }

    /// The scheduling for processes that this one kills: just below its own, and at least real-time. So they take precedence over all
    /// processes that this process takes precedence over, and end soon.
    pub(crate) fn for_killed() -> Self {
        let own = Self::current().ok().filter(|own| own.is_real_time()).map_or(0, |own| own.priority);
        Self::real_time((own - 1).max(1))
    }

    /// Sets it for a thread; 0 is the calling one.
    ///
    /// # Errors
    ///
    /// `EPERM` if this process lacks the right; `ESRCH` if there is no such thread.
    pub(crate) fn set_for(self, thread: Pid) -> io::Result<()> {
        // This is async-signal-safe, because it is only the system call.
        system::set_scheduler(thread, self.policy, self.priority)
    }

    /// Sets it for this thread, as it was when [`current`](Self::current) read it.
    ///
    /// # Errors
    ///
    /// `EPERM` if this process lacks the right.
    pub(crate) fn restore(self) -> io::Result<()> {
        self.set_for(Pid::from_raw(0))?;
        // This is async-signal-safe, because it is only the system call.
        Ok(prctl::set_timerslack(self.timer_slack)?)
    }
}
