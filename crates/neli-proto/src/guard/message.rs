//! The messages between supervisor and guard: one JSON object a packet, both ways.
//!
//! A message that does not parse, or makes no sense when it arrives, is ignored: the deadline holds in any case.

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
    /// Run a command beside the job. A descriptor for its output is sent along; without one its output goes to our
    /// stderr.
    Command {
        /// The command, one of those that the guard was given at its start.
        kind: CommandKind,
        /// The run's number, which the answer must carry.
        id: u32,
        /// When to kill it.
        kill_at: Time,
    },
    /// Give the job's group the terminal's foreground, if `neli-run`'s group has it, and SIGCONT.
    HandOn,
    /// SIGKILL to the whole tree, now.
    Kill,
    /// The lease holds until the grant's end.
    Lease(Grant),
    /// The release is about to be handed to the producer: nothing may be started or extended under this term any more
    /// (R6).
    Over {
        /// The term.
        term: i64,
    },
    /// The term's release was delivered, or another candidate's claim took effect: nothing may be released for the
    /// dead any more.
    Released {
        /// The term.
        term: i64,
    },
    /// Pass this signal on once the job has executed; ignored if its main process has ended.
    Signal {
        /// Its process id.
        signal: i32,
        /// The receiver.
        to: Target,
    },
    /// The term is held until the grant's end: start the job.
    Spawn {
        /// The grant.
        #[serde(flatten)]
        grant: Grant,
        /// `NELI_ATTEMPT`: 1 for the first run in this term.
        attempt: u64,
        /// The window that the run is for, if any.
        #[serde(flatten)]
        window: Option<Span>,
    },
    /// The barrier: the stop signal and SIGCONT now, SIGKILL to the whole tree later. If it is repeated, the new time
    /// counts.
    Stop {
        /// The signal, for the job's group while the main process lives, otherwise for each remaining process that
        /// was not asked as part of the group; `None` sends nothing.
        signal: Option<i32>,
        /// When SIGKILL comes.
        kill_at: Time,
    },
    /// Take the terminal's foreground back from the job, and restore the terminal's modes.
    TakeBack,
}

/// The right to run a job: a term, and until when it is held.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Grant {
    /// The term.
    pub term: i64,
    /// The offset as of which the term is current.
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
    #[must_use]
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

/// From the guard to the supervisor.
///
/// A `spawn` that is carried out is answered by `Accepted`, then `Started`, `Exited` and last `Gone` or `Fenced`;
/// otherwise by `Accepted` and `NotStarted`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A `spawn` was read, and is about to be carried out.
    Accepted {
        /// The deadline.
        until: Time,
    },
    /// A command has ended, or its time is up and it was sent SIGKILL. Each `command` order is answered once by this.
    CommandEnded {
        /// The command.
        kind: CommandKind,
        /// The run's number from the order.
        id: u32,
        /// How it ended.
        end: CommandEnd,
    },
    /// The job's main process has ended, with a status or by a signal.
    Exited {
        /// The exit status.
        code: Option<i32>,
        /// The signal.
        signal: Option<i32>,
        /// Whether descendants of it are left.
        left: bool,
        /// Whether it had the terminal's foreground, which `neli-run`'s group has again.
        foreground: bool,
    },
    /// A `lease` was read.
    Extended {
        /// The new deadline.
        until: Time,
    },
    /// The deadline has come, or had come when an order was read: nothing of this term runs or will run.
    Fenced {
        /// The term.
        term: i64,
        /// When nothing was left of its job; `None` if no job was alive.
        gone_at: Option<Time>,
    },
    /// Nothing is left of the job.
    Gone,
    /// The job's tree was sent SIGKILL, because of the stop timeout or of an order.
    Killed,
    /// The job's main process has ended and these processes are left: they are asked to stop, or killed. Those that
    /// were asked together with the main process, as part of its group, are reported only when they are killed.
    LeftBehind {
        /// Some of them, if there are many.
        processes: Vec<Named>,
        /// Their number.
        count: usize,
        /// Whether they were sent SIGKILL, not the stop signal.
        killed: bool,
    },
    /// A `stop` or `kill` was read when nothing was alive: this run, the last one, is over, and its end was reported. It is
    /// named so that the report is not taken for one about the next run.
    NoRun {
        /// Its term.
        term: i64,
        /// Its number in that term.
        attempt: u64,
    },
    /// The job could not be started, and nothing is left of it.
    NotStarted {
        /// The error's number.
        errno: i32,
        /// The step that failed.
        at: Step,
    },
    /// Something of the job is left although it was sent SIGKILL: it is looked for, and sent it again. Said each time.
    StillKilling,
    /// The job has executed. A pidfd of its main process is sent along, if the kernel has pidfds.
    Started {
        /// The main process.
        pid: i32,
    },
    /// The job has executed, but the descriptor of its main process could not be sent along: the kernel or one of the two
    /// processes has none left.
    StartedUnseen {
        /// The main process.
        pid: i32,
    },
    /// The job's main process was stopped.
    Stopped {
        /// The signal that stopped it.
        signal: i32,
    },
    /// These processes are still there a lease after SIGKILL; some of them, if there are very many.
    Stuck {
        /// Their process ids.
        pids: Vec<i32>,
    },
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
    /// Making the lease descriptor.
    Lease,
}

/// A process as it is named in the log.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Named {
    /// Its number.
    pub pid: i32,
    /// The name of its program, as far as it could be read: up to 15 bytes, which the process can change.
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
    fn a_process_is_named_by_its_id_and_its_program() {
        assert_eq!(Named { pid: 812, name: "backup".into() }.to_string(), "812 (backup)");
    }
}
