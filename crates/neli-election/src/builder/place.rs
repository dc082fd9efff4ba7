//! The election, and the connection to Kafka: the options that candidates and followers have in common.

use std::sync::Arc;

use neli_kafka::embedded::Connection;
use neli_kafka::properties::{self, Fault};
use neli_kafka::{Access, Elections, MemberTimings, Properties, bootstrap_servers, names, reason};

use crate::builder::Builder;
use crate::error::Error;
use crate::wording;

impl Builder {
    /// How Kafka is reached, and the elections: of one role, called by its number, if no roles were given.
    pub(crate) fn place(&self) -> Result<(Access, Elections), Error> {
        let (count, names) = self.roles.clone().unwrap_or((1, Arc::default()));
        if !(1..=names::MOST_ROLES).contains(&count) {
            return Err(Error::option("roles", count.to_string(), format!("must be 1 to {}", names::MOST_ROLES)));
        }
        names::validate_roles(&names).map_err(|error| Error::option("named_roles", names.join(","), error))?;
        let group = &self.group;
        names::validate_group(group).map_err(|error| Error::option("group", group, error))?;
        let topic = self.topic.clone().unwrap_or_else(|| format!("{group}.neli"));
        if !names::is_topic(&topic) {
            return Err(match &self.topic {
                Some(topic) => Error::option("topic", topic, format!("must be {}", names::TOPIC)),
                None => Error::option(
                    "group",
                    group,
                    format!("the topic '{topic}' would not be {}; give another by topic", names::TOPIC),
                ),
            });
        }
        Ok((self.access()?, Elections { group: group.clone(), topic, roles: 0..count, names }))
    }

    fn access(&self) -> Result<Access, Error> {
        let properties = self.checked_properties()?;
        let access = match (&self.brokers, &self.embedded) {
            (None, None) => {
                return Err(Error::option("brokers", "", "is required: HOST:PORT,.. of Kafka's bootstrap servers"));
            }
            (Some(brokers), Some(_)) => {
                return Err(Error::option("brokers", brokers, "can't be combined with embedded"));
            }
            (None, Some(broker)) => Access::embedded(&broker.connection, &properties),
            (Some(brokers), None) => {
                let list = bootstrap_servers::validate(brokers, &properties);
                let list = list.map_err(|error| Error::option("brokers", brokers, error))?;
                Access::at(&list, &properties)
            }
        };
        Ok(Access { words: &wording::WORDS, ..access })
    }

    fn checked_properties(&self) -> Result<Properties, Error> {
        let mut checked: Vec<(String, String)> = Vec::new();
        for (key, value) in &self.properties {
            // The value may be a secret.
            let fault = |fault: Fault| Error::option("property", key, wording::fault(&fault));
            properties::validate(key, value).map_err(fault)?;
            let key = properties::canonical(key);
            checked.retain(|(before, _)| before != key);
            checked.push((key.to_owned(), value.clone()));
        }
        let properties = Properties(checked);
        let MemberTimings { heartbeat_interval, session_timeout } = MemberTimings::of(&properties);
        if heartbeat_interval > session_timeout / 3 {
            let expected = "must be at least three times heartbeat.interval.ms";
            return Err(Error::option("property", "session.timeout.ms", expected));
        }
        Ok(properties)
    }
}

// ---- a broker in this process, for tests and trials -----------------------------------------------------------------

/// A small broker in this process, for tests and trials: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing
/// on disk. It lives until the last clone of this value, and the last candidate and follower that use it, are dropped.
///
/// Only candidates of this process can use it; candidates of several processes need a real Kafka. `neli-run --embedded` has a broker of its
/// own, in a separate process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = neli_election::EmbeddedBroker::start()?;
/// let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// assert!(election.lead().await?.lease().is_valid());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedBroker {
    pub(crate) connection: Arc<Connection>,
}

impl EmbeddedBroker {
    /// Starts a broker.
    ///
    /// # Errors
    ///
    /// The machine has no thread, port or descriptor to spare.
    pub fn start() -> Result<Self, Error> {
        let connection = Connection::to_own_broker()
            .map_err(|error| Error::System(format!("the embedded broker can't be started: {}", reason(&error))))?;
        Ok(Self { connection: Arc::new(connection) })
    }
}
