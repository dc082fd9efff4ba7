//! Reads one election up to the log's end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{ElectionId, Key, ReadRecord, Source, clock};
use neli_proto::journal::{Journal, View};
use neli_proto::leadership::ReadAt;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::{Change, Observer};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{JobState, Offset, Record};
use neli_proto::time::Time;

use super::others::number_in;
use super::{Input, Others, Place, Reading, doubt, is_hello, origin, read_at};
use crate::command::wording::{self, Told};
use crate::report::election::sentence;
use crate::report::log::spoken;

/// The time limit for reading the claim of the current term separately. The claim only shows since when the leader leads.
const CLAIM_WITHIN: Duration = Duration::from_millis(300);
/// If the leader is still unknown, the next reading begins this many times further back.
const FURTHER: Offset = 8;

/// At most this many of the last changes are kept.
const MOST_EVENTS: usize = 10;

/// An election that was read.
pub(in crate::command) struct Seen {
    pub(in crate::command) observer: Observer,
    /// The other elections whose records were read.
    pub(in crate::command) others: Others,
    /// The last changes with their times, in milliseconds since 1970; the oldest one comes first.
    pub(in crate::command) events: VecDeque<(u64, String)>,
    /// Kafka does not answer, for this reason.
    pub(in crate::command) trouble: Option<String>,
    /// How much of the leader's silence is among the changes.
    told: Told,
    pub(in crate::command) election: ElectionId,
    /// Whether the timestamps of the election's records are by the broker's clock.
    is_brokers_time: bool,
    /// The offset where the reading began.
    from: Offset,
    /// The log's first offset.
    start: Offset,
}

/// Why an election was not read to its end.
pub(in crate::command) enum Unread {
    /// Kafka refuses permanently, or the log can't be read.
    Refused(anyhow::Error),
    /// Kafka has not answered in time, in a sentence.
    NoAnswer(String),
}

impl From<anyhow::Error> for Unread {
    fn from(refusal: anyhow::Error) -> Self {
        Self::Refused(refusal)
    }
}

/// Reads elections up to the end of each log, from as far back as needed to know the leaders. If the timestamps are not reliable, it reads for a
/// moment longer. The time limit is for the whole reading.
///
/// # Errors
///
/// See [`Unread`].
pub(in crate::command) async fn observe(
    reading: &mut Reading,
    place: &Place,
    timeout: Duration,
) -> Result<Vec<Seen>, Unread> {
    let (deadline, mut span) = (clock::now() + timeout, FIRST_SPAN);
    let mut all = loop {
        let all = read_to_end(reading, place, span, deadline, timeout).await?;
        let is_undecided = |seen: &Seen| matches!(seen.observer.journal().view(), View::Undecided(_));
        if !all.iter().any(|seen| is_undecided(seen) && seen.from != seen.start) {
            break all;
        }
        span = span.saturating_mul(FURTHER);
        reading.begin_anew()?;
    };
    for seen in &mut all {
        seen.observer.caught_up();
    }
    if let Some(doubt) = doubt(all.iter().map(|seen| (&seen.observer, seen.is_brokers_time)), reading, deadline) {
        let until = deadline.min(clock::now() + doubt);
        while all.iter().any(|seen| seen.observer.doubts_timestamps(read_at()).is_some()) {
            let input = reading.next(Some(until)).await?;
            match &input {
                Input::Timeout => break,
                Input::Cut => return Err(reading.history_cut().into()),
                Input::CaughtUp
                | Input::Down(_)
                | Input::Ends { .. }
                | Input::Record { .. }
                | Input::Up
                | Input::Warning(_) => take_in(&mut all, &input),
            }
        }
    }
    Ok(all)
}

async fn read_to_end(
    reading: &mut Reading,
    place: &Place,
    span: Offset,
    deadline: Time,
    timeout: Duration,
) -> Result<Vec<Seen>, Unread> {
    // The reading begins when all ends are known, since a hello in one partition may be about an election in another.
    let (mut ends, mut all, mut trouble) = (BTreeMap::new(), Vec::new(), None);
    while !reading.is_at_end() {
        let input = reading.next(Some(deadline)).await?;
        match &input {
            Input::Ends { partition, asked, start, end } if all.is_empty() => {
                ends.insert(*partition, (*asked, *start, *end));
                if ends.len() == place.partitions().len() {
                    let begun = |election: &ElectionId| {
                        let (asked, start, end) = ends.get(&election.partition)?;
                        let from = (*start).max(end - span);
                        let mut journal = Journal::read_from(from, origin(from, *start));
                        journal.answered(clock::now(), *asked, *end);
                        Some(Seen::new(election.clone(), journal, from, *start))
                    };
                    all = place.elections.iter().filter_map(begun).collect();
                    for (partition, (_, start, end)) in &ends {
                        reading.read_from(*partition, (*start).max(end - span));
                    }
                }
            }
            Input::Timeout => return Err(Unread::NoAnswer(no_answer(timeout, trouble))),
            Input::Cut => return Err(reading.history_cut().into()),
            Input::Down(error) => trouble = Some(error.clone()),
            Input::CaughtUp | Input::Ends { .. } | Input::Record { .. } | Input::Up | Input::Warning(_) => {
                take_in(&mut all, &input);
            }
        }
    }
    Ok(all)
}

/// Passes an event to each election.
pub(in crate::command) fn take_in(all: &mut [Seen], input: &Input) {
    for seen in all {
        seen.take_in(input);
    }
}

/// The message that Kafka has not answered in time, with the last known reason.
pub(in crate::command) fn no_answer(timeout: Duration, why: Option<String>) -> String {
    let within = format!("no answer within {}", spoken(timeout));
    let silent = |broker: &str| format!("{broker}: {within}; on a slow link a longer --timeout helps");
    match why {
        None => silent("Kafka"),
        Some(why) => why.strip_suffix(": no answer").map_or_else(|| format!("{why} ({within})"), silent),
    }
}

/// A run of the job according to the journal.
#[derive(Eq, PartialEq)]
pub(in crate::command) struct SeenRun {
    term: Option<Offset>,
    attempt: Option<u32>,
    is_running: bool,
}

impl Seen {
    /// An election whose reading begins at `from`, in a log that begins at `start`.
    fn new(election: ElectionId, journal: Journal, from: Offset, start: Offset) -> Self {
        Self {
            observer: Observer::new(journal),
            others: Others::default(),
            events: VecDeque::new(),
            trouble: None,
            told: Told::Nothing,
            election,
            is_brokers_time: true,
            from,
            start,
        }
    }

    /// Handles an event.
    pub(in crate::command) fn take_in(&mut self, input: &Input) {
        let at = read_at();
        match input {
            Input::Ends { partition, asked, end, .. } if *partition == self.election.partition => {
                self.observer.answered(at.now, *asked, *end);
            }
            Input::Record { partition, record } if *partition != self.election.partition => {
                if is_hello(&self.election.group, record) {
                    self.take_in_hello(at, record);
                }
            }
            Input::Record { record, .. } if record.offset >= self.observer.journal().next() => {
                self.take_in_record(at, record);
            }
            Input::Down(error) => self.trouble = Some(error.clone()),
            Input::Up => self.trouble = None,
            Input::CaughtUp
            | Input::Cut
            | Input::Ends { .. }
            | Input::Record { .. }
            | Input::Timeout
            | Input::Warning(_) => {}
        }
    }

    /// Notes the leader's silence, which no record reports. While Kafka does not answer, the state is unknown.
    pub(in crate::command) fn note_silence(&mut self, at: ReadAt) {
        let current = self.observer.leadership(at);
        let (silence, sentence) = (Told::by(current), sentence(current).to_string());
        if self.trouble.is_none() && silence > self.told {
            self.told = silence;
            self.note(at.wall_ms, &sentence);
        }
    }

    /// Keeps a change, with its time by the broker's clock, or else by this machine's.
    fn note(&mut self, wall_ms: u64, sentence: &str) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((wall_ms, sentence.to_owned()));
    }

    fn take_in_record(&mut self, at: ReadAt, record: &ReadRecord) {
        let ReadRecord { offset, key, value, written_ms, is_brokers_time, .. } = record;
        let (offset, written_ms) = (*offset, *written_ms);
        if let Some(stamp_ms) = written_ms.filter(|_| *is_brokers_time) {
            self.observer.stamped(stamp_ms);
        }
        if *key == Key::Election(self.election.role) {
            self.is_brokers_time &= is_brokers_time;
            let parsed = value.as_deref().and_then(Record::parse);
            let (_, changes) = self.observer.read(at, offset, parsed.as_ref(), written_ms);
            for change in changes {
                let told = self.told;
                self.told = told.after(&change);
                if told == Told::Silent && matches!(change, Change::FellSilent(_)) {
                    continue;
                }
                let sentence = wording::change(&self.observer, change);
                self.note(written_ms.unwrap_or(at.wall_ms), &sentence);
            }
            return;
        }
        self.observer.read_other(at.now, offset);
        if is_hello(&self.election.group, record) {
            return self.take_in_hello(at, record);
        }
        self.others.take_in(&self.election, record);
    }

    /// Notes whether the candidate of this hello stands for the role.
    fn take_in_hello(&mut self, at: ReadAt, record: &ReadRecord) {
        let Some(value) = record.value.as_deref() else { return };
        let Some(process) = ProcessHello::parse(value) else { return };
        if let Some(number) = number_in(&process, &self.election) {
            if process.roles.is_some() {
                self.observer.process_hello_received(at, process.about(number), record.written_ms);
            } else if let Some(hello) = Record::parse(value) {
                self.observer.hello_received(at, hello, record.written_ms);
            }
        }
    }

    /// Why no candidate can be asked: no record of the election was read, so its name may be mistyped.
    pub(in crate::command) fn no_record(&self) -> Option<String> {
        (!self.observer.has_read_anything()).then(|| wording::no_record(&self.election, &self.others))
    }

    /// The present or last run according to the journal. When it changes, facts about it may have been recorded.
    pub(in crate::command) fn run(&self) -> SeenRun {
        let leader = self.observer.leader();
        let attempt = leader.and_then(|leader| leader.job?.attempt);
        let is_running = leader.is_some_and(|leader| leader.job.is_some_and(|job| job.state == JobState::Running));
        SeenRun { term: self.observer.journal().term(), attempt, is_running }
    }

    /// Reads the current term's claim if it is before the records that were read: its time is the start of the lead.
    ///
    /// # Errors
    ///
    /// As for [`Reading::start`] and [`Reading::next`].
    pub(in crate::command) async fn learn_claim(&mut self, reading: &Reading) -> Result<()> {
        let leader = self.observer.leader().filter(|leader| leader.claimed_ms.is_none());
        let Some(term) = leader.map(|leader| leader.term).filter(|term| (self.start..self.from).contains(term)) else {
            return Ok(());
        };
        // The claim is read over a connection of its own, because on the other one the long fetch for the next record would delay it.
        let Source { access, elections, partitions, .. } = &reading.source;
        let mut aside = Reading::start(access, elections, [self.election.partition], *partitions)?;
        let until = clock::now() + CLAIM_WITHIN;
        let mut is_asked_for = false;
        loop {
            match aside.next(Some(until)).await? {
                Input::Ends { partition, .. } if !std::mem::replace(&mut is_asked_for, true) => {
                    aside.read_from(partition, term);
                }
                Input::Record { record, .. } if record.offset == term => {
                    self.observer.learn_claim(term, record.written_ms);
                    return Ok(());
                }
                // The claim was just deleted, or the broker is slow. Then the start of the lead stays unknown.
                Input::Cut | Input::Record { .. } | Input::Timeout => return Ok(()),
                Input::CaughtUp | Input::Down(_) | Input::Ends { .. } | Input::Up | Input::Warning(_) => {}
            }
        }
    }
}

/// The Kafka key of an election's record, `<group>/<role>`, or of a hello, `<group>/<role>/hello`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::command) struct ElectionKey<'a> {
    pub(in crate::command) group: &'a str,
    pub(in crate::command) role: &'a str,
    pub(in crate::command) is_hello: bool,
}

/// The parts of a record's Kafka key.
pub(in crate::command) fn key_of_election(key: &[u8]) -> Option<ElectionKey<'_>> {
    let key = std::str::from_utf8(key).ok()?;
    // The key of a role that is called `hello` ends like that of a hello, but has no other role before it.
    let of_hello = key.strip_suffix("/hello").filter(|label| label.contains('/'));
    let (label, is_hello) = of_hello.map_or((key, false), |label| (label, true));
    let (group, role) = label.rsplit_once('/')?;
    (!group.is_empty() && !role.is_empty()).then_some(ElectionKey { group, role, is_hello })
}

#[cfg(test)]
mod tests {
    use neli_proto::journal::Origin;
    use neli_proto::leadership::Leadership;

    use super::*;

    /// A leader with a lease of 1 s whose last heartbeat is two minutes old, and after it another election's record that is one minute old.
    #[test]
    fn a_record_behind_it_that_a_broker_stamped_proves_that_a_leader_is_silent() {
        let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: None };
        let claim = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":1000}"#;
        for is_brokers_time in [true, false] {
            let journal = Journal::read_from(0, Origin::Beginning);
            let mut seen = Seen::new(election.clone(), journal, 0, 0);
            for (offset, key, value, ago) in
                [(0, Key::Election(0), Some(claim.as_bytes()), 120_000), (1, Key::Other, None, 60_000)]
            {
                let (value, written_ms) = (value.map(Box::from), Some(read_at().wall_ms - ago));
                let record = ReadRecord { offset, key, value, other_key: None, written_ms, is_brokers_time };
                seen.take_in(&Input::Record { partition: 0, record });
            }
            assert!(matches!(seen.observer.leadership(read_at()), Leadership::Silent { .. }));
            assert_eq!(seen.observer.doubts_timestamps(read_at()).is_none(), is_brokers_time);
        }
    }

    /// On one partition, lists of the same names in another order agree on each role's partition.
    #[test]
    fn the_roles_that_a_candidate_has_left_are_numbered_by_its_own_list() {
        let election =
            ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: Some("a".into()) };
        for (left, standbys) in [("0", 1), ("2", 0)] {
            let hello = format!(
                r#"{{"v":1,"kind":"hello","member":"m","roles":"c,b,a","partitions":1,"joined":0,"left":"{left}"}}"#
            );
            let mut seen = Seen::new(election.clone(), Journal::read_from(0, Origin::Beginning), 0, 0);
            let (value, written_ms) = (Some(Box::from(hello.as_bytes())), Some(read_at().wall_ms));
            let key = Key::AnyHello;
            let record = ReadRecord { offset: 0, key, value, other_key: None, written_ms, is_brokers_time: true };
            seen.take_in(&Input::Record { partition: 0, record });
            assert_eq!(seen.observer.standbys(read_at()).len(), standbys, "has left {left}");
        }
    }

    #[test]
    fn a_key_names_its_election() {
        let elections = ["a/0", "a/b/ingest", "a/0/hello", "a/hello", "a/hello/hello", "a", "/0", "a/", "", "/hello"]
            .map(|key| key_of_election(key.as_bytes()));
        let key = |group, role, is_hello| Some(ElectionKey { group, role, is_hello });
        let of_a = [key("a", "0", true), key("a", "hello", false), key("a", "hello", true)];
        let expected = [&[key("a", "0", false), key("a/b", "ingest", false)][..], &of_a, &[None; 5]].concat();
        assert_eq!(elections[..], expected);
    }
}
