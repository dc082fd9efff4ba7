//! The topic of facts itself: finds it, creates it if it is missing, identifies it, and reads the settings by which it is judged.

use std::thread;
use std::time::Duration;

use neli_proto::topic::{TopicId, TopicIdentity};
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::{MetadataPartition, MetadataTopic};

use super::{FactsSettings, FactsSource, Failure, LED_WITHIN, Thread, WantedFacts};
use crate::answer_limit::AnswerLimit;
use crate::clock;
use crate::context::KafkaContext;
use crate::election::Elections;
use crate::error_class::code_of;
use crate::event::FactsEvent;
use crate::librdkafka::{NewTopic, topic_identity};
use crate::partition_consumer::PartitionConsumer;
use crate::topic::{self, Presence};

/// The time between two checks of a topic that is being created.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// `segment.ms`.
const SEGMENT: Duration = Duration::from_secs(60 * 60);

/// The topic of facts to be created. Each lead reads the whole topic, so it must stay short. With Kafka's own settings, compaction leaves
/// out the active segment for up to a week (`segment.ms`), and waits until half of the log can be compacted.
pub(crate) fn topic_wanted(name: &str, kept: FactsSettings, replicas: usize) -> NewTopic<'_> {
    let settings = vec![
        ("cleanup.policy", "compact,delete".to_owned()),
        ("message.timestamp.type", "LogAppendTime".to_owned()),
        ("min.cleanable.dirty.ratio", "0.1".to_owned()),
        ("min.compaction.lag.ms", kept.compaction_lag.as_millis().to_string()),
        ("retention.bytes", "-1".to_owned()),
        ("retention.ms", kept.retention.as_millis().to_string()),
        ("segment.ms", SEGMENT.as_millis().to_string()),
        ("unclean.leader.election.enable", "false".to_owned()),
    ];
    topic::replicated(NewTopic { name, partitions: 1, replicas: None, settings }, replicas)
}

impl Thread {
    /// Reports the settings by which the topic is judged, once. The embedded broker's topic has no settings.
    pub(super) fn have_judged(
        &mut self,
        consumer: &PartitionConsumer<KafkaContext>,
        limit: &mut AnswerLimit,
    ) -> Result<(), Failure> {
        if !self.source.wanted.judge || self.source.access.embedded.is_some() {
            return Ok(());
        }
        let facts = topic::facts(consumer.consumer().client(), &self.place(), limit);
        let facts = facts.map_err(|error| self.of_topic_error(error))?;
        self.source.wanted.judge = false;
        self.report(FactsEvent::Topic(facts));
        Ok(())
    }

    /// Waits until the topic exists. Creates it if that is allowed.
    pub(super) fn find_topic(
        &self,
        consumer: &PartitionConsumer<KafkaContext>,
        limit: &mut AnswerLimit,
    ) -> Result<(), Failure> {
        let client = consumer.consumer().client();
        let place = self.place();
        let begun = clock::now();
        let mut created_with = None;
        while !self.is_over() {
            let presence = topic::look(client, &place, limit.ask()).map_err(|error| self.of_topic_error(error))?;
            let brokers = match presence {
                Presence::There(found) => {
                    if let Some(brokers) = created_with {
                        self.report(FactsEvent::Created { replicas: found.replicas(), brokers });
                    }
                    return Ok(());
                }
                Presence::Coming if clock::now().since(begun) < LED_WITHIN => {
                    thread::park_timeout(LOOK_AGAIN);
                    continue;
                }
                Presence::Coming => {
                    return Err(Failure::Transient(
                        "its partition has no leader; start the brokers that hold it".to_owned(),
                    ));
                }
                Presence::Missing { brokers } => brokers,
            };
            if !self.source.create_topic {
                return Err(Failure::Refused(topic::must_be_created(&self.source.wanted.topic)));
            }
            // The topic gets as many replicas as the journal has.
            let journal = topic::look(client, &self.source.elections, limit.ask());
            let replicas = match journal.map_err(|error| self.of_topic_error(error))? {
                Presence::There(found) => found.replicas(),
                Presence::Coming | Presence::Missing { .. } => brokers.len().clamp(1, 3),
            };
            if self.create(consumer, replicas, &brokers, limit.ask())? {
                created_with = Some(brokers.len());
            }
        }
        Err(Failure::Transient("it was given up".to_owned()))
    }

    /// Returns whether this process created the topic; false if another one did so meanwhile, or with the embedded broker, where it is not
    /// reported.
    fn create(
        &self,
        consumer: &PartitionConsumer<KafkaContext>,
        replicas: usize,
        brokers: &[i32],
        timeout: Duration,
    ) -> Result<bool, Failure> {
        let FactsSource { access, wanted: WantedFacts { topic, settings, .. }, .. } = &self.source;
        if let Some(connection) = &access.embedded {
            let created = connection.create_topic(topic, 1);
            return created.map(|()| false).map_err(|error| Failure::Transient(error.to_string()));
        }
        let wanted = topic_wanted(topic, *settings, replicas);
        topic::create_one(consumer.consumer().client(), wanted, brokers, &self.place(), timeout)
            .map_err(|error| self.of_topic_error(error))
    }

    /// The topic of facts, in the form of one election's topic.
    fn place(&self) -> Elections {
        Elections { topic: self.source.wanted.topic.clone(), roles: 0..1, ..self.source.elections.clone() }
    }

    /// The topic's id, from the broker that leads its partition; `None` from a broker without topic ids (before 2.8).
    pub(super) fn topic_id(
        &self,
        consumer: &PartitionConsumer<KafkaContext>,
        limit: &AnswerLimit,
    ) -> Result<Option<TopicId>, RDKafkaErrorCode> {
        let client = consumer.consumer().client();
        let name = &self.source.wanted.topic;
        let metadata = client.fetch_metadata(Some(name), limit.limit()).map_err(|error| code_of(&error))?;
        let mut leaders = metadata.topics().iter().flat_map(MetadataTopic::partitions).map(MetadataPartition::leader);
        let leader = leaders.find(|leader| *leader >= 0).ok_or(RDKafkaErrorCode::LeaderNotAvailable)?;
        match topic_identity(client, name, Some(leader), limit.limit())? {
            TopicIdentity::Id(id) => Ok(Some(id)),
            TopicIdentity::Missing => Err(RDKafkaErrorCode::UnknownTopicOrPartition),
            TopicIdentity::Unnamed => Ok(None),
        }
    }
}
