//! Asks which topic exists under the election's name, in a thread of its own, on the producer's connections.
//!
//! The reader's connections are not used: a question there waits behind the fetch for the next record, for half a second while no record is
//! written. The question goes to the broker that leads the partition, because that broker appends the records. If it does not answer,
//! another broker is asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::time::Duration;
use std::{io, mem, thread};

use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::{MetadataBroker, MetadataPartition, MetadataTopic};
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::clock;
use crate::context::KafkaContext;
use crate::election::Elections;
use crate::error_class::{code_of, plain};
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::{TopicDescription, Variation, describe_topic};
use crate::questions::{ANSWER, AnswerLimit, ByBroker, RETRY, ask_all};
use crate::threads;

/// Starts the thread that asks on request, until there is an answer of this process's cluster, which goes to `events`. A request
/// is the number of partitions by which roles are assigned to partitions; `None` means the number that the topic has now. The thread ends,
/// after the question in flight, when the returned sender is dropped.
///
/// A question's limit is at most half a `lease`, or 2 s if that is longer: a later answer confirms little, and if a connection has died
/// without an error, another question must be asked before the lease is over.
///
/// # Errors
///
/// The thread can't be started.
pub(super) fn start<C: ProducerContext + 'static>(
    producer: Arc<BaseProducer<C>>,
    context: fn(&C) -> &KafkaContext,
    elections: &Elections,
    lease: Duration,
    events: Sender<KafkaEvent>,
) -> io::Result<mpsc::Sender<Option<i32>>> {
    let (requests, received) = mpsc::channel::<Option<i32>>();
    let elections = elections.clone();
    threads::start("neli-topic-id", move || {
        let KafkaContext { access, rebootstrap, .. } = context(producer.context());
        // The time limit is kept for the next request: a slow link stays slow.
        let mut answer_limit = AnswerLimit::new(ANSWER, ANSWER).at_most(ANSWER.max(lease / 2));
        let deliver = |answer| drop(events.blocking_send(answer));
        while let Ok(counted) = received.recv() {
            let mut question = Unconfirmed { counted, ..Unconfirmed::default() };
            while !events.is_closed() {
                // Several requests get one answer. A request is for all partitions, also for those that were just answered.
                loop {
                    match received.try_recv() {
                        Ok(later) => {
                            question.counted = later.or(question.counted);
                            question.partitions.clear();
                        }
                        Err(TryRecvError::Empty) => break,
                        Err(TryRecvError::Disconnected) => return,
                    }
                }
                let asked = clock::now();
                let missing = question.ask(producer.client(), access, &elections, &mut answer_limit, deliver);
                let Some(code) = missing else {
                    rebootstrap.answered();
                    break;
                };
                rebootstrap.unanswered(producer.client());
                let (waited, next) = (clock::now().since(asked), answer_limit.limit());
                let message = format!(
                    "the topic's id was not confirmed within {} ms ({}): asking again, for {} ms",
                    waited.as_millis(),
                    plain(code),
                    next.as_millis()
                );
                let _ = events.blocking_send(SessionEvent::Debug(message).into());
                thread::park_timeout(RETRY);
            }
        }
    })?;
    Ok(requests)
}

/// The partitions whose topic is still to be confirmed, and the brokers that did not answer.
#[derive(Default)]
struct Unconfirmed {
    /// The number of partitions by which roles are assigned to partitions.
    counted: Option<i32>,
    /// The partitions to be confirmed; if it is empty, all that are in use.
    partitions: BTreeSet<i32>,
    unanswering: BTreeSet<i32>,
}

impl Unconfirmed {
    /// Asks the brokers that lead the partitions, all at the same time; if one of them has not answered before, another broker is asked
    /// instead. Each answer goes to `deliver` as soon as it arrives, because leads on its partitions depend on it, and a silent broker
    /// must not delay it. The partitions without an answer stay in the question; returns the reason if there are any.
    fn ask(
        &mut self,
        client: &Client<impl ClientContext>,
        access: &Access,
        elections: &Elections,
        answer_limit: &mut AnswerLimit,
        mut deliver: impl FnMut(KafkaEvent),
    ) -> Option<RDKafkaErrorCode> {
        let (limit, asked) = (answer_limit.ask(), clock::now());
        let metadata = match client.fetch_metadata(Some(&elections.topic), limit) {
            Ok(metadata) => metadata,
            Err(error) => {
                answer_limit.unanswered(asked);
                return Some(code_of(&error));
            }
        };
        answer_limit.answered(asked);
        let topic = metadata.topics().iter().find(|topic| topic.name() == elections.topic);
        let partitions = topic.map(MetadataTopic::partitions).unwrap_or_default();
        let count = i32::try_from(partitions.len()).unwrap_or(i32::MAX);
        // If the topic is missing, none of its partitions is listed. Then the answer "missing" counts for each partition that was in use.
        let mut wanted = mem::take(&mut self.partitions);
        if wanted.is_empty() {
            wanted = elections.partitions_in_use(self.counted.unwrap_or(count).max(1));
        }
        let brokers: Vec<i32> = metadata.brokers().iter().map(MetadataBroker::id).collect();
        let (mut questions, mut missing) = (ByBroker::new(), None);
        for partition in wanted {
            let leader = partitions.iter().find(|it| it.id() == partition).map(MetadataPartition::leader);
            let leader = leader.filter(|leader| *leader >= 0);
            let mut candidates = leader.into_iter().chain(brokers.iter().copied());
            if let Some(broker) = candidates.find(|broker| !self.unanswering.contains(broker)) {
                questions.entry(broker).or_default().insert(partition);
            } else {
                // None of the brokers has answered, so all of them are asked again.
                missing = Some(RDKafkaErrorCode::AllBrokersDown);
                self.partitions.insert(partition);
            }
        }
        if missing.is_some() {
            self.unanswering.clear();
        }
        let (limit, asked) = (answer_limit.ask(), clock::now());
        let ask = |broker, _: &_| describe_topic(client, &elections.topic, Some(broker), limit, Variation::None);
        ask_all(&questions, ask, |broker, partitions, answer| match answer {
            Ok(TopicDescription { identity, partitions: count, .. }) => {
                let partitions = partitions.iter().copied().collect();
                // Another cluster's topic confirms nothing.
                deliver(match access.admit(client) {
                    Ok(()) => KafkaEvent::Identified { asked, identity, count, partitions },
                    Err(error) => SessionEvent::Refused { role: None, error }.into(),
                });
            }
            Err(code) => {
                missing = Some(code);
                self.unanswering.insert(broker);
                self.partitions.extend(partitions);
            }
        });
        if missing.is_none() {
            answer_limit.answered(asked);
        } else {
            answer_limit.unanswered(asked);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::ClientConfig;
    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::election::Properties;

    /// A process with many roles leads on partitions of several brokers. If one of them does not answer for as long as a lease, only the
    /// leads on its partitions may end.
    #[test]
    fn a_silent_broker_does_not_delay_the_answer_for_another_brokers_partitions() {
        const TOO_LONG: Duration = Duration::from_secs(60);
        let cluster = MockCluster::new(3).unwrap();
        cluster.create_topic("t", 3, 1).unwrap();
        for (partition, leader) in [(0, 1), (1, 2), (2, 3)] {
            cluster.partition_leader("t", partition, Some(leader)).unwrap();
        }
        for silent in [1, 3] {
            cluster.broker_round_trip_time(silent, TOO_LONG).unwrap();
        }
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
        let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..3, names: Arc::new([]) };
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let mut limit = AnswerLimit::new(TOO_LONG, TOO_LONG).at_most(TOO_LONG);
            let deliver = |event| sender.send(event).unwrap();
            Unconfirmed::default().ask(producer.client(), &access, &elections, &mut limit, deliver)
        });
        let answer = answers.recv_timeout(TOO_LONG / 2);
        let Ok(KafkaEvent::Identified { partitions, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(partitions, [1]);
    }

    /// The topic of another cluster confirms nothing, whatever its id.
    #[test]
    fn an_answer_of_another_cluster_is_refused() {
        const LONG: Duration = Duration::from_secs(10);
        let [one, other] = [(); 2].map(|()| MockCluster::new(1).unwrap());
        let access = Access::at(&one.bootstrap_servers(), &Properties::default());
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: Arc::new([]) };
        let ask = |cluster: &MockCluster<'static, _>| {
            cluster.create_topic("t", 1, 1).unwrap();
            let producer: BaseProducer =
                ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
            let (mut answers, mut limit) = (Vec::new(), AnswerLimit::new(LONG, LONG));
            let deliver = |event| answers.push(event);
            Unconfirmed::default().ask(producer.client(), &access, &elections, &mut limit, deliver);
            answers
        };
        let answers = ask(&one);
        assert!(matches!(answers[..], [KafkaEvent::Identified { .. }]), "{answers:?}");
        let answers = ask(&other);
        let [KafkaEvent::Process(SessionEvent::Refused { role: None, error })] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert!(error.starts_with("answers of two clusters: "), "{error}");
    }
}
