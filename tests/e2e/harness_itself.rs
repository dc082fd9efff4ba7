//! Tests of the harness itself.

use std::env;
use std::process::Command;

use harness::accounts::{Account, PASSWORD, login};
use harness::candidate::Elector;
use harness::cluster::{self, Cluster};
use harness::journal::{self, Pen};
use harness::kafka::Kafka;
use harness::wait;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::guarded::Guarded;

#[test]
fn kafka_keeps_what_was_written() {
    let kafka = Kafka::shared();
    let topic = crate::election(Elector::Log).topic();
    kafka.create_topic(&topic, &[]);
    Pen::new(kafka, &topic, &[]).write("key", &[b"one", b"two"]);
    let payloads: Vec<_> = journal::read(kafka, &topic).into_iter().filter_map(|record| record.payload).collect();
    assert_eq!(payloads, [b"one", b"two"]);
}

/// If Java or Maven is missing, one line says what to install and the whole test program ends, instead of one failure per test.
#[test]
fn without_java_one_line_says_what_to_install() {
    let mut program = Command::new(env::current_exe().expect("a running program has a path"));
    program.args(["harness_itself::kafka_keeps", "harness_itself::accounts_are", "--test-threads=2"]);
    let answer =
        program.env("PATH", "/nowhere").env_remove("KAFKA_BROKERS").output().expect("it was started once already");
    let said = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let line = said.trim_end();
    assert!(line.starts_with("harness: Kafka can't be started, so no test that needs it can run: `java` "), "{line}");
    assert!(line.contains(" not found; apt-get install default-jdk-headless"), "{line}");
    let results = String::from_utf8_lossy(&answer.stdout);
    assert!(!results.contains("FAILED") && !results.contains("panicked"), "{results}");
}

/// Three brokers: any two of them accept a record, and the partition's leadership can be moved.
#[test]
fn a_cluster_does_without_one_of_three() {
    let mut cluster = Cluster::in_turn();
    let topic = "replicated";
    let kafka = cluster.kafka_of(0);
    kafka.create_replicated_topic(topic, 3, &[("min.insync.replicas", "2")]);
    for broker in [1, 2] {
        wait::until_true("a leader that was moved", || {
            cluster::move_leader(&cluster.addresses(), topic, broker).is_ok()
                && cluster.leader_of(topic, 0) == Some(broker)
        });
    }
    cluster.broker(2).end();
    Pen::new(&kafka, topic, &[]).write("key", &[b"one"]);
    cluster.broker(0).ask_to_shut_down();
    wait::until_true("a broker that goes by itself", || !cluster.brokers()[0].lives());
    cluster.broker(0).end();
    cluster.broker(0).begin();
    Pen::new(&kafka, topic, &[]).write("key", &[b"two"]);
    let payloads: Vec<_> = journal::read(&kafka, topic).into_iter().filter_map(|record| record.payload).collect();
    assert_eq!(payloads, [b"one", b"two"]);
}

/// An account without the right to read is refused, and a wrong password fails the login. Otherwise the tests of refusals would prove
/// nothing.
#[test]
fn accounts_have_the_rights_of_their_names() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let looked_at = |properties: &[(String, String)]| {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &guarded.address).set("group.id", "harness");
        client.extend(properties.iter().cloned());
        let reader: BaseConsumer = client.create().expect("a reader");
        reader.fetch_watermarks(&guarded.election.topic(), 0, wait::PATIENCE / 8)
    };
    looked_at(&Account::Operator.properties()).expect("an operator may look");
    looked_at(&login(Account::Operator.name(), "wrong")).expect_err("a wrong password");
    looked_at(&login("nobody", PASSWORD)).expect_err("an account that is none");

    for (account, may) in [(Account::Operator, true), (Account::NoWrite, false), (Account::NoRead, true)] {
        let properties = account.properties();
        let properties: Vec<(&str, &str)> =
            properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let pen = Pen::new(&Kafka::at(&guarded.address), &guarded.election.topic(), &properties);
        let before = journal::end(&guarded.plain, &guarded.election.topic());
        pen.try_write("key", b"a record");
        let written = journal::end(&guarded.plain, &guarded.election.topic()) > before;
        assert_eq!(written, may, "{account:?}");
    }

    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", &guarded.address).set("group.id", "harness");
    client.extend(Account::NoRead.properties());
    let reader: BaseConsumer = client.create().expect("a reader");
    let mut from = rdkafka::TopicPartitionList::new();
    from.add_partition_offset(&guarded.election.topic(), 0, rdkafka::Offset::Beginning).expect("an offset");
    reader.assign(&from).expect("assigned");
    let error = reader.poll(wait::PATIENCE).expect("an answer").expect_err("not allowed");
    assert!(matches!(error, KafkaError::MessageConsumption(RDKafkaErrorCode::TopicAuthorizationFailed)), "{error}");
}
