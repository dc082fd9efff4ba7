//! How a command ended that runs beside the job, or in its stead: a health command or a hook.

use alloc::boxed::Box;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// How long after a command's time was up the guard may take to tell its end. A command of which nothing is heard by then
/// has failed ([`CommandEnd::Unanswered`]), so that others follow.
pub(crate) const ANSWER_TAKES: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// The run that it belonged to was over, and it was killed with it: that says nothing of it.
    Abandoned,
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// It could not be started; what the system said.
    NotStarted(Box<str>),
    /// This signal killed it.
    Signaled(i32),
    /// Its time was up, and it was killed for it.
    TimedOut,
    /// Its time was up, and the guard has not told its end: nobody knows whether it ran.
    Unanswered,
}

impl CommandEnd {
    /// Whether it says that something is wrong.
    #[must_use]
    pub(crate) const fn is_failure(&self) -> bool {
        match self {
            Self::Abandoned | Self::Exited(0) => false,
            Self::Exited(_) | Self::NotStarted(_) | Self::Signaled(_) | Self::TimedOut | Self::Unanswered => true,
        }
    }
}
