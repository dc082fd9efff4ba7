use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer as _};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::sync::mpsc::{self, Receiver};

use super::*;
use crate::access::{Access, LogCallback};
use crate::election::{Elections, Properties};
use crate::librdkafka::cluster_id;
use crate::reading::IfMissing;

const LONG: Duration = Duration::from_secs(10);

type Cluster = MockCluster<'static, DefaultProducerContext>;

/// A topic with two partitions, and one record of role 0 in the first.
fn cluster() -> Cluster {
    let cluster = MockCluster::new(2).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    for (partition, leader) in [(0, 1), (1, 2)] {
        cluster.partition_leader("t", partition, Some(leader)).unwrap();
    }
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    producer.send(BaseRecord::to("t").partition(0).key("g/0").payload("{}")).unwrap();
    producer.flush(LONG).unwrap();
    cluster
}

/// A reader for this many roles.
fn start(cluster: &Cluster, roles: u32, partitions: Option<i32>) -> (Reader, Receiver<KafkaEvent>) {
    start_with(Access::at(&cluster.bootstrap_servers(), &Properties::default()), roles, partitions)
}

fn start_with(access: Access, roles: u32, partitions: Option<i32>) -> (Reader, Receiver<KafkaEvent>) {
    let (sender, events) = mpsc::channel(1024);
    (Reader::start(source(access, roles, partitions), 1, sender).unwrap(), events)
}

fn source(access: Access, roles: u32, partitions: Option<i32>) -> Source {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..roles, names: Arc::new([]) };
    Source { partitions, ..Source::new(access, elections, IfMissing::Create) }
}

/// A later reading has a configuration that was right at the start, but its certificate and key may be about to be replaced.
#[test]
fn only_the_first_reading_is_refused_if_there_is_no_client() {
    let properties = [("security.protocol", "ssl"), ("ssl.ca.location", "/nowhere")];
    let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
    for number in [1, 2] {
        let access = Access::at("127.0.0.1:9", &Properties(properties.to_vec()));
        let (sender, mut events) = mpsc::channel(1024);
        let _reader = Reader::start(source(access, 1, None), number, sender).unwrap();
        let is_warning = |event| {
            let is_it = matches!(event, KafkaEvent::Process(SessionEvent::Warning(_)));
            if is_it { Some(true) } else { is_refused(&event) }
        };
        assert_eq!(await_event(&mut events, is_warning), number > 1);
    }
}

/// `Some(false)` if Kafka refuses.
fn is_refused(event: &KafkaEvent) -> Option<bool> {
    matches!(event, KafkaEvent::Process(SessionEvent::Refused { .. })).then_some(false)
}

/// A candidate that makes no topics would exit for good, though it has only begun to read anew while a broker starts.
#[test]
fn a_topic_that_was_there_before_may_be_missing_for_a_moment() {
    let cluster = MockCluster::new(1).unwrap();
    let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    access.answered.store(true, Ordering::Relaxed);
    let (sender, mut events) = mpsc::channel(1024);
    let source = Source { if_missing: IfMissing::Refuse, ..source(access, 1, None) };
    let _reader = Reader::start(source, 2, sender).unwrap();
    let is_missing = |event| {
        let is_it = |error: &str| error.contains("does not exist");
        is_refused(&event).or_else(|| down(event).map(|error| is_it(&error)))
    };
    assert!(await_event(&mut events, is_missing));
    cluster.create_topic("t", 1, 1).unwrap();
    let is_answered = |event| {
        let is_it = matches!(event, KafkaEvent::Reading { event: Event::Answered { .. }, .. });
        if is_it { Some(true) } else { is_refused(&event) }
    };
    assert!(await_event(&mut events, is_answered));
}

/// The machines of a site start together, or the topic was made just before its candidates: nobody takes a refusal back.
#[test]
fn a_topic_is_refused_as_missing_once_a_broker_would_know_it() {
    let cluster = MockCluster::new(1).unwrap();
    let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    let (sender, mut events) = mpsc::channel(1024);
    let source = Source { if_missing: IfMissing::Refuse, ..source(access, 1, None) };
    let begun = clock::now();
    let _reader = Reader::start(source, 2, sender).unwrap();
    assert!(!await_event(&mut events, |event| is_refused(&event)));
    assert!(clock::now().since(begun) >= topic::MISSING_AFTER);
}

/// The first value that `wanted` returns for an event.
fn await_event<T>(events: &mut Receiver<KafkaEvent>, mut wanted: impl FnMut(KafkaEvent) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(events.blocking_recv().unwrap()) {
            return found;
        }
    }
}

/// Whether a record is of role 0.
fn is_of_role_0(event: KafkaEvent) -> Option<bool> {
    let KafkaEvent::Read { record, .. } = event else { return None };
    Some(matches!(record, Some(SessionEvent::Election { role: 0, .. })))
}

/// When the router replaces a reading that does not progress, it starts the new one at once. By then the election's own records must be
/// distinguishable from others.
#[test]
fn the_first_record_is_the_elections_own_although_another_partition_has_no_leader() {
    let cluster = cluster();
    cluster.partition_leader("t", 1, None).unwrap();
    for partitions in [Some(2), None] {
        let (reader, mut events) = start(&cluster, 2, partitions);
        reader.read_from(0, 0);
        assert!(await_event(&mut events, is_of_role_0), "{partitions:?}");
    }
}

fn down(event: KafkaEvent) -> Option<String> {
    let KafkaEvent::Process(SessionEvent::Outage { error: Some(error) }) = event else { return None };
    Some(error)
}

/// A reading that replaces another does not know whether the other one reported that no broker answers.
#[test]
fn the_first_answer_is_reported_before_the_partitions_end() {
    let cluster = cluster();
    let (_reader, mut events) = start(&cluster, 1, None);
    let mut is_up = false;
    await_event(&mut events, |event| {
        is_up |= matches!(event, KafkaEvent::Process(SessionEvent::Outage { error: None }));
        matches!(event, KafkaEvent::Reading { event: Event::Answered { .. }, .. }).then_some(())
    });
    assert!(is_up);
}

#[test]
fn partitions_that_all_have_no_leader_are_reported() {
    let cluster = cluster();
    cluster.partition_leader("t", 0, None).unwrap();
    let (_reader, mut events) = start(&cluster, 1, None);
    let message = await_event(&mut events, down);
    assert!(message.starts_with("topic \"t\": partition 0 has no leader; "), "{message}");
    cluster.partition_leader("t", 0, Some(1)).unwrap();
    await_event(&mut events, |event| {
        matches!(event, KafkaEvent::Process(SessionEvent::Outage { error: None })).then_some(())
    });

    for partition in [0, 1] {
        cluster.partition_leader("t", partition, None).unwrap();
    }
    for roles in [1, 2] {
        let questions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&questions);
        let debug = Properties(vec![("debug".to_owned(), "protocol".to_owned())]);
        let log_callback: LogCallback = Arc::new(move |line| {
            if line.contains("Sent MetadataRequest") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let access = Access { log_callback: Some(log_callback), ..Access::at(&cluster.bootstrap_servers(), &debug) };
        let (_reader, mut events) = start_with(access, roles, None);
        let message = await_event(&mut events, down);
        let expected = if roles == 1 { "partition 0 has no leader; " } else { "no partition has a leader; " };
        assert!(message.starts_with(&format!("topic \"t\": {expected}")), "{message}");
        // One question each 5 ms for half a second, in case the topic is new; then fewer.
        let asked = questions.load(Ordering::Relaxed);
        assert!((1..150).contains(&asked), "{asked} questions");
    }
}

/// A role that reads anew has a reading of its partition alone: what that one lacks is no outage of Kafka.
#[test]
fn a_reading_beside_the_one_of_all_partitions_reports_no_outage() {
    let cluster = cluster();
    for partition in [0, 1] {
        cluster.partition_leader("t", partition, None).unwrap();
    }
    let (sender, mut events) = mpsc::channel(1024);
    let access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    let of_one = Source { only: Some(BTreeSet::from([1])), ..source(access, 2, Some(2)) };
    let _of_one = Reader::start(of_one, 2, sender).unwrap();
    let (_of_all, mut events_of_all) = start(&cluster, 2, Some(2));
    await_event(&mut events_of_all, down);
    cluster.partition_leader("t", 1, Some(2)).unwrap();
    await_event(&mut events, |event| {
        assert!(!matches!(event, KafkaEvent::Process(SessionEvent::Outage { .. })), "{event:?}");
        matches!(event, KafkaEvent::Reading { event: Event::Answered { .. }, .. }).then_some(())
    });
}

/// The roles of a process are on several partitions.
#[test]
fn a_partition_without_a_leader_does_not_delay_the_roles_on_another() {
    let cluster = cluster();
    cluster.partition_leader("t", 1, None).unwrap();
    let (_reader, mut events) = start(&cluster, 2, None);
    let answered = |event| {
        let KafkaEvent::Reading { partition, event: Event::Answered { end, .. }, .. } = event else { return None };
        Some((partition, end))
    };
    assert_eq!(await_event(&mut events, answered), (0, 1));
    let warning = |event| {
        let KafkaEvent::Process(SessionEvent::Warning(warning)) = event else { return None };
        Some(warning)
    };
    let message = await_event(&mut events, warning);
    assert!(message.starts_with("topic \"t\": partition 1 has no leader; "), "{message}");
    cluster.partition_leader("t", 1, Some(2)).unwrap();
    let answered = |event| answered(event).filter(|(partition, _)| *partition == 1);
    assert_eq!(await_event(&mut events, answered), (1, 0));
}

/// A broker that this process alone can't reach leads its partitions for as long as that lasts.
#[test]
fn a_leader_that_does_not_answer_does_not_delay_the_roles_of_another() {
    let cluster = cluster();
    cluster.broker_round_trip_time(1, LONG * 6).unwrap();
    let (_reader, mut events) = start(&cluster, 2, Some(2));
    let mut next = |wanted: fn(&KafkaEvent) -> bool| {
        await_event(&mut events, |event| {
            assert!(
                !matches!(event, KafkaEvent::Process(SessionEvent::Outage { error: Some(_) })),
                "the other broker answers: {event:?}"
            );
            wanted(&event).then_some(event)
        })
    };
    // The first question goes to both brokers at once, the others to each by itself.
    for _ in 0..2 {
        next(|event| matches!(event, KafkaEvent::Reading { partition: 1, event: Event::Answered { .. }, .. }));
    }
    let KafkaEvent::Process(SessionEvent::Warning(warning)) =
        next(|event| matches!(event, KafkaEvent::Process(SessionEvent::Warning(_))))
    else {
        unreachable!()
    };
    assert!(warning.starts_with("topic \"t\": no answer from the leader of partition 0 ("), "{warning}");
    cluster.broker_round_trip_time(1, Duration::ZERO).unwrap();
    next(|event| matches!(event, KafkaEvent::Reading { partition: 0, event: Event::Answered { .. }, .. }));
}

/// A question may have been on its way to a broker that has died, while another one leads the partition since.
#[test]
fn a_question_without_an_answer_is_no_outage_if_records_have_come_since_it_was_asked() {
    let (sender, mut events) = mpsc::channel(10);
    let source = source(Access::at("127.0.0.1:9", &Properties::default()), 1, None);
    let reading = Reading::new(source, 1, sender, std::sync::mpsc::channel().0, Arc::default()).unwrap();
    let mut asker = Asker::new(Arc::new(reading));
    let mut is_outage_after = |is_read: bool| {
        let since = clock::now();
        if is_read {
            asker.reading.read_below(0, 1);
        }
        for _ in 0..2 {
            asker.no_answer(&RDKafkaErrorCode::OperationTimedOut.into(), since, true);
        }
        std::iter::from_fn(|| events.try_recv().ok()).any(|event| down(event).is_some())
    };
    assert_eq!([is_outage_after(true), is_outage_after(false)], [false, true]);
}

/// After a batch that can't be decoded nothing of the partitions that were read until then is read for half a second. A partition that is
/// first read in that time loses no record, also if one of its own batches can't be decoded.
#[test]
fn a_partition_that_begins_while_another_waits_for_its_batch_loses_no_record() {
    let undecodable = RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG;
    for failures in 0..2 {
        let cluster = cluster();
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
        producer.send(BaseRecord::to("t").partition(1).key("g/1").payload("{}")).unwrap();
        producer.flush(LONG).unwrap();
        cluster.request_errors(RDKafkaApiKey::Fetch, &[undecodable]);
        let (reader, mut events) = start(&cluster, 2, Some(2));
        reader.read_from(0, 0);
        let fails = |event| {
            let KafkaEvent::Reading { event: Event::Undecodable { .. }, .. } = event else { return None };
            Some(())
        };
        await_event(&mut events, fails);
        cluster.request_errors(RDKafkaApiKey::Fetch, &vec![undecodable; failures]);
        reader.read_from(1, 0);
        let first = await_event(&mut events, |event| {
            let is_at_end = matches!(event, KafkaEvent::Reading { partition: 1, event: Event::ReachedEnd { .. }, .. });
            assert!(!is_at_end, "caught up without the record");
            let KafkaEvent::Read { partition: 1, offset, .. } = event else { return None };
            Some(offset)
        });
        assert_eq!(first, 0);
    }
}

/// Whether the history was cut is decided by those who read it; each answer helps them.
#[test]
fn an_answer_that_contradicts_what_was_read_is_passed_on_and_followed_by_another() {
    let cluster = cluster();
    let source = source(Access::at(&cluster.bootstrap_servers(), &Properties::default()), 1, Some(2));
    let (sender, mut events) = mpsc::channel(1024);
    let (orders, _received) = std::sync::mpsc::channel();
    let mut asker = Asker::new(Arc::new(Reading::new(source, 1, sender, orders, Arc::default()).unwrap()));
    let now = clock::now();
    // The next offset to be read is 5.
    for (log, next_time) in [(0..5, ASK_INTERVAL), (0..3, RETRY), (6..9, RETRY), (5..9, ASK_INTERVAL)] {
        assert_eq!(asker.answered(0, Some(5), now, log.clone()), next_time, "{log:?}");
        let answer = Event::Answered { asked: now, start: log.start, end: log.end };
        let of_log = std::iter::from_fn(|| events.try_recv().ok())
            .filter_map(|event| if let KafkaEvent::Reading { event, .. } = event { Some(event) } else { None });
        assert_eq!(of_log.collect::<Vec<_>>(), [answer]);
    }
    asker.unanswered(&BTreeSet::from([0]), now, RDKafkaErrorCode::UnknownTopicOrPartition, true);
    let KafkaEvent::Reading { event, .. } = events.try_recv().unwrap() else { panic!("another event") };
    assert_eq!(event, Event::TopicIdentified { asked: now, identity: TopicIdentity::Missing });
}

/// The link is slower than the first question's time limit: the next one has longer, and each retry is logged with its reason.
#[test]
fn a_question_without_an_answer_is_asked_again_for_longer() {
    // The kernel accepts the connection, and nobody answers on it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let access = Access::at(&silent.local_addr().unwrap().to_string(), &Properties::default());
    let (_reader, mut events) = start_with(access, 1, None);
    let mut retry = || {
        await_event(&mut events, |event| {
            let KafkaEvent::Process(SessionEvent::Debug(message)) = event else { return None };
            Some(message)
        })
    };
    for (limit, next) in [(1_000, 4_000), (4_000, 16_000)] {
        let retry = retry();
        let (begins, ends) = (format!("no answer within {limit} ms ("), format!("): asking again, for {next} ms"));
        assert!(retry.starts_with(&begins) && retry.ends_with(&ends), "{retry}");
    }
}

/// A server that answers nothing, until it is connected with another one.
struct LateServer {
    listener: TcpListener,
    address: String,
}

impl LateServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Self { listener, address }
    }

    /// Hands all bytes over to the server at `to` and back.
    fn connect(self, to: String) {
        thread::spawn(move || {
            for client in self.listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&to).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
            }
        });
    }
}

/// The id of a cluster.
fn id(cluster: &Cluster) -> String {
    let client: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    client.client().fetch_metadata(Some("t"), LONG).unwrap();
    cluster_id(client.client()).unwrap()
}

/// The refusal of a reading, if it is before the first answer about the log.
fn refusal(events: &mut Receiver<KafkaEvent>) -> Option<String> {
    await_event(events, |event| {
        let is_answer = matches!(event, KafkaEvent::Reading { event: Event::Answered { .. }, .. });
        if let KafkaEvent::Process(SessionEvent::Refused { error, .. }) = event {
            Some(Some(error))
        } else {
            is_answer.then_some(None)
        }
    })
}

#[test]
fn bootstrap_servers_of_two_clusters_are_refused_before_anything_is_read() {
    let (one, other) = (cluster(), cluster());
    let both = [one.bootstrap_servers(), other.bootstrap_servers()];
    for list in [both.join(","), format!("{},{}", both[1], both[0])] {
        let (_reader, mut events) = start_with(Access::at(&list, &Properties::default()), 1, None);
        let refusal = refusal(&mut events).expect("a refusal before the first answer");
        assert!(refusal.contains(&id(&one)) && refusal.contains(&id(&other)), "{refusal}");
    }
}

#[test]
fn bootstrap_servers_that_are_down_or_silent_or_have_another_name_are_no_reason_to_refuse() {
    let cluster = cluster();
    let late = LateServer::start();
    let renamed = cluster.bootstrap_servers().replace("127.0.0.1", "localhost");
    for others in ["127.0.0.1:9", "no-such-host.invalid:9092", &late.address, &renamed] {
        let list = format!("{others},{}", cluster.bootstrap_servers());
        let access = Access::at(&list, &Properties::default());
        let (_reader, mut events) = start_with(access, 1, None);
        assert_eq!(refusal(&mut events), None, "{others}");
    }
}

/// A candidate that starts later may reach that server alone.
#[test]
fn a_bootstrap_server_of_another_cluster_that_answers_later_is_refused_then() {
    let (one, other) = (cluster(), cluster());
    let late = LateServer::start();
    let access = Access::at(&format!("{},{}", one.bootstrap_servers(), late.address), &Properties::default());
    let (reader, mut events) = start_with(access, 1, None);
    assert_eq!(refusal(&mut events), None);
    late.connect(other.bootstrap_servers().split(',').next().unwrap().to_owned());
    let refusal = std::iter::from_fn(|| {
        reader.look_for_end();
        Some(refusal(&mut events))
    });
    let refusal = refusal.flatten().next().unwrap();
    assert!(refusal.contains(&id(&one)) && refusal.contains(&id(&other)), "{refusal}");
}

/// All clients of a process share what is known of the cluster. So it is noticed if one of them reaches another cluster than the others.
#[test]
fn a_reader_in_another_cluster_than_the_process_is_refused() {
    let (one, other) = (cluster(), cluster());
    let access = Access::at(&one.bootstrap_servers(), &Properties::default());
    let (_reader, mut events) = start_with(access.clone(), 1, None);
    assert_eq!(refusal(&mut events), None);
    let moved = Access { bootstrap: other.bootstrap_servers(), ..access };
    let (_reader, mut events) = start_with(moved.clone(), 1, None);
    let of_answer = refusal(&mut events);
    // The same if the other cluster does not have the topic, so that there is no answer about the log.
    let (sender, mut events) = mpsc::channel(1024);
    let (orders, _received) = std::sync::mpsc::channel();
    let mut asker =
        Asker::new(Arc::new(Reading::new(source(moved, 1, Some(2)), 2, sender, orders, Arc::default()).unwrap()));
    asker.reading.consumer.consumer().fetch_metadata(Some("t"), LONG).unwrap();
    asker.found = true;
    asker.unanswered(&BTreeSet::from([0]), clock::now(), RDKafkaErrorCode::UnknownTopicOrPartition, true);
    let without_topic = refusal(&mut events);
    let (one, other) = (id(&one), id(&other));
    let expected = format!("answers of two clusters: the first of \"{one}\", and one of \"{other}\" now; ");
    for refusal in [of_answer, without_topic] {
        assert!(refusal.as_ref().is_some_and(|refusal| refusal.starts_with(&expected)), "{refusal:?}");
    }
}

/// `localhost` is often `::1` and `127.0.0.1`, and the broker listens at the second alone.
#[test]
fn a_connection_that_fails_at_the_start_is_reported_when_other_addresses_were_tried() {
    let begun = clock::now();
    let (_reader, mut events) = start_with(Access::at("127.0.0.1:9", &Properties::default()), 1, None);
    let error = await_event(&mut events, |event| {
        if let KafkaEvent::Process(SessionEvent::Outage { error: Some(error) }) = event { Some(error) } else { None }
    });
    assert!(error.contains("127.0.0.1:9"), "{error}");
    assert!(clock::now().since(begun) >= Duration::from_secs(1));
}

#[test]
fn many_partitions_are_named_by_ranges() {
    assert_eq!(numbers(&BTreeSet::from([3])), "partition 3");
    assert_eq!(numbers(&(0..100).chain([200]).collect()), "partitions 0-99, 200");
}
