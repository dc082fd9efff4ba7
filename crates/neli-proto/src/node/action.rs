//! The actions of a node, and what it reports.

use alloc::boxed::Box;

use crate::candidate::{self, Milestone};
use crate::command::CommandEnd;
use crate::fact::Fact;
use crate::guard::Order;
use crate::hooks::Hook;
use crate::once;
use crate::record::{Offset, Record};
use crate::supervisor::{self, Ending};
use crate::time::Time;

/// What the node's owner has to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Record this fact in the topic of facts, and report [`FactsEvent::Appended`](super::FactsEvent::Appended) or
    /// [`FactsEvent::NotAppended`](super::FactsEvent::NotAppended). The owner fills in the time of writing.
    AppendFact {
        /// The number that the report must carry.
        id: u32,
        /// The fact.
        fact: Fact,
    },
    /// After the exit's work, die of this signal, since it came from the terminal.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Send it to the whole process group, since so far only the job has received it.
        to_group: bool,
    },
    /// The node has ended, with this status.
    Exit(Ending),
    /// Ask for the topic's id until there is an answer ([`candidate::Event::TopicIdentified`]).
    Identify,
    /// Join the group.
    JoinGroup,
    /// The guard does not answer: kill it, and what can be found of the job.
    KillGuard,
    /// SIGKILL to this hook and all of its group.
    KillHook {
        /// Its number.
        id: u32,
    },
    /// The guard is dead: kill what it left, and report [`supervisor::Event::OrphansGone`] when nothing is left.
    KillOrphans,
    /// Leave the group.
    LeaveGroup {
        /// No other candidate waits for this one ([`Node::is_alone`](super::Node::is_alone)).
        alone: bool,
    },
    /// Report which group has the terminal's foreground: [`supervisor::Event::ForegroundSeen`].
    LookAtForeground,
    /// Ask soon for the log's end ([`candidate::Event::Answered`]).
    LookForEnd,
    /// A note for the log, by which nothing is decided.
    Note(Note),
    /// Send this order to the guard. A health command is sent with a descriptor for its output.
    Order(Order),
    /// R1: start a new reader, ask it for the end offset, and drop the reader before; have the topic judged (R0).
    ReadAnew,
    /// Read the topic of facts up to its present end for what it says of the key, and report
    /// [`FactsEvent::Read`](super::FactsEvent::Read). An earlier reading is dropped.
    ReadFacts {
        /// The number that the report must carry.
        id: u32,
    },
    /// Read from this offset, which the log holds.
    ReadFrom(Offset),
    /// Replace the guard, which remembers the terms of a history that is gone (R5). No job is alive.
    RenewGuard,
    /// Make a new producer, and drop the one before.
    RenewProducer,
    /// Run a hook that does not run beside the job.
    RunHook(HookRun),
    /// Hand this record to the producer. Its send time is the time of the input that caused it (R3).
    Send {
        /// The record. Its key is the election's, or for a hello the hello's key.
        record: Record,
    },
    /// Start a new guard.
    StartGuard,
    /// Stop the process once it has left the group: no term is held, no claim is in flight, no hook runs, and none
    /// will until SIGCONT.
    Suspend,
}

/// One run of a hook.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct HookRun {
    /// The hook.
    pub hook: Hook,
    /// The run's number, which the report of its end must carry.
    pub id: u32,
    /// `NELI_WHY`; may be empty.
    pub why: &'static str,
    /// The term of the present or the last lead, if there was one.
    pub term: Option<Offset>,
    /// The number of the job's present or last run in that term.
    pub attempt: u32,
    /// When to kill it.
    pub kill_at: Time,
}

/// A note for the log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// Of the election.
    Election(candidate::Note),
    /// A hook has failed.
    HookFailed {
        /// The hook.
        hook: Hook,
        /// How it failed.
        end: CommandEnd,
    },
    /// Of the job.
    Job {
        /// The term of the present or the last run.
        term: Offset,
        /// The note.
        note: supervisor::Note,
    },
    /// A milestone of the election.
    Milestone(Milestone),
    /// Of the key whose run succeeds once.
    Once(once::Note),
    /// The node exits for good, since it was refused.
    Refused(Refusal),
}

/// Why a node was refused.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Refusal {
    /// By Kafka, by R0, by a candidate whose options differ, or by this machine, which can't start a guard; the line
    /// says why.
    Said(Box<str>),
    /// The topic was deleted and made again, which the configuration does not accept.
    TopicRemade,
}
