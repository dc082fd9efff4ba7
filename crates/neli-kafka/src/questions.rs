//! Questions to brokers: how long an answer is waited for, how several brokers are asked at the same time, and the question for the bounds of
//! several partitions' logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use crate::clock;
use crate::error_class::{ErrorClass, code_of};
use crate::librdkafka::{bounds, topic_identity};

// ---- the time limit ------------------------------------------------------------------------------------------------
//
// A slow link needs several round trips before the first answer (TCP, TLS, API versions, login, metadata). If the limit never grew, each
// attempt would end before its first answer, for ever.

/// The time limit of a reader's first question. The missing answer is reported if a connection has failed by then; otherwise the link may be slow,
/// and the next question shows it.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// The least time limit of any other question. librdkafka takes a connection for dead after the same time (`socket.timeout.ms`), unless the
/// user sets another.
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// The time between two questions while there is no answer.
pub(super) const RETRY: Duration = Duration::from_millis(200);
/// The time between two questions for a topic that was just created, or is about to be.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The longest time limit, unless the caller sets a shorter one.
pub(super) const LONGEST: Duration = Duration::from_secs(16);
/// A client that has had no answer for this long is replaced, and again after each such time: librdkafka reads certificates and authorities only when
/// a client is made, and those of the old one may be accepted no longer, though the files have new ones.
pub(super) const REPLACED_AFTER: Duration = Duration::from_secs(60);
/// The limit is multiplied by this after a question without an answer.
const GROWTH: u32 = 4;
/// The limit after an answer is the time that the answer took, multiplied by this.
const ALLOWANCE: u32 = 4;
/// A leader is waited for as long as that many times another broker's answer took, which may have found an open connection, or for
/// [`LEAST_FOR_LEADER`] if that is longer. Then the leader is asked for again: another broker may lead by now.
const ALLOWANCE_FOR_LEADER: u32 = 16;
const LEAST_FOR_LEADER: Duration = Duration::from_secs(4);

/// The time limit of one caller's questions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct AnswerLimit {
    /// The limit of the first question.
    first: Duration,
    /// The limit of each question after an answer, at least.
    least: Duration,
    /// The limit of each question, at most.
    longest: Duration,
    limit: Option<Duration>,
    /// When the first question since the last answer was asked.
    asking_since: Option<Time>,
}

impl AnswerLimit {
    /// That of a reader's questions.
    pub(super) const OF_READER: Self = Self::new(FIRST_ANSWER, ANSWER);

    /// The first question has the limit `first`; each question after an answer has at least `least`.
    pub(super) const fn new(first: Duration, least: Duration) -> Self {
        let longest = if least.as_nanos() > LONGEST.as_nanos() { least } else { LONGEST };
        Self { first, least, longest, limit: None, asking_since: None }
    }

    /// The same with another longest limit, for answers that are useless after that time.
    pub(super) const fn at_most(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The limit of the question that is asked now.
    pub(super) fn ask(&mut self) -> Duration {
        self.asking_since.get_or_insert_with(clock::now);
        self.limit()
    }

    /// The limit of the next question.
    pub(super) fn limit(&self) -> Duration {
        self.limit.unwrap_or(self.first)
    }

    /// Whether the next question is the first one.
    pub(super) const fn is_first(&self) -> bool {
        self.limit.is_none()
    }

    /// There was no answer in time: the next question has four times the limit.
    pub(super) fn was_too_short(&mut self) {
        self.limit = Some((self.limit() * GROWTH).min(self.longest));
    }

    /// There was no answer to a question that was asked at `asked`; if it failed long before its time was over, the next has no longer limit.
    pub(super) fn unanswered(&mut self, asked: Time) {
        if clock::now().since(asked) >= self.limit() / 2 {
            self.was_too_short();
        } else {
            self.limit = Some(self.limit());
        }
    }

    /// There was an answer to a question that was asked at `asked`. Returns the time since the first question without an answer: it
    /// includes the time for connecting, so it shows what a question needs on this link.
    pub(super) fn answered(&mut self, asked: Time) -> Duration {
        self.answered_at(asked, clock::now())
    }

    /// The same if the answer came at `answered`.
    pub(super) fn answered_at(&mut self, asked: Time, answered: Time) -> Duration {
        let since = self.asking_since.take().unwrap_or(asked);
        self.limit = Some((answered.since(asked) * ALLOWANCE).clamp(self.least, self.longest));
        answered.since(since).min(LONGEST)
    }
}

// ---- several brokers at the same time ------------------------------------------------------------------------------

/// The partitions that each broker is asked about; of one topic by their numbers.
pub(super) type ByBroker<P = i32> = BTreeMap<i32, BTreeSet<P>>;

/// Calls `ask` for each broker and its partitions, all at the same time. Each result goes to `handle` as soon as it is there.
pub(super) fn ask_all<P: Sync, T: Send>(
    questions: &ByBroker<P>,
    ask: impl Fn(i32, &BTreeSet<P>) -> Result<T, RDKafkaErrorCode> + Sync,
    mut handle: impl FnMut(i32, &BTreeSet<P>, Result<T, RDKafkaErrorCode>),
) {
    // Usually there is one broker, and then no other thread is needed.
    if let (1, Some((broker, partitions))) = (questions.len(), questions.first_key_value()) {
        return handle(*broker, partitions, ask(*broker, partitions));
    }
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for (broker, partitions) in questions {
            let (ask, sender) = (&ask, sender.clone());
            let thread = thread::Builder::new().name("neli-asks-one".to_owned());
            // An error in sending means that the receiver has panicked.
            let started = thread.spawn_scoped(scope, move || drop(sender.send((*broker, ask(*broker, partitions)))));
            if started.is_err() {
                handle(*broker, partitions, Err(RDKafkaErrorCode::Fail));
            }
        }
        drop(sender);
        for (broker, result) in results {
            if let Some(partitions) = questions.get(&broker) {
                handle(broker, partitions, result);
            }
        }
    });
}

// ---- the first and the next offset of several partitions' logs -----------------------------------------------------
//
// The broker answers a connection's requests in turn, and may delay a fetch for half a second. With one question for each partition, a
// hundred partitions would take most of a minute.

/// The first and the next offset of a log, or why they are unknown.
pub(super) type Answer = Result<(i64, i64), RDKafkaErrorCode>;

/// A question for the bounds of logs, and the limit for each answer.
pub(super) struct Question<'a, C: ConsumerContext> {
    pub(super) consumer: &'a BaseConsumer<C>,
    pub(super) topic: &'a str,
    pub(super) limit: Duration,
    /// Makes librdkafka connect to each leader first. If a question waits in librdkafka's queue for a connection and its time
    /// (`socket.timeout.ms`) ends, librdkafka closes that connection, even in the middle of its login. The question that connects does not wait in
    /// that queue.
    pub(super) reaches_first: bool,
}

impl<C: ConsumerContext> Question<'_, C> {
    /// Asks for these partitions, and gives the answers with the time of their question to `handle` as soon as they arrive.
    pub(super) fn ask(&self, partitions: &BTreeSet<i32>, mut handle: impl FnMut(Time, BTreeMap<i32, Answer>)) {
        if self.reaches_first {
            return self.ask_each_leader(partitions, handle);
        }
        let asked = clock::now();
        // librdkafka gives no answer at all if one of the partitions has none.
        let Ok(mut answers) = self.ask_together(partitions) else { return self.ask_each_leader(partitions, handle) };
        // librdkafka gives this error both for a partition that has no leader for now and for one that does not exist.
        let is_unknown = |answer: &Answer| *answer == Err(RDKafkaErrorCode::UnknownPartition);
        let unknown: BTreeSet<i32> =
            answers.iter().filter(|(_, answer)| is_unknown(answer)).map(|(partition, _)| *partition).collect();
        answers.retain(|_, answer| !is_unknown(answer));
        handle(asked, answers);
        if !unknown.is_empty() {
            self.ask_each_leader(&unknown, handle);
        }
    }

    /// Asks with one question for each leader, so that a leader that is down does not prevent the answers for other leaders' partitions.
    fn ask_each_leader(&self, partitions: &BTreeSet<i32>, mut handle: impl FnMut(Time, BTreeMap<i32, Answer>)) {
        let asked = clock::now();
        match self.leaders() {
            Ok(leaders) => {
                let limit = limit_for_leader(self.limit, clock::now().since(asked));
                Self { limit, ..*self }.ask_leaders(&leaders, partitions, handle);
            }
            Err(code) => handle(asked, all(partitions, code)),
        }
    }

    /// Asks all these leaders at the same time with one question each. A leader that can't be reached is not asked.
    fn ask_leaders(
        &self,
        leaders: &BTreeMap<i32, i32>,
        partitions: &BTreeSet<i32>,
        mut handle: impl FnMut(Time, BTreeMap<i32, Answer>),
    ) {
        let mut without = BTreeMap::new();
        let mut led = ByBroker::new();
        for partition in partitions {
            let reason = match leaders.get(partition) {
                None => RDKafkaErrorCode::UnknownTopicOrPartition,
                Some(leader) if *leader < 0 => RDKafkaErrorCode::LeaderNotAvailable,
                Some(leader) => {
                    led.entry(*leader).or_default().insert(*partition);
                    continue;
                }
            };
            without.insert(*partition, Err(reason));
        }
        handle(clock::now(), without);
        let ask = |leader, partitions: &BTreeSet<i32>| {
            self.reach(leader)?;
            let asked = clock::now();
            self.ask_together(partitions).map(|answers| (asked, answers))
        };
        ask_all(&led, ask, |_, partitions, answered| {
            let (asked, answers) = answered.unwrap_or_else(|code| (clock::now(), all(partitions, code)));
            handle(asked, answers);
        });
    }

    /// Connects to a leader, if that comes first: whatever it answers, there is a connection then.
    fn reach(&self, leader: i32) -> Result<(), RDKafkaErrorCode> {
        let Self { consumer, topic, limit, reaches_first } = *self;
        let connect = || topic_identity(consumer.client(), topic, Some(leader), limit);
        match reaches_first.then(connect) {
            Some(Err(code)) if ErrorClass::from(code).is_missing_answer() => Err(code),
            Some(_) | None => Ok(()),
        }
    }

    /// The broker that leads each partition of the topic; a number below 0 means that there is none.
    fn leaders(&self) -> Result<BTreeMap<i32, i32>, RDKafkaErrorCode> {
        let Self { consumer, topic, limit, .. } = *self;
        let metadata = consumer.fetch_metadata(Some(topic), limit).map_err(|error| code_of(&error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let found = found.ok_or(RDKafkaErrorCode::UnknownTopicOrPartition)?;
        match found.error() {
            Some(error) => Err(error.into()),
            None => Ok(found.partitions().iter().map(|partition| (partition.id(), partition.leader())).collect()),
        }
    }

    /// Asks for all these partitions with one question.
    fn ask_together(&self, partitions: &BTreeSet<i32>) -> Result<BTreeMap<i32, Answer>, RDKafkaErrorCode> {
        if let (1, Some(partition)) = (partitions.len(), partitions.first()) {
            let answer = bounds(self.consumer.client(), self.topic, *partition, self.limit);
            return Ok(BTreeMap::from([(*partition, answer)]));
        }
        let offsets = |which| {
            let partitions = partitions.iter().map(|partition| (self.topic, *partition));
            offsets(self.consumer, partitions, which, self.limit)
        };
        // Both questions are asked at the same time, so that both wait behind the same fetch.
        let (starts, ends) = thread::scope(|scope| {
            let starts = thread::Builder::new()
                .name("neli-starts".to_owned())
                .spawn_scoped(scope, || offsets(Offset::Beginning))
                .map_err(|_| RDKafkaErrorCode::Fail);
            let ends = offsets(Offset::End);
            (starts.and_then(|starts| starts.join().unwrap_or(Err(RDKafkaErrorCode::Fail))), ends)
        });
        let (starts, ends) = (starts?, ends?);
        let bounds_of = |partition: &i32| {
            let place = (self.topic.into(), *partition);
            let of = |answers: &Offsets| answers.get(&place).copied().unwrap_or(Err(RDKafkaErrorCode::Fail));
            (*partition, of(&starts).and_then(|start| of(&ends).map(|end| (start, end))))
        };
        Ok(partitions.iter().map(bounds_of).collect())
    }
}

/// A partition: its topic and number.
pub(super) type Partition = (Box<str>, i32);

/// An offset of each partition's log, or why it is unknown.
pub(super) type Offsets = BTreeMap<Partition, Result<i64, RDKafkaErrorCode>>;

/// The first or the next offset of each partition's log, or the first at or after a time in milliseconds since 1970 (`Offset::Offset`). In
/// Kafka's protocol the first two are the offsets for special times.
pub(super) fn offsets<'a>(
    consumer: &BaseConsumer<impl ConsumerContext>,
    partitions: impl Iterator<Item = (&'a str, i32)>,
    which: Offset,
    limit: Duration,
) -> Result<Offsets, RDKafkaErrorCode> {
    let mut wanted = TopicPartitionList::new();
    for (topic, partition) in partitions {
        wanted.add_partition_offset(topic, partition, which).map_err(|error| code_of(&error))?;
    }
    let answered = consumer.offsets_for_times(wanted, limit).map_err(|error| code_of(&error))?;
    let offset = |element: &TopicPartitionListElem<'_>| {
        element.error().map_err(|error| code_of(&error))?;
        let offset = element.offset().to_raw().filter(|offset| *offset >= 0);
        offset.ok_or(RDKafkaErrorCode::UnknownPartition)
    };
    let of = |element: &TopicPartitionListElem<'_>| ((element.topic().into(), element.partition()), offset(element));
    Ok(answered.elements().iter().map(of).collect())
}

/// How long a leader is waited for within this limit, if another broker took so long to name it.
fn limit_for_leader(limit: Duration, took: Duration) -> Duration {
    limit.min((took * ALLOWANCE_FOR_LEADER).max(LEAST_FOR_LEADER))
}

fn all(partitions: &BTreeSet<i32>, code: RDKafkaErrorCode) -> BTreeMap<i32, Answer> {
    partitions.iter().map(|partition| (*partition, Err(code))).collect()
}

#[cfg(test)]
mod tests {
    use rdkafka::ClientConfig;
    use rdkafka::consumer::DefaultConsumerContext;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// Three partitions with 0, 1 and 2 records, led by the brokers 1, 2 and 1; and a client.
    fn setup() -> (MockCluster<'static, DefaultProducerContext>, BaseConsumer<DefaultConsumerContext>) {
        let cluster = MockCluster::new(2).unwrap();
        cluster.create_topic("topic", 3, 1).unwrap();
        for (partition, leader) in [(0, 1), (1, 2), (2, 1)] {
            cluster.partition_leader("topic", partition, Some(leader)).unwrap();
        }
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer: BaseProducer = config.create().unwrap();
        for partition in [1, 2, 2] {
            producer.send(BaseRecord::<(), str>::to("topic").partition(partition).payload("record")).unwrap();
        }
        producer.flush(LONG).unwrap();
        (cluster, config.set("group.id", "unused").create().unwrap())
    }

    fn ask_for(
        consumer: &BaseConsumer<DefaultConsumerContext>,
        partitions: &[i32],
        limit: Duration,
    ) -> Vec<(i32, Answer)> {
        let (question, mut all) = (Question { consumer, topic: "topic", limit, reaches_first: false }, BTreeMap::new());
        question.ask(&partitions.iter().copied().collect(), |_, mut answers| all.append(&mut answers));
        all.into_iter().collect()
    }

    #[test]
    fn one_question_is_answered_for_all() {
        let (_cluster, consumer) = setup();
        assert_eq!(ask_for(&consumer, &[1], LONG), [(1, Ok((0, 1)))]);
        assert_eq!(ask_for(&consumer, &[0, 1, 2], LONG), [(0, Ok((0, 0))), (1, Ok((0, 1))), (2, Ok((0, 2)))]);
    }

    #[test]
    fn a_partition_that_does_not_exist_prevents_no_answer_for_the_others() {
        let (_cluster, consumer) = setup();
        let unknown = Err(RDKafkaErrorCode::UnknownTopicOrPartition);
        assert_eq!(ask_for(&consumer, &[1, 2, 7], LONG), [(1, Ok((0, 1))), (2, Ok((0, 2))), (7, unknown)]);
        assert_eq!(ask_for(&consumer, &[7], LONG), [(7, unknown)]);
    }

    #[test]
    fn a_partition_without_a_leader_prevents_no_answer_for_the_others() {
        let (cluster, consumer) = setup();
        cluster.partition_leader("topic", 1, None).unwrap();
        let moving = Err(RDKafkaErrorCode::LeaderNotAvailable);
        assert_eq!(ask_for(&consumer, &[1], Duration::from_secs(1)), [(1, moving)], "it is not gone");
        let answers = ask_for(&consumer, &[0, 1, 2], Duration::from_secs(1));
        assert_eq!(answers, [(0, Ok((0, 0))), (1, moving), (2, Ok((0, 2)))]);
    }

    #[test]
    fn a_silent_leader_does_not_delay_the_answers_of_another() {
        let (cluster, consumer) = setup();
        let topic = "topic";
        let question = |limit| Question { consumer: &consumer, topic, limit, reaches_first: false };
        // The client knows both brokers.
        assert!(question(LONG).leaders().is_ok());
        cluster.broker_round_trip_time(1, LONG * 6).unwrap();
        let (leaders, mut answered) = (BTreeMap::from([(0, 1), (1, 2), (2, 1)]), Vec::new());
        let handle = |_, answers: BTreeMap<i32, Answer>| answered.extend(answers);
        question(Duration::from_secs(2)).ask_leaders(&leaders, &BTreeSet::from([0, 1, 2]), handle);
        let answered: Vec<_> = answered.into_iter().map(|(partition, answer)| (partition, answer.ok())).collect();
        assert_eq!(answered, [(1, Some((0, 1))), (0, None), (2, None)], "in the order of their arrival");
    }

    /// Kafka gives its partitions to another broker after 9 s.
    #[test]
    fn a_silent_leader_is_not_waited_for_as_long_as_a_slow_link() {
        let (short, limit, cut) = (Duration::from_secs(1), Duration::from_secs(16), Duration::from_millis(1));
        assert_eq!(limit_for_leader(limit, cut), LEAST_FOR_LEADER);
        assert_eq!(limit_for_leader(short, cut), short);
        assert_eq!(limit_for_leader(limit, Duration::from_millis(900)), Duration::from_millis(14_400));
        assert_eq!(limit_for_leader(limit, short), limit);
    }

    #[test]
    fn each_question_after_a_missing_answer_has_more_time_up_to_a_limit() {
        let mut answer_limit = AnswerLimit::new(Duration::from_secs(1), Duration::from_secs(2));
        let mut limits = Vec::new();
        assert!(answer_limit.is_first());
        for _ in 0..4 {
            limits.push(answer_limit.ask().as_secs());
            answer_limit.was_too_short();
            assert!(!answer_limit.is_first());
        }
        assert_eq!(limits, [1, 4, 16, 16]);
    }

    /// `doctor --timeout 30s`.
    #[test]
    fn a_least_limit_above_the_usual_longest_one_is_both() {
        let mut answer_limit = AnswerLimit::new(Duration::from_secs(30), Duration::from_secs(30));
        answer_limit.answered(clock::now());
        assert_eq!(answer_limit.limit(), Duration::from_secs(30));
        answer_limit.was_too_short();
        assert_eq!(answer_limit.limit(), Duration::from_secs(30));
    }

    #[test]
    fn a_caller_may_set_a_shorter_longest_limit() {
        let mut answer_limit =
            AnswerLimit::new(Duration::from_secs(2), Duration::from_secs(2)).at_most(Duration::from_secs(5));
        let mut limits = Vec::new();
        for _ in 0..3 {
            limits.push(answer_limit.ask().as_secs());
            answer_limit.was_too_short();
        }
        assert_eq!(limits, [2, 5, 5]);
        answer_limit.answered(Time::from_nanos(clock::now().as_nanos() - 3_000_000_000));
        assert_eq!(answer_limit.limit(), Duration::from_secs(5));
    }

    #[test]
    fn the_limit_follows_the_time_of_the_last_answer() {
        let mut answer_limit = AnswerLimit::new(Duration::from_secs(1), Duration::from_secs(2));
        answer_limit.ask();
        answer_limit.was_too_short();
        answer_limit.was_too_short();
        let took = answer_limit.answered(clock::now());
        assert!(took < Duration::from_secs(1));
        assert_eq!(answer_limit.limit(), Duration::from_secs(2));
        answer_limit.answered(Time::from_nanos(clock::now().as_nanos() - 3_000_000_000));
        let limit = answer_limit.limit();
        assert!((Duration::from_secs(12)..Duration::from_secs(13)).contains(&limit), "{limit:?}");
        let asked = Time::from_nanos(clock::now().as_nanos() - 3_000_000_000);
        assert!(
            answer_limit.answered_at(asked, asked) < Duration::from_secs(1),
            "what was missing after it does not count"
        );
        assert_eq!(answer_limit.limit(), Duration::from_secs(2));
    }
}
