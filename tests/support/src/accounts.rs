//! Accounts and rights, told to a broker that has an authorizer.
//!
//! librdkafka's binding has no call for rights: the one request that is needed is written by hand (`CreateAcls`, version 1).

use crate::request::Request;

/// Every account's password.
pub const PASSWORD: &str = "correct horse";

/// Who may log in on a broker's listener with accounts, and what they may do there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Account {
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
    /// What the manual says that a candidate needs.
    Operator,
}

/// What an access rule is about, as the protocol numbers it.
#[derive(Clone, Copy)]
enum Resource {
    Topic = 2,
    Group = 3,
}

/// What an access rule allows, as the protocol numbers it.
#[derive(Clone, Copy)]
enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Describe = 8,
    DescribeConfigs = 10,
}

use Operation::{Create, Describe, DescribeConfigs, Read as Reads, Write as Writes};

impl Account {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::NoConfigs, Self::NoCreate, Self::NoGroup, Self::NoRead, Self::NoWrite, Self::Operator];

    /// The name to log in by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoConfigs => "no-configs",
            Self::NoCreate => "no-create",
            Self::NoGroup => "no-group",
            Self::NoRead => "no-read",
            Self::NoWrite => "no-write",
            Self::Operator => "operator",
        }
    }

    /// The librdkafka properties to log in by.
    #[must_use]
    pub fn properties(self) -> Vec<(String, String)> {
        login(self.name(), PASSWORD)
    }

    fn rights(self) -> Vec<(Resource, Operation)> {
        let topic: &[Operation] = match self {
            Self::NoConfigs => &[Reads, Writes, Create, Describe],
            Self::NoCreate => &[Reads, Writes, Describe, DescribeConfigs],
            Self::NoRead => &[Writes, Create, Describe, DescribeConfigs],
            Self::NoWrite => &[Reads, Create, Describe, DescribeConfigs],
            Self::NoGroup | Self::Operator => &[Reads, Writes, Create, Describe, DescribeConfigs],
        };
        let group: &[Operation] = if self == Self::NoGroup { &[] } else { &[Reads, Describe] };
        let topics = topic.iter().map(|operation| (Resource::Topic, *operation));
        topics.chain(group.iter().map(|operation| (Resource::Group, *operation))).collect()
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

/// The librdkafka properties of a login over TLS, by a challenge (SCRAM).
#[must_use]
pub fn secure_login(name: &str, password: &str) -> Vec<(String, String)> {
    let changed = [("security.protocol", "SASL_SSL"), ("sasl.mechanisms", "SCRAM-SHA-256")];
    let changed = changed.map(|(key, value)| (key.to_owned(), value.to_owned()));
    login(name, password).into_iter().chain(changed).collect()
}

/// [`Account::Operator`] as Kafka's `format` takes it.
pub(crate) fn scram() -> String {
    format!("SCRAM-SHA-256=[name={},password=\"{PASSWORD}\"]", Account::Operator.name())
}

/// The accounts as a JAAS login module takes them.
pub(crate) fn jaas() -> String {
    let users = Account::ALL.map(|account| format!(" user_{}=\"{PASSWORD}\"", account.name())).concat();
    format!("org.apache.kafka.common.security.plain.PlainLoginModule required{users};")
}

/// Tells a broker every account's rights, over a listener where whoever comes is its superuser.
pub(crate) fn grant(address: &str) {
    let rights: Vec<_> = Account::ALL
        .iter()
        .flat_map(|account| account.rights().into_iter().map(|right| (account.name(), right)))
        .collect();

    let mut request = Request::new(30, 1); // CreateAcls
    request.i32(i32::try_from(rights.len()).unwrap());
    for (account, (resource, operation)) in &rights {
        request.i8(*resource as i8);
        request.text("*");
        request.i8(3); // the name is literal, and `*` any
        request.text(&format!("User:{account}"));
        request.text("*"); // from any host
        request.i8(*operation as i8);
        request.i8(3); // allow
    }
    let answer = request.send(address).expect("the broker answers");

    // Correlation, throttle time and the number of results; each result is an error number and an empty text.
    let results = answer.get(12..).expect("an answer has results");
    let granted = [0; 4].repeat(rights.len());
    assert_eq!(results, granted, "the broker refuses rights: {}", String::from_utf8_lossy(results));
}
