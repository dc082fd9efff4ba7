//! The election's topic: finds it, creates it if it is missing, and reads the facts that R0 judges.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::time::Time;
use neli_proto::topic::{GONE_AFTER, Layout, TopicFacts, TopicSettings, Unread};
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::{Metadata, MetadataBroker, MetadataPartition, MetadataTopic};

use crate::access::Access;
use crate::clock;
use crate::election::Elections;
use crate::error_class::{ErrorClass, code_of};
use crate::librdkafka::{AdminError, NewTopic, Variation, create_topic, settings};
use crate::questions::AnswerLimit;
use crate::text::Words;

/// The time limit for the settings is twice the time of the first answer, and this.
const SETTINGS_ALLOWANCE: Duration = Duration::from_secs(1);

/// The settings that R0 judges.
const SETTINGS: [&str; 7] = [
    CLEANUP_POLICY,
    RETENTION_MS,
    RETENTION_BYTES,
    TIMESTAMP_TYPE,
    UNCLEAN_LEADER_ELECTION,
    MIN_INSYNC_REPLICAS,
    MIN_COMPACTION_LAG_MS,
];
const CLEANUP_POLICY: &str = "cleanup.policy";
const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const TIMESTAMP_TYPE: &str = "message.timestamp.type";
const UNCLEAN_LEADER_ELECTION: &str = "unclean.leader.election.enable";
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";
const MIN_COMPACTION_LAG_MS: &str = "min.compaction.lag.ms";

/// This many other brokers are asked about the settings before the partition's leader is.
const BESIDES_LEADER: usize = 2;

/// The end of the default name of a journal's topic.
pub(super) const SUFFIX: &str = ".neli";

/// The largest number of partitions of a topic that is created here. With more roles, several roles share a partition: a partition costs a
/// broker memory, files and a recovery at its start, and each candidate reads all partitions anyway.
const MOST_PARTITIONS: i32 = 100;

/// Whether the topic exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// It exists with so many partitions, and a partition in use has a leader. The layout and the leaders of those that have one, and whether these
    /// are all that are in use.
    There { partitions: i32, layout: Layout, leaders: BTreeSet<i32>, is_whole: bool },
    /// It exists, but no partition in use has a leader: it is being created, or the brokers that could lead are down.
    Coming,
    /// It does not exist; these brokers, which are up, could store it.
    Missing { brokers: Vec<i32> },
}

/// Why a question about the topic has no usable answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TopicError {
    /// Kafka refuses, and another attempt is useless: one line with the name, the value, and what would be right.
    Refused(String),
    /// Another attempt may succeed.
    Transient(AdminError),
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
    let metadata = client
        .fetch_metadata(Some(&elections.topic), timeout)
        .map_err(|error| trouble(code_of(&error).into(), &elections.topic))?;
    let brokers: Vec<i32> = metadata.brokers().iter().map(MetadataBroker::id).collect();
    let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == elections.topic) else {
        return Ok(Presence::Missing { brokers });
    };
    if let Some(error) = topic.error() {
        let code = RDKafkaErrorCode::from(error);
        let meaning = ErrorClass::from(code);
        if meaning == ErrorClass::UnknownTopic {
            return Ok(Presence::Missing { brokers });
        }
        if meaning == ErrorClass::Moving {
            return Ok(Presence::Coming);
        }
        return Err(trouble(code.into(), &elections.topic));
    }
    let partitions = i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX);
    let in_use = elections.partitions_in_use(partitions);
    let used = topic.partitions().iter().filter(|partition| in_use.contains(&partition.id()));
    let led = used.clone().filter(|partition| partition.leader() >= 0);
    let Some(first) = led.clone().min_by_key(|partition| partition.id()) else { return Ok(Presence::Coming) };
    let leader = first.leader();
    let is_whole = led.clone().count() == in_use.len();
    let leaders = led.map(MetadataPartition::leader).collect();
    let replicas = used.map(|partition| (partition.id(), partition.replicas().to_vec())).collect();
    Ok(Presence::There { partitions, layout: Layout { leader, replicas, brokers }, leaders, is_whole })
}

/// The line about a missing topic for an operator, who may have mistyped the name.
pub(super) fn missing(client: &Client<impl ClientContext>, elections: &Elections, timeout: Duration) -> String {
    let metadata = client.fetch_metadata(None, timeout);
    let topics = metadata.iter().flat_map(Metadata::topics).map(MetadataTopic::name);
    let journals = journals(topics.collect(), &elections.topic);
    format!("topic \"{}\" does not exist; {journals}", elections.topic)
}

/// The topics with the suffix of journals, those first whose names are the most like the wanted one.
fn journals(mut topics: Vec<&str>, wanted: &str) -> String {
    const SHOWN: usize = 10;
    topics.retain(|name| name.ends_with(SUFFIX));
    let likeness = |name: &str| {
        let [name, wanted] = [name, wanted].map(|name| name.strip_suffix(SUFFIX).unwrap_or(name));
        strsim::jaro_winkler(name, wanted)
    };
    topics.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)).then_with(|| one.cmp(other)));
    let shown = topics.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match topics.len() {
        0 => format!("no topic's name ends in {SUFFIX}"),
        1..=SHOWN => format!("topics *{SUFFIX}: {shown}"),
        more => format!("topics *{SUFFIX}: {shown}, and {} more", more - SHOWN),
    }
}

/// The topic to be created: with the settings that R0 requires, one partition for each role up to `MOST_PARTITIONS`, and up to three
/// replicas, as `brokers` allows.
pub fn journal_to_create(elections: &Elections, brokers: usize) -> NewTopic<'_> {
    let settings = vec![
        (CLEANUP_POLICY, "delete".to_owned()),
        (TIMESTAMP_TYPE, "LogAppendTime".to_owned()),
        (RETENTION_BYTES, "-1".to_owned()),
        // The record of a night can be read in the morning. At a heartbeat each second this is 20 MB a day.
        (RETENTION_MS, "86400000".to_owned()),
        ("segment.ms", "3600000".to_owned()),
        (UNCLEAN_LEADER_ELECTION, "false".to_owned()),
    ];
    let partitions = i32::try_from(elections.roles.end).unwrap_or(MOST_PARTITIONS).min(MOST_PARTITIONS);
    replicated(NewTopic { name: &elections.topic, partitions, replicas: None, settings }, brokers.clamp(1, 3))
}

/// The topic with this number of replicas.
pub(super) fn replicated(mut topic: NewTopic<'_>, replicas: usize) -> NewTopic<'_> {
    topic.settings.retain(|(name, _)| *name != MIN_INSYNC_REPLICAS);
    if replicas >= 3 {
        topic.settings.push((MIN_INSYNC_REPLICAS, "2".to_owned()));
    }
    NewTopic { replicas: Some(i32::try_from(replicas).unwrap_or(1)), ..topic }
}

/// The settings of a topic for which a cluster may have defaults of its own: the topic's name for it, the broker's, and Kafka's default.
const DEFAULTS: [(&str, &str, &str); 5] = [
    (CLEANUP_POLICY, "log.cleanup.policy", "delete"),
    (MIN_INSYNC_REPLICAS, "min.insync.replicas", "1"),
    (RETENTION_BYTES, "log.retention.bytes", "-1"),
    (TIMESTAMP_TYPE, "log.message.timestamp.type", "CreateTime"),
    (UNCLEAN_LEADER_ELECTION, "unclean.leader.election.enable", "false"),
];
const DEFAULT_REPLICAS: &str = "default.replication.factor";

/// Creates the topic by `create`, or only asks whether that would be possible. Settings that the cluster has as its defaults are not sent, since its
/// policy may refuse any setting, and there are at least as many replicas as it gives by default. If the defaults are not shown to this user, all
/// settings are sent; if they are refused, the others that R0 needs are left to Kafka's defaults, and the number of replicas to the cluster's. Returns
/// the topic as it was accepted.
///
/// # Errors
///
/// The refusal, with the topic as it was refused last.
pub(super) fn create_as_accepted<'a>(
    client: &Client<impl ClientContext>,
    topic: NewTopic<'a>,
    broker: Option<i32>,
    timeout: Duration,
    create: impl Fn(&NewTopic<'a>) -> Result<(), AdminError>,
) -> Result<NewTopic<'a>, (AdminError, NewTopic<'a>)> {
    use RDKafkaErrorCode::{InvalidConfig, InvalidReplicationFactor, PolicyViolation};
    let names: Vec<&str> = DEFAULTS.iter().map(|(_, of_broker, _)| *of_broker).chain([DEFAULT_REPLICAS]).collect();
    let shown = broker.and_then(|broker| settings(client, None, &names, broker, timeout).ok()).unwrap_or_default();
    let first = beside(topic.clone(), &shown);
    let Err(refusal) = create(&first) else { return Ok(first) };
    let last = without_defaults(topic);
    if ![InvalidConfig, InvalidReplicationFactor, PolicyViolation].contains(&refusal.code) || last == first {
        return Err((refusal, first));
    }
    match create(&last) {
        Ok(()) => Ok(last),
        // A broker before 2.4 knows no default number of replicas.
        Err(error) if error.code == RDKafkaErrorCode::UnsupportedFeature => Err((refusal, first)),
        Err(error) => Err((error, last)),
    }
}

/// The topic beside the defaults that a broker shows.
fn beside<'a>(topic: NewTopic<'a>, shown: &[(String, Option<String>)]) -> NewTopic<'a> {
    let default = |wanted: &str| shown.iter().find(|(name, _)| name == wanted).and_then(|(_, value)| value.as_deref());
    let replicas = default(DEFAULT_REPLICAS).and_then(|count| count.parse().ok()).max(topic.replicas);
    let mut topic = replicated(topic, replicas.and_then(|count| usize::try_from(count).ok()).unwrap_or(1));
    let is_default = |name: &str, value: &str| {
        DEFAULTS.iter().any(|(setting, of_broker, _)| *setting == name && default(of_broker) == Some(value))
    };
    topic.settings.retain(|(name, value)| !is_default(name, value));
    topic
}

/// The topic with as few settings as possible.
fn without_defaults(mut topic: NewTopic<'_>) -> NewTopic<'_> {
    let is_default = |name: &str, value: &str| {
        name == MIN_INSYNC_REPLICAS || DEFAULTS.iter().any(|(setting, _, kafkas)| (*setting, *kafkas) == (name, value))
    };
    topic.settings.retain(|(name, value)| !is_default(name, value));
    NewTopic { replicas: None, ..topic }
}

/// Creates this topic. Waits `timeout` for an answer. Returns whether this process has created it; false if
/// another candidate created the topic meanwhile, or if the broker is the embedded one.
///
/// # Errors
///
/// No answer, or a refusal.
pub(super) fn create(
    client: &Client<impl ClientContext>,
    access: &Access,
    topic: NewTopic<'_>,
    brokers: &[i32],
    timeout: Duration,
) -> Result<bool, TopicError> {
    if let Some(connection) = &access.embedded {
        return connection
            .create_topic(topic.name, topic.partitions)
            .map(|()| false)
            .map_err(|_| TopicError::Transient(RDKafkaErrorCode::BrokerTransportFailure.into()));
    }
    let name = topic.name;
    let create = |topic: &NewTopic<'_>| create_topic(client, topic, Variation::None, timeout);
    match create_as_accepted(client, topic, brokers.first().copied(), timeout, create) {
        Ok(_) => Ok(true),
        Err((AdminError { code: RDKafkaErrorCode::TopicAlreadyExists, .. }, _)) => Ok(false),
        Err((error, _)) => Err(not_created(error, name, access.words)),
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
    let Presence::There { layout, .. } = look(client, elections, limit)? else {
        return Err(TopicError::Transient(RDKafkaErrorCode::UnknownTopicOrPartition.into()));
    };
    let limit = answer_limit.answered(asked) * 2 + SETTINGS_ALLOWANCE;
    // Any broker can answer. The leader is asked last: it answers the requests of a connection one after another, and a claim may be
    // waiting there for its replicas. A broker that has just died is listed for some seconds more, so a second broker is asked before the
    // leader.
    let ask = |broker| settings(client, Some(&elections.topic), &SETTINGS, broker, limit);
    let besides = layout.besides_leader().take(BESIDES_LEADER).find_map(|broker| ask(broker).ok());
    let settings = match besides.map_or_else(|| ask(layout.leader), Ok) {
        // If this user lacks the right to them, the answer has no error and no entry.
        Ok(settings) => read(&settings).ok_or(Unread::Forbidden),
        Err(AdminError { code: RDKafkaErrorCode::OperationTimedOut, .. }) => {
            Err(Unread::Failed(format!("no answer within {} ms; check the brokers' load", limit.as_millis())))
        }
        Err(error) if matches!(error.code.into(), ErrorClass::Connection | ErrorClass::NoBroker) => {
            return Err(TopicError::Transient(error));
        }
        Err(error) => Err(unread(error)),
    };
    Ok(TopicFacts { layout, settings })
}

/// Why the settings could not be read.
fn unread(AdminError { code, text }: AdminError) -> Unread {
    use RDKafkaErrorCode::{
        ClusterAuthorizationFailed, TopicAuthorizationFailed, UnsupportedFeature, UnsupportedVersion,
    };
    if [ClusterAuthorizationFailed, TopicAuthorizationFailed].contains(&code) {
        Unread::Forbidden
    } else if [UnsupportedFeature, UnsupportedVersion].contains(&code) {
        Unread::Unsupported
    } else {
        Unread::Failed(text)
    }
}

/// The time without a heartbeat after which the controller takes a broker for dead (`broker.session.timeout.ms`), according to this
/// broker's settings; `None` if it does not answer within `timeout`, or does not show the value to this user.
pub(super) fn broker_session(client: &Client<impl ClientContext>, broker: i32, timeout: Duration) -> Option<Duration> {
    const SESSION: &str = "broker.session.timeout.ms";
    let settings = settings(client, None, &[SESSION], broker, timeout).ok()?;
    let (_, value) = settings.into_iter().find(|(name, _)| name == SESSION)?;
    value?.parse().ok().map(Duration::from_millis)
}

/// The line about a topic for which this user lacks even DESCRIBE; Kafka does not reveal whether it exists.
pub(super) fn may_not_describe(topic: &str) -> String {
    format!(
        "topic \"{topic}\": this user has no right to DESCRIBE it; allow READ, and WRITE to a candidate (each implies it)"
    )
}

/// The same as [`GONE_AFTER`] at a process's start: `--wait` may be short, and what is missing then is mostly a wrong name.
pub(super) const MISSING_AFTER: Duration = Duration::from_secs(1);

/// Whether a topic that has been missing since then may be there all the same: a broker that has just started may not know it yet, as it may not know
/// one that was just made.
pub(super) fn may_come_back(access: &Access, missing_since: Time) -> bool {
    let known_within = if access.has_answered() { GONE_AFTER } else { MISSING_AFTER };
    clock::now().since(missing_since) < known_within
}

/// The line about a missing topic that this process may not create.
pub(super) fn must_be_created(topic: &str, words: &Words) -> String {
    format!("topic \"{topic}\": it does not exist; create it, or {}", words.create_topic)
}

/// The line about a topic whose number of partitions is another than the one by which roles were assigned to partitions.
pub(crate) fn partitions_changed(topic: &str, known: i32, now: i32) -> String {
    format!(
        "topic \"{topic}\": it had {known} partitions and has {now} now, so roles move to other partitions; stop all \
         candidates, and start them again"
    )
}

/// The line about a topic that this user may not read.
pub(super) fn may_not_read(topic: &str) -> String {
    format!("topic \"{topic}\": this user has no right to READ it; allow READ on it")
}

/// The line about a topic that this user may not write to. librdkafka has one code for all rights to a topic, and a right may have been revoked.
pub(super) fn may_not_write(topic: &str) -> String {
    format!(
        "topic \"{topic}\": this user has no right to WRITE to it, or no right to DESCRIBE it any more; allow WRITE, which implies DESCRIBE"
    )
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
        min_compaction_lag_ms: value(MIN_COMPACTION_LAG_MS).and_then(|value| value.parse().ok()),
    })
}

pub(super) fn not_created(error: AdminError, name: &str, words: &Words) -> TopicError {
    use RDKafkaErrorCode::{
        ClusterAuthorizationFailed, InvalidConfig, PolicyViolation, TopicAuthorizationFailed, UnsupportedFeature,
    };
    let AdminError { code, text } = &error;
    if [ClusterAuthorizationFailed, TopicAuthorizationFailed].contains(code) {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and this user has no right to CREATE it; create it, or allow CREATE on it"
        ))
    } else if [InvalidConfig, PolicyViolation].contains(code) {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and the cluster refuses to create it ({text}); create it by hand as the cluster demands, or take \
             another topic"
        ))
    } else if *code == UnsupportedFeature {
        TopicError::Refused(format!(
            "topic \"{name}\": it is missing, and this broker creates none; {}",
            words.own_broker
        ))
    } else {
        trouble(error, name)
    }
}

/// The meaning of an error about the topic.
fn trouble(error: AdminError, name: &str) -> TopicError {
    if error.code == RDKafkaErrorCode::InvalidTopic {
        return TopicError::Refused(format!(
            "topic \"{name}\": no name for a topic; use up to 249 letters, digits, dots, hyphens and underscores"
        ));
    }
    if ErrorClass::from(error.code) == ErrorClass::TopicForbidden {
        return TopicError::Refused(may_not_describe(name));
    }
    TopicError::Transient(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_topics_those_most_like_the_wanted_one_are_named() {
        assert_eq!(journals(vec!["other"], "billing.neli"), "no topic's name ends in .neli");
        let few = journals(vec!["a.neli", "other", "billing-production.neli", "bulk.neli"], "biling.neli");
        assert_eq!(few, "topics *.neli: billing-production.neli, bulk.neli, a.neli");
        let many: Vec<String> = (0..20).map(|number| format!("a{number}.neli")).chain(["n2.neli".to_owned()]).collect();
        let shown = journals(many.iter().map(String::as_str).collect(), "n2typo.neli");
        assert!(shown.starts_with("topics *.neli: n2.neli, ") && shown.ends_with(", and 11 more"), "{shown}");
    }

    #[test]
    fn a_new_topic_has_up_to_three_replicas() {
        let names: std::sync::Arc<[String]> = std::sync::Arc::default();
        let elections = Elections { group: "g".to_owned(), topic: "g.neli".to_owned(), roles: 0..1, names };
        for (brokers, replicas, least_in_sync) in
            [(0, 1, None), (1, 1, None), (2, 2, None), (3, 3, Some("2")), (9, 3, Some("2"))]
        {
            let topic = journal_to_create(&elections, brokers);
            let least = topic.settings.iter().find(|(name, _)| *name == MIN_INSYNC_REPLICAS);
            assert_eq!(
                (topic.replicas, least.map(|(_, least)| least.as_str())),
                (Some(replicas), least_in_sync),
                "{brokers} brokers"
            );
        }
    }

    #[test]
    fn a_new_topic_gets_what_the_cluster_does_not_give_by_default() {
        const ALWAYS: &str = "message.timestamp.type=LogAppendTime retention.ms=86400000 segment.ms=3600000";
        let names: std::sync::Arc<[String]> = std::sync::Arc::default();
        let elections = Elections { group: "g".to_owned(), topic: "g.neli".to_owned(), roles: 0..1, names };
        let shown = |settings: &[(&str, &str)]| -> Vec<(String, Option<String>)> {
            settings.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect()
        };
        let sent = |topic: NewTopic<'_>| {
            let settings: Vec<String> = topic.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (topic.replicas, settings.join(" "))
        };
        let all = "cleanup.policy=delete message.timestamp.type=LogAppendTime retention.bytes=-1 retention.ms=86400000 segment.ms=3600000 \
                   unclean.leader.election.enable=false";
        // Kafka's own defaults.
        let kafkas = shown(&[
            ("log.cleanup.policy", "delete"),
            ("min.insync.replicas", "1"),
            ("log.retention.bytes", "-1"),
            ("log.message.timestamp.type", "CreateTime"),
            ("unclean.leader.election.enable", "false"),
            ("default.replication.factor", "1"),
        ]);
        let of = |brokers| journal_to_create(&elections, brokers);
        assert_eq!(sent(beside(of(1), &kafkas)), (Some(1), ALWAYS.to_owned()));
        assert_eq!(sent(beside(of(3), &kafkas)), (Some(3), format!("{ALWAYS} min.insync.replicas=2")));
        // One of the three brokers of a cluster that demands three replicas is down.
        let managed = shown(&[("min.insync.replicas", "2"), ("default.replication.factor", "3")]);
        assert_eq!(sent(beside(of(2), &managed)), (Some(3), all.to_owned()));
        // A cluster whose defaults R0 refuses.
        let compacting = shown(&[("log.cleanup.policy", "compact"), ("unclean.leader.election.enable", "true")]);
        assert_eq!(sent(beside(of(1), &compacting)), (Some(1), all.to_owned()));
        assert_eq!(sent(beside(of(3), &[])), (Some(3), format!("{all} min.insync.replicas=2")));
        assert_eq!(sent(without_defaults(of(3))), (None, ALWAYS.to_owned()));
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
