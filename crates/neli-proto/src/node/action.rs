//! What a node wants done, and what it reports.

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

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Record this fact in the topic of facts, and report [`FactsEvent::Appended`](super::FactsEvent::Appended) or
    /// [`FactsEvent::NotAppended`](super::FactsEvent::NotAppended). When it is written is filled in.
    AppendFact {
        /// To be said with what becomes of it.
        id: u32,
        /// The fact.
        fact: Fact,
    },
    /// At the end, die of this signal: it was the terminal's.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Send it to the whole process group: the job alone has had it.
        to_group: bool,
    },
    /// The node has ended, with this status.
    Exit(Ending),
    /// Ask which topic stands under the name, until there is an answer ([`candidate::Event::TopicIdentified`]).
    Identify,
    /// Join the group.
    JoinGroup,
    /// Kill the guard, since it does not answer, and what can be found of the job beside it.
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
        /// No other candidate is known.
        alone: bool,
    },
    /// Say whose the terminal's foreground is: [`supervisor::Event::ForegroundSeen`].
    LookAtForeground,
    /// Ask soon where the log ends ([`candidate::Event::Answered`]).
    LookForEnd,
    /// For the log. Nothing is decided by it.
    Note(Note),
    /// Send this to the guard. With a health command goes what takes its output.
    Order(Order),
    /// R1: make a reader, ask it for the end offset, and forget the one before; have the topic judged (R0).
    ReadAnew,
    /// Ask where the topic of facts ends, read what it says of the key up to there, and report
    /// [`FactsEvent::Read`](super::FactsEvent::Read). An earlier reading is dropped.
    ReadFacts {
        /// To be said with what was read.
        id: u32,
    },
    /// Read from this offset, which the log holds.
    ReadFrom(Offset),
    /// Replace the guard, which remembers the terms of a history that is gone (R5). No job is alive.
    RenewGuard,
    /// Make a new producer, and forget the one before.
    RenewProducer,
    /// Run a hook that does not run beside the job.
    RunHook(HookRun),
    /// Hand this record to the producer: the send time is the time of the input that caused it (R3).
    Send {
        /// Under the election's key; a hello goes under the hello's.
        record: Record,
    },
    /// Start a new guard.
    StartGuard,
    /// Stop the process, once the group is left: no term is held, no claim under way, no hook runs, and none will be until it is
    /// continued.
    Suspend,
}

/// One run of a hook.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct HookRun {
    /// Which hook.
    pub hook: Hook,
    /// To be said with its end.
    pub id: u32,
    /// `NELI_WHY`; may be empty.
    pub why: &'static str,
    /// The term that the lead is or was of, when there was one.
    pub term: Option<Offset>,
    /// The number of the run of the job that is alive, or was last, in that term.
    pub attempt: u32,
    /// When it is killed.
    pub kill_at: Time,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// Of the election.
    Election(candidate::Note),
    /// A hook has failed.
    HookFailed {
        /// Which.
        hook: Hook,
        /// How.
        end: CommandEnd,
    },
    /// Of the job.
    Job {
        /// The term in which it runs, or ran last.
        term: Offset,
        /// What.
        note: supervisor::Note,
    },
    /// The election has come so far.
    Milestone(Milestone),
    /// Of the key whose run succeeds once.
    Once(once::Note),
    /// The node goes for good, since it is refused.
    Refused(Refusal),
}

/// By whom a node is refused.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Refusal {
    /// By Kafka, by R0, by a candidate that stands in the election in another way, or by this machine, which can start no guard; the
    /// line says why.
    Said(Box<str>),
    /// The topic was deleted and made again, which the settings do not accept.
    TopicRemade,
}
