//! `history`: the terms in the retained journal, and irregularities in it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use neli_proto::leadership::ReadAt;
use neli_proto::observer::{Election, Finding, Gap, Observer, PastTerm, TermEnd};
use neli_proto::time::millis;
use serde_json::{Value, json};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate::duration;
use crate::command::look::{Look, TIMEOUT};
use crate::command::output::{self, Style, Tone, columns};
use crate::command::reading::{self, FoundElections, Observation, Reading, Seen, read_at, warn_of_clock};
use crate::command::wording::{named, no_record};
use crate::exit::{ExitStatus, with_status};
use crate::report::election::{how_released, lived_on};
use crate::report::json::{self, election, joined};
use crate::text::{self, counted, date, list, one_line, span, spoken, timestamp, wrapped};

mod svg;

pub(super) use svg::{draw, strip};

/// `--check`: two jobs may have run at once.
const VIOLATED: ExitStatus = ExitStatus::Answer(1);

/// Shows the terms of an election.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer, the log can't be read, or stdout or the file can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let since = args.value("since").map(|value| duration(&value)).transpose()?;
    let (check, svg) = (args.flag("check")?.is_some(), args.value("svg"));
    let look = &Look::of(args, TIMEOUT)?;
    let read = reading::run(read(look, svg.is_some()))?;
    if let Some(first) = read.seen().next().filter(|_| !read.seen().any(|seen| seen.read.is_known())) {
        return Err(with_status(ExitStatus::VACANT, no_record(first.election, first.other_groups)));
    }
    warn_of_clock(read.seen().map(|seen| seen.read.observer()));
    let now = read_at();
    // By the broker's clock, which gave the timestamps, and not by this machine's, which may be ahead of it.
    let now_ms = read.seen().map(|seen| seen.read.observer().broker_now(now)).min().unwrap_or_default();
    let from_ms = since.map_or(0, |since| now_ms.saturating_sub(millis(since)));
    let shown: Vec<Report<'_>> =
        read.seen().map(|seen| Report::of(seen, &read.reading, (now, from_ms), check)).collect();
    if let (Some(path), [Report { seen, at, rows, .. }]) = (&svg, shown.as_slice()) {
        std::fs::write(&path.text, draw(&named(seen.election), rows, from_ms..at.wall_ms))
            .with_context(|| path.shown())?;
    }
    let (style, is_one) = (Style::of_stdout(), shown.len() == 1);
    let role_of = |one: &Report<'_>| one_line(&one.seen.election.label());
    let report_of = |one: &Report<'_>| {
        let role = if is_one { String::new() } else { format!("{}: ", role_of(one)) };
        role + &report(&one.rows, &one.findings, one.is_one_clock, style)
    };
    let text = match (look.json, check) {
        (true, _) => shown.iter().map(lines).collect(),
        (false, true) => shown.iter().map(report_of).collect(),
        (false, false) => {
            let roles = shown.iter().map(|one| (role_of(one), &*one.rows, one.at.wall_ms));
            table(&roles.collect::<Vec<_>>(), style)
        }
    };
    output::print(&text)?;
    Ok(if shown.iter().any(Report::is_violated) { VIOLATED } else { ExitStatus::SUCCESS })
}

/// The time by the broker's clock.
pub(super) fn by_broker(observer: &Observer, at: ReadAt) -> ReadAt {
    ReadAt { wall_ms: observer.broker_now(at), ..at }
}

/// What is shown of an election.
struct Report<'a> {
    seen: Seen<'a>,
    at: ReadAt,
    rows: Vec<Row<'a>>,
    findings: Vec<(Finding, Option<u64>)>,
    /// Whether one clock has given all timestamps.
    is_one_clock: bool,
}

impl<'a> Report<'a> {
    fn of(seen: Seen<'a>, reading: &Reading, (now, from_ms): (ReadAt, u64), check: bool) -> Self {
        let at = by_broker(seen.read.observer(), now);
        let findings = if check { seen.read.findings(at, from_ms) } else { Vec::new() };
        let is_one_clock = seen.read.observer().is_brokers_time() || reading.is_embedded();
        Self { seen, at, rows: rows(seen.read, at, from_ms), findings, is_one_clock }
    }

    fn is_violated(&self) -> bool {
        self.findings.iter().any(|(finding, _)| is_violation(finding, self.is_one_clock))
    }
}

/// Reads the whole journals, up to their ends when the reading begins.
async fn read(look: &Look, is_drawn: bool) -> Result<Observation> {
    let found = FoundElections::find(look, |_| {}).await?;
    if is_drawn {
        found.one("--svg draws one, and --role says which")?;
    }
    Observation::of_history(look, found).await
}

/// Whether the finding may come from different clocks alone: if each candidate's own has given the timestamps
/// (`message.timestamp.type=CreateTime`), and not the broker's or that of the one machine of all candidates.
const fn is_doubtful(finding: &Finding, is_one_clock: bool) -> bool {
    !is_one_clock && matches!(finding, Finding::Overlap { .. })
}

/// Whether the finding shows that two jobs may have run at once.
const fn is_violation(finding: &Finding, is_one_clock: bool) -> bool {
    finding.is_violation() && !is_doubtful(finding, is_one_clock)
}

/// A term with the data that is shown.
pub(super) struct Row<'a> {
    past: &'a PastTerm,
    /// Until when its leader led at least; `None` if it still leads or the time is unknown.
    to_ms: Option<u64>,
    /// [`TermEnd::Open`] only if its leader leads: one that has missed three heartbeats has fallen silent, and it may be unknown who leads.
    end: &'a TermEnd,
    gap: Option<Gap>,
    /// For how long after the lease's end its job may have been alive, if another led by then.
    late: Option<Duration>,
    /// There is no leader now: the gap lasts until now.
    is_open: bool,
}

impl Row<'_> {
    /// How long the leader led at least, until now if it still leads.
    fn led_for(&self, at_ms: u64) -> Option<Duration> {
        let to_ms = if *self.end == TermEnd::Open { Some(at_ms) } else { self.to_ms };
        Some(Duration::from_millis(to_ms?.saturating_sub(self.past.from_ms?)))
    }

    /// The same in words. After its last record a leader that fell silent may have led up to its lease's end.
    fn led(&self, at_ms: u64) -> Option<String> {
        let led = span(self.led_for(at_ms)?);
        let is_exact = *self.end == TermEnd::Open || self.to_ms == self.past.lease_over_ms();
        Some(if is_exact { led } else { format!("{led} or more") })
    }

    /// The end of the term in words.
    fn how(&self) -> String {
        let late = self.late.map(|late| format!("; its job {}, and another led by then", lived_on(late)));
        self.how_it_ended() + &late.unwrap_or_default()
    }

    fn how_it_ended(&self) -> String {
        match self.end {
            TermEnd::Open => "leads".to_owned(),
            TermEnd::Overlapped { how, .. } => {
                let how = how.as_ref().map_or_else(String::new, |how| format!(": {}", how_released(how)));
                format!("another led while its job ran on (--overlap){how}")
            }
            TermEnd::Released { how, .. } => how_released(how),
            TermEnd::Silent if self.gap.is_some_and(|gap| gap.least.is_zero() && self.is_open) => {
                let silent = self.gap.map_or_else(String::new, |gap| span(gap.most));
                format!("silent for {silent} (lease {})", spoken(self.past.lease))
            }
            TermEnd::Silent => {
                let since = if self.is_open { "ago" } else { "before the next claim" };
                let last_heartbeat =
                    self.gap.map_or_else(String::new, |gap| format!("; last heartbeat {} {since}", span(gap.most)));
                format!("silent beyond its lease ({}){last_heartbeat}", spoken(self.past.lease))
            }
            TermEnd::Unknown if self.past.end == TermEnd::Open => {
                "unknown: no heartbeat has come since one that lies in the future".to_owned()
            }
            TermEnd::Unknown => "records are missing".to_owned(),
        }
    }
}

/// The terms that were led since `from_ms`, in milliseconds since 1970.
pub(super) fn rows(history: &Election, at: ReadAt, from_ms: u64) -> Vec<Row<'_>> {
    let current = history.observer().leadership(at);
    let (open, last) = (history.open_gap(at), history.terms().len().saturating_sub(1));
    let rows = history.terms().iter().enumerate().map(|(number, past)| {
        let of_open = if current.silent_for().is_some() {
            &TermEnd::Silent
        } else if current.is_unknown() {
            &TermEnd::Unknown
        } else {
            &TermEnd::Open
        };
        let end = if past.end == TermEnd::Open { of_open } else { &past.end };
        let has_ended = *end != TermEnd::Open;
        let to_ms = past.led_until_ms().filter(|_| has_ended);
        let open = open.filter(|_| number == last);
        // If the end is unknown, the term was over when the next one began.
        let next = history.terms().get(number + 1);
        let over_by = past.lease_over_ms().filter(|_| has_ended);
        let over_by = over_by.or_else(|| next.and_then(|next| next.from_ms.or(next.last_record_ms)));
        let (gap, late) = (history.gap_after(number).or(open), history.late_beside(past.term));
        let row = Row { past, to_ms, end, gap, late, is_open: open.is_some() };
        (row, over_by)
    });
    let is_shown =
        |(row, over_by): &(Row<'_>, Option<u64>)| row.is_open || over_by.is_none_or(|over_by| over_by >= from_ms);
    rows.filter(is_shown).map(|(row, _)| row).collect()
}

pub(super) const HEAD: [&str; 7] = ["ROLE", "TERM", "LEADER", "FROM", "LED FOR", "GAP", "END"];

/// One line per term of each role, which it names if there are several.
fn table(roles: &[(String, &[Row<'_>], u64)], style: Style) -> String {
    let of_role = |(role, rows, at_ms): &(String, &[Row<'_>], u64)| {
        rows.iter().map(|row| cells(role, row, *at_ms)).collect::<Vec<_>>()
    };
    let rows: Vec<[String; 7]> = roles.iter().flat_map(of_role).collect();
    let [_, head @ ..] = HEAD;
    match roles {
        _ if rows.is_empty() => "no terms\n".to_owned(),
        [_] => columns(head, &rows.into_iter().map(|[_, cells @ ..]| cells).collect::<Vec<_>>(), style),
        _ => columns(HEAD, &rows, style),
    }
}

/// The cells of a term below [`HEAD`].
pub(super) fn cells(role: &str, row: &Row<'_>, at_ms: u64) -> [String; 7] {
    let unknown = || "-".to_owned();
    [
        role.to_owned(),
        row.past.term.to_string(),
        one_line(row.past.shown()),
        row.past.from_ms.map_or_else(unknown, date),
        row.led(at_ms).unwrap_or_else(unknown),
        row.gap.map_or_else(unknown, |gap| unled_for(gap) + if row.is_open { ", and on" } else { "" }),
        one_line(&row.how()),
    ]
}

/// The findings of `--check`; possible overlaps of jobs come first.
fn report(rows: &[Row<'_>], findings: &[(Finding, Option<u64>)], is_one_clock: bool, style: Style) -> String {
    let terms = counted(rows.len() as u64, "term");
    let (tone, verdict) = if findings.iter().any(|(finding, _)| is_violation(finding, is_one_clock)) {
        (Tone::Bad, format!("{terms}: two jobs may have run at once"))
    } else if findings.iter().any(|(finding, _)| is_doubtful(finding, is_one_clock)) {
        (Tone::Unknown, format!("{terms}: can't tell whether two overlapped"))
    } else if rows.iter().any(|row| matches!(row.end, TermEnd::Overlapped { .. })) {
        (Tone::Good, format!("{terms}: no two overlapped but by --overlap"))
    } else {
        (Tone::Good, format!("{terms}: no two overlapped"))
    };
    let mut lines = vec![style.paint(tone, &verdict)];
    let width = style.width();
    let findings = findings.iter().map(|(finding, _)| finding);
    let (bad, unusual): (Vec<&Finding>, Vec<&Finding>) = findings.partition(|finding| finding.is_violation());
    for finding in bad.into_iter().chain(unusual) {
        lines.extend(wrapped(&sentence(finding, is_one_clock), width));
    }
    lines.join("\n") + "\n"
}

/// The length of a time without a leader.
fn unled_for(gap: Gap) -> String {
    if gap.least == gap.most { span(gap.most) } else { format!("up to {}", span(gap.most)) }
}

/// A finding as a sentence.
fn sentence(finding: &Finding, is_one_clock: bool) -> String {
    match finding {
        Finding::Overlap { term, before, by } => {
            let whose = if is_one_clock {
                "the broker's timestamps"
            } else {
                "the candidates' own timestamps (message.timestamp.type=CreateTime), and their clocks may differ"
            };
            let by = spoken(*by);
            format!(
                "overlap: term {term} was claimed up to {by} before the lease of term {before} was over, by {whose}"
            )
        }
        Finding::LateFence { term, late, overlaps } => {
            let other = if *overlaps { ", and another led by then" } else { "" };
            format!("late fence: the job of term {term} {}{other}", lived_on(*late))
        }
        Finding::Gap { after, gap, is_open } => {
            let on = if *is_open { ", and nobody has claimed yet" } else { "" };
            format!("no leader for {} after term {after}{on}", unled_for(*gap))
        }
        Finding::NotEffective { claims, words, nonsense } => {
            let of =
                |count: u64, what: &str, which: &str| (count > 0).then(|| format!("{} {which}", counted(count, what)));
            let kinds = [
                of(*claims, "claim", "that came too late"),
                of(*words, "record", "of leaders whose term was over"),
                of(*nonsense, "record", "without sense"),
            ];
            format!("not effective: {}", list(kinds.into_iter().flatten()))
        }
        Finding::Missing { times } => {
            format!("records are missing in {}: the leader of that time is unknown", counted(*times, "place"))
        }
    }
}

/// `--json`: one line per term and one per finding, as docs/json.md describes them.
fn lines(shown: &Report<'_>) -> String {
    let Report { seen, at, rows, findings, is_one_clock } = shown;
    let id = seen.election;
    let terms = rows.iter().map(|row| {
        let begun_ms = row.past.from_ms.or(row.past.last_record_ms).unwrap_or(at.wall_ms);
        joined([election(begun_ms, id), json!({ "kind": "term" }), term_part(row, *at)])
    });
    let findings = findings.iter().map(|(finding, at_ms)| {
        let part = json!({
            "kind": "finding",
            "finding": finding_name(finding),
            "violation": is_violation(finding, *is_one_clock),
            "term": finding.term(),
            "at": at_ms.map(timestamp),
            "text": sentence(finding, *is_one_clock),
        });
        joined([election(at.wall_ms, id), part])
    });
    terms.chain(findings).map(|line| text::json(&line) + "\n").collect()
}

/// A term as JSON.
pub(super) fn term_part(row: &Row<'_>, at: ReadAt) -> Value {
    let (end, release) = match row.end {
        TermEnd::Open => ("leads", None),
        TermEnd::Overlapped { how, .. } => ("overlapped", how.as_deref()),
        TermEnd::Released { how, .. } => ("released", Some(&**how)),
        TermEnd::Silent => ("silent", None),
        TermEnd::Unknown => ("unknown", None),
    };
    let mut ending = json::how_released(release);
    if let Some(late) = row.late {
        ending["late_ms"] = millis(late).into();
    }
    joined([
        json!({
            "term": row.past.term,
            "name": row.past.leader.name,
            "member": row.past.leader.member,
            "from": row.past.from_ms.map(timestamp),
            "to": row.to_ms.map(timestamp),
            "led_ms": row.led_for(at.wall_ms).map(millis),
            "lease_ms": millis(row.past.lease),
            "end": end,
        }),
        ending,
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

#[cfg(test)]
mod tests;
