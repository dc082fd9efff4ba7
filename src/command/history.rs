//! `history`: the terms in the retained journal, and irregularities in it.

use std::io::{self, Write};
use std::time::Duration;

use neli::program::{ElectionId, Key, ReadRecord, clock};
use neli_proto::journal::Journal;
use neli_proto::observer::{Finding, Found, Gap, History, Leadership, PastTerm, ReadAt, TermEnd};
use neli_proto::record::{Offset, Record};
use neli_proto::time::{Time, millis};

use crate::command::page::{Style, Tone, columns, wrapped};
use crate::command::reading::{self, Input, Others, Place, Reading, Unread, doubt, no_answer, read_at, warn_of_clock};
use crate::command::stdout;
use crate::command::wording::{counted, date, how_released, named, no_record, span};
use crate::config::{HistoryOf, Look};
use crate::exit::{ExitStatus, StartupError};
use crate::report::log::{spoken, timestamp};
use crate::text::{one_line, reason};

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
pub fn main(history: &HistoryOf) -> Result<ExitStatus, StartupError> {
    let HistoryOf { look, since, check, svg } = history;
    let since_ms = |now_ms: u64| since.map_or(0, |since| now_ms.saturating_sub(millis(since)));
    let mut from_ms = since_ms(clock::wall_ms());
    let (election, mut all) = reading::run(read(look, from_ms))?;
    let by_broker = |read: &Read, at| ReadAt { wall_ms: read.history.observer().broker_now(at), ..at };
    if since_ms(by_broker(&all, read_at()).wall_ms) < from_ms {
        // This machine's clock is ahead of the broker's, so findings of that time were left out.
        from_ms = since_ms(by_broker(&all, read_at()).wall_ms);
        all = reading::run(read(look, from_ms))?.1;
    }
    if !all.is_known {
        return Err(StartupError::with(VACANT, no_record(&election, &all.others)));
    }
    warn_of_clock(all.history.observer().is_ahead_by(read_at()));
    let at = by_broker(&all, read_at());
    let Read { history: read, clock, .. } = all;
    let rows = rows(&read, at, from_ms);
    if let Some(path) = svg {
        std::fs::write(path, svg::draw(&named(&election), &rows, from_ms..at.wall_ms))
            .map_err(|error| StartupError::new(format!("--svg {}: {}", path.display(), reason(&error))))?;
    }
    let findings = if *check { read.findings(at) } else { Vec::new() };
    let text = match (look.json, check) {
        (true, _) => json::lines(&election, at, &rows, (&findings, clock)),
        (false, true) => report(&rows, &findings, clock, Style::of_stdout()),
        (false, false) => table(&rows, at.wall_ms, Style::of_stdout()),
    };
    stdout::written(io::stdout().write_all(text.as_bytes()))?;
    Ok(if findings.iter().any(|found| clock.is_violation(&found.finding)) { VIOLATED } else { ExitStatus::Success })
}

/// A journal that was read.
#[derive(Clone)]
struct Read {
    history: History,
    /// What was read of other elections.
    others: Others,
    /// Whether a record of the election or the hello of one of its candidates was read.
    is_known: bool,
    clock: TimestampClock,
}

/// Reads the whole journal, up to its end when the reading begins.
async fn read(look: &Look, from_ms: u64) -> Result<(ElectionId, Read), StartupError> {
    let access = reading::access(&look.client)?;
    let place = match Place::find(&access, &look.election, look.timeout).await {
        Ok(place) => place,
        Err(Unread::NoAnswer(why)) => return Err(StartupError::with(UNKNOWN, why)),
        Err(Unread::Refused(refusal)) => return Err(refusal),
    };
    let mut reading = Reading::with_hellos(&access, &place)?;
    let history = read_to_end(&mut reading, &place.election, look.timeout, from_ms).await?;
    Ok((place.election, history))
}

async fn read_to_end(
    reading: &mut Reading,
    election: &ElectionId,
    timeout: Duration,
    from_ms: u64,
) -> Result<Read, StartupError> {
    let mut read: Option<(History, Offset)> = None;
    // A hello in another partition may be read before the start of the election's partition is known.
    let (mut caught_up, mut trouble, mut others, mut is_known) = (0, None, Others::default(), false);
    let (mut clock, is_one_machine) = (TimestampClock::Brokers, reading.embedded().is_some());
    loop {
        // The journal may be long: only each answer has a time limit, not the whole reading.
        let input = reading.next(Some(clock::now() + timeout)).await?;
        let at = read_at();
        match (input, &mut read) {
            (Input::Cut, _) => return Err(reading.history_cut()),
            (Input::Down(error), _) => trouble = Some(error),
            (Input::Ends { asked, start, end }, None) => {
                let mut journal = Journal::read_from(start, reading.origin(start, start));
                journal.answered(at.now, asked, end);
                read = Some((History::new(journal).since(from_ms), end));
                reading.read_from(start);
            }
            (Input::Ends { asked, end, .. }, Some((history, _))) => history.answered(at.now, asked, end),
            (Input::Record(record), Some((history, _))) => {
                is_known |= !matches!(record.key, Key::AnyHello | Key::Other) | others.take_in(election, &record);
                if matches!(record.key, Key::Election(_)) && !record.is_brokers_time && !is_one_machine {
                    clock = TimestampClock::Candidates;
                }
                take_in(history, at, &record);
            }
            (Input::Hello(record), _) => is_known |= others.take_in(election, &record),
            (Input::CaughtUp(next), _) => caught_up = next,
            (Input::Timeout, _) => {
                return Err(StartupError::with(UNKNOWN, no_answer(timeout, trouble)));
            }
            (Input::Record(_) | Input::Up | Input::Warning(_), _) => {}
        }
        let is_read =
            |(history, end): &mut (History, Offset)| caught_up.max(history.observer().journal().next()) >= *end;
        if reading.has_read_hellos()
            && let Some((history, _)) = read.take_if(is_read)
        {
            let mut read = Read { history, others, is_known, clock };
            listen(reading, &mut read, clock::now() + timeout).await?;
            return Ok(read);
        }
    }
}

/// Reads on for a moment, if the timestamps don't tell whether the leader is silent.
async fn listen(reading: &mut Reading, read: &mut Read, deadline: Time) -> Result<(), StartupError> {
    let history = &mut read.history;
    history.caught_up();
    let is_brokers_time = read.clock == TimestampClock::Brokers;
    let Some(doubt) = doubt(history.observer(), is_brokers_time, reading, deadline) else { return Ok(()) };
    let until = deadline.min(clock::now() + doubt);
    while history.observer().doubts_timestamps(read_at()).is_some() {
        match reading.next(Some(until)).await? {
            Input::Timeout => break,
            Input::Cut => return Err(reading.history_cut()),
            Input::Ends { asked, end, .. } => history.answered(clock::now(), asked, end),
            Input::Record(record) => take_in(history, read_at(), &record),
            Input::CaughtUp(_) | Input::Down(_) | Input::Hello(_) | Input::Up | Input::Warning(_) => {}
        }
    }
    Ok(())
}

fn take_in(history: &mut History, at: ReadAt, record: &ReadRecord) {
    let ReadRecord { offset, key, value, written_ms, is_brokers_time, .. } = record;
    if let Some(stamp_ms) = written_ms.filter(|_| *is_brokers_time) {
        history.stamped(stamp_ms);
    }
    match key {
        Key::Election(_) => {
            let parsed = value.as_deref().and_then(Record::parse);
            history.read(at, *offset, parsed.as_ref(), *written_ms);
        }
        Key::AnyHello | Key::Hello(_) | Key::Other => history.read_other(at.now, *offset),
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
    Released(&'a neli_proto::observer::Release),
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
    let unknown = || "-".to_owned();
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|row| {
            [
                row.past.term.to_string(),
                one_line(row.past.shown()),
                row.past.from_ms.map_or_else(unknown, date),
                row.led(at_ms).unwrap_or_else(unknown),
                row.gap.map_or_else(unknown, |gap| unled_for(gap) + if row.is_open { ", and on" } else { "" }),
                one_line(&row.how()),
            ]
        })
        .collect();
    columns(HEAD, &cells, style)
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
