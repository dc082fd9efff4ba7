//! Appends to the journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use neli_proto::fact::FactsEvent;
use nix::sys::eventfd::EventFd;
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::context::{KafkaContext, client_error};
use crate::election::{ElectionId, Elections};
use crate::error_class::{ErrorClass, of_refused_append, plain};
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::{MainQueue, may_be_in_log, topic_identity};
use crate::questions::{ANSWER, AnswerLimit, LONGEST, LOOK_AGAIN, RETRY};
use crate::text::ClientError;
use crate::threads::{self, locked};
use crate::topic::{self, Presence, TopicError};
use crate::{clock, embedded, identity};

/// Writes the records of a topic's elections, and reports the outcome of each.
///
/// Dropping it gives up the records that are still in flight, in a thread of its own.
pub struct Producer {
    inner: Arc<BaseProducer<Deliveries>>,
    /// The requests for the topic's id; none with the embedded broker.
    identities: Option<mpsc::Sender<Option<i32>>>,
    // Declared after the client: that thread drops the last reference to it.
    _polling: Polling,
}

/// The thread that handles deliveries. Dropping it ends the thread without waiting for it, because ending librdkafka takes up to half a
/// second.
struct Polling {
    stopped: Arc<AtomicBool>,
    waker: Arc<EventFd>,
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // It fails only if the counter of unseen wake-ups overflows.
        let _ = self.waker.write(1);
    }
}

impl Producer {
    /// A producer that gives up a record `timeout` after it was sent. It connects in the background, also to each partition's leader, so
    /// that the first record finds an open connection.
    ///
    /// The outcome of each record is reported to `events`.
    ///
    /// # Errors
    ///
    /// librdkafka's reason about a property, or about a certificate or login that it can't use; never a secret's value. Or a thread can't
    /// be started.
    pub fn start(
        access: &Access,
        elections: &Elections,
        timeout: Duration,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, ClientError> {
        let producer = Self::without_questions(access, elections, timeout, events.clone())?;
        warm(&producer.inner);
        let no_thread = |error| ClientError::of_system("no thread that asks for the topic's id", &error);
        let client = Arc::clone(&producer.inner);
        let start = || identity::start(client, |of: &Deliveries| &of.context, elections, timeout, events);
        let identities = access.embedded.is_none().then(start).transpose().map_err(no_thread)?;
        Ok(Self { identities, ..producer })
    }

    /// A producer that connects only when a record is sent, and asks for nothing.
    fn without_questions(
        access: &Access,
        elections: &Elections,
        timeout: Duration,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, ClientError> {
        let stopped = Arc::new(AtomicBool::new(false));
        let context = Deliveries {
            context: KafkaContext::new(access),
            stopped: Arc::clone(&stopped),
            events,
            elections: elections.clone(),
            refused: AtomicBool::new(false),
            fact_refused: Mutex::default(),
            timeout,
        };
        let config: ClientConfig = access.producer(timeout);
        let producer = BaseProducer::from_config_and_context(&config, context).map_err(|error| client_error(&error))?;
        let inner = Arc::new(producer);
        let no_thread = |error| ClientError::of_system("no thread for the journal's producer", &error);
        let queue = MainQueue::of(inner.client()).map_err(no_thread)?;
        let polling = Polling { stopped, waker: queue.waker() };
        let polled = Arc::clone(&inner);
        threads::start("neli-producer", move || {
            // Each delivery is handled as soon as it arrives. The thread does not wait in `poll`: librdkafka waits whole milliseconds
            // there and spins for the rest of the last one, which takes half of an idle candidate's processor time.
            while !polled.context().stopped.load(Ordering::Relaxed) {
                polled.poll(Duration::ZERO);
                queue.wait(polled.context().context.rebootstrap.after_poll(polled.client()));
            }
            // The queue must be dropped before the client.
            drop(queue);
        })
        .map_err(no_thread)?;
        Ok(Self { inner, identities: None, _polling: polling })
    }

    /// Asks for the facts that R0 judges, in a thread of its own, until there is an answer: [`KafkaEvent::Topic`]. The question uses the
    /// producer's connections: on the reader's, it would wait behind the fetch for the next record.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub(crate) fn judge(&self) -> Result<(), std::io::Error> {
        let producer = Arc::clone(&self.inner);
        threads::start("neli-topic", move || {
            let context = producer.context();
            let mut answer_limit = AnswerLimit::new(LONGEST, ANSWER);
            let mut missing_since = None;
            while !context.is_over() {
                let asked = clock::now();
                match topic::facts(producer.client(), &context.elections, &mut answer_limit) {
                    Ok(facts) => {
                        // With one replica the broker's session timeout is irrelevant, because no other broker takes over the partition. The
                        // partition's leader is not asked, because it must answer the claim.
                        let broker = facts
                            .layout
                            .besides_leader()
                            .next()
                            .filter(|_| facts.layout.replicas.values().any(|of| of.len() > 1));
                        context.send(KafkaEvent::Topic { asked, facts });
                        // No other code waits for this answer, and the question is not repeated.
                        if let Some(broker) = broker
                            && let Some(session) = topic::broker_session(producer.client(), broker, ANSWER)
                        {
                            context.send(SessionEvent::BrokerSession(session));
                        }
                        return;
                    }
                    Err(TopicError::Refused(error)) => {
                        return context.send(SessionEvent::Refused { role: None, error });
                    }
                    // The reader creates the topic, or reports why it can't.
                    Err(TopicError::Transient(error)) if ErrorClass::from(error.code) == ErrorClass::UnknownTopic => {
                        let is_new = clock::now().since(*missing_since.get_or_insert_with(clock::now));
                        thread::park_timeout(if is_new < RETRY { LOOK_AGAIN } else { RETRY });
                    }
                    Err(TopicError::Transient(error)) => {
                        let limit = answer_limit.limit().as_millis();
                        if ErrorClass::from(error.code) == ErrorClass::Connection {
                            answer_limit.unanswered(asked);
                        }
                        let next = answer_limit.limit().as_millis();
                        context.send(SessionEvent::Debug(format!(
                            "how the topic is set is not known after {limit} ms ({}): asking again, for {next} ms",
                            error.text
                        )));
                        thread::park_timeout(RETRY);
                    }
                }
            }
        })
    }

    /// Queues a record of this election, and returns at once. Its outcome is reported with its role and `seq`. Without `seq` only its
    /// delivery is reported, as for a hello ([`SessionEvent::HelloDelivered`]). A record without a payload is a tombstone: compaction deletes
    /// the records with its key.
    ///
    /// # Errors
    ///
    /// The queue is full (1,000 records) or the record is too large; then no event follows for `seq`.
    pub fn send(
        &self,
        election: &ElectionId,
        seq: Option<u64>,
        key: &str,
        payload: Option<&[u8]>,
    ) -> Result<(), String> {
        let sent = Sent::Journal(seq.map(|seq| (election.role, seq)));
        self.queue((&election.topic, election.partition), key, payload, sent)
    }

    fn queue(
        &self,
        (topic, partition): (&str, i32),
        key: &str,
        payload: Option<&[u8]>,
        sent: Sent,
    ) -> Result<(), String> {
        let mut record = BaseRecord::with_opaque_to(topic, Box::new(sent)).partition(partition).key(key);
        record.payload = payload;
        self.inner.send(record).map_err(|(error, _)| reason(&error))
    }

    /// Queues a fact for partition 0 of the topic of facts, and returns at once. The outcome is reported with `id`.
    ///
    /// # Errors
    ///
    /// The queue is full (1,000 records) or the fact is too large; then no event follows for `id`.
    pub(crate) fn append_fact(&self, id: u32, topic: &str, key: &str, payload: &[u8]) -> Result<(), String> {
        self.queue((topic, 0), key, Some(payload), Sent::Fact(id))
    }

    /// Asks which topic exists under the topic's name, until there is an answer: [`KafkaEvent::Identified`]. `partitions` is the number of
    /// partitions by which roles are assigned to partitions; `None` means the number that the topic has now. With the embedded broker
    /// nothing is asked.
    pub(crate) fn identify(&self, partitions: Option<i32>) {
        if let Some(identities) = &self.identities {
            // An error means that the thread has ended, and then no code waits for the answer.
            let _ = identities.send(partitions);
        }
    }
}

/// Connects to a broker at once, and then to each partition's leader. The answers are not used.
///
/// librdkafka closes the first connection when it has learnt which brokers exist. For questions to any broker it opens another one only 11
/// ms later (`rd_kafka_connect_any`); for a question to a certain broker it connects at once. So the first question is for the embedded broker,
/// or else for the broker that librdkafka takes for the controller, which is any broker that is up.
fn warm(producer: &Arc<BaseProducer<Deliveries>>) {
    let producer = Arc::clone(producer);
    let ask = move || {
        let context = producer.context();
        let (of, is_embedded) = (&context.elections, context.context.access.embedded.is_some());
        let broker = is_embedded.then_some(embedded::BROKER_ID);
        let _ = topic_identity(producer.client(), &of.topic, broker, LONGEST);
        // The logs' bounds are not asked for: that question would wait in librdkafka's queue, and when its time is over, librdkafka would
        // close a connection whose login is slow.
        let leaders = loop {
            match topic::look(producer.client(), of, LONGEST) {
                Ok(Presence::There { leaders, is_whole, .. }) if is_whole || !is_embedded => break leaders,
                // R0 does not judge the embedded broker's topic. librdkafka itself looks for a missing topic less and less often, so a
                // claim would wait up to a second.
                Ok(_) if is_embedded && !context.is_over() => thread::park_timeout(LOOK_AGAIN),
                Ok(_) | Err(_) => return,
            }
        };
        for leader in leaders {
            let _ = topic_identity(producer.client(), &of.topic, Some(leader), LONGEST);
        }
    };
    // Without this thread the first record only takes a little longer.
    let _ = threads::start("neli-warm", ask);
}

// ---- the outcome of each record that was queued: translates librdkafka's delivery reports to [`KafkaEvent`]s -------

/// A record that was queued.
enum Sent {
    /// A fact, by its number.
    Fact(u32),
    /// A record of the journal, with the role of its election and its number; none if its delivery alone is reported, as that of a hello of many
    /// roles, or of the last one.
    Journal(Option<(u32, u64)>),
}

/// The producer's context: it translates librdkafka's delivery reports to [`KafkaEvent`]s.
struct Deliveries {
    context: KafkaContext,
    /// The producer was dropped: it lives on in threads that ask by it.
    stopped: Arc<AtomicBool>,
    events: Sender<KafkaEvent>,
    /// The elections of whose journals the records are.
    elections: Elections,
    /// A record of the journal was refused, and none has been appended since.
    refused: AtomicBool,
    /// Why a fact was refused, if none has been appended since.
    fact_refused: Mutex<Option<String>>,
    /// How long after its sending a record is given up.
    timeout: Duration,
}

impl Deliveries {
    /// Whether the producer was dropped, or the receiver of its events is gone.
    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    fn send(&self, event: impl Into<KafkaEvent>) {
        // An error means that the receiver is gone and this producer is about to be dropped.
        let _ = self.events.blocking_send(event.into());
    }

    fn fact_delivered(&self, result: &DeliveryResult<'_>, id: u32) {
        let refused = locked(&self.fact_refused).take();
        let event = match result {
            Ok(message) => FactsEvent::Appended { id, offset: message.offset() },
            Err((error, message)) => {
                let code = error.rdkafka_error_code();
                self.note_forbidden(code, message.topic());
                // If a fact is sent again until its time is over, the code does not say why.
                let by_code = code.filter(|code| !ends_a_wait(*code));
                let why = by_code.map_or(refused, |code| of_refused_append(&plain(code)));
                let why = why.map(|why| format!("topic {:?} refuses them: {why}", message.topic()));
                FactsEvent::NotAppended { id, error: why.unwrap_or_else(|| reason(error)).into() }
            }
        };
        self.send(SessionEvent::Facts { id, event });
    }

    fn note_forbidden(&self, code: Option<RDKafkaErrorCode>, topic: &str) {
        if code.is_some_and(|code| ErrorClass::from(code) == ErrorClass::TopicForbidden) {
            self.send(SessionEvent::Refused { role: None, error: topic::may_not_write(topic) });
        }
    }

    fn refused(&self, error: String) {
        self.refused.store(true, Ordering::Relaxed);
        self.tell_refused(error);
    }

    fn tell_refused(&self, error: String) {
        if !self.stopped.load(Ordering::Relaxed) {
            self.send(SessionEvent::AppendRefused { error });
        }
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        // librdkafka reports no delivery of a record that it retries until it gives up, and that report lacks the reason. So the reason is
        // taken from the log.
        match refused_append(line) {
            Some((topic, error)) if topic == self.elections.topic => self.refused(error),
            Some((_, error)) => *locked(&self.fact_refused) = Some(error),
            None => {}
        }
        if !matches!(level, RDKafkaLogLevel::Debug) || self.context.access.users_debug().is_some() {
            self.context.log(level, facility, line);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The reader is connected to the same brokers, and reports the error.
        self.context.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let record = match *sent {
            Sent::Fact(id) => return self.fact_delivered(result, id),
            Sent::Journal(record) => record,
        };
        let (error, message) = match result {
            Ok(_) => {
                self.refused.store(false, Ordering::Relaxed);
                self.context.rebootstrap.answered();
                return self.send(match record {
                    Some((role, seq)) => KafkaEvent::Delivered { role, seq },
                    None => SessionEvent::HelloDelivered.into(),
                });
            }
            Err((error, message)) => (error, message),
        };
        let code = error.rdkafka_error_code();
        if code == Some(RDKafkaErrorCode::MessageTimedOut) {
            self.context.rebootstrap.all_down();
            if !self.refused.load(Ordering::Relaxed) {
                self.tell_refused(format!("no acknowledgement within {} ms", self.timeout.as_millis()));
            }
        } else if let Some(code) = code.filter(|code| !ends_a_wait(*code)) {
            self.note_forbidden(Some(code), message.topic());
            if let Some(error) = of_refused_append(&plain(code)) {
                self.refused(error);
            }
        }
        if let Some((role, seq)) = record {
            // With `retries=0` a lost connection ends the delivery, too.
            let may_be_in_log = code.is_none_or(ends_a_wait) || may_be_in_log(message);
            self.send(KafkaEvent::NotDelivered { role, seq, error: reason(error), may_be_in_log });
        }
    }
}

/// The topic and the reason in librdkafka's debug line about an append that was refused; `None` for any other line. The line, which the property
/// `debug=msg` enables, is `TOPIC [0]: MessageSet with 1 message(s) (MsgId 0, BaseSeq -1) encountered error: Broker: WORDS (actions
/// Retry,..)`.
fn refused_append(line: &str) -> Option<(&str, String)> {
    let (records, message) = line.split_once(") encountered error: ")?;
    let (place, _) = records.split_once(": MessageSet with ")?;
    let (_, topic) = place.rsplit_once(" [")?.0.rsplit_once(' ')?;
    let (words, _) = message.split_once(" (actions ")?;
    Some((topic, of_refused_append(words)?))
}

/// Whether the code reports that no acknowledgement is awaited any more. A broker may have taken the record.
const fn ends_a_wait(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::MessageTimedOut | RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue)
}

/// Why a record was not appended, or not queued.
fn reason(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageTimedOut) => "no acknowledgement in time".to_owned(),
        Some(code) => plain(code),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
