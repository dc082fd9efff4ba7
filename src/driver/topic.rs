//! The election's topic: whether it is there, making it when it is not, and the facts that R0 judges.

use std::thread;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigEntry, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataBroker;

use crate::config::Election;
use crate::driver::broker::{Access, Ears, explain};
use crate::driver::meaning::{Meaning, plain};
use crate::logic::topic::{Layout, Settings, TopicFacts};

/// What a look at the topic found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It is there, and so is the election's partition, with a leader.
    There(Layout),
    /// It is known, but the partition or its leader is not there yet.
    Coming,
    /// There is no such topic; so many brokers could hold it.
    Missing {
        /// Brokers of the cluster.
        brokers: usize,
    },
}

/// A question about the topic that got no answer that helps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// Kafka refuses for good: one line that names the thing, the value, and what would be right.
    Refused(String),
    /// Worth asking again.
    Transient(RDKafkaErrorCode),
}

/// Looks for the topic, and waits `timeout` for an answer. The topic is never made by it.
///
/// # Errors
///
/// No answer, or one that says no.
pub fn look(client: &Client<impl ClientContext>, election: &Election, timeout: Duration) -> Result<Presence, Trouble> {
    let metadata = client.fetch_metadata(Some(&election.topic), timeout).map_err(|error| trouble(&error, election))?;
    let brokers = metadata.brokers().len();
    let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == election.topic) else {
        return Ok(Presence::Missing { brokers });
    };
    if let Some(error) = topic.error() {
        let code = RDKafkaErrorCode::from(error);
        let meaning = Meaning::from(code);
        if meaning == Meaning::UnknownTopic {
            return Ok(Presence::Missing { brokers });
        }
        if meaning == Meaning::Moving {
            return Ok(Presence::Coming);
        }
        return Err(trouble(&KafkaError::MetadataFetch(code), election));
    }
    let partition = topic.partitions().iter().find(|partition| partition.id() == election.partition);
    Ok(match partition {
        None if !topic.partitions().is_empty() => {
            let (name, wanted, have) = (&election.topic, election.partition, topic.partitions().len());
            let advice = format!("give it at least {}", wanted + 1);
            return Err(Trouble::Refused(format!(
                "topic \"{name}\": partition {wanted} is needed, but it has {have}; {advice}"
            )));
        }
        Some(partition) if partition.leader() >= 0 => {
            let brokers = metadata.brokers().iter().map(MetadataBroker::id).collect();
            Presence::There(Layout { replicas: partition.replicas().to_vec(), brokers })
        }
        None | Some(_) => Presence::Coming,
    })
}

/// Makes the topic with the settings that R0 asks for: one partition per role, as many replicas as make sense on
/// `brokers` brokers. Waits `timeout` for an answer. Gives the number of replicas; none where that is not ours to say: somebody
/// else made it meanwhile, which is as good, or the broker is the embedded one.
///
/// # Errors
///
/// No answer, or one that says no.
pub fn create(
    access: &Access,
    election: &Election,
    brokers: usize,
    timeout: Duration,
) -> Result<Option<usize>, Trouble> {
    if let Some(connection) = &access.embedded {
        return connection
            .create_topic(&election.topic, election.partition + 1)
            .map(|()| None)
            .map_err(|_| Trouble::Transient(RDKafkaErrorCode::BrokerTransportFailure));
    }
    let replicas = brokers.clamp(1, 3);
    let replication = TopicReplication::Fixed(i32::try_from(replicas).unwrap_or(1));
    let mut topic = NewTopic::new(&election.topic, election.partition + 1, replication)
        .set("cleanup.policy", "delete")
        .set("message.timestamp.type", "LogAppendTime")
        .set("retention.bytes", "-1")
        // A night can be looked at in the morning; a beat a second is 20 MB a day.
        .set("retention.ms", "86400000")
        .set("segment.ms", "3600000")
        .set("unclean.leader.election.enable", "false");
    if replicas == 3 {
        topic = topic.set("min.insync.replicas", "2");
    }
    let admin = admin(access).map_err(|error| trouble(&error, election))?;
    let options = AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
    let answer = wait(admin.create_topics([&topic], &options));
    let_go(admin);
    for result in answer.map_err(|error| trouble(&error, election))? {
        match result {
            Ok(_) => {}
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => return Ok(None),
            Err((_, code)) => return Err(not_created(code, election)),
        }
    }
    Ok(Some(replicas))
}

/// Asks for what R0 judges, with a client of its own that is gone afterwards; waits `timeout` for each of two answers.
/// That the settings can't be read is a fact too.
///
/// # Errors
///
/// No answer, or one that says no.
pub fn facts(access: &Access, election: &Election, timeout: Duration) -> Result<TopicFacts, Trouble> {
    let admin = admin(access).map_err(|error| trouble(&error, election))?;
    let presence = look(admin.inner(), election, timeout);
    let options = AdminOptions::new().request_timeout(Some(timeout));
    let answer = wait(admin.describe_configs([&ResourceSpecifier::Topic(&election.topic)], &options));
    let_go(admin);
    let Presence::There(layout) = presence? else {
        return Err(Trouble::Transient(RDKafkaErrorCode::UnknownTopicOrPartition));
    };
    let settings = match answer.map(|results| results.into_iter().next()) {
        // Forbidden, it comes without an error and without an entry.
        Ok(Some(Ok(resource))) => read(&resource.entries).ok_or_else(|| "it is not shown to this user".to_owned()),
        Ok(Some(Err(code))) => Err(plain(code)),
        Ok(None) => Err("Kafka says nothing about the topic".to_owned()),
        Err(error) => match trouble(&error, election) {
            Trouble::Transient(code) if matches!(code.into(), Meaning::Connection | Meaning::NoBroker) => {
                return Err(Trouble::Transient(code));
            }
            // A broker that knows no such question is as silent as one that may not answer it.
            Trouble::Transient(code) => Err(plain(code)),
            refused @ Trouble::Refused(_) => return Err(refused),
        },
    };
    Ok(TopicFacts { layout, settings })
}

/// The line about a topic that this user may not even see; that it is there is not said by it.
#[must_use]
pub fn may_not_describe(topic: &str) -> String {
    format!(
        "topic \"{topic}\": this user has no right to DESCRIBE it; allow READ, and WRITE to a candidate (each implies it)"
    )
}

/// The line about a topic that this user may not read.
#[must_use]
pub fn may_not_read(topic: &str) -> String {
    format!("topic \"{topic}\": this user has no right to READ it; allow READ on it")
}

/// The line about a topic that this user may not write to.
#[must_use]
pub fn may_not_write(topic: &str) -> String {
    format!("topic \"{topic}\": this user has no right to WRITE to it; allow WRITE on it")
}

/// What the broker shows of the settings, each by itself; nothing at all when it shows none of the topic's.
fn read(entries: &[ConfigEntry]) -> Option<Settings> {
    if entries.is_empty() {
        return None;
    }
    let value = |name: &str| entries.iter().find(|entry| entry.name == name).and_then(|entry| entry.value.as_deref());
    Some(Settings {
        cleanup_policy: value("cleanup.policy").map(str::to_owned),
        retention_ms: value("retention.ms").and_then(|value| value.parse().ok()),
        retention_bytes: value("retention.bytes").and_then(|value| value.parse().ok()),
        timestamp_type: value("message.timestamp.type").map(str::to_owned),
        unclean_leader_election: value("unclean.leader.election.enable").map(|value| value == "true"),
        min_insync_replicas: value("min.insync.replicas").and_then(|value| value.parse().ok()),
    })
}

fn admin(access: &Access) -> Result<AdminClient<Ears>, KafkaError> {
    AdminClient::from_config_and_context(&access.admin(), Ears::new(access))
}

/// Drops the client in a thread of its own: its farewell takes a tenth of a second, which nobody should wait for.
fn let_go(admin: AdminClient<Ears>) {
    // Without a thread the closure, and the client in it, is dropped here.
    let _ = thread::Builder::new().name("neli-farewell".to_owned()).spawn(move || drop(admin));
}

/// Waits for an answer that librdkafka bounds in time. No timer is needed, so no runtime but this.
fn wait<T>(answer: impl Future<Output = Result<T, KafkaError>>) -> Result<T, KafkaError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.map_err(|error| KafkaError::AdminOpCreation(error.to_string()))?.block_on(answer)
}

fn not_created(code: RDKafkaErrorCode, election: &Election) -> Trouble {
    use RDKafkaErrorCode::{
        ClusterAuthorizationFailed, InvalidConfig, PolicyViolation, TopicAuthorizationFailed, UnsupportedFeature,
    };
    let name = &election.topic;
    if [ClusterAuthorizationFailed, TopicAuthorizationFailed].contains(&code) {
        Trouble::Refused(format!(
            "topic \"{name}\": it is missing, and this user has no right to CREATE it; create it, or allow CREATE on it"
        ))
    } else if [InvalidConfig, PolicyViolation].contains(&code) {
        Trouble::Refused(format!(
            "topic \"{name}\": it is missing, and the cluster refuses to create it ({}); create it by hand",
            plain(code)
        ))
    } else if code == UnsupportedFeature {
        Trouble::Refused(format!(
            "topic \"{name}\": it is missing, and this broker creates none; if it is neli-run's own, say --embedded"
        ))
    } else {
        trouble(&KafkaError::AdminOp(code), election)
    }
}

/// What an error about the topic means.
fn trouble(error: &KafkaError, election: &Election) -> Trouble {
    let name = &election.topic;
    if matches!(error, KafkaError::ClientConfig(..) | KafkaError::ClientCreation(_)) {
        return Trouble::Refused(explain(error));
    }
    // rust-rdkafka leaves this one out of `rdkafka_error_code`.
    let code = if let KafkaError::AdminOp(code) = error { Some(*code) } else { error.rdkafka_error_code() };
    let code = code.unwrap_or(RDKafkaErrorCode::Fail);
    if code == RDKafkaErrorCode::InvalidTopic {
        return Trouble::Refused(format!(
            "topic \"{name}\": no name for a topic; use up to 249 letters, digits, dots, hyphens and underscores"
        ));
    }
    if Meaning::from(code) == Meaning::TopicForbidden {
        return Trouble::Refused(may_not_describe(name));
    }
    Trouble::Transient(code)
}
