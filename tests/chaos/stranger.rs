//! Other clients of the topic: one that keeps testing whether the topic stores records, and one that writes records and changes the topic.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::cluster;
use harness::judge::nanos;
use harness::kafka::Kafka;
use harness::wait;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

/// The interval between two test records.
const ASKS_EVERY: Duration = Duration::from_millis(200);

/// A topic that has stored no record for this long was out of order.
const OUTAGE: Duration = Duration::from_millis(1500);

/// Younger records may not be deleted (assumption 4). It is a little more than two minutes, since this machine's clock is not the broker's.
const MAY_BE_DELETED_AFTER: Duration = Duration::from_secs(130);

/// The longest wait for an action.
const IN_THE_MEANTIME: Duration = Duration::from_secs(5);

/// The actions.
pub(crate) enum Action {
    /// Deletes records older than two minutes.
    CutHead,
    /// Writes records until the log has this length; then sends a message.
    Fill(i64, Sender<()>),
    /// Makes this broker the partition's leader.
    MoveLeader(usize),
    /// Deletes the topic and creates it again.
    RemakeTopic,
    /// Deletes the topic and creates it again, slightly shorter; sends the length at which that can't be noticed.
    RemakeShorter(Sender<i64>),
    /// Writes records into a partition, each with an optional key and payload.
    Write(usize, Vec<(Option<String>, Option<Vec<u8>>)>),
}

/// The results of the test records of a partition.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// When the last record that was stored was sent.
    last_good: Option<u64>,
    /// The offsets of the last few minutes, with the times of sending.
    offsets: VecDeque<(u64, i64)>,
    /// The time spans in which the topic stored no record.
    outages: Vec<(u64, u64)>,
}

/// The two threads. They end when this is dropped.
pub(crate) struct Stranger {
    actions: Option<Sender<Action>>,
    said: Receiver<String>,
    answers: Arc<Mutex<Vec<Answers>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Stranger {
    /// Starts both.
    pub(crate) fn start(kafka: &Kafka, addresses: Vec<String>, topic: &str, partitions: usize) -> Self {
        let answers = Arc::new(Mutex::new((0..partitions).map(|_| Answers::default()).collect()));
        let (actions, parameters) = mpsc::channel();
        let (say, said) = mpsc::channel();
        let (over, asking_over) = mpsc::channel::<()>();
        let (client, name, seen) = (client(kafka), topic.to_owned(), Arc::clone(&answers));
        let asker = thread::spawn(move || ask(&client, &name, seen, &asking_over));
        let hand =
            Hand { client: self::client(kafka), addresses, topic: topic.to_owned(), answers: Arc::clone(&answers) };
        let doer = thread::spawn(move || {
            // It is dropped with this thread, so that the other thread ends after it.
            let _over = over;
            while let Ok(action) = parameters.recv() {
                let word = hand.perform(action).unwrap_or_else(|error| error);
                // At the end the receiver may be gone.
                let _ = say.send(word);
            }
        });
        Self { actions: Some(actions), said, answers, threads: vec![asker, doer] }
    }

    /// Requests an action; the result is reported later.
    pub(crate) fn ask(&self, action: Action) {
        let actions = self.actions.as_ref().expect("there until it is dropped");
        actions.send(action).expect("the thread listens until then");
    }

    /// Deletes the topic and creates it again, slightly shorter, and waits for that for a limited time. Returns the length at which a
    /// candidate that was cut off meanwhile can't notice it.
    pub(crate) fn remake_shorter(&self) -> Option<i64> {
        let (done, awaited) = mpsc::channel();
        self.ask(Action::RemakeShorter(done));
        awaited.recv_timeout(IN_THE_MEANTIME).ok()
    }

    /// Writes records until the log has this length, and waits for that for a limited time.
    pub(crate) fn fill(&self, end: i64) {
        let (done, awaited) = mpsc::channel();
        self.ask(Action::Fill(end, done));
        // The result is reported.
        let _ = awaited.recv_timeout(IN_THE_MEANTIME);
    }

    /// The results of actions since the last call.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// The last known offset of a partition.
    pub(crate) fn end(&self, partition: usize) -> i64 {
        self.answers()[partition].offsets.back().map_or(0, |(_, offset)| *offset)
    }

    /// Whether each partition has stored a record that was sent after `since`.
    pub(crate) fn was_taken_after(&self, since: u64) -> bool {
        self.answers().iter().all(|answers| answers.last_good.is_some_and(|good| good > since))
    }

    /// The time spans up to now in which a partition stored no record.
    pub(crate) fn outages(&self) -> Vec<(u64, u64)> {
        let now = wait::now();
        let of_one = |answers: &Answers| {
            let since = answers.last_good.unwrap_or_default();
            let lasting = (since + nanos(OUTAGE) < now).then_some((since, now));
            answers.outages.iter().copied().chain(lasting).collect::<Vec<_>>()
        };
        self.answers().iter().flat_map(of_one).collect()
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Answers>> {
        self.answers.lock().expect("no panic while it was locked")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.actions = None;
        for thread in self.threads.drain(..) {
            // The panic has been printed already.
            let _ = thread.join();
        }
    }
}

fn client(kafka: &Kafka) -> ClientConfig {
    let mut client = kafka.client();
    client.set("message.timeout.ms", "1500").set("socket.timeout.ms", "2000").set("linger.ms", "0");
    client.set("reconnect.backoff.ms", "20").set("reconnect.backoff.max.ms", "250");
    client.set("topic.metadata.refresh.fast.interval.ms", "100").set("acks", "all");
    client
}

/// Records the delivery of each test record.
struct DeliveryContext(Arc<Mutex<Vec<Answers>>>);

impl ClientContext for DeliveryContext {
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {
        // Disconnected brokers are expected here, so errors are not logged.
    }

    fn error(&self, _: rdkafka::error::KafkaError, _: &str) {}
}

impl ProducerContext for DeliveryContext {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, delivery: &DeliveryResult<'_>, sent: Box<u64>) {
        let Ok(message) = delivery else { return };
        let mut all = self.0.lock().expect("no panic while it was locked");
        let partition = usize::try_from(message.partition()).ok();
        let Some(answers) = partition.and_then(|partition| all.get_mut(partition)) else { return };
        if let Some(good) = answers.last_good
            && good + nanos(OUTAGE) < *sent
        {
            answers.outages.push((good, *sent));
        }
        answers.last_good = answers.last_good.max(Some(*sent));
        if answers.offsets.back().is_some_and(|(_, last)| *last > message.offset()) {
            // The topic was created again.
            answers.offsets.clear();
        }
        answers.offsets.push_back((*sent, message.offset()));
        if answers.offsets.len() > 3_000 {
            answers.offsets.pop_front();
        }
    }
}

/// Writes a record with a separate key into each partition, repeatedly.
fn ask(client: &ClientConfig, topic: &str, answers: Arc<Mutex<Vec<Answers>>>, over: &Receiver<()>) {
    let partitions = answers.lock().expect("no panic while it was locked").len();
    let producer: ThreadedProducer<DeliveryContext> =
        client.create_with_context(DeliveryContext(answers)).expect("a producer");
    while over.recv_timeout(ASKS_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        for partition in 0..partitions {
            let record = BaseRecord::with_opaque_to(topic, Box::new(wait::now())).partition(number(partition));
            // A full queue counts as an outage too.
            let _ = producer.send(record.key("probe").payload(""));
        }
    }
}

/// Performs the actions.
struct Hand {
    client: ClientConfig,
    addresses: Vec<String>,
    topic: String,
    answers: Arc<Mutex<Vec<Answers>>>,
}

/// A partition's number in Kafka's type.
fn number(partition: usize) -> i32 {
    i32::try_from(partition).expect("a small number")
}

impl Hand {
    fn perform(&self, action: Action) -> Result<String, String> {
        match action {
            Action::CutHead => self.cut_head(),
            Action::MoveLeader(to) => cluster::move_leader(&self.addresses, &self.topic, to)
                .map(|()| format!("asked for broker {to} to lead"))
                .map_err(|error| format!("no leader was moved: {error}")),
            Action::RemakeTopic => self.remake_topic(),
            Action::RemakeShorter(done) => self.remake_shorter(&done),
            Action::Fill(end, done) => {
                let word = self.fill(end);
                // The receiver may have stopped waiting.
                let _ = done.send(());
                word
            }
            Action::Write(partition, records) => Ok(self.write(partition, &records)),
        }
    }

    fn write(&self, partition: usize, records: &[(Option<String>, Option<Vec<u8>>)]) -> String {
        let producer: ThreadedProducer<DeliveryContext> =
            self.client.create_with_context(DeliveryContext(Arc::default())).expect("a producer");
        let mut text = format!("wrote into partition {partition}:");
        for (key, payload) in records {
            let mut record = BaseRecord::with_opaque_to(&self.topic, Box::new(0)).partition(number(partition));
            record.key = key.as_deref();
            record.payload = payload.as_deref();
            // A record that can't be sent now is dropped.
            let _ = producer.send(record);
            let payload = payload.as_deref().map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]));
            let _ = write!(text, " {key:?}: {payload:?}");
        }
        let _ = producer.flush(Duration::from_secs(2));
        text
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client.create().expect("a client")
    }

    fn cut_head(&self) -> Result<String, String> {
        let old = wait::now().saturating_sub(nanos(MAY_BE_DELETED_AFTER));
        let mut before = TopicPartitionList::new();
        for (partition, answers) in (0..).zip(self.answers.lock().expect("no panic while it was locked").iter()) {
            if let Some((_, offset)) = answers.offsets.iter().rev().find(|(at, _)| *at < old) {
                before.add_partition_offset(&self.topic, partition, Offset::Offset(*offset)).expect("an offset");
            }
        }
        if before.count() == 0 {
            return Err("nothing is old enough to be deleted".to_owned());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let done = runtime.block_on(self.admin().delete_records(&before, &AdminOptions::new()));
        done.map(|_| format!("deleted what is before {before:?}")).map_err(|error| format!("deleted nothing: {error}"))
    }

    fn remake_shorter(&self, done: &Sender<i64>) -> Result<String, String> {
        const SHORTER: i64 = 100;
        let kafka = Kafka::at(&self.addresses.join(","));
        let end = harness::journal::end(&kafka, &self.topic);
        let made = self.remake_topic()?;
        let filled = self.fill(end - SHORTER)?;
        let _ = done.send(end + SHORTER);
        Ok(format!("{made}; {filled}"))
    }

    /// Writes records with a separate key until the log has this length.
    fn fill(&self, to: i64) -> Result<String, String> {
        let kafka = Kafka::at(&self.addresses.join(","));
        let missing = to - harness::journal::end(&kafka, &self.topic);
        let producer: ThreadedProducer<DeliveryContext> =
            self.client.create_with_context(DeliveryContext(Arc::default())).expect("a producer");
        for _ in 0..missing {
            let record = BaseRecord::with_opaque_to(&self.topic, Box::new(0)).partition(0).key("filler").payload("");
            producer.send(record).map_err(|(error, _)| format!("filled nothing: {error}"))?;
        }
        producer.flush(Duration::from_secs(3)).map_err(|error| format!("did not fill all: {error}"))?;
        Ok(format!("filled it up to {to}"))
    }

    fn remake_topic(&self) -> Result<String, String> {
        let kafka = Kafka::at(&self.addresses.join(","));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let deleted = runtime.block_on(self.admin().delete_topics(&[&self.topic], &AdminOptions::new()));
        deleted.map_err(|error| format!("deleted no topic: {error}"))?;
        // The deletion is certain. If there is a topic of that name now, a candidate has created it, possibly at once.
        let replicas = self.addresses.len().min(3);
        let in_sync = if replicas == 3 { "2" } else { "1" };
        let settings = [("min.insync.replicas", in_sync), ("message.timestamp.type", "LogAppendTime")];
        let partitions = number(self.answers.lock().expect("no panic while it was locked").len());
        match kafka.try_create_replicated_topic(&self.topic, partitions, number(replicas), &settings) {
            Ok(()) => Ok("made the topic anew".to_owned()),
            // Candidates create a missing topic.
            Err(RDKafkaErrorCode::TopicAlreadyExists) => {
                Ok("deleted the topic, which a candidate has made anew".to_owned())
            }
            Err(error) => Err(format!("deleted the topic, and made none: {error}")),
        }
    }
}
