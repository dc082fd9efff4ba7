//! The priority of this process above its job, and whether its guard may have real-time scheduling.
//!
//! A guard that waits for a processor is late. So it uses real-time scheduling if that is allowed, with a higher priority than the job.
//! If the job itself is real-time (`chrt -f 10 neli-run`), this is required: a job that uses all processors could otherwise never be
//! killed. Then this process has a higher priority too, or the lease would not be renewed.

use std::thread;

use nix::libc;
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;

use crate::process::scheduling::Scheduling;

/// The result of [`take`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Priority {
    /// Whether the guard uses real-time scheduling.
    pub guard_is_real_time: bool,
    /// The scheduling of job and hooks, if this process has raised its own.
    pub of_job: Option<Scheduling>,
}

/// Why the guard can't have a higher priority than a real-time job. Each is reported in one line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PriorityError {
    /// No priority is higher than the job's.
    #[error("{REAL_TIME}: no priority above it is left for the guard; use 1 to 98 (chrt -f 98)", REAL_TIME = REAL_TIME)]
    NoneAbove,
    /// There is a higher one, but it is not allowed.
    #[error(
        "{REAL_TIME}: priority {priority} is not allowed; it needs ulimit -r {priority} (LimitRTPRIO=), or CAP_SYS_NICE",
        REAL_TIME = REAL_TIME
    )]
    NotAllowed {
        /// The higher priority.
        priority: i32,
    },
}

/// The beginning of both messages.
const REAL_TIME: &str = "neli-run was started in real time (chrt), and its guard can't get a higher priority than the job, which could then run on after the lease's end";

/// Raises the priority of this process above its job's if the job is real-time, and finds out whether the guard may use real-time
/// scheduling. Must be called before other threads exist, so that they inherit the priority.
///
/// # Errors
///
/// The job would be real-time, and the guard can't have a higher priority.
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
