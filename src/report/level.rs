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

impl Level {
    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Error => "error",
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}
