//! What happens to a job, to its guard and to `neli-run`, and what the candidate says of the lead.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::CommandEnd;
use crate::guard::Grant;
use crate::record::Why;
use crate::terminal::Foreground;
use crate::window::Span;

/// Things that happened to the job, to its guard and to `neli-run`. What the guard answers comes by
/// [`handle_answer`](super::Supervisor::handle_answer).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// What was asked for by [`Action::LookAtForeground`](super::Action::LookAtForeground).
    ForegroundSeen(Foreground),
    /// The guard is dead and has been waited for: the tree is ours now.
    GuardDied,
    /// The guard that was to be started could not be: there is none, and none follows.
    GuardNotStarted,
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
    /// Nothing is left of what the dead guard has left.
    OrphansGone,
    /// These are still there one lease after SIGKILL.
    OrphansStuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// The job's main process runs, and can't be watched: that is no run.
    StartedUnseen {
        /// Its process id.
        pid: u32,
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
    Extended(Grant),
    /// The candidate leads, and the job is not started before [`MayRun`](Self::MayRun). After a run that ended by itself the term is
    /// kept until [`StoppedFor`](Self::StoppedFor).
    Held(Grant),
    /// The candidate's right is over at once.
    Killed(Loss),
    /// The candidate leads.
    Led(Grant),
    /// A job that is held may run: for this window, where it is for one.
    MayRun(Option<Span>),
    /// The candidate stands down: the barrier.
    StoppedFor(Why),
    /// Another leads already: the barrier, in this time at most.
    StoppedWithin {
        /// Why.
        why: Why,
        /// For how long.
        within: Duration,
    },
    /// A job that is held is not run before another window.
    Waits,
}

/// Why a lead is lost at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loss {
    /// Our own word in the journal no longer counts: the history is gone.
    HistoryCut,
    /// The lease is over, by our own clock or by the guard's word.
    LeaseOver,
    /// Another's claim took effect.
    Superseded,
}

/// How a candidate goes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Departure {
    /// The election was ended.
    Ended,
    /// It was told to.
    Left,
    /// It has not led within `--wait`.
    WaitedEnough,
}
