//! The messages between supervisor and guard: one JSON object in each packet, in both directions.
//!
//! A message that can't be parsed, or has no meaning when it arrives, is ignored: the deadline holds in any case.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::killing::{KillMethod, KillRound, SeenEnd};
use crate::job::{CommandEnd, JobStatus};
use crate::time::{Span, Time};

/// A message from the supervisor to the guard.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "order", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Order {
    /// Run a command beside the job, one of those in the guard's configuration, and kill it at `kill_at`. The answer must contain the run's
    /// number. A descriptor for its output is sent with it; without one its output goes to the guard's stderr.
    Command { kind: CommandKind, id: u32, kill_at: Time },
    /// Give the job's group the terminal's foreground, if `neli-run`'s group has it, and SIGCONT.
    HandOn,
    /// Send SIGKILL to the whole tree, now.
    Kill,
    /// The lease holds until the grant's end.
    Lease(Grant),
    /// The release is about to be handed to the producer. Nothing may be started or extended under this term any more (R6).
    Over { term: i64 },
    /// The term's release was delivered, or another candidate's claim took effect: nothing may be released for a dead supervisor any more.
    Released { term: i64 },
    /// Pass this signal on after the job has executed. It is ignored if the main process has ended.
    Signal { signal: i32, to: Target },
    /// The term is held until the grant's end. Start the job.
    Spawn {
        /// The grant.
        #[serde(flatten)]
        grant: Grant,
        /// Its number in this term, from 1 on.
        run: u64,
        /// `NELI_ATTEMPT`: 1, and 1 more for each failed run before it.
        attempt: u32,
        /// The window that the run is for, if any.
        #[serde(flatten)]
        window: Option<Span>,
    },
    /// Begin the barrier: send the stop signal and SIGCONT now, and SIGKILL to the whole tree later. If the order is repeated, the new time
    /// counts.
    Stop {
        /// The signal, for the job's group while the main process lives, otherwise for each remaining process that did not get it as part
        /// of the group; `None` sends no signal.
        signal: Option<i32>,
        /// When SIGKILL is sent.
        kill_at: Time,
    },
    /// Take the terminal's foreground back from the job, and restore the terminal's modes.
    TakeBack,
}

impl Order {
    /// The term that the guard must release if the supervisor dies, once it has got this order, and `owed` one before: a term that it was given, until an
    /// order reports that it was released.
    #[must_use]
    pub fn owed_after(&self, owed: Option<i64>) -> Option<i64> {
        match self {
            // With a lease alone before the first run too.
            Self::Lease(grant) | Self::Spawn { grant, .. } => Some(grant.term),
            Self::Released { term } => owed.filter(|owed| owed > term),
            Self::Command { .. }
            | Self::HandOn
            | Self::Kill
            | Self::Over { .. }
            | Self::Signal { .. }
            | Self::Stop { .. }
            | Self::TakeBack => owed,
        }
    }
}

/// The right to run a job: a term, and until when it is held.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Grant {
    /// The term.
    pub term: i64,
    /// The offset up to which the journal was read when the term was current.
    pub seen: i64,
    /// The sequence number for a release that the guard writes for a dead supervisor.
    pub next_seq: u64,
    /// The deadline: the lease's end less the kill margin. Within a term it never moves back.
    pub until: Time,
}

/// The commands that may run beside a job.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// The health command.
    Health,
    /// The `--on-lead` hook.
    Lead,
}

impl CommandKind {
    /// The value of `NELI_EVENT`.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Lead => "lead",
        }
    }
}

/// The receiver of a signal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The job's process group.
    Group,
    /// The main process alone.
    Main,
}

/// An answer of the guard to the supervisor.
///
/// A `spawn` that is performed is answered by `Accepted`, then `Started`, `Exited` and last `Gone` or `Fenced`; otherwise by `Accepted` and
/// `NotStarted`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Answer {
    /// A `spawn` was read, and is about to be performed; this is the deadline.
    Accepted { until: Time },
    /// A command has ended, or its time limit is over and it was sent SIGKILL. This answers each `command` order once, with its number.
    CommandEnded { kind: CommandKind, id: u32, end: CommandEnd },
    /// At the main process's end nothing of the job was left but processes of commands that ran beside it, which are being killed.
    CommandsLeft,
    /// The job's main process has ended.
    Exited {
        status: JobStatus,
        /// When it ended. The supervisor may read this much later, if it was stopped.
        ended_at: Time,
        /// Whether descendants of the main process are left.
        left: bool,
        /// Whether it had the terminal's foreground, which the group of `neli-run` has again.
        foreground: bool,
    },
    /// A `lease` was read; this is the new deadline.
    Extended { until: Time },
    /// The deadline has come, or had come when an order was read. No process of this term runs or will run. The end is that of its job, which was
    /// killed; `None` if no job was alive.
    Fenced { term: i64, end: Option<SeenEnd> },
    /// No process of the job is left.
    Gone,
    /// The job's tree was sent SIGKILL, because of the stop timeout or an order.
    Killed,
    /// The job's main process has ended and these processes are left. They are asked to stop, or killed. Those that were asked together
    /// with the main process, as part of its group, are reported only when they are killed.
    LeftBehind {
        /// Some of them, if there are many.
        processes: Vec<Named>,
        /// Their number.
        count: usize,
        /// Whether they were sent SIGKILL, and not the stop signal.
        killed: bool,
    },
    /// A `stop` or `kill` was read when no process was alive: this run of the term, the last one, is over, and its end was reported. It is named
    /// so that the answer does not count as one about the next run.
    NoRun { term: i64, run: u64 },
    /// The job could not be started because of this error, and no process of it is left.
    NotStarted { errno: i32, at: Step },
    /// The guard is set up, and reads orders from now on. It is its first answer.
    Ready,
    /// Processes of the job are left although they were sent SIGKILL. They are searched for, and sent it again. This is reported each time.
    StillKilling,
    /// The job has executed. The supervisor has a pidfd of its main process, if the kernel has pidfds.
    Started { pid: i32 },
    /// The same, but the descriptor was lost: the kernel or one of the two processes has none left. The guard sends this with the descriptor, and
    /// whoever gets both takes it for [`Started`](Self::Started).
    StartedUnseen { pid: i32 },
    /// The job's main process was stopped by this signal.
    Stopped { signal: i32 },
    /// These processes are alive a lease after SIGKILL; some of them, if there are very many.
    Stuck { pids: Vec<i32> },
}

/// The steps of a start that can fail.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The exec: the command can't be found or run.
    Exec,
    /// The fork.
    Fork,
    /// The deadline came between fork and exec, because the guard or the child was delayed.
    InTime,
    /// The creation of the lease descriptor.
    Lease,
}

/// A process with the data that the log shows.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Named {
    /// Its process id.
    pub pid: i32,
    /// The name of its program, as far as it could be read: up to 15 bytes, which the process can change.
    pub name: String,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name } = self;
        if name.is_empty() { write!(f, "{pid}") } else { write!(f, "{pid} ({name})") }
    }
}

// ---- the events that a guard handles -------------------------------------------------------------------------------

/// Events of the guard's process.
#[derive(Debug)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Event {
    /// Every order that had arrived by now was read.
    AllRead,
    /// A command has ended and was waited for.
    CommandEnded { kind: CommandKind, end: CommandEnd },
    /// The job has executed.
    Executed,
    /// [`Action::Kill`] was performed.
    Killed(KillRound),
    /// [`Action::Learn`] was performed, and had begun then.
    Learnt { begun: Time },
    /// The main process has ended and was waited for; [`Executed`](Self::Executed) or [`NotStarted`](Self::NotStarted) comes before.
    MainEnded { status: JobStatus },
    /// The main process was stopped by this signal.
    MainStopped { signal: i32 },
    /// The job could not be started because of this error. There is a child process, which ends, unless the lease had ended or the fork failed.
    NotStarted { errno: i32, at: Step },
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

// ---- the actions of a guard ----------------------------------------------------------------------------------------

/// An action that the guard's process must perform, in this order.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Action {
    /// Send this answer to the supervisor as soon as its socket accepts it.
    Answer(Answer),
    /// Take the terminal back, and send [`Answer::Exited`] with the facts that only the process can see: whether the job had the
    /// foreground, and whether it has left processes.
    AnswerExited {
        /// The main process's.
        status: JobStatus,
        /// Check the tree, to distinguish the job's remaining processes from commands that run beside it. Without a check every remaining
        /// process counts, so that the killing of a tree is not delayed.
        look: bool,
    },
    /// Send [`Answer::LeftBehind`] if a check that ends by then finds processes; they are about to be killed.
    AnswerLeftBehind { until: Time },
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
    /// Send SIGKILL to the remaining processes of the tree, by these methods in this order; [`Event::Killed`] must
    /// follow.
    Kill(&'static [KillMethod]),
    /// Send SIGKILL to a command's group.
    KillCommand(CommandKind),
    /// Send SIGKILL to the main process's group: one system call, which for most jobs reaches the whole tree.
    KillMainGroup,
    /// Find out which processes belong to the tree, by a check that ends by then; [`Event::Learnt`] must follow.
    Learn { until: Time },
    /// Become the program that releases for the dead supervisor. A process of the job may have been alive for this long after the lease's end. No
    /// action follows.
    Release { grant: Grant, late: Option<Duration> },
    /// Remove the job's control group; a living supervisor does this itself.
    RemoveCgroup,
    /// Show this deadline in the lease descriptor of this term from now on, if there is one.
    ShowDeadline { term: i64, until: Time },
    /// Show in the lease descriptor that the term is over.
    ShowEnd,
    /// Send a signal to the main process or its group.
    Signal { signal: i32, to: Target },
    /// Send a signal and SIGCONT to each remaining process; [`Answer::LeftBehind`] names them to the supervisor.
    SignalRest {
        /// The signal's number.
        signal: i32,
        /// Leave out the main process's group, which got the signal before: many programs end at once if they get it twice.
        but_group: bool,
        /// When the search for them must end.
        until: Time,
    },
    /// Start the job. [`Event::Executed`] or [`Event::NotStarted`]
    /// must follow, now or later.
    Start {
        term: i64,
        /// It may execute only before this time.
        until: Time,
        /// `NELI_ATTEMPT`.
        attempt: u32,
        /// The window that the run is for, if any.
        window: Option<Span>,
    },
    /// Start a command. If that fails, [`Event::CommandEnded`] reports it.
    StartCommand(CommandKind),
    /// Take the terminal's foreground back from the job, and restore the terminal's modes.
    TakeBack,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn orders_and_answers_are_flat_objects() {
        let grant = Grant { term: 42, seen: 57, next_seq: 9, until: Time::from_nanos(1_000) };
        let spawn = |window| Order::Spawn { grant, run: 1, attempt: 1, window };
        let text = r#"{"order":"spawn","term":42,"seen":57,"next_seq":9,"until":1000,"run":1,"attempt":1}"#;
        assert_eq!(serde_json::to_string(&spawn(None)).unwrap(), text);
        assert_eq!(serde_json::from_str::<Order>(text).unwrap(), spawn(None));
        let of_window = spawn(Some(Span { from_ms: 5, until_ms: 10 }));
        let text = serde_json::to_string(&of_window).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), of_window);
        assert_eq!(serde_json::to_string(&Answer::Gone).unwrap(), r#"{"answer":"gone"}"#);
    }

    #[test]
    fn a_release_is_owed_from_the_first_order_with_the_term_until_an_order_settles_it() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let owed_after = |orders: &[Order]| orders.iter().fold(None, |owed, order| order.owed_after(owed));
        assert_eq!(owed_after(&[Order::Lease(grant)]), Some(1), "before the first run");
        assert_eq!(owed_after(&[Order::Lease(grant), Order::Released { term: 1 }]), None);
        let spawn = Order::Spawn { grant, run: 1, attempt: 1, window: None };
        assert_eq!(owed_after(&[spawn, Order::Released { term: 0 }]), Some(1), "that was an earlier term");
        assert_eq!(owed_after(&[spawn, Order::Over { term: 1 }]), Some(1));
        assert_eq!(owed_after(&[spawn, Order::Over { term: 1 }, Order::Released { term: 1 }]), None);
    }

    #[test]
    fn a_process_is_named_by_its_id_and_its_program() {
        assert_eq!(Named { pid: 812, name: "backup".into() }.to_string(), "812 (backup)");
    }
}
