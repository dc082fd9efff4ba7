//! The end of a job's process, and the terminal that it shares with `neli-run`: for the modules that run the job, judge its runs, or count them.

use crate::record::JobState;
use crate::time::Time;

/// The end of a process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum JobStatus {
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// This signal killed it.
    Signaled(i32),
}

impl JobStatus {
    /// The status that a shell would show: 128 + n for signal n.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX),
        }
    }
}

/// The process group that has the foreground of `neli-run`'s terminal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Foreground {
    /// Neither the job's nor that of `neli-run`, or there is no terminal.
    Elsewhere,
    /// The job's.
    Job,
    /// That of `neli-run`'s own process group.
    NeliRun,
}

/// The job's state for the beats.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JobReport {
    /// Its state.
    pub state: JobState,
    /// The main process.
    pub pid: Option<u32>,
    /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
    pub attempt: u32,
    /// When the job entered this state.
    pub since: Time,
}
