//! What a supervisor tells its candidate of the machine.

use alloc::boxed::Box;
use core::time::Duration;

use super::NothingLeft;
use crate::record::{JobState, MemberId, Why};
use crate::time::Time;

/// Things that happened on this machine. They come from the supervisor, or from the node: nobody else can say that nothing of a
/// job is left.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum LocalEvent {
    /// The process was told to go on: SIGCONT.
    Continued,
    /// The lease of the current term is over, whatever was believed here: the guard fenced, or died.
    Fenced {
        /// What the release will say.
        why: Why,
    },
    /// The lead is handed over, where one is held: another holds fewer roles than its share.
    HandOver {
        /// For whom; none for the member to which the group has assigned the partition.
        to: Option<MemberId>,
    },
    /// The job is in another state.
    JobChanged(JobReport),
    /// No process of the job is left, and none will be started under this term (R6).
    NothingLeft(JobEnd),
    /// So much is added to the claim delay from now on; none when nothing is to be claimed.
    SpreadBy(Option<Duration>),
    /// The candidate is to go for good (`Stopped`, `Ended`, ...), to stand down and cool off (`Unhealthy`), or to stand
    /// down until it is [`Continued`](LocalEvent::Continued) (`Suspended`).
    StandDown {
        /// Why.
        why: Why,
        /// For good.
        leaving: bool,
    },
}

/// The end of a term's job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct JobEnd {
    /// Shows that it is so, and names the term.
    pub proof: NothingLeft,
    /// Why the term ends, unless the candidate knows better.
    pub why: Why,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// The candidate goes for good.
    pub leaving: bool,
    /// `--once`: the key, where this is the end of its run, and `exit` its outcome.
    pub once: Option<Box<str>>,
    /// When nothing was left; `None` where that was so by the guard's deadline, or no job was alive then.
    pub gone_at: Option<Time>,
    /// What is added to the claim delay from now on: its last runs failed. Zero where none did.
    pub back_off: Duration,
}

/// What the beats say of the job.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JobReport {
    /// Its state.
    pub state: JobState,
    /// Its main process.
    pub pid: Option<u32>,
    /// 1 for the first run in this term.
    pub attempt: u32,
    /// Since when it has been in this state.
    pub since: Time,
}
