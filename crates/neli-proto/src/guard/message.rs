//! What supervisor and guard say to each other: one JSON object a packet, both ways.
//!
//! What does not parse, or makes no sense where it comes, is ignored: the deadline holds whatever is said.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::command::CommandEnd;
use crate::time::Time;
use crate::window::Span;

/// From the supervisor to the guard.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// A command is to be run beside the job. The descriptor of its output comes with it; without one it is our stderr.
    Command {
        /// Which of those that the guard was given at its start.
        kind: CommandKind,
        /// To be said with its end.
        id: u32,
        /// When it is killed.
        kill_at: Time,
    },
    /// Give the job's group the terminal's foreground, if `neli-run`'s has it, and SIGCONT.
    HandOn,
    /// SIGKILL to the whole tree, now.
    Kill,
    /// The term is held until then.
    Lease(Grant),
    /// The release is about to be handed to the producer: nothing is started or extended under this term any more (R6).
    Over {
        /// The term.
        term: i64,
    },
    /// The term's release was delivered, or another's claim took effect: nothing is to be released for the dead.
    Released {
        /// The term.
        term: i64,
    },
    /// A signal to be passed on, once the job has executed; nothing when its main process has ended.
    Signal {
        /// Its number.
        signal: i32,
        /// To whom.
        to: Target,
    },
    /// The term is held until then, and the job is to be started.
    Spawn {
        /// The term, and until when.
        #[serde(flatten)]
        grant: Grant,
        /// `NELI_ATTEMPT`: 1 for the first run in this term.
        attempt: u64,
        /// The window that it is for, where it is for one.
        #[serde(flatten)]
        window: Option<Span>,
    },
    /// The barrier: the stop signal and SIGCONT, and SIGKILL to the whole tree later. Said again, the new moment counts.
    Stop {
        /// To the job's group while the main process lives, else to each process that is left and was not asked as one of
        /// the group; `None` sends nothing.
        signal: Option<i32>,
        /// When SIGKILL comes.
        kill_at: Time,
    },
    /// Take the terminal's foreground back from the job, and give the terminal its modes of before.
    TakeBack,
}

/// A term, and how long it is held.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Grant {
    /// The term.
    pub term: i64,
    /// The offset as of which the term is current.
    pub seen: i64,
    /// The sequence number that a release written for the dead would have.
    pub next_seq: u64,
    /// The deadline: the lease's end less the kill margin. Within a term it never moves back.
    pub until: Time,
}

/// The commands that run beside a job.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// The health command.
    Health,
    /// The hook that runs when the lead is won.
    Lead,
}

impl CommandKind {
    /// Its event, as `NELI_EVENT` has it.
    #[must_use]
    pub const fn event(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Lead => "lead",
        }
    }
}

/// Who in the job gets a signal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The job's process group.
    Group,
    /// The main process alone.
    Main,
}

/// From the guard to the supervisor.
///
/// A `spawn` that is carried out is answered by `Accepted`, then `Started`, `Exited` and last `Gone` or `Fenced`; or by
/// `Accepted` and `NotStarted`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A `spawn` was read, and is about to be carried out.
    Accepted {
        /// The deadline.
        until: Time,
    },
    /// A command has ended, or its time was up and it is sent SIGKILL. Each `command` is answered so, once.
    CommandEnded {
        /// Which of those that the guard was given at its start.
        kind: CommandKind,
        /// What the order said.
        id: u32,
        /// How.
        end: CommandEnd,
    },
    /// The job's main process has ended: with a status, or by a signal.
    Exited {
        /// Its status.
        code: Option<i32>,
        /// The signal.
        signal: Option<i32>,
        /// Whether descendants of it are left.
        left: bool,
        /// Whether it had the terminal's foreground, which is back at `neli-run`'s group.
        foreground: bool,
    },
    /// A `lease` was read.
    Extended {
        /// The deadline from now on.
        until: Time,
    },
    /// The deadline has come, or had come when the order was read: nothing of this term runs, or ever will.
    Fenced {
        /// The term.
        term: i64,
        /// When nothing was left of its job; `None` where no job was alive.
        gone_at: Option<Time>,
    },
    /// Nothing is left of the job.
    Gone,
    /// The job's tree is sent SIGKILL, as the stop timeout or an order has it.
    Killed,
    /// The job's main process has ended, and these are left of the job: they are asked to stop, or killed. Those that were asked
    /// with the main process, as a part of its process group, are told only when they are killed.
    LeftBehind {
        /// Some of them, when there are many.
        processes: Vec<Named>,
        /// How many there are.
        count: usize,
        /// Sent SIGKILL, not asked.
        killed: bool,
    },
    /// The job could not be started; nothing is left of it.
    NotStarted {
        /// The error's number.
        errno: i32,
        /// What failed.
        at: Step,
    },
    /// The job has executed. A pidfd of its main process comes with it, where the kernel has them.
    Started {
        /// The main process.
        pid: i32,
    },
    /// The job's main process was stopped.
    Stopped {
        /// The signal that stopped it.
        signal: i32,
    },
    /// These are still there a lease after SIGKILL; some of them, when there are very many.
    Stuck {
        /// Their numbers.
        pids: Vec<i32>,
    },
}

/// The steps of a start that may fail.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The exec: the command can't be found or run.
    Exec,
    /// The fork.
    Fork,
    /// The deadline came between fork and exec (the guard or the child was held up).
    InTime,
    /// Making the lease descriptor.
    Lease,
}

/// A process, as a person is told of it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Named {
    /// Its number.
    pub pid: i32,
    /// The name of its program, as far as it could be read: up to 15 bytes, which the process may have changed.
    pub name: String,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.name)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn orders_and_answers_are_flat_objects() {
        let grant = Grant { term: 42, seen: 57, next_seq: 9, until: Time::from_nanos(1_000) };
        let spawn = |window| Order::Spawn { grant, attempt: 1, window };
        let text = r#"{"order":"spawn","term":42,"seen":57,"next_seq":9,"until":1000,"attempt":1}"#;
        assert_eq!(serde_json::to_string(&spawn(None)).unwrap(), text);
        assert_eq!(serde_json::from_str::<Order>(text).unwrap(), spawn(None));
        let of_window = spawn(Some(Span { from_ms: 5, until_ms: 10 }));
        let text = serde_json::to_string(&of_window).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), of_window);
        assert_eq!(serde_json::to_string(&Answer::Gone).unwrap(), r#"{"answer":"gone"}"#);
    }

    #[test]
    fn a_process_is_told_by_its_number_and_its_programs_name() {
        assert_eq!(Named { pid: 812, name: "backup".into() }.to_string(), "812 (backup)");
    }
}
