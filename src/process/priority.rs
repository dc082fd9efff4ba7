//! With which priority this process runs beside its job, and whether its guard may go before everything else.
//!
//! A guard that waits for a processor is late. So it schedules in real time where it may, above the job; and where the job is
//! real-time itself (`chrt -f 10 neli-run`), it must: a job that keeps all processors would otherwise never be killed. Then
//! this process is above it, too, or the lease would not be kept.

use std::thread;

use nix::libc;
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;

use crate::process::scheduling::Scheduling;

/// What was found, and done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Priority {
    /// Whether the guard schedules in real time.
    pub guard_is_real_time: bool,
    /// What the job and the hooks are to have, where this process has raised its own.
    pub of_job: Option<Scheduling>,
}

/// Why the guard can't have a higher priority than a real-time job. Each is reported in one line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PriorityError {
    /// There is no priority above the job's.
    #[error("{REAL_TIME}: no priority above it is left for the guard; use 1 to 98 (chrt -f \
        98)", REAL_TIME = REAL_TIME)]
    NoneAbove,
    /// There is one, and it is not allowed.
    #[error(
        "{REAL_TIME}: priority {priority} is not allowed; it needs ulimit -r {priority} (LimitRTPRIO=), or CAP_SYS_NICE",
        REAL_TIME = REAL_TIME
    )]
    NotAllowed {
        /// That one.
        priority: i32,
    },
}

/// How both begin.
const REAL_TIME: &str = "neli-run was started in real time (chrt), and its guard can't get a higher priority than \
    the job, which could then run on after the lease's end";

/// Raises the priority of this process above that of its job where that is real-time, and finds out whether the guard may
/// schedule in real time. To be called before there is a thread that is to have the priority as well.
///
/// # Errors
///
/// Where the job would be real-time and the guard can't be above it.
pub fn take() -> Result<Priority, PriorityError> {
    let Ok(own) = Scheduling::current() else { return Ok(Priority { guard_is_real_time: false, of_job: None }) };
    let Some(above) = own.next_higher() else {
        return Err(PriorityError::NoneAbove);
    };
    if !own.is_real_time() {
        let is_allowed = is_running_unlimited() && on_another_thread(|| above.set_for(Pid::from_raw(0)).is_ok());
        return Ok(Priority { guard_is_real_time: is_allowed, of_job: None });
    }
    above.set_for(Pid::from_raw(0)).map_err(|_| PriorityError::NotAllowed { priority: above.priority })?;
    Ok(Priority { guard_is_real_time: true, of_job: Some(own) })
}

/// Whether there is no limit on how long a real-time process may run without waiting.
pub(crate) fn is_running_unlimited() -> bool {
    resource::getrlimit(Resource::RLIMIT_RTTIME).is_ok_and(|(_, limit)| limit == libc::RLIM_INFINITY)
}

/// Tries it on a thread of its own, whose scheduling ends with it.
fn on_another_thread(tried: impl FnOnce() -> bool + Send) -> bool {
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, tried).is_ok_and(|tried| tried.join().is_ok_and(|ok| ok))
    })
}
