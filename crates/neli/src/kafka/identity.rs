//! Asks which topic exists under the election's name, in a thread of its own, on the producer's connections.
//!
//! The reader's connections are not used: there a question waits behind the fetch for the next record, half a second while nothing is
//! written. The broker that leads a partition is asked, because it is the one that appends; if it does not answer, another is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::{MetadataBroker, MetadataPartition, MetadataTopic};
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::election::Elections;
use crate::kafka::answer_limit::AnswerLimit;
use crate::kafka::error_class::plain;
use crate::kafka::event::KafkaEvent;
use crate::kafka::librdkafka::{Besides, TopicDescription, describe_topic};
use crate::kafka::rebootstrap::Rebootstrap;

/// How long one broker has for its answer at least: librdkafka takes a connection for dead after as long, unless the user sets it
/// otherwise.
const ANSWER: Duration = Duration::from_secs(2);
/// The time between two attempts while no broker answers.
const RETRY: Duration = Duration::from_millis(200);

/// Asks on request. Dropping it ends the thread once the present question is over.
pub(super) struct Identifier {
    orders: mpsc::Sender<Option<i32>>,
    stopped: Arc<AtomicBool>,
}

impl Identifier {
    /// Starts the thread; each answer goes to `events`. No answer is waited for longer than half a `lease`: later ones confirm little, and on
    /// a connection that has died without a word another question must be asked before the lease is over.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub(super) fn start<C: ProducerContext + 'static>(
        producer: Arc<BaseProducer<C>>,
        rebootstrap: Arc<Rebootstrap>,
        elections: &Elections,
        lease: Duration,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, std::io::Error> {
        let (orders, received) = mpsc::channel::<Option<i32>>();
        let stopped = Arc::new(AtomicBool::new(false));
        let (elections, ended) = (elections.clone(), Arc::clone(&stopped));
        thread::Builder::new().name("neli-topic-id".to_owned()).spawn(move || {
            let is_over = || ended.load(Ordering::Relaxed) || events.is_closed();
            // The time limit also holds for the next question: a slow link stays slow.
            let mut answer_limit = AnswerLimit::new(ANSWER, ANSWER).at_most(ANSWER.max(lease / 2));
            while let Ok(mut partitions) = received.recv() {
                // Two requests get one answer.
                while let Ok(later) = received.try_recv() {
                    partitions = later.or(partitions);
                }
                let mut question = Question { counted: partitions, ..Question::default() };
                while !is_over() {
                    let asked = clock::now();
                    let answered = question.ask(producer.client(), &elections, &mut answer_limit);
                    for answer in answered.events {
                        let _ = events.blocking_send(answer);
                    }
                    let Some(code) = answered.missing else {
                        rebootstrap.answered();
                        break;
                    };
                    rebootstrap.unanswered(producer.client());
                    let (waited, next) = (clock::now().since(asked), answer_limit.limit());
                    let _ = events.blocking_send(KafkaEvent::Debug(format!(
                        "the topic's id was not confirmed within {} ms ({}): asking again, for {} ms",
                        waited.as_millis(),
                        plain(code),
                        next.as_millis()
                    )));
                    thread::park_timeout(RETRY);
                }
            }
        })?;
        Ok(Self { orders, stopped })
    }

    /// Has it ask, again and again until there is an answer. Roles are in the partitions that they have in a topic of so many; where
    /// that is not known, of as many as it has.
    pub(super) fn ask(&self, partitions: Option<i32>) {
        // The thread has gone with the loop that it spoke to.
        let _ = self.orders.send(partitions);
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// The partitions whose topic is still to be confirmed, and the brokers that did not answer that question.
#[derive(Default)]
struct Question {
    /// The number of partitions in which the roles are placed.
    counted: Option<i32>,
    /// Empty for all that are in use.
    partitions: BTreeSet<i32>,
    silent: BTreeSet<i32>,
}

/// The result of a question.
struct Answered {
    events: Vec<KafkaEvent>,
    /// Why the question is to be repeated for some partitions, if it is.
    missing: Option<RDKafkaErrorCode>,
}

impl Question {
    /// Asks each broker that leads one of the partitions, and another in place of one that did not answer. Gives the answers; what is
    /// left of the question is to be asked again.
    fn ask(
        &mut self,
        client: &Client<impl ClientContext>,
        elections: &Elections,
        answer_limit: &mut AnswerLimit,
    ) -> Answered {
        let (limit, asked) = (answer_limit.ask(), clock::now());
        let metadata = match client.fetch_metadata(Some(&elections.topic), limit) {
            Ok(metadata) => metadata,
            Err(error) => {
                let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
                note_no_answer(answer_limit, asked);
                return Answered { events: Vec::new(), missing: Some(code) };
            }
        };
        answer_limit.answered(asked);
        let topic = metadata.topics().iter().find(|topic| topic.name() == elections.topic);
        let partitions = topic.map(MetadataTopic::partitions).unwrap_or_default();
        let count = i32::try_from(partitions.len()).unwrap_or(i32::MAX);
        // Of a topic that is missing no partition is known: that it is missing is the answer for each that was in use.
        let mut wanted = mem::take(&mut self.partitions);
        if wanted.is_empty() {
            wanted = elections.partitions_in_use(self.counted.unwrap_or(count).max(1));
        }
        let mut by_leader: BTreeMap<Option<i32>, Vec<i32>> = BTreeMap::new();
        for partition in wanted {
            let leader = partitions.iter().find(|it| it.id() == partition).map(MetadataPartition::leader);
            by_leader.entry(leader.filter(|leader| *leader >= 0)).or_default().push(partition);
        }
        let brokers: Vec<i32> = metadata.brokers().iter().map(MetadataBroker::id).collect();
        let (mut events, mut missing) = (Vec::new(), None);
        for (leader, partitions) in by_leader {
            let broker = leader.into_iter().chain(brokers.iter().copied()).find(|broker| !self.silent.contains(broker));
            let (limit, asked) = (answer_limit.ask(), clock::now());
            let describe = |broker| describe_topic(client, &elections.topic, Some(broker), limit, Besides::Nothing);
            match broker.map(|broker| (broker, describe(broker))) {
                Some((_, Ok(TopicDescription { identity, partitions: count, .. }))) => {
                    answer_limit.answered(asked);
                    events.push(KafkaEvent::Identified { asked, identity, count, partitions });
                }
                Some((broker, Err(code))) => {
                    note_no_answer(answer_limit, asked);
                    missing = Some(code);
                    self.silent.insert(broker);
                    self.partitions.extend(partitions);
                }
                // No broker has answered, so each is asked again.
                None => {
                    missing.get_or_insert(RDKafkaErrorCode::AllBrokersDown);
                    self.silent.clear();
                    self.partitions.extend(partitions);
                }
            }
        }
        Answered { events, missing }
    }
}

/// There was no answer: the next one has more time, unless the question failed before its time was over.
fn note_no_answer(answer_limit: &mut AnswerLimit, asked: Time) {
    if clock::now().since(asked) >= answer_limit.limit() {
        answer_limit.was_too_short();
    }
}
