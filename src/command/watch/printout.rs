//! The output of `watch` for each record: each record with the law's verdict as JSON, or each change as a sentence.

use neli_kafka::ElectionId;
use neli_proto::hello::Hello;
use neli_proto::journal::Verdict;
use neli_proto::leadership::{Leadership, ReadAt};
use neli_proto::observer::{Change, Election, Observer, Place, Silence};
use neli_proto::record::{LogRecord, MAX_BYTES, Offset};
use neli_proto::time::millis;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::command::reading::in_topic;
use crate::command::wording::{self, job};
use crate::report::election::sentence;
use crate::text::{json, one_line, timestamp};

/// What is printed of an election: the lines that are not printed yet.
pub(super) struct Printout {
    json: bool,
    /// The election's place in its topic.
    pub(super) place: Place,
    /// The begin of each line about it, if other roles are shown too.
    prefix: String,
    /// The first offset that is shown.
    first: Offset,
    /// Earlier records, by their append time in milliseconds since 1970, are not shown.
    since_ms: u64,
    lines: Vec<String>,
}

/// A line of `--json`.
#[derive(Default, Serialize)]
struct Line<'a> {
    ts: String,
    role: Option<&'a str>,
    event: &'static str,
    partition: i32,
    offset: Option<Offset>,
    verdict: Option<&'static str>,
    term: Option<Offset>,
    record: Option<Box<RawValue>>,
    silent: Option<Value>,
}

impl Printout {
    /// A printout for a reading that has just begun.
    pub(super) fn new(json: bool, election: &ElectionId, is_one_of_many: bool, first: Offset, since_ms: u64) -> Self {
        Self {
            json,
            place: in_topic(election),
            prefix: if is_one_of_many { format!("{}: ", election.label()) } else { String::new() },
            first,
            since_ms,
            lines: Vec::new(),
        }
    }

    /// The lines to print, oldest first.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Handles a record of the election, which the law has judged. `is_live`: it was read as it was written.
    pub(super) fn judged(
        &mut self,
        at: ReadAt,
        observer: &Observer,
        record: &LogRecord,
        (verdict, changes): (Verdict, Vec<Change>),
        is_live: bool,
    ) {
        let LogRecord { offset, written_ms, .. } = record;
        // The job's state is tracked before the first shown offset too, so that a state that was known then is not shown as a change.
        if *offset < self.first || written_ms.is_some_and(|written_ms| written_ms < self.since_ms) {
            return;
        }
        let mut changes = changes.into_iter().peekable();
        while let Some(Change::FellSilent(silence)) = changes.next_if(|next| matches!(next, Change::FellSilent(_))) {
            self.fell_silent(SILENT, silence);
        }
        let at_ms = written_ms.unwrap_or(at.wall_ms);
        if self.json {
            self.print(observer, at_ms, self.place.partition, verdict_name(verdict), record);
        }
        for change in changes {
            if !self.json {
                let is_end_of_silence = matches!(change, Change::SilenceEnded { .. });
                let is_by_own_clock = is_end_of_silence && (is_live || written_ms.is_none());
                let wall_ms = if is_by_own_clock { Some(at.wall_ms) } else { *written_ms };
                let sentence = wording::change(observer, &change);
                self.tell(wall_ms, &sentence);
            } else if let (Change::LateBeat { gap }, Some(leader)) = (change, observer.leader()) {
                // The leader is silent although its heartbeat came, which begins the silence anew. Otherwise a program that reads the heartbeat
                // would take the leader for one that leads.
                self.fell_silent(SILENT, Silence::of(leader, gap, at_ms.saturating_add(millis(gap))));
            }
        }
    }

    /// Handles a hello.
    pub(super) fn hello(&mut self, at: ReadAt, observer: &Observer, partition: i32, record: &LogRecord) {
        let written_ms = record.written_ms.unwrap_or(at.wall_ms);
        if written_ms < self.since_ms || (partition == self.place.partition && record.offset < self.first) {
            return;
        }
        if self.json {
            self.print(observer, written_ms, partition, HELLO, record);
        } else if let Some(hello) = record.value.as_deref().and_then(Hello::parse) {
            self.lines.push(line(Some(written_ms), "", &wording::hello(&hello)));
        }
    }

    fn print(&mut self, observer: &Observer, ms: u64, partition: i32, verdict: &'static str, record: &LogRecord) {
        let term = observer.journal().term();
        let (event, offset, verdict) = ("record", Some(record.offset), Some(verdict));
        let record = record.value.as_deref().and_then(as_read);
        // A hello may be about several roles.
        let role = Some(&*self.place.role).filter(|_| verdict != Some(HELLO));
        let line = Line { ts: timestamp(ms), role, event, partition, offset, verdict, term, record, ..Line::default() };
        self.lines.push(json(&line));
    }

    /// Reports that the leader is or was silent, or overdue.
    fn fell_silent(&mut self, event: &'static str, silence: Silence) {
        if !self.json {
            let sentence = wording::silent(&silence);
            return self.tell(Some(silence.since_ms), &sentence);
        }
        let Silence { term, name, lease, silent, since_ms } = silence;
        let line = Line {
            ts: timestamp(since_ms),
            role: Some(&self.place.role),
            event,
            partition: self.place.partition,
            silent: Some(json!({ "name": name, "term": term, "lease_ms": millis(lease), "for_ms": millis(silent) })),
            ..Line::default()
        };
        self.lines.push(json(&line));
    }

    /// Reports the leader's silence, unless it was reported before.
    pub(super) fn tell_silence(&mut self, at: ReadAt, election: &mut Election) {
        let Some(current) = election.untold_silence(at) else { return };
        if let (true, Leadership::Overdue { leader, age, .. } | Leadership::Silent { leader, age, .. }) =
            (self.json, current)
        {
            let event = if current.is_vacant() { SILENT } else { "overdue" };
            return self.fell_silent(event, Silence::of(leader, age, at.wall_ms));
        }
        self.tell(Some(at.wall_ms), &sentence(current));
    }

    /// Handles the end of the log: reports the present leader.
    pub(super) fn caught_up(&mut self, at: ReadAt, election: &mut Election) {
        if self.json {
            return self.tell_silence(at, election);
        }
        let current = election.told(at);
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

/// The event of a silence that is longer than the lease.
const SILENT: &str = "silent";

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

/// The record's original bytes in one line. Line ends and tabs can be removed, because JSON has them only between its tokens.
fn as_read(value: &[u8]) -> Option<Box<RawValue>> {
    if value.len() > MAX_BYTES {
        return None;
    }
    let value: Box<RawValue> = serde_json::from_slice(value).ok()?;
    RawValue::from_string(value.get().replace(['\n', '\r', '\t'], " ")).ok()
}

#[cfg(test)]
mod tests;
