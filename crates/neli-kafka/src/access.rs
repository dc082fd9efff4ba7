//! The connection to Kafka, and the configuration of each of our librdkafka clients.
//!
//! Three layers of properties, of which the later one wins: our preferences, the user's (`-X`, `--properties`), and those that the protocol
//! needs. Each property is set by its primary name and never by an alias: rust-rdkafka passes
//! them on in no particular order, and of two names of one property librdkafka uses the last. The user's
//! [`Properties`] were checked for this, and for being known to librdkafka, when they were made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};

use crate::cluster::Cluster;
use crate::election::Properties;
use crate::embedded;
use crate::librdkafka::cluster_id;
use crate::properties::{QUEUED_KIB, QUEUED_MESSAGES};
use crate::text::{NEUTRAL, Words};
use crate::threads::locked;

/// A Kafka that can be reached: an address, and the user's properties for that.
#[derive(Clone)]
pub struct Access {
    /// Bootstrap servers, as librdkafka takes them.
    pub bootstrap: String,
    /// The user's librdkafka properties, in the given order (a later one wins).
    pub properties: Properties,
    /// The connection for questions that the embedded broker does not take over Kafka's protocol, if `bootstrap` is an embedded broker.
    pub embedded: Option<Arc<embedded::Connection>>,
    /// The callback for the lines that librdkafka logs.
    pub log_callback: Option<LogCallback>,
    /// Whether a broker has ever answered. All clones share it.
    pub answered: Arc<AtomicBool>,
    /// The cluster that was reached. All clones share it.
    pub cluster: Arc<Mutex<Cluster>>,
    /// Why an embedded broker is refused at the address of a real one, if it is. Who reaches it by its address does not hold the lock of its
    /// candidates, and so a later broker would not know of that one's job.
    pub refuses_embedded: Option<&'static str>,
    /// The words for what a user is to do.
    pub words: &'static Words,
}

/// Called with each line that librdkafka logs, on any thread.
pub(crate) type LogCallback = Arc<dyn Fn(&str) + Send + Sync>;

impl Access {
    /// The Kafka at `bootstrap`, a real one.
    pub fn at(bootstrap: &str, properties: &Properties) -> Self {
        Self {
            bootstrap: bootstrap.to_owned(),
            properties: properties.clone(),
            embedded: None,
            log_callback: None,
            answered: Arc::default(),
            cluster: Arc::default(),
            refuses_embedded: None,
            words: &NEUTRAL,
        }
    }

    /// The embedded broker that `connection` leads to, which lives for as long as this does.
    pub fn embedded(connection: &Arc<embedded::Connection>, properties: &Properties) -> Self {
        Self { embedded: Some(Arc::clone(connection)), ..Self::at(connection.bootstrap(), properties) }
    }

    /// Whether this client has reached the cluster of this process, and no other one was found. To be called after each answer whose cluster
    /// matters.
    ///
    /// # Errors
    ///
    /// One line: with the ids of both clusters; or a candidate has reached an embedded broker by its address.
    pub(super) fn admit(&self, client: &rdkafka::client::Client<impl ClientContext>) -> Result<(), String> {
        // Each embedded broker has an id of its own.
        if self.embedded.is_some() {
            return Ok(());
        }
        let mut cluster = locked(&self.cluster);
        cluster.admit(cluster_id(client))?;
        match self.refuses_embedded {
            Some(why) if cluster.is_embedded() => Err(format!("{}: {why}", self.bootstrap)),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a broker has ever answered this process.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The configuration of a reader of the journal. The reader joins no group.
    pub(crate) fn reader(&self) -> ClientConfig {
        let mut defaults = vec![
            // With this check a corrupt batch can't be decoded. Without it, records could have wrong contents.
            ("check.crcs", "true"),
            ("fetch.error.backoff.ms", "100"),
            ("fetch.message.max.bytes", "262144"),
            // The default delays each fetch by a second once the small queue below is full. With none librdkafka's thread would never wait
            // while nobody takes the records, as behind a pager.
            ("fetch.queue.backoff.ms", "10"),
            ("queued.max.messages.kbytes", "1024"),
            ("queued.min.messages", "1000"),
        ];
        if self.embedded.is_some() {
            // The mock broker does not answer a waiting fetch early, so this is the time after which a record is read.
            defaults.push(("fetch.wait.max.ms", "10"));
        }
        self.client(
            &defaults,
            &[
                ("auto.offset.reset", "error"),
                ("enable.auto.commit", "false"),
                ("enable.auto.offset.store", "false"),
                ("enable.partition.eof", "true"),
                // By the law every reader must see the same records; and an open transaction of another program must hide none.
                ("isolation.level", "read_uncommitted"),
                ("max.poll.interval.ms", LONGEST_POLL_INTERVAL),
            ],
        )
    }

    /// Whether a token endpoint issues the login tokens.
    pub(super) fn asks_for_tokens(&self) -> bool {
        self.properties.find("sasl.oauthbearer.method").is_some_and(|method| method.eq_ignore_ascii_case("oidc"))
    }

    /// What the user wants librdkafka's debug lines of, if anything.
    pub(super) fn users_debug(&self) -> Option<&str> {
        self.properties.find("debug")
    }

    /// The configuration of the producer; a record is given up `timeout` after it was handed over, in whole milliseconds.
    pub(crate) fn producer(&self, timeout: Duration) -> ClientConfig {
        // The reason why Kafka refuses a record that librdkafka sends again is only in its debug lines.
        let debug = self.users_debug().map_or_else(|| "msg".to_owned(), |debug| format!("{debug},msg"));
        let mut config = self.client(
            &[
                ("queue.buffering.max.kbytes", &QUEUED_KIB.to_string()),
                ("queue.buffering.max.messages", &QUEUED_MESSAGES.to_string()),
                ("queue.buffering.max.ms", "0"),
                ("retry.backoff.max.ms", "200"),
                ("retry.backoff.ms", "20"),
            ],
            &[
                ("debug", &debug),
                ("message.timeout.ms", &timeout.as_millis().to_string()),
                ("request.required.acks", "all"),
            ],
        );
        // Also if nobody reads the lines: `Deliveries` does.
        config.set_log_level(RDKafkaLogLevel::Debug);
        config
    }

    /// The configuration of the member of the consumer group.
    pub(crate) fn member(&self, group: &str) -> ClientConfig {
        let mut config = self.client(
            &[
                // One fetch is possible between the assignment and the pause.
                ("fetch.message.max.bytes", "1024"),
                (HEARTBEAT_INTERVAL, &MemberTimings::DEFAULT.heartbeat_interval.as_millis().to_string()),
                ("queued.max.messages.kbytes", "64"),
                (SESSION_TIMEOUT, &MemberTimings::DEFAULT.session_timeout.as_millis().to_string()),
            ],
            &[
                // The member waits for a topic that does not exist yet, and never asks for an offset.
                ("auto.offset.reset", "latest"),
                ("enable.auto.commit", "false"),
                ("enable.auto.offset.store", "false"),
                ("group.id", group),
                ("max.poll.interval.ms", LONGEST_POLL_INTERVAL),
                // With this assignor, a standby that joins or leaves never moves the partition.
                ("partition.assignment.strategy", "cooperative-sticky"),
            ],
        );
        if self.embedded.is_some() {
            // The mock answers for as long as a session later where a member has died while it joined, and is ended by an assertion
            // when another that waits connects anew meanwhile and asks again.
            let patience = MemberTimings::of(&self.properties).session_timeout + Duration::from_secs(4);
            config.set("socket.timeout.ms", patience.min(LONGEST_SOCKET_TIMEOUT).as_millis().to_string());
        }
        config
    }

    fn client(&self, preferred: &[(&str, &str)], bound: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        let user = self.properties.0.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let layers = COMMON.iter().chain(preferred).copied().chain(user).chain(bound.iter().copied());
        for (key, value) in layers {
            config.set(key, value);
        }
        // By default a producer makes the broker create a missing or deleted topic, with the broker's settings.
        config.set("allow.auto.create.topics", "false");
        config.set("metadata.broker.list", &self.bootstrap);
        config.set_log_level(if self.log_callback.is_some() {
            RDKafkaLogLevel::Debug
        } else {
            // That a broker closes connections at once, and the status of a token endpoint's answer, are in its log alone.
            RDKafkaLogLevel::Info
        });
        config
    }
}

/// The properties of every client, unless the user sets them otherwise.
const COMMON: &[(&str, &str)] = &[
    ("api.version.request.timeout.ms", "5000"),
    ("client.id", "neli-run"),
    // librdkafka would send a question about metrics after each connect, which nothing here uses.
    ("enable.metrics.push", "false"),
    // `Rebootstrap` does this.
    ("metadata.recovery.strategy", "none"),
    // A broker that comes back is found within this; the default of 10 s is half of the default lease.
    ("reconnect.backoff.max.ms", "250"),
    // Half of it is also how long librdkafka waits at a start before it connects to a second broker.
    ("reconnect.backoff.ms", "20"),
    // Six round trips to a login over TLS, on a link that takes a second for each. With a longer time, a machine that was
    // unreachable for a while would be found later, because the kernel tries to connect ever more seldom.
    ("socket.connection.setup.timeout.ms", "10000"),
    ("socket.keepalive.enable", "true"),
    // Otherwise a release right after a beat, or a claim after a hello, would wait until the record before it is acknowledged.
    ("socket.nagle.disable", "true"),
    // A machine that died without a reset is noticed within this time, not within a minute.
    ("socket.timeout.ms", "2000"),
];

/// The property of [`MemberTimings::heartbeat_interval`].
pub const HEARTBEAT_INTERVAL: &str = "heartbeat.interval.ms";

/// The property of [`MemberTimings::session_timeout`].
pub const SESSION_TIMEOUT: &str = "session.timeout.ms";

/// The durations of a member of the consumer group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemberTimings {
    /// The time between two heartbeats. A handover by the group takes half of it on average: a member learns of a rebalance from the answer
    /// to a heartbeat.
    pub heartbeat_interval: Duration,
    /// The group treats a silent member as dead after this time.
    pub session_timeout: Duration,
}

impl MemberTimings {
    /// The defaults.
    const DEFAULT: Self =
        Self { heartbeat_interval: Duration::from_millis(100), session_timeout: Duration::from_secs(6) };

    /// The durations with the user's properties.
    pub fn of(properties: &Properties) -> Self {
        let milliseconds = |key| properties.find(key)?.parse().ok().map(Duration::from_millis);
        Self {
            heartbeat_interval: milliseconds(HEARTBEAT_INTERVAL).unwrap_or(Self::DEFAULT.heartbeat_interval),
            session_timeout: milliseconds(SESSION_TIMEOUT).unwrap_or(Self::DEFAULT.session_timeout),
        }
    }
}

/// A day: the longest that librdkafka knows. Our threads always poll.
const LONGEST_POLL_INTERVAL: &str = "86400000";

/// librdkafka's.
const LONGEST_SOCKET_TIMEOUT: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn access(properties: &[(&str, &str)]) -> Access {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Access::at("localhost:9092", &Properties(properties))
    }

    #[test]
    fn the_user_overrides_what_we_prefer_and_not_what_the_protocol_rests_on() {
        let access = access(&[
            ("socket.timeout.ms", "1000"),
            ("socket.timeout.ms", "3000"),
            ("isolation.level", "read_committed"),
            ("allow.auto.create.topics", "true"),
            ("metadata.broker.list", "elsewhere:9092"),
        ]);
        let reader = access.reader();
        assert_eq!(reader.get("socket.timeout.ms"), Some("3000"));
        assert_eq!(reader.get("isolation.level"), Some("read_uncommitted"));
        assert_eq!(reader.get("allow.auto.create.topics"), Some("false"));
        assert_eq!(reader.get("metadata.broker.list"), Some("localhost:9092"));
    }

    #[test]
    fn librdkafka_accepts_every_clients_configuration() {
        let access = access(&[("session.timeout.ms", "10000"), ("queue.buffering.max.ms", "1")]);
        let lease = Duration::from_secs(5);
        for config in [access.reader(), access.producer(lease), access.member("g")] {
            let native = config.create_native_config().unwrap();
            assert_eq!(native.get("session.timeout.ms").unwrap(), "10000");
        }
        assert_eq!(access.producer(lease).create_native_config().unwrap().get("message.timeout.ms").unwrap(), "5000");
    }
}
