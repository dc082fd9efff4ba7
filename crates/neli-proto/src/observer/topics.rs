//! All topics with elections, read on by one session: which logs are to be read from where, and what each topic holds. A topic that appears is
//! read, one that is gone is forgotten, and one that was made anew, or whose history was cut, is read anew.
//!
//! The session asks again and again which topics there are ([`Topics::answered`]), so that what is wanted follows from the last answer alone,
//! whatever was missed before.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use super::{FoundElection, Judged, Place, Progress, Topic};
use crate::kafka::{LogsAnswer, TopicsAction};
use crate::leadership::{Leadership, ReadAt, Unknown};
use crate::listener::LogBounds;
use crate::record::{LogRecord, Offset};
use crate::time::Time;
use crate::topic::TopicIdentity;

/// All topics with elections.
#[derive(Clone, Debug)]
pub struct Topics {
    /// How far before a log's end its reading begins.
    span: Offset,
    /// Of a list of roles at most so many are looked at.
    most_roles: u32,
    by_name: BTreeMap<Box<str>, ReadTopic>,
    was_answered: bool,
    /// Since when no broker answers, and why.
    outage: Option<(Time, Box<str>)>,
    readings: u32,
    actions: VecDeque<TopicsAction>,
}

/// A topic that is read.
#[derive(Clone, Debug)]
pub struct ReadTopic {
    identity: TopicIdentity,
    /// The number of its present reading. Records of an earlier one are dropped.
    reading: u32,
    progress: Progress,
    /// The offset that each partition was read up to.
    next: BTreeMap<i32, Offset>,
    /// The same when the last answer came, and the end of the log that it told of.
    before: BTreeMap<i32, (Offset, Offset)>,
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
    is_live: bool,
}

impl Topics {
    /// No topic is known yet. The reading of each log begins `span` records before its end.
    #[must_use]
    pub const fn new(span: Offset, most_roles: u32) -> Self {
        Self {
            span,
            most_roles,
            by_name: BTreeMap::new(),
            was_answered: false,
            outage: None,
            readings: 0,
            actions: VecDeque::new(),
        }
    }

    /// Handles an answer about all topics that are meant, to a question of `asked`.
    pub fn answered(&mut self, at: ReadAt, asked: Time, answer: BTreeMap<Box<str>, LogsAnswer>) {
        self.was_answered = true;
        self.outage = None;
        let gone: Vec<Box<str>> = self
            .by_name
            .iter_mut()
            .filter_map(|(name, read)| read.is_gone(answer.get(name)).then(|| name.clone()))
            .collect();
        for name in gone {
            self.by_name.remove(&name);
            self.actions.push_back(TopicsAction::Stop { topic: name });
        }
        for (name, answer) in answer {
            let known = self.by_name.get_mut(&name);
            if known.is_none_or(|read| read.must_begin_anew(asked, &answer)) {
                self.begin(at, asked, name, answer);
            } else if let Some(read) = self.by_name.get_mut(&name) {
                if answer.logs.is_err() && read.unread.is_none() {
                    self.actions.push_back(TopicsAction::Stop { topic: name });
                }
                read.note_answer(answer, self.most_roles);
            }
        }
        let latest_ms = self.by_name.values().filter_map(|read| read.topic.latest_ms()).max();
        for topic in self.by_name.values_mut().map(|read| &mut read.topic) {
            if let Some(latest_ms) = latest_ms {
                topic.stamped(latest_ms);
            }
            topic.elections_mut().for_each(|(_, election)| election.note_contact(true));
        }
    }

    /// Begins to read a topic, from nothing.
    fn begin(&mut self, at: ReadAt, asked: Time, name: Box<str>, answer: LogsAnswer) {
        self.readings += 1;
        let LogsAnswer { identity, logs } = answer;
        let (reading, mut topic, mut next) = (self.readings, Topic::default(), BTreeMap::new());
        let (mut unanswered, mut unread, mut progress) = (BTreeMap::new(), None, Progress::default());
        if self.by_name.contains_key(&name) {
            self.actions.push_back(TopicsAction::Stop { topic: name.clone() });
        }
        match logs {
            Err(why) => unread = Some(why),
            Ok(logs) => {
                let led = logs.iter().filter(|(_, log)| log.is_ok()).map(|(partition, _)| *partition);
                progress = Progress::new(led.collect::<Vec<i32>>());
                for (partition, log) in logs {
                    let log = match log {
                        Ok(log) => log,
                        Err(why) => {
                            unanswered.insert(partition, why);
                            continue;
                        }
                    };
                    let bounds = LogBounds { asked, start: log.start, end: log.end };
                    let offset = bounds.last(self.span);
                    topic.begin(at, partition, bounds, offset);
                    // The first answer only says how far is to be read.
                    let _ = progress.answered(partition, bounds);
                    progress.read_up_to(partition, offset);
                    next.insert(partition, offset);
                    self.actions.push_back(TopicsAction::ReadFrom { topic: name.clone(), partition, offset, reading });
                }
            }
        }
        let mut read = ReadTopic {
            identity,
            reading,
            progress,
            next,
            before: BTreeMap::new(),
            stood_at: self.by_name.get_mut(&name).map(|read| mem::take(&mut read.stood_at)).unwrap_or_default(),
            unread,
            unanswered,
            was_missing: false,
            topic,
            is_live: false,
        };
        read.note_progress(self.most_roles);
        self.by_name.insert(name, read);
    }

    /// Handles that no broker answers.
    pub fn no_answer(&mut self, now: Time, why: &str) {
        let since = self.outage.as_ref().map_or(now, |(since, _)| *since);
        self.outage = Some((since, why.into()));
        for read in self.by_name.values_mut() {
            read.topic.elections_mut().for_each(|(_, election)| election.note_contact(false));
        }
    }

    /// Handles a record that this reading has read. Returns what the law says of it, if it is an election's.
    pub fn read(
        &mut self,
        at: ReadAt,
        (reading, topic): (u32, &str),
        partition: i32,
        record: &LogRecord,
    ) -> Option<(Place, Judged)> {
        let read = self.by_name.get_mut(topic).filter(|read| read.reading == reading)?;
        let judged = read.topic.read(at, partition, record);
        read.next.insert(partition, record.offset + 1);
        if !read.is_live {
            read.progress.read_up_to(partition, record.offset + 1);
            read.note_progress(self.most_roles);
        }
        judged
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
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&ReadTopic> {
        self.by_name.get(name)
    }

    /// Who leads an election of this topic; unknown until the topic was read, and while Kafka does not answer or it can't be read.
    #[must_use]
    pub fn leadership<'a>(&self, at: ReadAt, read: &ReadTopic, found: FoundElection<'a>) -> Leadership<'a> {
        let current =
            if read.is_live() { found.observer().leadership(at) } else { Leadership::Unknown(Unknown::Reading) };
        let is_unanswered = self.outage().is_some() || read.trouble(Some(found.place.partition)).is_some();
        if is_unanswered { current.unanswered() } else { current }
    }

    /// The topics, to note what no record says of their elections.
    pub fn topics_mut(&mut self) -> impl Iterator<Item = (&str, &mut Topic)> {
        self.by_name.iter_mut().map(|(name, read)| (&**name, &mut read.topic))
    }

    /// Since when no broker answers, and why.
    #[must_use]
    pub fn outage(&self) -> Option<(Time, &str)> {
        self.outage.as_ref().map(|(since, why)| (*since, &**why))
    }

    /// Whether it is known which topics there are, and each that can be read was read up to the end that it had then.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.was_answered && self.by_name.values().all(|read| read.is_live)
    }
}

impl ReadTopic {
    /// What was read of it.
    #[must_use]
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Whether it was read up to the ends of its logs.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.is_live
    }

    /// Why the topic, or this partition of it, can't be read now.
    #[must_use]
    pub fn trouble(&self, partition: Option<i32>) -> Option<&str> {
        let of_partition = || self.unanswered.get(&partition?).map(|why| &**why);
        self.unread.as_deref().or_else(of_partition)
    }

    /// Whether the second answer in a row, or an answer about the topic itself, says that it does not exist.
    fn is_gone(&mut self, answer: Option<&LogsAnswer>) -> bool {
        let is_missing = answer.is_none();
        let is_gone = is_missing && self.was_missing;
        self.was_missing = is_missing;
        is_gone
    }

    /// Whether the answer shows another topic, another history, or logs that were not read so far.
    fn must_begin_anew(&mut self, asked: Time, answer: &LogsAnswer) -> bool {
        let is_other = matches!((self.identity, answer.identity), (TopicIdentity::Id(known), TopicIdentity::Id(id)) if known != id);
        let logs = answer.logs.as_ref().ok();
        let is_new = logs.is_some() && self.unread.is_some()
            || logs.is_some_and(|logs| {
                logs.iter().any(|(partition, log)| log.is_ok() && !self.next.contains_key(partition))
            });
        let mut is_cut = false;
        for (partition, log) in logs.into_iter().flatten() {
            if let Ok(log) = log {
                // What was read live counts too.
                self.next.get(partition).into_iter().for_each(|next| self.progress.read_up_to(*partition, *next));
                let bounds = LogBounds { asked, start: log.start, end: log.end };
                is_cut |= self.progress.answered(*partition, bounds).is_err();
            }
        }
        is_other || is_new || is_cut || self.has_stopped()
    }

    /// Whether a partition's reading has stood still since the last answer, for the first time at this offset. A client may lose a fetch, for
    /// example in a topic that was just made.
    fn has_stopped(&mut self) -> bool {
        let mut has_stopped = false;
        for (partition, next) in self.standing() {
            has_stopped |= self.stood_at.insert(partition, next) != Some(next);
        }
        has_stopped
    }

    /// The partitions where nothing was read since the last answer, which told of more.
    fn standing(&self) -> BTreeMap<i32, Offset> {
        let stands = |(partition, (before, end)): (&i32, &(Offset, Offset))| {
            let next = *self.next.get(partition)?;
            (next == *before && next < *end).then_some((*partition, next))
        };
        self.before.iter().filter_map(stands).collect()
    }

    /// Notes an answer about the topic as it is read.
    fn note_answer(&mut self, answer: LogsAnswer, most_roles: u32) {
        let LogsAnswer { identity, logs } = answer;
        self.identity = identity;
        match logs {
            Err(why) => self.unread = Some(why),
            Ok(logs) => {
                for partition in self.standing().into_keys() {
                    let end = self.progress.end(partition).unwrap_or_default();
                    self.progress.read_up_to(partition, end);
                }
                let ends = logs.iter().filter_map(|(partition, log)| Some((*partition, log.as_ref().ok()?.end)));
                let before = |(partition, end)| Some((partition, (*self.next.get(&partition)?, end)));
                self.before = ends.filter_map(before).collect();
                let unanswered = logs.into_iter().filter_map(|(partition, log)| Some((partition, log.err()?)));
                self.unanswered = unanswered.collect();
            }
        }
        self.note_progress(most_roles);
    }

    /// Notes that the reading is complete, if it is.
    fn note_progress(&mut self, most_roles: u32) {
        if !self.is_live && self.progress.is_complete() {
            self.is_live = true;
            self.topic.caught_up(most_roles);
        }
    }
}

#[cfg(test)]
mod tests;
