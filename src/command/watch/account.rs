//! What `watch` prints of each record: every one with the law's verdict, as JSON; or what changed, as sentences.

use std::time::Duration;

use neli_proto::journal::{Journal, Verdict, View};
use neli_proto::listener::silence;
use neli_proto::record::{Body, JobState, MAX_BYTES, Offset, Record, What};
use neli_proto::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::report::log::{because, spoken, timestamp};
use crate::text::one_line;

/// The election as it was read, and the lines that are still to be shown of it.
pub(super) struct Account {
    json: bool,
    /// The first offset that is shown.
    first: Offset,
    journal: Journal,
    /// The leader's job, by its last beat.
    job: Option<Job>,
    /// The leader's last word.
    last_word: LastWord,
    /// All that was there at the start has been read.
    is_live: bool,
    /// It was told that the leader is silent.
    is_silent: bool,
    lines: Vec<String>,
}

/// A leader's last effective record.
#[derive(Clone, Copy)]
struct LastWord {
    /// When it was read.
    read: Time,
    /// How old it was then, by its own time and this machine's wall clock; nothing where it was read as it was written.
    age: Duration,
}

impl LastWord {
    /// How old it is.
    fn age(self, now: Time) -> Duration {
        now.since(self.read) + self.age
    }
}

/// The job, by a beat; printed when it changes.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Job {
    state: JobState,
    pid: Option<u32>,
    attempt: Option<u32>,
}

/// When something is read.
#[derive(Clone, Copy)]
pub(super) struct ReadAt {
    pub(super) now: Time,
    /// In milliseconds since 1970, by this machine's clock.
    pub(super) wall_ms: u64,
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line {
    offset: Offset,
    verdict: &'static str,
    term: Option<Offset>,
    record: Option<Box<RawValue>>,
}

impl Account {
    /// Of a reading that has just begun, shown from `first` on.
    pub(super) fn new(json: bool, first: Offset, journal: Journal) -> Self {
        Self {
            json,
            first,
            journal,
            job: None,
            last_word: LastWord { read: Time::ZERO, age: Duration::ZERO },
            is_live: false,
            is_silent: false,
            lines: Vec::new(),
        }
    }

    /// What is to be shown, oldest first.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// The log ended at `end` when that was `asked`.
    pub(super) fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.journal.answered(now, asked, end);
    }

    /// A record of another key stands at `offset`.
    pub(super) fn read_other(&mut self, now: Time, offset: Offset) {
        if offset >= self.journal.next() {
            self.journal.read_other(now, offset);
        }
    }

    /// A record of the election stands at `offset`, and was written `written_ms` after 1970 by the broker's clock.
    pub(super) fn read(&mut self, at: ReadAt, offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) {
        if offset < self.journal.next() {
            return;
        }
        let record = value.and_then(Record::parse);
        let before = self.journal.view().clone();
        let verdict = self.journal.read(at.now, offset, record.as_ref());
        self.note_word(at, verdict, record.as_ref(), written_ms);
        if self.json && offset >= self.first {
            let line =
                Line { offset, verdict: word(verdict), term: self.journal.term(), record: value.and_then(as_read) };
            // Strings and numbers under string keys: nothing of that can fail.
            self.lines.push(serde_json::to_string(&line).unwrap_or_default());
        }
        // The job is followed before the first offset that is shown, too: what was known then is no change.
        for sentence in self.changes(&before, verdict, record.as_ref()) {
            if !self.json && offset >= self.first {
                self.tell(written_ms, &sentence);
            }
        }
    }

    /// Takes note of a leader's word; and says so when it had been silent for longer than its lease.
    fn note_word(&mut self, at: ReadAt, verdict: Verdict, record: Option<&Record>, written_ms: Option<u64>) {
        let is_leaders = matches!(record.map(|record| &record.body), Some(Body::Beat { .. } | Body::Claim { .. }));
        if verdict != Verdict::Effective || !is_leaders {
            return;
        }
        let written_ms = written_ms.filter(|_| !self.is_live).unwrap_or(at.wall_ms);
        let age = Duration::from_millis(at.wall_ms.saturating_sub(written_ms));
        let before = std::mem::replace(&mut self.last_word, LastWord { read: at.now, age });
        let was_silent = std::mem::replace(&mut self.is_silent, false);
        if was_silent && !self.json && matches!(record.map(|record| &record.body), Some(Body::Beat { .. })) {
            let silent = spoken(whole(before.age(at.now)));
            let sentence = format!("{} leads on, after {silent} of silence", self.leader());
            self.tell(Some(at.wall_ms), &sentence);
        }
    }

    /// When it is to be told that the leader is silent, unless it is heard before.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let View::Led(term) = self.journal.view() else { return None };
        let LastWord { read, age } = self.last_word;
        (self.is_live && !self.is_silent && !self.json).then(|| read + silence(term.lease).saturating_sub(age))
    }

    /// Tells that the leader is silent, where that is due.
    pub(super) fn handle_timeout(&mut self, at: ReadAt) {
        if self.poll_timeout().is_some_and(|due| at.now >= due)
            && let Some(sentence) = self.silence(at.now)
        {
            self.is_silent = true;
            self.tell(Some(at.wall_ms), &sentence);
        }
    }

    /// That the leader of a term has been silent for longer than its lease, if it has.
    fn silence(&self, now: Time) -> Option<String> {
        let View::Led(term) = self.journal.view() else { return None };
        let age = self.last_word.age(now);
        (age >= silence(term.lease)).then(|| {
            let (leader, age, lease) = (self.leader(), spoken(whole(age)), spoken(term.lease));
            format!("nobody leads: {leader} (term {}) has been silent for {age}, and its lease is {lease}", term.offset)
        })
    }

    /// All that was there has been read: who leads now?
    pub(super) fn caught_up(&mut self, at: ReadAt) {
        self.is_live = true;
        if self.json {
            return;
        }
        let silence = self.silence(at.now);
        self.is_silent = silence.is_some();
        let sentence = match self.journal.view() {
            View::Led(term) => silence.unwrap_or_else(|| {
                let job = self.job.map_or_else(String::new, |job| format!(": {}", job.sentence()));
                format!("{} leads, term {}{job}", self.leader(), term.offset)
            }),
            View::NeverLed => "nobody has led yet".to_owned(),
            View::Released { term, why } => {
                format!(
                    "nobody leads: term {term} was released: {}",
                    because(why.as_deref().unwrap_or("no reason said"))
                )
            }
            View::Undecided(_) => "who leads can't be told before the leader's next word".to_owned(),
        };
        self.tell(Some(at.wall_ms), &format!("as of now: {sentence}"));
    }

    fn tell(&mut self, wall_ms: Option<u64>, sentence: &str) {
        let at = wall_ms.map_or_else(|| "(no time)".to_owned(), timestamp);
        self.lines.push(format!("{at} {}", one_line(sentence)));
    }

    /// What the record changed, in sentences.
    fn changes(&mut self, before: &View, verdict: Verdict, record: Option<&Record>) -> Vec<String> {
        let mut changes = Vec::new();
        match (before, self.journal.view()) {
            (View::Led(old), View::Led(new)) if old.offset == new.offset => {}
            (_, View::Led(new)) => {
                changes.push(format!("{} leads, term {}", self.leader(), new.offset));
                self.job = None;
            }
            (View::Released { term: old, .. }, View::Released { term: new, .. }) if old == new => {}
            (_, View::Released { term, why }) => {
                let why = because(why.as_deref().unwrap_or("no reason said"));
                let (exit, late, once) = match record.map(|record| &record.body) {
                    Some(Body::Release { exit, late_ms, once, .. }) => (*exit, *late_ms, once.as_deref()),
                    _ => (None, None, None),
                };
                let once = once.map_or_else(String::new, |key| {
                    format!("; {key} {}", if exit == Some(0) { "is done" } else { "has failed" })
                });
                let exit = exit.map_or_else(String::new, |exit| format!(" (the job's status: {exit})"));
                let late = late.map_or_else(String::new, |late| {
                    let late = spoken(Duration::from_millis(late));
                    format!("; its job may have been alive until {late} after the lease's end: another's may have run beside it")
                });
                changes.push(format!("term {term} was released: {why}{exit}{once}{late}"));
            }
            (View::Undecided(_), View::Undecided(_)) | (_, View::NeverLed) => {}
            (_, View::Undecided(_)) => {
                changes.push("records are missing: who leads can't be told before the leader's next word".to_owned());
            }
        }
        if let (Verdict::Effective, Some(record)) = (verdict, record) {
            changes.extend(self.job_change(record));
        }
        changes
    }

    /// What an effective record holds beyond who leads.
    fn job_change(&mut self, record: &Record) -> Option<String> {
        match &record.body {
            Body::Beat { state, pid, attempt, .. } => {
                let job = Job { state: (*state)?, pid: *pid, attempt: *attempt };
                (self.job.replace(job) != Some(job)).then(|| format!("{}: {}", self.leader(), job.sentence()))
            }
            Body::Request { what, by, reason, .. } => {
                let by = by.as_deref().or(record.name.as_deref()).unwrap_or("somebody");
                let reason = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
                Some(match what {
                    What::End => format!("{by} has ended the election{reason}"),
                    What::Resign => format!("{by} has asked {} to stand down{reason}", self.leader()),
                })
            }
            Body::Claim { .. } | Body::Hello { .. } | Body::Release { .. } => None,
        }
    }

    /// How the leader is called.
    fn leader(&self) -> String {
        let View::Led(term) = self.journal.view() else { return "nobody".to_owned() };
        let name = term.name.as_deref().map(str::to_owned);
        name.or_else(|| term.member.as_ref().map(ToString::to_string)).unwrap_or_else(|| "somebody".to_owned())
    }
}

impl Job {
    fn sentence(self) -> String {
        let again = self.attempt.filter(|attempt| *attempt > 1).map_or("", |_| " again");
        let pid = self.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
        match self.state {
            JobState::Restarting => "the job is to run again".to_owned(),
            JobState::Running => format!("the job runs{again}{pid}"),
            JobState::Starting => format!("the job is being started{again}"),
            JobState::Stopping => format!("the job has been asked to stop{pid}"),
        }
    }
}

/// A duration for people: of more than ten seconds, without its milliseconds.
fn whole(duration: Duration) -> Duration {
    if duration < Duration::from_secs(10) { duration } else { Duration::from_secs(duration.as_secs()) }
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
    use neli_proto::journal::Origin;
    use serde_json::Value;

    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000_000_000);
    const AT: ReadAt = ReadAt { now: NOW, wall_ms: 1_769_860_800_123 };

    fn account(json: bool, first: Offset) -> Account {
        Account::new(json, first, Journal::read_from(0, Origin::Beginning))
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
        let first: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(first, serde_json::json!({"offset": 0, "verdict": "effective", "term": 0, "record": claim}));
        assert_eq!(lines[1], r#"{"offset":1,"verdict":"nonsense","term":0,"record":null}"#);
        assert_eq!(lines[2], r#"{"offset":2,"verdict":"nonsense","term":0,"record":{"v":9, "new":true}}"#);
        assert_eq!(lines[3], r#"{"offset":3,"verdict":"nonsense","term":0,"record":null}"#);
        assert!(lines[4].starts_with(r#"{"offset":5,"verdict":"effective","term":null,"record":{"#), "{}", lines[4]);
        assert_eq!(lines.len(), 5);
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
        assert_eq!(account.poll_timeout(), Some(later(5_060).now));
        account.handle_timeout(later(5_059));
        assert_eq!(account.take_lines(), [""; 0]);
        account.handle_timeout(later(5_060));
        let silent = "nobody leads: web (term 0) has been silent for 5.06s, and its lease is 5s";
        assert_eq!(account.take_lines(), [format!("2026-01-31T12:00:05.183Z {silent}")]);
        assert_eq!(account.poll_timeout(), None);
        account.read(later(7_123), 2, Some(beat("running", 7).as_bytes()), Some(0));
        assert_eq!(account.take_lines(), ["2026-01-31T12:00:07.246Z web leads on, after 7.123s of silence"]);
        assert_eq!(account.poll_timeout(), Some(later(7_123 + 5_060).now));
    }

    #[test]
    fn what_was_read_late_is_as_old_as_it_says() {
        let mut account = account(false, 2);
        account.read(later(108_700), 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms));
        account.caught_up(later(108_800));
        let silent = "as of now: nobody leads: web (term 0) has been silent for 1m 48s, and its lease is 5s";
        assert_eq!(account.take_lines(), [format!("2026-01-31T12:01:48.923Z {silent}")]);
        assert_eq!(account.poll_timeout(), None);
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
