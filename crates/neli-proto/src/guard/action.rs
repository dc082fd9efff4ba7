//! The actions of a guard.

use core::time::Duration;

use super::killing::KillMethod;
use super::message::{Answer, CommandKind, Grant, Target};
use crate::time::Time;
use crate::window::Span;

/// An action that the guard's process must perform, in this order.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Send this answer to the supervisor as soon as its socket accepts it.
    Answer(Answer),
    /// Take the terminal back, and send [`Answer::Exited`] with the facts that only the process can see: whether the job had the
    /// foreground, and whether it has left processes.
    AnswerExited {
        /// The main process's status.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Check the tree, to distinguish the job's remaining processes from commands that run beside it. Without a check every remaining
        /// process counts, so that the killing of a tree is not delayed.
        look: bool,
    },
    /// Send [`Answer::LeftBehind`] if a check finds processes; they are about to be killed.
    AnswerLeftBehind {
        /// When the check must end.
        until: Time,
    },
    /// Send [`Answer::Started`] with a pidfd of the main process.
    AnswerStarted,
    /// Send [`Answer::Stuck`].
    AnswerStuck,
    /// The run is over: prepare for the next one.
    BeginAnew,
    /// Exit, because nothing is left to do. No action follows.
    End,
    /// Give the job's group the terminal's foreground, if the group of `neli-run` has it.
    HandOn,
    /// Send SIGKILL to the remaining processes of the tree, by these methods in this order; [`Event::Killed`](super::Event::Killed) must
    /// follow.
    Kill(&'static [KillMethod]),
    /// Send SIGKILL to a command's group.
    KillCommand(CommandKind),
    /// Send SIGKILL to the main process's group: one system call, which for most jobs reaches the whole tree.
    KillMainGroup,
    /// Find out which processes belong to the tree; [`Event::Learnt`](super::Event::Learnt) must follow.
    Learn {
        /// When the check must end.
        until: Time,
    },
    /// Become the program that releases for the dead supervisor. No action follows.
    Release {
        /// The grant whose term is released.
        grant: Grant,
        /// How long after the lease's end a process of the job may have been alive.
        late: Option<Duration>,
    },
    /// Remove the job's control group; a living supervisor does this itself.
    RemoveCgroup,
    /// Show this deadline in the lease descriptor of this term from now on, if there is one.
    ShowDeadline {
        /// The term.
        term: i64,
        /// The deadline.
        until: Time,
    },
    /// Show in the lease descriptor that the term is over.
    ShowEnd,
    /// Send a signal to the main process or its group.
    Signal {
        /// Its number.
        signal: i32,
        /// The receiver.
        to: Target,
    },
    /// Send a signal and SIGCONT to each remaining process; [`Answer::LeftBehind`] names them to the supervisor.
    SignalRest {
        /// The signal's number.
        signal: i32,
        /// Leave out the main process's group, which got the signal before: many programs end at once if they get it twice.
        but_group: bool,
        /// When the search for them must end.
        until: Time,
    },
    /// Start the job. [`Event::Executed`](super::Event::Executed) or [`Event::NotStarted`](super::Event::NotStarted)
    /// must follow, now or later.
    Start {
        /// The term.
        term: i64,
        /// It may execute only before this time.
        until: Time,
        /// `NELI_ATTEMPT`.
        attempt: u32,
        /// The window that the run is for, if any.
        window: Option<Span>,
    },
    /// Start a command. If that fails, [`Event::CommandEnded`](super::Event::CommandEnded) reports it.
    StartCommand(CommandKind),
    /// Take the terminal's foreground back from the job, and restore the terminal's modes.
    TakeBack,
}
