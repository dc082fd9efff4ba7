//! Asks for the first and the next offset of several partitions' logs with one question.
//!
//! The broker answers a connection's requests in turn, and may delay a fetch for half a second. With one question for each partition, a
//! hundred partitions would take most of a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use crate::kafka::error_class::code_of;

/// The first and the next offset of a log, or why they are unknown.
pub(super) type Answer = Result<(i64, i64), RDKafkaErrorCode>;

/// Asks for these partitions; waits `limit` for the answer to each question.
pub(super) fn ask(
    consumer: &BaseConsumer<impl ConsumerContext>,
    topic: &str,
    partitions: &BTreeSet<i32>,
    limit: Duration,
) -> BTreeMap<i32, Answer> {
    let ask_each = |partitions| ask_each_leader(consumer, topic, partitions, limit);
    let mut answers = match partitions.first() {
        Some(partition) if partitions.len() == 1 => {
            let answer = consumer.fetch_watermarks(topic, *partition, limit).map_err(|error| code_of(&error));
            BTreeMap::from([(*partition, answer)])
        }
        // librdkafka gives no answer at all if one of the partitions has none.
        _ => ask_together(consumer, topic, partitions, limit).unwrap_or_else(|_| ask_each(partitions)),
    };
    // librdkafka gives this error both for a partition that has no leader for now and for one that does not exist.
    let is_unknown = |answer: &Answer| *answer == Err(RDKafkaErrorCode::UnknownPartition);
    let unknown: BTreeSet<i32> =
        answers.iter().filter(|(_, answer)| is_unknown(answer)).map(|(partition, _)| *partition).collect();
    if !unknown.is_empty() {
        answers.append(&mut ask_each(&unknown));
    }
    answers
}

/// Asks with one question for each leader, so that a leader that is down does not prevent the answers for other leaders' partitions.
fn ask_each_leader(
    consumer: &BaseConsumer<impl ConsumerContext>,
    topic: &str,
    partitions: &BTreeSet<i32>,
    limit: Duration,
) -> BTreeMap<i32, Answer> {
    let leaders = match leaders(consumer, topic, limit) {
        Ok(leaders) => leaders,
        Err(code) => return all(partitions, code),
    };
    let mut answers = BTreeMap::new();
    let mut led: BTreeMap<i32, BTreeSet<i32>> = BTreeMap::new();
    for partition in partitions {
        match leaders.get(partition) {
            None => drop(answers.insert(*partition, Err(RDKafkaErrorCode::UnknownTopicOrPartition))),
            Some(leader) if *leader < 0 => drop(answers.insert(*partition, Err(RDKafkaErrorCode::LeaderNotAvailable))),
            Some(leader) => drop(led.entry(*leader).or_default().insert(*partition)),
        }
    }
    for partitions in led.values() {
        let together = ask_together(consumer, topic, partitions, limit);
        answers.append(&mut together.unwrap_or_else(|code| all(partitions, code)));
    }
    answers
}

/// The broker that leads each partition of the topic; a number below 0 means that there is none.
fn leaders(
    consumer: &BaseConsumer<impl ConsumerContext>,
    topic: &str,
    limit: Duration,
) -> Result<BTreeMap<i32, i32>, RDKafkaErrorCode> {
    let metadata = consumer.fetch_metadata(Some(topic), limit).map_err(|error| code_of(&error))?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let found = found.ok_or(RDKafkaErrorCode::UnknownTopicOrPartition)?;
    match found.error() {
        Some(error) => Err(error.into()),
        None => Ok(found.partitions().iter().map(|partition| (partition.id(), partition.leader())).collect()),
    }
}

fn ask_together(
    consumer: &BaseConsumer<impl ConsumerContext>,
    topic: &str,
    partitions: &BTreeSet<i32>,
    limit: Duration,
) -> Result<BTreeMap<i32, Answer>, RDKafkaErrorCode> {
    let ask_for = |which| offsets(consumer, topic, partitions, which, limit);
    // Both questions are asked at the same time, so that both wait behind the same fetch.
    let (starts, ends) = thread::scope(|scope| {
        let starts = thread::Builder::new()
            .name("neli-starts".to_owned())
            .spawn_scoped(scope, || ask_for(Offset::Beginning))
            .map_err(|_| RDKafkaErrorCode::Fail);
        let ends = ask_for(Offset::End);
        (starts.and_then(|starts| starts.join().unwrap_or(Err(RDKafkaErrorCode::Fail))), ends)
    });
    let (starts, ends) = (starts?, ends?);
    let bounds_of = |partition: &i32| {
        let of = |answers: &BTreeMap<i32, _>| answers.get(partition).copied().unwrap_or(Err(RDKafkaErrorCode::Fail));
        (*partition, of(&starts).and_then(|start| of(&ends).map(|end| (start, end))))
    };
    Ok(partitions.iter().map(bounds_of).collect())
}

/// The first or the next offset of each partition's log.
fn offsets(
    consumer: &BaseConsumer<impl ConsumerContext>,
    topic: &str,
    partitions: &BTreeSet<i32>,
    which: Offset,
    limit: Duration,
) -> Result<BTreeMap<i32, Result<i64, RDKafkaErrorCode>>, RDKafkaErrorCode> {
    let mut wanted = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        wanted.add_partition_offset(topic, *partition, which).map_err(|error| code_of(&error))?;
    }
    // In Kafka's protocol the first and the next offset are the offsets for two special times.
    let answered = consumer.offsets_for_times(wanted, limit).map_err(|error| code_of(&error))?;
    let offset = |element: &TopicPartitionListElem<'_>| {
        element.error().map_err(|error| code_of(&error))?;
        let offset = element.offset().to_raw().filter(|offset| *offset >= 0);
        offset.ok_or(RDKafkaErrorCode::UnknownPartition)
    };
    Ok(answered.elements().iter().map(|element| (element.partition(), offset(element))).collect())
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
        ask(consumer, "topic", &partitions.iter().copied().collect(), limit).into_iter().collect()
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
}
