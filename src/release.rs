//! The hidden mode `neli-run release <descriptor>`: the program that a guard becomes when its supervisor has died and the job's tree is
//! gone. It writes the releases that the guards of that supervisor request, tries for one lease at most, and exits.
//!
//! Standbys wait for these records, so there are few steps between the start and the producer: no options are parsed, the topic is not
//! examined, and nothing is read. It decides nothing: it writes the last state that the guards had.

use std::collections::VecDeque;
use std::path;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow};
use neli_kafka::{Access, ElectionId, Elections, KafkaEvent, Producer, Properties};
use neli_proto::record::{MemberId, Record};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::timeout;

use crate::config::WORDS;
use crate::exit::ExitStatus;
use crate::process::memory_files::Deliverer;

/// The most records in flight at once. A producer's queue has room for a thousand.
const MOST_IN_FLIGHT: usize = 500;

/// How often it looks for more requests while it waits for Kafka: the guards of one supervisor append theirs within some milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A guard's request, one line of JSON in the queue: a release, and what else it takes to send it.
type ReleaseRequest = (ReleaseConfig, Record);

/// The parameters of a release, besides those of the term.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReleaseConfig {
    /// Kafka's address, or that of the embedded broker.
    pub bootstrap: String,
    /// The user's properties.
    pub properties: Properties,
    /// The election.
    pub election: ElectionId,
    /// This candidate's member id.
    pub member: MemberId,
    /// The candidate's name.
    pub name: String,
    /// How long to try, in milliseconds.
    pub lease_ms: u64,
    /// The hello of a dead process with many roles, which stands for none any more: the record's key, and its line of JSON. Otherwise the process
    /// would count as a standby of the roles that it did not lead until its hellos are old. A single role needs none, since everybody who
    /// reads the hellos reads the release.
    pub hello: Option<(String, String)>,
}

/// The user's properties for a process with another working directory: with absolute paths. (The program that releases works in `/`.)
pub(crate) fn with_absolute_paths(properties: &Properties) -> Properties {
    /// librdkafka looks for the certificates in the system's usual places.
    const NO_PATH: &str = "probe";
    let is_path = |key: &str| matches!(key.rsplit('.').next(), Some("file" | "keytab" | "location"));
    let absolute = |(key, value): &(String, String)| {
        let path = path::absolute(value).ok().filter(|_| is_path(key) && value != NO_PATH);
        // A path that is not Unicode can't be a property. The relative one then costs the release.
        let value = path.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| value.clone());
        (key.clone(), value)
    };
    Properties(properties.0.iter().map(absolute).collect())
}

/// Delivers the requests in this queue, and those that are appended meanwhile. Only a test uses the result.
///
/// # Errors
///
/// A release could not be sent, or was not delivered within the lease.
pub fn main(queue: Deliverer) -> Result<ExitStatus> {
    let runtime = Builder::new_current_thread().enable_time().build().context("deliveries can't be awaited")?;
    runtime.block_on(deliver(queue))
}

async fn deliver(mut queue: Deliverer) -> Result<ExitStatus> {
    let (events, mut deliveries) = mpsc::channel(4);
    let mut releaser = Releaser::new(events);
    loop {
        releaser.waiting.extend(queue.read::<ReleaseRequest>().context("the queue of releases can't be read")?);
        releaser.send();
        if releaser.in_flight == 0 {
            releaser.say_hello();
        }
        if releaser.in_flight > 0 {
            if let Ok(Some(event)) = timeout(LOOK_EVERY, deliveries.recv()).await {
                releaser.settle(event);
            }
        } else {
            match queue.finish().context("the queue of releases can't be given up")? {
                Some(still_ours) => queue = still_ours,
                None => return releaser.error.map_or(Ok(ExitStatus::SUCCESS), Err),
            }
        }
    }
}

/// Sends the releases.
struct Releaser {
    /// All requests are of one supervisor, and so have one connection to Kafka.
    producer: Option<Producer>,
    events: Sender<KafkaEvent>,
    waiting: VecDeque<ReleaseRequest>,
    /// That of the last request with a hello, which is sent when all releases are settled: standbys wait for these. With the release's sequence number,
    /// so that its delivery and its failure are both reported.
    hello_due: Option<(ReleaseConfig, Option<u64>)>,
    /// How many records were sent, and are not known to be delivered, or not to be.
    in_flight: usize,
    /// Why one of the records could not be sent, or was not delivered.
    error: Option<Error>,
}

impl Releaser {
    fn new(events: Sender<KafkaEvent>) -> Self {
        Self { producer: None, events, waiting: VecDeque::new(), hello_due: None, in_flight: 0, error: None }
    }

    /// Notes the result of a record. With any other event it is retried, and settled later.
    fn settle(&mut self, event: KafkaEvent) {
        if let KafkaEvent::NotDelivered { error, .. } = event {
            self.in_flight -= 1;
            self.error.get_or_insert(anyhow!(error));
        } else if let KafkaEvent::Delivered { .. } = event {
            self.in_flight -= 1;
        }
    }

    /// Sends the waiting releases, as far as there is room. One that can't be sent does not end the process: the others would be lost.
    fn send(&mut self) {
        while self.in_flight < MOST_IN_FLIGHT
            && let Some((config, release)) = self.waiting.pop_front()
        {
            let election = &config.election;
            self.append(&config, election, release.seq, &election.key(), &release.to_bytes());
            if config.hello.is_some() {
                self.hello_due = Some((config, release.seq));
            }
        }
    }

    /// Sends the dead process's hello, if one is due.
    fn say_hello(&mut self) {
        if let Some((config, seq)) = self.hello_due.take()
            && let Some((key, line)) = &config.hello
        {
            let election = ElectionId { partition: Elections::PARTITION_OF_HELLOS, ..config.election.clone() };
            self.append(&config, &election, seq, key, line.as_bytes());
        }
    }

    /// Sends a record, or notes why it can't be sent.
    fn append(&mut self, config: &ReleaseConfig, election: &ElectionId, seq: Option<u64>, key: &str, payload: &[u8]) {
        let sent = self
            .producer(config)
            .and_then(|producer| producer.send(election, seq, key, Some(payload)).map_err(Error::msg));
        match sent {
            Ok(()) => self.in_flight += 1,
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }

    fn producer(&mut self, config: &ReleaseConfig) -> Result<&Producer> {
        let producer = if let Some(producer) = self.producer.take() {
            producer
        } else {
            let ReleaseConfig { bootstrap, properties, election, lease_ms, .. } = config;
            let access = Access { words: &WORDS, ..Access::at(bootstrap, properties) };
            let timeout = Duration::from_millis(*lease_ms);
            Producer::start(&access, &Elections::from(election), timeout, self.events.clone())?
        };
        Ok(self.producer.insert(producer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(properties: &str) -> ReleaseRequest {
        let config = format!(
            r#"{{"bootstrap":"localhost:1","properties":{properties},
                "election":{{"group":"g","topic":"t","partition":0,"role":0}},
                "member":"m","name":"n","lease_ms":5000,"hello":null}}"#
        );
        let release = Record::release_for_dead(Some("m".into()), "n", 42, 57, 9, Some(8));
        (serde_json::from_str(&config).unwrap(), release)
    }

    #[test]
    fn an_entry_of_the_guard_is_read_and_is_a_release() {
        let entry = serde_json::to_string(&request(r#"[["linger.ms","1"]]"#)).unwrap();
        let (_, release): ReleaseRequest = serde_json::from_str(&entry).unwrap();
        let line = r#"{"v":1,"member":"m","name":"n","seq":9,"kind":"release","term":42,"seen":57,"why":"supervisor-died","exit":null,"late_ms":8}"#;
        assert_eq!(String::from_utf8(release.to_bytes()).unwrap(), line);
    }

    #[test]
    fn files_are_found_from_another_working_directory() {
        let own = std::env::current_dir().unwrap().display().to_string();
        for (key, value, expected) in [
            ("ssl.ca.location", "ca.pem", format!("{own}/ca.pem")),
            ("ssl.key.location", "/etc/key.pem", "/etc/key.pem".to_owned()),
            ("sasl.kerberos.keytab", "./k", format!("{own}/k")),
            ("sasl.oauthbearer.assertion.file", "a", format!("{own}/a")),
            ("ssl.ca.location", "probe", "probe".to_owned()),
            ("sasl.username", "tenant", "tenant".to_owned()),
        ] {
            let properties = Properties(vec![(key.to_owned(), value.to_owned())]);
            assert_eq!(with_absolute_paths(&properties).find(key), Some(&*expected), "{key}={value}");
        }
    }

    #[test]
    fn a_release_that_can_not_be_sent_does_not_keep_others_from_being_sent() {
        let (events, _results) = mpsc::channel(4);
        let mut releaser = Releaser::new(events);
        releaser.waiting.extend([request(r#"[["no.such.property","1"]]"#), request("[]")]);
        releaser.send();
        assert_eq!((releaser.in_flight, releaser.waiting.len()), (1, 0));
        assert!(releaser.error.unwrap().to_string().contains("no.such.property"));
    }
}
