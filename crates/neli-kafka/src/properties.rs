//! librdkafka's properties, as users give them: all except those that the protocol sets itself.
//!
//! Any of them may be a secret: nothing here shows a value.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use thiserror::Error;

use crate::election::Properties;

/// The properties that the protocol sets itself, by every name that librdkafka has for them, and what to do instead.
const REFUSED: &[(&str, Instead)] = &[
    ("acks", Instead::Nothing("acks=all is required")),
    ("allow.auto.create.topics", Instead::Topic),
    ("auto.commit.enable", Instead::Nothing("the journal is read by offset, and no offset is committed")),
    ("auto.offset.reset", Instead::Nothing("records that are skipped would break the law of the journal")),
    ("bootstrap.servers", Instead::Brokers),
    ("client.rack", Instead::Nothing("the journal is read from the partition's leader")),
    ("delivery.report.only.error", Instead::Nothing("that a record was appended must be known")),
    ("delivery.timeout.ms", Instead::Lease),
    ("enable.auto.commit", Instead::Nothing("the journal is read by offset, and no offset is committed")),
    ("enable.auto.offset.store", Instead::Nothing("the journal is read by offset, and no offset is stored")),
    ("enable.gapless.guarantee", Instead::Nothing(ENDS_PRODUCERS)),
    ("enable.idempotence", Instead::Nothing(ENDS_PRODUCERS)),
    ("enable.partition.eof", Instead::Nothing("the journal's reader depends on this value")),
    ("group.id", Instead::Group),
    ("group.instance.id", Instead::Nothing("a standby that leaves must leave the group")),
    ("group.protocol", Instead::Elector),
    ("group.remote.assignor", Instead::Elector),
    ("internal.termination.signal", Instead::Nothing("librdkafka's threads would take a signal of the program")),
    ("isolation.level", Instead::Nothing("all readers must see the same records")),
    ("max.poll.interval.ms", Instead::Nothing("the group must not take a busy leader for a dead one")),
    ("message.timeout.ms", Instead::Lease),
    ("metadata.broker.list", Instead::Brokers),
    ("partition.assignment.strategy", Instead::Nothing("a standby that joins must not move the partition")),
    ("plugin.library.paths", Instead::Nothing("no foreign code is loaded into this process")),
    ("request.required.acks", Instead::Nothing("acks=all is required")),
    ("transactional.id", Instead::Nothing("the journal needs no transactions")),
];

const ENDS_PRODUCERS: &str = "its errors end a producer for good; a record that is written twice does no harm";

/// The mechanisms of a login. librdkafka checks them only when a client is created.
const MECHANISMS: [&str; 5] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"];
const AWS: &str = "AWS_MSK_IAM";

/// Aliases, each with the name that it stands for.
const ALIASES: &[(&str, &str)] = &[
    ("compression.type", "compression.codec"),
    ("linger.ms", "queue.buffering.max.ms"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("retries", "message.send.max.retries"),
    ("sasl.mechanism", "sasl.mechanisms"),
    ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
    ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
];

/// What a user does instead of setting a property that the protocol sets itself. Program and library have different words for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Instead {
    /// Names the brokers.
    Brokers,
    /// Chooses the elector; the order of candidates depends on the classic protocol.
    Elector,
    /// Names the group.
    Group,
    /// Sets the lease, from which the value follows.
    Lease,
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// Lets the topic be made, or makes it.
    Topic,
}

/// Why a property was refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Fault {
    /// The property is for librdkafka's own tests.
    #[error("cannot be set: it is for librdkafka's own tests")]
    ForTests,
    /// librdkafka has no such property, or refuses its value: what would be right.
    #[error("{0}")]
    Invalid(String),
    /// The property, or its value, needs a library that librdkafka was built without.
    #[error("{}is not supported by this build: {reason}", if *.is_value { "its value " } else { "" })]
    NotBuilt {
        /// Its value.
        is_value: bool,
        /// librdkafka's reason, which names the library.
        reason: String,
    },
    /// The protocol sets it itself.
    #[error("cannot be set")]
    NotYours(Instead),
}

impl Properties {
    /// Adds a property, under the one name that it has. The last one of a name counts.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        validate(key, value)?;
        let key = canonical(key);
        self.0.retain(|(earlier, _)| earlier != key);
        self.0.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn validate(key: &str, value: &str) -> Result<(), Fault> {
    // librdkafka takes a topic's property with this prefix, too.
    let name = key.strip_prefix("topic.").unwrap_or(key);
    if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(Fault::NotYours(*instead));
    }
    if name.starts_with("test.mock.") || name.starts_with("ut_") {
        return Err(Fault::ForTests);
    }
    // librdkafka takes these without a warning, and has no use for them.
    if name.starts_with("sasl.kerberos.") && !cfg!(feature = "gssapi") {
        return Err(Fault::NotBuilt { is_value: false, reason: "libsasl2 is missing".to_owned() });
    }
    if canonical(key) == "sasl.mechanisms" && !MECHANISMS.contains(&value) {
        let near = MECHANISMS.iter().find(|mechanism| mechanism.eq_ignore_ascii_case(value));
        return Err(Fault::Invalid(match near {
            Some(mechanism) => format!("must be {mechanism}, in capitals"),
            None if value == AWS => format!(
                "{AWS} is a mechanism of Java clients; Amazon MSK also takes SCRAM-SHA-512 (security.protocol=SASL_SSL) and client certificates \
                 (security.protocol=SSL)"
            ),
            None => format!("must be one of {}; those of Java clients do not exist here", MECHANISMS.join(", ")),
        }));
    }
    let mut config = ClientConfig::new();
    config.set(key, value);
    match config.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            let whose = if name.rsplit('.').next() == Some("class") { "is for Java clients; " } else { "" };
            Err(Fault::Invalid(format!("{whose}librdkafka has no such property")))
        }
        Err(KafkaError::ClientConfig(_, why, ..)) => {
            let fault = without_value(&why);
            let is_no_protocol = name == "security.protocol" && matches!(fault, Fault::Invalid(_));
            Err(if is_no_protocol {
                Fault::Invalid("must be plaintext, ssl, sasl_plaintext or sasl_ssl".to_owned())
            } else {
                fault
            })
        }
        Err(_) => Err(Fault::Invalid("librdkafka refuses its value".to_owned())),
    }
}

/// librdkafka's reason for refusing a value, without the value.
fn without_value(why: &str) -> Fault {
    if let Some((_, range)) = why.split_once("outside allowed range ") {
        return Fault::Invalid(format!("must be {}", range.trim().replace("..", " to ")));
    }
    if let Some((_, reason)) = why.split_once("not supported in this build: ") {
        return Fault::NotBuilt { is_value: false, reason: reason.trim().to_owned() };
    }
    if why.starts_with("Unsupported value") {
        let reason = why.rsplit_once("\": ").map_or("", |(_, reason)| reason.trim());
        return Fault::NotBuilt { is_value: true, reason: reason.to_owned() };
    }
    Fault::Invalid(if why.starts_with("Expected bool") {
        "must be true or false".to_owned()
    } else if why.starts_with("Java TrustStores ") {
        "is for Java clients; librdkafka has ssl.ca.location, a file in PEM format".to_owned()
    } else if why.starts_with("Java ") {
        "is for Java clients; librdkafka has sasl.username and sasl.password, or its like".to_owned()
    } else {
        "librdkafka refuses its value".to_owned()
    })
}

/// The one name of a property: librdkafka's client is configured from a map, and of two names for one thing either could
/// win.
fn canonical(key: &str) -> &str {
    let key = match key.strip_prefix("topic.") {
        Some(rest) if !rest.starts_with("metadata.") && rest != "blacklist" => rest,
        _ => key,
    };
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| name)
}
