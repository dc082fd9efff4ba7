//! Accounts, and the rights that they have from the start.

use crate::rights::{Operation, Resource, Rights, Rule};

/// Every account's password.
pub const PASSWORD: &str = "correct horse";

/// Who may log in on a broker's listener with accounts, and what they may do there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Account {
    /// Makes topics; else nothing but what a test allows, on its own topic and group.
    Founder,
    /// Everything but asking for a topic's configuration.
    NoConfigs,
    /// Everything on topics that are there; makes none.
    NoCreate,
    /// Everything on topics, nothing on groups.
    NoGroup,
    /// May write, but not read.
    NoRead,
    /// May read, but not write.
    NoWrite,
    /// Every right that a candidate has a use for.
    Operator,
    /// Nothing but what a test allows, on its own topic and group.
    Tenant,
}

use Operation::{Create, Describe, DescribeConfigs, Read as Reads, Write as Writes};

impl Account {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::Founder,
        Self::NoConfigs,
        Self::NoCreate,
        Self::NoGroup,
        Self::NoRead,
        Self::NoWrite,
        Self::Operator,
        Self::Tenant,
    ];

    /// The name to log in by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Founder => "founder",
            Self::NoConfigs => "no-configs",
            Self::NoCreate => "no-create",
            Self::NoGroup => "no-group",
            Self::NoRead => "no-read",
            Self::NoWrite => "no-write",
            Self::Operator => "operator",
            Self::Tenant => "tenant",
        }
    }

    /// The librdkafka properties to log in by.
    #[must_use]
    pub fn properties(self) -> Vec<(String, String)> {
        login(self.name(), PASSWORD)
    }

    fn rules(self) -> impl Iterator<Item = Rule<'static>> {
        let topic: &[Operation] = match self {
            Self::NoConfigs => &[Reads, Writes, Create, Describe],
            Self::NoCreate => &[Reads, Writes, Describe, DescribeConfigs],
            Self::NoRead => &[Writes, Create, Describe, DescribeConfigs],
            Self::NoWrite => &[Reads, Create, Describe, DescribeConfigs],
            Self::NoGroup | Self::Operator => &[Reads, Writes, Create, Describe, DescribeConfigs],
            Self::Founder | Self::Tenant => &[],
        };
        let cluster: &[Operation] = if self == Self::Founder { &[Create] } else { &[] };
        let group: &[Operation] = match self {
            Self::NoConfigs | Self::NoCreate | Self::NoRead | Self::NoWrite | Self::Operator => &[Reads, Describe],
            Self::Founder | Self::NoGroup | Self::Tenant => &[],
        };
        let topics = topic.iter().map(|operation| (Resource::Topic("*"), *operation));
        let groups = group.iter().map(|operation| (Resource::Group("*"), *operation));
        let rights = topics.chain(groups).chain(cluster.iter().map(|operation| (Resource::Cluster, *operation)));
        rights.map(move |(resource, operation)| Rule::allow(self.name(), resource, operation))
    }
}

/// The librdkafka properties of a login.
#[must_use]
pub fn login(name: &str, password: &str) -> Vec<(String, String)> {
    let pairs = [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanisms", "PLAIN"),
        ("sasl.username", name),
        ("sasl.password", password),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// How one logs in over TLS by a challenge.
pub const SCRAM: [&str; 2] = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

/// The librdkafka properties of a login over TLS, by one of [`SCRAM`].
#[must_use]
pub fn secure_login(mechanism: &str, name: &str, password: &str) -> Vec<(String, String)> {
    let changed = [("security.protocol", "SASL_SSL"), ("sasl.mechanisms", mechanism)];
    let mut properties = login(name, password);
    for (key, value) in changed {
        properties.retain(|(known, _)| known != key);
        properties.push((key.to_owned(), value.to_owned()));
    }
    properties
}

/// Those who can log in by a challenge, as Kafka's `format` takes them.
pub(crate) fn scram() -> impl Iterator<Item = String> {
    let accounts = [Account::Operator, Account::Tenant].into_iter();
    accounts.flat_map(|account| {
        SCRAM.map(|mechanism| format!("{mechanism}=[name={},password=\"{PASSWORD}\"]", account.name()))
    })
}

/// The accounts as a JAAS login module takes them.
pub(crate) fn jaas() -> String {
    let users = Account::ALL.map(|account| format!(" user_{}=\"{PASSWORD}\"", account.name())).concat();
    format!("org.apache.kafka.common.security.plain.PlainLoginModule required{users};")
}

/// Tells a broker every account's rights, over a listener where whoever comes is its superuser.
pub(crate) fn grant(address: &str) {
    let rules: Vec<_> = Account::ALL.into_iter().flat_map(Account::rules).collect();
    Rights::at(address).make(&rules);
}
