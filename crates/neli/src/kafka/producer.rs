//! Appends to the journal.

mod deliveries;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::election::{ElectionId, Elections};
use crate::kafka::access::Access;
use crate::kafka::answer_limit::AnswerLimit;
use crate::kafka::context::explain;
use crate::kafka::embedded;
use crate::kafka::error_class::{ErrorClass, plain};
use crate::kafka::event::KafkaEvent;
use crate::kafka::group_right::{Answer, GroupQuestion};
use crate::kafka::identity::Identifier;
use crate::kafka::librdkafka::{MainQueue, Waker, topic_identity};
use crate::kafka::topic::{self, Presence, TopicError};
use crate::text::{self, ClientError};
use deliveries::{Deliveries, Sent, reason};

/// The time limit of the question that opens the producer's connection.
const WARMING: Duration = Duration::from_secs(16);
/// The least time limit of any other question.
const ANSWER: Duration = Duration::from_secs(2);
/// The time between two checks for a topic that is about to be created.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The time between two questions while there is no answer.
const RETRY: Duration = Duration::from_millis(200);
/// The time that the group's coordinator has for its answer beyond twice the time of the topic's settings.
const COORDINATOR_ALLOWANCE: Duration = Duration::from_secs(1);
/// The time limit of the question which right is missing.
const LOOK: Duration = Duration::from_secs(1);

/// Writes the records of a topic's elections, and reports the outcome of each.
///
/// Dropping it gives up the records still in flight, in a thread of its own.
pub struct Producer {
    inner: Arc<BaseProducer<Deliveries>>,
    elections: Elections,
    /// Asks for the topic's id; none for the embedded broker.
    identifier: Option<Identifier>,
    // Declared after the client: that thread drops the last reference to it.
    polling: Polling,
}

/// The thread that handles deliveries. Dropping it ends the thread without waiting for it, because ending librdkafka takes up to half a
/// second.
struct Polling {
    stopped: Arc<AtomicBool>,
    waker: Waker,
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

impl Producer {
    /// A producer that gives a record up `timeout` after it was sent. It connects in the background, also to each partition's leader, so
    /// that the first record finds an open connection.
    ///
    /// The outcome of each record is reported to `events`.
    ///
    /// # Errors
    ///
    /// librdkafka's reason about a property, or about a certificate or login that it can't use; never a secret's value.
    pub fn start(
        access: &Access,
        elections: &Elections,
        timeout: Duration,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, ClientError> {
        let producer = Self::without_questions(access, elections, timeout, events.clone())?;
        let broker = access.embedded.is_some().then_some(embedded::BROKER_ID);
        warm(&producer.inner, &producer.polling.stopped, elections, broker);
        let identifier = match access.embedded {
            Some(_) => None,
            None => Some(
                Identifier::start(
                    Arc::clone(&producer.inner),
                    producer.inner.context().rebootstrap(),
                    elections,
                    timeout,
                    events,
                )
                .map_err(|error| {
                    ClientError(format!("no thread that asks for the topic's id: {}", text::reason(&error)))
                })?,
            ),
        };
        Ok(Self { identifier, ..producer })
    }

    /// A producer that connects only when a record is sent, and asks for nothing.
    fn without_questions(
        access: &Access,
        elections: &Elections,
        timeout: Duration,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, ClientError> {
        let context = Deliveries::reported_to(events, access, timeout);
        let config: ClientConfig = access.producer(timeout);
        let producer =
            BaseProducer::from_config_and_context(&config, context).map_err(|error| ClientError(explain(&error)))?;
        let inner = Arc::new(producer);
        let no_thread = |error| ClientError(format!("no thread for the journal's producer: {}", text::reason(&error)));
        let queue = MainQueue::of(inner.client()).map_err(no_thread)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let polling = Polling { stopped: Arc::clone(&stopped), waker: queue.waker() };
        let (polled, ended, of) = (Arc::clone(&inner), Arc::clone(&stopped), elections.clone());
        thread::Builder::new()
            .name("neli-producer".to_owned())
            .spawn(move || {
                // Each delivery is handled the moment it arrives. The thread does not wait in `poll`, in which
                // librdkafka waits whole milliseconds and spins for the rest of the last one: half of an idle
                // candidate's processor time.
                while !ended.load(Ordering::Relaxed) {
                    polled.poll(Duration::ZERO);
                    if polled.context().forbidden.swap(false, Ordering::Relaxed) {
                        let error = why_forbidden(&polled, &of);
                        let _ = polled.context().events.blocking_send(KafkaEvent::Refused { error });
                    }
                    queue.wait(polled.context().rebootstrap().after_poll(polled.client()));
                }
                // The queue must be dropped before the client.
                drop(queue);
            })
            .map_err(no_thread)?;
        Ok(Self { inner, elections: elections.clone(), identifier: None, polling })
    }

    /// Asks for what R0 judges, in a thread of its own, until there is an answer: [`KafkaEvent::Topic`]. On the producer's connections: on the
    /// reader's an answer waits behind the fetch that waits for the next record. `joins_group`: whether this user may join the group is asked
    /// beside it, by a client of its own for `access`, and is part of the answer, unless the coordinator does not say so in time.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub fn judge(&self, access: &Access, joins_group: bool) -> Result<(), std::io::Error> {
        let (producer, elections, stopped) =
            (Arc::clone(&self.inner), self.elections.clone(), Arc::clone(&self.polling.stopped));
        let question = joins_group.then(|| GroupQuestion::ask(access, &elections));
        // Without this thread, the refusal of the member's join comes later and gives the same reason.
        let mut question = question.and_then(Result::ok);
        thread::Builder::new().name("neli-topic".to_owned()).spawn(move || {
            let context = producer.context();
            let mut answer_limit = AnswerLimit::new(WARMING, ANSWER);
            let mut missing_since = None;
            while !stopped.load(Ordering::Relaxed) && !context.events.is_closed() {
                let asked = clock::now();
                match topic::facts(producer.client(), &elections, &mut answer_limit) {
                    Ok(facts) => {
                        // With one replica no lease helps when its broker dies. The leader is not asked: it has the claim to answer.
                        let broker = facts.layout.besides_leader().next().filter(|_| facts.layout.replicas.len() > 1);
                        let took = clock::now().since(asked);
                        if let Some(question) = question.take()
                            && let Err(refusal) = await_group(context, &elections.group, question, took)
                        {
                            return context.send(KafkaEvent::Refused { error: refusal });
                        }
                        context.send(KafkaEvent::Topic { asked, facts });
                        // The answer is not waited for, and the question is not repeated.
                        if let Some(broker) = broker
                            && let Some(session) = topic::broker_session(producer.client(), broker, ANSWER)
                        {
                            context.send(KafkaEvent::BrokerSession(session));
                        }
                        return;
                    }
                    Err(TopicError::Refused(error)) => return context.send(KafkaEvent::Refused { error }),
                    // The reader creates the topic, or reports why not.
                    Err(TopicError::Transient(code)) if ErrorClass::from(code) == ErrorClass::UnknownTopic => {
                        let is_new = clock::now().since(*missing_since.get_or_insert_with(clock::now));
                        thread::park_timeout(if is_new < RETRY { LOOK_AGAIN } else { RETRY });
                    }
                    Err(TopicError::Transient(code)) => {
                        let limit = answer_limit.limit().as_millis();
                        if ErrorClass::from(code) == ErrorClass::Connection {
                            answer_limit.was_too_short();
                        }
                        let next = answer_limit.limit().as_millis();
                        context.send(KafkaEvent::Debug(format!(
                            "how the topic is set is not known after {limit} ms ({}): asking again, for {next} ms",
                            plain(code)
                        )));
                        thread::park_timeout(RETRY);
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Hands a record of this election over, and returns at once: what becomes of it is reported with its role and `seq`; without `seq` only
    /// that it was delivered, as of a hello ([`KafkaEvent::HelloDelivered`]). A record without a payload is a tombstone: compaction deletes
    /// what stands under its key.
    ///
    /// # Errors
    ///
    /// The queue is full (1,000 records) or the record too large; nothing more is reported of `seq` then.
    pub fn send(
        &self,
        election: &ElectionId,
        seq: Option<u64>,
        key: &str,
        payload: Option<&[u8]>,
    ) -> Result<(), ClientError> {
        let opaque = Box::new(seq.map_or(Sent::Hello, |seq| Sent::Record { role: election.role, seq }));
        let mut record = BaseRecord::with_opaque_to(&election.topic, opaque).partition(election.partition).key(key);
        record.payload = payload;
        self.inner.send(record).map_err(|(error, _)| ClientError(reason(&error)))
    }

    /// Hands over a hello of a process with many roles, for partition 0, and returns at once: only that it was delivered is reported
    /// ([`KafkaEvent::HelloDelivered`]).
    ///
    /// # Errors
    ///
    /// The queue is full (1,000 records) or the hello too large.
    pub fn say_hello(&self, payload: &[u8]) -> Result<(), ClientError> {
        let (topic, key) = (&self.elections.topic, self.elections.hello_key());
        let record = BaseRecord::with_opaque_to(topic, Box::new(Sent::Hello)).partition(0).key(&key).payload(payload);
        self.inner.send(record).map_err(|(error, _)| ClientError(reason(&error)))
    }

    /// Queues a fact for partition 0 of the topic of facts, and returns at once. The outcome is reported with `id`.
    ///
    /// # Errors
    ///
    /// The queue is full (1,000 records) or the fact too large; nothing more is reported of `id` then.
    pub fn append_fact(&self, id: u32, topic: &str, key: &str, payload: &[u8]) -> Result<(), ClientError> {
        let record = BaseRecord::with_opaque_to(topic, Box::new(Sent::Fact(id))).partition(0).key(key).payload(payload);
        self.inner.send(record).map_err(|(error, _)| ClientError(reason(&error)))
    }

    /// Asks which topic stands under the topic's name, until there is an answer: [`KafkaEvent::Identified`]. Roles are in the partitions
    /// that they have in a topic of so many.
    pub fn identify(&self, partitions: Option<i32>) {
        if let Some(identifier) = &self.identifier {
            identifier.ask(partitions);
        }
    }
}

/// Waits for what the group's coordinator says, but not much longer than the `took` that the topic's settings took: an election does not
/// depend on the coordinator, which may be away.
fn await_group(context: &Deliveries, group: &str, question: GroupQuestion, took: Duration) -> Result<(), String> {
    let limit = took * 2 + COORDINATOR_ALLOWANCE;
    match question.wait(limit) {
        Some(Answer::MayJoin) => {}
        Some(Answer::Refused(error)) => return Err(error),
        None => context.send(KafkaEvent::Warning(format!(
            "group \"{group}\": its coordinator has not answered within {} ms, so it is unknown whether this user may join the group; the \
             election goes on without the answer, and if the coordinator later refuses this user, the job is stopped and this candidate exits \
             with 125",
            limit.as_millis()
        ))),
    }
    Ok(())
}

/// Connects to a broker at once, and then to each partition's leader. The answers do not matter.
///
/// librdkafka closes the first connection when it has learnt which brokers there are, and takes another one for questions to any broker
/// only 11 ms later (`rd_kafka_connect_any`). To a broker that a question is for it connects without that wait. The first one is for
/// `broker`; where none is named, for what librdkafka takes for the controller, which is any broker that lives.
fn warm(
    producer: &Arc<BaseProducer<Deliveries>>,
    stopped: &Arc<AtomicBool>,
    elections: &Elections,
    broker: Option<i32>,
) {
    let (producer, stopped, of) = (Arc::clone(producer), Arc::clone(stopped), elections.clone());
    let ask = move || {
        let _ = topic_identity(producer.client(), &of.topic, broker, WARMING);
        // Not where the leader ends: that question would wait in librdkafka's queue, and end a slow login when it is over.
        let found = loop {
            match topic::look(producer.client(), &of, WARMING) {
                Ok(Presence::There(found)) if found.is_whole || broker.is_none() => break found,
                // Nobody judges the embedded broker's topic, and librdkafka itself looks for a missing one ever more seldom: the claim would
                // wait up to a second.
                Ok(_) if broker.is_some() => {
                    if producer.context().events.is_closed() || stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::park_timeout(LOOK_AGAIN);
                }
                Ok(_) | Err(_) => return,
            }
        };
        let leaders: BTreeSet<i32> = found.layouts.values().map(|layout| layout.leader).collect();
        for leader in leaders {
            let _ = topic_identity(producer.client(), &of.topic, Some(leader), WARMING);
        }
    };
    // Without this thread the first record takes a little longer.
    let _ = thread::Builder::new().name("neli-warm".to_owned()).spawn(ask);
}

/// The missing right, if a record was refused because of one: librdkafka has the same code for all rights to a topic.
fn why_forbidden(producer: &BaseProducer<Deliveries>, elections: &Elections) -> String {
    match topic::look(producer.client(), elections, LOOK) {
        Err(TopicError::Refused(error)) => error,
        Ok(_) | Err(TopicError::Transient(_)) => topic::may_not_write(&elections.topic),
    }
}

#[cfg(test)]
mod tests;
