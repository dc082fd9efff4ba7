//! `/status`: the snapshot as JSON, as docs/http.md describes it. The web page shows the same data.

use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::node::{Awaited, Known, Leader, Status, Vacancy};
use neli_proto::record::MemberId;
use neli_proto::time::{Time, millis};
use serde::Serialize;

use super::snapshot::{Broker, RoleSnapshot, Snapshot};
use crate::report::log::{because, spoken, timestamp};
use crate::report::notes;
use crate::report::runs::RunsPart;
use crate::text::{json, one_line};

/// One time by both clocks: the first is used for decisions, the second is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    /// Milliseconds since 1970.
    pub(super) wall_ms: u64,
}

impl Moment {
    fn past(self, at: Time) -> String {
        timestamp(self.wall_ms.saturating_sub(millis(self.now.since(at))))
    }

    fn future(self, at: Time) -> String {
        timestamp(self.wall_ms.saturating_add(millis(at.since(self.now))))
    }
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

#[derive(Serialize)]
struct BrokerPart<'a> {
    up: bool,
    trouble: Option<&'a str>,
    since: Option<String>,
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
    since: Option<String>,
    lease_ms: u64,
    lease_left_ms: u64,
    heartbeat_age_ms: u64,
    job: Option<JobPart>,
}

#[derive(Serialize)]
struct JobPart {
    state: &'static str,
    for_ms: u64,
    pid: Option<u32>,
    attempt: u32,
}

#[derive(Serialize)]
struct StandbyPart<'a> {
    name: Option<&'a str>,
    member: &'a str,
    is_self: bool,
    hello_age_ms: Option<u64>,
}

/// The leader, as far as is known. A process that has left the election does not know it any more.
pub(super) fn leader(status: &Status) -> Option<&Leader> {
    status.leader.as_ref().filter(|_| status.position != Position::Departed)
}

/// The object, on one line.
pub(super) fn render(snapshot: &Snapshot, moment: Moment) -> String {
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
            since: trouble.map(|(since, _)| moment.past(*since)),
        },
        roles: snapshot.roles.iter().map(|role| role_part(snapshot, role, moment)).collect(),
    };
    json(&page) + "\n"
}

fn role_part<'a>(snapshot: &'a Snapshot, role: &'a RoleSnapshot, moment: Moment) -> RolePart<'a> {
    let RoleSnapshot { label, partition, status, next, .. } = role;
    let known = status.known(moment.now, snapshot.broker.outage.is_none());
    RolePart {
        role: label,
        partition: *partition,
        state: state(status, known),
        why: why(status, known, moment),
        leads: role.leads(moment.now),
        position: position(&status.position),
        doing: format!("{}{next}", notes::of_status(status, known, (moment.now, moment.wall_ms))),
        claims_at: claims_at(status, known).map(|at| moment.future(at)),
        lease_left_ms: millis(role.lease_left(moment.now)),
        leader: leader(status).map(|leader| leader_part(role, leader, moment)),
        runs: role.known_runs(moment.now).map(|known| RunsPart::of(&known.runs, known.next_window_ms)),
        void_claims: status.counts.void_in_a_row,
        standbys: standbys(snapshot, role, moment.now),
    }
}

fn leader_part<'a>(role: &'a RoleSnapshot, leader: &'a Leader, moment: Moment) -> LeaderPart<'a> {
    let age = moment.now.since(leader.received);
    // A leader knows the end of its own lease more exactly: the lease runs from the sending of its last heartbeat.
    let left = match leader {
        _ if leader.is_self => role.lease_left(moment.now),
        _ if leader.is_silent(moment.now) => Duration::ZERO,
        _ => leader.lease.saturating_sub(age),
    };
    LeaderPart {
        name: leader.name.as_deref(),
        member: leader.member.as_ref().map(MemberId::as_str),
        is_self: leader.is_self,
        term: leader.term,
        since: leader.since.map(|since| moment.past(since)),
        lease_ms: millis(leader.lease),
        lease_left_ms: millis(left),
        heartbeat_age_ms: millis(age),
        job: job(&role.status, moment.now).filter(|_| leader.is_self),
    }
}

fn job(status: &Status, now: Time) -> Option<JobPart> {
    let Position::Leading { job, .. } = &status.position else { return None };
    Some(JobPart { state: job.state.name(), for_ms: millis(now.since(job.since)), pid: job.pid, attempt: job.attempt })
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
fn claims_at(status: &Status, known: Known) -> Option<Time> {
    let awaits = status.awaits?;
    let is_claim = matches!(awaits.what, Awaited::ClaimDelay | Awaited::CoolOff | Awaited::Silence);
    let may_claim = known != Known::Led && (known != Known::Nothing || status.leader.is_none());
    awaits.until.filter(|_| is_claim && may_claim)
}

/// The name that `neli-run status` uses.
const fn state(status: &Status, known: Known) -> &'static str {
    match (known, &status.vacancy) {
        (Known::Led, _) => "led",
        (Known::Overdue | Known::Silent, _) => "silent",
        (Known::Vacant, Some(Vacancy::Forgotten)) => "forgotten",
        (Known::Vacant, Some(Vacancy::NeverLed)) => "never-led",
        (Known::Vacant, Some(Vacancy::Released { .. })) => "released",
        (Known::Vacant, Some(Vacancy::Unknown) | None) | (Known::Nothing, _) => "unknown",
    }
}

/// Why there is no leader, or why that is unknown, as a sentence.
fn why(status: &Status, known: Known, moment: Moment) -> Option<String> {
    let silent = |leader: &Leader| {
        let (name, lease) = (leader.name.as_deref().unwrap_or("the leader"), spoken(leader.lease));
        match leader.late {
            Some(late) => {
                let gap = late.gap.as_secs();
                format!(
                    "{name} was silent for {gap}s (lease {lease}); a heartbeat that came after that extends no lease"
                )
            }
            None => {
                format!("{name} has been silent for {}s (lease {lease})", moment.now.since(leader.received).as_secs())
            }
        }
    };
    Some(match (known, &status.leader, &status.vacancy) {
        _ if status.position == Position::Departed => {
            "this process has left this election, and does not read it any more".to_owned()
        }
        _ if status.position == Position::Listening => "the journal is being read".to_owned(),
        (Known::Led, ..) => return None,
        (Known::Overdue, Some(leader), _) => {
            let claimable = moment.future(leader.claimable_at());
            format!("{}: unless a heartbeat comes, another may claim at {claimable}", silent(leader))
        }
        (Known::Nothing, Some(leader), _) => format!("Kafka does not answer; {}", silent(leader)),
        (_, Some(leader), _) => silent(leader),
        (Known::Nothing, None, Some(Vacancy::Forgotten | Vacancy::NeverLed | Vacancy::Released { .. })) => {
            "Kafka does not answer; nobody led when it last did".to_owned()
        }
        (_, None, Some(Vacancy::Forgotten)) => "the topic keeps no record of this election".to_owned(),
        (_, None, Some(Vacancy::NeverLed)) => "nobody has ever led".to_owned(),
        (_, None, Some(Vacancy::Released { term, why })) => {
            format!("term {term} was released: {}", because(why.as_deref().unwrap_or("no reason said")))
        }
        (_, None, Some(Vacancy::Unknown) | None) => "leader unknown: the journal does not say who leads".to_owned(),
    })
}

/// Why this process does not lead, on one line.
pub(super) fn why_not_here(snapshot: &Snapshot, status: &Status, moment: Moment) -> String {
    let of_leader = || match &status.leader {
        Some(leader) if !leader.is_self => {
            format!("{} leads, term {}", leader.name.as_deref().unwrap_or("another candidate"), leader.term)
        }
        _ => "its lease is over".to_owned(),
    };
    let known = status.known(moment.now, snapshot.broker.outage.is_none());
    one_line(&why(status, known, moment).unwrap_or_else(of_leader))
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
