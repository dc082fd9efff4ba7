//! What `watch` prints of each record: every one with the law's verdict, as JSON; or what changed, as sentences.

use neli_proto::journal::{Journal, Verdict};
use neli_proto::observer::{Change, Leadership, Observer, ReadAt};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{MAX_BYTES, Offset, Record};
use neli_proto::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::command::wording::{self, job, leadership};
use crate::report::log::timestamp;
use crate::text::one_line;

/// The election as it was read, and the lines that are still to be shown of it.
pub(super) struct Account {
    json: bool,
    /// In which partition the election is.
    partition: i32,
    /// The first offset that is shown.
    first: Offset,
    /// What was appended before that, in milliseconds since 1970, is not shown.
    since_ms: u64,
    observer: Observer,
    /// All that was there at the start has been read.
    is_live: bool,
    /// It was told that the leader is silent.
    is_silent: bool,
    lines: Vec<String>,
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line {
    ts: String,
    partition: i32,
    offset: Offset,
    verdict: &'static str,
    term: Option<Offset>,
    record: Option<Box<RawValue>>,
}

impl Account {
    /// Of a reading that has just begun, shown from `first` on.
    pub(super) fn new(json: bool, partition: i32, (first, since_ms): (Offset, u64), journal: Journal) -> Self {
        let observer = Observer::new(journal);
        Self { json, partition, first, since_ms, observer, is_live: false, is_silent: false, lines: Vec::new() }
    }

    /// What is to be shown, oldest first.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// The log ended at `end` when that was `asked`.
    pub(super) fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.observer.answered(now, asked, end);
    }

    /// A record of another key stands at `offset`.
    pub(super) fn read_other(&mut self, now: Time, offset: Offset) {
        self.observer.read_other(now, offset);
    }

    /// A record of the election stands at `offset`, and was written `written_ms` after 1970 by the broker's clock.
    pub(super) fn read(&mut self, at: ReadAt, offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) {
        if offset < self.observer.journal().next() {
            return;
        }
        let record = value.and_then(Record::parse);
        let (verdict, changes) = self.observer.read(at, offset, record.as_ref(), written_ms);
        let is_shown = offset >= self.first && written_ms.is_none_or(|written_ms| written_ms >= self.since_ms);
        if self.json && is_shown {
            let written_ms = written_ms.unwrap_or(at.wall_ms);
            self.print(written_ms, (self.partition, offset), word(verdict), value);
        }
        for change in changes {
            let was_silent = self.is_silent;
            self.is_silent &= matches!(change, Change::EarlierJobGone { .. } | Change::Requested { .. });
            let wall_ms = match &change {
                Change::HeardAgain { .. } if !was_silent => continue,
                Change::HeardAgain { .. } => Some(at.wall_ms),
                Change::EarlierJobGone { .. }
                | Change::Job(_)
                | Change::Led
                | Change::Missing
                | Change::Overlapped(_)
                | Change::Released(_)
                | Change::Requested { .. }
                | Change::Yields => written_ms,
            };
            // The job is followed before the first offset that is shown, too: what was known then is no change.
            if !self.json && is_shown {
                let sentence = wording::change(&self.observer, change);
                self.tell(wall_ms, &sentence);
            }
        }
    }

    /// A hello stands at `offset` of that partition.
    pub(super) fn hello(
        &mut self,
        at: ReadAt,
        (partition, offset): (i32, Offset),
        value: &[u8],
        written_ms: Option<u64>,
    ) {
        let written_ms = written_ms.unwrap_or(at.wall_ms);
        if written_ms < self.since_ms || (partition == self.partition && offset < self.first) {
            return;
        }
        if self.json {
            self.print(written_ms, (partition, offset), "hello", Some(value));
        } else if let Some(hello) = ProcessHello::parse(value) {
            self.tell(Some(written_ms), &wording::hello(&hello));
        }
    }

    fn print(&mut self, ms: u64, (partition, offset): (i32, Offset), verdict: &'static str, value: Option<&[u8]>) {
        let term = self.observer.journal().term();
        let line = Line { ts: timestamp(ms), partition, offset, verdict, term, record: value.and_then(as_read) };
        // Strings and numbers under string keys: nothing of that can fail.
        self.lines.push(serde_json::to_string(&line).unwrap_or_default());
    }

    /// When it is to be told that the leader is silent, unless it is heard before.
    pub(super) fn poll_timeout(&self, at: ReadAt) -> Option<Time> {
        self.observer.silent_at(at).filter(|_| self.is_live && !self.is_silent && !self.json)
    }

    /// Tells that the leader is silent, where that is due.
    pub(super) fn handle_timeout(&mut self, at: ReadAt) {
        let sight = self.observer.leadership(at);
        if self.is_live && !self.is_silent && !self.json && matches!(sight, Leadership::Silent { .. }) {
            let sentence = leadership(sight);
            self.is_silent = true;
            self.tell(Some(at.wall_ms), &sentence);
        }
    }

    /// All that was there has been read: who leads now?
    pub(super) fn caught_up(&mut self, at: ReadAt) {
        self.is_live = true;
        self.observer.caught_up();
        if self.json {
            return;
        }
        let sight = self.observer.leadership(at);
        self.is_silent = matches!(sight, Leadership::Silent { .. });
        let more = match sight {
            Leadership::Led { leader, .. } => {
                let job = leader.job.map_or_else(String::new, |of_leader| format!(": {}", job(of_leader)));
                format!(", term {}{job}", leader.term)
            }
            Leadership::Forgotten
            | Leadership::NeverLed
            | Leadership::Released { .. }
            | Leadership::Silent { .. }
            | Leadership::Unknown => String::new(),
        };
        let sentence = format!("as of now: {}{more}", leadership(sight));
        self.tell(Some(at.wall_ms), &sentence);
    }

    fn tell(&mut self, wall_ms: Option<u64>, sentence: &str) {
        let at = wall_ms.map_or_else(|| "(no time)".to_owned(), timestamp);
        self.lines.push(format!("{at} {}", one_line(sentence)));
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Effective => "effective",
        Verdict::Nonsense => "nonsense",
        Verdict::Undecided => "undecided",
        Verdict::Void => "void",
    }
}

/// The record as it was read, byte for byte, whatever it means; in one line: JSON has line ends between its words alone.
fn as_read(value: &[u8]) -> Option<Box<RawValue>> {
    if value.len() > MAX_BYTES {
        return None;
    }
    let line = std::str::from_utf8(value).ok()?.replace(['\n', '\r'], " ");
    serde_json::from_str(&line).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use neli_proto::journal::Origin;
    use serde_json::Value;

    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000_000_000);
    const AT: ReadAt = ReadAt { now: NOW, wall_ms: 1_769_860_800_123 };

    fn account(json: bool, first: Offset) -> Account {
        Account::new(json, 2, (first, 0), Journal::read_from(0, Origin::Beginning))
    }

    fn read(account: &mut Account, offset: Offset, record: &str) {
        account.read(AT, offset, Some(record.as_bytes()), Some(1_769_860_800_123));
    }

    const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":5000}"#;

    fn beat(state: &str, pid: u32) -> String {
        format!(
            r#"{{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":5000,"state":"{state}","pid":{pid},"attempt":1,"since_ms":1}}"#
        )
    }

    const RELEASE: &str =
        r#"{"v":1,"kind":"release","member":"m","name":"web","seq":9,"term":0,"seen":0,"why":"exited","exit":3}"#;

    #[test]
    fn json_shows_every_record_with_its_verdict() {
        let mut account = account(true, 0);
        read(&mut account, 0, CLAIM);
        read(&mut account, 1, "not json");
        read(&mut account, 2, "{\"v\":9,\n\"new\":true}");
        account.read(AT, 3, None, None);
        account.read_other(NOW, 4);
        read(&mut account, 5, RELEASE);
        let lines = account.take_lines();
        let claim: Value = serde_json::from_str(CLAIM).unwrap();
        let (ts, first): (_, Value) = ("2026-01-31T12:00:00.123Z", serde_json::from_str(&lines[0]).unwrap());
        assert_eq!(
            first,
            serde_json::json!({"ts": ts, "partition": 2, "offset": 0, "verdict": "effective", "term": 0, "record": claim})
        );
        let begin = format!(r#"{{"ts":"{ts}","partition":2,"#);
        let lines: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&begin)).collect();
        assert_eq!(lines[1], r#""offset":1,"verdict":"nonsense","term":0,"record":null}"#);
        assert_eq!(lines[2], r#""offset":2,"verdict":"nonsense","term":0,"record":{"v":9, "new":true}}"#);
        assert_eq!(lines[3], r#""offset":3,"verdict":"nonsense","term":0,"record":null}"#);
        assert!(lines[4].starts_with(r#""offset":5,"verdict":"effective","term":null,"record":{"#), "{}", lines[4]);
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn what_is_older_than_was_asked_for_is_not_shown() {
        let mut account = Account::new(false, 0, (0, AT.wall_ms), Journal::read_from(0, Origin::Beginning));
        account.read(AT, 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms - 1));
        account.read(AT, 1, Some(beat("running", 7).as_bytes()), Some(AT.wall_ms));
        let hello = br#"{"v":1,"kind":"hello","member":"m","name":"web","host":"h","version":"1","elector":"log"}"#;
        account.hello(AT, (0, 2), hello, Some(AT.wall_ms - 1));
        account.hello(AT, (0, 3), hello, Some(AT.wall_ms));
        let at = "2026-01-31T12:00:00.123Z";
        let expected =
            [format!("{at} web: the job runs, pid 7"), format!("{at} web says hello: on h, version 1, --elect log")];
        assert_eq!(account.take_lines(), expected);
    }

    #[test]
    fn people_are_told_what_changes() {
        let mut account = account(false, 0);
        read(&mut account, 0, CLAIM);
        read(&mut account, 1, &beat("running", 7));
        read(&mut account, 2, &beat("running", 7));
        read(&mut account, 3, &beat("stopping", 7));
        read(&mut account, 4, RELEASE);
        read(&mut account, 5, RELEASE);
        let at = "2026-01-31T12:00:00.123Z";
        assert_eq!(
            account.take_lines(),
            [
                format!("{at} web leads, term 0"),
                format!("{at} web: the job runs, pid 7"),
                format!("{at} web: the job has been asked to stop, pid 7"),
                format!("{at} term 0 was released: the job has ended (the job's status: 3)"),
            ]
        );
    }

    #[test]
    fn what_was_before_is_known_and_not_shown() {
        let mut account = account(false, 2);
        read(&mut account, 0, CLAIM);
        read(&mut account, 1, &beat("running", 7));
        read(&mut account, 2, &beat("running", 7));
        assert_eq!(account.take_lines(), [""; 0]);
        account.caught_up(AT);
        assert_eq!(
            account.take_lines(),
            ["2026-01-31T12:00:00.123Z as of now: web leads, term 0: the job runs, pid 7"]
        );
    }

    /// After so many milliseconds.
    fn later(ms: u64) -> ReadAt {
        ReadAt { now: NOW + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms }
    }

    #[test]
    fn a_leader_that_is_silent_for_longer_than_its_lease_leads_no_more() {
        let mut account = account(false, 2);
        read(&mut account, 0, CLAIM);
        read(&mut account, 1, &beat("running", 7));
        account.caught_up(later(1_000));
        account.take_lines();
        assert_eq!(account.poll_timeout(later(1_000)), Some(later(5_060).now));
        account.handle_timeout(later(5_059));
        assert_eq!(account.take_lines(), [""; 0]);
        account.handle_timeout(later(5_060));
        let silent = "no leader: web has been silent for 5s (lease 5s)";
        assert_eq!(account.take_lines(), [format!("2026-01-31T12:00:05.183Z {silent}")]);
        assert_eq!(account.poll_timeout(later(5_060)), None);
        account.read(later(7_123), 2, Some(beat("running", 7).as_bytes()), Some(0));
        assert_eq!(account.take_lines(), ["2026-01-31T12:00:07.246Z web leads on, after 7.1s of silence"]);
        assert_eq!(account.poll_timeout(later(7_123)), Some(later(7_123 + 5_060).now));
    }

    #[test]
    fn what_was_read_late_is_as_old_as_it_says() {
        let mut account = account(false, 2);
        account.read(later(108_700), 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms));
        account.caught_up(later(108_800));
        let silent = "as of now: no leader: web has been silent for 108s (lease 5s)";
        assert_eq!(account.take_lines(), [format!("2026-01-31T12:01:48.923Z {silent}")]);
        assert_eq!(account.poll_timeout(later(108_800)), None);
    }

    #[test]
    fn a_record_read_twice_is_told_once() {
        let mut account = account(true, 0);
        read(&mut account, 0, CLAIM);
        read(&mut account, 0, CLAIM);
        assert_eq!(account.take_lines().len(), 1);
    }

    #[test]
    fn a_time_may_lie_in_any_future() {
        let mut account = account(false, 0);
        account.read(AT, 0, Some(CLAIM.as_bytes()), Some(u64::MAX));
        assert_eq!(account.take_lines(), ["9999-12-31T23:59:59.999Z web leads, term 0"]);
    }

    #[test]
    fn a_name_is_one_line() {
        let mut account = account(false, 0);
        read(&mut account, 0, &CLAIM.replace("web", "a\\nb\\u001b[2J"));
        assert_eq!(account.take_lines(), ["2026-01-31T12:00:00.123Z a\\nb\\u{1b}[2J leads, term 0"]);
    }
}
