use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use neli_proto::topic::TopicIdentity;
use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, Producer as _};

use super::*;
use crate::access::Access;
use crate::context::KafkaContext;
use crate::election::Properties;
use crate::{clock, embedded};

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

/// A broker may be newer than librdkafka, and answer a code that this one lacks.
#[test]
fn an_unknown_code_is_an_error_like_any_other() {
    const LIST_OFFSETS: i16 = 2;
    unsafe extern "C" {
        fn rd_kafka_mock_topic_set_error(cluster: *mut c::rd_kafka_mock_cluster_t, topic: *const c_char, error: c_int);
        fn rd_kafka_mock_push_request_errors_array(
            cluster: *mut c::rd_kafka_mock_cluster_t,
            request: i16,
            count: usize,
            errors: *const c_int,
        );
    }
    for code in [103, 250, 32_767] {
        let client: BaseProducer = ClientConfig::new().set("test.mock.num.brokers", "1").create().unwrap();
        // librdkafka asks for the first and for the next offset, and may ask again.
        let codes = [code; 10];
        // SAFETY: as below; the codes are alive throughout the call.
        unsafe {
            let cluster = c::rd_kafka_handle_mock_cluster(client.client().native_ptr());
            c::rd_kafka_mock_topic_create(cluster, c"there".as_ptr(), 1, 1);
            rd_kafka_mock_push_request_errors_array(cluster, LIST_OFFSETS, codes.len(), codes.as_ptr());
        }
        assert_eq!(bounds(client.client(), "there", 0, LONG), Err(RDKafkaErrorCode::Unknown), "{code}");
        // SAFETY: the mock belongs to the client, which is alive; the name ends in a zero byte, and librdkafka copies it.
        unsafe {
            let cluster = c::rd_kafka_handle_mock_cluster(client.client().native_ptr());
            rd_kafka_mock_topic_set_error(cluster, c"here".as_ptr(), code);
        }
        assert_eq!(topic_identity(client.client(), "here", Some(1), LONG), Err(RDKafkaErrorCode::Unknown), "{code}");
    }
    let of_answer = AdminError::of_answer(RDKafkaErrorCode::Unknown, Some("Err-103?".to_owned()));
    assert_eq!(of_answer.text, "Unknown broker error: Err-103?");
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

/// While a question waits for its broker's connection, librdkafka connects again at once after each failure, thousands of times a second.
#[test]
fn a_broker_that_refuses_connections_is_seldom_asked_for_one() {
    const MOST_A_SECOND: f64 = 1000.0;
    const PATIENCE: Duration = Duration::from_secs(3);
    let cluster = MockCluster::new(2).unwrap();
    let connects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connects);
    let count = move |line: &str| {
        counted.fetch_add(line.contains("Received CONNECT op").into(), Ordering::Relaxed);
    };
    let properties = Properties(vec![("debug".to_owned(), "broker".to_owned())]);
    let access = Access::at(&cluster.bootstrap_servers(), &properties);
    let access = Access { log_callback: Some(Arc::new(count)), ..access };
    let consumer: BaseConsumer<_> =
        BaseConsumer::from_config_and_context(&access.reader(), KafkaContext::new(&access)).unwrap();
    let ask = |broker, timeout| topic_identity(consumer.client(), "none", Some(broker), timeout);
    let is_over = AtomicBool::new(false);
    let (attempts, answered) = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = consumer.poll(Duration::from_millis(10));
            }
        });
        // The client knows both. Without this, later answers of the mock would not name the one that is down.
        let known = [ask(1, LONG), ask(1, LONG)];
        cluster.broker_down(2).unwrap();
        let (before, begun) = (connects.load(Ordering::Relaxed), clock::now());
        let unanswered = ask(2, PATIENCE);
        let (after, took) = (connects.load(Ordering::Relaxed), clock::now().since(begun));
        let asked = scope.spawn(|| ask(2, LONG));
        // It waits for its broker, and attempts are counted.
        while connects.load(Ordering::Relaxed) == after && !asked.is_finished() {
            thread::yield_now();
        }
        cluster.broker_up(2).unwrap();
        let answers = (known, unanswered, asked.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        (f64::from(u32::try_from(after - before).unwrap()) / took.as_secs_f64(), answers)
    });
    let missing = Ok(TopicIdentity::Missing);
    assert_eq!(answered, ([missing; 2], Err(RDKafkaErrorCode::OperationTimedOut), missing));
    assert!(attempts < MOST_A_SECOND, "{attempts} a second");
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
