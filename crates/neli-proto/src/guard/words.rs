//! What a guard is told, and what it wants done.

use super::killing::Means;
use super::message::{Answer, CommandKind, Grant, Order, Step, Target};
use crate::command::CommandEnd;
use crate::time::Time;

/// Things that happened.
#[derive(Debug)]
pub enum Event {
    /// All orders that had come by now were read.
    AllRead,
    /// A command was waited for.
    CommandEnded {
        /// Which.
        kind: CommandKind,
        /// How it ended.
        end: CommandEnd,
    },
    /// The job has executed.
    Executed,
    /// What [`Action::Kill`] asked for was done.
    Killed {
        /// Whether no read has failed in a look, if there was one.
        has_seen_all: bool,
    },
    /// What [`Action::Learn`] asked for was done.
    Learnt {
        /// When it was begun.
        begun: Time,
    },
    /// The main process has ended, and was waited for; [`Executed`](Self::Executed) or [`NotStarted`](Self::NotStarted) comes
    /// before.
    MainEnded {
        /// Its status.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// The main process was stopped.
    MainStopped {
        /// The signal that stopped it.
        signal: i32,
    },
    /// The job could not be started. Unless the lease or the fork failed there is a child, which ends.
    NotStarted {
        /// The error's number.
        errno: i32,
        /// What failed.
        at: Step,
    },
    /// An order was read.
    Ordered(Order),
    /// The supervisor's end of the socket is closed, and all that it had sent was read.
    SocketClosed,
    /// The supervisor is dead: its pidfd says so, or this process has got another parent. What it had sent may be unread.
    SupervisorDied,
    /// Every child that had ended was waited for; this is what is left of the job. To be told whenever the guard was woken.
    Waited(Remains),
}

/// What is left of a job, as the guard's process knows once it has waited for every child that had ended.
#[derive(Debug)]
pub enum Remains {
    /// Children that have not ended.
    Children,
    /// No children; but the job's control group holds a process that somebody else has put there.
    ControlGroup,
    /// Nothing.
    Nothing(NothingLeft),
}

impl Remains {
    /// `has_children`: waitid(2) found a child that has not ended; to a subreaper of one thread, none means that nothing is left
    /// that descends from it. `is_populated`: asked only where there are no children, whether the control group holds anybody.
    pub fn seen(has_children: bool, is_populated: impl FnOnce() -> bool) -> Self {
        if has_children {
            Self::Children
        } else if is_populated() {
            Self::ControlGroup
        } else {
            Self::Nothing(NothingLeft(()))
        }
    }
}

/// The proof that nothing is left of a job: [`Remains::seen`] alone makes it, and a run's end takes it. It can't be copied.
#[derive(Debug)]
pub struct NothingLeft(());

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
    /// SIGKILL to what is left of the tree, by these means in this order; [`Event::Killed`] is to follow.
    Kill(&'static [Means]),
    /// SIGKILL to a command's group.
    KillCommand(CommandKind),
    /// SIGKILL to the main process's group: one call, and for most jobs it is all of the tree.
    KillMainGroup,
    /// Take note of what belongs to the tree; [`Event::Learnt`] is to follow.
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
    /// Start the job. [`Event::Executed`] or [`Event::NotStarted`] is to follow, now or later.
    Start {
        /// The term.
        term: i64,
        /// It executes only before then.
        until: Time,
        /// `NELI_ATTEMPT`.
        attempt: u64,
    },
    /// Start a command; if that fails, [`Event::CommandEnded`] says so.
    StartCommand(CommandKind),
    /// Take the terminal's foreground back from the job, and give the terminal its modes of before.
    TakeBack,
}
