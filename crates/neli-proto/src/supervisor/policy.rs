//! The policy for a job.

use core::time::Duration;

use crate::health::HealthPolicy;
use crate::restart::RestartPolicy;

/// The policy for a job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// The delay from winning the lead to the first run.
    pub settle: Duration,
    /// The policy for stopping it.
    pub stop: StopPolicy,
    /// Whether and when it is run again.
    pub restart: RestartPolicy,
    /// The action after a loss of the lead.
    pub on_loss: OnLoss,
    /// The policy for its health checks, if there are any.
    pub health: Option<HealthPolicy>,
}

/// `--on-loss`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OnLoss {
    /// The candidate exits.
    Exit,
    /// The candidate stands by, and runs the job again when it leads.
    Standby,
}

/// The policy for stopping a job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StopPolicy {
    /// The number of the signal that asks the job to stop; `None` lets its run finish.
    pub signal: Option<i32>,
    /// The time from that signal, or from the stop, to SIGKILL; zero means SIGKILL at once, without a stop signal.
    pub timeout: Duration,
}
