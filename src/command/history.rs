//! `history`: the terms in the retained journal, and irregularities in it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context as _, Result};
use neli_kafka::{ElectionId, Key, ReadRecord, clock};
use neli_proto::journal::Journal;
use neli_proto::leadership::{Leadership, ReadAt};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::{Finding, Found, Gap, History, PastTerm, TermEnd};
use neli_proto::record::Record;
use neli_proto::time::{Time, millis};

use crate::command::page::{Style, Tone, columns, wrapped};
use crate::command::reading::{self, Input, Others, Place, Reading, Unread, doubt, no_answer, read_at, warn_of_clock};
use crate::command::stdout;
use crate::command::wording::{counted, date, named, no_record};
use crate::config::HistoryOf;
use crate::exit::{ExitStatus, with_status};
use crate::report::election::{how_released, span};
use crate::report::log::{spoken, timestamp};
use crate::text::one_line;

mod json;
mod svg;
mod timestamp_clock;

use timestamp_clock::TimestampClock;

/// `--check`: two jobs may have run at once.
const VIOLATED: ExitStatus = ExitStatus::Answer(1);
/// The topic contains no record of the election.
const VACANT: ExitStatus = ExitStatus::Answer(3);
/// The journal could not be read in time.
const UNKNOWN: ExitStatus = ExitStatus::Answer(4);

/// Shows the terms of an election.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer, the log can't be read, or stdout or the file can't be written.
pub fn main(history: &HistoryOf) -> Result<ExitStatus> {
    let HistoryOf { look, since, check, svg } = history;
    let since_ms = |now_ms: u64| since.map_or(0, |since| now_ms.saturating_sub(millis(since)));
    let mut from_ms = since_ms(clock::wall_ms());
    let mut all = reading::run(read(history, from_ms))?;
    let now_ms = |all: &[Read]| all.iter().map(|read| by_broker(read, read_at()).wall_ms).min().unwrap_or_default();
    if since_ms(now_ms(&all)) < from_ms {
        // This machine's clock is ahead of the broker's, so findings of that time were left out.
        from_ms = since_ms(now_ms(&all));
        all = reading::run(read(history, from_ms))?;
    }
    if let Some(first) = all.first().filter(|_| !all.iter().any(|read| read.is_known)) {
        return Err(with_status(VACANT, no_record(&first.election, &first.others)));
    }
    warn_of_clock(all.iter().filter_map(|read| read.history.observer().is_ahead_by(read_at())).max());
    let now = read_at();
    let shown: Vec<Shown<'_>> = all.iter().map(|read| Shown::of(read, by_broker(read, now), from_ms, *check)).collect();
    if let (Some(path), [Shown { read, at, rows, .. }]) = (svg, shown.as_slice()) {
        std::fs::write(path, svg::draw(&named(&read.election), rows, from_ms..at.wall_ms))
            .with_context(|| format!("--svg {}", path.display()))?;
    }
    let (style, is_one) = (Style::of_stdout(), shown.len() == 1);
    let report_of = |one: &Shown<'_>| {
        let role = if is_one { String::new() } else { format!("{}: ", one_line(&one.read.election.label())) };
        role + &report(&one.rows, &one.findings, one.read.clock, style)
    };
    let text = match (look.json, check, shown.as_slice()) {
        (true, _, all) => all.iter().map(json::lines).collect(),
        (false, true, all) => all.iter().map(report_of).collect(),
        (false, false, [one]) => table(&one.rows, one.at.wall_ms, style),
        (false, false, all) => table_of_roles(all, style),
    };
    stdout::written(io::stdout().write_all(text.as_bytes()))?;
    Ok(if shown.iter().any(Shown::is_violated) { VIOLATED } else { ExitStatus::Success })
}

/// The time by the broker's clock.
fn by_broker(read: &Read, at: ReadAt) -> ReadAt {
    ReadAt { wall_ms: read.history.observer().broker_now(at), ..at }
}

/// A journal that was read.
#[derive(Clone)]
struct Read {
    election: ElectionId,
    history: History,
    /// What was read of other elections.
    others: Others,
    /// Whether a record of the election or the hello of one of its candidates was read.
    is_known: bool,
    clock: TimestampClock,
}

/// What is shown of an election.
struct Shown<'a> {
    read: &'a Read,
    at: ReadAt,
    rows: Vec<Row<'a>>,
    findings: Vec<Found>,
}

impl<'a> Shown<'a> {
    fn of(read: &'a Read, at: ReadAt, from_ms: u64, check: bool) -> Self {
        let findings = if check { read.history.findings(at) } else { Vec::new() };
        Self { read, at, rows: rows(&read.history, at, from_ms), findings }
    }

    fn is_violated(&self) -> bool {
        self.findings.iter().any(|found| self.read.clock.is_violation(&found.finding))
    }
}

/// Reads the whole journals, up to their ends when the reading begins.
async fn read(history: &HistoryOf, from_ms: u64) -> Result<Vec<Read>> {
    let look = &history.look;
    let access = reading::access(&look.client)?;
    let place = match Place::find(&access, &look.election, look.timeout, |_| {}).await {
        Ok(place) => place,
        Err(Unread::NoAnswer(why)) => return Err(with_status(UNKNOWN, why)),
        Err(Unread::Refused(refusal)) => return Err(refusal),
    };
    if history.svg.is_some() {
        place.one("--svg draws one, and --role says which")?;
    }
    read_to_end(&mut place.read(&access)?, &place, look.timeout, from_ms).await
}

async fn read_to_end(reading: &mut Reading, place: &Place, timeout: Duration, from_ms: u64) -> Result<Vec<Read>> {
    // The reading begins when all ends are known, since a hello in one partition may be about an election in another.
    let (mut ends, mut all, mut trouble) = (BTreeMap::new(), Vec::new(), None);
    while !reading.is_at_end() {
        // The journals may be long: only each answer has a time limit, not the whole reading.
        let input = reading.next(Some(clock::now() + timeout)).await?;
        let at = read_at();
        match input {
            Input::Cut => return Err(reading.history_cut()),
            Input::Down(error) => trouble = Some(error),
            Input::Ends { partition, asked, start, end } if all.is_empty() => {
                ends.insert(partition, (asked, start, end));
                if ends.len() == place.partitions().len() {
                    let begun = |election: &ElectionId| {
                        let (asked, start, end) = ends.get(&election.partition)?;
                        let mut journal = Journal::read_from(*start, reading::origin(*start, *start));
                        journal.answered(at.now, *asked, *end);
                        let (history, others) = (History::new(journal).since(from_ms), Others::default());
                        let (election, clock) = (election.clone(), TimestampClock::Brokers);
                        Some(Read { election, history, others, is_known: false, clock })
                    };
                    all = place.elections.iter().filter_map(begun).collect();
                    for (partition, (_, start, end)) in &ends {
                        let has_one = place.elections.iter().any(|election| election.partition == *partition);
                        reading.read_from(*partition, if has_one { *start } else { (*start).max(end - FIRST_SPAN) });
                    }
                }
            }
            Input::Ends { partition, asked, end, .. } => {
                let here = all.iter_mut().filter(|read| read.election.partition == partition);
                here.for_each(|read| read.history.answered(at.now, asked, end));
            }
            Input::Record { partition, record } => {
                let is_one_machine = reading.is_embedded();
                for read in &mut all {
                    read.take_in(at, partition, &record, is_one_machine);
                }
            }
            Input::Timeout => return Err(with_status(UNKNOWN, no_answer(timeout, trouble))),
            Input::CaughtUp | Input::Up | Input::Warning(_) => {}
        }
    }
    listen(reading, &mut all, clock::now() + timeout).await?;
    Ok(all)
}

/// Reads on for a moment, if the timestamps don't tell whether the leaders are silent.
async fn listen(reading: &mut Reading, all: &mut [Read], deadline: Time) -> Result<()> {
    for read in &mut *all {
        read.history.caught_up();
    }
    let doubted = all.iter().map(|read| (read.history.observer(), read.clock == TimestampClock::Brokers));
    let Some(doubt) = doubt(doubted, reading, deadline) else { return Ok(()) };
    let until = deadline.min(clock::now() + doubt);
    while all.iter().any(|read| read.history.observer().doubts_timestamps(read_at()).is_some()) {
        match reading.next(Some(until)).await? {
            Input::Timeout => break,
            Input::Cut => return Err(reading.history_cut()),
            Input::Ends { partition, asked, end, .. } => {
                let here = all.iter_mut().filter(|read| read.election.partition == partition);
                here.for_each(|read| read.history.answered(clock::now(), asked, end));
            }
            Input::Record { partition, record } => {
                let is_one_machine = reading.is_embedded();
                for read in &mut *all {
                    read.take_in(read_at(), partition, &record, is_one_machine);
                }
            }
            Input::CaughtUp | Input::Down(_) | Input::Up | Input::Warning(_) => {}
        }
    }
    Ok(())
}

impl Read {
    /// `is_one_machine`: the candidates' clocks are one.
    fn take_in(&mut self, at: ReadAt, partition: i32, record: &ReadRecord, is_one_machine: bool) {
        let ReadRecord { offset, key, value, written_ms, is_brokers_time, .. } = record;
        let is_own = partition == self.election.partition && *key == Key::Election(self.election.role);
        self.is_known |= is_own || self.others.take_in(&self.election, record);
        if partition != self.election.partition {
            return;
        }
        if let Some(stamp_ms) = written_ms.filter(|_| *is_brokers_time) {
            self.history.stamped(stamp_ms);
        }
        if is_own {
            if !is_brokers_time && !is_one_machine {
                self.clock = TimestampClock::Candidates;
            }
            let parsed = value.as_deref().and_then(Record::parse);
            self.history.read(at, *offset, parsed.as_ref(), *written_ms);
        } else {
            self.history.read_other(at.now, *offset);
        }
    }
}

/// A term with the data that is shown.
struct Row<'a> {
    past: &'a PastTerm,
    /// Until when its leader led at least; `None` if it still leads or the time is unknown.
    to_ms: Option<u64>,
    end: End<'a>,
    gap: Option<Gap>,
    /// There is no leader now: the gap lasts until now.
    is_open: bool,
}

/// How the term ended, or its present state.
enum End<'a> {
    Leads,
    /// `--overlap`: another candidate has claimed while the job continued.
    Overlapped,
    Released(&'a neli_proto::leadership::Release),
    /// The leader fell silent: its lease is over, or it has missed three heartbeats.
    Silent,
    Unknown,
}

impl Row<'_> {
    /// How long the leader led at least, until now if it still leads.
    fn led_for(&self, at_ms: u64) -> Option<Duration> {
        let to_ms = match self.end {
            End::Leads => Some(at_ms),
            End::Overlapped | End::Released(_) | End::Silent | End::Unknown => self.to_ms,
        };
        Some(Duration::from_millis(to_ms?.saturating_sub(self.past.from_ms?)))
    }

    /// The same in words. After its last record a leader that fell silent may have led up to its lease's end.
    fn led(&self, at_ms: u64) -> Option<String> {
        let led = span(self.led_for(at_ms)?);
        let is_exact = matches!(self.end, End::Leads) || self.to_ms == self.past.lease_over_ms();
        Some(if is_exact { led } else { format!("{led} or more") })
    }

    /// The end of the term in words.
    fn how(&self) -> String {
        match &self.end {
            End::Leads => "leads".to_owned(),
            End::Overlapped => "another led while its job ran on (--overlap)".to_owned(),
            End::Released(release) => how_released(release),
            End::Silent if self.gap.is_some_and(|gap| gap.least.is_zero() && self.is_open) => {
                let silent = self.gap.map_or_else(String::new, |gap| span(gap.most));
                format!("silent for {silent} (lease {})", spoken(self.past.lease))
            }
            End::Silent => {
                let since = if self.is_open { "ago" } else { "before the next claim" };
                let last_heartbeat =
                    self.gap.map_or_else(String::new, |gap| format!("; last heartbeat {} {since}", span(gap.most)));
                format!("silent beyond its lease ({}){last_heartbeat}", spoken(self.past.lease))
            }
            End::Unknown => "records are missing".to_owned(),
        }
    }
}

fn rows(history: &History, at: ReadAt, from_ms: u64) -> Vec<Row<'_>> {
    let current = history.observer().leadership(at);
    let is_silent = matches!(current, Leadership::Overdue { .. } | Leadership::Silent { .. });
    let (open, last) = (history.open_gap(at), history.terms().len().saturating_sub(1));
    let rows = history.terms().iter().enumerate().map(|(number, past)| {
        let end = match &past.end {
            TermEnd::Open if is_silent => End::Silent,
            TermEnd::Open => End::Leads,
            TermEnd::Overlapped { .. } => End::Overlapped,
            TermEnd::Released(release) => End::Released(release),
            TermEnd::Silent => End::Silent,
            TermEnd::Unknown => End::Unknown,
        };
        let has_ended = !matches!(end, End::Leads);
        let to_ms = past.led_until_ms().filter(|_| has_ended);
        let open = open.filter(|_| number == last);
        // If the end is unknown, the term was over when the next one began.
        let next = history.terms().get(number + 1);
        let over_by = past.lease_over_ms().filter(|_| has_ended);
        let over_by = over_by.or_else(|| next.and_then(|next| next.from_ms.or(next.last_record_ms)));
        let row = Row { past, to_ms, end, gap: history.gap_after(number).or(open), is_open: open.is_some() };
        (row, over_by)
    });
    let is_shown =
        |(row, over_by): &(Row<'_>, Option<u64>)| row.is_open || over_by.is_none_or(|over_by| over_by >= from_ms);
    rows.filter(is_shown).map(|(row, _)| row).collect()
}

const HEAD: [&str; 6] = ["TERM", "LEADER", "FROM", "LED FOR", "GAP", "END"];

/// One line per term.
fn table(rows: &[Row<'_>], at_ms: u64, style: Style) -> String {
    if rows.is_empty() {
        return "no terms\n".to_owned();
    }
    columns(HEAD, &rows.iter().map(|row| cells(row, at_ms)).collect::<Vec<_>>(), style)
}

/// One line per term of each role.
fn table_of_roles(shown: &[Shown<'_>], style: Style) -> String {
    if shown.iter().all(|one| one.rows.is_empty()) {
        return table(&[], 0, style);
    }
    let [term, leader, from, led, gap, end] = HEAD;
    let of_role = |one: &Shown<'_>| {
        let role = one_line(&one.read.election.label());
        let rows = one.rows.iter().map(|row| cells(row, one.at.wall_ms));
        let rows = rows.map(|[term, leader, from, led, gap, end]| [role.clone(), term, leader, from, led, gap, end]);
        rows.collect::<Vec<_>>()
    };
    columns(["ROLE", term, leader, from, led, gap, end], &shown.iter().flat_map(of_role).collect::<Vec<_>>(), style)
}

fn cells(row: &Row<'_>, at_ms: u64) -> [String; 6] {
    let unknown = || "-".to_owned();
    [
        row.past.term.to_string(),
        one_line(row.past.shown()),
        row.past.from_ms.map_or_else(unknown, date),
        row.led(at_ms).unwrap_or_else(unknown),
        row.gap.map_or_else(unknown, |gap| unled_for(gap) + if row.is_open { ", and on" } else { "" }),
        one_line(&row.how()),
    ]
}

/// The findings of `--check`; possible overlaps of jobs come first.
fn report(rows: &[Row<'_>], findings: &[Found], clock: TimestampClock, style: Style) -> String {
    let terms = counted(rows.len() as u64, "term");
    let (tone, verdict) = if findings.iter().any(|found| clock.is_violation(&found.finding)) {
        (Tone::Bad, format!("{terms}: two jobs may have run at once"))
    } else if findings.iter().any(|found| clock.is_doubtful(&found.finding)) {
        (Tone::Unknown, format!("{terms}: can't tell whether two overlapped"))
    } else {
        (Tone::Good, format!("{terms}: no two overlapped"))
    };
    let mut lines = vec![style.paint(tone, &verdict)];
    let width = style.columns.unwrap_or(usize::MAX);
    let findings = findings.iter().map(|found| &found.finding);
    let (bad, unusual): (Vec<&Finding>, Vec<&Finding>) = findings.partition(|finding| finding.is_violation());
    for finding in bad.into_iter().chain(unusual) {
        lines.extend(wrapped(&sentence(finding, clock), width));
    }
    lines.join("\n") + "\n"
}

/// The length of a time without a leader.
fn unled_for(gap: Gap) -> String {
    if gap.least == gap.most { span(gap.most) } else { format!("up to {}", span(gap.most)) }
}

/// A finding as a sentence.
fn sentence(finding: &Finding, clock: TimestampClock) -> String {
    match finding {
        Finding::Overlap { term, before, by } => {
            let whose = match clock {
                TimestampClock::Brokers => "the broker's timestamps",
                TimestampClock::Candidates => {
                    "the candidates' own timestamps (message.timestamp.type=CreateTime), and their clocks may differ"
                }
            };
            let by = spoken(*by);
            format!(
                "overlap: term {term} was claimed up to {by} before the lease of term {before} was over, by {whose}"
            )
        }
        Finding::LateFence { term, late, overlaps } => {
            let other = if *overlaps { ", and another led by then" } else { "" };
            format!(
                "late fence: the job of term {term} may have been alive until {} after its lease's end{other}",
                spoken(*late)
            )
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
            format!("not effective: {}", kinds.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        Finding::Missing { times } => {
            format!("records are missing in {}: the leader of that time is unknown", counted(*times, "place"))
        }
    }
}

fn or_null(ms: Option<u64>) -> Option<String> {
    ms.map(timestamp)
}

#[cfg(test)]
mod tests;
