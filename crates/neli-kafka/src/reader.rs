//! Reads the journals of a topic's elections: one consumer for all partitions, which joins no group.
//!
//! There are two threads. The *poll thread* waits inside librdkafka and delivers each record as soon as it arrives. The *asker* makes the
//! blocking calls: whether the topic exists, and where each partition's log begins and ends (every 20 s, and more often while there is no
//! answer).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

use neli_proto::kafka::Event;
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::mpsc::Sender;

use crate::bootstrap_servers::{admit, ask_servers};
use crate::context::{explain, is_lack_of_thread};
use crate::error_class::ErrorClass;
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::{AdminError, topic_identity};
use crate::questions::{AnswerLimit, LOOK_AGAIN, Question, RETRY};
use crate::reading::{IfMissing, Order, Reading, Source, WARN_AGAIN};
use crate::text::{reason, without_thread};
use crate::threads::{self, STARTED_AGAIN_AFTER};
use crate::topic::{self, Presence, TopicError};
use crate::{clock, embedded};

/// The time between two questions for the log's end (L4).
const ASK_INTERVAL: Duration = Duration::from_secs(20);

/// The number of a process's first reading.
const FIRST: u32 = 1;

/// One reading of the journals in a topic's partitions. Dropping it never blocks. Events that it sent before carry its number.
pub struct Reader {
    orders: mpsc::Sender<Order>,
    stopped: Arc<AtomicBool>,
}

impl Reader {
    /// Starts the reading with this number: makes sure that the topic exists, asks for the first and the next offset of each partition's
    /// log, sends them to `events`, and waits for [`Reader::read_from`].
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub fn start(source: Source, reading: u32, events: Sender<KafkaEvent>) -> Result<Self, io::Error> {
        let (orders, received) = mpsc::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let (sender, ended) = (orders.clone(), Arc::clone(&stopped));
        let run = move || {
            let mut told_at: Option<Time> = None;
            while !ended.load(Ordering::Relaxed) && !events.is_closed() {
                let made = Reading::new(source.clone(), reading, events.clone(), sender.clone(), Arc::clone(&ended));
                let warning = match made.map(|reading| Asker::run(reading, &received)) {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => without_thread(&reason(&error)),
                    Err(error) if is_lack_of_thread(&error) => without_thread(&explain(&error)),
                    // The first one has shown that the configuration is right. A file of a certificate may be about to be replaced.
                    Err(error) if reading > FIRST => {
                        format!("the journal can't be read: {}; it is tried again", explain(&error))
                    }
                    Err(error) => {
                        let refused = SessionEvent::Refused { role: None, error: explain(&error) };
                        // It fails only if the receiver is gone.
                        return drop(events.blocking_send(refused.into()));
                    }
                };
                let now = clock::now();
                if told_at.is_none_or(|at| now >= at + WARN_AGAIN) {
                    told_at = Some(now);
                    let _ = events.blocking_send(SessionEvent::Warning(warning).into());
                }
                thread::park_timeout(STARTED_AGAIN_AFTER);
            }
        };
        threads::start("neli-asker", run)?;
        Ok(Self { orders, stopped })
    }

    /// Asks for the logs' ends soon, not only when that is due.
    pub fn look_for_end(&self) {
        self.order(Order::Ask);
    }

    /// Reads a partition from this offset on. Must be called once for each partition, and again after [`Event::HistoryCut`].
    pub fn read_from(&self, partition: i32, offset: i64) {
        self.order(Order::ReadFrom { partition, offset });
    }

    pub(crate) fn order(&self, order: Order) {
        // An error means that the reading was refused and its thread has ended.
        let _ = self.orders.send(order);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.order(Order::Ask);
    }
}

/// The thread that asks the blocking questions.
struct Asker {
    reading: Arc<Reading>,
    /// The time limit of the next question.
    answer_limit: AnswerLimit,
    /// The question to the bootstrap servers, for whose answers the first answer waits.
    servers: Option<mpsc::Receiver<()>>,
    /// The last question had no answer, so the next one first makes librdkafka connect to the partitions' leaders.
    reaches_leaders_first: bool,
    /// The partitions that had no leader when the last question was asked, and those whose leader did not answer it.
    leaderless: Waiting,
    silent: Waiting,
    /// Whether this reading has seen the topic.
    found: bool,
    /// The partitions to read, with their offsets. They are kept here until the number of the topic's partitions is known, because it
    /// determines which election a record belongs to.
    to_be_begun: Vec<(i32, i64)>,
}

impl Asker {
    /// Asks until the reading is over.
    ///
    /// # Errors
    ///
    /// The thread that polls can't be started.
    fn run(reading: Reading, orders: &mpsc::Receiver<Order>) -> io::Result<()> {
        let reading = Arc::new(reading);
        let polled = Arc::clone(&reading);
        threads::start("neli-reader", move || polled.poll())?;
        Self::new(reading).ask_on(orders);
        Ok(())
    }

    fn new(reading: Arc<Reading>) -> Self {
        Self {
            reading,
            answer_limit: AnswerLimit::OF_READER,
            servers: None,
            reaches_leaders_first: false,
            leaderless: Waiting::default(),
            silent: Waiting::default(),
            found: false,
            to_be_begun: Vec::new(),
        }
    }

    /// Asks for the log's end regularly, and passes on the orders to read.
    fn ask_on(&mut self, orders: &mpsc::Receiver<Order>) {
        self.reach_broker();
        self.servers = self.ask_servers();
        let mut ask_at = clock::now();
        while !self.reading.is_over() {
            match orders.recv_timeout(ask_at.since(clock::now())) {
                Ok(Order::Ask) => ask_at = ask_at.min(clock::now() + RETRY),
                Ok(Order::ReadFrom { partition, offset }) => {
                    self.to_be_begun.push((partition, offset));
                    self.begin();
                }
                Err(RecvTimeoutError::Timeout) => {
                    // This question also answers the requests that came meanwhile.
                    self.reading.is_asked_for.store(false, Ordering::Relaxed);
                    let answer_limit = self.ask();
                    ask_at = clock::now() + answer_limit;
                    self.begin();
                    // A server that has not answered may have come back.
                    let _ = self.ask_servers();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn ask_servers(&self) -> Option<mpsc::Receiver<()>> {
        ask_servers(Some(&self.reading.source.elections.topic), self.reading.consumer.consumer())
    }

    fn admit(&mut self, asked: Time) -> Result<(), String> {
        admit(&mut self.servers, self.reading.consumer.consumer().client(), asked)
    }

    /// Refuses the cluster that has answered, and reports that, if it is another one. Returns whether it has.
    fn refuses(&mut self, asked: Time) -> bool {
        self.admit(asked).map_err(|refusal| self.reading.refuse(refusal)).is_err()
    }

    /// Reads the ordered partitions, once the number of the topic's partitions is known.
    fn begin(&mut self) {
        if self.reading.partitions().is_some() {
            for (partition, offset) in self.to_be_begun.drain(..) {
                self.reading.read_from(partition, offset);
            }
        }
    }

    /// Asks for the first and the next offset of each partition's log, and returns the time until the next question.
    fn ask(&mut self) -> Duration {
        let Some(partitions) = self.reading.to_be_read() else {
            self.find_topic();
            return Duration::ZERO;
        };
        let nexts: BTreeMap<i32, Option<i64>> =
            partitions.iter().map(|partition| (*partition, self.reading.next(*partition))).collect();
        let (limit, asked) = (self.answer_limit.ask(), clock::now());
        let reading = Arc::clone(&self.reading);
        let (consumer, topic) = (reading.consumer.consumer(), &reading.source.elections.topic);
        let question = Question { consumer, topic, limit, reaches_first: self.reaches_leaders_first };
        let mut next_time = ASK_INTERVAL;
        let mut unanswered: Vec<(RDKafkaErrorCode, BTreeSet<i32>)> = Vec::new();
        question.ask(&partitions, |asked, answers| {
            for (partition, answer) in answers {
                match answer {
                    Ok((start, end)) => {
                        let next = nexts.get(&partition).copied().flatten();
                        next_time = next_time.min(self.answered(partition, next, asked, start..end));
                    }
                    Err(code) => match unanswered.iter_mut().find(|(known, _)| *known == code) {
                        Some((_, partitions)) => drop(partitions.insert(partition)),
                        None => unanswered.push((code, BTreeSet::from([partition]))),
                    },
                }
            }
        });
        let are_all = unanswered.iter().map(|(_, partitions)| partitions.len()).sum::<usize>() == partitions.len();
        self.report_unanswered(&partitions, asked, &unanswered, are_all);
        for (code, partitions) in unanswered {
            next_time = next_time.min(self.unanswered(&partitions, asked, code, are_all));
        }
        next_time
    }

    /// Handles the bounds of a partition's log. `next` was the next offset to be read when the question was asked.
    fn answered(&mut self, partition: i32, next: Option<i64>, asked: Time, log: Range<i64>) -> Duration {
        let Range { start, end } = log;
        if self.refuses(asked) {
            return ASK_INTERVAL;
        }
        self.reading.up();
        self.reading.send_own(partition, Event::Answered { asked, start, end });
        self.found = true;
        self.reaches_leaders_first = false;
        self.answer_limit.answered(asked);
        self.reading.consumer.context().rebootstrap.answered();
        // The history may have been cut, or another broker has taken over the partition and does not know the whole log yet.
        let contradicts = next.is_some_and(|next| next < start || end < next);
        if contradicts { RETRY } else { ASK_INTERVAL }
    }

    /// Handles a missing answer for these partitions; `are_all` if no other partition had an answer either. Returns the time until the next
    /// question.
    fn unanswered(
        &mut self,
        partitions: &BTreeSet<i32>,
        asked: Time,
        code: RDKafkaErrorCode,
        are_all: bool,
    ) -> Duration {
        match code.into() {
            ErrorClass::Moving | ErrorClass::UnknownPartition => {}
            ErrorClass::TopicForbidden => {
                self.reading.refuse(topic::may_not_describe(&self.reading.source.elections.topic));
            }
            ErrorClass::UnknownTopic if self.reading.source.if_missing == IfMissing::CountAsEmpty => {
                return self.answered(0, None, asked, 0..0);
            }
            // Another cluster, which this reader has reached since, may not have the topic.
            ErrorClass::UnknownTopic if self.found && self.refuses(asked) => return ASK_INTERVAL,
            ErrorClass::UnknownTopic if self.found => {
                for partition in partitions {
                    let event = Event::TopicIdentified { asked, identity: TopicIdentity::Missing };
                    self.reading.send_own(*partition, event);
                }
            }
            ErrorClass::UnknownTopic => {
                self.find_topic();
                return Duration::ZERO;
            }
            ErrorClass::Connection
            | ErrorClass::Cut
            | ErrorClass::GroupForbidden
            | ErrorClass::Login
            | ErrorClass::NoBroker
            | ErrorClass::Other
            | ErrorClass::Undecodable => self.no_answer(&code.into(), asked, are_all),
        }
        RETRY
    }

    /// Makes librdkafka connect to a broker at once. librdkafka closes the first connection when it has learnt which brokers exist, and
    /// opens another one only 11 ms later, unless a question is for a certain broker or for the controller. The embedded broker's id is
    /// known from the start. With other brokers this question is asked in parallel to the first real one, which then finds an open
    /// connection. The answer is not used.
    fn reach_broker(&self) {
        let (reading, limit) = (Arc::clone(&self.reading), self.answer_limit.limit());
        let ask = move |broker| {
            // The next question fails for the same reason, and reports it.
            let topic = &reading.source.elections.topic;
            let _ = topic_identity(reading.consumer.consumer().client(), topic, broker, limit);
        };
        if self.reading.source.access.embedded.is_some() {
            ask(Some(embedded::BROKER_ID));
        } else {
            // Without this thread the first answer only takes a little longer.
            let _ = threads::start("neli-reach", move || ask(None));
        }
    }

    /// Notes a missing answer to a question of `asked`: if its time was over, the next has a longer limit. If none was answered (`are_all`), Kafka
    /// counts as down, unless only the first question's time limit is over: a slow link needs several round trips for the first answer; or
    /// something was read meanwhile.
    fn no_answer(&mut self, error: &AdminError, asked: Time, are_all: bool) {
        let Reading { source: Source { access, .. }, consumer, .. } = &*self.reading;
        let (class, limit) = (ErrorClass::from(error.code), self.answer_limit.limit().as_millis());
        let is_first = self.answer_limit.is_first() && class == ErrorClass::Connection;
        let is_perhaps_slow = is_first && !access.asks_for_tokens() && consumer.context().trouble().is_none();
        if matches!(class, ErrorClass::Connection | ErrorClass::NoBroker) {
            if let Some(error) = consumer.context().permanent_failure() {
                return self.reading.refuse(error);
            }
            self.answer_limit.unanswered(asked);
            consumer.context().rebootstrap.unanswered(consumer.consumer().client());
            // The embedded broker does not support the question that connects, and is always near.
            self.reaches_leaders_first = access.embedded.is_none();
        }
        let (why, next) = (self.reading.no_answer(error), self.answer_limit.limit().as_millis());
        let message = format!("no answer within {limit} ms ({why}): asking again, for {next} ms");
        self.reading.send(SessionEvent::Debug(message));
        if are_all && !is_perhaps_slow && !self.reading.has_read_since(asked) {
            self.reading.down(why);
        }
    }
}

// ---- waits until the topic exists ----------------------------------------------------------------------------------

/// A broker may not know a topic for this long after it was created.
const NEW_WITHIN: Duration = Duration::from_millis(500);
/// The time between two questions for a topic that Kafka does not make now.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Asker {
    /// Waits until the topic exists, or until this reading is over. Creates the topic if that is allowed.
    fn find_topic(&mut self) {
        let reading = Arc::clone(&self.reading);
        let Source { access, elections, if_missing, .. } = &reading.source;
        let (mut missing_since, mut coming_since) = (None, None);
        // The brokers that were up when this process created the topic.
        let mut created_with = None;
        let mut is_new = || {
            let since = *coming_since.get_or_insert_with(clock::now);
            clock::now().since(since) < NEW_WITHIN
        };
        while !self.reading.is_over() {
            let (limit, asked) = (self.answer_limit.ask(), clock::now());
            let client = reading.consumer.consumer().client();
            let presence = topic::look(client, elections, limit);
            let presence = presence.and_then(|there| self.admit(asked).map(|()| there).map_err(TopicError::Refused));
            let topic = &elections.topic;
            let pause = match presence {
                Ok(Presence::There { partitions, layout, is_whole, .. }) if is_whole || !is_new() => {
                    if let Some(brokers) = created_with {
                        let (topic, replicas) = (topic.clone(), layout.fewest_replicas());
                        reading.send(SessionEvent::Created { topic, replicas, brokers });
                    }
                    return reading.found(partitions);
                }
                Ok(Presence::There { .. }) => LOOK_AGAIN,
                Ok(Presence::Coming) if is_new() => LOOK_AGAIN,
                Ok(Presence::Coming) => {
                    reading.down(format!("topic \"{topic}\": no partition has a leader; are its brokers up?"));
                    RETRY
                }
                Ok(Presence::Missing { brokers }) if *if_missing == IfMissing::Create => {
                    let wanted = topic::journal_to_create(elections, brokers.len());
                    match topic::create(client, access, wanted, &brokers, limit) {
                        Ok(is_created) => {
                            created_with = is_created.then_some(brokers.len()).or(created_with);
                            Duration::ZERO
                        }
                        Err(TopicError::Transient(error)) if !ErrorClass::from(error.code).is_missing_answer() => {
                            let why = &error.text;
                            reading.warn_seldom(format!(
                                "topic \"{topic}\": Kafka does not make it now ({why}); this candidate asks again every second"
                            ));
                            ASK_AGAIN
                        }
                        // Kafka judges the right to create a topic, and its settings, before it looks whether there is one.
                        Err(TopicError::Refused(_))
                            if topic::may_come_back(access, *missing_since.get_or_insert_with(clock::now)) =>
                        {
                            RETRY
                        }
                        Err(error) => self.not_found(error, asked),
                    }
                }
                Ok(Presence::Missing { .. }) if *if_missing == IfMissing::Await => {
                    let why = "it does not exist yet; waiting until a candidate creates it";
                    reading.down(format!("topic \"{topic}\": {why}"));
                    RETRY
                }
                Ok(Presence::Missing { .. }) => {
                    let since = *missing_since.get_or_insert_with(clock::now);
                    if reading.source.is_for_display && clock::now().since(since) < NEW_WITHIN {
                        LOOK_AGAIN
                    } else if reading.source.is_for_display {
                        self.not_found(TopicError::Refused(topic::missing(client, elections, limit)), asked)
                    } else if topic::may_come_back(access, since) {
                        if access.has_answered() {
                            reading.down(topic::must_be_created(topic, access.words));
                        }
                        RETRY
                    } else {
                        self.not_found(TopicError::Refused(topic::must_be_created(topic, access.words)), asked)
                    }
                }
                Err(error) => {
                    missing_since = None;
                    self.not_found(error, asked)
                }
            };
            thread::park_timeout(pause);
        }
    }

    /// Reports why the topic was not found. Returns the time until the next question.
    fn not_found(&mut self, error: TopicError, asked: Time) -> Duration {
        match error {
            TopicError::Refused(refusal) => self.reading.refuse(refusal),
            TopicError::Transient(error) => self.no_answer(&error, asked, true),
        }
        RETRY
    }
}

// ---- reports partitions that have had no leader, or a leader that does not answer, for long: the elections in these partitions wait ----

/// While a partition's leader changes, the partition has no leader for less than this.
const CHANGE_TAKES: Duration = Duration::from_secs(1);

/// Partitions, each with the time of the first question that found it without a leader, or without its leader's answer.
type Waiting = BTreeMap<i32, Time>;

/// Notes that these partitions, and no others, were found so by a question at `asked`. Returns those for which it has lasted.
fn lasting(waiting: &mut Waiting, partitions: &BTreeSet<i32>, asked: Time) -> BTreeSet<i32> {
    waiting.retain(|partition, _| partitions.contains(partition));
    for partition in partitions {
        waiting.entry(*partition).or_insert(asked);
    }
    waiting.iter().filter(|(_, since)| asked.since(**since) >= CHANGE_TAKES).map(|(partition, _)| *partition).collect()
}

impl Asker {
    /// Handles the answers to a question for the partitions `asked_for`. `unanswered` are the partitions without an answer, with the
    /// reason; `are_all` if no other has one. If all of them lack a leader, Kafka counts as down. If only some lack one, or its answer, that is a
    /// warning.
    fn report_unanswered(
        &mut self,
        asked_for: &BTreeSet<i32>,
        asked: Time,
        unanswered: &[(RDKafkaErrorCode, BTreeSet<i32>)],
        are_all: bool,
    ) {
        let of = |classes: &[ErrorClass]| -> BTreeSet<i32> {
            let of_classes = unanswered.iter().filter(|(code, _)| classes.contains(&ErrorClass::from(*code)));
            of_classes.flat_map(|(_, partitions)| partitions).copied().collect()
        };
        let reading = &self.reading;
        let topic = &reading.source.elections.topic;
        let leaderless = lasting(&mut self.leaderless, &of(&[ErrorClass::Moving]), asked);
        if !leaderless.is_empty() {
            let has = if leaderless.len() == 1 { "has" } else { "have" };
            let which = numbers(&leaderless);
            let what = format!("topic \"{topic}\": {which} {has} no leader; start the brokers that hold it");
            if leaderless == *asked_for {
                reading.down(what);
            } else {
                reading.warn_seldom(format!("{what}. The elections there wait until there is one"));
            }
        }
        let silent = lasting(&mut self.silent, &of(&[ErrorClass::Connection, ErrorClass::NoBroker]), asked);
        // If no partition has an answer, Kafka is reported as down.
        if !are_all && !silent.is_empty() {
            let why = reading.no_answer(&RDKafkaErrorCode::BrokerTransportFailure.into());
            reading.warn_seldom(format!(
                "topic \"{topic}\": no answer from the leader of {} ({why}). The elections there wait until it answers, or another \
                 broker leads",
                numbers(&silent)
            ));
        }
    }
}

/// "partition 1", "partitions 1, 3-99".
fn numbers(partitions: &BTreeSet<i32>) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for partition in partitions {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *partition => *last = *partition,
            _ => ranges.push((*partition, *partition)),
        }
    }
    let shown = |(first, last): &(i32, i32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let plural = if partitions.len() == 1 { "" } else { "s" };
    format!("partition{plural} {}", ranges.iter().map(shown).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
