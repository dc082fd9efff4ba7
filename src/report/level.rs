//! The level of a line in the log.

/// The level of a line in the log.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// For finding faults of `neli-run`; shown with `-v`.
    Debug,
    /// Normal operation.
    Info,
    /// A user should know it.
    Warning,
    /// A user should act.
    Error,
}
