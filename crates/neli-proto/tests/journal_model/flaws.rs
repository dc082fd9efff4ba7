//! Deliberately wrong rules around the real objects: of the processes that run them, of what lies between these, and of the world.

use std::cell::Cell;

/// A rule of the guard's process, of what lies between it and the supervisor, or of the world's assumptions.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum WorldFlaw {
    /// Assumption 3: guard and supervisor are asleep at once.
    BothAsleep,
    /// A command that runs beside the job is not waited for when the job has ended (R6).
    CommandForgotten,
    /// The guard's `seen` goes on when its `term` is no longer current (R6).
    GuardSeesTooMuch,
    /// Vacant: the new log of a broker that died is believed to be the first.
    NewLogTrusted,
    /// The guard's end of file is taken for its death, waited for: what it left is not yet there to be killed (R6).
    ReleaseAtGuardsEnd,
    /// R4: the supervisor checks the lease, and then spawns the job itself.
    SupervisorSpawns,
    /// Nobody watches the guard: what it does not kill lives on.
    GuardUnwatched,
    /// Assumption 4: records are deleted at any age.
    YoungRecordsDeleted,
}

std::thread_local! {
    static FLAWED: Cell<Option<WorldFlaw>> = const { Cell::new(None) };
}

/// Breaks one rule, or none, from here on, on this thread.
pub(crate) fn break_only(rule: Option<WorldFlaw>) {
    FLAWED.set(rule);
}

/// Whether this rule of the world is broken.
pub(crate) fn is_flawed(flaw: WorldFlaw) -> bool {
    FLAWED.get() == Some(flaw)
}
