//! Reads the logs of many topics with one client, for a process that shows elections and stands in none. It joins no group.
//!
//! There are two threads, and a third one while the past of a topic is read. The *poll thread* waits inside librdkafka and delivers each
//! record as soon as it arrives. The *asker* asks every five seconds, soon after an error, and when it is told to, which topics there are,
//! which of them this user may read, and where their logs begin and end. So nothing depends on an error that names no topic.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use neli_proto::kafka::{LogAnswer, LogRange, LogsAnswer, RECENT, TopicsAction};
use neli_proto::record::LogRecord;
use neli_proto::time::{Time, millis};
use neli_proto::topic::TopicIdentity;
use rdkafka::ClientConfig;
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::metadata::MetadataTopic;
use rdkafka::topic_partition_list::Offset;
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::bootstrap_servers::{admit, ask_servers};
use crate::clock;
use crate::context::client_error;
use crate::error_class::{ErrorClass, code_of, plain};
use crate::librdkafka::{TopicDescription, Variation, describe_topics};
use crate::partition_consumer::PartitionConsumer;
use crate::questions::{self, ANSWER, AnswerLimit, ByBroker, Offsets, Partition, ask_all};
use crate::reading::{LINGER, record_for_display};
use crate::text::{ClientError, reason};
use crate::threads::{self, locked};
use crate::topic::{may_not_describe, may_not_read};

/// The time between two questions.
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// The same while there is no answer, or after an error.
const RETRY: Duration = Duration::from_secs(1);
/// Of a topic's past so many records are read without a pause, and so long is the pause: present records wait behind few of them, and a processor
/// has most of its time for others.
const PAST_AT_ONCE: usize = 500;
const PAST_PAUSE: Duration = Duration::from_millis(10);
/// The property for how long a broker may hold back the answer to a fetch without records.
const FETCH_WAIT: &str = "fetch.wait.max.ms";

/// What the reader reports. `reading` is the number of a reading.
#[derive(Debug)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum TopicsEvent {
    /// Brokers have answered which topics there are, of those that are meant, to a question of `asked`.
    Answered { asked: Time, topics: Topics },
    /// No broker answers, for this reason.
    Down(String),
    /// The offsets where a topic's past begins, of the partitions that have one.
    PastBegins { reading: u32, from: BTreeMap<i32, i64> },
    /// A record.
    Read { reading: u32, topic: Arc<str>, partition: i32, record: LogRecord },
    /// Kafka refuses for good: one line with the cause.
    Refused(String),
    /// A warning; the reading goes on.
    Warning(String),
}

/// The reading of all topics. Dropping it never blocks.
pub struct TopicsReader {
    shared: Arc<Shared>,
}

/// What both threads use.
struct Shared {
    /// Whether a topic of this name is meant, though it is not named.
    is_meant: Box<dyn Fn(&str) -> bool + Send + Sync>,
    consumer: PartitionConsumer,
    /// The number of each topic's present reading.
    readings: Mutex<BTreeMap<Arc<str>, u32>>,
    events: Sender<TopicsEvent>,
    /// Actions; `None` if something may have changed.
    orders: mpsc::Sender<Option<TopicsAction>>,
    /// Whether the asker has an order to ask that it has not executed.
    is_asked_for: AtomicBool,
    stopped: AtomicBool,
}

impl TopicsReader {
    /// Begins to ask for the topics whose names are meant, and for those that are `named`: of these it is told, too, that this user may not see them.
    ///
    /// # Errors
    ///
    /// One line: librdkafka does not accept the configuration, or a thread can't be started.
    pub fn start(
        access: &Access,
        named: BTreeSet<Box<str>>,
        is_meant: impl Fn(&str) -> bool + Send + Sync + 'static,
        events: Sender<TopicsEvent>,
    ) -> Result<Self, ClientError> {
        let consumer = consumer(access)?;
        let (orders, received) = mpsc::channel();
        let shared = Arc::new(Shared {
            is_meant: Box::new(is_meant),
            consumer,
            readings: Mutex::default(),
            events,
            orders,
            is_asked_for: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let (polls, asks) = (Arc::clone(&shared), Arc::clone(&shared));
        let limit = AnswerLimit::OF_READER;
        let known = named.clone();
        let asker = TopicsAsker { shared: asks, named, known, limit, ask_at: clock::now(), servers: None, past: None };
        threads::start("neli-reader", move || polls.poll())
            .and_then(|()| threads::start("neli-asker", move || asker.run(&received)))
            .map_err(|error| ClientError::of_system("no thread for the reader", &error))?;
        Ok(Self { shared })
    }

    /// Performs an action.
    pub fn perform(&self, action: TopicsAction) {
        // It fails only once the asker has ended, when this is dropped.
        let _ = self.shared.orders.send(Some(action));
    }
}

impl Drop for TopicsReader {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        let _ = self.shared.orders.send(None);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    fn send(&self, event: TopicsEvent) {
        if !self.is_over() {
            // It fails when the receiver is gone, which `is_over` shows.
            let _ = self.events.blocking_send(event);
        }
    }

    fn ask_soon(&self) {
        if !self.is_asked_for.swap(true, Ordering::Relaxed) {
            let _ = self.orders.send(None);
        }
    }

    /// The poll thread.
    fn poll(&self) {
        let mut last_warning = String::new();
        while !self.is_over() {
            match self.consumer.consumer().poll(LINGER) {
                Some(Ok(message)) => self.hand_over(&message),
                Some(Err(error)) => {
                    let code = code_of(&error);
                    if let Some(warning) = self.error(code, &self.consumer.context().error_text(code))
                        && warning != last_warning
                    {
                        self.send(TopicsEvent::Warning(warning.clone()));
                        last_warning = warning;
                    }
                }
                None => {}
            }
            self.consumer.context().rebootstrap.after_poll(self.consumer.consumer().client());
        }
    }

    fn hand_over(&self, message: &impl Message) {
        let known = |(topic, reading): (&Arc<str>, &u32)| (Arc::clone(topic), *reading);
        let found = locked(&self.readings).get_key_value(message.topic()).map(known);
        let Some((topic, reading)) = found else { return };
        let (partition, record) = (message.partition(), record_for_display(message));
        self.send(TopicsEvent::Read { reading, topic, partition, record });
    }

    /// The thread that reads a topic's past, until the other end of the channel is dropped. After an error that lasts nothing more comes, and then
    /// the past is asked for again.
    fn read_past(&self, consumer: &PartitionConsumer, reading: u32, topic: &Arc<str>, stopped: &mpsc::Receiver<()>) {
        while !self.is_over() && stopped.recv_timeout(PAST_PAUSE) == Err(RecvTimeoutError::Timeout) {
            let polled = iter::from_fn(|| consumer.consumer().poll(Duration::ZERO));
            for message in polled.take(PAST_AT_ONCE).filter_map(Result::ok) {
                let (partition, record) = (message.partition(), record_for_display(&message));
                self.send(TopicsEvent::Read { reading, topic: Arc::clone(topic), partition, record });
            }
        }
    }

    /// Handles an error of a fetch or of a connection. Returns a warning if nothing else will tell of it.
    fn error(&self, code: RDKafkaErrorCode, words: &str) -> Option<String> {
        let class = ErrorClass::from(code);
        if matches!(class, ErrorClass::GroupForbidden | ErrorClass::Other | ErrorClass::Undecodable) {
            return Some(format!("some records of a topic can't be read: {words}"));
        }
        if class == ErrorClass::Login && !self.consumer.context().access.has_answered() {
            match self.consumer.context().login_failed(words) {
                Ok(None) => {}
                Ok(Some(why)) => self.send(TopicsEvent::Down(why)),
                Err(refusal) => self.send(TopicsEvent::Refused(refusal)),
            }
        } else if class != ErrorClass::Moving {
            self.ask_soon();
        }
        None
    }
}

/// The thread that asks the blocking questions.
struct TopicsAsker {
    shared: Arc<Shared>,
    named: BTreeSet<Box<str>>,
    /// Those, and the topics of the last answer. A broker's list leaves out what this user may not see, as if it were gone.
    known: BTreeSet<Box<str>>,
    /// The time limit of the next question.
    limit: AnswerLimit,
    /// When it is asked.
    ask_at: Time,
    /// The question to the bootstrap servers, for whose answers the first answer waits.
    servers: Option<mpsc::Receiver<()>>,
    /// The topic whose past is being read, until this end of the channel is dropped.
    past: Option<(Box<str>, mpsc::Sender<()>)>,
}

/// The topics that are meant.
type Topics = BTreeMap<Box<str>, LogsAnswer>;

impl TopicsAsker {
    fn run(mut self, orders: &mpsc::Receiver<Option<TopicsAction>>) {
        self.servers = ask_servers(None, self.shared.consumer.consumer());
        while !self.shared.is_over() {
            match orders.recv_timeout(self.ask_at.since(clock::now())) {
                Ok(None) => self.ask_at = self.ask_at.min(clock::now() + RETRY),
                Ok(Some(action)) => self.perform(action),
                Err(RecvTimeoutError::Timeout) => {
                    self.shared.is_asked_for.store(false, Ordering::Relaxed);
                    let is_answered = self.ask();
                    self.ask_at = clock::now() + if is_answered { ASK_INTERVAL } else { RETRY };
                    // A server that has not answered may have come back.
                    let _ = ask_servers(None, self.shared.consumer.consumer());
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn perform(&mut self, action: TopicsAction) {
        match action {
            TopicsAction::Ask => self.ask_at = self.ask_at.min(clock::now()),
            TopicsAction::ReadSince { topic, since_ms, before, reading } => {
                // The one before ends, whatever state its client is in.
                self.past = None;
                match self.read_since(&topic, since_ms, &before, reading) {
                    Ok(past) => self.past = Some((topic, past)),
                    // It is asked for again.
                    Err(why) => self.shared.send(TopicsEvent::Warning(format!("topic \"{topic}\": its past: {why}"))),
                }
            }
            TopicsAction::StopPast => self.past = None,
            TopicsAction::ReadFrom { topic, partition, offset, reading } => {
                locked(&self.shared.readings).insert(Arc::from(&*topic), reading);
                if let Err(code) = self.shared.consumer.read_from(&topic, partition, offset) {
                    let why = format!("topic \"{topic}\" [{partition}]: it can't be read from offset {offset}: {code}");
                    self.shared.send(TopicsEvent::Warning(why));
                }
            }
            TopicsAction::Stop { topic } => {
                self.past = self.past.take().filter(|(of, _)| *of != topic);
                locked(&self.shared.readings).remove(&*topic);
                self.shared.consumer.stop_topic(&topic);
            }
        }
    }

    /// Begins to read a topic's past with a client of its own.
    fn read_since(
        &self,
        topic: &str,
        since_ms: u64,
        before: &BTreeMap<i32, i64>,
        reading: u32,
    ) -> Result<mpsc::Sender<()>, String> {
        let since = at_ms(since_ms);
        let partitions = before.keys().map(|partition| (topic.into(), *partition)).collect();
        let offsets = self.shared.offsets(&partitions, since, ANSWER).map_err(plain)?;
        let mut from = BTreeMap::new();
        for ((_, partition), offset) in offsets {
            match offset {
                Ok(offset) if before.get(&partition).is_some_and(|before| offset < *before) => {
                    from.insert(partition, offset);
                }
                // No record is so young.
                Ok(_) | Err(RDKafkaErrorCode::UnknownPartition) => {}
                Err(code) => return Err(plain(code)),
            }
        }
        let consumer = consumer(&self.shared.consumer.context().access).map_err(|error| error.to_string())?;
        self.shared.send(TopicsEvent::PastBegins { reading, from: from.clone() });
        for (partition, offset) in &from {
            consumer.read_from(topic, *partition, *offset).map_err(|code| code.to_string())?;
        }
        let (shared, topic, (stop, stopped)) = (Arc::clone(&self.shared), Arc::from(topic), mpsc::channel());
        let read = move || shared.read_past(&consumer, reading, &topic, &stopped);
        let thread = threads::start("neli-past", read);
        thread.map_err(|error| format!("no thread for it: {}", reason(&error)))?;
        Ok(stop)
    }

    /// Asks which topics there are, and reports it. Returns whether there was an answer.
    fn ask(&mut self) -> bool {
        let (limit, asked) = (self.limit.ask(), clock::now());
        let answered = self.shared.topics(&self.known, limit);
        let (client, context) = (self.shared.consumer.consumer().client(), self.shared.consumer.context());
        match answered {
            Ok((topics, at)) => {
                if let Err(refusal) = admit(&mut self.servers, client, asked) {
                    self.shared.send(TopicsEvent::Refused(refusal));
                    return false;
                }
                // A broker that is dead makes no answer of the others a slow one.
                self.limit.answered_at(asked, at);
                context.access.answered.store(true, Ordering::Relaxed);
                context.rebootstrap.answered();
                context.forget_trouble();
                self.known = self.named.iter().chain(topics.keys()).cloned().collect();
                self.shared.send(TopicsEvent::Answered { asked, topics });
                true
            }
            Err(code) => {
                let is_first = self.limit.is_first();
                self.limit.was_too_short();
                context.rebootstrap.unanswered(client);
                // Of a slow link the second question shows whether it is only slow.
                if let Some(refusal) = context.permanent_failure() {
                    self.shared.send(TopicsEvent::Refused(refusal));
                } else if !is_first || context.trouble().is_some() {
                    self.shared.send(TopicsEvent::Down(context.no_answer(&code.into())));
                }
                false
            }
        }
    }
}

impl Shared {
    /// The topics that are meant, with their logs, and those of the `known` ones that this user may not see; and when the last broker that did
    /// answer had answered.
    fn topics(&self, known: &BTreeSet<Box<str>>, limit: Duration) -> Result<(Topics, Time), RDKafkaErrorCode> {
        let consumer = self.consumer.consumer();
        let metadata = consumer.fetch_metadata(None, limit).map_err(|error| code_of(&error))?;
        let is_meant = |topic: &&MetadataTopic| known.contains(topic.name()) || (self.is_meant)(topic.name());
        let meant = metadata.topics().iter().filter(is_meant);
        let mut listed: BTreeMap<&str, Option<_>> = known.iter().map(|name| (&**name, None)).collect();
        listed.extend(meant.map(|topic| (topic.name(), Some(topic))));
        let names: Vec<&str> = listed.keys().copied().collect();
        let descriptions = self.describe(&names, metadata.orig_broker_id(), limit)?;
        let (mut topics, mut led) = (BTreeMap::new(), ByBroker::<Partition>::new());
        for ((name, topic), description) in listed.into_iter().zip(descriptions) {
            let Some(logs) = logs_of(name, topic, description, &mut led) else { continue };
            let identity = description.map_or(TopicIdentity::Unnamed, |description| description.identity);
            topics.insert(name.into(), LogsAnswer { identity, logs });
        }
        let mut last_answer = led.is_empty().then(clock::now);
        ask_all(
            &led,
            |_, partitions| self.bounds(partitions, limit),
            |leader, partitions, answered| {
                last_answer = answered.is_ok().then(clock::now).or(last_answer);
                for (topic, partition) in partitions {
                    let log = match &answered {
                        Ok(bounds) => bounds.get(&(topic.clone(), *partition)).cloned(),
                        Err(code) => {
                            let why = plain(*code);
                            let why = format!(
                                "topic \"{topic}\" [{partition}]: no answer from broker {leader}, which leads it: {why}"
                            );
                            Some(Err(why.into()))
                        }
                    };
                    let logs = topics.get_mut(topic).and_then(|answer| answer.logs.as_mut().ok());
                    if let (Some(logs), Some(log)) = (logs, log) {
                        logs.insert(*partition, log);
                    }
                }
            },
        );
        Ok((topics, last_answer.ok_or(RDKafkaErrorCode::BrokerTransportFailure)?))
    }

    /// Each topic's description; of a broker that describes none only that there is a topic.
    fn describe(
        &self,
        names: &[&str],
        broker: i32,
        limit: Duration,
    ) -> Result<Vec<Result<TopicDescription, RDKafkaErrorCode>>, RDKafkaErrorCode> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let (client, broker) = (self.consumer.consumer().client(), Some(broker).filter(|broker| *broker >= 0));
        match describe_topics(client, names, broker, limit, Variation::IncludeRights) {
            Ok(described) => Ok(described),
            Err(code) if ErrorClass::from(code).is_missing_answer() => Err(code),
            Err(_) => Ok(vec![Ok(UNNAMED); names.len()]),
        }
    }

    /// The bounds of these logs, which one broker leads.
    fn bounds(
        &self,
        partitions: &BTreeSet<Partition>,
        limit: Duration,
    ) -> Result<BTreeMap<Partition, LogAnswer>, RDKafkaErrorCode> {
        let since = at_ms(clock::wall_ms().saturating_sub(millis(RECENT)));
        let starts = self.offsets(partitions, Offset::Beginning, limit)?;
        let recent = self.offsets(partitions, since, limit)?;
        // Asked last, so that no other offset is beyond it.
        let ends = self.offsets(partitions, Offset::End, limit)?;
        let of = |offsets: &Offsets, partition: &Partition| {
            let offset = offsets.get(partition).copied().unwrap_or(Err(RDKafkaErrorCode::Fail));
            offset.map_err(|code| Box::<str>::from(plain(code)))
        };
        let bounds = |partition: &Partition| -> LogAnswer {
            let end = of(&ends, partition)?;
            // No record is so young: no offset.
            Ok(LogRange { start: of(&starts, partition)?, recent: of(&recent, partition).unwrap_or(end), end })
        };
        Ok(partitions.iter().map(|partition| (partition.clone(), bounds(partition))).collect())
    }

    fn offsets(
        &self,
        partitions: &BTreeSet<Partition>,
        which: Offset,
        limit: Duration,
    ) -> Result<Offsets, RDKafkaErrorCode> {
        let partitions = partitions.iter().map(|(topic, partition)| (&**topic, *partition));
        questions::offsets(self.consumer.consumer(), partitions, which, limit)
    }
}

/// Of a topic that a broker does not describe.
const UNNAMED: TopicDescription = TopicDescription { identity: TopicIdentity::Unnamed, partitions: 0, rights: None };

/// The logs of a topic, or why it can't be read; `None` if there is no such topic. Of those that a broker leads nothing is known yet, and they are added
/// to `led`.
fn logs_of(
    name: &str,
    topic: Option<&MetadataTopic>,
    description: Result<TopicDescription, RDKafkaErrorCode>,
    led: &mut ByBroker<Partition>,
) -> Option<Result<BTreeMap<i32, LogAnswer>, Box<str>>> {
    let error = topic.and_then(MetadataTopic::error).map(RDKafkaErrorCode::from);
    let class = error.or(description.err()).map(ErrorClass::from);
    if class == Some(ErrorClass::TopicForbidden) {
        return Some(Err(may_not_describe(name).into()));
    }
    let topic = topic.filter(|_| class != Some(ErrorClass::UnknownTopic))?;
    if description.is_ok_and(|description| description.rights.is_some_and(|rights| !rights.read)) {
        return Some(Err(may_not_read(name).into()));
    }
    if let Some(code) = error {
        return Some(Err(format!("topic \"{name}\": {}", plain(code)).into()));
    }
    let mut logs: BTreeMap<i32, LogAnswer> = BTreeMap::new();
    for partition in topic.partitions() {
        if partition.leader() < 0 {
            let why = format!("topic \"{name}\": partition {} has no leader", partition.id());
            logs.insert(partition.id(), Err(why.into()));
        } else {
            led.entry(partition.leader()).or_default().insert((name.into(), partition.id()));
        }
    }
    Some(Ok(logs))
}

/// A consumer of any topics. It is not told of a log's end: the asker compares what was read with the ends of the logs.
fn consumer(access: &Access) -> Result<PartitionConsumer, ClientError> {
    PartitionConsumer::new(&config(access), access, None).map_err(|error| client_error(&error))
}

fn config(access: &Access) -> ClientConfig {
    let mut config = access.reader();
    config.set("enable.partition.eof", "false");
    if config.get(FETCH_WAIT).is_none() {
        // A broker answers a connection's requests in turn: each of the asker's five questions waits for a fetch, by default for half a second.
        config.set(FETCH_WAIT, "100");
    }
    config
}

/// In a question for offsets: the first record at or after this time in milliseconds since 1970.
fn at_ms(ms: u64) -> Offset {
    Offset::Offset(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::RDKafkaRespErr;

    use super::*;
    use crate::election::Properties;

    #[test]
    fn a_topic_of_which_brokers_report_an_error_is_not_one_without_partitions() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("a.neli", 1, 1).unwrap();
        cluster.topic_error("a.neli", RDKafkaRespErr::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR).unwrap();
        let consumer = consumer(&Access::at(&cluster.bootstrap_servers(), &Properties::default())).unwrap();
        let metadata = consumer.consumer().fetch_metadata(None, Duration::from_secs(60)).unwrap();
        let topic = &metadata.topics()[0];
        let logs = logs_of(topic.name(), Some(topic), Ok(UNNAMED), &mut BTreeMap::new());
        let why = "topic \"a.neli\": Disk error when trying to access log file on disk";
        assert_eq!(logs, Some(Err(why.into())));
    }

    #[test]
    fn a_fetch_holds_up_no_question_for_long_unless_the_user_says_so() {
        let wait = |properties: &[(String, String)]| {
            let access = Access::at("localhost:9092", &Properties(properties.into()));
            config(&access).get(FETCH_WAIT).map(str::to_owned)
        };
        assert_eq!(wait(&[]).as_deref(), Some("100"));
        assert_eq!(wait(&[(FETCH_WAIT.to_owned(), "20".to_owned())]).as_deref(), Some("20"));
    }
}
