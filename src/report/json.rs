//! The facts of an election as JSON: the same objects in every subcommand, in `/status` and in those of `observe`. docs/json.md describes them.
//! Every field is always present; an unknown value is null.

use std::time::Duration;

use neli_kafka::ElectionId;
use neli_proto::fact::{Account, Fact};
use neli_proto::leadership::{HowReleased, ReadAt, Receipt, Release, Request};
use neli_proto::observer::{KnownCandidate, Observer, Standby};
use neli_proto::time::millis;
use serde_json::{Value, json};

use crate::calendar::is_start;
use crate::text::timestamp;

/// The fields of several objects as one, in their order.
pub(crate) fn joined<const N: usize>(parts: [Value; N]) -> Value {
    let objects =
        parts.into_iter().filter_map(|part| if let Value::Object(fields) = part { Some(fields) } else { None });
    objects.flatten().collect()
}

/// With what the line of a subcommand about an election begins.
pub(crate) fn election(wall_ms: u64, election: &ElectionId) -> Value {
    json!({ "ts": timestamp(wall_ms), "group": election.group, "role": election.label() })
}

/// The standbys.
pub(crate) fn standbys(observer: &Observer, standbys: &[Standby<'_>], at: ReadAt) -> Vec<Value> {
    let part = |standby: &Standby<'_>| {
        candidate(standby.candidate, standby.age, standby.failed_runs, observer.waits(standby, at))
    };
    standbys.iter().map(part).collect()
}

/// The leader by its own hello.
pub(crate) fn leaders_hello(observer: &Observer, at: ReadAt) -> Option<Value> {
    let hello = observer.leaders_hello()?;
    Some(candidate(hello, observer.age(hello.received, at), 0, Duration::ZERO))
}

/// A candidate, by its last hello of this age; as a standby it waits so long before it claims.
fn candidate(candidate: &KnownCandidate, age: Duration, failed_runs: u32, waits: Duration) -> Value {
    json!({
        "name": candidate.hello.name,
        "member": candidate.hello.member.as_str(),
        "host": candidate.hello.host,
        "pid": candidate.hello.pid,
        "version": candidate.hello.version,
        "elector": candidate.hello.elector,
        "group_refuses": candidate.hello.group_refuses,
        "listen": candidate.hello.listen,
        "priority": candidate.hello.priority,
        "max_roles": candidate.max_roles(),
        "hello_age_ms": millis(age),
        "failed_runs": failed_runs,
        "waits_ms": millis(waits),
    })
}

/// Whether Kafka answers; if not, since when, in milliseconds since 1970, and why.
pub(crate) fn broker(is_up: bool, trouble: Option<(u64, &str)>) -> Value {
    let since = trouble.map(|(since_ms, _)| timestamp(since_ms));
    json!({ "up": is_up, "trouble": trouble.map(|(_, why)| why), "since": since })
}

/// How the last term ended.
pub(crate) fn release(release: &Release, at: ReadAt) -> Value {
    joined([
        json!({ "term": release.term, "by": release.name }),
        how_released(Some(&release.how)),
        json!({ "at": timestamp(release.received.at_ms(at)) }),
    ])
}

/// Why a term was released; all is null for one that was not.
pub(crate) fn how_released(release: Option<&HowReleased>) -> Value {
    let request = release.and_then(|release| release.request.as_ref());
    json!({
        "why": release.and_then(|release| release.why.as_deref()),
        "asked_by": request.and_then(|request| request.by.as_deref()),
        "reason": request.and_then(|request| request.reason.as_deref()),
        "exit": release.and_then(|release| release.exit),
        "late_ms": release.and_then(|release| release.late.map(millis)),
        "once": release.and_then(|release| release.once.as_ref()).map(|run| &run.key),
    })
}

/// The last request to end the election.
pub(crate) fn ended((request, received): &(Request, Receipt), at: ReadAt) -> Value {
    json!({ "by": request.by, "reason": request.reason, "at": timestamp(received.at_ms(at)) })
}

/// The last recorded run of a key or a window.
pub(crate) fn run(fact: &Fact) -> Value {
    json!({
        "key": fact.key,
        "window_start": fact.window.map(|window| timestamp(window.from_ms)),
        "window_end": fact.window.map(|window| window.until_ms).filter(|end_ms| is_start(*end_ms)).map(timestamp),
        "outcome": fact.outcome,
        "by": fact.name,
        "term": fact.term,
        "exit": fact.exit,
        "attempt": fact.attempt,
        "ran_ms": fact.ran_ms,
        "at": fact.at_ms.map(timestamp),
    })
}

/// All runs of a key, or of an election's windows.
pub(crate) fn runs(account: &Account, next_window_ms: Option<u64>) -> Value {
    let last_success = account.success.as_ref().map(|success| {
        json!({
            "window_start": success.window.map(|window| timestamp(window.from_ms)),
            "by": success.by,
            "at": success.at_ms.map(timestamp),
        })
    });
    json!({
        "count": account.runs,
        "failures": account.failures,
        "last": account.last.as_deref().map(run),
        "last_success": last_success,
        "next_window": next_window_ms.map(timestamp),
    })
}
