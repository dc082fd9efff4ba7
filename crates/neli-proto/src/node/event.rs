//! What happens to a node.

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

/// Things that happened.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The process goes on although nobody sent it SIGCONT: it could not be suspended.
    Continued,
    /// The election: what Kafka says of the journal, of the topic and of the group.
    Election(candidate::Event),
    /// The process goes: nothing is started any more but the hook that runs at exit.
    Exiting,
    /// What is recorded of the key, or could not be.
    Facts(FactsEvent),
    /// The lead is handed over, where one is held: another holds fewer roles than its share.
    HandOver {
        /// For whom; none for the member to which the group has assigned the partition.
        to: Option<MemberId>,
    },
    /// No guard can be started for the node, the first or one that is to follow a dead one: nothing can be run by this process any more.
    GuardRefused {
        /// Why: one line.
        error: Box<str>,
    },
    /// A hook has ended.
    HookEnded {
        /// Which.
        hook: Hook,
        /// Its number.
        id: u32,
        /// How.
        end: CommandEnd,
    },
    /// What the guard has answered. Where more is known of it than the answer tells, the event of the job tells all: a health command's
    /// end with its output, and a stop with what the terminal shows.
    Guard(Answer),
    /// The job: what happened to it besides what its guard answers.
    Job(supervisor::Event),
    /// The terminal is gone, and its kernel has told only the job, which had the foreground.
    JobsTerminalGone,
    /// Kafka refuses for good: nothing is read or written any more.
    KafkaRefused {
        /// What it said: one line.
        error: Box<str>,
    },
    /// A signal to the process.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// So much is added to the claim delay from now on; none when nothing is to be claimed.
    SpreadBy(Option<Duration>),
    /// The process wants the node to stand down.
    StandDown {
        /// Why.
        why: Why,
        /// For good.
        leaving: bool,
    },
    /// R0: the topic may not carry an election.
    TopicRefused {
        /// Why: one line.
        error: Box<str>,
    },
    /// `--window` and `--schedule`: the window that the wall clock shows now. To be told before what is recorded of the windows, and
    /// with a schedule whenever another is shown while the node leads.
    Window(Window),
}

/// What came of a question about the key's facts, or of one that was to be recorded.
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
