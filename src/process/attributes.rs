//! The attributes that the guard changes for itself, and that its job must not have.

use std::io;

use crate::process::oom_score::OomScore;
use crate::process::scheduling::Scheduling;

/// What a child gets back of its parent's earlier attributes; `None` leaves the parent's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlierAttributes {
    pub(crate) scheduling: Option<Scheduling>,
    /// How readily the kernel kills it when memory runs out.
    pub(crate) oom_score: Option<OomScore>,
}

impl EarlierAttributes {
    /// Gives them to this process. May be called between fork and exec: it allocates nothing.
    ///
    /// # Errors
    ///
    /// The scheduling can't be changed. To give up a better one is always allowed.
    pub(crate) fn restore(self) -> io::Result<()> {
        if let Some(oom_score) = self.oom_score {
            oom_score.restore();
        }
        self.scheduling.map_or(Ok(()), Scheduling::restore)
    }
}
