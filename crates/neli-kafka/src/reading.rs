//! One reading, as the reader's two threads share it: what is read, how far, and whether a broker answers. And the work of the thread that polls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::record::LogRecord;
use neli_proto::time::Time;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Message, Timestamp};
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::clock;
use crate::election::Elections;
use crate::error_class::{ErrorClass, code_of};
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::AdminError;
use crate::partition_consumer::PartitionConsumer;
use crate::threads::locked;
use crate::topic::{self, may_not_describe, may_not_read};

/// What to read, and from which cluster.
#[derive(Clone)]
pub struct Source {
    /// The access to Kafka.
    pub access: Access,
    /// The elections whose records are read.
    pub elections: Elections,
    /// The topic's number of partitions, if an earlier reading has found it: it determines which election a record belongs to.
    pub partitions: Option<i32>,
    /// The partitions to read; `None` means all that have a role.
    pub only: Option<BTreeSet<i32>>,
    /// What to do if the topic is missing.
    pub if_missing: IfMissing,
    /// Whether an observer reads. Then each record of the topic is delivered with its key and value, and the refusal of a missing topic names
    /// the topics that exist.
    pub is_for_display: bool,
}

impl Source {
    /// The journals of these elections, for those who stand in them or follow them.
    pub const fn new(access: Access, elections: Elections, if_missing: IfMissing) -> Self {
        Self { access, elections, partitions: None, only: None, if_missing, is_for_display: false }
    }
}

/// What to do if a topic is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfMissing {
    /// Waits for it. Meanwhile the missing topic is reported as the reason why Kafka is down.
    Await,
    /// Counts it as an empty one. Only for a reading of partition 0.
    CountAsEmpty,
    /// Creates it.
    Create,
    /// Refuses.
    Refuse,
}

/// A refused connection counts only after this time: a host may have several addresses, which librdkafka tries in turn.
pub(super) const OTHER_ADDRESSES: Duration = Duration::from_secs(1);

/// The time between two warnings of one text that may occur many times a second.
pub(super) const WARN_AGAIN: Duration = Duration::from_secs(30);

/// An order to the asker.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// Something may have changed: ask soon, and look whether the reading is over.
    Ask,
    /// Read this partition from this offset on.
    ReadFrom { partition: i32, offset: i64 },
}

/// One reading, as its two threads share it.
pub(super) struct Reading {
    pub(super) number: u32,
    pub(super) source: Source,
    events: Sender<KafkaEvent>,
    pub(super) consumer: PartitionConsumer,
    orders: mpsc::Sender<Order>,
    stopped: Arc<AtomicBool>,
    /// The number of the topic's partitions, once it is known.
    partitions: OnceLock<i32>,
    /// For each partition that is read, the offset after the last record that was handed over.
    next: Mutex<BTreeMap<i32, i64>>,
    /// Whether a broker answers, or why none does, as it was reported last.
    reported: Mutex<Option<Result<(), String>>>,
    begun: Time,
    /// When a broker last delivered something, or that there is nothing.
    read_at: Mutex<Time>,
    refused: AtomicBool,
    /// What was warned of seldom, and when, not long ago.
    warned_of: Mutex<Vec<(String, Time)>>,
    /// The partitions of which nothing was handed over since a batch that can't be decoded: the next offset, and whether it was tried again.
    undecodable: Mutex<BTreeMap<i32, (i64, bool)>>,
    /// Whether the asker has an order to ask that it has not begun to execute.
    pub(super) is_asked_for: AtomicBool,
}

impl Reading {
    /// `stopped` is set when the receiver is gone; `orders` are received by the asker.
    ///
    /// # Errors
    ///
    /// librdkafka does not take the configuration.
    pub(super) fn new(
        source: Source,
        number: u32,
        events: Sender<KafkaEvent>,
        orders: mpsc::Sender<Order>,
        stopped: Arc<AtomicBool>,
    ) -> Result<Self, KafkaError> {
        // A process with a single role always uses partition 0.
        let known = if source.elections.roles.end == 1 { Some(1) } else { source.partitions };
        let partitions = known.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self {
            number,
            partitions,
            consumer: PartitionConsumer::new(&source.access.reader(), &source.access, Some(&source.elections.topic))?,
            source,
            events,
            orders,
            stopped,
            next: Mutex::default(),
            reported: Mutex::default(),
            begun: clock::now(),
            read_at: Mutex::new(Time::ZERO),
            refused: AtomicBool::new(false),
            warned_of: Mutex::default(),
            undecodable: Mutex::default(),
            is_asked_for: AtomicBool::new(false),
        })
    }

    /// Sends an event, unless this reading is over.
    pub(super) fn send(&self, event: impl Into<KafkaEvent>) {
        if !self.stopped.load(Ordering::Relaxed) {
            // Fails when the receiver is gone, which `is_over` shows.
            let _ = self.events.blocking_send(event.into());
        }
    }

    /// Warns of what may occur many times a second: every 30 s while it does.
    pub(super) fn warn_seldom(&self, warning: String) {
        let (now, mut warned_of) = (clock::now(), locked(&self.warned_of));
        warned_of.retain(|(_, at)| now.since(*at) < WARN_AGAIN);
        if warned_of.iter().any(|(text, _)| *text == warning) {
            return;
        }
        warned_of.push((warning.clone(), now));
        drop(warned_of);
        self.send(SessionEvent::Warning(warning));
    }

    /// Sends an event of this reading of a partition, for all its elections.
    pub(super) fn send_own(&self, partition: i32, event: Event) {
        self.send(KafkaEvent::Reading { reading: self.number, partition, event });
    }

    /// Handles the topic's number of partitions. With fewer than before, a reading of several roles can't continue, because each role would
    /// move to another partition. With more it continues; another question finds out whether it is the same topic.
    pub(super) fn found(&self, partitions: i32) {
        if self.source.elections.roles.end == 1 {
            return;
        }
        let known = *self.partitions.get_or_init(|| {
            self.send(KafkaEvent::Partitions(partitions));
            partitions
        });
        if partitions < known {
            self.refuse(topic::partitions_changed(&self.source.elections.topic, known, partitions));
        }
    }

    /// The number of the topic's partitions, once it is known.
    pub(super) fn partitions(&self) -> Option<i32> {
        self.partitions.get().copied()
    }

    /// The partitions to be read, once they are known.
    pub(super) fn to_be_read(&self) -> Option<BTreeSet<i32>> {
        let Source { elections, only, .. } = &self.source;
        let partitions = self.partitions()?;
        Some(only.clone().unwrap_or_else(|| elections.partitions_in_use(partitions)))
    }

    /// The offset after the last record of a partition that was handed over; `None` before the partition is read.
    pub(super) fn next(&self, partition: i32) -> Option<i64> {
        locked(&self.next).get(&partition).copied()
    }

    /// Notes that every record of a partition below `next` is being handed over.
    pub(super) fn handing_over_below(&self, partition: i32, next: i64) {
        locked(&self.next).insert(partition, next);
    }

    /// Whether the receiver of this reading is gone.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    /// A broker has answered. The first answer is reported too, because a previous reading may have reported that no broker answers.
    pub(super) fn up(&self) {
        self.source.access.answered.store(true, Ordering::Relaxed);
        if self.report(Ok(())) {
            self.consumer.context().forget_trouble();
        }
    }

    /// No broker answers, for this reason. A refused reading reports nothing, because it does not wait for a broker.
    pub(super) fn down(&self, error: String) {
        if !self.refused.load(Ordering::Relaxed) {
            self.report(Err(error));
        }
    }

    /// Whether a broker has delivered something since then.
    pub(super) fn has_read_since(&self, since: Time) -> bool {
        *locked(&self.read_at) >= since
    }

    /// Reports whether a broker answers, or why none does, and returns true, unless that is what was reported last. Beside the reading of all
    /// partitions of a candidate, which goes on, another reports nothing: what its partitions lack is no outage.
    fn report(&self, answers: Result<(), String>) -> bool {
        let is_news = locked(&self.reported).replace(answers.clone()).as_ref() != Some(&answers);
        if is_news && (self.source.only.is_none() || self.source.is_for_display) {
            self.send(SessionEvent::Outage { error: answers.err() });
        }
        is_news
    }

    /// The reason for the missing answer, in one line.
    pub(super) fn no_answer(&self, error: &AdminError) -> String {
        self.consumer.context().no_answer(error)
    }

    /// Reports that Kafka refuses, and another attempt is useless. It is reported once.
    pub(super) fn refuse(&self, error: String) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            self.send(SessionEvent::Refused { role: None, error });
        }
    }

    /// Whether a failed connection may be that of the first address of a host with several, which librdkafka tries in turn: `localhost` is `::1` and
    /// `127.0.0.1`.
    pub(super) fn may_have_other_addresses(&self) -> bool {
        !self.source.access.has_answered() && clock::now().since(self.begun) < OTHER_ADDRESSES
    }

    /// Makes the asker ask soon.
    pub(super) fn ask_soon(&self) {
        if !self.is_asked_for.swap(true, Ordering::Relaxed) {
            let _ = self.orders.send(Order::Ask);
        }
    }

    /// Reads a partition from this offset on.
    pub(super) fn read_from(&self, partition: i32, offset: i64) {
        self.handing_over_below(partition, offset);
        let topic = &self.source.elections.topic;
        if let Err(error) = self.consumer.read_from(topic, partition, offset) {
            self.send(SessionEvent::Refused {
                role: None,
                error: format!("topic \"{topic}\": it can't be read from offset {offset}: {error}"),
            });
        }
    }
}

// ---- the thread that polls ------------------------------------------------------------------------------------------

/// The time between two attempts to read a batch that can't be decoded.
const DECODE_RETRY: Duration = Duration::from_millis(500);
/// The longest time after which a dropped reader's threads notice the drop. The caller does not wait for that.
pub(super) const LINGER: Duration = Duration::from_millis(500);

impl Reading {
    /// Waits inside librdkafka, so that each record is delivered as soon as it arrives.
    pub(super) fn poll(&self) {
        // The partitions that can't be decoded, and the time of the next attempt.
        let mut retry: Option<(Time, BTreeSet<i32>)> = None;
        while !self.is_over() {
            let timeout = retry.as_ref().map_or(LINGER, |(at, _)| at.since(clock::now()).min(LINGER));
            match self.consumer.consumer().poll(timeout) {
                // Between two attempts too: the asker may begin to read other partitions then. Those that were stopped deliver nothing.
                Some(Ok(message)) => self.hand_over(&message),
                Some(Err(error)) => {
                    if let Some(stopped) = self.undecodable(&error) {
                        let (_, waiting) = retry.get_or_insert_with(|| (clock::now() + DECODE_RETRY, BTreeSet::new()));
                        waiting.extend(stopped);
                    }
                }
                None => {}
            }
            self.consumer.context().rebootstrap.after_poll(self.consumer.consumer().client());
            if let Some((_, stopped)) = retry.take_if(|(at, _)| clock::now() >= *at) {
                self.read_on(stopped);
            }
        }
    }

    /// Reads partitions that were stopped on from where they were.
    fn read_on(&self, stopped: BTreeSet<i32>) {
        for partition in stopped {
            self.read_from(partition, self.next(partition).unwrap_or_default());
        }
    }

    fn hand_over(&self, message: &impl Message) {
        let (reading, partition, offset) = (self.number, message.partition(), message.offset());
        self.read_below(partition, offset + 1);
        self.send(if self.source.is_for_display {
            KafkaEvent::ReadForDisplay { reading, partition, record: record_for_display(message) }
        } else {
            KafkaEvent::Read { reading, partition, offset, record: self.journal_record(message) }
        });
    }

    /// A record with an election's key belongs to the election only if it is in the partition of its role.
    fn journal_record(&self, message: &impl Message) -> Option<SessionEvent> {
        let (partition, offset) = (message.partition(), message.offset());
        let (key, value) = (message.key(), message.payload());
        let hello = |role| Some(SessionEvent::Election { role, event: Event::of_hello(offset, value) });
        let is_here = |role| self.partitions().is_some_and(|count| Elections::partition_of(role, count) == partition);
        let elections = &self.source.elections;
        if partition == Elections::PARTITION_OF_HELLOS && key.is_some_and(|key| elections.is_hello(key)) {
            // A candidate without roles also reads the hellos of processes with roles, whose keys may name other roles.
            return if elections.are_many() {
                value.map(|value| SessionEvent::Hello { offset, value: value.into() })
            } else {
                hello(elections.roles.start)
            };
        }
        match key.and_then(|key| elections.find(key)) {
            Some((role, false)) if is_here(role) => {
                Some(SessionEvent::Election { role, event: Event::of_record(offset, value, written_ms(message)) })
            }
            Some((role, true)) if is_here(role) => hello(role),
            Some(_) | None => None,
        }
    }

    /// Handles an error. If a batch can't be decoded, reading stops, and the partitions are returned that continue half a second later.
    fn undecodable(&self, error: &KafkaError) -> Option<BTreeSet<i32>> {
        if let KafkaError::PartitionEOF(partition) = error {
            self.caught_up(*partition);
            return None;
        }
        let code = code_of(error);
        let words = self.consumer.context().error_text(code);
        match code.into() {
            // Perhaps only one connection of several has failed; or the topic may be gone.
            ErrorClass::Connection | ErrorClass::UnknownPartition | ErrorClass::UnknownTopic => self.ask_soon(),
            ErrorClass::Moving => {}
            ErrorClass::Cut => self.cut(),
            ErrorClass::Login => self.login_failed(&words),
            ErrorClass::NoBroker => {
                if let Some(error) = self.consumer.context().permanent_failure() {
                    self.refuse(error);
                    return None;
                }
                // The first question, whose time is over then, reports it.
                if !self.may_have_other_addresses() {
                    self.down(self.no_answer(&code.into()));
                }
                self.ask_soon();
            }
            // The reader has no group.
            ErrorClass::GroupForbidden | ErrorClass::Other => {
                self.warn_seldom(words);
            }
            ErrorClass::TopicForbidden => {
                let topic = &self.source.elections.topic;
                let is_fetch = words.starts_with("Fetch");
                self.refuse(if is_fetch { may_not_read(topic) } else { may_not_describe(topic) });
            }
            ErrorClass::Undecodable => return Some(self.stop_undecodable(&words)),
        }
        None
    }

    /// Stops reading: records after the batch must not be handed over before it. rust-rdkafka leaves out which partition it is. librdkafka's message
    /// contains the batch's offset: if only one partition is to be read from there, the others continue at once.
    fn stop_undecodable(&self, words: &str) -> BTreeSet<i32> {
        let (all, batch) = (self.consumer.stop(), offset_in(words));
        let meant: BTreeSet<i32> = all.iter().copied().filter(|partition| self.next(*partition) == batch).collect();
        let stopped = if meant.len() == 1 { meant } else { all.clone() };
        self.read_on(&all - &stopped);
        for partition in &stopped {
            let offset = self.next(*partition).unwrap_or_default();
            let mut undecodable = locked(&self.undecodable);
            let is_repeated = undecodable.get(partition).is_some_and(|(known, _)| *known == offset);
            undecodable.insert(*partition, (offset, is_repeated));
            drop(undecodable);
            let error = is_repeated.then(|| words.into());
            self.send_own(*partition, Event::Undecodable { offset, error });
        }
        self.send(SessionEvent::Debug(format!("a batch can't be decoded ({words}): it is asked for again")));
        stopped
    }

    /// Handles an offset that is out of range. If one partition is read, it is that one. Otherwise the first offsets of the logs show which
    /// one it is, and after a batch that can't be decoded whether it is one: librdkafka goes on at a number from the middle of the batch.
    fn cut(&self) {
        let partitions = self.to_be_read().unwrap_or_default();
        let is_certain = partitions.len() == 1 && locked(&self.undecodable).is_empty();
        match partitions.first().filter(|_| is_certain) {
            Some(partition) => self.send_own(*partition, Event::HistoryCut),
            None => self.ask_soon(),
        }
    }

    fn login_failed(&self, words: &str) {
        if self.source.access.has_answered() {
            // A token that has expired is replaced as soon as the token endpoint gives a new one. One of several brokers may have outdated
            // users, or none yet: then other brokers answer, or the lease ends without an answer.
            let no_token = self.consumer.context().no_token(words);
            let Some(Ok(why) | Err(why)) = no_token else { return self.ask_soon() };
            // The new token is asked for long before the last one expires, and the last one is used until then.
            let line = format!("{why}; the last token counts until it expires, and a new one is asked for every 10 s");
            return self.warn_seldom(line);
        }
        match self.consumer.context().login_failed(words) {
            Ok(None) => self.ask_soon(),
            Ok(Some(why)) => self.down(why),
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// A broker has delivered everything of a partition below `next`.
    pub(super) fn read_below(&self, partition: i32, next: i64) {
        *locked(&self.read_at) = clock::now();
        self.handing_over_below(partition, next);
        if let Some((offset, true)) = locked(&self.undecodable).remove(&partition) {
            let topic = &self.source.elections.topic;
            self.send(SessionEvent::Warning(format!(
                "topic \"{topic}\": the batch at offset {offset} was read, or deleted: partition {partition} is read on"
            )));
        }
        self.up();
    }

    fn caught_up(&self, partition: i32) {
        let words = self.consumer.context().error_text(RDKafkaErrorCode::PartitionEOF);
        let handed_over = self.next(partition).unwrap_or_default();
        // rust-rdkafka leaves out the end's offset, but librdkafka's message contains it. It may be higher than the offset after the last
        // record, because a transaction's marker has no record.
        let next = offset_in(&words).map_or(handed_over, |end| end.max(handed_over));
        self.read_below(partition, next);
        self.send_own(partition, Event::ReachedEnd { next });
    }
}

/// The offset in `... reached end of partition at offset 57 (HighwaterMark 57)`, or `MessageSet at offset 57 (259 bytes) failed CRC32C check ..`.
pub(super) fn offset_in(words: &str) -> Option<i64> {
    let (_, tail) = words.split_once("at offset ")?;
    tail.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The whole record, for those who show it.
pub(crate) fn record_for_display(message: &impl Message) -> LogRecord {
    LogRecord {
        offset: message.offset(),
        key: message.key().map(Box::from),
        value: message.payload().map(Box::from),
        written_ms: written_ms(message),
        is_brokers_time: matches!(message.timestamp(), Timestamp::LogAppendTime(_)),
    }
}

/// The record's timestamp, in milliseconds since 1970.
fn written_ms(message: &impl Message) -> Option<u64> {
    message.timestamp().to_millis().and_then(|ms| u64::try_from(ms).ok())
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::election::Properties;

    #[test]
    fn of_several_partitions_only_that_of_the_batch_is_stopped_if_its_offset_shows_which_it_is() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 2, 1).unwrap();
        let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..2, names: Arc::default() };
        let source = Source { partitions: Some(2), ..Source::new(access, elections, IfMissing::Refuse) };
        let (sender, mut events) = channel(100);
        let reading = Reading::new(source, 1, sender, mpsc::channel().0, Arc::default()).unwrap();
        for (words, expected) in [
            ("MessageSet at offset 7 (259 bytes) failed CRC32C check", BTreeSet::from([1])),
            ("MessageSet at offset 6 (259 bytes) failed CRC32C check", BTreeSet::from([0, 1])),
            ("Local: Invalid compressed data", BTreeSet::from([0, 1])),
        ] {
            reading.read_from(0, 5);
            reading.read_from(1, 7);
            assert_eq!(reading.stop_undecodable(words), expected, "{words}");
            assert_eq!(reading.consumer.stop(), &BTreeSet::from([0, 1]) - &expected, "{words}");
            let told = std::iter::from_fn(|| events.try_recv().ok()).filter_map(|event| {
                if let KafkaEvent::Reading { partition, event: Event::Undecodable { .. }, .. } = event {
                    Some(partition)
                } else {
                    None
                }
            });
            assert_eq!(told.collect::<BTreeSet<_>>(), expected, "{words}");
        }
    }

    /// Who deletes a batch that only one answer has damaged deletes good records.
    #[test]
    fn a_batch_can_not_be_decoded_if_it_is_tried_twice_and_that_it_was_passed_is_told() {
        let access = Access::at("127.0.0.1:9", &Properties::default());
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: Arc::default() };
        let source = Source::new(access, elections, IfMissing::Refuse);
        let (sender, mut events) = channel(100);
        let reading = Reading::new(source, 1, sender, mpsc::channel().0, Arc::default()).unwrap();
        let mut told = || -> Vec<String> {
            let told = std::iter::from_fn(|| events.try_recv().ok()).filter_map(|event| {
                if let KafkaEvent::Reading { event: Event::Undecodable { offset, error }, .. } = event {
                    Some(format!("{offset}: {}", error?))
                } else if let KafkaEvent::Process(SessionEvent::Warning(warning)) = event {
                    Some(warning)
                } else {
                    None
                }
            });
            told.collect()
        };
        let mut fails_at = |offset| {
            reading.read_from(0, offset);
            assert_eq!(reading.stop_undecodable("damaged"), BTreeSet::from([0]));
            told()
        };
        assert!(fails_at(7).is_empty());
        assert!(fails_at(5).is_empty(), "it was read again from further back");
        reading.read_below(0, 6);
        assert!(fails_at(7).is_empty());
        assert_eq!([fails_at(7), fails_at(7)], [["7: damaged"]; 2]);
        reading.read_below(0, 8);
        assert_eq!(told(), ["topic \"t\": the batch at offset 7 was read, or deleted: partition 0 is read on"]);
    }

    /// A broker that fails answers ten fetches a second.
    #[test]
    fn an_error_that_occurs_again_and_again_is_reported_once_in_a_while() {
        use RDKafkaErrorCode::{KafkaStorageError, Unknown};
        let access = Access::at("127.0.0.1:9", &Properties::default());
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: Arc::default() };
        let source = Source::new(access, elections, IfMissing::Refuse);
        let (sender, mut events) = channel(10);
        let reading = Reading::new(source, 1, sender, mpsc::channel().0, Arc::default()).unwrap();
        for code in [Unknown, KafkaStorageError, Unknown, Unknown] {
            assert_eq!(reading.undecodable(&KafkaError::MessageConsumption(code)), None);
        }
        let warnings = std::iter::from_fn(|| events.try_recv().ok());
        let of = |code: RDKafkaErrorCode| reading.consumer.context().error_text(code);
        let texts: Vec<String> =
            warnings
                .filter_map(|event| {
                    if let KafkaEvent::Process(SessionEvent::Warning(text)) = event { Some(text) } else { None }
                })
                .collect();
        assert_eq!(texts, [of(Unknown), of(KafkaStorageError)]);
    }

    #[test]
    fn an_offset_is_parsed_from_librdkafkas_message() {
        let words = "Fetch from broker 1 reached end of partition at offset 57 (HighwaterMark 58)";
        assert_eq!(offset_in(words), Some(57));
        assert_eq!(offset_in("MessageSet at offset 57 (259 bytes) failed CRC32C check"), Some(57));
        assert_eq!(offset_in("Fetch from broker 1 failed"), None);
    }
}
