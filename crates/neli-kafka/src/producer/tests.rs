use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::sync::mpsc::{self, Receiver};

use super::*;
use crate::election::Properties;

const LONG: Duration = Duration::from_secs(5);

fn cluster() -> MockCluster<'static, DefaultProducerContext> {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("g.neli", 1, 1).unwrap();
    cluster
}

fn elections() -> Elections {
    let names: Arc<[String]> = Arc::default();
    Elections { group: "g".to_owned(), topic: "g.neli".to_owned(), roles: 0..1, names }
}

/// A producer of the Kafka at `bootstrap`, which gives a record up after `timeout`, and its events.
fn start(bootstrap: &str, timeout: Duration) -> (Producer, Receiver<KafkaEvent>) {
    let access = Access::at(bootstrap, &Properties::default());
    let (sender, events) = mpsc::channel(10_000);
    (Producer::without_questions(&access, &elections(), timeout, sender).unwrap(), events)
}

fn send(producer: &Producer, seq: u64) {
    producer.send(&elections().election(0, 1), Some(seq), "g", Some(b"{}")).unwrap();
}

/// librdkafka reports the records in flight from the thread that drops the last reference to it, and a report may block. In a thread of
/// an async runtime, blocking is a panic.
#[tokio::test]
async fn it_can_be_dropped_in_a_runtime_with_records_in_flight() {
    let cluster = cluster();
    for _ in 0..200 {
        let (producer, _events) = start(&cluster.bootstrap_servers(), LONG);
        (0..10).for_each(|seq| send(&producer, seq));
    }
}

/// Each role of a process may claim at its start; a claim without room in the queue would count as refused by Kafka.
#[test]
fn the_records_of_the_most_roles_have_room_at_once() {
    let cluster = cluster();
    let (producer, _events) = start(&cluster.bootstrap_servers(), LONG);
    cluster.broker_down(1).unwrap();
    let claim = [b' '; 300];
    for role in 0..crate::names::MOST_ROLES {
        producer.send(&elections().election(0, 1), Some(role.into()), "g", Some(&claim)).unwrap();
    }
}

/// The reasons that are reported until it is known what became of a record, and whether it is in the log.
fn outcome(events: &mut Receiver<KafkaEvent>) -> (Vec<String>, bool) {
    let mut reasons = Vec::new();
    loop {
        let event = events.blocking_recv().unwrap();
        let KafkaEvent::Process(SessionEvent::AppendRefused { error }) = event else {
            let is_delivered = matches!(event, KafkaEvent::Delivered { .. });
            assert!(is_delivered || matches!(event, KafkaEvent::NotDelivered { .. }), "{event:?}");
            return (reasons, is_delivered);
        };
        reasons.push(error);
    }
}

#[test]
fn a_refused_record_is_reported_with_kafkas_reason() {
    let cluster = cluster();
    let (producer, mut events) = start(&cluster.bootstrap_servers(), LONG);
    for (seq, code, reason) in [
        (1, RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "Message size too large; "),
        (2, RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, "Invalid timestamp; "),
        (3, RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "Policy violation"),
    ] {
        cluster.request_errors(RDKafkaApiKey::Produce, &[code]);
        send(&producer, seq);
        let (reasons, is_delivered) = outcome(&mut events);
        assert!(!is_delivered && !reasons.is_empty(), "{seq}: {reasons:?}");
        assert!(reasons.iter().all(|said| said.starts_with(reason) && *said == reasons[0]), "{seq}: {reasons:?}");
    }
    send(&producer, 4);
    assert_eq!(outcome(&mut events), (vec![], true));
}

/// A producer that was replaced lives on in the threads that still ask something by it. What it gives up is no trouble of the new one.
#[test]
fn a_record_that_is_given_up_after_the_producer_was_replaced_is_not_told_as_refused() {
    let cluster = cluster();
    let (producer, mut events) = start(&cluster.bootstrap_servers(), Duration::from_millis(100));
    cluster.broker_down(1).unwrap();
    send(&producer, 1);
    let client = Arc::clone(&producer.inner);
    drop(producer);
    let event = loop {
        client.poll(Duration::from_millis(10));
        if let Ok(event) = events.try_recv() {
            break event;
        }
    };
    assert!(matches!(event, KafkaEvent::NotDelivered { may_be_in_log: true, .. }), "{event:?}");
}

/// What Kafka has not refused may be in the log: a broker takes the record and the connection is lost, or its replicas do not follow.
#[test]
fn a_record_is_refused_only_if_no_attempt_may_have_put_it_into_the_log() {
    use RDKafkaRespErr as Code;
    let (lost, refused) = (Code::RD_KAFKA_RESP_ERR__TRANSPORT, Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    let after_append = Code::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND;
    let cluster = cluster();
    for (retries, errors, expected) in [
        ("0", &[lost][..], true),
        ("0", &[after_append], true),
        ("0", &[Code::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS], false),
        ("0", &[refused], false),
        ("5", &[lost, refused], true),
        ("5", &[refused], false),
    ] {
        let properties = Properties(vec![("retries".to_owned(), retries.to_owned())]);
        let access = Access::at(&cluster.bootstrap_servers(), &properties);
        let (sender, mut events) = mpsc::channel(100);
        let producer = Producer::without_questions(&access, &elections(), LONG, sender).unwrap();
        cluster.request_errors(RDKafkaApiKey::Produce, errors);
        send(&producer, 1);
        let found = std::iter::from_fn(|| events.blocking_recv()).find_map(|event| {
            if let KafkaEvent::NotDelivered { may_be_in_log, .. } = event { Some(may_be_in_log) } else { None }
        });
        assert_eq!(found, Some(expected), "{retries} {errors:?}");
    }
}

/// librdkafka sends such a record again until it is given up, and then says only that the time was over.
#[test]
fn a_refusal_is_reported_although_the_record_is_sent_again() {
    const REFUSED: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
    let cluster = cluster();
    for (times, timeout, is_given_up) in [(1, LONG, false), (10_000, LONG / 2, true)] {
        let (producer, mut events) = start(&cluster.bootstrap_servers(), timeout);
        cluster.request_errors(RDKafkaApiKey::Produce, &vec![REFUSED; times]);
        send(&producer, 1);
        let (reasons, is_delivered) = outcome(&mut events);
        assert_eq!(is_delivered, !is_given_up);
        let is_refusal = |reason: &String| reason.starts_with("Not enough in-sync replicas; ");
        assert!(!reasons.is_empty() && reasons.iter().all(is_refusal), "{reasons:?}");
    }
}

/// It is no record of the journal, so it does not say that this candidate can't lead.
#[test]
fn a_refused_fact_is_reported_with_its_topic() {
    use RDKafkaRespErr::{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS};
    let cluster = cluster();
    cluster.create_topic("g.neli.once", 1, 1).unwrap();
    for (code, times, reason) in [
        (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1, "Message size too large; "),
        (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 10_000, "Not enough in-sync replicas; "),
    ] {
        let (producer, mut events) = start(&cluster.bootstrap_servers(), LONG / 2);
        cluster.request_errors(RDKafkaApiKey::Produce, &vec![code; times]);
        producer.append_fact(7, "g.neli.once", "g/0/k", b"{}").unwrap();
        let event = events.blocking_recv().unwrap();
        let KafkaEvent::Process(SessionEvent::Facts { id: 7, event: FactsEvent::NotAppended { id: 7, error } }) = event
        else {
            panic!("{event:?}");
        };
        assert!(error.starts_with(&format!("topic \"g.neli.once\" refuses them: {reason}")), "{error}");
    }
}

#[test]
fn a_record_that_is_never_acknowledged_is_reported() {
    let (producer, mut events) = start("127.0.0.1:9", Duration::from_millis(500));
    send(&producer, 1);
    assert_eq!(outcome(&mut events), (vec!["no acknowledgement within 500 ms".to_owned()], false));
}

mod deliveries {
    use super::*;

    #[test]
    fn a_refusal_is_parsed_from_librdkafkas_message() {
        let line = "[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: g.neli [0]: MessageSet with 1 message(s) (MsgId 0, BaseSeq \
                    -1) encountered error: Broker: Not enough in-sync replicas (actions Retry,MsgNotPersisted)";
        let (topic, why) = refused_append(line).unwrap();
        assert!(topic == "g.neli" && why.starts_with("Not enough in-sync replicas; "), "{topic}: {why}");
        assert_eq!(refused_append(&line.replace("Broker: Not enough in-sync replicas", "Local: Timed out")), None);
        assert_eq!(refused_append("g.neli [0]: Produce MessageSet with 1 message(s)"), None);
    }
}
