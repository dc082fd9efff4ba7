//! The attributes that `neli-run` or the guard changes for itself, and that the job must not have: scheduling, limit of open files, score at a
//! lack of memory; and the one that only the job has: its mark.
//!
//! A guard that waits for a processor is late. So it uses real-time scheduling if that is allowed, with a higher priority than the job.
//! If the job itself is real-time (`chrt -f 10 neli-run`), this is required: a job that uses all processors could otherwise never be
//! killed. Then this process has a higher priority too, or the lease would not be renewed.

use std::ffi::{c_int, c_ulong};
use std::{fs, io};

use anyhow::{Result, bail, ensure};
use neli_kafka::random_bytes;
use nix::fcntl::{self, OFlag};
use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{self, Resource};
use nix::sys::stat::Mode;
use nix::unistd::{self, Pid};
use serde::{Deserialize, Serialize};

use crate::process::{limits, system};

/// The earlier values of a parent's attributes, for a child; `None` leaves the parent's present value.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct EarlierAttributes {
    /// The scheduling.
    pub scheduling: Option<Scheduling>,
    /// The soft limit of open files.
    pub open_files: Option<u64>,
    /// The score by which the kernel chooses processes to kill at a lack of memory.
    pub oom_score: Option<[u8; OOM_SCORE_LENGTH]>,
    /// The mark, which its parent does not have.
    pub mark: Option<Mark>,
}

impl EarlierAttributes {
    /// Sets them for this process. May be called between fork and exec: it allocates nothing.
    ///
    /// # Errors
    ///
    /// The scheduling can't be changed. Lowering it is always allowed.
    pub(crate) fn restore(self) -> io::Result<()> {
        // If there is no /proc any more, the score stays unchanged, and the process continues.
        if let Some(score) = self.oom_score
            && let Ok(file) = fcntl::open(OOM_SCORE, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())
        {
            let _ = unistd::write(file, &score);
        }
        // A lower limit is always allowed.
        let _ = self.open_files.map(limits::lower_open_files);
        // Without it only the walk through the tree finds the processes.
        let _ = self.mark.map(Mark::put_on_this_process);
        self.scheduling.map_or(Ok(()), Scheduling::restore)
    }
}

/// The file with the score by which the kernel chooses processes to kill at a lack of memory.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// The length of `-1000` with a newline.
const OOM_SCORE_LENGTH: usize = 6;

/// Exempts this process and its later children from being killed at a lack of memory, if that is allowed (`CAP_SYS_RESOURCE`). Returns the
/// earlier score, for children that must not be exempt: as the kernel shows it, and then spaces, which it ignores.
pub(crate) fn exempt_from_lack_of_memory() -> Option<[u8; OOM_SCORE_LENGTH]> {
    let shown = fs::read(OOM_SCORE).ok()?;
    let mut earlier = [b' '; OOM_SCORE_LENGTH];
    earlier.get_mut(..shown.len())?.copy_from_slice(&shown);
    fs::write(OOM_SCORE, "-1000").is_ok().then_some(earlier)
}

/// The highest mark: 32-bit kernels take the highest numbers for no limit.
const HIGHEST: u64 = usize::MAX as u64 / 2;

/// Below this limit there is no mark, because another process might have the same number.
const LEAST: u64 = 1 << 28;

/// The mark of a job's processes: a number that each of them inherits from the one that has forked it, and that no other process has.
///
/// The tree loses a process whose parent ends in another PID namespace (`nsenter --pid`, `podman exec`): the kernel gives it to the first
/// process of that namespace, and not to the guard. The mark still shows whose it is.
///
/// It is the hard limit of file locks (`RLIMIT_LOCKS`), which Linux has not enforced since 2.4.25. Unlike a variable of the environment it is
/// kept at each exec, no daemon gets it from a client that asks for a program's start, it can be read of any process, and without privileges
/// it can only be lowered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mark(pub(crate) u64);

impl Mark {
    /// A mark that no process has. `None` if the limit is too low, or there is no randomness.
    pub fn new() -> Option<Self> {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).ok()?;
        let range = limit.min(HIGHEST) / 2;
        let random = u64::from_le_bytes(random_bytes().ok()?);
        (range >= LEAST).then(|| Self(range + random % range))
    }

    /// Gives it to this process, and so to all processes that it starts from now on. May be called between fork and exec: it makes one
    /// system call.
    ///
    /// # Errors
    ///
    /// A sandbox refuses it; a lower limit is always allowed.
    pub(crate) fn put_on_this_process(self) -> io::Result<()> {
        Ok(resource::setrlimit(Resource::RLIMIT_LOCKS, self.0, self.0)?)
    }
}

/// The beginning of both messages.
const REAL_TIME: &str = "neli-run was started in real time (chrt), and its guard can't get a higher priority than the job, which could then run on after the lease's end";

/// Raises the priority of this process above its job's if the job is real-time. Returns whether the guard uses real-time scheduling, and that of job
/// and hooks, if this process has raised its own. Must be called before other threads exist, so that they inherit the priority.
///
/// # Errors
///
/// The job would be real-time, and the guard can't have a higher priority.
pub(crate) fn take_priority() -> Result<(bool, Option<Scheduling>)> {
    let Ok(own) = Scheduling::current() else { return Ok((false, None)) };
    let Some(above) = own.next_higher() else {
        bail!("{REAL_TIME}: no priority above it is left for the guard; use 1 to 98 (chrt -f 98)");
    };
    if !own.is_real_time() {
        let is_allowed = is_running_unlimited() && above.set_for(Pid::from_raw(0)).is_ok();
        if is_allowed {
            // A return from real time is always allowed.
            own.restore()?;
        }
        return Ok((is_allowed, None));
    }
    let priority = above.priority;
    ensure!(
        above.set_for(Pid::from_raw(0)).is_ok(),
        "{REAL_TIME}: priority {priority} is not allowed; it needs ulimit -r {priority} (LimitRTPRIO=), or CAP_SYS_NICE"
    );
    Ok((true, Some(own)))
}

/// Whether a real-time process may run for an unlimited time without a pause.
pub(crate) fn is_running_unlimited() -> bool {
    resource::getrlimit(Resource::RLIMIT_RTTIME).is_ok_and(|(_, limit)| limit == libc::RLIM_INFINITY)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_marks_differ_and_are_limits_that_this_process_may_set() {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).unwrap();
        let [first, second] = [(); 2].map(|()| Mark::new().unwrap());
        assert_ne!(first, second);
        assert!([first, second].iter().all(|mark| mark.0 < limit));
    }
}
