//! The actions of a guard.

use super::killing::KillMethod;
use super::message::{Answer, CommandKind, Grant, Target};
use crate::time::Time;
use crate::window::Span;

/// What the guard's process has to do, in this order.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Send this answer to the supervisor as soon as its socket takes it.
    Answer(Answer),
    /// Take the terminal back, and send [`Answer::Exited`] with what only the process can see: whether the job had
    /// the foreground, and whether it has left processes.
    AnswerExited {
        /// The main process's status.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Look at the tree, to distinguish the job's leftovers from commands beside it. Without a look every
        /// remaining process counts, so that the killing of a tree is not delayed.
        look: bool,
    },
    /// Send [`Answer::LeftBehind`] if a look finds processes; they are about to be killed.
    AnswerLeftBehind {
        /// When the look must be over.
        until: Time,
    },
    /// Send [`Answer::Started`] with a pidfd of the main process.
    AnswerStarted,
    /// Send [`Answer::Stuck`].
    AnswerStuck,
    /// The run is over: prepare for the next one.
    BeginAnew,
    /// Exit: nothing is left to do. No action follows.
    End,
    /// Give the job's group the terminal's foreground, if `neli-run`'s has it.
    HandOn,
    /// SIGKILL to what is left of the tree, by these methods in this order; [`Event::Killed`](super::Event::Killed)
    /// must follow.
    Kill(&'static [KillMethod]),
    /// SIGKILL to a command's group.
    KillCommand(CommandKind),
    /// SIGKILL to the main process's group: one system call, which for most jobs reaches the whole tree.
    KillMainGroup,
    /// Learn what belongs to the tree; [`Event::Learnt`](super::Event::Learnt) must follow.
    Learn {
        /// When the look must be over.
        until: Time,
    },
    /// Become the program that releases for the dead supervisor. No action follows.
    Release(Grant),
    /// Remove the job's control group; a living supervisor does this itself.
    RemoveCgroup,
    /// The lease descriptor of this term, if there is one, shows this deadline from now on.
    ShowDeadline {
        /// The term.
        term: i64,
        /// The deadline.
        until: Time,
    },
    /// The lease descriptor shows from now on that the term is over.
    ShowEnd,
    /// A signal to the main process or its group.
    Signal {
        /// Its number.
        signal: i32,
        /// The receiver.
        to: Target,
    },
    /// A signal and SIGCONT to each remaining process; [`Answer::LeftBehind`] names them to the supervisor.
    SignalRest {
        /// The signal's number.
        signal: i32,
        /// Leave out the main process's group, which was asked before: many programs end at once if they are asked
        /// twice.
        but_group: bool,
    },
    /// Start the job. [`Event::Executed`](super::Event::Executed) or [`Event::NotStarted`](super::Event::NotStarted)
    /// must follow, now or later.
    Start {
        /// The term.
        term: i64,
        /// It may execute only before this time.
        until: Time,
        /// `NELI_ATTEMPT`.
        attempt: u64,
        /// The window that the run is for, if any.
        window: Option<Span>,
    },
    /// Start a command; if that fails, [`Event::CommandEnded`](super::Event::CommandEnded) reports it.
    StartCommand(CommandKind),
    /// Take the terminal's foreground back from the job, and restore the terminal's modes.
    TakeBack,
}
