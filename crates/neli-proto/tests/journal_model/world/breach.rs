//! What a search looks for.

/// What must never happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Breach {
    /// A guard that had carried out all orders, and whose answers were heard, was taken for one that hangs.
    AnsweringGuardKilled,
    /// A key's run was begun although one had succeeded, and nothing excuses it.
    RanAgain,
    /// A candidate took a key for done that was forgotten before it began, and that had not succeeded since.
    KeptForgotten,
    /// A timeout stays due after it was handled.
    BusyLoop,
    /// A guard was started with a deadline before the one that had been answered in its place.
    DeadlineMovedBack,
    /// R6: a release was handed over while the job was alive.
    ReleasedAlive,
    /// R6: a guard released for the dead before it had read all that they had ordered.
    ReleasedUnread,
    /// A guard was started although its deadline had come.
    StartedLate,
    /// A process that was suspended had a job, or a term.
    SuspendedLeader,
    /// R6: a job was started under a term whose release had been handed over.
    RunAfterRelease,
    /// A job was started under a term that is not above all before.
    TokenFell,
    /// Two jobs are alive.
    TwoJobs,
    /// R0: a term was led before the topic was judged.
    Unjudged,
    /// A guard that was not started was taken for one that hangs.
    UnstartedKilled,
}
