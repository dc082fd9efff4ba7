//! One election among the records of its topic: which of them are its own, which hellos are about its role, and what is new to a user.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::{Change, History, Observer};
use crate::hello::Hello;
use crate::journal::{Journal, Verdict, View};
use crate::leadership::{Leadership, ReadAt};
use crate::listener::LogBounds;
use crate::record::{ElectionKey, LogRecord, Offset, Record};
use crate::time::Time;

/// How much of a leader's silence was reported.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
enum Told {
    #[default]
    Nothing,
    /// That it has missed three heartbeats.
    Overdue,
    /// That its lease is over.
    Silent,
}

impl Told {
    const fn by(leadership: Leadership<'_>) -> Self {
        match leadership {
            Leadership::Overdue { .. } => Self::Overdue,
            Leadership::Silent { .. } => Self::Silent,
            Leadership::Forgotten
            | Leadership::Led { .. }
            | Leadership::NeverLed
            | Leadership::Released { .. }
            | Leadership::Unknown(_) => Self::Nothing,
        }
    }

    /// How much is reported once this change was.
    const fn after(self, change: &Change) -> Self {
        match change {
            Change::EarlierJobGone { .. } | Change::Job(_) | Change::Requested { .. } => self,
            Change::FellSilent(_) | Change::LateBeat { .. } => Self::Silent,
            Change::Led
            | Change::Missing
            | Change::Overlapped { .. }
            | Change::Released(_)
            | Change::SilenceEnded { .. }
            | Change::Yields => Self::Nothing,
        }
    }
}

/// An election that is read with the other records of its topic.
#[derive(Clone, Debug)]
pub struct Election {
    group: Box<str>,
    /// The role's name or number.
    role: Box<str>,
    partition: i32,
    pub(super) history: History,
    other_groups: BTreeSet<String>,
    is_known: bool,
    is_brokers_time: bool,
    /// Whether Kafka answers. While it does not, no heartbeat can be read, so nothing is said of a silence.
    is_answered: bool,
    /// When Kafka told last of a log that was read to its end, if this is asked again and again.
    read_to_end: Option<Time>,
    told: Told,
    /// The offset where the reading began.
    from: Offset,
    /// The log's first offset then.
    start: Offset,
}

/// What the law says of a record of the election, and what it has changed of which users were not told before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The changes. A silence that is over comes first.
    pub changes: Vec<Change>,
}

impl Election {
    /// An election in a partition with such a log, whose reading begins at `from`.
    #[must_use]
    pub fn new((group, role): (&str, &str), partition: i32, at: ReadAt, bounds: &LogBounds, from: Offset) -> Self {
        Self {
            group: group.into(),
            role: role.into(),
            partition,
            history: History::new(bounds.journal_from(at.now, from)),
            other_groups: BTreeSet::new(),
            is_known: false,
            is_brokers_time: true,
            is_answered: true,
            read_to_end: None,
            told: Told::Nothing,
            from,
            start: bounds.start,
        }
    }

    /// The same without findings about records that were appended before `from_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn since(self, from_ms: u64) -> Self {
        Self { history: self.history.since(from_ms), ..self }
    }

    /// Its leader and its candidates.
    #[must_use]
    pub const fn observer(&self) -> &Observer {
        self.history.observer()
    }

    /// Its terms.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Its partition.
    #[must_use]
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// The groups of other elections whose records were read in its partition: for a message about a mistyped group.
    #[must_use]
    pub const fn other_groups(&self) -> &BTreeSet<String> {
        &self.other_groups
    }

    /// Whether a record of the election was read, or the hello of a candidate that stands or stood for its role.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the timestamps of its records are by the broker's clock.
    #[must_use]
    pub const fn is_brokers_time(&self) -> bool {
        self.is_brokers_time
    }

    /// Whether a reading from further back would decide who leads.
    #[must_use]
    pub fn wants_earlier_records(&self) -> bool {
        !self.is_decided() && self.from != self.start
    }

    /// Whether the records that were read decide who leads.
    pub(super) const fn is_decided(&self) -> bool {
        !matches!(self.journal().view(), View::Undecided(_))
    }

    /// Takes over the terms of a reading of the same records, and of those before them.
    pub(super) fn learn_past(&mut self, past: Self) {
        self.history.learn_past(past.history);
    }

    const fn journal(&self) -> &Journal {
        self.observer().journal()
    }

    /// The present term, if its claim is in the log, before the records that are read.
    #[must_use]
    pub fn unread_claim(&self) -> Option<Offset> {
        let leader = self.observer().leader().filter(|leader| leader.claimed_ms.is_none())?;
        (self.start..self.from).contains(&leader.term).then_some(leader.term)
    }

    /// The time at which the claim of that term was appended, if it was read by a separate request.
    pub fn learn_claim(&mut self, term: Offset, written_ms: Option<u64>) {
        self.history.observer_mut().learn_claim(term, written_ms);
    }

    /// Notes whether Kafka answers.
    pub const fn note_contact(&mut self, is_answered: bool) {
        self.is_answered = is_answered;
    }

    /// Notes that the log was read up to the end that it had at this time.
    pub const fn was_read_to_end(&mut self, asked: Time) {
        self.read_to_end = Some(asked);
    }

    /// Who leads. A leader is silent, or has missed heartbeats, if that was so when Kafka answered last: since then the silence may be Kafka's.
    #[must_use]
    pub fn leadership(&self, at: ReadAt) -> Leadership<'_> {
        self.known_at_end(at).unwrap_or_else(|| self.observer().leadership(at))
    }

    /// Whether a new answer of Kafka's is needed to know who leads.
    #[must_use]
    pub fn wants_answer(&self, at: ReadAt) -> bool {
        self.known_at_end(at).is_some()
    }

    /// Who led when Kafka answered last, if less of a silence was known than there would be now.
    fn known_at_end(&self, at: ReadAt) -> Option<Leadership<'_>> {
        let current = Told::by(self.observer().leadership(at));
        let read_to_end = self.read_to_end.filter(|_| current != Told::Nothing)?;
        Some(self.observer().leadership(at.up_to(read_to_end))).filter(|known| Told::by(*known) < current)
    }

    /// Handles an answer about a partition's log.
    pub fn answered(&mut self, at: ReadAt, partition: i32, bounds: LogBounds) {
        if partition == self.partition {
            self.history.observer_mut().answered(at.now, bounds.asked, bounds.end);
        }
    }

    /// Notes that the reading has reached the end that the log had when the reading began.
    pub const fn caught_up(&mut self) {
        self.history.observer_mut().caught_up();
    }

    /// Handles a record of the topic. Returns what the law says of it if it is the election's own.
    pub fn read(&mut self, at: ReadAt, partition: i32, record: &LogRecord) -> Option<Judged> {
        let LogRecord { offset, value, written_ms, is_brokers_time, .. } = record;
        let is_here = partition == self.partition;
        if is_here && *offset < self.journal().next() {
            return None;
        }
        let key = record.key.as_deref().and_then(|key| ElectionKey::of_group(key, &self.group));
        let (is_hello, names_role) = key.map_or((false, false), |key| (key.is_hello, *key.role == *self.role));
        if let Some(stamp_ms) = written_ms.filter(|_| is_here && *is_brokers_time) {
            self.history.observer_mut().stamped(stamp_ms);
        }
        if is_here && names_role && !is_hello {
            self.is_known = true;
            self.is_brokers_time &= is_brokers_time;
            let parsed = value.as_deref().and_then(Record::parse);
            let (verdict, changes) = self.history.read(at, *offset, parsed.as_ref(), *written_ms)?;
            return Some(Judged { verdict, changes: self.untold(changes) });
        }
        if is_here {
            self.history.observer_mut().read_other(at.now, *offset);
        }
        if is_hello {
            self.read_hello(at, record, is_here && names_role);
        } else if let Some(other) = record.key.as_deref().and_then(ElectionKey::parse)
            && *other.group != *self.group
        {
            self.other_groups.insert(other.group.into());
        }
        None
    }

    /// Handles a hello whose key may name the role, as that of a candidate of one role does.
    fn read_hello(&mut self, at: ReadAt, record: &LogRecord, names_role: bool) {
        let Some(hello) = record.value.as_deref().and_then(Hello::parse).map(Arc::new) else { return };
        if names_role && hello.roles.is_none() {
            self.is_known = true;
            self.history.observer_mut().hello_received(at, &hello, hello.leaves, record.written_ms);
        } else {
            self.hello_received(at, &hello, record.written_ms);
        }
    }

    /// Handles a hello, if its writer stands or stood for the role.
    pub fn hello_received(&mut self, at: ReadAt, hello: &Arc<Hello>, written_ms: Option<u64>) {
        if let Some(number) = self.number_by(hello) {
            self.is_known = true;
            self.history.observer_mut().hello_received(at, hello, hello.leaves_role(number), written_ms);
        }
    }

    /// The role's number in the list of this hello's writer. A writer that looks for the role in another partition does not stand for it here.
    fn number_by(&self, hello: &Hello) -> Option<u32> {
        let mapping = hello.mapping();
        let is_here = |number: &u32| i64::from(number % mapping.partitions()) == i64::from(self.partition);
        mapping.number(&self.role).filter(is_here)
    }

    /// The changes without a silence, or its end, of which users were told already, or were never told.
    fn untold(&mut self, changes: Vec<Change>) -> Vec<Change> {
        let mut untold = |change: &Change| {
            let before = self.told;
            self.told = before.after(change);
            match change {
                Change::FellSilent(_) => before < Told::Silent,
                Change::SilenceEnded { .. } => before > Told::Nothing,
                Change::EarlierJobGone { .. }
                | Change::Job(_)
                | Change::LateBeat { .. }
                | Change::Led
                | Change::Missing
                | Change::Overlapped { .. }
                | Change::Released(_)
                | Change::Requested { .. }
                | Change::Yields => true,
            }
        };
        changes.into_iter().filter(|change| untold(change)).collect()
    }

    /// When users must be told of the leader's silence, unless a record comes before.
    #[must_use]
    pub fn silence_due(&self, at: ReadAt) -> Option<Time> {
        let observer = self.observer();
        observer.silent_at(at).filter(|_| observer.is_live && self.is_answered)
    }

    /// The leader's silence, which no record reports, if users were not told of it yet.
    pub fn untold_silence(&mut self, at: ReadAt) -> Option<Leadership<'_>> {
        let current = Told::by(self.leadership(at));
        if current == Told::Nothing || !self.is_answered || current <= mem::replace(&mut self.told, current) {
            return None;
        }
        Some(self.leadership(at))
    }

    /// Who leads now, of which users are told.
    pub fn told(&mut self, at: ReadAt) -> Leadership<'_> {
        self.told = Told::by(self.leadership(at));
        self.leadership(at)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use core::time::Duration;

    use super::*;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };
    const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":1000}"#;

    fn election(role: &str) -> Election {
        let bounds = LogBounds { asked: AT.now, start: 0, end: 0 };
        Election::new(("g", role), 0, AT, &bounds, 0)
    }

    fn record(offset: Offset, key: &str, value: &str, ago_ms: u64) -> LogRecord {
        let (key, value) = (Some(Box::from(key.as_bytes())), Some(Box::from(value.as_bytes())));
        LogRecord { offset, key, value, written_ms: Some(AT.wall_ms - ago_ms), is_brokers_time: true }
    }

    /// A leader with a lease of 1 s whose last heartbeat is two minutes old, and after it another election's record that is one minute old.
    #[test]
    fn a_record_behind_it_that_a_broker_stamped_proves_that_a_leader_is_silent() {
        for is_brokers_time in [true, false] {
            let mut election = election("0");
            for record in [record(0, "g/0", CLAIM, 120_000), record(1, "other/0", "", 60_000)] {
                election.read(AT, 0, &LogRecord { is_brokers_time, ..record });
            }
            assert!(matches!(election.observer().leadership(AT), Leadership::Silent { .. }));
            assert_eq!(election.observer().doubts_timestamps(AT).is_none(), is_brokers_time);
            assert_eq!(election.is_brokers_time(), is_brokers_time);
        }
    }

    /// On one partition, lists of the same names in another order agree on each role's partition.
    #[test]
    fn the_roles_that_a_candidate_has_left_are_numbered_by_its_own_list() {
        for (left, standbys) in [("0", 1), ("2", 0)] {
            let hello = format!(
                r#"{{"v":1,"kind":"hello","member":"m","roles":"c,b,a","partitions":1,"joined":0,"left":"{left}"}}"#
            );
            let mut election = election("a");
            election.read(AT, 0, &record(0, "g/c/hello", &hello, 0));
            assert_eq!(election.observer().standbys(AT).len(), standbys, "has left {left}");
        }
    }

    #[test]
    fn a_record_is_the_election_s_by_its_key_and_its_partition() {
        for (key, partition, is_own) in [("g/0", 0, true), ("g/0", 1, false), ("g/1", 0, false), ("a/g/0", 0, false)] {
            let mut election = election("0");
            let judged = election.read(AT, partition, &record(0, key, CLAIM, 0));
            assert_eq!((judged.is_some(), election.is_known()), (is_own, is_own), "{key} in {partition}");
            assert_eq!(election.other_groups().len(), usize::from(key == "a/g/0"), "{key}");
        }
    }

    /// A hello of a candidate with many roles is in partition 0, whatever the partition of the role.
    #[test]
    fn a_hello_counts_in_any_partition() {
        let hello = r#"{"v":1,"kind":"hello","member":"m","roles":"4","partitions":2,"joined":0}"#;
        let bounds = LogBounds { asked: AT.now, start: 0, end: 0 };
        for (role, partition, standbys) in [("3", 1, 1), ("3", 0, 0), ("2", 0, 1), ("4", 0, 0)] {
            let mut election = Election::new(("g", role), partition, AT, &bounds, 0);
            election.read(AT, 0, &record(0, "g/0/hello", hello, 0));
            assert_eq!(election.observer().standbys(AT).len(), standbys, "role {role} in {partition}");
        }
    }

    #[test]
    fn a_silence_and_its_end_are_told_once() {
        let mut election = election("0");
        election.caught_up();
        let after = |ms| ReadAt { now: AT.now + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms };
        let changes = |election: &mut Election, at: ReadAt, offset, value: &str| {
            let record = LogRecord { written_ms: Some(at.wall_ms), ..record(offset, "g/0", value, 0) };
            election.read(at, 0, &record).map(|judged| judged.changes).unwrap_or_default()
        };
        let beat = r#"{"v":1,"kind":"beat","member":"m","name":"m","seq":2,"term":0,"seen":0,"lease_ms":1000}"#;
        assert_eq!(changes(&mut election, AT, 0, CLAIM), [Change::Led]);
        assert_eq!(changes(&mut election, after(950), 1, beat), [], "nobody was told that it was late");
        assert!(matches!(election.untold_silence(after(1_940)), Some(Leadership::Overdue { .. })));
        assert_eq!(election.untold_silence(after(1_941)), None);
        assert!(matches!(*changes(&mut election, after(1_942), 2, beat), [Change::SilenceEnded { .. }]));
        assert!(matches!(election.untold_silence(after(4_000)), Some(Leadership::Silent { .. })));
        let next = CLAIM.replace("-1", "2").replace("\"m\"", "\"n\"");
        assert_eq!(changes(&mut election, after(4_001), 3, &next), [Change::Led], "the silence was told");
    }
}
