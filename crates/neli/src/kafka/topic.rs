//! The election's topic: whether it exists, making it if it does not, and what R0 judges.

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
use crate::kafka::error_class::{ErrorClass, plain};
use crate::kafka::librdkafka::{NewTopic, broker_settings, create_topic, topic_settings};
pub use existence::{TopicExistence, has_topic, topics};

mod existence;

/// How much longer than two round trips an answer about the settings may take.
const SETTINGS_ALLOWANCE: Duration = Duration::from_secs(1);

/// What R0 judges.
const SETTINGS: [&str; 6] =
    [CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES, TIMESTAMP_TYPE, UNCLEAN_LEADER_ELECTION, MIN_INSYNC_REPLICAS];
const CLEANUP_POLICY: &str = "cleanup.policy";
const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const TIMESTAMP_TYPE: &str = "message.timestamp.type";
const UNCLEAN_LEADER_ELECTION: &str = "unclean.leader.election.enable";
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// This many other brokers are asked about the settings before the partition's leader.
const BESIDES_LEADER: usize = 2;

/// What the name of a journal's topic ends in, unless it was named otherwise.
pub(super) const SUFFIX: &str = ".neli";

/// The most partitions that a topic is made with. More roles share them: a partition costs a broker memory, files and a recovery at
/// its start, and each candidate reads all of them anyway.
const MOST_PARTITIONS: i32 = 100;

/// What a look at the topic found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// It is there, and so is a leader of a partition in use.
    There(Found),
    /// It is known, but no partition in use has a leader: it is being made, or the brokers that may lead are down.
    Coming,
    /// There is no such topic; this many brokers could hold it.
    Missing {
        /// Brokers of the cluster.
        brokers: usize,
    },
}

/// The topic, as it was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// How many partitions it has.
    pub(super) partitions: i32,
    /// Where each partition in use lies that has a leader; never empty.
    pub(super) layouts: BTreeMap<i32, Layout>,
    /// Whether each partition in use has a leader.
    pub(super) is_whole: bool,
}

impl Found {
    /// Where the first partition in use lies that has a leader. All partitions of a topic have as many replicas, but for what was moved by hand.
    fn into_first(self) -> Option<Layout> {
        self.layouts.into_values().next()
    }
}

/// A question about the topic that got no answer that helps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TopicError {
    /// Kafka refuses for good: one line that names the thing, the value, and what would be right.
    Refused(String),
    /// Worth asking again.
    Transient(RDKafkaErrorCode),
}

/// Looks for the topic, and waits `timeout` for an answer. The topic is never made by it.
///
/// # Errors
///
/// No answer, or a refusal.
pub(super) fn look(
    client: &Client<impl ClientContext>,
    elections: &Elections,
    timeout: Duration,
) -> Result<Presence, TopicError> {
    let metadata = client
        .fetch_metadata(Some(&elections.topic), timeout)
        .map_err(|error| trouble(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail), elections))?;
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
    Ok(if layouts.is_empty() { Presence::Coming } else { Presence::There(Found { partitions, layouts, is_whole }) })
}

/// The names of all topics that this user may see, in order. Waits `timeout` for an answer.
///
/// # Errors
///
/// librdkafka's code.
pub(super) fn names(client: &Client<impl ClientContext>, timeout: Duration) -> Result<Vec<String>, RDKafkaErrorCode> {
    let metadata = client.fetch_metadata(None, timeout);
    let metadata = metadata.map_err(|error| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail))?;
    let mut names: Vec<String> = metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
    names.sort();
    Ok(names)
}

/// The line about a missing topic for an operator, who may have mistyped its name.
pub(super) fn missing(client: &Client<impl ClientContext>, elections: &Elections, timeout: Duration) -> String {
    const SHOWN: usize = 10;
    let names = names(client, timeout).unwrap_or_default();
    let journals: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.ends_with(SUFFIX)).collect();
    let shown = journals.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let there = match journals.len() {
        0 => format!("no topic's name ends in {SUFFIX}"),
        1..=SHOWN => format!("there are {shown}"),
        more => format!("there are {shown}, and {} more", more - SHOWN),
    };
    format!("topic \"{}\" does not exist; {there}", elections.topic)
}

fn partitions_of_new(elections: &Elections) -> i32 {
    i32::try_from(elections.roles.end).unwrap_or(MOST_PARTITIONS).min(MOST_PARTITIONS)
}

/// The topic as it is made: with the settings that R0 asks for, one partition per role up to [`MOST_PARTITIONS`], as many replicas as make
/// sense on `brokers` brokers.
pub(super) fn wanted(elections: &Elections, brokers: usize) -> NewTopic<'_> {
    let replicas = brokers.clamp(1, 3);
    let mut settings = vec![
        (CLEANUP_POLICY, "delete".to_owned()),
        (TIMESTAMP_TYPE, "LogAppendTime".to_owned()),
        (RETENTION_BYTES, "-1".to_owned()),
        // A night can be looked at in the morning; a beat a second is 20 MB a day.
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

/// Makes the topic as [`wanted`]. Waits `timeout` for an answer. Returns the number of replicas; none if it was not
/// decided here: another candidate made it meanwhile, which is fine, or the broker is the embedded one.
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

/// Asks for what R0 judges; waits `answer_limit` for the partition's leader, and then twice as long as that took and
/// a second for the settings. That they can't be read, or that there is no answer, is a result too.
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
    // Any broker can answer. The leader is asked last: it answers the requests of a connection one after another, and
    // a claim may be waiting for its replicas there. A broker that has just died stays listed for seconds, so another
    // is asked after it.
    let ask = |broker| topic_settings(client, &elections.topic, &SETTINGS, broker, limit);
    let besides = layout.besides_leader().take(BESIDES_LEADER).find_map(|broker| ask(broker).ok());
    let settings = match besides.map_or_else(|| ask(layout.leader), Ok) {
        // Forbidden, they come without an error and without an entry.
        Ok(settings) => read(&settings).ok_or_else(|| "it is not shown to this user".to_owned()),
        Err(RDKafkaErrorCode::OperationTimedOut) => Err(format!("no answer within {} ms", limit.as_millis())),
        Err(code) if matches!(code.into(), ErrorClass::Connection | ErrorClass::NoBroker) => {
            return Err(TopicError::Transient(code));
        }
        // A broker that knows no such question is as silent as one that may not answer it.
        Err(code) => Err(plain(code)),
    };
    Ok(TopicFacts { layout, settings: settings.map_err(SettingsUnread) })
}

/// The time without a heartbeat after which the controller takes a broker for dead (`broker.session.timeout.ms`), by
/// this broker's settings; none if it does not answer within `timeout`, or does not tell this user.
pub(super) fn broker_session(client: &Client<impl ClientContext>, broker: i32, timeout: Duration) -> Option<Duration> {
    const SESSION: &str = "broker.session.timeout.ms";
    let settings = broker_settings(client, &[SESSION], broker, timeout).ok()?;
    let (_, value) = settings.into_iter().find(|(name, _)| name == SESSION)?;
    value?.parse().ok().map(Duration::from_millis)
}

/// The line about a topic that this user may not even see; it does not reveal whether the topic exists.
#[must_use]
pub(super) fn may_not_describe(topic: &str) -> String {
    format!(
        "topic \"{topic}\": this user has no right to DESCRIBE it; allow READ, and WRITE to a candidate (each implies it)"
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

/// What the broker shows of the settings, each by itself; nothing at all when it shows none of the topic's.
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

/// What an error about the topic means.
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
    fn settings_are_read_each_by_itself() {
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
