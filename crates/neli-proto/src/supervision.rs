//! The words of a supervisor: what it is told, what it wants done, and what it says of the job.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::candidacy::{Departure, LocalEvent, Loss, Right};
use super::command::CommandEnd;
use super::health::{Failure, HealthPolicy};
use super::record::{Offset, Why};
use super::restart::RestartPolicy;
use super::time::Time;

/// How the job is treated.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Whether it is run again.
    pub restart: RestartPolicy,
    /// What follows the loss of the lead.
    pub on_loss: OnLoss,
    /// How its health is looked after, if it is.
    pub health: Option<HealthPolicy>,
}

/// `--on-loss`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OnLoss {
    /// It goes for good.
    Exit,
    /// It stands by, and runs the job again when it is elected.
    Standby,
}

/// How the job is stopped.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StopPolicy {
    /// The number of the signal that asks the job to stop.
    pub signal: i32,
    /// From that signal to SIGKILL; zero is SIGKILL with no signal before it.
    pub timeout: Duration,
    /// The guard answers this long before a deadline, or is killed.
    pub kill_margin: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum JobStatus {
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// This signal killed it.
    Signaled(i32),
}

impl JobStatus {
    /// The status that a shell would show: 128 + n for signal n.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX),
        }
    }
}

/// Whose the foreground of `neli-run`'s terminal is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Foreground {
    /// Neither the job's nor `neli-run`'s, or there is no terminal.
    Elsewhere,
    /// The job's.
    Job,
    /// That of `neli-run`'s own process group.
    NeliRun,
}

/// Things that happened to the job, to its guard and to `neli-run`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The guard has answered the spawn, or a lease: its deadline is this.
    Answered {
        /// The deadline that it holds.
        until: Time,
    },
    /// The guard killed the tree at the deadline, or refused to start it so late; nothing of the term is left.
    Fenced {
        /// The term: a word about one that is over may come late.
        term: Offset,
        /// When nothing was left; `None` where no job was alive.
        gone_at: Option<Time>,
    },
    /// What was asked for by [`Action::LookAtForeground`].
    ForegroundSeen(Foreground),
    /// Nothing of the tree is left.
    Gone,
    /// The guard is dead and has been waited for: the tree is ours now.
    GuardDied,
    /// The health command has ended.
    HealthEnded {
        /// Which.
        id: u32,
        /// How.
        end: CommandEnd,
        /// The last line of its output; may be empty.
        last_line: Box<str>,
    },
    /// The job's main process was stopped by a signal.
    JobStopped {
        /// Its number.
        signal: i32,
        /// Whose the terminal's foreground is.
        foreground: Foreground,
        /// `neli-run` may stop: there is somebody to continue it.
        continuable: bool,
    },
    /// The tree's rest was killed at the stop timeout.
    KilledAtTimeout,
    /// The main process ended.
    MainExited {
        /// How.
        status: JobStatus,
        /// Whether it left children behind.
        left: bool,
        /// Whether it had the terminal's foreground.
        foreground: bool,
    },
    /// COMMAND could not be started.
    NotStarted {
        /// 126 or 127.
        code: u8,
        /// What the system said.
        error: String,
    },
    /// A signal to `neli-run` that is passed on.
    PassSignal {
        /// Its number.
        signal: i32,
        /// To the whole group, else to the main process.
        to_group: bool,
    },
    /// The job's main process runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// The job's main process runs, and can't be watched: that is no run.
    StartedUnseen {
        /// Its process id.
        pid: u32,
        /// Why it can't.
        error: String,
    },
    /// A signal told `neli-run` to stop.
    StopSignal {
        /// Its number.
        signal: i32,
    },
    /// These are still there one lease after SIGKILL.
    Stuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// TSTP to `neli-run`.
    SuspendSignal {
        /// There is somebody to continue it.
        continuable: bool,
    },
    /// HUP to `neli-run`, whose terminal is gone.
    TerminalGone,
    /// INT or QUIT, not by a process: the terminal sent it to all of `neli-run`'s process group.
    Typed {
        /// Its number.
        signal: i32,
    },
}

/// What the candidate says of the lead.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LeadEvent {
    /// The candidate leaves.
    Departed(Departure),
    /// The candidate's right was extended.
    Extended(Right),
    /// The candidate's right is over at once.
    Killed(Loss),
    /// The candidate leads.
    Led(Right),
    /// The candidate stands down: the barrier.
    StoppedFor(Why),
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Run the health command beside the job.
    CheckHealth {
        /// To be said with its end.
        id: u32,
        /// When it is killed.
        kill_at: Time,
    },
    /// At the end, die of this signal: it was the terminal's.
    DieOf {
        /// SIGINT or SIGQUIT.
        signal: i32,
        /// Send it to the whole of `neli-run`'s process group: the job alone has had it.
        to_group: bool,
    },
    /// End with this status.
    Exit(Ending),
    /// Give up waiting for a claim or a delivery.
    GiveUpWaiting,
    /// Kill the guard, since it does not answer, and what can be found of the job beside it.
    KillGuard,
    /// The guard is dead: kill what it left, and say [`Event::Gone`] when nothing is.
    KillOrphans,
    /// Say whose the terminal's foreground is: [`Event::ForegroundSeen`].
    LookAtForeground,
    /// Say so.
    Note(Note),
    /// Tell the guard.
    Order(Order),
    /// Start a new guard.
    StartGuard,
    /// Tell the candidate.
    Tell(LocalEvent),
}

/// What the guard is told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Order {
    /// The lease holds until then.
    Extend(Right),
    /// Give the job the terminal's foreground, if `neli-run` has it, and SIGCONT.
    HandOn,
    /// SIGKILL to the tree now.
    Kill,
    /// The term is over: nothing of it is started or extended any more (R6).
    Over {
        /// The term.
        term: Offset,
    },
    /// A signal for the job.
    Signal {
        /// Its number.
        signal: i32,
        /// To the whole group, else to the main process.
        to_group: bool,
    },
    /// Start the job.
    Spawn {
        /// The right to run it.
        right: Right,
        /// 1 for the first run in this term.
        attempt: u32,
    },
    /// The barrier.
    Stop {
        /// The stop signal; none when there is no time for one.
        signal: Option<i32>,
        /// SIGKILL from then on.
        kill_at: Time,
    },
    /// Take the terminal's foreground back, if it is the job's.
    TakeBack,
}

/// With what status to end, and whose it is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ending {
    /// Nothing led to a status of the job's: the election was ended.
    Ended,
    /// The job's own.
    Job(JobStatus),
    /// The lead was lost.
    Lost(Lost),
    /// The job failed too often.
    RestartLimit,
    /// Kafka refuses for good, or the topic may not carry an election.
    Refused,
    /// Something could not be killed.
    Stuck,
    /// Stopped by this signal while no job was alive.
    StoppedBy(i32),
    /// Not leading within `--wait`.
    WaitedEnough,
}

/// What became of the job when the lead was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lost {
    /// It was killed because the right to run it was over.
    Fenced,
    /// It was killed at the stop timeout.
    Killed,
    /// It stopped by itself in time, or none ran.
    Stopped,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The guard does not answer, and is killed with the job.
    GuardHangs,
    /// The guard died, or was killed because it did not answer.
    GuardLost,
    /// The health command failed, and that counts; of so many failures in a row that are one too many.
    HealthFailed(Failure, u32),
    /// The main process ended.
    JobExited {
        /// How.
        status: JobStatus,
        /// For how long it ran.
        ran: Duration,
    },
    /// The job has stopped itself where nobody could continue it, and was continued. Said once.
    JobContinued,
    /// The job wants the terminal, is stopped for it, and `neli-run` has not got it. Said once.
    JobInBackground,
    /// SIGKILL was needed.
    JobKilled {
        /// Why the job was being stopped.
        why: Why,
    },
    /// The main process runs.
    JobStarted {
        /// Its process id.
        pid: u32,
        /// 1 for the first run in this term.
        attempt: u32,
    },
    /// COMMAND could not be started.
    NotStarted {
        /// What the system said.
        error: String,
    },
    /// The run is over, and another follows.
    Restarting {
        /// The number of the next run in this term.
        attempt: u32,
        /// How long after the end of the old tree.
        delay: Duration,
    },
    /// The barrier began.
    Stopping {
        /// Why.
        why: Why,
    },
    /// These can't be killed.
    Stuck {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// So many failures in a row: another machine is to try.
    Unhealthy(Failure),
}
