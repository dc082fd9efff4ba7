//! The attributes that `neli-run` or the guard changes for itself, and that the job must not have.

use std::io;

use crate::process::limits;
use crate::process::oom_score::OomScore;
use crate::process::scheduling::Scheduling;

/// The earlier values of a parent's attributes, for a child; `None` leaves the parent's present value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlierAttributes {
    pub(crate) scheduling: Option<Scheduling>,
    /// The soft limit of open files.
    pub(crate) open_files: Option<u64>,
    /// The score by which the kernel chooses processes to kill at a lack of memory.
    pub(crate) oom_score: Option<OomScore>,
}

impl EarlierAttributes {
    /// Sets them for this process. May be called between fork and exec: it allocates nothing.
    ///
    /// # Errors
    ///
    /// The scheduling can't be changed. Lowering it is always allowed.
    pub(crate) fn restore(self) -> io::Result<()> {
        if let Some(oom_score) = self.oom_score {
            oom_score.restore();
        }
        // A lower limit is always allowed.
        let _ = self.open_files.map(limits::lower_open_files);
        self.scheduling.map_or(Ok(()), Scheduling::restore)
    }
}
