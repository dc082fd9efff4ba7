//! How the job is supervised.

use core::time::Duration;

use crate::health::HealthPolicy;
use crate::restart::RestartPolicy;

/// How the job is supervised.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// The delay from winning the lead to the first run.
    pub settle: Duration,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Whether and when it is run again.
    pub restart: RestartPolicy,
    /// What follows a loss of the lead.
    pub on_loss: OnLoss,
    /// How its health is checked, if it is.
    pub health: Option<HealthPolicy>,
}

/// `--on-loss`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OnLoss {
    /// The candidate exits.
    Exit,
    /// It stands by, and runs the job again once it is elected.
    Standby,
}

/// How the job is stopped.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StopPolicy {
    /// The number of the signal that asks the job to stop.
    pub signal: i32,
    /// The time from that signal to SIGKILL; zero is SIGKILL without a signal before it.
    pub timeout: Duration,
}
