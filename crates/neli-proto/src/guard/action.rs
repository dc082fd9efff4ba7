//! What a guard wants done.

use super::killing::Means;
use super::message::{Answer, CommandKind, Grant, Target};
use crate::time::Time;
use crate::window::Span;

/// Things to do, in this order.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Tell the supervisor, as soon as it takes it.
    Answer(Answer),
    /// Take the terminal back, and tell the supervisor [`Answer::Exited`], with what only the process can see: whether the job had
    /// the foreground, and whether it has left processes.
    AnswerExited {
        /// The main process's status.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Look at the tree, to tell what the job left from commands that run beside it. Else whoever is left counts: a look is
        /// not to hold up a tree's killing.
        look: bool,
    },
    /// Tell the supervisor [`Answer::LeftBehind`], if a look finds processes: they are about to be killed.
    AnswerLeftBehind {
        /// The look is over by then.
        until: Time,
    },
    /// Tell the supervisor [`Answer::Started`], with a pidfd of the main process.
    AnswerStarted,
    /// Tell the supervisor [`Answer::Stuck`].
    AnswerStuck,
    /// The run is over: get ready for the next one.
    BeginAnew,
    /// End: nothing is left to be done. No action follows.
    End,
    /// Give the job's group the terminal's foreground, if `neli-run`'s has it.
    HandOn,
    /// SIGKILL to what is left of the tree, by these means in this order; [`Event::Killed`](super::Event::Killed) is to follow.
    Kill(&'static [Means]),
    /// SIGKILL to a command's group.
    KillCommand(CommandKind),
    /// SIGKILL to the main process's group: one call, and for most jobs it is all of the tree.
    KillMainGroup,
    /// Take note of what belongs to the tree; [`Event::Learnt`](super::Event::Learnt) is to follow.
    Learn {
        /// The look is over by then.
        until: Time,
    },
    /// Become the program that releases for the dead. No action follows.
    Release(Grant),
    /// Remove the job's control group, which is the supervisor's while that lives.
    RemoveCgroup,
    /// The lease descriptor of this term says from now on that the job may run until then, if there is one.
    ShowDeadline {
        /// The term.
        term: i64,
        /// The deadline.
        until: Time,
    },
    /// The lease descriptor says from now on that the term is over.
    ShowEnd,
    /// A signal to the main process or its group.
    Signal {
        /// Its number.
        signal: i32,
        /// To whom.
        to: Target,
    },
    /// A signal and SIGCONT to each process that is left; the supervisor is told [`Answer::LeftBehind`] of those.
    SignalRest {
        /// The signal's number.
        signal: i32,
        /// But to none of the main process's group, which was asked before: many a program ends at once when it is asked twice.
        but_group: bool,
    },
    /// Start the job. [`Event::Executed`](super::Event::Executed) or [`Event::NotStarted`](super::Event::NotStarted) is to follow, now or later.
    Start {
        /// The term.
        term: i64,
        /// It executes only before then.
        until: Time,
        /// `NELI_ATTEMPT`.
        attempt: u64,
        /// The window that it is for, where it is for one.
        window: Option<Span>,
    },
    /// Start a command; if that fails, [`Event::CommandEnded`](super::Event::CommandEnded) says so.
    StartCommand(CommandKind),
    /// Take the terminal's foreground back from the job, and give the terminal its modes of before.
    TakeBack,
}
