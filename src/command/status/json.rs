//! `status --json`: one object, whose fields docs/json.md describes. Every field is always present; an unknown value
//! is null.

use std::time::Duration;

use neli_kafka::ElectionId;
use neli_proto::journal::EarlierJob;
use neli_proto::leadership::{AgeBy, Leader, Leadership, ReadAt};
use neli_proto::observer::{KnownCandidate, Standby};
use neli_proto::record::MemberId;
use neli_proto::time::millis;
use serde::Serialize;

use super::Snapshot;
use crate::command::facts::RunLine;
use crate::report::election::{EndedPart, JobPart, ReleasePart, state};
use crate::report::log::timestamp;
use crate::report::runs::RunsPart;
use crate::text::json;

#[derive(Serialize)]
pub(super) struct Line<'a> {
    ts: String,
    group: &'a str,
    role: String,
    topic: &'a str,
    partition: i32,
    state: &'static str,
    why: Option<String>,
    claimable_since: Option<String>,
    leader: Option<LeaderLine<'a>>,
    release: Option<ReleasePart<'a>>,
    ended: Option<EndedPart<'a>>,
    earlier_job: Option<EarlierJobLine<'a>>,
    last_run: Option<RunLine<'a>>,
    runs: Option<RunsPart<'a>>,
    next_windows: Vec<String>,
    void_claims: u32,
    standbys: Vec<CandidateLine<'a>>,
}

#[derive(Serialize)]
struct EarlierJobLine<'a> {
    term: i64,
    name: Option<&'a str>,
    lease_ms: u64,
}

#[derive(Serialize)]
struct LeaderLine<'a> {
    name: Option<&'a str>,
    member: Option<&'a str>,
    term: i64,
    since: Option<String>,
    lease_ms: u64,
    lease_left_ms: u64,
    heartbeat_age_ms: u64,
    age_by: &'static str,
    job: Option<JobPart>,
    resign_asked_by: Option<&'a str>,
    resign_reason: Option<&'a str>,
    hello: Option<CandidateLine<'a>>,
}

/// A candidate, by its last hello.
#[derive(Serialize)]
pub(in crate::command) struct CandidateLine<'a> {
    name: Option<&'a str>,
    member: &'a str,
    host: Option<&'a str>,
    pid: Option<u32>,
    version: Option<&'a str>,
    elector: Option<&'a str>,
    group_refuses: Option<&'a str>,
    listen: Option<&'a str>,
    priority: u16,
    max_roles: Option<u32>,
    hello_age_ms: u64,
    failed_runs: u32,
    waits_ms: u64,
}

impl<'a> Line<'a> {
    pub(super) fn of(snapshot: &Snapshot<'a>) -> Self {
        let Snapshot { election, observer, at, .. } = snapshot;
        let of_nobody = Self {
            ended: observer.ended().map(|ended| EndedPart::of(ended, *at)),
            earlier_job: EarlierJobLine::of(observer.journal().earlier_job()),
            last_run: snapshot.last_run.map(|run| RunLine::of(&run.fact)),
            runs: snapshot.last_run.map(|run| RunsPart::of(&run.runs, run.next_windows(at.wall_ms).first().copied())),
            next_windows: snapshot
                .last_run
                .iter()
                .flat_map(|run| run.next_windows(at.wall_ms))
                .map(timestamp)
                .collect(),
            void_claims: observer.void_claims().map_or(0, |claims| claims.count),
            standbys: snapshot.standbys.iter().map(|standby| CandidateLine::of(snapshot, standby)).collect(),
            state: state(snapshot.leadership),
            ..Self::blank(election, *at)
        };
        let why = Some(snapshot.sentence());
        match snapshot.leadership {
            Leadership::Led { leader, age, left } => {
                Self { leader: Some(leader_line(snapshot, leader, age, left)), ..of_nobody }
            }
            Leadership::Overdue { leader, age, left, claimable_in } => Self {
                why,
                claimable_since: Some(timestamp(at.wall_ms.saturating_add(millis(claimable_in)))),
                leader: Some(leader_line(snapshot, leader, age, left)),
                ..of_nobody
            },
            Leadership::Silent { leader, claimable_since, claimable_in, .. } => {
                let since = at.wall_ms.saturating_add(millis(claimable_in)).saturating_sub(millis(claimable_since));
                let age = observer.age(leader.last_record, *at);
                let leader = Some(leader_line(snapshot, leader, age, Duration::ZERO));
                Self { why, claimable_since: Some(timestamp(since)), leader, ..of_nobody }
            }
            Leadership::Released { release, .. } => {
                let release = ReleasePart::of(release, *at);
                let claimable_since = Some(release.at.clone());
                Self { why, claimable_since, release: Some(release), ..of_nobody }
            }
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Unknown(_) => Self { why, ..of_nobody },
        }
    }

    /// The line about an election that could not be read.
    pub(super) fn unknown(election: &'a ElectionId, at: ReadAt, why: &str) -> Self {
        Self { why: Some(why.to_owned()), ..Self::blank(election, at) }
    }

    fn blank(election: &'a ElectionId, at: ReadAt) -> Self {
        Self {
            ts: timestamp(at.wall_ms),
            group: &election.group,
            role: election.label(),
            topic: &election.topic,
            partition: election.partition,
            state: "unknown",
            why: None,
            claimable_since: None,
            leader: None,
            release: None,
            ended: None,
            earlier_job: None,
            last_run: None,
            runs: None,
            next_windows: Vec::new(),
            void_claims: 0,
            standbys: Vec::new(),
        }
    }

    /// The line.
    pub(super) fn text(&self) -> String {
        json(self) + "\n"
    }
}

fn leader_line<'a>(snapshot: &Snapshot<'a>, leader: &'a Leader, age: Duration, left: Duration) -> LeaderLine<'a> {
    LeaderLine {
        name: leader.name.as_deref(),
        member: leader.member.as_ref().map(MemberId::as_str),
        term: leader.term,
        since: leader.claimed_ms.map(timestamp),
        lease_ms: millis(leader.lease),
        lease_left_ms: millis(left),
        heartbeat_age_ms: millis(age),
        age_by: match leader.last_record.age_by() {
            AgeBy::Receipt => "receipt",
            AgeBy::Timestamp => "timestamp",
        },
        job: leader.job.map(|job| JobPart {
            state: job.state.name(),
            for_ms: job.since_ms.map(|since_ms| since_ms.saturating_add(millis(age))),
            pid: job.pid,
            attempt: job.attempt,
        }),
        resign_asked_by: leader.resign.as_ref().map(|resign| resign.by.as_deref().unwrap_or("somebody")),
        resign_reason: leader.resign.as_ref().and_then(|resign| resign.reason.as_deref()),
        hello: snapshot
            .observer
            .leaders_hello()
            .map(|hello| CandidateLine::with(hello, snapshot.observer.age(hello.received, snapshot.at))),
    }
}

impl<'a> EarlierJobLine<'a> {
    fn of(job: &'a EarlierJob) -> Option<Self> {
        match job {
            EarlierJob::Overlapped { term, name, lease, .. } => {
                Some(Self { term: *term, name: name.as_deref(), lease_ms: millis(*lease) })
            }
            EarlierJob::Gone | EarlierJob::Unknown => None,
        }
    }
}

impl<'a> CandidateLine<'a> {
    fn of(snapshot: &Snapshot<'a>, standby: &Standby<'a>) -> Self {
        let waits_ms = millis(snapshot.observer.waits(standby, snapshot.at));
        Self { failed_runs: standby.failed_runs, waits_ms, ..Self::with(standby.candidate, standby.age) }
    }

    pub(in crate::command) fn with(candidate: &'a KnownCandidate, age: Duration) -> Self {
        Self {
            name: candidate.name.as_deref(),
            member: candidate.member.as_str(),
            host: candidate.host.as_deref(),
            pid: candidate.pid,
            version: candidate.version.as_deref(),
            elector: candidate.elector.as_deref(),
            group_refuses: candidate.group_refuses.as_deref(),
            listen: candidate.listen.as_deref(),
            priority: candidate.priority,
            max_roles: candidate.max_roles,
            hello_age_ms: millis(age),
            failed_runs: 0,
            waits_ms: 0,
        }
    }
}
