//! The causes that end a run or a term, and the possible outcomes.

use std::time::Duration;

/// An event that ends a run, a term or the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    End,
    FenceWarning,
    GuardDied,
    LeaseOver,
    /// Kafka, R0 or this machine refuses the candidate.
    Refused,
    Resigned,
    Revoked,
    SecondTerm,
    Stuck,
    Superseded,
    Term,
    Unhealthy,
}

/// How the job reacts to the stop signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// It ends with [`OBEYING`].
    Obeys,
    /// It must be killed.
    Stubborn,
}

/// The exit status of a job that obeys the stop signal.
pub(crate) const OBEYING: u8 = 3;

/// The outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Exit(u8),
    StandsBy,
}

/// Time spans of a candidate's options.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {
    /// `--settle`.
    pub(crate) settle: Duration,
    /// `--overlap`.
    pub(crate) overlap: Option<Duration>,
}

/// How Kafka handles what is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kafka {
    /// A record is read back at once.
    Answers,
    /// A record is lost.
    IsGone,
    /// A record is appended, and read later.
    Lags,
}
