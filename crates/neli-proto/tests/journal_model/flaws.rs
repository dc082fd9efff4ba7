//! Deliberately wrong rules in the parts around the real objects: the processes, their communication, and the world.

use std::cell::Cell;

/// A broken rule of the guard's process, of the communication with the supervisor, or of the world's assumptions.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum WorldFlaw {
    /// Assumption 3: guard and supervisor are stopped at the same time.
    BothAsleep,
    /// The guard does not wait for a command of the job when the job has ended (R6).
    CommandForgotten,
    /// The guard does not look for processes of the job that have another parent (R6).
    ElsewhereForgotten,
    /// The guard's `seen` still advances when its `term` is no longer current (R6).
    GuardSeesTooMuch,
    /// `--embedded`: a new broker waits for the candidates of the one before it, and not for their guards.
    NewBrokerForgetsGuards,
    /// `--embedded`: a new broker waits for nobody.
    NewBrokerWaitsForNobody,
    /// The end of file on the guard's socket counts as the guard's death before the guard was waited for. Then the processes that it
    /// leaves can't be found yet (R6).
    ReleaseAtGuardsEnd,
    /// R4: the supervisor checks the lease and then starts the job itself.
    SupervisorSpawns,
    /// The guard is not watched, so the processes that it does not kill stay alive.
    GuardUnwatched,
    /// Assumption 4: records of any age are deleted.
    YoungRecordsDeleted,
}

std::thread_local! {
    static FLAWED: Cell<Option<WorldFlaw>> = const { Cell::new(None) };
}

/// Breaks this rule, or none, on this thread from now on.
pub(crate) fn break_only(rule: Option<WorldFlaw>) {
    FLAWED.set(rule);
}

/// Whether this rule is broken.
pub(crate) fn is_flawed(flaw: WorldFlaw) -> bool {
    FLAWED.get() == Some(flaw)
}
