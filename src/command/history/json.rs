//! `history --json`: one line per term and one per finding, as docs/json.md describes them.

use neli_kafka::ElectionId;
use neli_proto::leadership::ReadAt;
use neli_proto::observer::{Finding, Found};
use neli_proto::time::millis;
use serde::Serialize;

use super::{End, Row, Shown, or_null, sentence};
use crate::report::election::HowReleasedPart;
use crate::report::log::timestamp;
use crate::text::json;

#[derive(Serialize)]
struct TermLine<'a> {
    ts: String,
    group: &'a str,
    role: String,
    kind: &'static str,
    #[serde(flatten)]
    part: TermPart<'a>,
}

/// A term.
#[derive(Serialize)]
pub(in crate::command) struct TermPart<'a> {
    term: i64,
    name: Option<&'a str>,
    member: Option<&'a str>,
    from: Option<String>,
    to: Option<String>,
    led_ms: Option<u64>,
    lease_ms: u64,
    end: &'static str,
    #[serde(flatten)]
    how: HowReleasedPart<'a>,
    gap_ms: Option<u64>,
    gap_least_ms: Option<u64>,
    gap_open: bool,
    last_heartbeat: Option<String>,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    ts: String,
    group: &'a str,
    role: String,
    kind: &'static str,
    finding: &'static str,
    violation: bool,
    term: Option<i64>,
    at: Option<String>,
    text: String,
}

/// All lines.
pub(super) fn lines(shown: &Shown<'_>) -> String {
    let Shown { seen, at, rows, findings, clock } = shown;
    let election = &seen.election;
    let terms = rows.iter().map(|row| line(&term(election, *at, row)));
    let findings = findings.iter().map(|Found { finding, at_ms }| {
        line(&FindingLine {
            ts: timestamp(at.wall_ms),
            group: &election.group,
            role: election.label(),
            kind: "finding",
            finding: finding_name(finding),
            violation: clock.is_violation(finding),
            term: finding.term(),
            at: or_null(*at_ms),
            text: sentence(finding, *clock),
        })
    });
    terms.chain(findings).collect()
}

fn line(of: &impl Serialize) -> String {
    json(of) + "\n"
}

fn term<'a>(election: &'a ElectionId, at: ReadAt, row: &'a Row<'_>) -> TermLine<'a> {
    TermLine {
        ts: timestamp(row.past.from_ms.or(row.past.last_record_ms).unwrap_or(at.wall_ms)),
        group: &election.group,
        role: election.label(),
        kind: "term",
        part: TermPart::of(row, at),
    }
}

impl<'a> TermPart<'a> {
    pub(in crate::command) fn of(row: &'a Row<'_>, at: ReadAt) -> Self {
        let how = match row.end {
            End::Released(release) => HowReleasedPart::of(release),
            End::Leads | End::Overlapped | End::Silent | End::Unknown => HowReleasedPart::default(),
        };
        Self {
            term: row.past.term,
            name: row.past.name.as_deref(),
            member: row.past.member.as_ref().map(neli_proto::record::MemberId::as_str),
            from: or_null(row.past.from_ms),
            to: or_null(row.to_ms),
            led_ms: row.led_for(at.wall_ms).map(millis),
            lease_ms: millis(row.past.lease),
            end: match row.end {
                End::Leads => "leads",
                End::Overlapped => "overlapped",
                End::Released(_) => "released",
                End::Silent => "silent",
                End::Unknown => "unknown",
            },
            how,
            gap_ms: row.gap.map(|gap| millis(gap.most)),
            gap_least_ms: row.gap.map(|gap| millis(gap.least)),
            gap_open: row.is_open,
            last_heartbeat: or_null(row.past.last_record_ms),
        }
    }
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
