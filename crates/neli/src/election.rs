//! Which election, and how Kafka is reached: plain data, as a configuration gives it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One election: (topic, partition, key).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Election {
    /// `--group`.
    pub group: String,
    /// `--topic`, or `<group>.neli`.
    pub topic: String,
    /// The partition; that of the role.
    pub partition: i32,
    /// The role; 0 until `--roles` comes.
    pub role: u32,
}

impl Election {
    /// The key of the election's records: `<group>/<role>`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.group, self.role)
    }

    /// The key of the records by which its candidates introduce themselves: `<group>/<role>/hello`.
    #[must_use]
    pub fn hello_key(&self) -> String {
        format!("{}/hello", self.key())
    }
}

/// How Kafka is reached.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Client {
    /// Where Kafka is.
    pub brokers: Brokers,
    /// librdkafka properties of the user's, in the order given (a later one wins); proven to be none that the protocol rests on.
    pub properties: Properties,
}

/// Where Kafka is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Brokers {
    /// `--brokers`: bootstrap servers, as librdkafka takes them.
    At(String),
    /// `--embedded`: the small broker on this machine's loopback, found or started.
    Embedded,
}

/// librdkafka properties; some are secrets, so that none is ever shown.
#[derive(Clone, Default, Deserialize, Serialize)]
pub struct Properties(pub Vec<(String, String)>);

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

impl Properties {
    /// The value that counts.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(candidate, _)| candidate == key).map(|(_, value)| value.as_str())
    }
}

/// Whether its value is one that nobody else should see (those that librdkafka calls sensitive, less names of users and
/// files).
#[must_use]
pub fn is_secret(key: &str) -> bool {
    ["password", "passphrase", "secret", "key.pem", "oauthbearer.config"].iter().any(|part| key.contains(part))
}
