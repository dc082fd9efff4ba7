//! `/status`: the snapshot as JSON, as docs/http.md describes it. The web page shows the same data.

use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::leadership::{Leader, Leadership, ReadAt};
use neli_proto::node::{Awaited, Status};
use neli_proto::record::MemberId;
use neli_proto::time::{Time, millis};
use serde::Serialize;

use super::snapshot::{Broker, RoleSnapshot, Snapshot};
use crate::report::election::{EndedPart, JobPart, ReleasePart, sentence, state};
use crate::report::log::timestamp;
use crate::report::notes;
use crate::report::runs::RunsPart;
use crate::text::{json, one_line};

fn past(moment: ReadAt, at: Time) -> String {
    timestamp(moment.wall_ms.saturating_sub(millis(moment.now.since(at))))
}

fn future(moment: ReadAt, at: Time) -> String {
    timestamp(moment.wall_ms.saturating_add(millis(at.since(moment.now))))
}

#[derive(Serialize)]
struct Page<'a> {
    ts: String,
    group: &'a str,
    topic: &'a str,
    name: &'a str,
    member: &'a str,
    version: &'static str,
    elector: &'static str,
    lease_ms: u64,
    broker: BrokerPart<'a>,
    roles: Vec<RolePart<'a>>,
}

/// Whether Kafka answers; if not, why and since when.
#[derive(Serialize)]
pub(crate) struct BrokerPart<'a> {
    pub(crate) up: bool,
    pub(crate) trouble: Option<&'a str>,
    pub(crate) since: Option<String>,
}

#[derive(Serialize)]
struct RolePart<'a> {
    role: &'a str,
    partition: i32,
    state: &'static str,
    why: Option<String>,
    leads: bool,
    position: &'static str,
    doing: String,
    claims_at: Option<String>,
    lease_left_ms: u64,
    leader: Option<LeaderPart<'a>>,
    release: Option<ReleasePart<'a>>,
    ended: Option<EndedPart<'a>>,
    runs: Option<RunsPart<'a>>,
    void_claims: u32,
    standbys: Vec<StandbyPart<'a>>,
}

#[derive(Serialize)]
struct LeaderPart<'a> {
    name: Option<&'a str>,
    member: Option<&'a str>,
    is_self: bool,
    term: i64,
    since: String,
    lease_ms: u64,
    lease_left_ms: u64,
    heartbeat_age_ms: u64,
    job: Option<JobPart>,
}

#[derive(Serialize)]
struct StandbyPart<'a> {
    name: Option<&'a str>,
    member: &'a str,
    is_self: bool,
    hello_age_ms: Option<u64>,
}

/// The object, on one line.
pub(super) fn render(snapshot: &Snapshot, moment: ReadAt) -> String {
    let about = &snapshot.about;
    let Broker { outage, refusal, group, .. } = &snapshot.broker;
    let trouble = outage.as_ref().or(refusal.as_ref()).or(group.as_ref());
    let page = Page {
        ts: timestamp(moment.wall_ms),
        group: &about.group,
        topic: &about.topic,
        name: &about.name,
        member: &about.member,
        version: env!("CARGO_PKG_VERSION"),
        elector: about.elector,
        lease_ms: millis(about.lease),
        broker: BrokerPart {
            up: snapshot.broker.is_up(),
            trouble: trouble.map(|(_, why)| why.as_str()),
            since: trouble.map(|(since, _)| past(moment, *since)),
        },
        roles: snapshot.roles.iter().map(|role| role_part(snapshot, role, moment)).collect(),
    };
    json(&page) + "\n"
}

fn role_part<'a>(snapshot: &'a Snapshot, role: &'a RoleSnapshot, moment: ReadAt) -> RolePart<'a> {
    let RoleSnapshot { label, partition, status, next, .. } = role;
    let current = role.leadership(&snapshot.broker, moment);
    RolePart {
        role: label,
        partition: *partition,
        state: state(current),
        why: (!current.is_led()).then(|| sentence(current).to_string()),
        leads: role.leads(moment.now),
        position: position(&status.position),
        doing: format!("{}{next}", notes::of_status(status, current, moment.wall_ms)),
        claims_at: claims_at(status, current).map(|at| future(moment, at)),
        lease_left_ms: millis(role.lease_left(moment.now)),
        leader: status.leader().map(|leader| leader_part(role, leader, moment)),
        release: status.release().map(|release| ReleasePart::of(release, moment)),
        ended: status.last_term.ended.as_ref().map(|ended| EndedPart::of(ended, moment)),
        runs: role.known_runs(moment.now).map(|known| RunsPart::of(&known.runs, known.next_window_ms)),
        void_claims: status.counts.void_in_a_row,
        standbys: standbys(snapshot, role, moment.now),
    }
}

fn leader_part<'a>(role: &'a RoleSnapshot, leader: &'a Leader, moment: ReadAt) -> LeaderPart<'a> {
    let age = moment.now.since(leader.last_record.read);
    // A leader knows the end of its own lease more exactly: the lease runs from the sending of its last heartbeat.
    let left = match leader.late() {
        _ if leader.is_self => role.lease_left(moment.now),
        Some(_) => Duration::ZERO,
        None => leader.lease.saturating_sub(age),
    };
    LeaderPart {
        name: leader.name.as_deref(),
        member: leader.member.as_ref().map(MemberId::as_str),
        is_self: leader.is_self,
        term: leader.term,
        since: past(moment, leader.since),
        lease_ms: millis(leader.lease),
        lease_left_ms: millis(left),
        heartbeat_age_ms: millis(age),
        job: job(&role.status, moment.now).filter(|_| leader.is_self),
    }
}

fn job(status: &Status, now: Time) -> Option<JobPart> {
    let Position::Leading { job, .. } = &status.position else { return None };
    Some(JobPart {
        state: job.state.name(),
        for_ms: Some(millis(now.since(job.since))),
        pid: job.pid,
        attempt: Some(job.attempt),
    })
}

/// The other candidates, and this one if it is a standby.
fn standbys<'a>(snapshot: &'a Snapshot, role: &'a RoleSnapshot, now: Time) -> Vec<StandbyPart<'a>> {
    let about = &snapshot.about;
    let own = StandbyPart { name: Some(&about.name), member: &about.member, is_self: true, hello_age_ms: None };
    let others = role.others(now).map(|(other, age)| StandbyPart {
        name: other.name.as_deref(),
        member: other.member.as_str(),
        is_self: false,
        hello_age_ms: Some(millis(age)),
    });
    role.stands_by().then_some(own).into_iter().chain(others).collect()
}

/// When this candidate claims, unless a leader's record comes before.
fn claims_at(status: &Status, current: Leadership<'_>) -> Option<Time> {
    let awaits = status.awaits?;
    let is_claim = matches!(awaits.what, Awaited::ClaimDelay | Awaited::CoolOff | Awaited::Silence);
    let may_claim = !current.is_led() && (!current.is_unknown() || status.leader().is_none());
    awaits.until.filter(|_| is_claim && may_claim)
}

/// Why this process does not lead, on one line.
pub(super) fn why_not_here(snapshot: &Snapshot, role: &RoleSnapshot, moment: ReadAt) -> String {
    let current = role.leadership(&snapshot.broker, moment);
    let led = current.leader().filter(|_| current.is_led());
    let term = led.map_or_else(String::new, |leader| format!(", term {}", leader.term));
    one_line(&format!("{}{term}", sentence(current)))
}

const fn position(position: &Position) -> &'static str {
    match position {
        Position::AwaitingJudgement { .. } | Position::Claiming => "claiming",
        Position::Departed => "departed",
        Position::Fenced { .. } => "fenced",
        Position::Leading { .. } => "leading",
        Position::Listening => "listening",
        Position::Overlapped { .. } => "overlapped",
        Position::Releasing { .. } => "releasing",
        Position::Standby(_) => "standby",
        Position::Suspended => "suspended",
    }
}
