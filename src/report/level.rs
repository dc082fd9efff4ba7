//! The level of a line of the log.

/// The level of a line of the log.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// For finding faults of `neli-run`: with `-v`.
    Debug,
    /// Normal operation.
    Info,
    /// A user should know it.
    Warning,
    /// A user should act.
    Error,
}
