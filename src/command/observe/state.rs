//! What is known of all elections, and how it is shown: who leads each, its last changes, and what was counted since this process began.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::TopicsEvent;
use neli_proto::fact::{Fact, TOPIC_SUFFIX};
use neli_proto::leadership::{Leadership, ReadAt};
use neli_proto::observer::{Change, Election, JudgedRecord, Place, ReadTopic, TermEnd, Topics};
use neli_proto::record::{LogRecord, Offset, Why};

use crate::command::facts::{LastRun, election_of};
use crate::command::list::{Listed, Rank};
use crate::command::reading::{Changes, Key, elections, note, pass_on, untold_silences};
use crate::command::wording;

/// What is known.
pub struct State {
    /// The topics. Who feeds this also does what they want to be done.
    pub topics: Topics,
    /// `--group`.
    pub(super) group: Option<String>,
    notes: BTreeMap<Key, Notes>,
    /// By the journal's topic and the key of its records.
    runs: BTreeMap<(Box<str>, Box<str>), RecordedRun>,
    /// When time without a leader was counted last; `None` while Kafka does not answer.
    counted: Option<ReadAt>,
    /// When the first event came, in milliseconds since 1970.
    began_ms: Option<u64>,
}

/// The last recorded run of an election.
struct RecordedRun {
    last: LastRun,
    /// The offset of the last record.
    offset: Offset,
    /// The number of the reading of the topic of facts.
    reading: u32,
}

/// What was noted of an election since this process began.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) changes: Changes,
    /// The terms that have begun, by how the one before ended.
    pub(super) terms: BTreeMap<&'static str, u64>,
    /// When the newest of them began, in milliseconds since 1970.
    counted_ms: Option<u64>,
    /// The time of the changes by the first record that decided who leads, in milliseconds since 1970, if its term began before: until the past
    /// tells them.
    assumed_ms: Option<u64>,
    /// The time without a leader.
    pub(super) unled: Duration,
}

/// An election as it is shown.
pub(super) struct Shown<'a> {
    pub(super) listed: Listed<'a>,
    pub(super) read: &'a ReadTopic,
    pub(super) notes: Option<&'a Notes>,
    pub(super) run: Option<&'a LastRun>,
}

impl State {
    /// Nothing is known. Without a group all elections are shown.
    pub const fn new(topics: Topics, group: Option<String>) -> Self {
        Self { topics, group, notes: BTreeMap::new(), runs: BTreeMap::new(), counted: None, began_ms: None }
    }

    /// Handles an event of the reader. Returns what users are told of it.
    ///
    /// # Errors
    /// Kafka refuses permanently.
    pub fn handle(&mut self, at: ReadAt, event: TopicsEvent) -> Result<Option<String>> {
        self.began_ms.get_or_insert(at.wall_ms);
        if let TopicsEvent::Down(_) = event {
            self.counted = None;
        }
        let TopicsEvent::Read { reading, topic, partition, record } = event else {
            return pass_on(&mut self.topics, at, event);
        };
        self.read(at, (reading, &topic), partition, &record);
        Ok(None)
    }

    fn read(&mut self, at: ReadAt, (reading, topic): (u32, &str), partition: i32, record: &LogRecord) {
        let was_read = self.topics.topic(topic).is_some_and(ReadTopic::is_live);
        let is_past = self.topics.is_of_past(reading);
        let judged = self.topics.read(at, (reading, topic), partition, record);
        if let Some(journal) = topic.strip_suffix(TOPIC_SUFFIX) {
            let fact = record.value.as_deref().and_then(Fact::parse);
            if let (Some(election), Some(fact)) = (record.key.as_deref().and_then(election_of), fact) {
                let place = (journal.into(), election.into());
                // What was read of a topic that is gone counts for nothing.
                let current = self.topics.topic(topic).map(ReadTopic::reading);
                let Some(reading) = current.filter(|current| is_past || *current == reading) else { return };
                let known = self.runs.remove(&place).filter(|known| known.reading == reading);
                let run = match known {
                    // The day before is read after the present, of which it tells nothing.
                    Some(later) if is_past && later.offset >= record.offset => later,
                    _ => {
                        let last = LastRun::after(known.map(|known| known.last), fact);
                        RecordedRun { last, offset: record.offset, reading }
                    }
                };
                self.runs.insert(place, run);
            }
            return;
        }
        let Some(JudgedRecord { changes, election, is_live }) =
            judged.filter(|of_record| !of_record.changes.is_empty())
        else {
            return;
        };
        let leader = election.observer().leader();
        let claimed_ms = leader.and_then(|leader| leader.claimed_ms);
        let notes = self.notes.entry((topic.into(), election.place().clone())).or_default();
        let ms = record.written_ms.unwrap_or(at.wall_ms);
        if was_read && !is_live {
            // It is of the past.
            let assumed_ms = notes.assumed_ms.take();
            notes.changes.retain(|(ms, _)| Some(*ms) != assumed_ms);
        } else if notes.changes.is_empty() && changes.contains(&Change::Led) {
            notes.assumed_ms = leader.filter(|leader| leader.term < record.offset).map(|_| ms);
        }
        for change in &changes {
            note(&mut notes.changes, ms, wording::change(election.observer(), change));
            // The first terms of a new topic are not read live, and a reading that is begun anew reads terms again.
            let is_new = claimed_ms > self.began_ms.max(notes.counted_ms);
            if *change == Change::Led && (is_live || is_new) {
                notes.counted_ms = claimed_ms.max(notes.counted_ms);
                *notes.terms.entry(why_before(election)).or_default() += 1;
            }
        }
    }

    /// Notes what no record shows.
    pub fn tick(&mut self, at: ReadAt) {
        if self.topics.outage().is_some() {
            return;
        }
        let since = self.counted.replace(at).map_or(Duration::ZERO, |counted| at.now.since(counted.now));
        for (key, sentence) in untold_silences(&mut self.topics, at) {
            note(&mut self.notes.entry(key).or_default().changes, at.wall_ms, sentence);
        }
        self.topics.ask_about_silences(at);
        self.learn_runs(at);
        let topics = &self.topics;
        for (name, read, found) in elections(topics) {
            if topics.leadership(at, read, found).is_vacant() {
                self.notes.entry((name.into(), found.place().clone())).or_default().unled += since;
            }
        }
        // Until a topic's past was read, its elections of the past are not known.
        let is_known = |read: &ReadTopic, place: &Place| {
            read.topic().election(place).is_some() || read.known_since_ms(place.partition).is_some()
        };
        self.notes.retain(|(topic, place), _| topics.topic(topic).is_some_and(|read| is_known(read, place)));
        self.runs.retain(|(journal, _), run| {
            let facts = topics.topic(&format!("{journal}{TOPIC_SUFFIX}"));
            topics.topic(journal).is_some() && facts.is_some_and(|read| read.reading() == run.reading)
        });
    }

    /// Learns what no fact says: from the releases how runs have ended, and from the hellos the schedule, or that no runs are recorded any more.
    fn learn_runs(&mut self, at: ReadAt) {
        if self.runs.is_empty() {
            return;
        }
        for (topic, _, found) in elections(&self.topics) {
            let Place { group, role, .. } = found.place();
            let place = (topic.into(), format!("{group}/{role}").into());
            // The group ran `--once` or windows before, perhaps for a trial.
            if found.observer().leaders_hello().is_some_and(|leader| leader.hello.once.is_none()) {
                self.runs.remove(&place);
            } else if let Some(run) = self.runs.get_mut(&place) {
                run.last.learn_release(found);
                run.last.learn_schedule(found.observer(), at);
            }
        }
    }

    /// All elections, or those of a group, in the order of topics, groups and roles. What is shown of the others is not made.
    pub(super) fn elections<'a>(&'a self, at: ReadAt, group: Option<&'a str>) -> impl Iterator<Item = Shown<'a>> {
        let groups = [self.group.as_deref(), group];
        let is_meant = move |(topic, _, found): &(&str, &ReadTopic, &Election)| {
            !topic.ends_with(TOPIC_SUFFIX) && groups.iter().flatten().all(|group| **group == *found.place().group)
        };
        elections(&self.topics).filter(is_meant).map(move |(topic, read, found)| {
            let Place { group, role, .. } = found.place();
            let run = self.runs.get(&(topic.into(), format!("{group}/{role}").into())).map(|run| &run.last);
            let notes = self.notes.get(&(topic.into(), found.place().clone()));
            Shown { listed: Listed::of(at, &self.topics, (topic, read, found)), read, notes, run }
        })
    }
}

impl<'a> Deref for Shown<'a> {
    type Target = Listed<'a>;

    fn deref(&self) -> &Listed<'a> {
        &self.listed
    }
}

impl Shown<'_> {
    /// Why its topic or its partition can't be read.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.read.trouble(Some(self.found.place().partition))
    }

    /// From when on its terms are known, in milliseconds since 1970, while those before are not read yet.
    pub(super) fn known_since_ms(&self) -> Option<u64> {
        self.read.known_since_ms(self.found.place().partition)
    }

    pub(super) fn rank(&self) -> Rank {
        match (Rank::of(&self.listed), self.current, self.run) {
            (Rank::Done, Leadership::Released { release, .. }, Some(run))
                if run.has_forgotten(release, self.at.wall_ms) =>
            {
                Rank::Vacant
            }
            (rank, ..) => rank,
        }
    }
}

/// How the term before the present one ended, as one of a few words: the reason of its release, or what else ended it.
fn why_before(election: &Election) -> &'static str {
    let [.., before, _] = election.terms() else { return "first" };
    match &before.end {
        TermEnd::Open | TermEnd::Unknown => "unknown",
        TermEnd::Overlapped { .. } => "overlapped",
        TermEnd::Silent => "silent",
        TermEnd::Released { how, .. } => how.why.as_deref().and_then(Why::parse).map_or("other", Why::as_str),
    }
}
