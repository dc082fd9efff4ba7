//! User accounts of the test brokers, and their initial rights.

use crate::kafka::Kafka;
use crate::request::Request;
use crate::rights::{Operation, Resource, Rights, Rule};

/// Every account's password.
pub const PASSWORD: &str = "correct horse";

/// An account that may log in on a broker's listener with accounts, named after its rights.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Account {
    /// An account that may create topics. Its other rights are those that a test grants on the test's own topic and group.
    Founder,
    /// All rights except reading a topic's configuration.
    NoConfigs,
    /// All rights on existing topics; may not create any.
    NoCreate,
    /// May write, but not read.
    NoRead,
    /// May read, but not write.
    NoWrite,
    /// Every right that a candidate needs.
    Operator,
    /// An account with only those rights that a test grants on the test's own topic and group.
    Tenant,
}

use Operation::{Create, Describe, DescribeConfigs, Read as Reads, Write as Writes};

impl Account {
    /// All accounts.
    pub const ALL: [Self; 7] =
        [Self::Founder, Self::NoConfigs, Self::NoCreate, Self::NoRead, Self::NoWrite, Self::Operator, Self::Tenant];

    /// The user name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Founder => "founder",
            Self::NoConfigs => "no-configs",
            Self::NoCreate => "no-create",
            Self::NoRead => "no-read",
            Self::NoWrite => "no-write",
            Self::Operator => "operator",
            Self::Tenant => "tenant",
        }
    }

    /// The librdkafka properties for a login with this account.
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
            Self::Operator => &[Reads, Writes, Create, Describe, DescribeConfigs],
            Self::Founder | Self::Tenant => &[],
        };
        let cluster: &[Operation] = if self == Self::Founder { &[Create] } else { &[] };
        let group: &[Operation] = match self {
            Self::NoConfigs | Self::NoCreate | Self::NoRead | Self::NoWrite | Self::Operator => &[Reads, Describe],
            Self::Founder | Self::Tenant => &[],
        };
        let topics = topic.iter().map(|operation| (Resource::Topic("*"), *operation));
        let groups = group.iter().map(|operation| (Resource::Group("*"), *operation));
        let rights = topics.chain(groups).chain(cluster.iter().map(|operation| (Resource::Cluster, *operation)));
        rights.map(move |(resource, operation)| Rule::allow(self.name(), resource, operation))
    }
}

/// The librdkafka properties for a login with this mechanism.
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

/// The SASL mechanisms for a login over TLS by challenge and response.
pub const SCRAM: [&str; 2] = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

/// The librdkafka properties for a login over TLS, by one of [`SCRAM`].
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

/// Changes the password of an account that logs in by the first of [`SCRAM`] at this broker, or changes it back to [`PASSWORD`].
pub fn change_password(kafka: &Kafka, account: Account, is_back: bool) {
    const ROUNDS: i32 = 4096;
    const SALT: &[u8] = b"salt of the tests";
    /// [`PASSWORD`] after salting and hashing with PBKDF2.
    const SALTED: [u8; 32] = [
        0xaf, 0x3e, 0x74, 0xf9, 0x46, 0xd1, 0x90, 0x18, 0xc0, 0x1d, 0x4d, 0x43, 0x23, 0x21, 0x4f, 0xe5, 0x44, 0x19,
        0xd3, 0x9f, 0x7f, 0xbe, 0x30, 0x0a, 0x1a, 0xb5, 0x48, 0x79, 0xb3, 0x0b, 0x56, 0x10,
    ];
    // AlterUserScramCredentials, version 0.
    let mut request = Request::new(51, 0);
    request.no_tags();
    let (deletions, changes, sha_256) = (0, 1, 1);
    request.compact_length(deletions);
    request.compact_length(changes);
    request.compact_text(account.name());
    request.i8(sha_256);
    request.i32(ROUNDS);
    request.compact_bytes(SALT);
    request.compact_bytes(if is_back { &SALTED } else { &[7; 32] });
    for _ in ["change", "request"] {
        request.no_tags();
    }
    let answer = request.send(kafka.address()).expect("the broker answers");
    // The error code follows the correlation id, the throttle time, the number of results and the name.
    let code = answer.get(11 + account.name().len()..).and_then(|rest| rest.first_chunk());
    assert_eq!(code.copied().map(i16::from_be_bytes), Some(0), "{answer:?}");
}

/// The accounts that can log in by SCRAM, as arguments for `kafka-storage format`.
pub(crate) fn scram() -> impl Iterator<Item = String> {
    let accounts = [Account::Operator, Account::Tenant].into_iter();
    accounts.flat_map(|account| {
        SCRAM.map(|mechanism| format!("{mechanism}=[name={},password=\"{PASSWORD}\"]", account.name()))
    })
}

/// The accounts in the syntax of a JAAS login module.
pub(crate) fn jaas() -> String {
    let users = Account::ALL.map(|account| format!(" user_{}=\"{PASSWORD}\"", account.name())).concat();
    format!("org.apache.kafka.common.security.plain.PlainLoginModule required{users};")
}

/// Creates every account's ACLs on a broker, over a listener on which every client is a superuser.
pub(crate) fn grant(address: &str) {
    let rules: Vec<_> = Account::ALL.into_iter().flat_map(Account::rules).collect();
    Rights::at(address).make(&rules);
}
