//! What is to be done for a node, and for a process with many roles. The objects of each add what they want to one kind of list, in the order in
//! which it must be done; the node passes on what concerns its owner, and does by itself what concerns another of its objects.

use alloc::boxed::Box;
use core::time::Duration;

use crate::fact::Fact;
use crate::guard::Order;
use crate::hello::Hello;
use crate::job::{Hook, JobStatus};
use crate::kafka::Request;
use crate::mapping::Differs;
use crate::note::Note;
use crate::record::{MemberId, Offset};
use crate::time::Span;

/// An action that the node's owner must perform.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Action {
    /// Record this fact in the topic of facts, and report [`FactsEvent::Appended`](crate::node::FactsEvent) or `NotAppended`. The owner adds the
    /// time of writing.
    AppendFact { id: u32, fact: Fact },
    /// Exit, and then die of this signal, SIGINT or SIGQUIT, since it came from the terminal. `to_group`: send it to the whole process group, since
    /// so far only the job has received it.
    DieOf { signal: i32, to_group: bool },
    /// The node has ended, with this status.
    Exit(Ending),
    /// Do this in Kafka.
    Kafka(Request),
    /// Kill the guard, which does not answer, and all processes of the job that can be found.
    KillGuard,
    /// Send SIGKILL to the hook of this number and all of its group.
    KillHook { id: u32 },
    /// Kill the processes that the dead guard left, and report [`OrphansGone`](crate::supervisor::Event::OrphansGone) when none is left.
    KillOrphans,
    /// Report which group has the terminal's foreground: [`ForegroundSeen`](crate::supervisor::Event::ForegroundSeen).
    LookAtForeground,
    /// Tell users. Some of the candidate's notes also concern the guard and the hooks, and after a refusal the node ends.
    Note(Note),
    /// Send this order to the guard. A health command is sent with a descriptor for its output.
    Order(Order),
    /// Read the key's facts in the topic of facts up to an end that is asked for from now on, and report
    /// [`FactsEvent::Read`](crate::node::FactsEvent). An earlier reading is dropped. The report must contain the number.
    ReadFacts { id: u32 },
    /// Replace the guard, which has the terms of a history that is gone: terms may start from 0 again (R5). The node waits until no job is alive.
    RenewGuard,
    /// Run a hook that does not run beside the job.
    RunHook(HookRun),
    /// Start a new guard.
    StartGuard,
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
    /// The attempt of the run that has ended, or of the job's present or last run in that term.
    pub attempt: u32,
    /// The run whose end is the event, if it is one's.
    pub ended: Option<EndedRun>,
}

/// A run whose main process has ended, or could not be started.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EndedRun {
    /// Its number in its term.
    pub(crate) number: u32,
    /// `NELI_ATTEMPT`.
    pub attempt: u32,
    /// How it ended.
    pub status: JobStatus,
    /// Whether its main process was alive: otherwise no instruction of COMMAND ran.
    pub(crate) started: bool,
    /// For how long its main process was alive.
    pub ran: Duration,
    /// Whether it ended without a stop signal.
    pub by_itself: bool,
    /// Its window, if it has one.
    pub window: Option<Span>,
}

/// The cause of the exit, which gives its status.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ending {
    /// The election was ended.
    Ended,
    /// The job's own status.
    Job(JobStatus),
    /// The lead was lost.
    Lost(Lost),
    /// `--once`, `--window`: the candidate was stopped, or the election ended, before the key was known to be done.
    NotDone {
        /// The signal that has stopped this process; without it the election was ended.
        signal: Option<i32>,
        /// The status of its run, unless that is 0.
        job: Option<JobStatus>,
    },
    /// The job failed too often.
    RestartLimit,
    /// Kafka refuses for good, or the topic may not carry an election.
    Refused,
    /// `--once`: the job must not be run.
    Skipped {
        /// The exit status for that.
        status: u8,
        /// The key is done. Otherwise it has failed, and no retries are left.
        is_done: bool,
    },
    /// A process could not be killed.
    Stuck,
    /// Stopped by this signal while no job was alive.
    StoppedBy(i32),
    /// The candidate did not lead within `--wait`.
    WaitedEnough,
}

/// How the job ended when the lead was lost. Of several ways the last one here counts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Lost {
    /// It stopped by itself in time, or none was running.
    #[default]
    Stopped,
    /// It was killed at the stop timeout, or at a second stop signal.
    Killed,
    /// It was killed because the lease was over.
    Fenced,
}

/// An action that the owner of the nodes of many roles must perform.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum RolesAction {
    /// Add this to the claim delay of the role from now on, or make no claim of it (`None`). No role is claimed before its first `Delay`.
    Delay { role: usize, extra: Option<Duration> },
    /// Stand down in this role, and name the successor.
    HandOver { role: usize, to: MemberId },
    /// Send one hello for all roles.
    Hello(Box<Hello>),
    /// Tell users, of all roles at once.
    Note(Note),
    /// Exit: another candidate maps a role to another partition.
    Refuse(Differs),
}
