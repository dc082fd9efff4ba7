//! One election of a topic: what the law says of its records, which hellos are about its role, and what is new to a user.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::history::Odd;
use super::{Change, Finding, Observer, PastTerm, Place};
use crate::hello::Hello;
use crate::journal::{Journal, Verdict, View};
use crate::leadership::{Leadership, ReadAt};
use crate::record::{LogRecord, Offset, Record};
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
        match leadership.silent_for() {
            Some(_) if leadership.is_vacant() => Self::Silent,
            Some(_) => Self::Overdue,
            None => Self::Nothing,
        }
    }

    /// How much is reported once this change was.
    const fn after(self, change: &Change) -> Self {
        match change {
            Change::EarlierJobGone { .. } | Change::Job(_) | Change::LateFence { .. } | Change::Requested { .. } => {
                self
            }
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
    place: Place,
    pub(super) observer: Observer,
    pub(super) terms: Vec<PastTerm>,
    /// Jobs that were alive after their leases, each with the time of the record that reports it.
    pub(super) late: Vec<(Finding, Option<u64>)>,
    /// The records that are counted in a finding, in their order, each with the time of its appending.
    pub(super) odd: Vec<(Odd, Option<u64>)>,
    is_known: bool,
    /// Whether it is looked for, a record of it was read, or a candidate without `--roles` has said hello for it. Of others there are those that the
    /// hellos of processes with many roles name.
    pub(super) is_found: bool,
    /// When Kafka told last of a log that was read to its end, if this is asked again and again.
    read_to_end: Option<Time>,
    told: Told,
    /// The offset where the reading began.
    from: Offset,
    /// The log's first offset then.
    start: Offset,
}

impl Election {
    /// An election whose reading begins at `from`, with this journal of it, in a log that began at `start`.
    pub fn new(place: &Place, journal: Journal, start: Offset, from: Offset) -> Self {
        Self {
            place: place.clone(),
            observer: Observer::new(journal),
            terms: Vec::new(),
            late: Vec::new(),
            odd: Vec::new(),
            is_known: false,
            is_found: false,
            read_to_end: None,
            told: Told::Nothing,
            from,
            start,
        }
    }

    /// Where it is.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Its leader and its candidates.
    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Whether a record of the election was read, or the hello of a candidate that stands or stood for its role.
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether a reading from further back would decide who leads.
    pub fn wants_earlier_records(&self) -> bool {
        !self.is_decided() && self.from != self.start
    }

    /// Whether the records that were read decide who leads.
    pub(super) const fn is_decided(&self) -> bool {
        !matches!(self.observer().journal().view(), View::Undecided(_))
    }

    /// The present term, if its claim is in the log, before the records that are read.
    pub fn unread_claim(&self) -> Option<Offset> {
        let leader = self.observer().leader().filter(|leader| leader.claimed_ms.is_none())?;
        (self.start..self.from).contains(&leader.term).then_some(leader.term)
    }

    /// The time at which the claim of that term was appended, if it was read by a separate request.
    pub fn learn_claim(&mut self, term: Offset, written_ms: Option<u64>) {
        self.observer.learn_claim(term, written_ms);
    }

    /// Notes that the log was read up to the end that it had at this time.
    pub(crate) const fn was_read_to_end(&mut self, asked: Time) {
        self.read_to_end = Some(asked);
    }

    /// Who leads. A leader is silent, or has missed heartbeats, if that was so when Kafka answered last: since then the silence may be Kafka's.
    /// The age of its last record goes on in any case.
    pub fn leadership(&self, at: ReadAt) -> Leadership<'_> {
        let current = self.observer().leadership(at);
        self.known_before(at, current).map_or(current, |(_, known)| known.aged_as(current))
    }

    /// The moment up to which it is known who leads.
    pub fn known_at(&self, at: ReadAt) -> ReadAt {
        self.known_before(at, self.observer().leadership(at)).map_or(at, |(then, _)| then)
    }

    /// Whether a new answer of Kafka's is needed to know who leads.
    pub fn wants_answer(&self, at: ReadAt) -> bool {
        self.known_before(at, self.observer().leadership(at)).is_some()
    }

    /// When Kafka answered last, and who led then, if less of a silence was known than there is now by the records.
    fn known_before(&self, at: ReadAt, current: Leadership<'_>) -> Option<(ReadAt, Leadership<'_>)> {
        let told = Told::by(current);
        let then = at.up_to(self.read_to_end.filter(|_| told != Told::Nothing)?);
        let known = self.observer().leadership(then);
        (Told::by(known) < told).then_some((then, known))
    }

    /// Notes that the reading has reached the end that the log had when the reading began.
    pub const fn caught_up(&mut self) {
        self.observer.caught_up();
    }

    /// Handles a record of the election. Returns what the law says of it, unless it was read before, and the changes of which users were not told
    /// before; a silence that is over comes first.
    pub fn read(&mut self, at: ReadAt, record: &LogRecord) -> Option<(Verdict, Vec<Change>)> {
        let LogRecord { offset, value, written_ms, is_brokers_time, .. } = record;
        let observer = &mut self.observer;
        if !is_brokers_time {
            observer.stamped_by_candidates();
        } else if let Some(stamp_ms) = written_ms {
            observer.stamped(*stamp_ms);
        }
        self.is_known = true;
        let parsed = value.as_deref().and_then(Record::parse);
        let (verdict, changes) = self.judge(at, *offset, parsed.as_ref(), *written_ms)?;
        Some((verdict, self.untold(changes)))
    }

    /// Handles the hello of a candidate of this role alone.
    pub(crate) fn candidate_said(&mut self, at: ReadAt, hello: &Arc<Hello>, written_ms: Option<u64>) {
        self.is_known = true;
        self.observer.hello_received(at, hello, hello.leaves, written_ms);
    }

    /// Handles a hello, if its writer stands or stood for the role. One that looks for the role in another partition does not stand for it here.
    pub(crate) fn hello_received(&mut self, at: ReadAt, hello: &Arc<Hello>, written_ms: Option<u64>) {
        if let Some(number) = hello.mapping().number_in(self.place.partition, &self.place.role) {
            self.is_known = true;
            self.observer.hello_received(at, hello, hello.leaves_role(number), written_ms);
        }
    }

    /// The changes without a silence, or its end, of which users were told already, or were never told.
    fn untold(&mut self, changes: Vec<Change>) -> Vec<Change> {
        let mut untold = |change: &Change| {
            let before = self.told;
            self.told = before.after(change);
            let (falls, ends) =
                (matches!(change, Change::FellSilent(_)), matches!(change, Change::SilenceEnded { .. }));
            !(falls && before == Told::Silent || ends && before == Told::Nothing)
        };
        changes.into_iter().filter(|change| untold(change)).collect()
    }

    /// When users must be told of the leader's silence, unless a record comes before.
    pub fn silence_due(&self, at: ReadAt) -> Option<Time> {
        self.observer().silent_at(at).filter(|_| self.observer().is_live)
    }

    /// The leader's silence, which no record reports, if users were not told of it yet. What is unread may end it.
    pub fn untold_silence(&mut self, at: ReadAt) -> Option<Leadership<'_>> {
        let current = Told::by(self.leadership(at));
        let is_live = self.observer().is_live;
        if current == Told::Nothing || !is_live || current <= mem::replace(&mut self.told, current) {
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
    use alloc::boxed::Box;
    use alloc::format;
    use core::time::Duration;

    use super::*;
    use crate::journal::Origin;
    use crate::time::Time;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };
    const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":1000}"#;

    fn election(role: &str, partition: i32) -> Election {
        let place = Place { partition, group: "g".into(), role: role.into() };
        Election::new(&place, Journal::read_from(0, Origin::Beginning), 0, 0)
    }

    /// On one partition, lists of the same names in another order agree on each role's partition.
    #[test]
    fn the_roles_that_a_candidate_has_left_are_numbered_by_its_own_list() {
        for (left, standbys) in [("0", 1), ("2", 0)] {
            let hello = format!(
                r#"{{"v":1,"kind":"hello","member":"m","roles":"c,b,a","partitions":1,"joined":0,"left":"{left}"}}"#
            );
            assert_eq!(standbys_by(&hello, "a", 0), standbys, "has left {left}");
        }
    }

    /// The number of standbys of a role in a partition after this hello.
    fn standbys_by(hello: &str, role: &str, partition: i32) -> usize {
        let mut election = election(role, partition);
        let hello = Arc::new(Hello::parse(hello.as_bytes()).expect("a hello"));
        election.hello_received(AT, &hello, Some(AT.wall_ms));
        election.observer().standbys(AT).len()
    }

    #[test]
    fn a_hello_counts_for_a_role_where_its_writer_looks_for_the_role() {
        let hello = r#"{"v":1,"kind":"hello","member":"m","roles":"4","partitions":2,"joined":0}"#;
        for (role, partition, standbys) in [("3", 1, 1), ("3", 0, 0), ("2", 0, 1), ("4", 0, 0)] {
            assert_eq!(standbys_by(hello, role, partition), standbys, "role {role} in {partition}");
        }
    }

    #[test]
    fn a_silence_and_its_end_are_told_once() {
        let mut election = election("0", 0);
        election.caught_up();
        let after = |ms| ReadAt { now: AT.now + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms };
        let changes = |election: &mut Election, at: ReadAt, offset, value: &str| {
            let value = Some(Box::from(value.as_bytes()));
            let record = LogRecord { offset, key: None, value, written_ms: Some(at.wall_ms), is_brokers_time: true };
            election.read(at, &record).map(|(_, changes)| changes).unwrap_or_default()
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
