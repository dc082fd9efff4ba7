//! Reads topics for the subcommands. They join no group; READ on the topic is enough.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use neli_kafka::{
    Access, Elections, IfMissing, KafkaEvent, Reader, SessionEvent, Source, TopicsEvent, TopicsReader, clock,
};
use neli_proto::candidate::Event;
use neli_proto::journal::Verdict;
use neli_proto::leadership::ReadAt;
use neli_proto::listener::{HistoryCut, LogBounds};
use neli_proto::observer::{Change, Election, Observer, Place, ReadTopic, Topic, Topics};
use neli_proto::record::{LogRecord, Offset};
use neli_proto::time::Time;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::unconstrained;
use tokio::time::timeout;

use crate::command::wording::kafka_is_away;
use crate::exit::{ExitStatus, with_status};
use crate::report::election::sentence;
use crate::text::spoken;

mod found_elections;
mod observation;

pub(super) use found_elections::FoundElections;
#[cfg(test)]
pub(super) use observation::tests::HeardBefore;
pub(super) use observation::{Observation, Seen, in_topic, warn_of_clock};

/// The suffix of a journal topic's name.
pub(super) const SUFFIX: &str = ".neli";

/// The capacity of the queue of events.
const WAITING: usize = 1_000;
/// The same of all topics together.
const WAITING_OF_ALL: usize = 10_000;
/// At most this many of the last changes are kept.
const MOST_CHANGES: usize = 100;
/// So many events are handled together.
const TOGETHER: usize = 1_000;
/// The time between two looks at what no record shows.
const TICK: Duration = Duration::from_secs(1);

/// `--timeout`, as a limit for a reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    timeout: Duration,
    /// When the whole reading must be over; `None` if only each of Kafka's answers is limited, since a log may be long.
    until: Option<Time>,
}

impl Limit {
    /// For a whole reading that begins now.
    pub(super) fn of_all(timeout: Duration) -> Self {
        Self { timeout, until: Some(clock::now() + timeout) }
    }

    /// For each of Kafka's answers.
    pub(super) const fn of_each_answer(timeout: Duration) -> Self {
        Self { timeout, until: None }
    }

    /// When an answer is late that is asked for now.
    pub(super) fn due(self) -> Time {
        self.until.unwrap_or_else(|| clock::now() + self.timeout)
    }
}

/// The error that these servers have not answered in time ([`ExitStatus::UNKNOWN`]), with the last known reason.
pub(super) fn no_answer(Access { bootstrap, .. }: &Access, timeout: Duration, why: Option<&str>) -> Error {
    let within = format!("no answer within {}", spoken(timeout));
    let silent = |broker: &str| format!("{broker}: {within}; on a slow link a longer --timeout helps");
    let line = match why {
        None => silent(bootstrap),
        Some(why) => why.strip_suffix(": no answer").map_or_else(|| format!("{why} ({within})"), silent),
    };
    with_status(ExitStatus::UNKNOWN, line)
}

/// What was read; and for a record of one of the elections its place, and what the law says of the record.
pub(super) type News = (KafkaEvent, Option<(Place, (Verdict, Vec<Change>))>);

/// One reading of some partitions of a topic. What is read anew is another one, with a channel of its own.
pub(super) struct Reading {
    source: Source,
    /// The bounds of the partitions' logs when the reading began, once they are known.
    bounds: BTreeMap<i32, Option<LogBounds>>,
    /// What was read.
    pub(super) topic: Topic,
    /// The last reason why no broker answered.
    trouble: Option<String>,
    /// Whether that has not ended.
    is_down: bool,
    /// Is told each outage and its end, and each problem that does not stop the reading.
    tell: fn(&str),
    /// The number of the topic's partitions. It is reported if more than one role was requested.
    partitions: Option<i32>,
    reader: Reader,
    /// Whether an answer is awaited that was asked for before it was due.
    is_asked: bool,
    events: Receiver<KafkaEvent>,
}

/// Runs the future in a runtime of its own.
///
/// # Errors
/// The future's error; or the process has no free descriptor.
pub(super) fn run<T>(waits: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.context("events can't be waited for")?.block_on(waits)
}

/// What is waited for, or `None` if it does not come before `due`, if that is limited. While the machine sleeps, the wait stands still.
pub(super) async fn before<T>(due: Option<Time>, waits: impl Future<Output = T>) -> Option<T> {
    match due {
        // What there is already comes even if the time is over, however much of it there is.
        Some(due) => timeout(due.since(clock::now()), unconstrained(waits)).await.ok(),
        None => Some(waits.await),
    }
}

/// The last changes of one or several elections with their times, in milliseconds since 1970; the oldest one comes first.
pub(super) type Changes = VecDeque<(u64, Box<str>)>;

/// Adds a change in the order of time: those of the past may be read later.
pub(super) fn note(changes: &mut Changes, wall_ms: u64, sentence: String) {
    let at = changes.partition_point(|(ms, _)| *ms <= wall_ms);
    if changes.len() < MOST_CHANGES {
        // Most elections change seldom.
        changes.reserve_exact(1);
        changes.insert(at, (wall_ms, sentence.into()));
    } else if let Some(before) = at.checked_sub(1) {
        changes.pop_front();
        changes.insert(before, (wall_ms, sentence.into()));
    }
}

/// The time by both clocks.
pub(super) fn read_at() -> ReadAt {
    ReadAt { now: clock::now(), wall_ms: clock::wall_ms() }
}

impl Reading {
    /// Asks for the bounds of these partitions' logs. Must be called within a runtime. Elections of the group are read that are
    /// [expected](Topic::expect).
    ///
    /// # Errors
    /// The process has no free thread or descriptor.
    pub(super) fn start(
        access: &Access,
        elections: Elections,
        partitions: BTreeSet<i32>,
        if_missing: IfMissing,
    ) -> Result<Self> {
        let (topic, bounds) = (Topic::of_group(&elections.group), partitions.iter().map(|number| (*number, None)));
        let (bounds, of_elections) = (bounds.collect(), Source::new(access.clone(), elections, if_missing));
        let source = Source { only: Some(partitions), is_for_display: true, ..of_elections };
        let (sender, events) = channel(WAITING);
        let reader = Reader::start(source.clone(), 0, sender).context("no thread for the reader")?;
        Ok(Self {
            source,
            bounds,
            topic,
            trouble: None,
            is_down: false,
            tell: |_| {},
            partitions: None,
            reader,
            is_asked: false,
            events,
        })
    }

    /// Asks for the bounds of the log of a topic of facts. If there is no such topic, it is empty.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub(super) fn of_facts(access: &Access, topic: &str) -> Result<Self> {
        let of_topic = Elections { group: String::new(), topic: topic.to_owned(), roles: 0..1, names: Arc::default() };
        Self::start(access, of_topic, BTreeSet::from([0]), IfMissing::CountAsEmpty)
    }

    /// The same, which tells its outages and problems.
    pub(super) fn telling(self, tell: fn(&str)) -> Self {
        Self { tell, ..self }
    }

    /// Whether the embedded broker is read.
    pub(super) fn is_embedded(&self) -> bool {
        self.source.access.embedded.is_some()
    }

    /// Why no broker answers now.
    pub(super) fn outage(&self) -> Option<&str> {
        self.trouble.as_deref().filter(|_| self.is_down)
    }

    /// Asks for the logs' ends now, not only when that is due.
    pub(super) fn ask(&mut self) {
        if !mem::replace(&mut self.is_asked, true) {
            self.reader.look_for_end();
        }
    }

    /// Reads a partition with such a log from this offset.
    fn read_from(&mut self, partition: i32, bounds: LogBounds, offset: Offset) {
        self.topic.begin(read_at(), partition, bounds, offset);
        self.reader.read_from(partition, offset);
    }

    /// Waits for the bounds of all logs.
    ///
    /// # Errors
    /// Kafka refuses permanently, the log can't be read, or there is no answer in time ([`ExitStatus::UNKNOWN`]).
    pub(super) async fn bounds(&mut self, limit: Limit) -> Result<BTreeMap<i32, LogBounds>> {
        loop {
            if let Some(bounds) = self.bounds.iter().map(|(number, bounds)| Some((*number, (*bounds)?))).collect() {
                return Ok(bounds);
            }
            self.next_within(limit).await?;
        }
    }

    /// What is read next before the end that the logs had when the reading began; `None` at the end.
    ///
    /// # Errors
    /// Kafka refuses permanently, the log can't be read, or there is no answer in time ([`ExitStatus::UNKNOWN`]).
    async fn next_before_end(&mut self, limit: Limit) -> Result<Option<News>> {
        if self.topic.is_read() { Ok(None) } else { self.next_within(limit).await.map(Some) }
    }

    async fn next_within(&mut self, limit: Limit) -> Result<News> {
        let news = self.next(Some(limit.due())).await?;
        news.ok_or_else(|| no_answer(&self.source.access, limit.timeout, self.trouble.as_deref()))
    }

    /// Passes on the records of one partition from where `from` chooses up to the end of its log.
    ///
    /// # Errors
    /// Kafka refuses permanently, the log can't be read, or there is no answer in time ([`ExitStatus::UNKNOWN`]).
    pub(super) async fn read_to_end(
        &mut self,
        limit: Limit,
        from: impl Fn(&LogBounds) -> Offset,
        mut handle_record: impl FnMut(ReadAt, LogRecord),
    ) -> Result<LogBounds> {
        let bounds = self.bounds(limit).await?.into_iter().next();
        let (partition, bounds) = bounds.ok_or_else(|| anyhow!("no partition is read"))?;
        self.read_from(partition, bounds, from(&bounds));
        while let Some((event, _)) = self.next_before_end(limit).await? {
            if let KafkaEvent::ReadForDisplay { record, .. } = event {
                handle_record(read_at(), record);
            }
        }
        Ok(bounds)
    }

    /// What is read next; `None` if nothing is before `due`, if that is limited.
    ///
    /// # Errors
    ///
    /// Kafka refuses permanently, or the log can't be read or was cut.
    async fn next(&mut self, due: Option<Time>) -> Result<Option<News>> {
        let Some(event) = before(due, self.events.recv()).await else { return Ok(None) };
        let event = event.ok_or_else(gone)?;
        let mut judged = None;
        if let KafkaEvent::ReadForDisplay { partition, record, .. } = &event {
            judged = self.topic.read(read_at(), *partition, record);
        } else if let KafkaEvent::Partitions(partitions) = event {
            self.partitions = Some(partitions);
        } else if let KafkaEvent::Process(event) = &event {
            self.note_process(event)?;
        } else if let KafkaEvent::Reading { partition, event, .. } = &event {
            self.note_partition(*partition, event)?;
        }
        Ok(Some((event, judged)))
    }

    fn note_partition(&mut self, partition: i32, event: &Event) -> Result<()> {
        let noted = if let Event::Answered { asked, start, end } = *event {
            let bounds = LogBounds { asked, start, end };
            self.is_asked = false;
            self.bounds.entry(partition).or_default().get_or_insert(bounds);
            self.topic.answered(clock::now(), partition, bounds)
        } else if let Event::TopicIdentified { asked, .. } = event {
            self.topic.missing(partition, *asked)
        } else if let Event::ReachedEnd { next } = event {
            self.topic.read_up_to(partition, *next);
            Ok(())
        } else if let Event::Undecodable { offset, error } = event {
            let Some(error) = error else { return Ok(()) };
            bail!("the records from offset {offset} on can't be decoded: {error}");
        } else {
            Err(HistoryCut)
        };
        let topic = &self.source.elections.topic;
        noted.map_err(|HistoryCut| {
            anyhow!("topic {topic}: its history was cut or made anew meanwhile; run the command again")
        })
    }

    /// A reader alone reports no other events.
    fn note_process(&mut self, event: &SessionEvent) -> Result<()> {
        if let SessionEvent::Outage { error: Some(error) } = event {
            if self.is_embedded() {
                bail!("the embedded broker is gone, and its journal with it");
            }
            (self.tell)(&kafka_is_away(error));
            (self.is_down, self.trouble) = (true, Some(error.clone()));
        } else if let SessionEvent::Refused { error, .. } = event {
            bail!(error.clone());
        } else if let SessionEvent::Warning(warning) = event {
            (self.tell)(&format!("warning: {warning}"));
        } else if matches!(event, SessionEvent::Outage { .. }) && mem::take(&mut self.is_down) {
            // A first answer without an outage before it is not told.
            (self.tell)("Kafka answers again");
        }
        Ok(())
    }
}

/// All topics of some names, which are read for as long as the command runs.
pub(super) struct Following {
    reader: TopicsReader,
    events: Receiver<TopicsEvent>,
    access: Access,
    /// When the next look at what no record shows is due; `None` while that is looked at.
    tick: Option<Time>,
}

impl Following {
    /// Must be called within a runtime. Of the topics that are `named`, which are read too, it is told that this user may not see them.
    ///
    /// # Errors
    ///
    /// The process has no free thread or descriptor.
    pub(super) fn start<'a>(
        access: &Access,
        named: impl IntoIterator<Item = &'a str>,
        is_meant: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let (sender, events) = channel(WAITING_OF_ALL);
        let reader = TopicsReader::start(access, named.into_iter().map(Box::from).collect(), is_meant, sender)?;
        Ok(Self { reader, events, access: access.clone(), tick: None })
    }

    /// The next events; none at each second, when what no record shows is to be looked at.
    ///
    /// # Errors
    ///
    /// The reader has failed.
    pub(super) async fn next(&mut self) -> Result<Vec<TopicsEvent>> {
        let tick = *self.tick.get_or_insert_with(|| clock::now() + TICK);
        let events = self.next_until(tick).await?;
        self.tick = self.tick.filter(|_| !events.is_empty());
        Ok(events)
    }

    /// The next events; none at this time.
    ///
    /// # Errors
    ///
    /// The reader has failed.
    pub(super) async fn next_until(&mut self, due: Time) -> Result<Vec<TopicsEvent>> {
        let mut events = Vec::new();
        // What is due does not wait behind events that come without end.
        let is_due = due <= clock::now();
        if !is_due && before(Some(due), self.events.recv_many(&mut events, TOGETHER)).await == Some(0) {
            return Err(gone());
        }
        Ok(events)
    }

    /// Reads all topics up to the ends that their logs have now, and for a moment longer if the timestamps of this group's elections, or of all, are
    /// not reliable. Returns why topics or partitions can't be read.
    ///
    /// # Errors
    ///
    /// Kafka refuses permanently, or there is no answer in time ([`ExitStatus::UNKNOWN`]).
    pub(super) async fn read_to_ends(
        &mut self,
        topics: &mut Topics,
        group: Option<&str>,
        limit: Limit,
    ) -> Result<Vec<String>> {
        let (mut due, mut was_answered) = (limit.due(), false);
        while !topics.is_complete() {
            let events = self.next_until(due).await?;
            if events.is_empty() {
                break;
            }
            let has_answer = events.iter().any(|event| matches!(event, TopicsEvent::Answered { .. }));
            let is_first_answer = has_answer && !mem::replace(&mut was_answered, true);
            // What is written on behind the ends is no progress.
            let is_progress = |event: &TopicsEvent| {
                let TopicsEvent::Read { topic, partition, .. } = event else { return false };
                topics.topic(topic).is_some_and(|read| !read.is_read(*partition))
            };
            if is_first_answer || events.iter().any(is_progress) {
                due = limit.due();
            }
            self.handle_all(topics, events)?;
        }
        if !was_answered {
            return Err(no_answer(&self.access, limit.timeout, topics.outage().map(|(_, why)| why)));
        }
        topics.note_latest();
        if let Some(doubt) = observation::doubt(observers(topics, group), self.access.embedded.is_some()) {
            let until = limit.due().min(clock::now() + doubt);
            while observers(topics, group).any(|observer| observer.doubts_timestamps(read_at()).is_some()) {
                let events = self.next_until(until).await?;
                if events.is_empty() {
                    break;
                }
                self.handle_all(topics, events)?;
                topics.note_latest();
            }
        }
        let within = spoken(limit.timeout);
        let unread = topics.topics().flat_map(|(name, read)| {
            let late =
                (!read.is_live()).then(|| format!("topic \"{name}\": it is not read to its end within {within}"));
            read.troubles().map(str::to_owned).chain(late)
        });
        Ok(unread.collect())
    }

    /// Hands over these events.
    ///
    /// # Errors
    ///
    /// Kafka refuses permanently.
    pub(super) fn handle_all(&self, topics: &mut Topics, events: Vec<TopicsEvent>) -> Result<()> {
        for event in events {
            if let TopicsEvent::Read { reading, topic, partition, record } = event {
                drop(topics.read(read_at(), (reading, &topic), partition, &record));
            } else {
                pass_on(topics, read_at(), event)?;
            }
        }
        self.perform(topics);
        Ok(())
    }

    /// Does what `topics` wants to be done.
    pub(super) fn perform(&self, topics: &mut Topics) {
        while let Some(action) = topics.poll_action() {
            self.reader.perform(action);
        }
    }
}

/// The topics that can't be read, and why.
pub(super) fn unread(topics: &Topics) -> impl Iterator<Item = (&str, &str)> {
    topics.topics().filter_map(|(name, read)| Some((name, read.trouble(None)?)))
}

/// All elections, each with its topic and that topic's name, in the order of topics, groups and roles.
pub(super) fn elections(topics: &Topics) -> impl Iterator<Item = (&str, &ReadTopic, &Election)> {
    topics.topics().flat_map(|(name, read)| read.topic().elections().map(move |found| (name, read, found)))
}

/// Of this group's elections, or of all.
pub(super) fn observers<'a>(topics: &'a Topics, group: Option<&str>) -> impl Iterator<Item = &'a Observer> {
    let is_meant = move |found: &&Election| group.is_none_or(|group| *found.place().group == *group);
    elections(topics).map(|(.., found)| found).filter(is_meant).map(Election::observer)
}

/// The topic of an election, and its place there.
pub(super) type Key = (Box<str>, Place);

/// The sentences about leaders' silences, which no record reports, and which were not told before.
pub(super) fn untold_silences(topics: &mut Topics, at: ReadAt) -> Vec<(Key, String)> {
    let elections = topics.topics_mut().flat_map(|(name, topic)| topic.elections_mut().map(move |found| (name, found)));
    let silent = elections.filter_map(|(name, found)| {
        let sentence = sentence(found.untold_silence(at)?);
        Some(((name.into(), found.place().clone()), sentence))
    });
    silent.collect()
}

/// Passes on an event that is no record. Returns what users are told of it: a warning, or that Kafka does not answer, or does again.
///
/// # Errors
///
/// Kafka refuses permanently.
pub(super) fn pass_on(topics: &mut Topics, at: ReadAt, event: TopicsEvent) -> Result<Option<String>> {
    let was_away = topics.outage().is_some();
    Ok(match event {
        TopicsEvent::Answered { asked, topics: answer } => {
            topics.answered(at, asked, answer);
            was_away.then(|| "Kafka answers again".to_owned())
        }
        TopicsEvent::Down(why) => {
            topics.no_answer(at.now, &why);
            (!was_away).then(|| kafka_is_away(&why))
        }
        TopicsEvent::PastBegins { reading, from } => {
            topics.past_begins(at, reading, &from);
            None
        }
        TopicsEvent::Read { .. } => None,
        TopicsEvent::Refused(error) => bail!(error),
        TopicsEvent::Warning(warning) => Some(format!("warning: {warning}")),
    })
}

/// Warns of each topic that can't be read, and of what else is missing (`more`), once for as long as that lasts. `said` is what was said before.
pub(super) fn warn_of_unread(said: &mut BTreeSet<String>, topics: &Topics, more: Option<String>, say: impl Fn(&str)) {
    let lacks = unread(topics).map(|(_, why)| format!("{why}; the others are shown")).chain(more).collect();
    let before = mem::replace(said, lacks);
    for what in said.difference(&before) {
        say(&format!("warning: {what}"));
    }
}

fn gone() -> Error {
    anyhow!("the reader's threads are gone")
}
