//! The environment variables that describe a run to the job, to a command or to a hook.

/// The term, which is the fencing token.
pub(crate) const EPOCH: &str = "NELI_EPOCH";
/// The number of the run in its term.
pub(crate) const ATTEMPT: &str = "NELI_ATTEMPT";
/// The number of the lease descriptor; of the job alone.
pub(crate) const LEASE_FD: &str = "NELI_LEASE_FD";
/// What a command or a hook is run for; theirs alone, as the next.
pub(crate) const EVENT: &str = "NELI_EVENT";
/// Why that came about.
pub(crate) const WHY: &str = "NELI_WHY";

/// The key of the run: with a window, where that begins.
pub(crate) const ONCE: &str = "NELI_ONCE";
/// When the run's window begins, where it is for one.
pub(crate) const WINDOW_START: &str = "NELI_WINDOW_START";
/// When the next one does.
pub(crate) const WINDOW_END: &str = "NELI_WINDOW_END";

/// Variables that are set anew for each run: those of an outer `neli-run` are not passed on.
pub(crate) const ALL: [&str; 7] = [EPOCH, ATTEMPT, LEASE_FD, EVENT, WHY, WINDOW_START, WINDOW_END];
