//! What happens to a job, to its guard and to `neli-run`, and what the candidate says of the lead.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::candidate::{Departure, Loss, Right};
use crate::command::CommandEnd;
use crate::record::{Offset, Why};
use crate::terminal::Foreground;
use crate::time::Time;

/// How a process ended.
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

/// Things that happened to the job, to its guard and to `neli-run`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The guard has answered the spawn, or a lease: its deadline is this.
    Answered {
        /// The deadline that it holds.
        until: Time,
    },
    /// The guard killed the tree at the deadline, or refused to start it so late; nothing of the term is left.
    Fenced {
        /// The term: a word about one that is over may come late.
        term: Offset,
        /// When nothing was left; `None` where no job was alive.
        gone_at: Option<Time>,
    },
    /// What was asked for by [`Action::LookAtForeground`].
    ForegroundSeen(Foreground),
    /// Nothing of the tree is left.
    Gone,
    /// The guard is dead and has been waited for: the tree is ours now.
    GuardDied,
    /// The health command has ended.
    HealthEnded {
        /// Which.
        id: u32,
        /// How.
        end: CommandEnd,
        /// The last line of its output; may be empty.
        last_line: Box<str>,
    },
    /// The job's main process was stopped by a signal.
    JobStopped {
        /// Its number.
        signal: i32,
        /// Whose the terminal's foreground is.
        foreground: Foreground,
        /// `neli-run` may stop: there is somebody to continue it.
        continuable: bool,
    },
    /// The tree's rest was killed at the stop timeout.
    KilledAtTimeout,
    /// The main process ended.
    MainExited {
        /// How.
        status: JobStatus,
        /// Whether it left children behind.
        left: bool,
        /// Whether it had the terminal's foreground.
        foreground: bool,
    },
    /// COMMAND could not be started.
    NotStarted {
        /// 126 or 127.
        code: u8,
        /// What the system said.
        error: String,
    },
    /// A signal to `neli-run` that is passed on.
    PassSignal {
        /// Its number.
        signal: i32,
        /// To the whole group, else to the main process.
        to_group: bool,
    },
    /// The job's main process runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// The job's main process runs, and can't be watched: that is no run.
    StartedUnseen {
        /// Its process id.
        pid: u32,
        /// Why it can't.
        error: String,
    },
    /// A signal told `neli-run` to stop.
    StopSignal {
        /// Its number.
        signal: i32,
    },
    /// These are still there one lease after SIGKILL.
    Stuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// TSTP to `neli-run`.
    SuspendSignal {
        /// There is somebody to continue it.
        continuable: bool,
    },
    /// HUP to `neli-run`, whose terminal is gone.
    TerminalGone,
    /// INT or QUIT, not by a process: the terminal sent it to all of `neli-run`'s process group.
    Typed {
        /// Its number.
        signal: i32,
    },
}

/// What the candidate says of the lead.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LeadEvent {
    /// The candidate leaves.
    Departed(Departure),
    /// The candidate's right was extended.
    Extended(Right),
    /// The candidate's right is over at once.
    Killed(Loss),
    /// The candidate leads.
    Led(Right),
    /// The candidate stands down: the barrier.
    StoppedFor(Why),
}
