//! The election's topic: finds it, creates it if it is missing, and reads the facts that R0 judges.

use std::collections::BTreeMap;
use std::time::Duration;

use neli_proto::topic::{Layout, SettingsUnread, TopicFacts, TopicSettings};
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::MetadataBroker;

use crate::clock;
use crate::election::Elections;
use crate::kafka::access::Access;
use crate::kafka::answer_limit::AnswerLimit;
use crate::kafka::error_class::{ErrorClass, code_of, plain};
use crate::kafka::librdkafka::{NewTopic, broker_settings, create_topic, topic_settings};
pub use existence::{TopicExistence, has_topic, topics};

mod existence;

/// The time limit for the settings is twice the time of the first answer, and this.
const SETTINGS_ALLOWANCE: Duration = Duration::from_secs(1);

/// The settings that R0 judges.
const SETTINGS: [&str; 6] =
    [CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES, TIMESTAMP_TYPE, UNCLEAN_LEADER_ELECTION, MIN_INSYNC_REPLICAS];
const CLEANUP_POLICY: &str = "cleanup.policy";
const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const TIMESTAMP_TYPE: &str = "message.timestamp.type";
const UNCLEAN_LEADER_ELECTION: &str = "unclean.leader.election.enable";
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// This many other brokers are asked about the settings before the partition's leader is.
const BESIDES_LEADER: usize = 2;

/// The number of the leader of a partition that has none.
const NO_LEADER: i32 = -1;

/// The end of the default name of a journal's topic.
pub(super) const SUFFIX: &str = ".neli";

/// The largest number of partitions of a topic that is created here. With more roles, several roles share a partition: a partition costs a
/// broker memory, files and a recovery at its start, and each candidate reads all partitions anyway.
const MOST_PARTITIONS: i32 = 100;

/// Whether the topic exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// It exists, and a partition in use has a leader.
    There(Found),
    /// It exists, but no partition in use has a leader: it is being created, or the brokers that could lead are down.
    Coming,
    /// It does not exist; this many brokers could store it.
    Missing {
        /// The number of brokers of the cluster.
        brokers: usize,
    },
}

/// The topic's partitions, as they were found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// The number of its partitions.
    pub(super) partitions: i32,
    /// The layout of each partition in use that has a leader; never empty.
    pub(super) layouts: BTreeMap<i32, Layout>,
    /// Whether each partition in use has a leader.
    pub(super) is_whole: bool,
    /// The broker that answered; below 0 if only its address is known. This client has a connection to it.
    pub(super) answered_by: i32,
}

impl Found {
    /// The leaders of the partitions in use.
    pub(super) fn into_leaders(self) -> Leaders {
        let leader = |partition| self.layouts.get(&partition).map_or(NO_LEADER, |layout| layout.leader);
        let of = (0..self.partitions).map(|partition| (partition, leader(partition))).collect();
        Leaders { of, reported_by: self.answered_by }
    }

    /// The layout of the first partition in use that has a leader. All partitions of a topic have the same number of replicas, unless an
    /// operator has moved some.
    fn into_first(self) -> Option<Layout> {
        self.layouts.into_values().next()
    }
}

/// The brokers that lead a topic's partitions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Leaders {
    /// The leader of each partition; below 0 if it has none, or is not in use.
    pub(super) of: BTreeMap<i32, i32>,
    /// The broker that reported them; below 0 if only its address is known. This client has a connection to it.
    pub(super) reported_by: i32,
}

/// Why a question about the topic has no usable answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TopicError {
    /// Kafka refuses, and another attempt is useless: one line with the name, the value, and what would be right.
    Refused(String),
    /// Another attempt may succeed.
    Transient(RDKafkaErrorCode),
}

/// Looks for the topic, and waits `timeout` for an answer. It never creates the topic.
///
/// # Errors
///
/// No answer, or a refusal.
pub(super) fn look(
    client: &Client<impl ClientContext>,
    elections: &Elections,
    timeout: Duration,
) -> Result<Presence, TopicError> {
    let metadata =
        client.fetch_metadata(Some(&elections.topic), timeout).map_err(|error| trouble(code_of(&error), elections))?;
    let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == elections.topic) else {
        return Ok(Presence::Missing { brokers: metadata.brokers().len() });
    };
    if let Some(error) = topic.error() {
        let code = RDKafkaErrorCode::from(error);
        let meaning = ErrorClass::from(code);
        if meaning == ErrorClass::UnknownTopic {
            return Ok(Presence::Missing { brokers: metadata.brokers().len() });
        }
        if meaning == ErrorClass::Moving {
            return Ok(Presence::Coming);
        }
        return Err(trouble(code, elections));
    }
    let partitions = i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX);
    let brokers: Vec<i32> = metadata.brokers().iter().map(MetadataBroker::id).collect();
    let in_use = elections.partitions_in_use(partitions);
    let led = topic.partitions().iter().filter(|partition| in_use.contains(&partition.id()) && partition.leader() >= 0);
    let layouts: BTreeMap<i32, Layout> = led
        .map(|partition| {
            let (leader, replicas) = (partition.leader(), partition.replicas().to_vec());
            (partition.id(), Layout { leader, replicas, brokers: brokers.clone() })
        })
        .collect();
    let is_whole = layouts.len() == in_use.len();
    let answered_by = metadata.orig_broker_id();
    let found = Found { partitions, layouts, is_whole, answered_by };
    Ok(if found.layouts.is_empty() { Presence::Coming } else { Presence::There(found) })
}

/// The names of all topics that this user may see, in order. Waits `timeout` for an answer.
///
/// # Errors
///
/// librdkafka's code.
pub(super) fn names(client: &Client<impl ClientContext>, timeout: Duration) -> Result<Vec<String>, RDKafkaErrorCode> {
    let metadata = client.fetch_metadata(None, timeout);
    let metadata = metadata.map_err(|error| code_of(&error))?;
    let mut names: Vec<String> = metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
    names.sort();
    Ok(names)
}

/// The line about a missing topic for an operator, who may have mistyped the name.
pub(super) fn missing(client: &Client<impl ClientContext>, elections: &Elections, timeout: Duration) -> String {
    const SHOWN: usize = 10;
    let names = names(client, timeout).unwrap_or_default();
    let journals: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.ends_with(SUFFIX)).collect();
    let shown = journals.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let there = match journals.len() {
        0 => format!("no topic's name ends in {SUFFIX}"),
        1..=SHOWN => format!("topics *{SUFFIX}: {shown}"),
        more => format!("topics *{SUFFIX}: {shown}, and {} more", more - SHOWN),
    };
    format!("topic \"{}\" does not exist; {there}", elections.topic)
}

fn partitions_of_new(elections: &Elections) -> i32 {
    i32::try_from(elections.roles.end).unwrap_or(MOST_PARTITIONS).min(MOST_PARTITIONS)
}

/// The topic to be created: with the settings that R0 requires, one partition for each role up to [`MOST_PARTITIONS`], and up to three
/// replicas, as `brokers` allows.
pub(super) fn wanted(elections: &Elections, brokers: usize) -> NewTopic<'_> {
    let replicas = brokers.clamp(1, 3);
    let mut settings = vec![
        (CLEANUP_POLICY, "delete".to_owned()),
        (TIMESTAMP_TYPE, "LogAppendTime".to_owned()),
        (RETENTION_BYTES, "-1".to_owned()),
        // The record of a night can be read in the morning. At a heartbeat each second this is 20 MB a day.
        (RETENTION_MS, "86400000".to_owned()),
        ("segment.ms", "3600000".to_owned()),
        (UNCLEAN_LEADER_ELECTION, "false".to_owned()),
    ];
    if replicas == 3 {
        settings.push((MIN_INSYNC_REPLICAS, "2".to_owned()));
    }
    let (partitions, replicas) = (partitions_of_new(elections), i32::try_from(replicas).unwrap_or(1));
    NewTopic { name: &elections.topic, partitions, replicas, settings }
}

/// Creates the topic as [`wanted`] describes it. Waits `timeout` for an answer. Returns the number of replicas; `None` if another candidate
/// created the topic meanwhile, or if the broker is the embedded one.
///
/// # Errors
///
/// No answer, or a refusal.
pub(super) fn create(
    client: &Client<impl ClientContext>,
    access: &Access,
    elections: &Elections,
    brokers: usize,
    timeout: Duration,
) -> Result<Option<usize>, TopicError> {
    if let Some(connection) = &access.embedded {
        return connection
            .create_topic(&elections.topic, partitions_of_new(elections))
            .map(|()| None)
            .map_err(|_| TopicError::Transient(RDKafkaErrorCode::BrokerTransportFailure));
    }
    let topic = wanted(elections, brokers);
    match create_topic(client, &topic, timeout) {
        Ok(()) => Ok(usize::try_from(topic.replicas).ok()),
        Err(RDKafkaErrorCode::TopicAlreadyExists) => Ok(None),
        Err(code) => Err(not_created(code, elections)),
    }
}

/// Asks for the facts that R0 judges. Waits `answer_limit` for the topic's layout, and then for the settings twice as long as that took,
/// and a second. Unreadable settings are a result too, and no error.
///
/// # Errors
///
/// No answer, or a refusal.
pub(super) fn facts(
    client: &Client<impl ClientContext>,
    elections: &Elections,
    answer_limit: &mut AnswerLimit,
) -> Result<TopicFacts, TopicError> {
    let limit = answer_limit.ask();
    let asked = clock::now();
    let missing = TopicError::Transient(RDKafkaErrorCode::UnknownTopicOrPartition);
    let Presence::There(found) = look(client, elections, limit)? else { return Err(missing) };
    let layout = found.into_first().ok_or(missing)?;
    let limit = answer_limit.answered(asked) * 2 + SETTINGS_ALLOWANCE;
    // Any broker can answer. The leader is asked last: it answers the requests of a connection one after another, and a claim may be
    // waiting there for its replicas. A broker that has just died is listed for some seconds more, so a second broker is asked before the
    // leader.
    let ask = |broker| topic_settings(client, &elections.topic, &SETTINGS, broker, limit);
    let besides = layout.besides_leader().take(BESIDES_LEADER).find_map(|broker| ask(broker).ok());
    let settings = match besides.map_or_else(|| ask(layout.leader), Ok) {
        // If this user lacks the right to them, the answer has no error and no entry.
        Ok(settings) => read(&settings).ok_or_else(|| "it is not shown to this user".to_owned()),
        Err(RDKafkaErrorCode::OperationTimedOut) => Err(format!("no answer within {} ms", limit.as_millis())),
        Err(code) if matches!(code.into(), ErrorClass::Connection | ErrorClass::NoBroker) => {
            return Err(TopicError::Transient(code));
        }
        // A broker that does not support the question is treated like one that refuses the answer.
        Err(code) => Err(plain(code)),
    };
    Ok(TopicFacts { layout, settings: settings.map_err(SettingsUnread) })
}

/// The time without a heartbeat after which the controller takes a broker for dead (`broker.session.timeout.ms`), according to this
/// broker's settings; `None` if it does not answer within `timeout`, or does not show the value to this user.
pub(super) fn broker_session(client: &Client<impl ClientContext>, broker: i32, timeout: Duration) -> Option<Duration> {
    const SESSION: &str = "broker.session.timeout.ms";
    let settings = broker_settings(client, &[SESSION], broker, timeout).ok()?;
    let (_, value) = settings.into_iter().find(|(name, _)| name == SESSION)?;
    value?.parse().ok().map(Duration::from_millis)
}

/// The line about a topic for which this user lacks even DESCRIBE; Kafka does not reveal whether it exists.
#[must_use]
pub(super) fn may_not_describe(topic: &str) -> String {
    format!(
        "topic \"{topic}\": this user has no right to DESCRIBE it; allow READ, and WRITE to a candidate (each implies it)"
    )
}

/// The line about a missing topic that this process may not create.
#[must_use]
pub(super) fn must_be_created(topic: &str) -> String {
    format!("topic \"{topic}\": it does not exist; create it, or drop --no-create-topic")
}

/// The line about a topic whose number of partitions is another than the one by which roles were assigned to partitions.
#[must_use]
pub(crate) fn partitions_changed(topic: &str, known: i32, now: i32) -> String {
    format!(
        "topic \"{topic}\": it had {known} partitions and has {now} now, so roles move to other partitions; stop all \
         candidates, and start them again"
    )
}

/// The line about a topic that this user may not read.
#[must_use]
pub(super) fn may_not_read(topic: &str) -> String {
    format!("topic \"{topic}\": this user has no right to READ it; allow READ on it")
}

/// The line about a topic that this user may not write to.
#[must_use]
pub(super) fn may_not_write(topic: &str) -> String {
    format!("topic \"{topic}\": this user has no right to WRITE to it; allow WRITE on it")
}

/// Parses the settings, each independently of the others; `None` if the broker shows none of them.
fn read(settings: &[(String, Option<String>)]) -> Option<TopicSettings> {
    if settings.is_empty() {
        return None;
    }
    let value = |name: &str| settings.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.as_deref());
    Some(TopicSettings {
        cleanup_policy: value(CLEANUP_POLICY).map(str::to_owned),
        retention_ms: value(RETENTION_MS).and_then(|value| value.parse().ok()),
        retention_bytes: value(RETENTION_BYTES).and_then(|value| value.parse().ok()),
        timestamp_type: value(TIMESTAMP_TYPE).map(str::to_owned),
        unclean_leader_election: value(UNCLEAN_LEADER_ELECTION).map(|value| value == "true"),
        min_insync_replicas: value(MIN_INSYNC_REPLICAS).and_then(|value| value.parse().ok()),
    })
}

pub(super) fn not_created(code: RDKafkaErrorCode, elections: &Elections) -> TopicError {
    use RDKafkaErrorCode::{
        ClusterAuthorizationFailed, InvalidConfig, PolicyViolation, TopicAuthorizationFailed, UnsupportedFeature,
    };
    let name = &elections.topic;
    if [ClusterAuthorizationFailed, TopicAuthorizationFailed].contains(&code) {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and this user has no right to CREATE it; create it, or allow CREATE on it"
        ))
    } else if [InvalidConfig, PolicyViolation].contains(&code) {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and the cluster refuses to create it ({}); create it by hand",
            plain(code)
        ))
    } else if code == UnsupportedFeature {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and this broker creates none; if it is neli-run's own, say --embedded"
        ))
    } else {
        trouble(code, elections)
    }
}

/// The meaning of an error about the topic.
fn trouble(code: RDKafkaErrorCode, elections: &Elections) -> TopicError {
    let name = &elections.topic;
    if code == RDKafkaErrorCode::InvalidTopic {
        return TopicError::Refused(format!(
            "topic \"{name}\": no name for a topic; use up to 249 letters, digits, dots, hyphens and underscores"
        ));
    }
    if ErrorClass::from(code) == ErrorClass::TopicForbidden {
        return TopicError::Refused(may_not_describe(name));
    }
    TopicError::Transient(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_topic_has_up_to_three_replicas() {
        let names: std::sync::Arc<[String]> = std::sync::Arc::default();
        let elections = Elections { group: "g".to_owned(), topic: "g.neli".to_owned(), roles: 0..1, names };
        for (brokers, replicas, least_in_sync) in
            [(0, 1, None), (1, 1, None), (2, 2, None), (3, 3, Some("2")), (9, 3, Some("2"))]
        {
            let topic = wanted(&elections, brokers);
            let least = topic.settings.iter().find(|(name, _)| *name == MIN_INSYNC_REPLICAS);
            assert_eq!(
                (topic.replicas, least.map(|(_, least)| least.as_str())),
                (replicas, least_in_sync),
                "{brokers} brokers"
            );
        }
    }

    #[test]
    fn each_setting_is_parsed_independently() {
        let shown = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        assert_eq!(read(&[]), None);
        let settings = [
            shown("cleanup.policy", Some("compact")),
            shown("retention.ms", Some("soon")),
            shown("retention.bytes", None),
            shown("unclean.leader.election.enable", Some("true")),
        ];
        let read = read(&settings).unwrap();
        let expected = TopicSettings {
            cleanup_policy: Some("compact".to_owned()),
            unclean_leader_election: Some(true),
            ..TopicSettings::default()
        };
        assert_eq!(read, expected);
    }
}
