use std::time::Duration;

use neli_kafka::{Access, IfMissing, Properties};
use tokio::sync::mpsc;

use super::*;

fn source() -> Source {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: [].into() };
    Source::new(Access::at("localhost:9", &Properties::default()), elections, IfMissing::Await)
}

const CLAIM: &str = r#"{"v":1,"member":"m","name":"db1","seq":1,"kind":"claim","after":-1,"lease_ms":5000}"#;
const BEAT: &str = r#"{"v":1,"member":"m","name":"db1","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#;
const RELEASE: &str = r#"{"v":1,"member":"m","name":"db1","seq":3,"kind":"release","term":0,"seen":0}"#;
const RESIGN: &str = r#"{"v":1,"name":"ann","kind":"request","what":"resign","term":0}"#;

/// The reading of one election, and the receivers of what it sends.
struct Fixture {
    reading: Reading,
    follower: watch::Receiver<Result<Leadership, Error>>,
    _events: Receiver<KafkaEvent>,
    _warnings: broadcast::Receiver<Event>,
}

impl Fixture {
    fn new() -> Self {
        let (events, received) = mpsc::channel(1);
        let (warnings, told) = broadcast::channel(1);
        let unknown = Ok(Leadership::Unknown { trouble: None });
        let (state, follower) = watch::channel(unknown);
        let reading = Reading::new(source(), events, vec![state], warnings, None);
        Self { reading, follower, _events: received, _warnings: told }
    }
}

/// The reading of so many roles, and their followers. What it sends is not received.
fn of_roles(roles: u32) -> (Reading, Vec<watch::Receiver<Result<Leadership, Error>>>) {
    let unknown = Ok(Leadership::Unknown { trouble: None });
    let (states, followers) = (0..roles).map(|_| watch::channel(unknown.clone())).unzip();
    let source = source();
    let elections = Elections { roles: 0..roles, ..source.elections };
    let source = Source { elections, ..source };
    (Reading::new(source, mpsc::channel(1).0, states, broadcast::channel(1).0, None), followers)
}

/// Returns what is published at `shown` after these records. Of each record: when it was read, when it was appended, and its text. `end`:
/// the end of the log when the reading began. All times are in milliseconds; `shown`, and when a record was read, count from the begin of
/// the reading.
fn leadership(end: i64, records: &[(u64, u64, &str)], shown: u64) -> Leadership {
    let mut fixture = Fixture::new();
    let Fixture { reading, follower, .. } = &mut fixture;
    let began = clock::now();
    let after = |ms| began + Duration::from_millis(ms);
    reading.handle_role_event(began, 0, candidate::Event::Answered { asked: began, start: 0, end });
    for (offset, (read, written_ms, value)) in (0..).zip(records) {
        let record = candidate::Event::of_record(offset, Some(value.as_bytes()), Some(*written_ms));
        reading.handle_role_event(after(*read), 0, record);
    }
    reading.publish(after(shown));
    follower.borrow().clone().unwrap()
}

/// The leader was fenced before it.
#[test]
fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
    let after_a_heartbeat = |gap_ms: u64| leadership(2, &[(0, 1_000, CLAIM), (0, 1_000 + gap_ms, BEAT)], 0);
    assert!(matches!(after_a_heartbeat(4_900), Leadership::Led(_)));
    assert_eq!(after_a_heartbeat(9_000), Leadership::Unknown { trouble: None });
}

/// An operator writes the request, and the leader may be dead.
#[test]
fn a_request_does_not_prolong_a_lead() {
    let records = [(100, 1_000, CLAIM), (4_900, 5_800, RESIGN)];
    assert!(matches!(leadership(0, &records, 5_099), Leadership::Silent { .. }));
    assert_eq!(leadership(0, &records, 5_100), Leadership::Unknown { trouble: None });
}

#[test]
fn a_leader_that_has_missed_three_heartbeats_is_silent() {
    let records = [(100, 1_000, CLAIM)];
    assert!(matches!(leadership(0, &records, 3_299), Leadership::Led(_)));
    let Leadership::Silent { leader, since, claimable } = leadership(0, &records, 3_300) else { panic!("silent") };
    // R2: its lease, a hundredth of it and 10 ms.
    let silence = Duration::from_millis(5_060);
    assert_eq!((leader.name.as_deref(), claimable.duration_since(since)), (Some("db1"), silence));
}

#[test]
fn a_record_from_before_the_reading_is_at_least_as_old_as_the_reading() {
    let records = [(900, 1_000, CLAIM)];
    assert!(matches!(leadership(1, &records, 3_199), Leadership::Led(_)));
    assert!(matches!(leadership(1, &records, 4_999), Leadership::Silent { .. }));
    assert_eq!(leadership(1, &records, 5_000), Leadership::Unknown { trouble: None });
}

/// Otherwise only those learn of it who ask for the leadership at that time.
#[test]
fn an_outage_is_a_warning_once_and_so_is_its_end() {
    let mut fixture = Fixture::new();
    let mut events = fixture.reading.warnings.subscribe();
    for error in ["no broker answers", "refused"] {
        fixture.reading.handle(SessionEvent::Outage { error: Some(error.to_owned()) }.into()).unwrap();
    }
    let warning = |message: &str| Event::Warning { message: message.to_owned() };
    let mut told = || std::iter::from_fn(|| events.try_recv().ok()).collect::<Vec<_>>();
    assert_eq!(told(), [warning("it is unknown who leads: no broker answers")]);
    for _ in 0..2 {
        fixture.reading.handle(SessionEvent::Outage { error: None }.into()).unwrap();
    }
    let over = told();
    let [Event::Warning { message }] = over.as_slice() else { panic!("{over:?}") };
    assert!(message.starts_with("the journal is read again, after "), "{message}");
}

/// The topic was made again while no broker answered, and its log is longer than that of the old one: nothing else shows that.
#[test]
fn after_an_outage_nothing_of_before_counts() {
    let mut fixture = Fixture::new();
    let Fixture { reading, follower, .. } = &mut fixture;
    let began = clock::now();
    reading.handle_role_event(began, 0, candidate::Event::Answered { asked: began, start: 0, end: 2 });
    for (offset, value) in (0..).zip([CLAIM, RELEASE]) {
        reading.handle_role_event(began, 0, candidate::Event::of_record(offset, Some(value.as_bytes()), None));
    }
    reading.publish(began);
    assert_eq!(*follower.borrow(), Ok(Leadership::Vacant));
    reading.handle(SessionEvent::Outage { error: Some("refused".to_owned()) }.into()).unwrap();
    reading.handle(SessionEvent::Outage { error: None }.into()).unwrap();
    reading.publish(began);
    assert_eq!(*follower.borrow(), Ok(Leadership::Unknown { trouble: None }), "until it is read");
    assert!(!reading.roles[0].listener.is_caught_up());
    // A client that is slow to answer first is not replaced for that.
    let number = reading.router.reading_of(0);
    reading.handle(SessionEvent::Outage { error: Some("no answer".to_owned()) }.into()).unwrap();
    reading.handle(SessionEvent::Outage { error: None }.into()).unwrap();
    assert_eq!(reading.router.reading_of(0), number);
}

/// The leader of a partition may be out of reach from here alone, while the others answer.
#[test]
fn a_role_of_which_kafka_tells_nothing_is_not_vacant_for_ever() {
    let mut fixture = Fixture::new();
    let Fixture { reading, follower, .. } = &mut fixture;
    let began = clock::now();
    let answered = |at| candidate::Event::Answered { asked: at, start: 0, end: 0 };
    reading.handle_role_event(began, 0, answered(began));
    assert_eq!(reading.publish(began), Some(began + UNANSWERED_AFTER));
    assert_eq!(*follower.borrow(), Ok(Leadership::Vacant));
    let late = began + UNANSWERED_AFTER;
    assert_eq!(reading.publish(late), None);
    assert_eq!(*follower.borrow(), Ok(Leadership::Unknown { trouble: None }));
    reading.handle_role_event(late, 0, answered(late));
    reading.publish(late);
    assert_eq!(*follower.borrow(), Ok(Leadership::Vacant));
}

/// Otherwise a program that only asks who leads would log nothing.
#[test]
fn the_end_of_a_follower_is_its_last_warning() {
    let (events, received) = mpsc::channel(1);
    let (warnings, mut told) = broadcast::channel(1);
    let (state, mut follower) = watch::channel(Ok(Leadership::Unknown { trouble: None }));
    let refused = SessionEvent::Refused { role: None, error: "a right is missing".to_owned() };
    events.try_send(refused.into()).unwrap();
    Reading::new(source(), events, vec![state], warnings, None).run(Waiter::new().unwrap(), received);
    assert_eq!(*follower.borrow_and_update(), Err(Error::Refused("a right is missing".to_owned())));
    let message = "it is unknown who leads: this follower has ended: a right is missing".to_owned();
    assert_eq!(told.try_recv(), Ok(Event::Warning { message }));
    assert!(told.try_recv().is_err());
}

#[tokio::test(flavor = "current_thread")]
async fn the_thread_ends_once_no_role_is_followed_any_more() {
    let (reading, mut followers) = of_roles(2);
    let (events, received) = mpsc::channel(1);
    let thread = thread::spawn(move || reading.run(Waiter::new().unwrap(), received));
    let mut last = followers[1].clone();
    followers.clear();
    events.send(SessionEvent::Outage { error: Some("refused".to_owned()) }.into()).await.unwrap();
    last.changed().await.unwrap();
    drop(last);
    thread.join().unwrap();
}

/// Each of thousands of leaders writes a heartbeat a second, and a look at all roles for each heartbeat would take more than a processor.
#[test]
fn a_record_of_one_role_costs_no_look_at_the_others() {
    let (mut reading, followers) = of_roles(3);
    let began = clock::now();
    reading.publish(began);
    reading.handle_role_event(began, 1, candidate::Event::Answered { asked: began, start: 0, end: 0 });
    reading.handle_role_event(began, 1, candidate::Event::of_record(0, Some(CLAIM.as_bytes()), None));
    assert_eq!(reading.touched, BTreeSet::from([1]));
    let (overdue, lease_end) = (began + Duration::from_millis(3_200), began + Duration::from_secs(5));
    assert_eq!(reading.publish(began), Some(overdue));
    let is_led = || matches!(*followers[1].borrow(), Ok(Leadership::Led(_)));
    assert!(is_led() && reading.touched.is_empty());
    assert_eq!(reading.publish(overdue), Some(lease_end));
    assert_eq!(reading.publish(lease_end), None);
    assert!(!is_led());
    let trouble = Some("no broker answers".to_owned());
    reading.handle(SessionEvent::Outage { error: trouble.clone() }.into()).unwrap();
    reading.publish(lease_end);
    for follower in &followers {
        assert_eq!(*follower.borrow(), Ok(Leadership::Unknown { trouble: trouble.clone() }));
    }
}

/// Partitions may have been added since the candidates counted them. Until one of them has said its number, a role without records may be
/// led in another partition.
#[test]
fn a_role_without_records_is_vacant_once_the_candidates_partitions_are_known() {
    const END: i64 = 30_000;
    let leadership_of_role_1 = |hello: &[u8], after: Duration| {
        let (mut reading, followers) = of_roles(2);
        let began = clock::now();
        reading.handle(KafkaEvent::Partitions(3)).unwrap();
        for (role, end) in [(0, END), (1, 0)] {
            reading.handle_role_event(began, role, candidate::Event::Answered { asked: began, start: 0, end });
        }
        reading.handle_role_event(began, 0, candidate::Event::Passed { first: END - FIRST_SPAN, last: END - 2 });
        let claim = CLAIM.replace("-1", &(END - 2).to_string());
        let read = candidate::Event::of_record(END - 1, Some(claim.as_bytes()), None);
        reading.handle_role_event(began, 0, read);
        if let Some(hello) = Hello::parse(hello) {
            reading.read_hello(began, END - 3, &hello);
        }
        let due = reading.publish(began);
        assert!(matches!(*followers[0].borrow(), Ok(Leadership::Led(_))));
        if let Some(due) = due.filter(|due| *due <= began + after) {
            reading.publish(due);
        }
        reading.publish(began + after);
        followers[1].borrow().clone().unwrap()
    };
    let of_candidate = OF_TWO_ROLES;
    let unknown = Leadership::Unknown { trouble: None };
    assert_eq!(leadership_of_role_1(of_candidate, Duration::ZERO), Leadership::Vacant);
    assert_eq!(leadership_of_role_1(b"", Duration::from_secs(34)), unknown);
    assert_eq!(leadership_of_role_1(b"", Duration::from_secs(35)), Leadership::Vacant);
}

const OF_TWO_ROLES: &[u8] = br#"{"v":1,"member":"m","seq":1,"kind":"hello","roles":"2","partitions":3}"#;

/// All is read as at the start, and by how many partitions roles are mapped is learnt again.
#[test]
fn a_role_without_records_is_vacant_again_after_an_outage() {
    let (mut reading, followers) = of_roles(2);
    let unknown = Ok(Leadership::Unknown { trouble: None });
    for error in [None, Some("refused".to_owned())] {
        if error.is_some() {
            reading.handle(SessionEvent::Outage { error }.into()).unwrap();
            reading.handle(SessionEvent::Outage { error: None }.into()).unwrap();
        }
        let now = clock::now();
        reading.publish(now);
        assert_eq!(*followers[1].borrow(), unknown);
        reading.handle(KafkaEvent::Partitions(3)).unwrap();
        reading.read_hello(now, 0, &Hello::parse(OF_TWO_ROLES).unwrap());
        reading.follow_router(now);
        for role in 0..2 {
            reading.handle_role_event(now, role, candidate::Event::Answered { asked: now, start: 0, end: 0 });
        }
        reading.publish(now);
        assert_eq!(*followers[1].borrow(), Ok(Leadership::Vacant));
    }
}

/// Its terms may have the numbers of those that are gone, and other leaders.
#[test]
fn a_cut_where_the_hellos_are_leaves_no_term_of_any_role() {
    let (mut reading, _followers) = of_roles(2);
    let now = clock::now();
    reading.handle(KafkaEvent::Partitions(3)).unwrap();
    reading.read_hello(now, 0, &Hello::parse(OF_TWO_ROLES).unwrap());
    reading.follow_router(now);
    reading.handle_role_event(now, 1, candidate::Event::Answered { asked: now, start: 0, end: 1 });
    reading.handle_role_event(now, 1, candidate::Event::of_record(0, Some(CLAIM.as_bytes()), None));
    assert!(reading.roles[1].last_term.leader.is_some());
    reading.handle_role_event(now, 0, candidate::Event::HistoryCut);
    reading.follow_router(now);
    assert!(reading.roles[1].last_term.leader.is_none());
}

/// Other elections share the topic, and have written more than a reading begins with since this one's leader left.
#[test]
fn a_release_far_back_in_the_log_is_found() {
    const END: i64 = 30_000;
    let mut fixture = Fixture::new();
    let Fixture { reading, follower, .. } = &mut fixture;
    let began = clock::now();
    // From where the log is read is the listener's business: this answers each question, and hands over all that there is from there on.
    for from in [20_000, 10_000, 0] {
        reading.handle_role_event(began, 0, candidate::Event::Answered { asked: began, start: 0, end: END });
        if from == 0 {
            for (offset, text) in [(0, CLAIM), (1, RELEASE)] {
                let read = candidate::Event::of_record(offset, Some(text.as_bytes()), None);
                reading.handle_role_event(began, 0, read);
            }
        }
        let first = from.max(2);
        reading.handle_role_event(began, 0, candidate::Event::Passed { first, last: END - 1 });
        reading.publish(began);
    }
    assert_eq!(*follower.borrow(), Ok(Leadership::Vacant));
}

/// The records of other partitions show nothing of the one that has stopped: a role there is not vacant, and the program is not warned each time.
#[test]
fn a_batch_that_can_not_be_decoded_hides_the_roles_of_its_partition_alone() {
    let (events, _received) = mpsc::channel(1);
    let (warnings, mut told) = broadcast::channel(10);
    let unknown = Ok(Leadership::Unknown { trouble: None });
    let (states, followers): (Vec<_>, Vec<_>) = (0..2).map(|_| watch::channel(unknown.clone())).unzip();
    let source = source();
    let elections = Elections { roles: 0..2, ..source.elections };
    let mut reading = Reading::new(Source { elections, ..source }, events, states, warnings, None);
    reading.begin(clock::now());
    let of = |partition, event| KafkaEvent::Reading { reading: 1, partition, event };
    let answered = || candidate::Event::Answered { asked: clock::now(), start: 0, end: 0 };
    for event in [KafkaEvent::Partitions(2), of(0, answered()), of(1, answered())] {
        reading.handle(event).unwrap();
    }
    reading.publish(clock::now());
    let leaderships = || followers.iter().map(|follower| follower.borrow().clone().unwrap()).collect::<Vec<_>>();
    assert_eq!(leaderships(), [Leadership::Vacant, Leadership::Vacant]);
    reading.handle(of(1, candidate::Event::Undecodable { offset: 7, error: None })).unwrap();
    reading.publish(clock::now());
    assert_eq!(leaderships(), [Leadership::Vacant, Leadership::Vacant], "the next answer may be whole");
    for offset in 0..3 {
        let error = Some("a bad checksum".into());
        reading.handle(of(1, candidate::Event::Undecodable { offset: 7, error })).unwrap();
        reading.handle(KafkaEvent::Read { reading: 1, partition: 0, offset, record: None }).unwrap();
        reading.publish(clock::now());
        let trouble = Some("topic \"t\": the batch at offset 7 can't be decoded: a bad checksum".to_owned());
        assert_eq!(leaderships(), [Leadership::Vacant, Leadership::Unknown { trouble }]);
    }
    let mut warned = || std::iter::from_fn(|| told.try_recv().ok()).count();
    assert_eq!(warned(), 1);
    reading.handle(KafkaEvent::Read { reading: 1, partition: 1, offset: 7, record: None }).unwrap();
    reading.publish(clock::now());
    assert!(!leaderships().iter().any(|leadership| matches!(leadership, Leadership::Unknown { trouble: Some(_) })));
    assert_eq!(warned(), 1, "it is over");
}

/// A reader beside that of all roles reports no outage, and with many roles such a one waits for the topic.
#[test]
fn a_topic_that_is_gone_is_why_the_leader_is_unknown() {
    let mut fixture = Fixture::new();
    let Fixture { reading, follower, .. } = &mut fixture;
    reading.begin(clock::now());
    let began = clock::now();
    let of = |event| KafkaEvent::Reading { reading: 1, partition: 0, event };
    reading.handle(of(candidate::Event::Answered { asked: began, start: 0, end: 0 })).unwrap();
    for seconds in [0, 10] {
        let asked = began + Duration::from_secs(seconds);
        let missing = candidate::Event::TopicIdentified { asked, identity: TopicIdentity::Missing };
        reading.handle(of(missing)).unwrap();
    }
    reading.publish(clock::now());
    let leadership = follower.borrow_and_update().clone().unwrap();
    assert!(
        matches!(&leadership, Leadership::Unknown { trouble: Some(why) } if why.contains("does not exist yet")),
        "{leadership:?}"
    );
    reading
        .handle(KafkaEvent::Reading { reading: 2, partition: 0, event: candidate::Event::ReachedEnd { next: 0 } })
        .unwrap();
    reading.publish(clock::now());
    assert_eq!(*follower.borrow(), Ok(Leadership::Unknown { trouble: None }));
}

/// The client may rest for good, as librdkafka's did after a cluster's restart.
#[test]
fn a_reader_that_hands_over_nothing_is_replaced() {
    let mut fixture = Fixture::new();
    let reading = &mut fixture.reading;
    reading.begin(clock::now());
    let began = clock::now();
    reading.handle_role_event(began, 0, candidate::Event::Answered { asked: began, start: 0, end: 10 });
    let due = reading.publish(began).unwrap();
    reading.replace_stuck_readers(began + STUCK_AFTER / 2);
    assert!(reading.router.has(1));
    reading.replace_stuck_readers(due);
    assert!(!reading.router.has(1) && reading.router.has(2));
    assert_eq!(reading.publish(due), None, "once");
}

/// A role that is caught up is not told of each record of others.
#[test]
fn a_reader_that_hands_over_records_of_other_elections_is_not_replaced() {
    let mut fixture = Fixture::new();
    let reading = &mut fixture.reading;
    reading.begin(clock::now());
    let read = |offset, record| KafkaEvent::Read { reading: 1, partition: 0, offset, record };
    let ends = |end| {
        let event = candidate::Event::Answered { asked: clock::now(), start: 0, end };
        KafkaEvent::Reading { reading: 1, partition: 0, event }
    };
    let event = candidate::Event::of_record(0, Some(CLAIM.as_bytes()), None);
    let claim = Some(SessionEvent::Election { role: 0, event });
    for event in [ends(1), read(0, claim), ends(3), read(1, None), read(2, None)] {
        reading.handle(event).unwrap();
    }
    reading.publish(clock::now());
    reading.replace_stuck_readers(clock::now() + 2 * STUCK_AFTER);
    assert!(reading.router.has(1));
}

#[test]
fn a_warning_is_passed_on() {
    let (events, _received) = mpsc::channel(1);
    let (warnings, mut told) = broadcast::channel(1);
    let mut reading = Reading::new(source(), events, Vec::new(), warnings, None);
    reading.handle(SessionEvent::Warning("odd\nname".to_owned()).into()).unwrap();
    assert_eq!(told.try_recv(), Ok(Event::Warning { message: "odd\\nname".to_owned() }), "in one line");
}

/// The one role is vacant for ever: those candidates have elections of their own.
#[test]
fn a_follower_of_one_role_is_warned_of_candidates_with_names_of_roles() {
    let mut fixture = Fixture::new();
    let Fixture { reading, _warnings: told, .. } = &mut fixture;
    let began = clock::now();
    let hello = br#"{"v":1,"member":"m","name":"web2","seq":1,"kind":"hello","roles":"a,b","partitions":2}"#;
    reading.handle_role_event(began, 0, candidate::Event::Answered { asked: began, start: 0, end: 1 });
    reading.handle_role_event(began, 0, candidate::Event::of_hello(0, Some(hello)));
    assert!(told.try_recv().is_err(), "it may have gone");
    for offset in [1, 2] {
        reading.handle_role_event(began, 0, candidate::Event::of_hello(offset, Some(hello)));
    }
    let message = "web2 stands in this group for other roles (a, b), and for none of those that are followed (0 alone); follow the roles of \
                   the candidates";
    assert_eq!(told.try_recv(), Ok(Event::Warning { message: message.to_owned() }));
    assert!(told.try_recv().is_err(), "once");
}
