//! librdkafka's properties, as users give them: all except those that the protocol sets itself.
//!
//! Any of them may be a secret: nothing here shows a value.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::election::Properties;
use crate::text::Words;

/// What is to be done instead of a property.
type Instead = fn(&Words) -> &'static str;

/// The properties that the protocol sets itself, by every name that librdkafka has for them, and what to do instead.
const REFUSED: &[(&str, Instead)] = &[
    ("acks", |_| "acks=all is required"),
    ("allow.auto.create.topics", |words| words.topic),
    ("auto.commit.enable", |_| "the journal is read by offset, and no offset is committed"),
    ("auto.offset.reset", |_| "records that are skipped would break the law of the journal"),
    ("bootstrap.servers", |words| words.brokers),
    ("client.rack", |_| "the journal is read from the partition's leader"),
    ("delivery.report.only.error", |_| "that a record was appended must be known"),
    ("delivery.timeout.ms", |words| words.lease),
    ("enable.auto.commit", |_| "the journal is read by offset, and no offset is committed"),
    ("enable.auto.offset.store", |_| "the journal is read by offset, and no offset is stored"),
    ("enable.gapless.guarantee", |_| ENDS_PRODUCERS),
    ("enable.idempotence", |_| ENDS_PRODUCERS),
    ("enable.partition.eof", |_| "the journal's reader depends on this value"),
    ("group.id", |words| words.group),
    ("group.instance.id", |_| "a standby that leaves must leave the group"),
    ("group.protocol", |words| words.elector),
    ("group.remote.assignor", |words| words.elector),
    ("internal.termination.signal", |_| "librdkafka's threads would take a signal of the program"),
    ("isolation.level", |_| "all readers must see the same records"),
    ("max.poll.interval.ms", |_| "the group must not take a busy leader for a dead one"),
    ("message.timeout.ms", |words| words.lease),
    ("metadata.broker.list", |words| words.brokers),
    ("partition.assignment.strategy", |_| "a standby that joins must not move the partition"),
    ("plugin.library.paths", |_| "no foreign code is loaded into this process"),
    ("request.required.acks", |_| "acks=all is required"),
    ("transactional.id", |_| "the journal needs no transactions"),
];

const ENDS_PRODUCERS: &str = "its errors end a producer for good; a record that is written twice does no harm";

/// The longest time for which a record may wait for others, in milliseconds: Java clients' is 5, and the shortest heartbeat interval 10.
const LONGEST_LINGER_MS: f64 = 10.0;

/// The room for the records of a producer. The most roles may all claim at once, and a record without room would count as refused by Kafka.
pub(crate) const QUEUED_MESSAGES: u64 = 30_000;
pub(crate) const QUEUED_KIB: u64 = 16_384;

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

impl Properties {
    /// Adds a property, under the one name that it has. The last one of a name counts.
    ///
    /// # Errors
    ///
    /// Why it is refused, and in these words what to do instead.
    pub fn set(&mut self, key: &str, value: &str, words: &Words) -> Result<(), String> {
        validate(key, value, words)?;
        let key = canonical(key);
        self.0.retain(|(earlier, _)| earlier != key);
        self.0.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn validate(key: &str, value: &str, words: &Words) -> Result<(), String> {
    // librdkafka takes a topic's property with this prefix, too.
    let name = key.strip_prefix("topic.").unwrap_or(key);
    if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(format!("cannot be set: {}", instead(words)));
    }
    if name.starts_with("test.mock.") || name.starts_with("ut_") {
        return Err(format!("cannot be set: it is for librdkafka's own tests{}", words.for_a_trial));
    }
    // librdkafka takes these without a warning, and has no use for them.
    if name.starts_with("sasl.kerberos.") && !cfg!(feature = "gssapi") {
        return Err(not_built("is", "libsasl2 is missing", words));
    }
    // Shared with other programs, a file of properties may contain what makes many records cheap, and a heartbeat late.
    if canonical(key) == "queue.buffering.max.ms" && value.parse().is_ok_and(|ms: f64| ms > LONGEST_LINGER_MS) {
        return Err(format!("must be at most {LONGEST_LINGER_MS}: each claim and heartbeat waits for so long"));
    }
    let least = match canonical(key) {
        "queue.buffering.max.kbytes" => Some(QUEUED_KIB),
        "queue.buffering.max.messages" => Some(QUEUED_MESSAGES),
        _ => None,
    };
    // 0 is no limit.
    if let Some(least) = least.filter(|least| value.parse().is_ok_and(|most: u64| (1..*least).contains(&most))) {
        return Err(format!("must be at least {least}: all roles may claim at once"));
    }
    if name == "fetch.min.bytes" && value.parse().is_ok_and(|bytes: u64| bytes > 1) {
        return Err("must be 1: a claim or heartbeat would be read late".to_owned());
    }
    if canonical(key) == "sasl.mechanisms" && !MECHANISMS.contains(&value) {
        let near = MECHANISMS.iter().find(|mechanism| mechanism.eq_ignore_ascii_case(value));
        return Err(match near {
            Some(mechanism) => format!("must be {mechanism}, in capitals"),
            None if value == AWS => format!(
                "{AWS} is a mechanism of Java clients; Amazon MSK also takes SCRAM-SHA-512 (security.protocol=SASL_SSL) and client certificates \
                 (security.protocol=SSL)"
            ),
            None => format!("must be one of {}; those of Java clients do not exist here", MECHANISMS.join(", ")),
        });
    }
    let mut config = ClientConfig::new();
    config.set(key, value);
    match config.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            let is_for_java = name.rsplit('.').next() == Some("class") || name.ends_with("store.type");
            let whose = if is_for_java { "is for Java clients; " } else { "" };
            Err(format!("{whose}librdkafka has no such property"))
        }
        Err(KafkaError::ClientConfig(_, why, ..)) => Err(refused_value(name, &why, words)),
        Err(_) => Err(REFUSES.to_owned()),
    }
}

/// For what else there is no reason.
const REFUSES: &str = "librdkafka refuses its value";

/// Why librdkafka refuses a value, without the value.
fn refused_value(name: &str, why: &str, words: &Words) -> String {
    if let Some((_, reason)) = why.split_once("not supported in this build: ") {
        return not_built("is", reason, words);
    }
    if why.starts_with("Unsupported value") {
        return not_built("its value is", why.rsplit_once("\": ").map_or("", |(_, reason)| reason), words);
    }
    if name == "security.protocol" {
        return "must be plaintext, ssl, sasl_plaintext or sasl_ssl".to_owned();
    }
    // Java clients write "none" as an empty value.
    if name == "ssl.endpoint.identification.algorithm" {
        return "must be https or none".to_owned();
    }
    if let Some((_, range)) = why.split_once("outside allowed range ") {
        return format!("must be {}", range.trim().replace("..", " to "));
    }
    let what = if why.starts_with("Expected bool") {
        "must be true or false"
    } else if why.starts_with("Java TrustStores ") {
        "is for Java clients; librdkafka has ssl.ca.location, a file in PEM format"
    } else if why.starts_with("Java ") {
        "is for Java clients; librdkafka has sasl.username and sasl.password, or its like"
    } else {
        REFUSES
    };
    what.to_owned()
}

/// That a property (`is`), or its value (`its value is`), needs a library that librdkafka was built without. Its reason names the library.
fn not_built(is: &str, reason: &str, words: &Words) -> String {
    let reason = reason.trim();
    (words.not_built)(reason).unwrap_or_else(|| format!("{is} not supported by this build: {reason}"))
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
