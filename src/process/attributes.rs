//! The attributes that `neli-run` or the guard changes for itself, and that the job must not have; and the job's mark.

use std::io;

use crate::process::limits;
use crate::process::mark::Mark;
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
    /// The mark, which its parent does not have.
    pub(crate) mark: Option<Mark>,
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
        // Without it only the walk through the tree finds the processes.
        let _ = self.mark.map(Mark::put_on_this_process);
        self.scheduling.map_or(Ok(()), Scheduling::restore)
    }
}
