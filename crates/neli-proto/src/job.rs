//! The end of a job's process, and the terminal that it shares with `neli-run`: for the modules that run the job, judge its runs, or count them.

use alloc::boxed::Box;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::JobState;
use crate::time::Time;

/// The end of a process.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// This signal killed it.
    Signaled(i32),
}

impl JobStatus {
    /// The status that a shell would show: 128 + n for signal n.
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
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
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

// ---- a command that runs beside the job or without one: a health command or a hook ---------------------------------

/// How long after a command's time limit the guard's report of its end may arrive. After that the command counts as failed
/// ([`CommandEnd::Unanswered`]), so that the next one can run.
pub(crate) const ANSWER_TAKES: Duration = Duration::from_secs(1);

/// The end of a command.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// Its run of the job was over, and it was killed with the job. This shows nothing about the command.
    Abandoned,
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// It was not started, because the lease was about to end. This shows nothing about the command.
    NoTime,
    /// It could not be started; this is the system's error.
    NotStarted(Box<str>),
    /// It was killed for a newer one, because no more of its kind may run at once.
    Replaced,
    /// This signal killed it.
    Signaled(i32),
    /// It took longer than its time limit, and was killed.
    TimedOut,
    /// Its time limit is over, and the guard has not reported its end. It is unknown whether it ran.
    Unanswered,
}

impl CommandEnd {
    /// Whether this end of a hook is a failure.
    pub(crate) const fn is_failure(&self) -> bool {
        !matches!(self, Self::Abandoned | Self::Exited(0))
    }
}

/// The hooks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Hook {
    /// `--on-exit`.
    Exit,
    /// `--on-fence`.
    Fence,
    /// `--on-lead`.
    Lead,
    /// `--on-standby`.
    Standby,
}

impl Hook {
    /// Its event, which is the value of `NELI_EVENT`.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Fence => "fence",
            Self::Lead => "lead",
            Self::Standby => "standby",
        }
    }
}
