//! Reads the topic of facts: one consumer for each reading, which joins no group and is gone with it. A candidate reads it at its
//! start and at each lead, and seldom else: a connection that is kept for that would cost more than it saves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use neli_proto::fact::{Facts, Place};
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::election::Elections;
use crate::kafka::access::Access;
use crate::kafka::answer_limit::AnswerLimit;
use crate::kafka::context::{KafkaContext, explain};
use crate::kafka::error_class::{ErrorClass, plain};
use crate::kafka::event::{FactsEvent, KafkaEvent};
use crate::kafka::librdkafka::{NewTopic, create_topic};
use crate::kafka::partition_consumer::PartitionConsumer;
use crate::kafka::poll_thread::end_offset;
use crate::kafka::topic::{self, Presence, TopicError};

/// How long the first question may take.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// How long any other question may take at least; librdkafka's `socket.timeout.ms` is as long.
const ANSWER: Duration = Duration::from_secs(2);
/// Between two attempts.
const RETRY: Duration = Duration::from_millis(200);
/// Between two looks at a topic that is about to be there.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long a partition may be without a leader that answers: it is for a moment when its topic has just been made, or its leader moves.
const LED_WITHIN: Duration = Duration::from_secs(2);
/// A reading that delivers nothing for this long starts again.
const NO_RECORD: Duration = Duration::from_secs(5);
/// `segment.ms`.
const SEGMENT: Duration = Duration::from_secs(60 * 60);
/// Between two reports of how far a reading is.
const PROGRESS: Duration = Duration::from_millis(100);
/// How soon a dropped reading is noticed.
const LINGER: Duration = Duration::from_millis(200);

/// What is read, and from where.
#[derive(Clone)]
pub(crate) struct FactsSource {
    /// How Kafka is reached.
    pub(crate) access: Access,
    /// The elections to whose journal the topic belongs.
    pub(crate) elections: Elections,
    /// Whether a missing topic is made.
    pub(crate) create_topic: bool,
    /// What is wanted of it.
    pub(crate) wanted: WantedFacts,
}

/// Which facts are wanted.
#[derive(Clone, Debug)]
pub struct WantedFacts {
    /// The topic of facts; its partition is 0.
    pub topic: String,
    /// How it is made where it is missing.
    pub settings: FactsSettings,
    /// The Kafka keys under which the key's facts stand.
    pub keys: [(String, Place); 3],
    /// Whether what the topic is judged by is reported first.
    pub judge: bool,
}

/// How long the topic of facts keeps its records, where it is made here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FactsSettings {
    /// `retention.ms`: each fact.
    pub retention: Duration,
    /// `min.compaction.lag.ms`: also a fact that a later one replaces. The windows of an election share a Kafka key: a record of an
    /// earlier window's run that reaches the log late stands in the place of the newest one's success, and only a reader that finds both
    /// knows which of them counts. So both are kept for as long as the window lasts.
    pub compaction_lag: Duration,
}

/// A reading of the topic of facts, to an end that is asked for when it begins. It is over when it has reported
/// [`FactsEvent::Read`]. Dropping it never blocks; what it reports carries its number.
pub struct FactsReading {
    stopped: Arc<AtomicBool>,
}

impl FactsReading {
    /// Starts the reading with this number; what comes of it goes to `events`.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub(crate) fn start(source: FactsSource, id: u32, events: Sender<KafkaEvent>) -> Result<Self, std::io::Error> {
        let stopped = Arc::new(AtomicBool::new(false));
        let reading = Thread { source, id, events, stopped: Arc::clone(&stopped) };
        thread::Builder::new().name("neli-facts".to_owned()).spawn(move || reading.run())?;
        Ok(Self { stopped })
    }
}

impl Drop for FactsReading {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Why a reading did not come to its end.
enum Failure {
    /// The partition's leader is not ready, or another one than was thought.
    Moving(String),
    /// Kafka refuses for good.
    Refused(String),
    /// Worth another attempt.
    Transient(String),
}

/// The topic of facts as it is made, with so many replicas. It is read whole at each lead, so it is kept short: compaction leaves the segment
/// out that is written to, which is for a week unless `segment.ms` says otherwise, and waits until half of the log is to be cleaned.
pub(super) fn topic_wanted(topic: &str, facts_settings: FactsSettings, replicas: usize) -> NewTopic<'_> {
    let mut settings = vec![
        ("cleanup.policy", "compact,delete".to_owned()),
        ("message.timestamp.type", "LogAppendTime".to_owned()),
        ("min.cleanable.dirty.ratio", "0.1".to_owned()),
        ("min.compaction.lag.ms", facts_settings.compaction_lag.as_millis().to_string()),
        ("retention.bytes", "-1".to_owned()),
        ("retention.ms", facts_settings.retention.as_millis().to_string()),
        ("segment.ms", SEGMENT.as_millis().to_string()),
        ("unclean.leader.election.enable", "false".to_owned()),
    ];
    if replicas >= 3 {
        settings.push(("min.insync.replicas", "2".to_owned()));
    }
    NewTopic { name: topic, partitions: 1, replicas: i32::try_from(replicas).unwrap_or(1), settings }
}

struct Thread {
    source: FactsSource,
    id: u32,
    events: Sender<KafkaEvent>,
    stopped: Arc<AtomicBool>,
}

impl Thread {
    fn run(mut self) {
        let context = KafkaContext::new(&self.source.access);
        let config = self.source.access.reader(None);
        let consumer = match PartitionConsumer::new(&config, context.clone(), &self.source.wanted.topic) {
            Ok(consumer) => consumer,
            Err(error) => return self.send(KafkaEvent::Refused { error: explain(&error) }),
        };
        let mut limit = AnswerLimit::new(FIRST_ANSWER, ANSWER);
        let begun = clock::now();
        while !self.is_over() {
            match self.read(&consumer, &context, &mut limit) {
                Ok(facts) => return self.report(FactsEvent::Read(Box::new(facts))),
                Err(Failure::Moving(_)) if clock::now().since(begun) < LED_WITHIN => thread::park_timeout(LOOK_AGAIN),
                Err(Failure::Refused(error)) => return self.send(KafkaEvent::Refused { error }),
                Err(Failure::Moving(error) | Failure::Transient(error)) => {
                    self.report(FactsEvent::Unread {
                        error: format!("topic \"{}\": {error}", self.source.wanted.topic),
                    });
                    thread::park_timeout(RETRY);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    fn send(&self, event: KafkaEvent) {
        // An error means that the receiver is gone.
        let _ = self.events.blocking_send(event);
    }

    fn report(&self, event: FactsEvent) {
        if !self.is_over() {
            self.send(KafkaEvent::Facts { id: self.id, event });
        }
    }

    /// Asks where the topic begins and ends, and reads it up to there.
    fn read(
        &mut self,
        consumer: &PartitionConsumer<KafkaContext>,
        context: &KafkaContext,
        limit: &mut AnswerLimit,
    ) -> Result<Facts, Failure> {
        let asked = clock::now();
        let bounds = consumer.consumer().fetch_watermarks(&self.source.wanted.topic, 0, limit.ask());
        let (start, end) = match bounds {
            Ok(bounds) => bounds,
            Err(error) => {
                let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
                if matches!(code.into(), ErrorClass::UnknownPartition | ErrorClass::UnknownTopic) {
                    self.find_topic(consumer, limit)?;
                    return self.read(consumer, context, limit);
                }
                if matches!(code.into(), ErrorClass::Connection | ErrorClass::NoBroker) {
                    limit.was_too_short();
                }
                return Err(self.failure(code, context.trouble()));
            }
        };
        limit.answered(asked);
        self.have_judged(consumer, limit)?;
        self.read_between(consumer, context, start, end)
    }

    fn read_between(
        &self,
        consumer: &PartitionConsumer<KafkaContext>,
        context: &KafkaContext,
        start: i64,
        end: i64,
    ) -> Result<Facts, Failure> {
        let mut facts = Facts::default();
        let mut next = start;
        if next < end {
            consumer.read_from(0, start).map_err(|code| self.failure(code, None))?;
        }
        let mut handed_over = clock::now();
        let mut progress_at = handed_over;
        while next < end && !self.is_over() {
            match consumer.consumer().poll(LINGER) {
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    handed_over = clock::now();
                    let place = self.source.wanted.keys.iter().find(|(key, _)| message.key() == Some(key.as_bytes()));
                    if let Some((_, place)) = place {
                        facts.take(*place, message.payload());
                    }
                }
                // Behind the last record there may be a transaction's marker.
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    let words = context.error_text(RDKafkaErrorCode::PartitionEOF);
                    next = next.max(end_offset(&words).unwrap_or(next));
                }
                Some(Err(error)) => {
                    let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
                    match code.into() {
                        ErrorClass::Connection | ErrorClass::Moving | ErrorClass::NoBroker => {}
                        ErrorClass::Cut
                        | ErrorClass::GroupForbidden
                        | ErrorClass::Login
                        | ErrorClass::Other
                        | ErrorClass::TopicForbidden
                        | ErrorClass::Undecodable
                        | ErrorClass::UnknownPartition
                        | ErrorClass::UnknownTopic => {
                            consumer.stop();
                            return Err(self.failure(code, Some(context.error_text(code))));
                        }
                    }
                }
                None => {}
            }
            if clock::now().since(progress_at) >= PROGRESS {
                progress_at = clock::now();
                self.report(FactsEvent::Reading { progress: self.progress(next - start, end - start) });
            }
            if clock::now().since(handed_over) >= NO_RECORD {
                consumer.stop();
                let why = context.trouble().unwrap_or_else(|| "no record is handed over".to_owned());
                return Err(Failure::Transient(why));
            }
        }
        consumer.stop();
        Ok(facts)
    }

    /// How much of the log is read, and what helps.
    fn progress(&self, read: i64, all: i64) -> String {
        format!(
            "topic \"{}\": {read} of {all} offsets were read in half a lease; a longer --lease gives more time, and segment.ms=3600000 \
             has Kafka compact the topic sooner",
            self.source.wanted.topic
        )
    }

    /// Reports what the topic is judged by, once; the embedded broker's has no settings.
    fn have_judged(
        &mut self,
        consumer: &PartitionConsumer<KafkaContext>,
        limit: &mut AnswerLimit,
    ) -> Result<(), Failure> {
        if !self.source.wanted.judge || self.source.access.embedded.is_some() {
            return Ok(());
        }
        let facts = topic::facts(consumer.consumer().client(), &self.place(), limit);
        let facts = facts.map_err(|error| self.of_topic_error(error))?;
        self.source.wanted.judge = false;
        self.report(FactsEvent::Topic(facts));
        Ok(())
    }

    /// Waits until the topic exists, making it if that is allowed.
    fn find_topic(&self, consumer: &PartitionConsumer<KafkaContext>, limit: &mut AnswerLimit) -> Result<(), Failure> {
        let client = consumer.consumer().client();
        let place = self.place();
        while !self.is_over() {
            let presence = topic::look(client, &place, limit.ask()).map_err(|error| self.of_topic_error(error))?;
            let brokers = match presence {
                Presence::There(_) => return Ok(()),
                Presence::Coming => {
                    thread::park_timeout(LOOK_AGAIN);
                    continue;
                }
                Presence::Missing { brokers } => brokers,
            };
            if !self.source.create_topic {
                let topic = &self.source.wanted.topic;
                let why = format!("topic \"{topic}\": it does not exist; create it, or drop --no-create-topic");
                return Err(Failure::Refused(why));
            }
            // As many replicas as the journal has.
            let journal = topic::look(client, &self.source.elections, limit.ask());
            let replicas = match journal.map_err(|error| self.of_topic_error(error))? {
                Presence::There(found) => found.layouts.values().next().map_or(1, |layout| layout.replicas.len()),
                Presence::Coming | Presence::Missing { .. } => brokers.clamp(1, 3),
            };
            if self.create(consumer, replicas, limit.ask())? {
                self.report(FactsEvent::Created { replicas, brokers });
            }
        }
        Err(Failure::Transient("it was given up".to_owned()))
    }

    /// Whether it is made here, and not by another in the meantime. The embedded broker's is new whenever the broker is.
    fn create(
        &self,
        consumer: &PartitionConsumer<KafkaContext>,
        replicas: usize,
        timeout: Duration,
    ) -> Result<bool, Failure> {
        let FactsSource { access, wanted: WantedFacts { topic, settings, .. }, .. } = &self.source;
        if let Some(connection) = &access.embedded {
            let created = connection.create_topic(topic, 1);
            return created.map(|()| false).map_err(|error| Failure::Transient(error.to_string()));
        }
        match create_topic(consumer.consumer().client(), &topic_wanted(topic, *settings, replicas), timeout) {
            Ok(()) => Ok(true),
            Err(RDKafkaErrorCode::TopicAlreadyExists) => Ok(false),
            Err(code) => Err(self.of_topic_error(topic::not_created(code, &self.place()))),
        }
    }

    /// The topic with the facts, as that of one election.
    fn place(&self) -> Elections {
        Elections { topic: self.source.wanted.topic.clone(), roles: 0..1, ..self.source.elections.clone() }
    }

    fn of_topic_error(&self, error: TopicError) -> Failure {
        match error {
            TopicError::Refused(error) => Failure::Refused(error),
            TopicError::Transient(code) => self.failure(code, None),
        }
    }

    fn failure(&self, code: RDKafkaErrorCode, trouble: Option<String>) -> Failure {
        let class = ErrorClass::from(code);
        if class == ErrorClass::TopicForbidden {
            return Failure::Refused(topic::may_not_read(&self.source.wanted.topic));
        }
        let words = trouble.unwrap_or_else(|| plain(code));
        if class == ErrorClass::Moving { Failure::Moving(words) } else { Failure::Transient(words) }
    }
}

#[cfg(test)]
mod tests;
