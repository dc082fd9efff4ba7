//! What users are told of an election, or of all roles of a process: each object returns notes among its actions. A note is one event of the
//! log, with its facts; the program and the library each say it in their own words. Inside a node some notes also start hooks, and tell the
//! guard that a term is released.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::fact::{Fact, Outcome};
use crate::health::Failure;
use crate::job::{CommandEnd, Hook, JobStatus};
use crate::mapping::Differs;
use crate::record::{Offset, Why};
use crate::time::{Span, Time};

/// At most this many different lists of others, of roles or of options, are reported.
pub(crate) const MOST_REPORTED: usize = 16;

/// An event of which users are told. A `term` is the offset of the claim that won it; `by` is the name of another candidate or of an operator,
/// if it is known.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each variant says what happened, and a field with an unclear meaning has a comment")]
pub enum Note {
    // ---- the election -----------------------------------------------------------------------------------------------
    /// A claim was sent. All records up to `after` were judged.
    Claiming { after: Offset },
    /// An operator ended the election.
    Ended { by: Option<Box<str>>, reason: Option<Box<str>> },
    /// The lease ran out or another candidate took the lead, and no process of the job is left.
    Fenced {
        term: Offset,
        /// `fenced` or `guard-died`.
        why: Why,
        loss: Loss,
        /// The time that was left of the lease.
        left: Duration,
        /// How long after the lease's end a process of the job was still alive; if it is set, the guarantee was broken.
        late: Option<Duration>,
    },
    /// Heartbeats are not read back, or do not extend the lease.
    FenceWarning {
        term: Offset,
        /// The time that is left of the lease.
        left: Duration,
        /// No heartbeat sent within this time has extended the lease.
        silent: Duration,
        /// For how long no broker had confirmed the topic's id when the last heartbeat was read back, if that is why it did not extend the lease.
        unconfirmed: Option<Duration>,
    },
    /// Nothing is claimed before `until`, unless another candidate is known to have gone by then: it maps a role to another partition, as `why`
    /// says in one line.
    MappingInDoubt { why: Box<Differs>, until: Time },
    /// The lead was won, until this time if no heartbeat is read back.
    Leading { term: Offset, until: Time },
    /// The lease is over without a fence warning. When the last heartbeat was read back, no broker had confirmed the topic's id for this long.
    LeaseUnconfirmed { term: Offset, unconfirmed: Duration },
    /// `--overlap`: another candidate's claim took effect, and this job runs beside the other's for `within` at most.
    Overlapped { term: Offset, by_term: Offset, by: Option<Box<str>>, within: Duration },
    /// `--preempt`: a leader of lower priority was asked to resign.
    Preempting { term: Offset, priority: u16, own: u16 },
    /// The reader has delivered no record for this long although the log grows up to `end`. It is replaced.
    ReaderStuck { end: Offset, silent: Duration },
    /// The node exits for good.
    Refused(Refusal),
    /// A term was released. If Kafka has not acknowledged it, the others may not know.
    Released { term: Offset, why: Why, delivered: bool },
    /// An operator asked the leader to resign.
    Resigned {
        term: Offset,
        by: Option<Box<str>>,
        reason: Option<Box<str>>,
        /// The name of the candidate that is to lead next, if one was named.
        successor: Option<Box<str>>,
    },
    /// Another candidate of this group stands for other roles, or had a role in another partition, as this line says. Said once for each list
    /// of roles.
    RolesDiffer(Box<Differs>),
    /// The candidate stands by.
    Standby(StandbyReason),
    /// Another candidate's claim took effect while this one led.
    Superseded { term: Offset, by_term: Option<Offset>, by: Option<Box<str>> },
    /// The topic's id has changed: the topic was deleted and created again.
    TopicRemade,
    /// The broker has no ids for topics, so the candidate may not notice that the topic was deleted and created again.
    TopicUnnamed,
    /// The topic has more partitions than roles.
    UnusedPartitions,
    /// `--overlap`: the job continues until another candidate has claimed, for `patience` at most.
    Yielding { term: Offset, why: Why, patience: Duration },

    // ---- Kafka, for all roles -----------------------------------------------------------------------------------------
    /// Kafka does not append records of this process, and repeats that.
    AppendRefused { error: String },
    /// No broker has answered for this long. Said at once, and then every 30 s.
    BrokerDown { error: String, down: Duration },
    /// A broker answers again, so long after its silence was noticed.
    BrokerUp { down: Duration },
    /// The group does not take this process's member.
    GroupRefuses { error: String },

    // ---- the job ----------------------------------------------------------------------------------------------------
    /// COMMAND has not been executed for this long, or longer: another machine should try.
    ExecHangs { term: Offset, for_at_least: Duration },
    /// The guard does not answer, and is killed with the job.
    GuardHangs,
    /// The guard died, or was killed because it did not answer (`is_killed`).
    GuardLost { is_killed: bool },
    /// The guard does not end although it was sent SIGKILL. These processes of its job are alive, as far as they can be seen; `are_all`: whether
    /// all processes could be looked at.
    GuardStuck { pids: Vec<u32>, are_all: bool },
    /// The health command failed, and the failure counts. The last one of `most` in a row makes the job unhealthy: another machine should try.
    HealthFailed { term: Offset, failure: Failure, most: u32 },
    /// A hook has failed.
    HookFailed { hook: Hook, end: CommandEnd },
    /// The main process ended, without a stop signal if `by_itself`.
    JobExited { term: Offset, status: JobStatus, ran: Duration, by_itself: bool },
    /// The job's main process was stopped by this signal. SIGTSTP: no process could continue it, and it was continued; logged once. SIGTTIN or
    /// SIGTTOU: it uses the terminal, which `neli-run` does not have; logged once. Any other: it holds the lead; logged once a run.
    JobStopped { pid: Option<u32>, signal: i32 },
    /// SIGKILL was needed for a stop with this reason.
    JobKilled { term: Offset, why: Why },
    /// The main process runs.
    JobStarted {
        term: Offset,
        pid: u32,
        /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
        attempt: u32,
        window: Option<Span>,
    },
    /// COMMAND could not be started. `counts`: as a failed run; one whose outcome is recorded does not.
    NotStarted { errno: i32, counts: bool },
    /// The run is over, and another one follows.
    Restarting {
        term: Offset,
        /// That of the next run.
        attempt: u32,
        /// From the end of the old tree on.
        delay: Duration,
    },
    /// The lead was won, and the first run waits.
    Settling { term: Offset, delay: Duration },
    /// The main process runs, but there is no free descriptor to watch it.
    StartedUnseen,
    /// The barrier began. SIGKILL follows after the timeout.
    Stopping { term: Offset, why: Why, timeout: Duration },
    /// These processes can't be killed.
    Stuck { pids: Vec<u32> },

    // ---- keys and windows -------------------------------------------------------------------------------------------
    /// The wall clock shows this window, and Kafka's clock was further away from it than clocks may differ when it took the claim, in milliseconds
    /// since 1970.
    ClockDiffers { shown: Span, claimed_ms: u64 },
    /// The topic of facts was missing, but a run of this key is known, which was recorded there.
    FactsLost { key: Box<str> },
    /// The facts can't be read or written, so no job runs.
    FactsUnavailable { error: Box<str> },
    /// The recorded fact is about a window that is more than one window ahead of the wall clock, so it does not count (S2).
    NotBelieved(Box<Fact>),
    /// The run's outcome, or that a window is over without a run, is not recorded yet. `leads`: this candidate keeps the lead for that.
    NotRecorded { outcome: Outcome, leads: bool, error: Box<str> },
    /// Another candidate stands, or stood, with other options of `--once`, `--window` and `--schedule` than this one; either may have none.
    OnceDiffers { name: Option<Box<str>>, theirs: Box<str>, ours: Box<str> },
    /// The key needs no run.
    OnceSkipped {
        key: Box<str>,
        /// The fact that was found; for windows it may be about a newer one.
        fact: Box<Fact>,
    },
    /// This candidate exits, and the outcome of its last run is not known to be recorded.
    OutcomeLost,
    /// The wall clock was set back into windows that are over (S4). Windows may run when it shows this time again, in milliseconds since 1970.
    SetBack { until_ms: u64 },
    /// An earlier leader's run of this window began and did not finish, and the window is over.
    Unfinished(Box<Fact>),
    /// The next window begins at this time of the wall clock, in milliseconds since 1970.
    WindowAwaited { next_ms: u64 },
    /// The windows from the first one's start to the last one's end are not run. `clock-set`: the wall clock was set forward over them, or was not
    /// read then because the process was stopped. `no-run`: no run of them is recorded, since nobody led then, or a run went on into them whose
    /// outcome is not recorded. `overrun`: the previous run continued into them (S3).
    WindowsSkipped { span: Span, why: &'static str },
}

/// The reason for which a lead ends at once, without a barrier.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loss {
    /// The history was cut: this candidate's records in the journal don't count any more.
    HistoryCut,
    /// The lease is over, by this process's clock or by the guard's answer.
    LeaseOver,
    /// Another candidate's claim took effect.
    Superseded,
}

/// Why a node was refused.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Refusal {
    /// Another candidate of this election uses `--overlap` and this one does not, or the other way round (O6).
    Overlap {
        /// The other candidate.
        name: Box<str>,
        /// Whether it is the other one that uses it.
        is_theirs: bool,
    },
    /// Another candidate of the group has other roles, or has them in other partitions.
    Roles(Box<Differs>),
    /// It was refused by Kafka, by R0, or by this machine, which can't start a guard. The line contains the reason.
    Said(Box<str>),
    /// The topic was deleted and created again, which the configuration does not accept.
    TopicRemade,
}

impl<T: Into<Box<str>>> From<T> for Refusal {
    fn from(line: T) -> Self {
        Self::Said(line.into())
    }
}

/// The reason why a standby waits.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
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
    /// There is no leader, and this process leads as many roles as `--max-roles` allows.
    Full,
    /// The records that were read don't show who leads.
    Undecided,
    /// Another candidate leads.
    Led,
    /// There is no leader, and the key's facts must be read or recorded first (K1, K3).
    Facts,
    /// There is no leader, and this machine lacks a guard, so that no job could run.
    NoGuard,
    /// It stood down, and another candidate must lead first.
    CoolingOff,
    /// There is no leader, and this candidate's claim delay is running, in which others may claim.
    Precedence,
    /// There is no leader, and Kafka has refused its last claim.
    Refused,
    /// There is no leader, and this candidate claims only if the consumer group chooses it.
    Unassigned,
}
