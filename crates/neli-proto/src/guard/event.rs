//! What happens to a guard.

use super::message::{CommandKind, Order, Step};
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
    /// What [`Action::Kill`](super::Action::Kill) asked for was done.
    Killed {
        /// Whether no read has failed in a look, if there was one.
        has_seen_all: bool,
    },
    /// What [`Action::Learn`](super::Action::Learn) asked for was done.
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
    Nothing(TreeGone),
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
            Self::Nothing(TreeGone(()))
        }
    }
}

/// The proof that nothing is left of a job: [`Remains::seen`] alone makes it, and a run's end takes it. It can't be copied.
#[derive(Debug)]
pub struct TreeGone(());
