//! The election, and the connection to Kafka: the options that candidates and followers have in common.

use neli_kafka::{
    Access, ElectionId, MemberTimings, Properties, bootstrap, names,
    properties::{self, Fault},
};

use crate::embedded_broker::EmbeddedBroker;
use crate::error::Error;
use crate::wording;

/// The options as they were given.
#[derive(Clone)]
pub(crate) struct PlaceOptions {
    group: String,
    pub(crate) brokers: Option<String>,
    pub(crate) embedded: Option<EmbeddedBroker>,
    pub(crate) topic: Option<String>,
    pub(crate) properties: Vec<(String, String)>,
}

/// Which election, and how Kafka is reached.
pub(crate) struct Place {
    pub(crate) election: ElectionId,
    pub(crate) access: Access,
}

impl PlaceOptions {
    pub(crate) const fn new(group: String) -> Self {
        Self { group, brokers: None, embedded: None, topic: None, properties: Vec::new() }
    }

    pub(crate) fn validate(&self) -> Result<Place, Error> {
        let group = &self.group;
        names::validate_group(group).map_err(|error| Error::option("group", group, error.to_string()))?;
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
        let election = ElectionId { group: group.clone(), topic, partition: 0, role: 0, role_name: None };
        Ok(Place { election, access: self.access()? })
    }

    fn access(&self) -> Result<Access, Error> {
        let properties = self.properties()?;
        match (&self.brokers, &self.embedded) {
            (None, None) => Err(Error::option("brokers", "", "is required: HOST:PORT,.. of Kafka's bootstrap servers")),
            (Some(brokers), Some(_)) => Err(Error::option("brokers", brokers, "can't be combined with embedded")),
            (None, Some(broker)) => Ok(Access::embedded(&broker.connection, &properties)),
            (Some(brokers), None) => {
                let list = bootstrap::validate(brokers, &properties);
                let list = list.map_err(|error| Error::option("brokers", brokers, error.to_string()))?;
                Ok(Access::at(&list, &properties))
            }
        }
    }

    fn properties(&self) -> Result<Properties, Error> {
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
