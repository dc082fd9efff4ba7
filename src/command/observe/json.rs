//! `/elections`, and those of a group with their terms, changes and candidates, as docs/observe.md describes them.

use std::time::Duration;

use neli_proto::leadership::ReadAt;
use neli_proto::time::millis;
use serde_json::{Value, json};

use super::state::{Shown, State};
use crate::command::history::{by_broker, rows, term_part};
use crate::command::list::Listed;
use crate::command::reading::unread;
use crate::report::json::{broker, joined, leaders_hello, standbys};
use crate::text::{self, timestamp};

impl State {
    /// `/elections`: all of them, on one line.
    pub fn json(&self, at: ReadAt) -> String {
        page(self, at, &self.elections(at, None).map(|shown| election_part(&shown)).collect::<Vec<_>>())
    }
}

/// Those of a group, on one line.
pub(super) fn of_group(state: &State, group: &str, at: ReadAt) -> String {
    let details = state.elections(at, Some(group)).map(|shown| {
        let observer = shown.found.observer();
        let moment = by_broker(observer, shown.found.known_at(at));
        let terms = rows(shown.found, moment, 0);
        let changes = shown.notes.iter().flat_map(|notes| &notes.changes).map(change_part);
        let part = json!({
            "terms": terms.iter().map(|row| term_part(row, moment)).collect::<Vec<_>>(),
            "changes": changes.collect::<Vec<_>>(),
            "leader_hello": shown.current.leader().and_then(|_| leaders_hello(observer, at)),
            "candidates": standbys(observer, &shown.standbys, at),
        });
        joined([election_part(&shown), part])
    });
    page(state, at, &details.collect::<Vec<_>>())
}

fn page(state: &State, at: ReadAt, elections: &[Value]) -> String {
    let outage = state.topics.outage();
    let outage = outage.map(|(since, why)| (at.wall_ms.saturating_sub(millis(at.now.since(since))), why));
    let unread = unread(&state.topics).map(|(topic, why)| json!({ "topic": topic, "why": why }));
    text::json(&json!({
        "ts": timestamp(at.wall_ms),
        "complete": state.topics.is_complete(),
        "broker": broker(outage.is_none(), outage),
        "unread": unread.collect::<Vec<_>>(),
        "elections": elections,
    })) + "\n"
}

fn election_part(shown: &Shown<'_>) -> Value {
    let Shown { listed: Listed { at, current, .. }, notes, run: last, .. } = *shown;
    let leader = current.leader();
    // A heartbeat that came after the lease's end extends no lease.
    let left = current.lease().map_or(Duration::ZERO, |(_, left)| left);
    let part = json!({
        "trouble": shown.trouble(),
        "known_since": shown.known_since_ms().map(timestamp),
        "since": leader.and_then(|leader| leader.claimed_ms).map(timestamp),
        "lease_ms": leader.map(|leader| millis(leader.lease)),
        "lease_left_ms": leader.map(|_| millis(left)),
        "last_change": notes.and_then(|notes| notes.changes.back()).map(change_part),
        "last_run": last.map(|last| last.json(current)),
        "last_success": last.and_then(|last| last.account.success.as_ref()?.at_ms).map(timestamp),
        "next_window": last.and_then(|last| last.next_windows(at.wall_ms).first().copied()).map(timestamp),
    });
    joined([shown.listed.json(), part])
}

fn change_part((at_ms, what): &(u64, Box<str>)) -> Value {
    json!({ "at": timestamp(*at_ms), "what": what })
}
