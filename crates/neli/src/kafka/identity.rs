//! Which topic stands under the election's name: asked by a thread of its own, on the producer's connections.
//!
//! Not on the reader's: there a question waits behind the fetch that waits for the next record, half a second while nothing is
//! written. The broker that leads the partition is asked, since it is the one that appends; where it does not answer, another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::election::Election;
use crate::kafka::event::KafkaEvent;
use crate::kafka::librdkafka::topic_identity;

/// How long one broker has for its answer: librdkafka takes a connection for dead after as long.
const ANSWER: Duration = Duration::from_secs(2);
/// Between two tries while nobody answers.
const RETRY: Duration = Duration::from_millis(200);

/// Asks when told to. Dropping it ends the thread, once the question that is under way is over.
pub(super) struct Identifier {
    orders: mpsc::Sender<()>,
    stopped: Arc<AtomicBool>,
}

impl Identifier {
    /// Starts the thread; each answer goes to `events`.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub(super) fn start<C: ProducerContext + 'static>(
        producer: Arc<BaseProducer<C>>,
        election: &Election,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, std::io::Error> {
        let (orders, received) = mpsc::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let (election, ended) = (election.clone(), Arc::clone(&stopped));
        thread::Builder::new().name("neli-topic-id".to_owned()).spawn(move || {
            let is_over = || ended.load(Ordering::Relaxed) || events.is_closed();
            let mut silent = None;
            while received.recv().is_ok() {
                // Whoever asked twice has one answer.
                while received.try_recv().is_ok() {}
                while !is_over() {
                    if let Ok(answer) = ask(producer.client(), &election, &mut silent) {
                        let _ = events.blocking_send(answer);
                        break;
                    }
                    thread::park_timeout(RETRY);
                }
            }
        })?;
        Ok(Self { orders, stopped })
    }

    /// Has it ask, again and again until there is an answer.
    pub(super) fn ask(&self) {
        // The thread has gone with the loop that it spoke to.
        let _ = self.orders.send(());
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Asks once; `silent` is the broker that did not answer the last time.
fn ask(
    client: &Client<impl ClientContext>,
    election: &Election,
    silent: &mut Option<i32>,
) -> Result<KafkaEvent, RDKafkaErrorCode> {
    let broker = choose(client, election, silent.take())?;
    let asked = clock::now();
    let identity = topic_identity(client, &election.topic, broker, ANSWER);
    if identity.is_err() {
        *silent = Some(broker);
    }
    identity.map(|identity| KafkaEvent::Identified { asked, identity })
}

/// The broker that leads the partition, unless that is the one to be avoided or none does; else any other.
fn choose(
    client: &Client<impl ClientContext>,
    election: &Election,
    avoided: Option<i32>,
) -> Result<i32, RDKafkaErrorCode> {
    let metadata = client.fetch_metadata(Some(&election.topic), ANSWER);
    let metadata = metadata.map_err(|error| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail))?;
    let topic = metadata.topics().iter().find(|topic| topic.name() == election.topic);
    let partition = topic.and_then(|topic| topic.partitions().iter().find(|it| it.id() == election.partition));
    let leader = partition.map(rdkafka::metadata::MetadataPartition::leader).filter(|leader| *leader >= 0);
    let mut brokers = leader.into_iter().chain(metadata.brokers().iter().map(rdkafka::metadata::MetadataBroker::id));
    brokers.clone().find(|broker| Some(*broker) != avoided).or_else(|| brokers.next()).ok_or(RDKafkaErrorCode::Fail)
}
