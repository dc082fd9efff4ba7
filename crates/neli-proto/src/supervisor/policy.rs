//! How a job is treated.

use core::time::Duration;

use crate::health::HealthPolicy;
use crate::restart::RestartPolicy;

/// How the job is treated.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// How long after the lead was won its first run starts.
    pub settle: Duration,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Whether it is run again.
    pub restart: RestartPolicy,
    /// What follows the loss of the lead.
    pub on_loss: OnLoss,
    /// How its health is looked after, if it is.
    pub health: Option<HealthPolicy>,
}

/// `--on-loss`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OnLoss {
    /// It goes for good.
    Exit,
    /// It stands by, and runs the job again when it is elected.
    Standby,
}

/// How the job is stopped.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StopPolicy {
    /// The number of the signal that asks the job to stop.
    pub signal: i32,
    /// From that signal to SIGKILL; zero is SIGKILL with no signal before it.
    pub timeout: Duration,
}
