//! How much a line of the log matters.

/// How much it matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// For finding faults of `neli-run`'s: with `-v`.
    Debug,
    /// The ordinary course.
    Info,
    /// Somebody should know.
    Warning,
    /// Somebody should act.
    Error,
}
