//! The data that an observer has: leader, job, release, standbys, and each change.

use alloc::boxed::Box;
use core::time::Duration;

use super::{OverlappedJob, Receipt};
use crate::failed_runs;
use crate::journal::Term;
use crate::late_beat::{DELIVERY, LateBeat, Punctuality, longest_interval};
use crate::listener::silence;
use crate::process_hello::ProcessHello;
use crate::record::{Body, JobState, MemberId, Offset, Record, What};
use crate::time::millis;
use crate::timings::LONGEST_LEASE;

/// The leader, or the last leader.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leader {
    /// Its member id; `None` if no record that was read contains it.
    pub member: Option<MemberId>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The term: its fencing token.
    pub term: Offset,
    /// The longest lease in its records.
    pub lease: Duration,
    /// When its claim was appended, in milliseconds since 1970; `None` if the claim was not read.
    pub claimed_ms: Option<u64>,
    /// Its last record: a claim or a beat.
    pub last_record: Receipt,
    /// Whether its records were appended in time.
    pub(super) punctuality: Punctuality,
    /// The state of its job by its last beat.
    pub job: Option<Job>,
    /// A request to it to stand down.
    pub resign: Option<Request>,
}

/// A job as a beat describes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Job {
    /// Its state.
    pub state: JobState,
    /// Its main process.
    pub pid: Option<u32>,
    /// 1, and 1 more for each failed run before it.
    pub attempt: Option<u32>,
    /// How long it had been in this state when the beat was written, in milliseconds.
    pub since_ms: Option<u64>,
}

/// A request to a leader to stand down, or to all candidates to end the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The name of the operator.
    pub by: Option<Box<str>>,
    /// The reason that the operator gave.
    pub reason: Option<Box<str>>,
}

/// A request to end the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ended {
    /// Who made it, and why.
    pub request: Request,
    /// When it was read and written.
    pub received: Receipt,
}

/// The release of a term.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// The term.
    pub term: Offset,
    /// The name of the candidate that released it.
    pub name: Option<Box<str>>,
    /// The member that released it.
    pub member: Option<MemberId>,
    /// The reason in the release.
    pub why: Option<Box<str>>,
    /// The operator's request because of which it was released.
    pub request: Option<Request>,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// How long after the lease's end a process of the job may have been alive.
    pub late: Option<Duration>,
    /// `--once`: the key whose run ended.
    pub once: Option<Box<str>>,
    /// When the release was read and written.
    pub received: Receipt,
}

/// Void claims.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VoidClaims {
    /// The number of void claims.
    pub count: u32,
    /// The candidate of the last one.
    pub by: Option<Box<str>>,
    /// When the last one was read and written.
    pub received: Receipt,
}

/// A candidate as its last hello describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownCandidate {
    /// Its member id.
    pub member: MemberId,
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its machine.
    pub host: Option<Box<str>>,
    /// The process id of its supervisor.
    pub pid: Option<u32>,
    /// The program's version.
    pub version: Option<Box<str>>,
    /// `group` or `log`.
    pub elector: Option<Box<str>>,
    /// Why the group does not take it, in Kafka's words; `None` if it does, or if that is unknown.
    pub group_refuses: Option<Box<str>>,
    /// `--priority`.
    pub priority: u16,
    /// `--roles`: whether its hello is about all roles.
    pub has_many_roles: bool,
    /// `--max-roles`: the most roles that it leads; `None` without a limit.
    pub max_roles: Option<u32>,
    /// Whether `--overlap` was given.
    pub overlaps: bool,
    /// How long after its hello it claims nothing, because the records don't show it who leads; zero if they show it.
    pub undecided_for: Duration,
    /// When the hello was read and written.
    pub received: Receipt,
}

impl KnownCandidate {
    /// The candidate of a process with many roles.
    pub(super) fn of_process(hello: ProcessHello, received: Receipt) -> Self {
        // A limit of as many roles as there are is none.
        let count = hello.mapping().count();
        let max_roles = hello.max_roles.filter(|most| *most < count);
        let ProcessHello { member, name, host, pid, version, elector, group_refuses, priority, waits_ms, .. } = hello;
        Self {
            member,
            name,
            host,
            pid,
            version,
            elector,
            group_refuses,
            priority,
            has_many_roles: true,
            max_roles,
            overlaps: false,
            undecided_for: undecided_for(waits_ms),
            received,
        }
    }
}

/// The `waits_ms` of a hello. No candidate waits longer than for the longest lease: more is a mistake of the writer's.
pub(super) fn undecided_for(waits_ms: Option<u64>) -> Duration {
    Duration::from_millis(waits_ms.unwrap_or_default()).min(silence(LONGEST_LEASE))
}

/// A standby.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standby<'a> {
    /// The candidate.
    pub candidate: &'a KnownCandidate,
    /// The age of its last hello.
    pub age: Duration,
    /// The number of its failed runs in a row.
    pub failed_runs: u32,
}

/// The leader, or why there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leadership<'a> {
    /// There is a leader.
    Led {
        /// The leader.
        leader: &'a Leader,
        /// The age of its last record.
        age: Duration,
        /// The rest of its lease, counted from its last record. This is an upper limit, since the lease runs from the record's sending.
        left: Duration,
    },
    /// The leader has missed three heartbeats: it may be dead, and its lease may still run.
    Overdue {
        /// The leader.
        leader: &'a Leader,
        /// The age of its last record.
        age: Duration,
        /// The rest of its lease, at most.
        left: Duration,
        /// How long no standby will claim yet.
        claimable_in: Duration,
    },
    /// The log's head was deleted, and the rest contains no record of the election.
    Forgotten,
    /// There has never been a leader: the log was read from its beginning.
    NeverLed,
    /// The last term was released.
    Released {
        /// The release.
        release: &'a Release,
        /// The age of the release.
        age: Duration,
    },
    /// The leader has been silent for longer than its lease, so it no longer leads.
    Silent {
        /// The last leader.
        leader: &'a Leader,
        /// The age of its last record that was appended within its lease.
        age: Duration,
        /// How long a standby could have claimed.
        claimable_since: Duration,
        /// How long no standby will claim yet, because a late heartbeat came.
        claimable_in: Duration,
    },
    /// The leader is unknown: the record that names it is missing.
    Unknown,
}

/// A change by a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// `--overlap`: no process is left of the job that ran beside the leader's.
    EarlierJobGone {
        /// Its term.
        term: Offset,
    },
    /// A leader that had missed heartbeats has written a record, and still leads.
    SilenceEnded {
        /// The length of the silence.
        silent: Duration,
    },
    /// The leader's job.
    Job(Job),
    /// A heartbeat was appended so late after the previous record that the leader's lease was over: the leader no longer leads.
    LateBeat {
        /// The time between the two.
        gap: Duration,
    },
    /// Before this record the leader had been silent for longer than its lease: by the broker's timestamps if the record was read late. If it
    /// is read live, only another's claim shows it, and [`Observer::silent_at`](super::Observer::silent_at) came before.
    FellSilent(Silence),
    /// A new term; [`Observer::leader`](super::Observer::leader) is its leader.
    Led,
    /// Records are missing, so the leader is unknown.
    Missing,
    /// `--overlap`: a job may run beside the leader's from now on.
    Overlapped(OverlappedJob),
    /// The term is over.
    Released(Release),
    /// An operator's request.
    Requested {
        /// The request.
        what: What,
        /// The name of the operator.
        by: Option<Box<str>>,
        /// The reason that the operator gave.
        reason: Option<Box<str>>,
    },
    /// `--overlap`: the leader must stop; its job continues until another candidate has claimed.
    Yields,
}

impl Standby<'_> {
    /// The rest of its wait before it claims, because its last runs failed.
    #[must_use]
    pub fn back_off(&self) -> Duration {
        failed_runs::back_off(self.failed_runs)
    }
}

/// A leader that was silent for longer than its lease, or has missed heartbeats.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Silence {
    /// The leader's term.
    pub term: Offset,
    /// The leader's name.
    pub name: Box<str>,
    /// Its lease.
    pub lease: Duration,
    /// The length of the silence, until now or until the next record.
    pub silent: Duration,
    /// Since when, or from when on, other candidates may claim, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Silence {
    /// The silence of this leader of length `silent` up to a time in milliseconds since 1970.
    #[must_use]
    pub fn of(leader: &Leader, silent: Duration, until_ms: u64) -> Self {
        let since_ms = until_ms.saturating_sub(millis(silent)).saturating_add(millis(silence(leader.lease)));
        Self { term: leader.term, name: leader.shown().into(), lease: leader.lease, silent, since_ms }
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
            punctuality: Punctuality::beginning(term.offset, last_record.written_ms),
        }
    }

    /// The late heartbeat, if its last record was appended after its lease was over.
    #[must_use]
    pub fn late(&self) -> Option<LateBeat> {
        self.punctuality.late(self.term)
    }

    /// The time in which two of the leader's beats are read, if it is alive.
    pub(super) fn two_beats(&self) -> Duration {
        // The time between two records that were read does not show the interval, because a leader also beats when its job's state changes.
        longest_interval(self.lease) * 2 + DELIVERY
    }

    /// Its name, or its member id if it has no name.
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
    /// `record` is the release itself, if it was read.
    pub(super) fn of(term: Offset, why: Option<Box<str>>, record: Option<&Record>, received: Receipt) -> Self {
        let (name, member) = record.map_or((None, None), |record| (record.name.clone(), record.member.clone()));
        let (exit, late_ms, once) = match record.map(|record| &record.body) {
            Some(Body::Release { exit, late_ms, once, .. }) => (*exit, *late_ms, once.clone()),
            _ => (None, None, None),
        };
        let (late, once) = (late_ms.map(Duration::from_millis), once.map(|run| run.key));
        Self { term, name, member, why, request: None, exit, late, once, received }
    }

    /// The name of the candidate that released it.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), self.member.as_ref())
    }
}

impl KnownCandidate {
    /// Its name, or its member id if it has no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), Some(&self.member))
    }
}

pub(super) fn shown<'a>(name: Option<&'a str>, member: Option<&'a MemberId>) -> &'a str {
    name.or_else(|| member.map(MemberId::as_str)).unwrap_or("somebody")
}
