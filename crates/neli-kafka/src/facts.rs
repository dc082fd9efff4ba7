//! Reads the topic of facts. Each reading has a consumer of its own, which joins no group and ends with the reading. A candidate reads the
//! topic at its start, at each lead, and seldom otherwise, so an open connection would cost more than it saves. The facts that were read
//! are kept, and the next reading continues where the last one stopped.

use std::cell::Cell;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use neli_proto::fact::{Facts, FactsEvent, Place, TOPIC_SUFFIX, record_key};
use neli_proto::topic::{JudgedTopic, TopicIdentity, judge_topic_of_facts, warning};
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::metadata::{MetadataPartition, MetadataTopic};
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::context::explain;
use crate::election::{ElectionId, Elections};
use crate::error_class::{ErrorClass, code_of, plain};
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::{AdminError, NewTopic, Variation, bounds, describe_topic, topic_identity};
use crate::partition_consumer::PartitionConsumer;
use crate::questions::{AnswerLimit, LOOK_AGAIN, REPLACED_AFTER, RETRY};
use crate::reading::{IfMissing, Source, offset_in};
use crate::threads;
use crate::topic::{self, Presence, TopicError};

/// A partition may have no leader that answers for this long: for a moment after its topic was created or its leader moved, that is normal.
const LED_WITHIN: Duration = Duration::from_secs(2);
/// A reading that delivers nothing for this long starts again.
const NO_RECORD: Duration = Duration::from_secs(5);
/// The settings that could not be read are asked for again after this time without a reading.
const JUDGED_AGAIN_AFTER: Duration = Duration::from_secs(20);
/// The time between two reports of a reading's progress.
const PROGRESS: Duration = Duration::from_millis(100);
/// A log with at most this many offsets is read from the start each time: that takes no longer than asking for the topic's id.
const SHORT: i64 = 100;
/// librdkafka's property that limits the bytes of a partition in an answer, and its value for a slow link: on one with 8 kB/s such an answer is
/// complete before librdkafka closes the connection (`socket.timeout.ms`).
const ANSWER_BYTES: &str = "fetch.message.max.bytes";
const SHORT_ANSWER: &str = "16384";
/// The longest time after which the thread of a dropped reading notices the drop.
const LINGER: Duration = Duration::from_millis(200);

/// The topic of an election's facts, whose partition is 0; and where those of one key, or of the election's windows, are in it.
#[derive(Clone, Debug)]
pub struct FactsTopic {
    /// Its name.
    pub name: String,
    /// The Kafka keys of the records.
    keys: [(String, Place); 3],
}

impl FactsTopic {
    /// Of this key; `None` for the election's windows.
    pub fn of(election: &ElectionId, key: Option<&str>) -> Self {
        let keys = Place::ALL.map(|place| (record_key(&election.key(), key, place), place));
        Self { name: format!("{}{TOPIC_SUFFIX}", election.topic), keys }
    }

    /// The Kafka key of the records at this place.
    pub fn key_at(&self, wanted: Place) -> &str {
        self.keys.iter().find(|(_, place)| *place == wanted).map_or("", |(key, _)| key)
    }

    /// Adds the next record of the topic to the facts, if it is one of theirs.
    pub fn take(&self, facts: &mut Facts, key: Option<&[u8]>, value: Option<&[u8]>) {
        if let Some((_, place)) = self.keys.iter().find(|(own, _)| key == Some(own.as_bytes())) {
            facts.take(*place, value);
        }
    }
}

/// How long the topic of facts keeps its records, if this process creates it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FactsSettings {
    /// `retention.ms`: how long each fact is kept.
    pub retention: Duration,
    /// `min.compaction.lag.ms`: how long a fact is kept that a later one replaces. The windows of an election share a Kafka key. If a
    /// record of an earlier window's run reaches the log late, it replaces the record of the newest run's success, and only a reader that
    /// finds both records can tell which one counts. So both are kept for as long as the window lasts.
    pub compaction_lag: Duration,
    /// The length of a window; `None` for a key. A topic that exists must have a `min.compaction.lag.ms` of that.
    pub window: Option<Duration>,
}

/// Starts a thread that reads the topic of facts; its events go to `events`. For each number that it is sent it reads up to the log's present end,
/// and [`FactsEvent::Read`] follows with the number; a reading that is under way continues with it, so that an answer in flight is not lost.
/// `reads_at_once`: the topic is also read before anybody asks for it. The thread ends when the sender is dropped, or when Kafka has refused, which
/// it reports.
///
/// # Errors
///
/// The thread can't be started.
pub(crate) fn start_reader(
    source: Source,
    topic: FactsTopic,
    settings: FactsSettings,
    events: Sender<KafkaEvent>,
    reads_at_once: bool,
) -> Result<mpsc::Sender<u32>, std::io::Error> {
    let (sender, orders) = mpsc::channel();
    let (id, is_judged, progress) = (Cell::default(), false, ReadFacts::default());
    let reading = Thread { source, topic, settings, events, orders, id, is_judged, is_unread: false, progress };
    threads::start("neli-facts", move || reading.run(reads_at_once))?;
    Ok(sender)
}

struct Thread {
    /// The journal to whose elections the topic belongs.
    source: Source,
    topic: FactsTopic,
    /// The settings for creating the topic.
    settings: FactsSettings,
    events: Sender<KafkaEvent>,
    /// The numbers of the readings.
    orders: mpsc::Receiver<u32>,
    /// The number of the present reading; none if nobody has asked for it. If it changes while the thread reads, the thread must ask for the
    /// log's end once more.
    id: Cell<Option<u32>>,
    /// The topic's settings, and the rights to it, were judged.
    is_judged: bool,
    /// They were judged without the settings, which are asked for again.
    is_unread: bool,
    progress: ReadFacts,
}

impl Thread {
    fn run(mut self, reads_at_once: bool) {
        let mut waits = !reads_at_once;
        loop {
            if mem::replace(&mut waits, true) {
                // The question for the settings may take long, so it is asked when nobody waits for facts.
                let limit = if self.is_unread { JUDGED_AGAIN_AFTER } else { Duration::MAX };
                let order = self.orders.recv_timeout(limit);
                if order == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
                self.is_judged &= order.is_ok();
                self.id.set(order.ok());
            }
            if let Err(error) = self.read_to_end() {
                return self.send(SessionEvent::Refused { role: None, error });
            }
        }
    }

    /// Reads, with a consumer of its own, until the end was reached.
    ///
    /// # Errors
    ///
    /// Kafka refuses for good: one line.
    fn read_to_end(&mut self) -> Result<(), String> {
        let mut limit = AnswerLimit::OF_READER;
        let begun = clock::now();
        let (mut consumer, mut made) = (None, begun);
        while !self.is_over() {
            let connected = consumer.take().map_or_else(|| self.connect(), Ok);
            let id = self.id.get();
            match connected.and_then(|connected| self.read(consumer.insert(connected), &mut limit)) {
                // With a later number, a later end must be asked for.
                Ok(None) if self.is_over() || self.id.get() != id => {}
                Ok(None) => {
                    // Later answers are small, so the usual limit does for them.
                    self.progress.comes_slowly = false;
                    let (end, facts) = (self.progress.end, Box::new(self.progress.facts.clone()));
                    if let Some(id) = id {
                        self.send(SessionEvent::Facts { id, event: FactsEvent::Read { id, end, facts } });
                    }
                    return Ok(());
                }
                Ok(Some(why)) => {
                    self.progress.comes_slowly = true;
                    consumer = None;
                    self.report_trouble(&why);
                }
                Err(TopicError::Refused(error)) => return Err(error),
                // The broker that leads the partition of a new topic may learn of it after the others.
                Err(TopicError::Transient(AdminError { code, .. }))
                    if clock::now().since(begun) < LED_WITHIN && is_unknown_or_moving(code) =>
                {
                    thread::park_timeout(LOOK_AGAIN);
                }
                Err(TopicError::Transient(error)) => {
                    self.report_trouble(&error.text);
                    thread::park_timeout(RETRY);
                    let now = clock::now();
                    if now.since(made) >= REPLACED_AFTER {
                        (consumer, made) = (None, now);
                    }
                }
            }
        }
        Ok(())
    }

    fn connect(&self) -> Result<PartitionConsumer, TopicError> {
        let mut config = self.source.access.reader();
        if self.progress.comes_slowly {
            config.set(ANSWER_BYTES, SHORT_ANSWER);
        }
        let made = PartitionConsumer::new(&config, &self.source.access, Some(&self.topic.name));
        // The journal's reader is refused if the configuration is wrong (`Reader::start`).
        made.map_err(|error| TopicError::Transient(AdminError { code: code_of(&error), text: explain(&error) }))
    }

    fn report_trouble(&self, error: &str) {
        let error = format!("topic \"{}\": {error}", self.topic.name).into();
        self.report(FactsEvent::Unread { error });
    }

    /// Whether nobody needs the reading any more. Takes up a later number, so only a reading may ask: nothing else goes on with that number.
    fn is_over(&self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(id) => self.id.set(Some(id)),
                Err(end) => return end == TryRecvError::Disconnected || self.events.is_closed(),
            }
        }
    }

    fn send(&self, event: impl Into<KafkaEvent>) {
        // An error means that the receiver is gone.
        let _ = self.events.blocking_send(event.into());
    }

    fn report(&self, event: FactsEvent) {
        if !self.is_over()
            && let Some(id) = self.id.get()
        {
            self.send(SessionEvent::Facts { id, event });
        }
    }

    /// Asks for the first and the next offset of the topic's log, and reads up to there. Begins where an earlier reading of the same topic
    /// has stopped. Returns why no record has arrived for too long, if so.
    fn read(&mut self, consumer: &PartitionConsumer, limit: &mut AnswerLimit) -> Result<Option<String>, TopicError> {
        let context = consumer.context();
        let mut asked = clock::now();
        let mut bounds = self.bounds(consumer, limit);
        if matches!(bounds.map_err(ErrorClass::from), Err(ErrorClass::UnknownPartition | ErrorClass::UnknownTopic)) {
            self.find_topic(consumer, limit)?;
            asked = clock::now();
            bounds = self.bounds(consumer, limit);
        }
        let (start, end) = bounds.map_err(|code| {
            if matches!(code.into(), ErrorClass::Connection | ErrorClass::NoBroker) {
                limit.was_too_short();
                context.rebootstrap.unanswered(consumer.consumer().client());
            }
            self.failure(code, context.trouble_behind(code))
        })?;
        limit.answered(asked);
        self.source.access.admit(consumer.consumer().client()).map_err(TopicError::Refused)?;
        context.rebootstrap.answered();
        self.judge(consumer, limit)?;
        let was_known = matches!(self.progress.topic, TopicIdentity::Id { .. });
        // The topic's id is asked for before the first record is read, because the facts of these records may be kept.
        let is_asked_for = was_known || end - start > SHORT;
        let topic = if is_asked_for { self.identity(consumer, limit) } else { Ok(TopicIdentity::Unnamed) };
        let topic = match topic {
            Err(code) if was_known => return Err(self.failure(code, context.trouble_behind(code))),
            topic => topic.unwrap_or_default(),
        };
        self.progress.continue_in(topic, start, end);
        self.read_between(consumer, start, end)
    }

    /// The first and the next offset of the topic's log.
    fn bounds(&self, consumer: &PartitionConsumer, limit: &mut AnswerLimit) -> Result<(i64, i64), RDKafkaErrorCode> {
        bounds(consumer.consumer().client(), &self.topic.name, 0, limit.ask())
    }

    fn read_between(
        &mut self,
        consumer: &PartitionConsumer,
        start: i64,
        end: i64,
    ) -> Result<Option<String>, TopicError> {
        let context = consumer.context();
        let mut next = self.progress.next;
        if next < end {
            consumer.read_from(&self.topic.name, 0, next).map_err(|code| self.failure(code, None))?;
        }
        let mut handed_over = clock::now();
        let mut progress_at = handed_over;
        while next < end && !self.is_over() {
            match consumer.consumer().poll(LINGER) {
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    handed_over = clock::now();
                    self.progress.next = next;
                    self.topic.take(&mut self.progress.facts, message.key(), message.payload());
                }
                // A transaction's marker may stand after the last record.
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    let words = context.error_text(RDKafkaErrorCode::PartitionEOF);
                    next = next.max(offset_in(&words).unwrap_or(next));
                }
                Some(Err(error)) => {
                    let code = code_of(&error);
                    let class = ErrorClass::from(code);
                    if !matches!(class, ErrorClass::Connection | ErrorClass::Moving | ErrorClass::NoBroker) {
                        consumer.stop();
                        if class == ErrorClass::Cut {
                            self.progress = ReadFacts::default();
                        }
                        return Err(self.failure(code, Some(context.error_text(code))));
                    }
                }
                None => {}
            }
            if clock::now().since(progress_at) >= PROGRESS {
                progress_at = clock::now();
                self.report(FactsEvent::Reading { progress: self.shown_progress(next - start, end - start).into() });
            }
            if clock::now().since(handed_over) >= NO_RECORD {
                consumer.stop();
                return Ok(Some(context.trouble().unwrap_or_else(|| "no record is handed over".to_owned())));
            }
        }
        consumer.stop();
        Ok(None)
    }

    /// The line about the reading's progress, and how to shorten the reading.
    fn shown_progress(&self, read: i64, all: i64) -> String {
        format!(
            "topic \"{}\": {read} of {all} offsets were read in time; the next lead continues there; a longer --lease gives more \
             time, and segment.ms=3600000 has Kafka compact the topic sooner",
            self.topic.name
        )
    }

    fn failure(&self, code: RDKafkaErrorCode, trouble: Option<String>) -> TopicError {
        if ErrorClass::from(code) == ErrorClass::TopicForbidden {
            return TopicError::Refused(topic::may_not_read(&self.topic.name));
        }
        TopicError::Transient(AdminError { code, text: trouble.unwrap_or_else(|| plain(code)) })
    }
}

/// Whether the partition's leader is not ready, or has changed.
fn is_unknown_or_moving(code: RDKafkaErrorCode) -> bool {
    matches!(code.into(), ErrorClass::Moving | ErrorClass::UnknownPartition | ErrorClass::UnknownTopic)
}

// ---- how far the topic of facts was read. The next reading continues there, so that a large topic is read only once ----

/// How far the topic was read, and the facts that were found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct ReadFacts {
    /// The topic that was read; if its id is unknown, the next reading begins at the log's start.
    topic: TopicIdentity,
    /// The next offset to read, and the log's end by the last answer.
    next: i64,
    end: i64,
    /// The key's facts below that offset.
    facts: Facts,
    /// No record has arrived for long: on a slow link librdkafka closes the connection each time before a large answer is complete.
    comes_slowly: bool,
}

impl ReadFacts {
    /// Continues if the topic, whose log is from `start` to `end`, is the one that was read before. Otherwise begins at `start`.
    fn continue_in(&mut self, topic: TopicIdentity, start: i64, end: i64) {
        let is_same = matches!(topic, TopicIdentity::Id { .. }) && self.topic == topic && self.next <= end;
        if !is_same {
            (self.topic, self.next, self.facts) = (topic, start, Facts::default());
        }
        (self.next, self.end) = (self.next.max(start), end);
    }
}

// ---- the topic of facts itself: finds it, creates it if it is missing, identifies it, and judges its settings ----

/// `segment.ms`.
const SEGMENT: Duration = Duration::from_secs(60 * 60);

/// The topic of facts to be created. Each lead reads the whole topic, so it must stay short. With Kafka's own settings, compaction leaves
/// out the active segment for up to a week (`segment.ms`), and waits until half of the log can be compacted.
pub fn facts_to_create(name: &str, kept: FactsSettings, replicas: usize) -> NewTopic<'_> {
    let settings = vec![
        ("cleanup.policy", "compact,delete".to_owned()),
        ("message.timestamp.type", "LogAppendTime".to_owned()),
        ("min.cleanable.dirty.ratio", "0.1".to_owned()),
        ("min.compaction.lag.ms", kept.compaction_lag.as_millis().to_string()),
        ("retention.bytes", "-1".to_owned()),
        ("retention.ms", kept.retention.as_millis().to_string()),
        ("segment.ms", SEGMENT.as_millis().to_string()),
        ("unclean.leader.election.enable", "false".to_owned()),
    ];
    topic::replicated(NewTopic { name, partitions: 1, replicas: None, settings }, replicas)
}

impl Thread {
    /// Judges once the rights to the topic, and its settings, and warns of risks. A right that is missing would otherwise be noticed by the first
    /// record that is read or written, perhaps by a candidate that leads already. The embedded broker's topic has no settings.
    fn judge(&mut self, consumer: &PartitionConsumer, limit: &mut AnswerLimit) -> Result<(), TopicError> {
        if self.is_judged || self.source.access.embedded.is_some() {
            return Ok(());
        }
        let (client, name) = (consumer.consumer().client(), &self.topic.name);
        let facts = topic::facts(client, &self.place(), limit)?;
        let leader = Some(facts.layout.leader);
        let described = describe_topic(client, name, leader, limit.limit(), Variation::IncludeRights);
        if let Some(rights) = described.ok().and_then(|described| described.rights) {
            if !rights.read {
                return Err(TopicError::Refused(topic::may_not_read(name)));
            }
            if !rights.write {
                return Err(TopicError::Refused(topic::may_not_write(name)));
            }
        }
        self.is_judged = true;
        let was_unread = mem::replace(&mut self.is_unread, facts.are_incomplete());
        let place = JudgedTopic { bootstrap: &self.source.access.bootstrap, topic: name };
        let risks = judge_topic_of_facts(&facts, (self.settings.retention, self.settings.window), place)
            .map_err(|refusal| TopicError::Refused(format!("topic {name:?}: {refusal}")))?;
        let is_told = was_unread && self.is_unread;
        if !is_told && !risks.is_empty() {
            self.send(SessionEvent::Warning(format!("topic {name:?}: {}", warning(&risks))));
        }
        Ok(())
    }

    /// Waits until the topic exists. Creates it if that is allowed.
    fn find_topic(&self, consumer: &PartitionConsumer, limit: &mut AnswerLimit) -> Result<(), TopicError> {
        let client = consumer.consumer().client();
        let place = self.place();
        let begun = clock::now();
        let mut created_with = None;
        while !self.is_over() {
            let brokers = match topic::look(client, &place, limit.ask())? {
                Presence::There { layout, .. } => {
                    if let Some(brokers) = created_with {
                        let (topic, replicas) = (place.topic, layout.fewest_replicas());
                        self.send(SessionEvent::Created { topic, replicas, brokers });
                        // Whoever has asked: facts may have been lost.
                        let id = self.id.get().unwrap_or_default();
                        self.send(SessionEvent::Facts { id, event: FactsEvent::Created });
                    }
                    return Ok(());
                }
                Presence::Coming if clock::now().since(begun) < LED_WITHIN => {
                    thread::park_timeout(LOOK_AGAIN);
                    continue;
                }
                Presence::Coming => {
                    let text = "its partition has no leader; start the brokers that hold it".to_owned();
                    let code = RDKafkaErrorCode::LeaderNotAvailable;
                    return Err(TopicError::Transient(AdminError { code, text }));
                }
                Presence::Missing { brokers } => brokers,
            };
            if self.source.if_missing != IfMissing::Create {
                let refusal = topic::must_be_created(&place.topic, self.source.access.words);
                if topic::may_come_back(&self.source.access, begun) {
                    self.report(FactsEvent::Unread { error: refusal.into() });
                    thread::park_timeout(RETRY);
                    continue;
                }
                return Err(TopicError::Refused(refusal));
            }
            // The topic gets as many replicas as the journal has.
            let replicas = match topic::look(client, &self.source.elections, limit.ask())? {
                Presence::There { layout, .. } => layout.fewest_replicas(),
                Presence::Coming | Presence::Missing { .. } => brokers.len().clamp(1, 3),
            };
            let wanted = facts_to_create(&place.topic, self.settings, replicas);
            match topic::create(client, &self.source.access, wanted, &brokers, limit.ask()) {
                // As for the journal's topic: it may be there.
                Err(TopicError::Refused(_)) if topic::may_come_back(&self.source.access, begun) => {
                    thread::park_timeout(RETRY);
                }
                is_created => created_with = is_created?.then_some(brokers.len()).or(created_with),
            }
        }
        // It was given up.
        Err(TopicError::Transient(RDKafkaErrorCode::Fail.into()))
    }

    /// The topic of facts, in the form of one election's topic.
    fn place(&self) -> Elections {
        Elections { topic: self.topic.name.clone(), roles: 0..1, ..self.source.elections.clone() }
    }

    /// The topic's identity, from the broker that leads its partition.
    fn identity(&self, consumer: &PartitionConsumer, limit: &AnswerLimit) -> Result<TopicIdentity, RDKafkaErrorCode> {
        let (client, name) = (consumer.consumer().client(), &self.topic.name);
        let metadata = client.fetch_metadata(Some(name), limit.limit()).map_err(|error| code_of(&error))?;
        let mut leaders = metadata.topics().iter().flat_map(MetadataTopic::partitions).map(MetadataPartition::leader);
        let leader = leaders.find(|leader| *leader >= 0).ok_or(RDKafkaErrorCode::LeaderNotAvailable)?;
        match topic_identity(client, name, Some(leader), limit.limit())? {
            TopicIdentity::Missing => Err(RDKafkaErrorCode::UnknownTopicOrPartition),
            identity @ (TopicIdentity::Id { .. } | TopicIdentity::Unnamed) => Ok(identity),
        }
    }
}

#[cfg(test)]
mod tests;
