//! `/elections`, and those of a group with their terms, changes and candidates, as docs/observe.md describes them.

use neli_proto::leadership::ReadAt;
use neli_proto::time::millis;
use serde::Serialize;

use super::state::{Shown, State};
use crate::command::facts::RunLine;
use crate::command::history::{TermPart, by_broker, rows};
use crate::command::list::Line;
use crate::command::status::CandidateLine;
use crate::http::BrokerPart;
use crate::report::log::timestamp;
use crate::text::json;

#[derive(Serialize)]
struct Page<'a, E> {
    ts: String,
    complete: bool,
    broker: BrokerPart<'a>,
    unread: Vec<UnreadPart<'a>>,
    elections: Vec<E>,
}

#[derive(Serialize)]
struct UnreadPart<'a> {
    topic: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct ElectionPart<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    trouble: Option<&'a str>,
    known_since: Option<String>,
    since: Option<String>,
    lease_ms: Option<u64>,
    lease_left_ms: Option<u64>,
    last_change: Option<ChangePart<'a>>,
    last_run: Option<RunLine<'a>>,
    last_success: Option<String>,
    next_window: Option<String>,
}

#[derive(Serialize)]
struct DetailPart<'a> {
    #[serde(flatten)]
    election: ElectionPart<'a>,
    terms: Vec<TermPart<'a>>,
    changes: Vec<ChangePart<'a>>,
    leader_hello: Option<CandidateLine<'a>>,
    candidates: Vec<CandidateLine<'a>>,
}

#[derive(Serialize)]
struct ChangePart<'a> {
    at: String,
    what: &'a str,
}

/// All elections, on one line.
pub(super) fn all(state: &State, at: ReadAt) -> String {
    page(state, at, state.elections(at).map(|shown| ElectionPart::of(&shown)).collect())
}

/// Those of a group, on one line.
pub(super) fn of_group(state: &State, group: &str, at: ReadAt) -> String {
    let all: Vec<Shown<'_>> = state.elections(at).filter(|shown| *shown.found.place.group == *group).collect();
    let moments: Vec<ReadAt> = all.iter().map(|shown| by_broker(shown.found.observer(), at)).collect();
    let terms: Vec<_> =
        all.iter().zip(&moments).map(|(shown, at)| rows(shown.found.election.history(), *at, 0)).collect();
    let details = all.iter().zip(&moments).zip(&terms).map(|((shown, moment), terms)| {
        let observer = shown.found.observer();
        DetailPart {
            election: ElectionPart::of(shown),
            terms: terms.iter().map(|row| TermPart::of(row, *moment)).collect(),
            changes: shown.notes.iter().flat_map(|notes| &notes.changes).map(ChangePart::of).collect(),
            leader_hello: observer
                .leaders_hello()
                .map(|hello| CandidateLine::with(hello, observer.age(hello.received, at))),
            candidates: observer
                .standbys(at)
                .iter()
                .map(|standby| CandidateLine::with(standby.candidate, standby.age))
                .collect(),
        }
    });
    page(state, at, details.collect())
}

fn page<E: Serialize>(state: &State, at: ReadAt, elections: Vec<E>) -> String {
    let outage = state.topics.outage();
    let since = |since| timestamp(at.wall_ms.saturating_sub(millis(at.now.since(since))));
    let page = Page {
        ts: timestamp(at.wall_ms),
        complete: state.topics.is_complete(),
        broker: BrokerPart {
            up: outage.is_none(),
            trouble: outage.map(|(_, why)| why),
            since: outage.map(|(from, _)| since(from)),
        },
        unread: state.unread().map(|(topic, why)| UnreadPart { topic, why }).collect(),
        elections,
    };
    json(&page) + "\n"
}

impl<'a> ElectionPart<'a> {
    fn of(shown: &Shown<'a>) -> Self {
        let leader = shown.current.leader();
        let left = |leader: &neli_proto::leadership::Leader| {
            let age = shown.found.observer().age(leader.last_record, shown.at);
            millis(leader.lease.saturating_sub(age))
        };
        Self {
            line: Line::of(shown.topic, shown.found, shown.current, shown.at),
            trouble: shown.trouble,
            known_since: shown.known_since_ms.map(timestamp),
            since: leader.and_then(|leader| leader.claimed_ms).map(timestamp),
            lease_ms: leader.map(|leader| millis(leader.lease)),
            lease_left_ms: leader.map(left),
            last_change: shown.notes.and_then(|notes| notes.changes.back()).map(ChangePart::of),
            last_run: shown.run.map(|run| RunLine::of(&run.fact)),
            last_success: shown.run.and_then(|run| run.runs.account.success.as_ref()?.at_ms).map(timestamp),
            next_window: shown.run.and_then(|run| run.next_windows(shown.at.wall_ms).first().copied()).map(timestamp),
        }
    }
}

impl<'a> ChangePart<'a> {
    fn of((at_ms, what): &'a (u64, String)) -> Self {
        Self { at: timestamp(*at_ms), what }
    }
}
