//! What a machine goes through, and what may come of it.

use std::time::Duration;

/// Something that ends a run, a term or all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    End,
    FenceWarning,
    GuardDied,
    LeaseOver,
    Resigned,
    Revoked,
    SecondTerm,
    Stuck,
    Superseded,
    Term,
    Unhealthy,
}

/// What the job makes of the stop signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// It ends with [`OBEYING`].
    Obeys,
    /// It must be killed.
    Stubborn,
}

/// The status of a job that is told to stop, and does.
pub(crate) const OBEYING: u8 = 3;

/// What comes of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Exit(u8),
    StandsBy,
}

/// What a life may have besides.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {
    /// `--settle`.
    pub(crate) settle: Duration,
    /// `--overlap`.
    pub(crate) overlap: Option<Duration>,
}

/// What Kafka does with what is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kafka {
    /// It is read back at once.
    Answers,
    /// It reaches nobody.
    IsGone,
    /// It is appended, and read later.
    Lags,
}
