//! `status --json`: one object, whose fields docs/json.md describes.

use std::time::Duration;

use neli_kafka::ElectionId;
use neli_proto::journal::EarlierJob;
use neli_proto::leadership::{AgeBy, Leader, Leadership, ReadAt};
use neli_proto::time::millis;
use serde_json::{Value, json};

use super::Snapshot;
use crate::report::election::state;
use crate::report::json::{candidate, election, ended, joined, member, release, run, runs};
use crate::text::{self, timestamp};

/// The line about an election, of which nothing is known if it could not be read.
pub(super) fn line(id: &ElectionId, at: ReadAt, why: Option<&str>, known: Option<&Snapshot<'_>>) -> String {
    let in_future = |left| at.wall_ms.saturating_add(millis(left));
    let leader = |leader, age, left| known.map(|snapshot| leader_part(snapshot, leader, age, left));
    let (claimable_since, leader, released) = match known.map(|snapshot| snapshot.leadership) {
        Some(Leadership::Led { leader: of, age, left }) => (None, leader(of, age, left), None),
        Some(Leadership::Overdue { leader: of, age, left, claimable_in }) => {
            (Some(in_future(claimable_in)), leader(of, age, left), None)
        }
        Some(Leadership::Silent { leader: of, claimable_since, claimable_in, .. }) => {
            let since = in_future(claimable_in).saturating_sub(millis(claimable_since));
            let age = known.map(|snapshot| snapshot.observer.age(of.last_record, at)).unwrap_or_default();
            (Some(since), leader(of, age, Duration::ZERO), None)
        }
        Some(Leadership::Released { release: of, .. }) => (Some(of.received.at_ms(at)), None, Some(release(of, at))),
        Some(Leadership::Forgotten | Leadership::NeverLed | Leadership::Unknown(_)) | None => (None, None, None),
    };
    let observer = known.map(|snapshot| snapshot.observer);
    let last_run = known.and_then(|snapshot| snapshot.last_run);
    let next_windows = last_run.map(|run| run.next_windows(at.wall_ms)).unwrap_or_default();
    let standbys: Vec<Value> = known.iter().flat_map(|snapshot| standby_parts(snapshot)).collect();
    let line = joined([
        election(at.wall_ms, id),
        json!({
            "topic": id.topic,
            "partition": id.partition,
            "state": known.map_or("unknown", |snapshot| state(snapshot.leadership)),
            "why": why,
            "claimable_since": claimable_since.map(timestamp),
            "leader": leader,
            "release": released,
            "ended": observer.and_then(|observer| observer.ended()).map(|of| ended(of, at)),
            "earlier_job": observer.and_then(|observer| earlier_job(observer.journal().earlier_job())),
            "last_run": last_run.map(|of| run(&of.fact)),
            "runs": last_run.map(|of| runs(&of.runs, next_windows.first().copied())),
            "next_windows": next_windows.iter().copied().map(timestamp).collect::<Vec<_>>(),
            "void_claims": observer.and_then(|observer| observer.void_claims()).map_or(0, |claims| claims.count),
            "standbys": standbys,
        }),
    ]);
    text::json(&line) + "\n"
}

fn leader_part(snapshot: &Snapshot<'_>, leader: &Leader, age: Duration, left: Duration) -> Value {
    let Snapshot { observer, at, .. } = snapshot;
    let resign = leader.resign.as_ref();
    let hello = observer.leaders_hello();
    json!({
        "name": leader.name,
        "member": member(leader.member.as_ref()),
        "term": leader.term,
        "since": leader.claimed_ms.map(timestamp),
        "lease_ms": millis(leader.lease),
        "lease_left_ms": millis(left),
        "heartbeat_age_ms": millis(age),
        "age_by": match leader.last_record.age_by() {
            AgeBy::Receipt => "receipt",
            AgeBy::Timestamp => "timestamp",
        },
        "job": leader.job.map(|job| json!({
            "state": job.state.name(),
            "for_ms": job.since_ms.map(|since_ms| since_ms.saturating_add(millis(age))),
            "pid": job.pid,
            "attempt": job.attempt,
        })),
        "resign_asked_by": resign.map(|resign| resign.by.as_deref().unwrap_or("somebody")),
        "resign_reason": resign.and_then(|resign| resign.reason.as_deref()),
        "hello": hello.map(|hello| candidate(hello, observer.age(hello.received, *at), 0, Duration::ZERO)),
    })
}

fn earlier_job(job: &EarlierJob) -> Option<Value> {
    match job {
        EarlierJob::Overlapped { term, name, lease, .. } => {
            Some(json!({ "term": term, "name": name, "lease_ms": millis(*lease) }))
        }
        EarlierJob::Gone | EarlierJob::Unknown => None,
    }
}

fn standby_parts<'a>(snapshot: &'a Snapshot<'_>) -> impl Iterator<Item = Value> + 'a {
    snapshot.standbys.iter().map(|standby| {
        let waits = snapshot.observer.waits(standby, snapshot.at);
        candidate(standby.candidate, standby.age, standby.failed_runs, waits)
    })
}
