use neli_proto::topic::TopicIdentity;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, Producer as _};

use super::*;
use crate::clock;
use crate::embedded;

const LONG: Duration = Duration::from_secs(10);

fn client(bootstrap: &str) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("allow.auto.create.topics", "false");
    config.create().unwrap()
}

#[test]
fn a_topic_has_one_identity_while_it_exists() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("here", 1, 1).unwrap();
    let client = client(&cluster.bootstrap_servers());
    let identity = |topic| topic_identity(client.client(), topic, Some(1), LONG);
    let here = identity("here").unwrap();
    assert_ne!(here, TopicIdentity::Missing);
    assert_eq!(identity("here"), Ok(here));
    assert_eq!(identity("elsewhere"), Ok(TopicIdentity::Missing));
}

/// The embedded broker is a mock too: a question to its controller is never answered.
#[test]
fn a_mock_is_asked_by_its_brokers_id() {
    let cluster = MockCluster::new(1).unwrap();
    let client = client(&cluster.bootstrap_servers());
    let ask = |broker, limit| topic_identity(client.client(), "here", broker, limit);
    assert_eq!(ask(Some(embedded::BROKER_ID), LONG), Ok(TopicIdentity::Missing));
    assert!(ask(None, Duration::from_millis(500)).is_err(), "it has a controller");
}

#[test]
fn an_unanswered_question_ends_in_time() {
    let client = client("127.0.0.1:9");
    let begun = clock::now();
    let answer = topic_identity(client.client(), "here", Some(1), Duration::from_millis(100));
    assert!(answer.is_err(), "{answer:?}");
    assert!(clock::now().since(begun) < LONG);
}

#[test]
fn without_a_group_there_is_no_member_id() {
    assert_eq!(member_id(client("127.0.0.1:9").client()), None);
}

/// librdkafka aborts the process if it finds the coordinator after a question to it has timed out (its issue 4605). So librdkafka gets a
/// longer time limit than ours.
#[test]
fn a_coordinator_that_is_found_after_the_time_limit_does_not_abort_the_process() {
    let cluster = MockCluster::new(1).unwrap();
    let [dropped, kept] = [(); 2].map(|()| client(&cluster.bootstrap_servers()));
    let ask = |of: &BaseProducer, limit| describe_group(of.client(), "group", limit);
    for client in [&dropped, &kept] {
        client.client().fetch_metadata(None, LONG).unwrap();
    }
    cluster.broker_round_trip_time(embedded::BROKER_ID, Duration::from_millis(1500)).unwrap();
    for client in [&dropped, &kept] {
        assert_eq!(ask(client, Duration::from_millis(10)), Err(RDKafkaErrorCode::OperationTimedOut));
    }
    // The question without an answer ends with its client.
    drop(dropped);
    for _ in 0..2 {
        // The mock can't describe a group.
        assert_eq!(ask(&kept, LONG), Err(RDKafkaErrorCode::UnsupportedFeature));
    }
}
