//! The output of `watch` for each record: each record with the law's verdict as JSON, or each change as a sentence.

use std::time::Duration;

use neli_kafka::ElectionId;
use neli_proto::journal::{Journal, Verdict};
use neli_proto::leadership::{Leadership, ReadAt};
use neli_proto::listener::silence;
use neli_proto::observer::{Change, Observer, Silence};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{MAX_BYTES, Offset, Record};
use neli_proto::time::{Time, millis};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::command::wording::{self, Told, job};
use crate::report::election::sentence;
use crate::report::log::timestamp;
use crate::text::{json, one_line};

/// The election that was read, and the lines that are not printed yet.
pub(super) struct Account {
    json: bool,
    /// The election's role.
    role: String,
    /// The begin of each line about it, if other roles are shown too.
    prefix: String,
    /// The election's partition.
    partition: i32,
    shown: Shown,
    observer: Observer,
    /// Whether the reading has reached the end that the log had at the start.
    is_live: bool,
    /// Whether Kafka answers. While it does not, no heartbeat can be read, so nothing is said of a silence.
    is_answered: bool,
    /// How much of the leader's silence was reported.
    told: Told,
    lines: Vec<String>,
}

/// The selection of the records that are shown.
pub(super) struct Shown {
    /// The first offset.
    pub(super) first: Offset,
    /// Earlier records, by their append time in milliseconds since 1970, are not shown.
    pub(super) since_ms: u64,
}

/// The position of a record.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) partition: i32,
    pub(super) offset: Offset,
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    role: Option<&'a str>,
    event: &'static str,
    partition: i32,
    offset: Option<Offset>,
    verdict: Option<&'static str>,
    term: Option<Offset>,
    record: Option<Box<RawValue>>,
    silent: Option<SilentLine>,
}

/// A line about a silence, which no record reports.
#[derive(Serialize)]
struct SilentLine {
    name: Box<str>,
    term: Offset,
    lease_ms: u64,
    for_ms: u64,
}

impl Account {
    /// An account for a reading that has just begun.
    pub(super) fn new(json: bool, election: &ElectionId, is_one_of_many: bool, shown: Shown, journal: Journal) -> Self {
        Self {
            json,
            role: election.label(),
            prefix: if is_one_of_many { format!("{}: ", election.label()) } else { String::new() },
            partition: election.partition,
            shown,
            observer: Observer::new(journal),
            is_live: false,
            is_answered: true,
            told: Told::Nothing,
            lines: Vec::new(),
        }
    }

    /// The next offset of the election's log that is to be read.
    pub(super) const fn next(&self) -> Offset {
        self.observer.journal().next()
    }

    /// The lines to print, oldest first.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Handles an answer: the log ended at `end` when it was `asked`.
    pub(super) fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.is_answered = true;
        self.observer.answered(now, asked, end);
    }

    /// Handles that Kafka does not answer.
    pub(super) const fn unanswered(&mut self) {
        self.is_answered = false;
    }

    /// Handles the record at `offset`, which has another key.
    pub(super) fn read_other(&mut self, now: Time, offset: Offset) {
        self.observer.read_other(now, offset);
    }

    /// Handles the election's record at `offset`, which was appended at `written_ms` after 1970 by the broker's clock.
    pub(super) fn read(&mut self, at: ReadAt, offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) {
        if offset < self.observer.journal().next() {
            return;
        }
        self.is_answered = true;
        let record = value.and_then(Record::parse);
        let (verdict, changes) = self.observer.read(at, offset, record.as_ref(), written_ms);
        let is_shown =
            offset >= self.shown.first && written_ms.is_none_or(|written_ms| written_ms >= self.shown.since_ms);
        let (past, changes): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|change| matches!(change, Change::FellSilent(_)));
        for change in past {
            let told = std::mem::replace(&mut self.told, Told::Silent);
            if let (Change::FellSilent(silence), true) = (change, is_shown && told < Told::Silent) {
                self.fell_silent(silence);
            }
        }
        if self.json && is_shown {
            let written_ms = written_ms.unwrap_or(at.wall_ms);
            let position = Position { partition: self.partition, offset };
            self.print(written_ms, position, verdict_name(verdict), value);
        }
        for change in changes {
            let told = self.told;
            self.told = told.after(&change);
            let wall_ms = match &change {
                Change::SilenceEnded { .. } if told == Told::Nothing => continue,
                Change::SilenceEnded { .. } => written_ms.filter(|_| !self.is_live).or(Some(at.wall_ms)),
                Change::EarlierJobGone { .. }
                | Change::FellSilent(_)
                | Change::Job(_)
                | Change::LateBeat { .. }
                | Change::Led
                | Change::Missing
                | Change::Overlapped(_)
                | Change::Released(_)
                | Change::Requested { .. }
                | Change::Yields => written_ms,
            };
            if let (Change::LateBeat { gap }, true) = (&change, self.json && is_shown) {
                // Otherwise a program that reads the heartbeat would take its leader for one that leads.
                self.late_beat(*gap, written_ms.unwrap_or(at.wall_ms));
            }
            // The job's state is tracked before the first shown offset too, so that a state that was known then is not shown as a change.
            if !self.json && is_shown {
                let sentence = wording::change(&self.observer, change);
                self.tell(wall_ms, &sentence);
            }
        }
    }

    /// Handles a hello at this position.
    pub(super) fn hello(&mut self, at: ReadAt, position: Position, value: &[u8], written_ms: Option<u64>) {
        let Position { partition, offset } = position;
        let written_ms = written_ms.unwrap_or(at.wall_ms);
        if written_ms < self.shown.since_ms || (partition == self.partition && offset < self.shown.first) {
            return;
        }
        if self.json {
            self.print(written_ms, position, HELLO, Some(value));
        } else if let Some(hello) = ProcessHello::parse(value) {
            self.lines.push(line(Some(written_ms), "", &wording::hello(&hello)));
        }
    }

    fn print(&mut self, ms: u64, position: Position, verdict: &'static str, value: Option<&[u8]>) {
        let Position { partition, offset } = position;
        let term = self.observer.journal().term();
        let (event, offset, verdict) = ("record", Some(offset), Some(verdict));
        let record = value.and_then(as_read);
        // A hello may be about several roles.
        let role = Some(self.role.as_str()).filter(|_| verdict != Some(HELLO));
        let line = Line { ts: timestamp(ms), role, event, partition, offset, verdict, term, record, silent: None };
        self.lines.push(json(&line));
    }

    /// Reports that a leader is silent although its heartbeat came.
    fn late_beat(&mut self, gap: Duration, written_ms: u64) {
        let silent = self.observer.leader().map(|leader| Silence {
            term: leader.term,
            name: leader.shown().into(),
            lease: leader.lease,
            silent: gap,
            since_ms: written_ms.saturating_add(millis(silence(leader.lease))),
        });
        if let Some(silent) = silent {
            self.fell_silent(silent);
        }
    }

    /// Reports that the leader is or was silent.
    fn fell_silent(&mut self, silence: Silence) {
        if !self.json {
            let sentence = wording::silent(&silence);
            return self.tell(Some(silence.since_ms), &sentence);
        }
        let Silence { term, name, lease, silent, since_ms } = silence;
        let line = Line {
            ts: timestamp(since_ms),
            role: Some(&self.role),
            event: if silent < lease { "overdue" } else { "silent" },
            partition: self.partition,
            offset: None,
            verdict: None,
            term: None,
            record: None,
            silent: Some(SilentLine { name, term, lease_ms: millis(lease), for_ms: millis(silent) }),
        };
        self.lines.push(json(&line));
    }

    /// When the leader's silence must be reported, unless a record comes before.
    pub(super) fn poll_timeout(&self, at: ReadAt) -> Option<Time> {
        self.observer.silent_at(at).filter(|_| self.is_live && self.is_answered)
    }

    /// Reports the leader's silence, if it is due.
    pub(super) fn handle_timeout(&mut self, at: ReadAt) {
        if self.is_live && self.is_answered {
            self.tell_silence(at);
        }
    }

    /// Reports the leader's silence, unless it was reported before.
    pub(super) fn tell_silence(&mut self, at: ReadAt) {
        let current = self.observer.leadership(at);
        let (Leadership::Overdue { leader, age, .. } | Leadership::Silent { leader, age, .. }) = current else {
            return;
        };
        let silence = Told::by(current);
        if silence <= std::mem::replace(&mut self.told, silence) {
            return;
        }
        if self.json {
            let silence = Silence::of(leader, age, at.wall_ms);
            return self.fell_silent(silence);
        }
        let sentence = sentence(current).to_string();
        self.tell(Some(at.wall_ms), &sentence);
    }

    /// Handles the end of the log: reports the present leader.
    pub(super) fn caught_up(&mut self, at: ReadAt) {
        self.is_live = true;
        self.observer.caught_up();
        if self.json {
            return self.tell_silence(at);
        }
        let current = self.observer.leadership(at);
        self.told = Told::by(current);
        let led = current.leader().filter(|_| current.is_led());
        let more = led.map_or_else(String::new, |leader| {
            let job = leader.job.map_or_else(String::new, |of_leader| format!(": {}", job(of_leader)));
            format!(", term {}{job}", leader.term)
        });
        let sentence = format!("as of now: {}{more}", sentence(current));
        self.tell(Some(at.wall_ms), &sentence);
    }

    fn tell(&mut self, wall_ms: Option<u64>, sentence: &str) {
        self.lines.push(line(wall_ms, &self.prefix, sentence));
    }
}

/// The verdict on a hello, to which the law does not apply.
const HELLO: &str = "hello";

fn line(wall_ms: Option<u64>, prefix: &str, sentence: &str) -> String {
    let at = wall_ms.map_or_else(|| "(no time)".to_owned(), timestamp);
    format!("{at} {}", one_line(&format!("{prefix}{sentence}")))
}

const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Effective => "effective",
        Verdict::Nonsense => "nonsense",
        Verdict::Undecided => "undecided",
        Verdict::Void => "void",
    }
}

/// The record's original bytes in one line. Line ends can be removed, because JSON has them only between its tokens.
fn as_read(value: &[u8]) -> Option<Box<RawValue>> {
    if value.len() > MAX_BYTES {
        return None;
    }
    let line = std::str::from_utf8(value).ok()?.replace(['\n', '\r'], " ");
    serde_json::from_str(&line).ok()
}

#[cfg(test)]
mod tests;
