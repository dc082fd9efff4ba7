//! What a candidate wants done, and what it reports of the election.

use alloc::boxed::Box;
use core::time::Duration;

use crate::guard::Grant;
use crate::record::{Offset, Record, Why};
use crate::supervisor::{Departure, Loss};
use crate::time::Time;

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// R1: make a reader, ask it for the end offset, and forget the one before.
    Ask,
    /// Nothing is left to do here: no term is held, no claim under way.
    Depart(Departure),
    /// Tell the guard that the lease holds until then.
    Extend(Grant),
    /// Ask which topic stands under the name, until there is an answer ([`Event::TopicIdentified`](super::Event::TopicIdentified)).
    Identify,
    /// The job is to be killed at once, whatever the lease says.
    Kill(Loss),
    /// Join the group, if the elector is `group`.
    JoinGroup,
    /// The job may run, for as long as the right lasts.
    Lead(Grant),
    /// Leave the group.
    LeaveGroup,
    /// Ask soon where the log ends ([`Event::Answered`](super::Event::Answered)).
    LookForEnd,
    /// Terms begin anew: the guard is to forget those that it held (R5).
    ForgetTerms,
    /// Say so.
    Note(Note),
    /// The election has come so far: the guard and the hooks act on it, and a person is told.
    Reached(Milestone),
    /// Read from this offset, which the log holds.
    ReadFrom(Offset),
    /// Go for good: another candidate stands in the election with `--overlap`, and this one without it, or the other way round.
    Refuse {
        /// Says so: one line.
        why: Box<str>,
    },
    /// Make a new producer, and forget the one before.
    RenewProducer,
    /// Hand this record to the producer: the send time is the time of the input that caused it (R3).
    Send {
        /// Under the election's key; a hello goes under the hello's.
        record: Record,
    },
    /// The barrier: stop the job, and say when nothing of it is left. Beats go on.
    StopJob(Why),
    /// The same, in this time at most. No beat goes on.
    StopJobWithin {
        /// Why.
        why: Why,
        /// SIGKILL comes after this time, or after the stop timeout.
        within: Duration,
    },
    /// Stop the process, once the group is left: no term is held, no claim under way, and none will be until
    /// [`LocalEvent::Continued`](super::LocalEvent::Continued).
    Suspend,
}

/// How far the election has come: what the guard and the hooks act on.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Milestone {
    /// The lease ran out or was taken, and nothing of the job is left.
    Fenced {
        /// The term.
        term: Offset,
        /// `fenced` or `guard-died`.
        why: Why,
        /// How the right to run was lost.
        loss: Loss,
        /// How much of the lease is left.
        left: Duration,
        /// How long after the lease's end something of the job was still alive: the guarantee was broken.
        late: Option<Duration>,
    },
    /// The lead was won.
    Leading {
        /// The term.
        term: Offset,
        /// When the lease ends if no beat comes back.
        until: Time,
    },
    /// `--overlap`: another's claim took effect, and the job runs on beside the other's for this long at most.
    Overlapped {
        /// The term that is over.
        term: Offset,
        /// The other's term.
        by_term: Offset,
        /// The other.
        by: Option<Box<str>>,
        /// For how long.
        within: Duration,
    },
    /// A term was released, or could not be.
    Released {
        /// The term.
        term: Offset,
        /// Why.
        why: Why,
        /// Whether Kafka acknowledged it.
        delivered: bool,
    },
    /// Standing by.
    Standby(StandingFor),
    /// Another's claim took effect while we led.
    Superseded {
        /// The term that is over.
        term: Offset,
        /// The other's term.
        by_term: Option<Offset>,
        /// The other.
        by: Option<Box<str>>,
    },
    /// Another topic stands under the name: it was deleted and made again.
    TopicRemade,
}

/// Whom a candidate stands by for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StandingFor {
    /// Who leads, as far as known.
    pub leader: Option<Box<str>>,
    /// Its term.
    pub term: Option<Offset>,
    /// Why the candidate may not claim yet.
    pub why: Option<Waiting>,
}

/// Why a standby may not claim yet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Waiting {
    /// Its last runs failed, and the others are to claim before it.
    BackingOff,
    /// The records that were read do not tell who leads.
    Undecided,
    /// Another leads.
    Led,
    /// It stood down, and lets another lead first.
    CoolingOff,
    /// Nobody leads, and others may claim before it: its claim delay runs.
    Precedence,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// A claim was sent.
    Claiming {
        /// Everything up to here has been judged.
        after: Offset,
    },
    /// An operator ended the election.
    Ended {
        /// Who.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
    /// Beats are not coming back.
    FenceWarning {
        /// The term.
        term: Offset,
        /// How much of the lease is left.
        left: Duration,
        /// No heartbeat that was sent in this time has come back.
        silent: Duration,
    },
    /// A leader of lower priority was asked to resign: `--preempt`.
    Preempting {
        /// Its term.
        term: Offset,
        /// Its priority.
        priority: u16,
        /// This candidate's.
        own: u16,
    },
    /// The reader has handed over nothing for a while, although the log goes on: another one reads.
    ReaderStuck {
        /// Where the log is known to end.
        end: Offset,
        /// For how long.
        silent: Duration,
    },
    /// An operator asked the leader to stand down.
    Resigned {
        /// The term.
        term: Offset,
        /// Who.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
    /// The broker has no ids for topics: that one is deleted and made again may go unnoticed.
    TopicUnnamed,
    /// The topic has more partitions than roles.
    UnusedPartitions,
    /// `--overlap`: the job runs on until another has claimed.
    Yielding {
        /// The term.
        term: Offset,
        /// What it stands down for.
        why: Why,
        /// For how long at most.
        patience: Duration,
    },
}
