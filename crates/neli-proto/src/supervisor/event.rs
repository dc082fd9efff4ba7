//! The events of a job, of its guard's process and of `neli-run`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::command::CommandEnd;
use crate::guard::SeenEnd;
use crate::terminal::Foreground;

/// An event of the job, of its guard's process or of `neli-run`. The guard's answers are handled by
/// [`handle_answer`](super::Supervisor::handle_answer).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The answer to [`Action::LookAtForeground`](super::Action::LookAtForeground).
    ForegroundSeen(Foreground),
    /// The guard is dead: the kernel says so, even if its tracer keeps this process from waiting for it. Its tree belongs to this process
    /// now.
    GuardDied,
    /// No guard could be started, and there will be none.
    GuardNotStarted,
    /// The health command has ended.
    HealthEnded {
        /// The run's number.
        id: u32,
        /// How it ended.
        end: CommandEnd,
        /// The last line of its output; may be empty.
        last_line: Box<str>,
    },
    /// The guard did not answer, was sent SIGKILL a lease ago, and has not ended.
    GuardStuck {
        /// The processes of its job that are alive, as far as they can be seen.
        pids: Vec<u32>,
        /// Whether all processes could be looked at.
        are_all: bool,
    },
    /// The job's main process was stopped by a signal.
    JobStopped {
        /// Its number.
        signal: i32,
        /// The group that has the terminal's foreground.
        foreground: Foreground,
        /// Whether `neli-run` may stop itself, because a parent can continue it.
        continuable: bool,
    },
    /// No process of the dead guard's tree is left.
    OrphansGone(SeenEnd),
    /// These processes are alive one lease after SIGKILL.
    OrphansStuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// `neli-run` received TSTP.
    SuspendSignal {
        /// Whether a parent can continue it.
        continuable: bool,
    },
    /// `neli-run` received HUP because its terminal is gone.
    TerminalGone,
    /// `neli-run` received INT or QUIT from the terminal, which sent it to the whole process group.
    Typed {
        /// Its number.
        signal: i32,
    },
}

/// Why a candidate exits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Departure {
    /// The election was ended.
    Ended,
    /// The candidate was told to stop.
    Left,
    /// The candidate has not led within `--wait`.
    WaitedEnough,
}
