//! The actions of a candidate, and its reports about the election.

use alloc::boxed::Box;
use core::time::Duration;

use crate::guard::Grant;
use crate::kafka::Request;
use crate::record::{Offset, Why};
use crate::supervisor::{Departure, Loss};
use crate::time::Time;

/// An action that the candidate's owner must perform.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Exit: no term is held, and no claim is in flight.
    Depart(Departure),
    /// Tell the guard the new end of the lease.
    Extend(Grant),
    /// Do this in Kafka.
    Kafka(Request),
    /// Kill the job at once, also before the lease's end.
    Kill(Loss),
    /// The job may run until the end of this grant.
    Lead(Grant),
    /// Terms start from 0 again: the guard must forget the terms that it held (R5).
    ForgetTerms,
    /// Log this note.
    Note(Note),
    /// A milestone of the election: guard and hooks act on it, and it is logged.
    Reached(Milestone),
    /// Exit for good: another candidate of this election uses `--overlap` and this one does not, or the other way round.
    Refuse {
        /// The reason, in one line.
        why: Box<str>,
    },
    /// Begin the barrier: stop the job, and report when no process of it is left. Beats continue.
    StopJob(Why),
    /// Begin the barrier with a time limit. No more beats are sent.
    StopJobWithin {
        /// The reason.
        why: Why,
        /// SIGKILL follows after this time, or after the stop timeout if that is shorter.
        within: Duration,
    },
    /// Stop the process once it has left the group: no term is held, no claim is in flight, and none will be until
    /// [`LocalEvent::Continued`](super::LocalEvent::Continued).
    Suspend,
}

/// The milestones of an election, on which guard and hooks act.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Milestone {
    /// The lease ran out or another candidate took the lead, and no process of the job is left.
    Fenced {
        /// The term.
        term: Offset,
        /// The reason, `fenced` or `guard-died`.
        why: Why,
        /// How the lead was lost.
        loss: Loss,
        /// The time that was left of the lease.
        left: Duration,
        /// How long after the lease's end a process of the job was still alive; if it is set, the guarantee was broken.
        late: Option<Duration>,
    },
    /// The lead was won.
    Leading {
        /// The term.
        term: Offset,
        /// The end of the lease if no beat is read back.
        until: Time,
    },
    /// `--overlap`: another candidate's claim took effect, and this job continues beside the other's for a limited time.
    Overlapped {
        /// The term that has ended.
        term: Offset,
        /// The other candidate's term.
        by_term: Offset,
        /// The other candidate's name.
        by: Option<Box<str>>,
        /// The time limit.
        within: Duration,
    },
    /// A term was released, or its release failed.
    Released {
        /// The term.
        term: Offset,
        /// The reason.
        why: Why,
        /// Whether Kafka acknowledged it.
        delivered: bool,
    },
    /// The candidate stands by.
    Standby(StandbyReason),
    /// Another candidate's claim took effect while this one led.
    Superseded {
        /// The term that has ended.
        term: Offset,
        /// The other candidate's term.
        by_term: Option<Offset>,
        /// The other candidate's name.
        by: Option<Box<str>>,
    },
    /// The topic's id has changed: the topic was deleted and created again.
    TopicRemade,
}

/// The reason why a standby waits.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StandbyReason {
    /// The leader, as far as it is known.
    pub leader: Option<Box<str>>,
    /// The leader's term.
    pub term: Option<Offset>,
    /// Why the candidate may not claim yet.
    pub why: Option<Waiting>,
}

/// Why a standby may not claim yet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Waiting {
    /// Processes with roles may stand in this group, and have time to answer its hello.
    Answer,
    /// Its last runs failed, so the other candidates claim first.
    BackingOff,
    /// The history was cut, or the topic was created again, and the records that were read since don't show who leads.
    Cut,
    /// The records that were read don't show who leads.
    Undecided,
    /// Another candidate leads.
    Led,
    /// There is no leader, and this machine lacks a guard, so that no job could run.
    NoGuard,
    /// It stood down, and another candidate must lead first.
    CoolingOff,
    /// There is no leader, and this candidate's claim delay is running, in which others may claim.
    Precedence,
}

/// A note for the log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// A claim was sent.
    Claiming {
        /// The offset up to which the claimant has judged all records.
        after: Offset,
    },
    /// An operator ended the election.
    Ended {
        /// The operator.
        by: Option<Box<str>>,
        /// The operator's reason.
        reason: Option<Box<str>>,
    },
    /// Beats are not read back, or do not extend the lease.
    FenceWarning {
        /// The term.
        term: Offset,
        /// The time that is left of the lease.
        left: Duration,
        /// No heartbeat sent within this time has extended the lease.
        silent: Duration,
        /// For how long no broker has confirmed the topic's id, if that is why heartbeats that were read back did not extend the lease.
        unconfirmed: Option<Duration>,
    },
    /// `--preempt`: a leader of lower priority was asked to resign.
    Preempting {
        /// The leader's term.
        term: Offset,
        /// The leader's priority.
        priority: u16,
        /// This candidate's priority.
        own: u16,
    },
    /// The reader has delivered no record for a while although the log grows. It is replaced.
    ReaderStuck {
        /// The known end of the log.
        end: Offset,
        /// How long no record was delivered.
        silent: Duration,
    },
    /// An operator asked the leader to resign.
    Resigned {
        /// The term.
        term: Offset,
        /// The operator.
        by: Option<Box<str>>,
        /// The operator's reason.
        reason: Option<Box<str>>,
    },
    /// The lease is over without a fence warning. Heartbeats were read back, but no broker has confirmed the topic's id.
    LeaseUnconfirmed {
        /// The term.
        term: Offset,
        /// For how long no broker has confirmed it.
        unconfirmed: Duration,
    },
    /// The broker has no ids for topics, so the candidate may not notice that the topic was deleted and created again.
    TopicUnnamed,
    /// The topic has more partitions than roles.
    UnusedPartitions,
    /// `--overlap`: the job continues until another candidate has claimed.
    Yielding {
        /// The term.
        term: Offset,
        /// Why it stands down.
        why: Why,
        /// The time limit.
        patience: Duration,
    },
}
