//! The priority of this process above its job, and whether its guard may have real-time scheduling.
//!
//! A guard that waits for a processor is late. So it uses real-time scheduling if that is allowed, with a higher priority than the job.
//! If the job itself is real-time (`chrt -f 10 neli-run`), this is required: a job that uses all processors could otherwise never be
//! killed. Then this process has a higher priority too, or the lease would not be renewed.

use std::ffi::{c_int, c_ulong};
use std::{io, thread};

use anyhow::{Result, bail, ensure};
use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::process::system;

/// The result of [`take`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Priority {
    /// Whether the guard uses real-time scheduling.
    pub guard_is_real_time: bool,
    /// The scheduling of job and hooks, if this process has raised its own.
    pub of_job: Option<Scheduling>,
}

/// The beginning of both messages.
const REAL_TIME: &str = "neli-run was started in real time (chrt), and its guard can't get a higher priority than the job, which could then run on after the lease's end";

/// Raises the priority of this process above its job's if the job is real-time, and finds out whether the guard may use real-time
/// scheduling. Must be called before other threads exist, so that they inherit the priority.
///
/// # Errors
///
/// The job would be real-time, and the guard can't have a higher priority.
pub fn take() -> Result<Priority> {
    let Ok(own) = Scheduling::current() else { return Ok(Priority { guard_is_real_time: false, of_job: None }) };
    let Some(above) = own.next_higher() else {
        bail!("{REAL_TIME}: no priority above it is left for the guard; use 1 to 98 (chrt -f 98)");
    };
    if !own.is_real_time() {
        let is_allowed = is_running_unlimited() && on_another_thread(|| above.set_for(Pid::from_raw(0)).is_ok());
        return Ok(Priority { guard_is_real_time: is_allowed, of_job: None });
    }
    let priority = above.priority;
    ensure!(
        above.set_for(Pid::from_raw(0)).is_ok(),
        "{REAL_TIME}: priority {priority} is not allowed; it needs ulimit -r {priority} (LimitRTPRIO=), or CAP_SYS_NICE"
    );
    Ok(Priority { guard_is_real_time: true, of_job: Some(own) })
}

/// Whether a real-time process may run for an unlimited time without a pause.
pub(crate) fn is_running_unlimited() -> bool {
    resource::getrlimit(Resource::RLIMIT_RTTIME).is_ok_and(|(_, limit)| limit == libc::RLIM_INFINITY)
}

/// Tries something on a separate thread, whose scheduling ends with it.
fn on_another_thread(tried: impl FnOnce() -> bool + Send) -> bool {
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, tried).is_ok_and(|tried| tried.join().is_ok_and(|ok| ok))
    })
}

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
