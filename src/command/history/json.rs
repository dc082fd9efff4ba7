//! `history --json`: one line per term and one per finding, as docs/json.md describes them.

use neli_proto::leadership::ReadAt;
use neli_proto::observer::{Finding, Found};
use neli_proto::time::millis;
use serde_json::{Value, json};

use super::{End, Row, Shown, sentence};
use crate::report::json::{election, how_released, joined, member};
use crate::text::{self, timestamp};

/// All lines.
pub(super) fn lines(shown: &Shown<'_>) -> String {
    let Shown { seen, at, rows, findings, clock } = shown;
    let id = &seen.election;
    let terms = rows.iter().map(|row| {
        let begun_ms = row.past.from_ms.or(row.past.last_record_ms).unwrap_or(at.wall_ms);
        joined([election(begun_ms, id), json!({ "kind": "term" }), term(row, *at)])
    });
    let findings = findings.iter().map(|Found { finding, at_ms }| {
        let part = json!({
            "kind": "finding",
            "finding": finding_name(finding),
            "violation": clock.is_violation(finding),
            "term": finding.term(),
            "at": at_ms.map(timestamp),
            "text": sentence(finding, *clock),
        });
        joined([election(at.wall_ms, id), part])
    });
    terms.chain(findings).map(|line| text::json(&line) + "\n").collect()
}

/// A term.
pub(in crate::command) fn term(row: &Row<'_>, at: ReadAt) -> Value {
    let (end, release) = match row.end {
        End::Leads => ("leads", None),
        End::Overlapped => ("overlapped", None),
        End::Released(release) => ("released", Some(release)),
        End::Silent => ("silent", None),
        End::Unknown => ("unknown", None),
    };
    joined([
        json!({
            "term": row.past.term,
            "name": row.past.name,
            "member": member(row.past.member.as_ref()),
            "from": row.past.from_ms.map(timestamp),
            "to": row.to_ms.map(timestamp),
            "led_ms": row.led_for(at.wall_ms).map(millis),
            "lease_ms": millis(row.past.lease),
            "end": end,
        }),
        how_released(release),
        json!({
            "gap_ms": row.gap.map(|gap| millis(gap.most)),
            "gap_least_ms": row.gap.map(|gap| millis(gap.least)),
            "gap_open": row.is_open,
            "last_heartbeat": row.past.last_record_ms.map(timestamp),
        }),
    ])
}

const fn finding_name(finding: &Finding) -> &'static str {
    match finding {
        Finding::Gap { .. } => "gap",
        Finding::LateFence { .. } => "late-fence",
        Finding::Missing { .. } => "missing",
        Finding::NotEffective { .. } => "not-effective",
        Finding::Overlap { .. } => "overlap",
    }
}
