//! The breaches that a search looks for.

/// A state that must never be reached.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Breach {
    /// A guard that had performed all orders, and whose answers were read, was killed as if it hung.
    AnsweringGuardKilled,
    /// A run of a key began although another one had succeeded, and no fault excuses it.
    RanAgain,
    /// A candidate took a key as done that was forgotten before the candidate began, and for which no run has succeeded since.
    KeptForgotten,
    /// A timeout stays due after it was handled.
    BusyLoop,
    /// A guard that was started late got an earlier deadline than that of the present lease, or a term that is not held.
    DeadlineMovedBack,
    /// R6: a term was released while its job was alive.
    ReleasedAlive,
    /// R6: a guard released a term after its supervisor's death before it had read all orders.
    ReleasedUnread,
    /// A guard that was started late was given a term whose deadline had passed.
    StartedLate,
    /// A suspended process had a job, or a term.
    SuspendedLeader,
    /// R6: a job was started in a term that had been released.
    RunAfterRelease,
    /// A job was started in a term that is not higher than all earlier ones.
    TokenFell,
    /// Two jobs are alive.
    TwoJobs,
    /// R0: a job ran in a topic that was not judged.
    Unjudged,
    /// A guard that was not started yet was killed as if it hung.
    UnstartedKilled,
}
