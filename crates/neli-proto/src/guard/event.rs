//! The events that a guard handles.

use super::killing::KillRound;
use super::message::{CommandKind, Order, Step};
use crate::command::CommandEnd;
use crate::time::Time;

/// Events of the guard's process.
#[derive(Debug)]
pub enum Event {
    /// Every order that had arrived by now was read.
    AllRead,
    /// A command has ended and was waited for.
    CommandEnded {
        /// The kind of command.
        kind: CommandKind,
        /// How it ended.
        end: CommandEnd,
    },
    /// The job has executed.
    Executed,
    /// [`Action::Kill`](super::Action::Kill) was performed.
    Killed(KillRound),
    /// [`Action::Learn`](super::Action::Learn) was performed.
    Learnt {
        /// When it began.
        begun: Time,
    },
    /// The main process has ended and was waited for; [`Executed`](Self::Executed) or [`NotStarted`](Self::NotStarted) comes before.
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
    /// The job could not be started. There is a child process, which ends, unless the lease had ended or the fork failed.
    NotStarted {
        /// The error's number.
        errno: i32,
        /// The step that failed.
        at: Step,
    },
    /// An order was read.
    Ordered(Order),
    /// The supervisor's end of the socket is closed, and everything that it had sent was read.
    SocketClosed,
    /// The supervisor is dead: its pidfd is readable, or this process has another parent. Some of its orders may be unread.
    SupervisorDied,
    /// Every child that had ended was waited for; the value shows what is left of the job. This event must come each time the guard wakes
    /// up.
    Waited(Remains),
}

/// The remaining processes of a job, after every child that had ended was waited for.
#[derive(Debug)]
pub enum Remains {
    /// Children that have not ended.
    Children,
    /// There are no children, but a process of the job that does not descend from the guard: another program has put it into the job's
    /// control group, or its parent has ended in another PID namespace, whose first process is its parent now.
    Elsewhere,
    /// No process.
    Nothing(TreeGone),
}

impl Remains {
    /// `has_children`: waitid(2) found a child that has not ended, and it is not shown that [all have](super::has_tree_ended). If a subreaper
    /// with one thread has none, no descendant is left.
    /// `is_elsewhere`: whether a process of the job is left that does not descend from the guard; it is called only if there are no children.
    pub fn seen(has_children: bool, is_elsewhere: impl FnOnce() -> bool) -> Self {
        if has_children {
            Self::Children
        } else if is_elsewhere() {
            Self::Elsewhere
        } else {
            Self::Nothing(TreeGone(()))
        }
    }
}

/// The proof that no process of a job is left. Only [`Remains::seen`] creates it, and the end of a run consumes it. It can't be copied.
#[derive(Debug)]
pub struct TreeGone(());
