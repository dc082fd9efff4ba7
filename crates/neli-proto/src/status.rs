//! What a candidate shows besides the leader: the standbys, counters, and the event that it waits for.

use alloc::boxed::Box;
use core::time::Duration;

use crate::record::MemberId;
use crate::time::Time;

/// Counters since the node began to listen; earlier records are not counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Number of terms that have begun.
    pub terms: u64,
    /// Number of void claims.
    pub void_claims: u64,
    /// Number of void claims since the last effective record of a leader.
    pub void_in_a_row: u32,
}

/// Another candidate of the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OtherCandidate {
    /// Its member id.
    pub member: MemberId,
    /// Its name.
    pub name: Option<Box<str>>,
    /// How long ago its last hello was read.
    pub age: Duration,
}

/// The event that a node waits for, and its time limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Awaits {
    /// The event.
    pub what: Awaited,
    /// When the event occurs or the wait for it ends; `None` if there is no such time.
    pub until: Option<Time>,
}

/// The events that a node may wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Awaited {
    /// The node's claim is read back.
    Claim,
    /// The node's own claim delay ends. There is no leader, and other candidates may claim before.
    ClaimDelay,
    /// SIGCONT arrives.
    Continuation,
    /// After standing down: another candidate leads, or two leases have passed.
    CoolOff,
    /// The release is acknowledged.
    Delivery,
    /// `--once`: the key's facts are read, or a fact that was written is acknowledged.
    Facts,
    /// No process of the job is left; SIGKILL is sent at `until` unless it was sent before.
    JobEnd,
    /// The job's main process runs.
    JobStart,
    /// R0: the check whether the topic is fit for an election has finished.
    Judgement,
    /// The job's next run.
    NextRun,
    /// R1: the records written before the node started are read.
    Records,
    /// R2: the leader, or a candidate that may lead, has been silent for long enough to claim.
    Silence,
    /// `--schedule`: the wall clock enters another window.
    Window,
}
