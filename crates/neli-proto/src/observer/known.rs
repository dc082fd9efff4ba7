//! What is seen: leader, job, release, standbys, and what changes.

use alloc::boxed::Box;
use core::time::Duration;

use super::{OverlappedJob, Receipt, millis};
use crate::failed_runs;
use crate::journal::Term;
use crate::listener::silence;
use crate::process_hello::ProcessHello;
use crate::record::{Body, JobState, MemberId, Offset, Record, What};

/// A leader beats at least this often, unless it was told otherwise.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);

/// How long a beat may take from the leader to the reader.
const DELIVERY: Duration = Duration::from_millis(200);

/// Who leads, or led last.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leader {
    /// Its member id; none where only records that do not tell it were read.
    pub member: Option<MemberId>,
    /// How it is called.
    pub name: Option<Box<str>>,
    /// The term: its fencing token.
    pub term: Offset,
    /// The longest lease that its records tell of.
    pub lease: Duration,
    /// When its claim was appended, in milliseconds since 1970; none where the claim was not read.
    pub claimed_ms: Option<u64>,
    /// Its last word: claim or beat.
    pub last_record: Receipt,
    /// What its job does, as its last beat told.
    pub job: Option<Job>,
    /// Somebody has asked it to stand down.
    pub resign: Option<ResignRequest>,
    /// Between its last two words, by the broker's clock.
    pub(super) interval: Option<Duration>,
}

/// A job, as a beat tells of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Job {
    /// What it does.
    pub state: JobState,
    /// Its main process.
    pub pid: Option<u32>,
    /// 1 for the first run in its term.
    pub attempt: Option<u32>,
    /// For how long it was in this state when the beat was written, in milliseconds.
    pub since_ms: Option<u64>,
}

/// Somebody has asked a leader to stand down.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResignRequest {
    /// Who.
    pub by: Option<Box<str>>,
    /// And why.
    pub reason: Option<Box<str>>,
}

/// How a term ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// The term.
    pub term: Offset,
    /// Who released it.
    pub name: Option<Box<str>>,
    /// The member that released it.
    pub member: Option<MemberId>,
    /// Why, as it says.
    pub why: Option<Box<str>>,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// For how long after the lease's end something of the job may have been alive.
    pub late: Option<Duration>,
    /// `--once`: the key whose run has ended.
    pub once: Option<Box<str>>,
    /// When.
    pub received: Receipt,
}

/// Claims that were void.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VoidClaims {
    /// How many.
    pub count: u32,
    /// Whose was the last.
    pub by: Option<Box<str>>,
    /// When that was.
    pub received: Receipt,
}

/// A candidate, as its last hello tells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownCandidate {
    /// Its member id.
    pub member: MemberId,
    /// How it is called.
    pub name: Option<Box<str>>,
    /// Its machine.
    pub host: Option<Box<str>>,
    /// Its supervisor.
    pub pid: Option<u32>,
    /// The program's version.
    pub version: Option<Box<str>>,
    /// `group` or `log`.
    pub elector: Option<Box<str>>,
    /// `--priority`.
    pub priority: u16,
    /// `--roles`: its hello is about all of them.
    pub has_many_roles: bool,
    /// `--max-roles`: how many roles it leads at most; none where that is not limited.
    pub max_roles: Option<u32>,
    /// `--overlap`: whether it was given.
    pub overlaps: bool,
    /// When.
    pub received: Receipt,
}

impl KnownCandidate {
    /// A process with many roles.
    pub(super) fn of_process(hello: ProcessHello, received: Receipt) -> Self {
        let ProcessHello { member, name, host, pid, version, elector, max_roles, .. } = hello;
        let (priority, has_many_roles, overlaps) = (0, true, false);
        Self { member, name, host, pid, version, elector, priority, has_many_roles, max_roles, overlaps, received }
    }
}

/// A candidate that stands by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standby<'a> {
    /// Which.
    pub candidate: &'a KnownCandidate,
    /// How long ago it said hello.
    pub age: Duration,
    /// So many of its runs have failed in a row.
    pub failed_runs: u32,
}

/// Who leads, or why nobody does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leadership<'a> {
    /// Somebody leads.
    Led {
        /// Who.
        leader: &'a Leader,
        /// How old its last word is.
        age: Duration,
        /// What is left of its lease, counted from its last word: at most so much, since a lease runs from the sending.
        left: Duration,
    },
    /// The log's head was deleted, and what is left holds no record of the election.
    Forgotten,
    /// Nobody has led, as far as the log goes back, which is to its beginning.
    NeverLed,
    /// The last term was released.
    Released {
        /// How.
        release: &'a Release,
        /// How long ago.
        age: Duration,
    },
    /// The leader has been silent for longer than its lease: it leads no more.
    Silent {
        /// Who led.
        leader: &'a Leader,
        /// How old its last word is.
        age: Duration,
        /// For how long whoever stands by may have claimed.
        claimable_since: Duration,
    },
    /// The records do not tell: the one that says who leads is missing.
    Unknown,
}

/// What a record has changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// `--overlap`: nothing is left of a job that might run beside the leader's.
    EarlierJobGone {
        /// Its term.
        term: Offset,
    },
    /// A leader that was silent beyond its lease has been heard again, and leads on.
    SilenceEnded {
        /// For how long it was silent.
        silent: Duration,
    },
    /// The leader's job.
    Job(Job),
    /// Before the record was written the leader had been silent beyond its lease, by the broker's timestamps: told where that is read
    /// later. [`Observer::silent_at`](super::Observer::silent_at) is for what is read as it is written.
    FellSilent(Silence),
    /// Another term: [`Observer::leader`](super::Observer::leader) tells whose.
    Led,
    /// Records are missing: who leads can't be told.
    Missing,
    /// `--overlap`: a job may run beside the leader's from now on.
    Overlapped(OverlappedJob),
    /// The term is over.
    Released(Release),
    /// An operator asks for something.
    Requested {
        /// What.
        what: What,
        /// Who asks.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
    /// `--overlap`: the leader is to stop, and its job runs on until another has claimed.
    Yields,
}

impl Standby<'_> {
    /// How much longer it waits before it claims, since its last runs have failed.
    #[must_use]
    pub fn back_off(&self) -> Duration {
        failed_runs::back_off(self.failed_runs)
    }
}

/// A leader's silence beyond its lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Silence {
    /// The leader's term.
    pub term: Offset,
    /// How it is called.
    pub name: Box<str>,
    /// Its lease.
    pub lease: Duration,
    /// For how long it has been silent by now, or was before the next record.
    pub silent: Duration,
    /// When others might claim, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Silence {
    /// Of this leader, which was silent for so long, up to a moment in milliseconds since 1970; none where that is within its lease.
    #[must_use]
    pub fn of(leader: &Leader, silent: Duration, until_ms: u64) -> Option<Self> {
        let over = silence(leader.lease);
        let since_ms = until_ms.saturating_sub(millis(silent.checked_sub(over)?));
        Some(Self { term: leader.term, name: leader.shown().into(), lease: leader.lease, silent, since_ms })
    }
}

impl Leader {
    pub(super) fn of(term: &Term, last_record: Receipt, claimed_ms: Option<u64>) -> Self {
        Self {
            member: term.member.clone(),
            name: term.name.clone(),
            term: term.offset,
            lease: term.lease,
            claimed_ms,
            last_record,
            job: None,
            resign: None,
            interval: None,
        }
    }

    /// Within so long two of its beats are read, if it is alive.
    pub(super) fn two_beats(&self) -> Duration {
        let interval = self.interval.unwrap_or(LONGEST_INTERVAL).min(self.lease / 3).min(LONGEST_INTERVAL);
        interval * 2 + DELIVERY
    }

    /// How it is called, or its member id where it has no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), self.member.as_ref())
    }
}

impl Job {
    pub(super) const fn without_time(self) -> (JobState, Option<u32>, Option<u32>) {
        (self.state, self.pid, self.attempt)
    }
}

impl Release {
    /// `record` is the release itself, where it was read.
    pub(super) fn of(term: Offset, why: Option<Box<str>>, record: Option<&Record>, received: Receipt) -> Self {
        let (name, member) = record.map_or((None, None), |record| (record.name.clone(), record.member.clone()));
        let (exit, late_ms, once) = match record.map(|record| &record.body) {
            Some(Body::Release { exit, late_ms, once, .. }) => (*exit, *late_ms, once.clone()),
            _ => (None, None, None),
        };
        Self { term, name, member, why, exit, late: late_ms.map(Duration::from_millis), once, received }
    }

    /// How whoever released it is called.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), self.member.as_ref())
    }
}

impl KnownCandidate {
    /// How it is called, or its member id where it has no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), Some(&self.member))
    }
}

pub(super) fn shown<'a>(name: Option<&'a str>, member: Option<&'a MemberId>) -> &'a str {
    name.or_else(|| member.map(MemberId::as_str)).unwrap_or("somebody")
}
