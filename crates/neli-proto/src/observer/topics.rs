//! All topics with elections, read on by one session: which logs are to be read from where, and what each topic holds. A topic that appears is
//! read, one that is gone is forgotten, and one that was made anew, or whose history was cut, is read anew.
//!
//! The session asks again and again which topics there are ([`Topics::answered`]), so that what is wanted follows from the last answer alone,
//! whatever was missed before.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::{Change, Election, Place, Progress, Topic};
use crate::journal::Verdict;
use crate::kafka::{LogRange, LogsAnswer, TopicsAction};
use crate::leadership::{Leadership, ReadAt, Unknown};
use crate::listener::LogBounds;
use crate::record::{LogRecord, Offset};
use crate::time::{Time, millis};
use crate::topic::TopicIdentity;

/// The reading of a topic's past is begun so often, if it stands still each time.
const MOST_TRIES: u32 = 5;

/// All topics with elections.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    /// A reading begins at least so many records before a log's end.
    span: Offset,
    /// How far back the topics are read once their elections' present states are known.
    back: Duration,
    /// Of a list of roles at most so many are looked at.
    most_roles: u32,
    by_name: BTreeMap<Box<str>, ReadTopic>,
    was_answered: bool,
    /// Since when no broker answers, and why.
    outage: Option<(Time, Box<str>)>,
    readings: u32,
    /// The topic whose past is being read: one at a time, since its elections are kept twice meanwhile.
    past: Option<Past>,
    actions: VecDeque<TopicsAction>,
}

/// A record of an election.
#[derive(Debug)]
pub struct JudgedRecord<'a> {
    /// What it has changed of which users were not told before.
    pub changes: Vec<Change>,
    /// The election, as of the record.
    pub election: &'a Election,
    /// Whether the record came after the topic was read to its end.
    pub is_live: bool,
}

/// A topic that is read.
#[derive(Clone, Debug, Default)]
pub struct ReadTopic {
    identity: TopicIdentity,
    /// The number of its present reading. Records of an earlier one are dropped.
    reading: u32,
    /// Where the reading of each partition has stood still although its log goes on, and was begun anew. If it stands still there again, nothing
    /// more comes: there is a transaction's marker, which is no record.
    stood_at: BTreeMap<i32, Offset>,
    /// Why the topic can't be read.
    unread: Option<Box<str>>,
    /// The partitions whose leaders do not answer, and why.
    unanswered: BTreeMap<i32, Box<str>>,
    /// Whether it was missing from the last answer: one broker may not know it yet, or any more.
    was_missing: bool,
    topic: Topic,
    /// When the first record of each partition was appended that was read, in milliseconds since 1970.
    first_ms: BTreeMap<i32, u64>,
    /// How often the reading of its past was begun; `None` once the past was read, or if there is none.
    tries: Option<u32>,
}

impl Topics {
    /// No topic is known yet. The reading of each log begins `span` records before its end, or further back so that it has all
    /// [`RECENT`](crate::kafka::RECENT) ones.
    pub fn new(span: Offset, most_roles: u32) -> Self {
        Self { span, most_roles, ..Self::default() }
    }

    /// The same, which afterwards reads the records of so long a time as well.
    #[must_use]
    pub fn with_past(self, back: Duration) -> Self {
        Self { back, ..self }
    }

    /// Handles an answer about all topics that are meant, to a question of `asked`.
    pub fn answered(&mut self, at: ReadAt, asked: Time, answer: BTreeMap<Box<str>, LogsAnswer>) {
        self.was_answered = true;
        self.outage = None;
        let known = self.by_name.iter_mut();
        let gone = known.filter_map(|(name, read)| read.is_gone(answer.get(name)).then(|| name.clone()));
        for name in gone.collect::<Vec<Box<str>>>() {
            self.by_name.remove(&name);
            self.stop(name);
        }
        for (name, answer) in answer {
            let known = self.by_name.get_mut(&name);
            let was_read = known.as_ref().is_some_and(|read| read.unread.is_none());
            if known.is_none_or(|read| read.must_begin_anew(at.now, asked, &answer)) {
                self.begin(at, asked, name, &answer);
            } else if was_read && answer.logs.is_err() {
                self.stop(name);
            }
        }
        self.note_latest();
        let has_stood_still = self.past.take_if(Past::stands_still).is_some();
        self.look_back(at);
        if has_stood_still && self.past.is_none() {
            // The reader would read on, and in vain.
            self.actions.push_back(TopicsAction::StopPast);
        }
    }

    fn stop(&mut self, name: Box<str>) {
        self.past = self.past.take().filter(|past| past.name != name);
        self.actions.push_back(TopicsAction::Stop { topic: name });
    }

    /// Begins to read the past of the next topic, once the present is known. One whose reading stood still is tried again after the others.
    fn look_back(&mut self, at: ReadAt) {
        if self.back.is_zero() || self.past.is_some() || self.outage.is_some() || !self.is_complete() {
            return;
        }
        let wanted = self.by_name.iter_mut().filter(|(_, read)| read.unread.is_none());
        let wanted =
            wanted.filter_map(|(name, read)| Some((read.tries.filter(|tries| *tries < MOST_TRIES)?, name, read)));
        let Some((tries, name, read)) = wanted.min_by_key(|(tries, ..)| *tries) else { return };
        self.readings += 1;
        read.tries = Some(tries + 1);
        self.past = Some(Past::new(name.clone(), self.readings));
        self.actions.push_back(TopicsAction::ReadSince {
            topic: name.clone(),
            since_ms: at.wall_ms.saturating_sub(millis(self.back)),
            before: read.topic.partitions.iter().map(|(number, partition)| (*number, partition.from)).collect(),
            reading: self.readings,
        });
    }

    /// Handles the offsets where a topic's past begins.
    pub fn past_begins(&mut self, at: ReadAt, reading: u32, from: &BTreeMap<i32, Offset>) {
        let Some(past) = self.past.as_mut().filter(|past| past.reading == reading) else { return };
        if self.by_name.get(&past.name).is_none_or(|read| past.begins(at, from, &read.topic)) {
            self.past_is_read(at);
        }
    }

    /// Goes on with the next topic.
    fn past_is_read(&mut self, at: ReadAt) {
        let read = self.past.take().and_then(|past| self.by_name.get_mut(&past.name));
        if let Some(read) = read {
            read.tries = None;
        }
        self.actions.push_back(TopicsAction::StopPast);
        self.look_back(at);
    }

    /// Begins to read a topic, from nothing.
    fn begin(&mut self, at: ReadAt, asked: Time, name: Box<str>, answer: &LogsAnswer) {
        self.readings += 1;
        let reading = self.readings;
        let stood_at = self.by_name.get_mut(&name).map(|read| mem::take(&mut read.stood_at)).unwrap_or_default();
        let topic = Topic::new(self.most_roles);
        let mut read = ReadTopic { reading, stood_at, topic, ..ReadTopic::default() };
        if self.by_name.contains_key(&name) {
            self.stop(name.clone());
        }
        for (partition, LogRange { start, recent, end }) in read.readable_logs(answer) {
            let bounds = LogBounds { asked, start, end };
            let offset = bounds.last(self.span).min(recent.max(start));
            if offset > start {
                read.tries = Some(0);
            }
            read.topic.begin(at, partition, bounds, offset);
            self.actions.push_back(TopicsAction::ReadFrom { topic: name.clone(), partition, offset, reading });
        }
        read.note_progress();
        self.by_name.insert(name, read);
    }

    /// Tells all elections the latest timestamp of all topics: before the first record that is read live, it shows what time it is.
    pub fn note_latest(&mut self) {
        let latest_ms = self.by_name.values().filter_map(|read| read.topic.latest_ms()).max();
        if let Some(latest_ms) = latest_ms {
            self.by_name.values_mut().for_each(|read| read.topic.stamped(latest_ms));
        }
    }

    /// Handles that no broker answers.
    pub fn no_answer(&mut self, now: Time, why: &str) {
        let since = self.outage.as_ref().map_or(now, |(since, _)| *since);
        self.outage = Some((since, why.into()));
    }

    /// Handles a record that this reading has read. Returns what the law says of it, if it is an election's.
    pub fn read(
        &mut self,
        at: ReadAt,
        (reading, topic): (u32, &str),
        partition: i32,
        record: &LogRecord,
    ) -> Option<JudgedRecord<'_>> {
        if self.is_of_past(reading) {
            return self.read_past(at, partition, record);
        }
        let read = self.by_name.get_mut(topic).filter(|read| read.reading == reading)?;
        let judged = read.topic.read(at, partition, record);
        let is_live = read.is_live();
        if !is_live {
            if let Some(written_ms) = record.written_ms {
                read.first_ms.entry(partition).or_insert(written_ms);
            }
            read.note_progress();
            if read.is_live() {
                self.look_back(at);
            }
        }
        let (place, (_, changes)) = judged?;
        let election = self.by_name.get(topic)?.topic.election(&place)?;
        Some(JudgedRecord { changes, election, is_live })
    }

    /// Handles a record of a topic's past. Returns what the law says of it, unless the first reading has read it.
    fn read_past(&mut self, at: ReadAt, partition: i32, record: &LogRecord) -> Option<JudgedRecord<'_>> {
        let past = self.past.as_mut()?;
        let read = self.by_name.get_mut(&past.name)?;
        let judged = past.read(at, partition, record, &mut read.topic);
        if past.behind.is_empty() {
            self.past_is_read(at);
            return None;
        }
        let (place, (_, changes)) = judged?;
        let election = self.past.as_ref()?.topic.election(&place)?;
        Some(JudgedRecord { changes, election, is_live: false })
    }

    /// Whether this is the reading of a topic's past, beside that of its present.
    pub fn is_of_past(&self, reading: u32) -> bool {
        self.past.as_ref().is_some_and(|past| past.reading == reading)
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<TopicsAction> {
        self.actions.pop_front()
    }

    /// The topics by name.
    pub fn topics(&self) -> impl Iterator<Item = (&str, &ReadTopic)> {
        self.by_name.iter().map(|(name, read)| (&**name, read))
    }

    /// A topic.
    pub fn topic(&self, name: &str) -> Option<&ReadTopic> {
        self.by_name.get(name)
    }

    /// Who leads an election of this topic; unknown until the topic was read, and while Kafka does not answer or it can't be read.
    pub fn leadership<'a>(&self, at: ReadAt, read: &ReadTopic, found: &'a Election) -> Leadership<'a> {
        let current = match (read.is_live(), self.is_answered(read, found.place())) {
            (true, true) => return found.leadership(at),
            (false, true) => return Leadership::Unknown(Unknown::Reading),
            (true, false) => found.observer().leadership(at).unanswered(),
            (false, false) => Leadership::Unknown(Unknown::NoAnswer),
        };
        if self.outage.is_none() && current.is_unknown() { Leadership::Unknown(Unknown::Unreadable) } else { current }
    }

    fn is_answered(&self, read: &ReadTopic, place: &Place) -> bool {
        self.outage.is_none() && read.trouble(Some(place.partition)).is_none()
    }

    /// Asks Kafka at once if a leader has been silent for too long since it answered last, or a topic was missing from its answer.
    pub fn ask_about_silences(&mut self, at: ReadAt) {
        let wants_answer = |read: &ReadTopic| {
            let mut elections = read.topic.elections();
            elections.any(|found| found.wants_answer(at) && self.is_answered(read, found.place()))
        };
        if self.by_name.values().any(|read| read.was_missing || wants_answer(read)) {
            self.actions.push_back(TopicsAction::Ask);
        }
    }

    /// The topics, to note what no record says of their elections.
    pub fn topics_mut(&mut self) -> impl Iterator<Item = (&str, &mut Topic)> {
        self.by_name.iter_mut().map(|(name, read)| (&**name, &mut read.topic))
    }

    /// Since when no broker answers, and why.
    pub fn outage(&self) -> Option<(Time, &str)> {
        self.outage.as_ref().map(|(since, why)| (*since, &**why))
    }

    /// Whether it is known which topics there are, and each that can be read was read up to the end that it had then.
    pub fn is_complete(&self) -> bool {
        self.was_answered && self.by_name.values().all(ReadTopic::is_live)
    }
}

impl ReadTopic {
    /// What was read of it.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The number of its present reading. It is another one once the topic is read anew: it was made again, or its history was cut.
    pub const fn reading(&self) -> u32 {
        self.reading
    }

    /// Whether it was read up to the ends of its logs.
    pub const fn is_live(&self) -> bool {
        self.topic.is_live
    }

    /// Whether this partition was read up to the end that its log had when the reading began.
    pub fn is_read(&self, partition: i32) -> bool {
        self.topic.progress(partition).is_some_and(Progress::is_complete)
    }

    /// Why the topic, or this partition of it, can't be read now.
    pub fn trouble(&self, partition: Option<i32>) -> Option<&str> {
        let of_partition = || self.unanswered.get(&partition?).map(|why| &**why);
        self.unread.as_deref().or_else(of_partition)
    }

    /// Why the topic, or each of its partitions, can't be read now.
    pub fn troubles(&self) -> impl Iterator<Item = &str> {
        self.unread.iter().chain(self.unanswered.values()).map(|why| &**why)
    }

    /// The number of its partitions, if it can be read.
    pub fn partitions(&self) -> usize {
        self.topic.partitions.keys().chain(self.unanswered.keys()).collect::<BTreeSet<_>>().len()
    }

    /// From when on the partition's terms are known, in milliseconds since 1970, while its past is not; `None` once it is.
    pub fn known_since_ms(&self, partition: i32) -> Option<u64> {
        self.tries.and_then(|_| self.first_ms.get(&partition).copied())
    }

    /// Whether the topic is missing from two answers in a row.
    fn is_gone(&mut self, answer: Option<&LogsAnswer>) -> bool {
        let is_missing = answer.is_none();
        let is_gone = is_missing && self.was_missing;
        self.was_missing = is_missing;
        is_gone
    }

    /// Notes an answer about the topic, and what of it can't be read. Returns the logs that can.
    fn readable_logs(&mut self, LogsAnswer { identity, logs }: &LogsAnswer) -> Vec<(i32, LogRange)> {
        self.identity = *identity;
        self.unread = logs.as_ref().err().cloned();
        let Ok(logs) = logs else { return Vec::new() };
        let unanswered = logs.iter().filter_map(|(partition, log)| Some((*partition, log.clone().err()?)));
        self.unanswered = unanswered.collect();
        logs.iter().filter_map(|(partition, log)| Some((*partition, *log.as_ref().ok()?))).collect()
    }

    /// Notes an answer about the topic. Returns whether it shows another topic, another history, or logs that were not read so far.
    fn must_begin_anew(&mut self, now: Time, asked: Time, answer: &LogsAnswer) -> bool {
        let (is_other, was_unread) = (self.identity.is_other_than(answer.identity), self.unread.is_some());
        let logs = self.readable_logs(answer);
        if self.unread.is_some() {
            // What is left of a reading that may not go on would never be complete.
            return is_other || !self.is_live();
        }
        let mut begins_anew = is_other || was_unread;
        for partition in self.unanswered.keys() {
            // The topic would stay incomplete until this partition has a leader. Without it the others can be read to their ends.
            let progress = self.topic.progress_mut(*partition);
            begins_anew |= progress.is_some_and(Progress::unanswered) && !self.topic.is_live;
        }
        for (partition, LogRange { start, end, .. }) in logs {
            let progress = self.topic.progress(partition);
            begins_anew |= progress.is_none();
            let stands_at = progress.and_then(Progress::stands_at);
            begins_anew |= self.topic.answered(now, partition, LogBounds { asked, start, end }).is_err();
            if let Some(next) = stands_at {
                // The first time at this offset a client may have lost a fetch, for example in a topic that was just made.
                begins_anew |= self.stood_at.insert(partition, next) != Some(next);
                self.topic.progress_mut(partition).into_iter().for_each(|progress| progress.has_no_more(asked));
                self.topic.note_progress(partition);
            }
        }
        if !begins_anew {
            self.note_progress();
        }
        begins_anew
    }

    /// Notes that the reading is complete, if it is.
    fn note_progress(&mut self) {
        if !self.is_live() && self.topic.is_read() {
            self.topic.caught_up();
        }
    }
}

// ---- the day before a topic's reading began -------------------------------------------------------------------------
//
// So that the present state of all elections is known soon, a topic is first read from shortly before the
// ends of its logs. After that it is read once more, from a day ago on, beside the first reading, which goes on. Where the second reading has
// reached the first one, it has judged the same records and those before them by the same law, so its terms replace those of the first: nothing is
// put together from two halves.

/// The reading of a topic's day before.
#[derive(Clone, Debug)]
struct Past {
    /// The topic.
    name: Box<str>,
    /// The number of the reading.
    reading: u32,
    topic: Topic,
    /// The partitions that have not reached the first reading.
    behind: BTreeSet<i32>,
    /// What has come since the last answer.
    heard: u64,
}

impl Past {
    fn new(name: Box<str>, reading: u32) -> Self {
        // The time until the first answer counts as heard: the question for the offsets was asked just now.
        Self { name, reading, topic: Topic::default(), behind: BTreeSet::new(), heard: 1 }
    }

    /// Whether nothing has come between two answers.
    const fn stands_still(&mut self) -> bool {
        mem::replace(&mut self.heard, 0) == 0
    }

    /// Handles the offsets where the day begins. Returns whether all of it was read before.
    fn begins(&mut self, at: ReadAt, from: &BTreeMap<i32, Offset>, first: &Topic) -> bool {
        self.heard += 1;
        for (number, partition) in &first.partitions {
            if let Some(offset) = from.get(number).filter(|offset| **offset < partition.from) {
                self.topic.begin(at, *number, partition.bounds, *offset);
                self.behind.insert(*number);
            }
        }
        self.behind.is_empty()
    }

    /// Handles a record. `first` is the first reading. Returns what the law says of a record that the first reading does not know.
    fn read(
        &mut self,
        at: ReadAt,
        partition: i32,
        record: &LogRecord,
        first: &mut Topic,
    ) -> Option<(Place, (Verdict, Vec<Change>))> {
        self.heard += 1;
        let first_next = first.progress(partition).filter(|_| self.behind.contains(&partition))?.next;
        // If the record is further on, there is none in between.
        let judged = if record.offset < first_next { self.topic.read(at, partition, record) } else { None };
        if record.offset + 1 >= first_next {
            self.behind.remove(&partition);
            first.take_past(partition, &mut self.topic);
        }
        judged.filter(|_| first.partitions.get(&partition).is_some_and(|read| record.offset < read.from))
    }
}

#[cfg(test)]
mod tests;
