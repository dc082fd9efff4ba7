//! The actions of a node.

use crate::fact::Fact;
use crate::guard::Order;
use crate::hooks::Hook;
use crate::kafka::Request;
use crate::note::Note;
use crate::record::Offset;
use crate::supervisor::Ending;
use crate::time::Time;

/// An action that the node's owner must perform.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Record this fact in the topic of facts, and report [`FactsEvent::Appended`](super::FactsEvent::Appended) or
    /// [`FactsEvent::NotAppended`](super::FactsEvent::NotAppended). The owner adds the time of writing.
    AppendFact {
        /// The number that the report must contain.
        id: u32,
        /// The fact.
        fact: Fact,
    },
    /// Exit, and then die of this signal, since it came from the terminal.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Whether to send it to the whole process group, since so far only the job has received it.
        to_group: bool,
    },
    /// The node has ended, with this status.
    Exit(Ending),
    /// Do this in Kafka.
    Kafka(Request),
    /// Kill the guard, which does not answer, and all processes of the job that can be found.
    KillGuard,
    /// Send SIGKILL to this hook and all of its group.
    KillHook {
        /// Its number.
        id: u32,
    },
    /// Kill the processes that the dead guard left, and report [`OrphansGone`](crate::supervisor::Event::OrphansGone) when none is left.
    KillOrphans,
    /// Report which group has the terminal's foreground: [`ForegroundSeen`](crate::supervisor::Event::ForegroundSeen).
    LookAtForeground,
    /// Tell users.
    Note(Note),
    /// Send this order to the guard. A health command is sent with a descriptor for its output.
    Order(Order),
    /// Read the key's facts in the topic of facts up to its present end, and report [`FactsEvent::Read`](super::FactsEvent::Read). An
    /// earlier reading is dropped.
    ReadFacts {
        /// The number that the report must contain.
        id: u32,
    },
    /// Replace the guard, which has the terms of a history that is gone (R5). No job is alive.
    RenewGuard,
    /// Run a hook that does not run beside the job.
    RunHook(HookRun),
    /// Start a new guard.
    StartGuard,
    /// Stop the process once it has left the group: no term is held, no claim is in flight and no hook runs, and that stays so until
    /// SIGCONT.
    Suspend,
}

/// One run of a hook.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct HookRun {
    /// The hook.
    pub hook: Hook,
    /// The run's number, which the report of its end must contain.
    pub id: u32,
    /// `NELI_WHY`; may be empty.
    pub why: &'static str,
    /// The term of the present or the last lead, if there was one.
    pub term: Option<Offset>,
    /// The attempt of the job's present or last run in that term.
    pub attempt: u32,
    /// When to kill it.
    pub kill_at: Time,
}
