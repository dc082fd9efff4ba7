//! The environment variables that describe a run to the job, to a command or to a hook.

/// The term, which is the fencing token.
pub(crate) const EPOCH: &str = "NELI_EPOCH";
/// The number of the run in its term.
pub(crate) const ATTEMPT: &str = "NELI_ATTEMPT";
/// The number of the lease descriptor; only the job has it.
pub(crate) const LEASE_FD: &str = "NELI_LEASE_FD";
/// The event of a command or a hook; the job does not have it, and neither the next variable.
pub(crate) const EVENT: &str = "NELI_EVENT";
/// The reason of the event.
pub(crate) const WHY: &str = "NELI_WHY";

/// The key of the run; with a window, the beginning of the window.
pub(crate) const ONCE: &str = "NELI_ONCE";
/// The beginning of the run's window, if it has one.
pub(crate) const WINDOW_START: &str = "NELI_WINDOW_START";
/// The beginning of the next window.
pub(crate) const WINDOW_END: &str = "NELI_WINDOW_END";

/// Variables that are set for each run: those of an outer `neli-run` are not passed on.
pub(crate) const ALL: [&str; 7] = [EPOCH, ATTEMPT, LEASE_FD, EVENT, WHY, WINDOW_START, WINDOW_END];
