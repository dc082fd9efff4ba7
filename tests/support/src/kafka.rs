//! Brokers: one for the whole test run, some for tests that stop theirs, and one that never answers.

use std::cell::Cell;
use std::env;
use std::sync::OnceLock;

use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::{Client, DefaultClientContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::groups::GroupList;
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer};

use crate::request::Request;
use crate::wait;

mod broker;
mod silent;
mod wired;

pub use broker::Broker;
pub use silent::SilentBroker;
pub use wired::Wired;

/// A Kafka that can be reached.
#[derive(Debug)]
pub struct Kafka {
    address: String,
    /// The address of the listener that requires a login; unknown for a Kafka that the tests did not start.
    accounts_address: Option<String>,
}

impl Kafka {
    /// The Kafka of the whole test run: that of `KAFKA_BROKERS`, or a broker of our own, which ends with this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Kafka> = OnceLock::new();
        SHARED.get_or_init(|| match env::var("KAFKA_BROKERS") {
            Ok(address) if !address.is_empty() => Self::at(&address),
            _ => wired::Shared::get().broker.kafka(),
        })
    }

    /// A Kafka of which only the address is known.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { address: address.to_owned(), accounts_address: None }
    }

    /// `HOST:PORT` of the listener where every client has all rights.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The listener where a client must log in as an [`Account`](crate::accounts::Account), if there is one.
    #[must_use]
    pub fn accounts_address(&self) -> Option<&str> {
        self.accounts_address.as_deref()
    }

    /// A client's configuration.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &self.address).set("allow.auto.create.topics", "false");
        client
    }

    /// Creates a topic with one partition, one replica and these settings.
    pub fn create_topic(&self, name: &str, settings: &[(&str, &str)]) {
        self.create_replicated_topic(name, 1, settings);
    }

    /// Creates a topic with one partition and these settings.
    pub fn create_replicated_topic(&self, name: &str, replicas: i32, settings: &[(&str, &str)]) {
        let topic = NewTopic::new(name, 1, TopicReplication::Fixed(replicas));
        self.create_listed(&settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value)));
    }

    /// Creates a topic with one partition and these settings, which may fail.
    ///
    /// # Errors
    ///
    /// The broker's answer, for example that the topic exists.
    pub fn try_create_replicated_topic(
        &self,
        name: &str,
        partitions: i32,
        replicas: i32,
        settings: &[(&str, &str)],
    ) -> Result<(), RDKafkaErrorCode> {
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
        self.create(&settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value)))
    }

    /// Creates a topic with this number of partitions, of one replica each.
    pub fn create_partitioned_topic(&self, name: &str, partitions: i32) {
        self.create_listed(&NewTopic::new(name, partitions, TopicReplication::Fixed(1)));
    }

    /// Creates a topic with one partition on the brokers with these ids: the first of them leads it.
    pub fn create_topic_on(&self, name: &str, brokers: &[i32], settings: &[(&str, &str)]) {
        let assignment = [brokers];
        let topic = NewTopic::new(name, 1, TopicReplication::Variable(&assignment));
        self.create_listed(&settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value)));
    }

    /// Creates a topic, and waits until a broker lists it, which is a moment after its controller has made it.
    fn create_listed(&self, topic: &NewTopic<'_>) {
        self.create(topic).expect("the topic is made");
        wait::until_true("a topic that is listed", || self.has_topic(topic.name));
    }

    /// Adds partitions to a topic until it has this number.
    pub fn add_partitions(&self, name: &str, partitions: usize) {
        let wanted = NewPartitions::new(name, partitions);
        let added = self.administer(async |admin| one(admin.create_partitions([&wanted], &AdminOptions::new()).await));
        added.expect("the partitions are added");
    }

    /// Waits until the broker names this number of partitions: on a busy machine it does so some time after they were added.
    pub fn await_partitions(&self, name: &str, partitions: usize) {
        wait::until_true("the added partitions", || {
            let metadata = self.ask(|client| client.fetch_metadata(Some(name), wait::PATIENCE));
            metadata.topics().iter().all(|topic| topic.partitions().len() == partitions)
        });
    }

    fn create(&self, topic: &NewTopic<'_>) -> Result<(), RDKafkaErrorCode> {
        let is_repeated = Cell::new(false);
        let created = self.administer(async |admin| {
            let created = one(admin.create_topics([topic], &AdminOptions::new()).await);
            let is_repeated = is_repeated.replace(true);
            // The refused attempt before this one may have created it all the same.
            if is_repeated && created == Err(RDKafkaErrorCode::TopicAlreadyExists) {
                Ok(String::new())
            } else {
                created
            }
        });
        created.map(drop)
    }

    /// Sets these settings of a topic and resets all others to the broker's defaults.
    pub fn set_topic(&self, name: &str, settings: &[(&str, &str)]) {
        let wanted = || {
            let wanted = AlterConfig::new(ResourceSpecifier::Topic(name));
            settings.iter().fold(wanted, |wanted, (key, value)| wanted.set(key, value))
        };
        let set = self.administer(async |admin| {
            let answer = admin.alter_configs([&wanted()], &AdminOptions::new()).await;
            one(answer
                .map(|results| results.into_iter().map(|result| result.map_err(|(_, code)| ((), code))).collect()))
        });
        set.expect("the topic is set");
    }

    /// Deletes a topic, and waits until the broker no longer lists it: until then it takes records. A broker that waits too long for its
    /// controller, for example because its clock was set forward, asks it again, and the second answer is that there is no such topic.
    pub fn delete_topic(&self, name: &str) {
        let gone = self.administer(async |admin| one(admin.delete_topics(&[name], &AdminOptions::new()).await));
        if let Err(error) = gone {
            assert_eq!(error, RDKafkaErrorCode::UnknownTopicOrPartition, "topic {name} is deleted");
        }
        wait::until_true("a topic that is no longer listed", || !self.has_topic(name));
    }

    /// A Kafka that is reached by the addresses of several brokers.
    pub(crate) fn of_all(addresses: &[String]) -> Self {
        Self::at(&addresses.join(","))
    }

    /// A topic's configuration.
    #[must_use]
    pub fn topic_setting(&self, name: &str, key: &str) -> String {
        let asked = [ResourceSpecifier::Topic(name)];
        let settings = self.administer(async |admin| {
            let answer = admin.describe_configs(&asked, &AdminOptions::new()).await;
            one(answer.map(|results| results.into_iter().map(|result| result.map_err(|code| ((), code))).collect()))
        });
        let settings = settings.expect("the topic exists");
        settings.get(key).and_then(|entry| entry.value.clone()).expect("a setting that Kafka knows")
    }

    /// Whether a group has this number of members and is not rebalancing.
    #[must_use]
    pub fn group_is_stable(&self, name: &str, members: usize) -> bool {
        self.groups(name).groups().iter().any(|group| group.state() == "Stable" && group.members().len() == members)
    }

    /// The number of a group's members.
    #[must_use]
    pub fn group_members(&self, name: &str) -> usize {
        self.groups(name).groups().iter().map(|group| group.members().len()).sum()
    }

    fn groups(&self, name: &str) -> GroupList {
        self.ask(|client| client.fetch_group_list(Some(name), wait::PATIENCE))
    }

    /// What Kafka answers to a question; asked again while the refusal is one that passes.
    fn ask<T>(&self, question: impl Fn(&Client<DefaultProducerContext>) -> KafkaResult<T>) -> T {
        let client: BaseProducer = self.client().create().expect("a client");
        let answer = answered(|| match question(client.client()) {
            Ok(answer) => Ok(answer),
            Err(error) => Err(error.rdkafka_error_code().unwrap_or_else(|| panic!("{error}"))),
        });
        answer.unwrap_or_else(|code| panic!("Kafka refuses: {code}"))
    }

    /// What Kafka answers to an administrator's request; asked again while the refusal is one that passes.
    fn administer<T>(
        &self,
        mut request: impl AsyncFnMut(&AdminClient<DefaultClientContext>) -> Result<T, RDKafkaErrorCode>,
    ) -> Result<T, RDKafkaErrorCode> {
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        answered(|| runtime.block_on(request(&admin)))
    }

    /// What the cluster says of itself, and of all its topics.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.ask(|client| client.fetch_metadata(None, wait::PATIENCE))
    }

    /// Waits until a group has a coordinator: in a new cluster there is none until the topic of offsets has been created.
    pub fn await_coordinator(&self, group: &str) {
        // `FindCoordinator`, version 2, for a group.
        let mut request = Request::new(10, 2);
        request.text(group);
        request.i8(0);
        // The error code follows the correlation id and the throttle time, of four bytes each.
        let is_found = |answer: Vec<u8>| answer.get(8..10) == Some(&[0, 0]);
        wait::until_true("a coordinator", || request.send(&self.address).is_ok_and(is_found));
    }

    /// Whether a topic exists.
    #[must_use]
    pub fn has_topic(&self, name: &str) -> bool {
        self.metadata().topics().iter().any(|topic| topic.name() == name)
    }
}

/// Asks until the answer is none that passes, for at most [`wait::PATIENCE`].
fn answered<T>(mut ask: impl FnMut() -> Result<T, RDKafkaErrorCode>) -> Result<T, RDKafkaErrorCode> {
    let mut last = RDKafkaErrorCode::NoError;
    let answer = wait::poll_for(wait::PATIENCE, || match ask() {
        Err(code) if passes(code) => {
            last = code;
            None
        }
        answer => Some(answer),
    });
    answer.unwrap_or(Err(last))
}

/// Whether a refusal only says that the broker is not ready: just started, just elected, or busy.
fn passes(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::AllBrokersDown
            | Code::BrokerNotAvailable
            | Code::BrokerTransportFailure
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::LeaderNotAvailable
            | Code::NetworkException
            | Code::NotController
            | Code::NotCoordinator
            | Code::OperationTimedOut
            | Code::RequestTimedOut
    )
}

/// The result for the one thing that a request was about.
fn one<T, N>(results: KafkaResult<Vec<Result<T, (N, RDKafkaErrorCode)>>>) -> Result<T, RDKafkaErrorCode> {
    match results {
        Ok(results) => results.into_iter().next().expect("the request names one").map_err(|(_, code)| code),
        Err(KafkaError::AdminOp(code)) => Err(code),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_passes_is_no_answer() {
        let refusals = [RDKafkaErrorCode::CoordinatorLoadInProgress, RDKafkaErrorCode::NotController];
        let mut answers = refusals.map(Err).into_iter().chain([Ok(7)]);
        assert_eq!(answered(|| answers.next().expect("no further question")), Ok(7));
        let refused = RDKafkaErrorCode::TopicAlreadyExists;
        assert_eq!(answered::<()>(|| Err(refused)), Err(refused));
    }
}
