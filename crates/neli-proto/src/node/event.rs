//! The events of a node.

use alloc::boxed::Box;
use core::time::Duration;

use crate::candidate;
use crate::command::CommandEnd;
use crate::fact::Facts;
use crate::guard::Answer;
use crate::hooks::Hook;
use crate::record::{MemberId, Why};
use crate::supervisor;
use crate::window::Window;

/// What has happened.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The process goes on without a SIGCONT, since it could not be suspended.
    Continued,
    /// An event of the election: Kafka's answers about the journal, the topic and the group.
    Election(candidate::Event),
    /// The process exits: nothing is started any more except the hook that runs at the exit.
    Exiting,
    /// An answer from the topic of facts.
    Facts(FactsEvent),
    /// The lead is to be handed over, if one is held: another candidate holds fewer roles than its share.
    HandOver {
        /// The successor; none for the member to which the group has assigned the partition.
        to: Option<MemberId>,
    },
    /// No guard can be started for the node, neither a first one nor one after a dead one: this process can't run
    /// anything any more.
    GuardRefused {
        /// The reason, in one line.
        error: Box<str>,
    },
    /// A hook has ended.
    HookEnded {
        /// The hook.
        hook: Hook,
        /// Its number.
        id: u32,
        /// How it ended.
        end: CommandEnd,
    },
    /// An answer of the guard. If more is known of it than the answer says, the job's event carries all: a health
    /// command's end with its output, and a stop with the terminal's state.
    Guard(Answer),
    /// An event of the job that is not an answer of its guard.
    Job(supervisor::Event),
    /// The terminal is gone, which the kernel has reported only to the job, since that had the foreground.
    JobsTerminalGone,
    /// Kafka refuses for good: nothing is read or written any more.
    KafkaRefused {
        /// Kafka's reason, in one line.
        error: Box<str>,
    },
    /// A signal to the process.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// This is added to the claim delay from now on; none if nothing may be claimed.
    SpreadBy(Option<Duration>),
    /// The process wants the node to stand down.
    StandDown {
        /// The reason.
        why: Why,
        /// For good.
        leaving: bool,
    },
    /// R0: the topic may not carry an election.
    TopicRefused {
        /// The reason, in one line.
        error: Box<str>,
    },
    /// `--window` and `--schedule`: the window that the wall clock shows now. It must come before what is recorded of
    /// windows, and with a schedule whenever the window changes while the node leads.
    Window(Window),
}

/// The answer to a question about the key's facts, or to a fact that was to be recorded.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum FactsEvent {
    /// The fact was acknowledged.
    Appended {
        /// As [`Action::AppendFact`](super::Action::AppendFact) has it.
        id: u32,
    },
    /// The topic was missing, and was made here.
    Created,
    /// The fact was refused, or not acknowledged in time. It may be in the topic all the same.
    NotAppended {
        /// As [`Action::AppendFact`](super::Action::AppendFact) has it.
        id: u32,
        /// Why.
        error: Box<str>,
    },
    /// The topic was read to the end that was asked for.
    Read {
        /// As [`Action::ReadFacts`](super::Action::ReadFacts) has it.
        id: u32,
        /// What it says of the key.
        facts: Box<Facts>,
    },
    /// The topic is being read, and that takes a while.
    Reading {
        /// How far it is.
        progress: Box<str>,
    },
    /// The facts can't be read yet; that is tried again.
    Unread {
        /// Why.
        error: Box<str>,
    },
}
