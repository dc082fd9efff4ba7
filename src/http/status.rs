//! `/status`: the snapshot as JSON, as docs/http.md describes it. The web page shows the same data.

use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::leadership::{Leader, Leadership, ReadAt};
use neli_proto::node::Status;
use neli_proto::time::{Time, millis};
use serde_json::{Value, json};

use super::snapshot::{RoleSnapshot, Snapshot};
use crate::report::election::{of_status, present_trouble, sentence, state};
use crate::report::json;
use crate::text::{self, one_line, timestamp};

/// A past time by the wall clock.
fn past(moment: ReadAt, at: Time) -> u64 {
    moment.wall_ms.saturating_sub(millis(moment.now.since(at)))
}

/// The object, on one line.
pub(super) fn render(snapshot: &Snapshot, moment: ReadAt) -> String {
    let Snapshot { about, kafka, roles, .. } = snapshot;
    let trouble = present_trouble(kafka);
    let trouble = trouble.as_ref().map(|(since, _, why)| (past(moment, *since), why.as_str()));
    text::json(&json!({
        "ts": timestamp(moment.wall_ms),
        "group": about.group,
        "topic": about.topic,
        "name": about.name,
        "member": about.member.as_str(),
        "version": env!("CARGO_PKG_VERSION"),
        "elector": about.elector,
        "lease_ms": millis(about.lease),
        "broker": json::broker(snapshot.is_up(), trouble),
        "roles": roles.iter().map(|role| role_part(snapshot, role, moment)).collect::<Vec<_>>(),
    })) + "\n"
}

fn role_part(snapshot: &Snapshot, role: &RoleSnapshot, moment: ReadAt) -> Value {
    let RoleSnapshot { label, partition, status, .. } = role;
    let current = role.status.leadership(moment, snapshot.kafka.is_answered());
    let future = |at: Time| timestamp(moment.wall_ms.saturating_add(millis(at.since(moment.now))));
    json!({
        "role": label,
        "partition": partition,
        "state": state(current),
        "why": (!current.is_usual()).then(|| sentence(current)),
        "leads": role.leads(moment.now),
        "position": position(&status.position),
        "doing": of_status(status, current, moment.wall_ms),
        "claims_at": claims_at(status, current).map(future),
        "lease_left_ms": millis(role.lease_left(moment.now)),
        "leader": status.leader().map(|leader| leader_part(role, leader, moment)),
        "release": status.release().map(|release| json::release(release, moment)),
        "ended": status.last_term.ended.as_ref().map(|ended| json::ended(ended, moment)),
        "runs": role.known_runs(moment.now).map(|runs| json::runs(runs, role.next_window_ms)),
        "void_claims": status.counts.void_in_a_row,
        "standbys": standbys(snapshot, role, moment.now),
    })
}

fn leader_part(role: &RoleSnapshot, leader: &Leader, moment: ReadAt) -> Value {
    let age = moment.now.since(leader.last_record.read);
    // A leader knows the end of its own lease more exactly: the lease runs from the sending of its last heartbeat.
    let left = match leader.late() {
        _ if leader.is_self => role.lease_left(moment.now),
        Some(_) => Duration::ZERO,
        None => leader.lease.saturating_sub(age),
    };
    json!({
        "name": leader.name,
        "member": leader.member,
        "is_self": leader.is_self,
        "term": leader.term,
        "since": timestamp(past(moment, leader.since)),
        "lease_ms": millis(leader.lease),
        "lease_left_ms": millis(left),
        "heartbeat_age_ms": millis(age),
        "job": job(&role.status, moment.now).filter(|_| leader.is_self),
    })
}

fn job(status: &Status, now: Time) -> Option<Value> {
    let Position::Leading { job, .. } = &status.position else { return None };
    let for_ms = millis(now.since(job.since));
    Some(json!({ "state": job.state.name(), "for_ms": for_ms, "pid": job.pid, "attempt": job.attempt }))
}

/// The other candidates, and this one if it is a standby.
fn standbys(snapshot: &Snapshot, role: &RoleSnapshot, now: Time) -> Vec<Value> {
    let about = &snapshot.about;
    let own = json!({ "name": about.name, "member": about.member.as_str(), "is_self": true, "hello_age_ms": null });
    let others = role.others(now).map(|(other, age)| {
        json!({ "name": other.name, "member": other.member.as_str(), "is_self": false, "hello_age_ms": millis(age) })
    });
    role.stands_by().then_some(own).into_iter().chain(others).collect()
}

/// When this candidate claims, unless a leader's record comes before.
fn claims_at(status: &Status, current: Leadership<'_>) -> Option<Time> {
    let may_claim = !current.is_led() && (!current.is_unknown() || status.leader().is_none());
    status.claims_at.filter(|_| may_claim)
}

/// Why this process does not lead, on one line.
pub(super) fn why_not_here(snapshot: &Snapshot, role: &RoleSnapshot, moment: ReadAt) -> String {
    let current = role.status.leadership(moment, snapshot.kafka.is_answered());
    let led = current.leader().filter(|_| current.is_led());
    let term = led.map_or_else(String::new, |leader| format!(", term {}", leader.term));
    one_line(&format!("{}{term}", sentence(current)))
}

const fn position(position: &Position) -> &'static str {
    match position {
        Position::Claiming => "claiming",
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
