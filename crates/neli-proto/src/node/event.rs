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

/// An event.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The process continues without a SIGCONT, since it could not be suspended.
    Continued,
    /// An event of the election: Kafka's answers about the journal, the topic and the group.
    Election(candidate::Event),
    /// The process exits: nothing is started any more except the hook that runs at the exit.
    Exiting,
    /// An answer from the topic of facts.
    Facts(FactsEvent),
    /// Hand over the lead, if it is held: another candidate holds fewer roles than its share.
    HandOver {
        /// The successor.
        to: MemberId,
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
    /// An answer of the guard. If the owner has more data than the answer, the job's event contains all of it: a health command's end with
    /// its output, and a stop with the terminal's state.
    Guard(Answer),
    /// An event of the job that is not an answer of its guard.
    Job(supervisor::Event),
    /// The terminal is gone. The kernel has reported that only to the job, since the job had the foreground.
    JobsTerminalGone,
    /// This process can't stand any more: Kafka refuses its records or its login, the topic may not carry an election (R0), another
    /// candidate looks for a role in another partition, or no guard can be started, neither a first one nor one in place of a dead one.
    Refused {
        /// The reason, in one line.
        error: Box<str>,
    },
    /// A signal to the process.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// Add this to the claim delay from now on; `None` if nothing may be claimed.
    SpreadBy(Option<Duration>),
    /// Stand down, because the process wants it.
    StandDown {
        /// The reason.
        why: Why,
        /// Whether for good.
        leaving: bool,
    },
    /// `--window` and `--schedule`: the window that the wall clock shows now. It must come before the recorded facts of windows, and with a
    /// schedule whenever the window changes while the node leads.
    Window(Window),
}

/// The result of a question about the key's facts, or of recording a fact.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum FactsEvent {
    /// The fact was acknowledged.
    Appended {
        /// The number of [`Action::AppendFact`](super::Action::AppendFact).
        id: u32,
    },
    /// The topic was missing, and this process created it.
    Created,
    /// The fact was refused, or not acknowledged in time. It may be in the topic nevertheless.
    NotAppended {
        /// The number of [`Action::AppendFact`](super::Action::AppendFact).
        id: u32,
        /// The reason.
        error: Box<str>,
    },
    /// The topic was read to the requested end.
    Read {
        /// The number of [`Action::ReadFacts`](super::Action::ReadFacts).
        id: u32,
        /// The key's facts.
        facts: Box<Facts>,
    },
    /// The topic is being read, and the reading is not complete yet.
    Reading {
        /// The progress of the reading.
        progress: Box<str>,
    },
    /// The facts can't be read yet. The reading is tried again.
    Unread {
        /// The reason.
        error: Box<str>,
    },
}
