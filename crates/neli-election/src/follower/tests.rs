use neli_kafka::Properties;
use neli_proto::kafka::{LogAnswer, LogRange, LogsAnswer, TopicsAction};
use neli_proto::topic::TopicIdentity;

use super::*;

const WALL_MS: u64 = 1_769_860_800_000;
const CLAIM: &str = r#"{"v":1,"member":"m","name":"db1","seq":1,"kind":"claim","after":-1,"lease_ms":5000}"#;
const BEAT: &str = r#"{"v":1,"member":"m","name":"db1","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#;
const RELEASE: &str = r#"{"v":1,"member":"m","name":"db1","seq":3,"kind":"release","term":0,"seen":0}"#;
const RESIGN: &str = r#"{"v":1,"name":"ann","kind":"request","what":"resign","term":0}"#;
const UNKNOWN: Leadership = Leadership::Unknown { trouble: None };

/// The reading of a topic for the followers of some roles, and what they get.
struct Fixture {
    reading: Reading,
    followers: Vec<watch::Receiver<Result<Leadership, Error>>>,
    told: broadcast::Receiver<Event>,
    began: Time,
}

impl Fixture {
    fn of_roles(roles: u32) -> Self {
        let (warnings, told) = broadcast::channel(10);
        let (states, followers) = (0..roles).map(|_| watch::channel(Ok(UNKNOWN))).unzip();
        let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..roles, names: [].into() };
        let reading = Reading::new(elections, states, warnings, None);
        Self { reading, followers, told, began: clock::now() }
    }

    /// So many milliseconds after the beginning.
    fn at(&self, ms: u64) -> ReadAt {
        ReadAt { now: self.began + Duration::from_millis(ms), wall_ms: WALL_MS + ms }
    }

    fn handle(&mut self, ms: u64, event: TopicsEvent) -> Result<(), Error> {
        self.reading.handle(self.at(ms), event)
    }

    /// The topic with this id has these logs.
    fn answered(&mut self, ms: u64, id: i64, logs: &[LogAnswer]) {
        let logs = Ok((0..).zip(logs.iter().cloned()).collect());
        let answer = LogsAnswer { identity: TopicIdentity::Id { high: 0, low: id }, logs };
        let topics = BTreeMap::from([("t".into(), answer)]);
        self.handle(ms, TopicsEvent::Answered { asked: self.at(ms).now, topics }).unwrap();
    }

    /// Reads a record when it is appended, with the key of this role, or of a hello.
    fn read(&mut self, ms: u64, reading: u32, partition: i32, offset: i64, key: &str, value: &str) {
        self.read_late(ms, ms, reading, partition, offset, key, value);
    }

    #[expect(clippy::too_many_arguments, reason = "a record has so many")]
    fn read_late(&mut self, ms: u64, written: u64, reading: u32, partition: i32, offset: i64, key: &str, value: &str) {
        let key = format!("g/{key}").into_bytes().into();
        let (value, written_ms) = (Some(value.as_bytes().into()), Some(WALL_MS + written));
        let record = LogRecord { offset, key: Some(key), value, written_ms, is_brokers_time: true };
        self.handle(ms, TopicsEvent::Read { reading, topic: "t".into(), partition, record }).unwrap();
    }

    /// What is published of each role.
    fn shown(&mut self, ms: u64) -> Vec<Leadership> {
        self.reading.publish(self.at(ms));
        self.followers.iter().map(|follower| follower.borrow().clone().unwrap()).collect()
    }

    fn warnings(&mut self) -> Vec<String> {
        let messages = std::iter::from_fn(|| self.told.try_recv().ok());
        messages
            .map(|event| if let Event::Warning { message } = event { message } else { format!("{event:?}") })
            .collect()
    }
}

/// A log of which all is younger than five minutes.
const fn log(end: i64) -> LogAnswer {
    Ok(LogRange { start: 0, recent: 0, end })
}

fn troubled(leadership: &Leadership) -> &str {
    let Leadership::Unknown { trouble: Some(why) } = leadership else { panic!("{leadership:?}") };
    why
}

/// What is published of one role at `shown` after these records, each with when it was appended. They are read from 0 on, as they are
/// appended.
fn leadership(records: &[(u64, &str)], shown: u64) -> Leadership {
    let mut fixture = Fixture::of_roles(1);
    fixture.answered(0, 1, &[log(0)]);
    for (offset, (ms, value)) in (0..).zip(records) {
        fixture.read(*ms, 1, 0, offset, "0", value);
    }
    fixture.shown(shown).remove(0)
}

/// The leader was fenced before it.
#[test]
fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
    let after_a_heartbeat = |gap_ms: u64| leadership(&[(1_000, CLAIM), (1_000 + gap_ms, BEAT)], 1_000 + gap_ms);
    assert!(matches!(after_a_heartbeat(4_900), Leadership::Led(_)));
    assert_eq!(after_a_heartbeat(9_000), UNKNOWN);
}

/// An operator writes the request, and the leader may be dead.
#[test]
fn a_request_does_not_prolong_a_lead() {
    let records = [(100, CLAIM), (4_900, RESIGN)];
    assert!(matches!(leadership(&records, 5_099), Leadership::Silent { .. }));
    assert_eq!(leadership(&records, 5_100), UNKNOWN);
}

#[test]
fn a_leader_that_has_missed_three_heartbeats_is_silent() {
    let records = [(100, CLAIM)];
    assert!(matches!(leadership(&records, 3_299), Leadership::Led(_)));
    let Leadership::Silent { leader, since, claimable } = leadership(&records, 3_300) else { panic!("silent") };
    // R2: its lease, a hundredth of it and 10 ms.
    let silence = Duration::from_millis(5_060);
    assert_eq!((leader.name.as_deref(), claimable.duration_since(since)), (Some("db1"), silence));
    assert_eq!(leadership(&[(100, CLAIM), (200, RELEASE)], 200), Leadership::Vacant);
}

/// Its age is by the broker's timestamp; but this machine's clock may be ahead, until a record is read as it is written.
#[test]
fn a_leader_that_may_have_died_before_the_reading_is_not_shown_to_lead() {
    for (written, is_led) in [(59_000, true), (1_000, false)] {
        let mut fixture = Fixture::of_roles(1);
        fixture.answered(60_000, 1, &[log(1)]);
        fixture.read_late(60_000, written, 1, 0, 0, "0", CLAIM);
        assert_eq!(matches!(fixture.shown(60_000)[0], Leadership::Led(_)), is_led);
        fixture.read_late(60_500, written + 500, 1, 0, 1, "0", BEAT);
        assert!(matches!(fixture.shown(60_500)[0], Leadership::Led(_)), "it is alive");
    }
}

/// Otherwise only those learn of it who ask for the leadership at that time.
#[test]
fn an_outage_is_a_warning_once_and_so_is_its_end() {
    let mut fixture = Fixture::of_roles(1);
    for error in ["no broker answers", "refused"] {
        fixture.handle(0, TopicsEvent::Down(error.to_owned())).unwrap();
    }
    assert_eq!(fixture.warnings(), ["it is unknown who leads: no broker answers"]);
    assert_eq!(troubled(&fixture.shown(0)[0]), "refused");
    for _ in 0..2 {
        fixture.answered(7_000, 1, &[log(0)]);
    }
    assert_eq!(fixture.warnings(), ["the journal is read again, after 7s"]);
}

/// The topic was made again while no broker answered, and its log is longer than that of the old one.
#[test]
fn in_a_topic_that_was_made_anew_nothing_of_before_counts() {
    let mut fixture = Fixture::of_roles(2);
    fixture.answered(0, 1, &[log(2), log(1)]);
    for (offset, value) in (0..).zip([CLAIM, RELEASE]) {
        fixture.read(0, 1, 0, offset, "0", value);
    }
    fixture.read(0, 1, 1, 0, "1", CLAIM);
    assert!(matches!(fixture.shown(0).as_slice(), [Leadership::Vacant, Leadership::Led(_)]));
    fixture.handle(100, TopicsEvent::Down("refused".to_owned())).unwrap();
    fixture.answered(200, 2, &[log(9), log(9)]);
    assert_eq!(fixture.shown(200), [UNKNOWN, UNKNOWN], "until it is read");
}

/// The leader of a partition may be out of reach from here alone, while the others answer.
#[test]
fn a_role_of_whose_partition_kafka_tells_nothing_is_not_vacant() {
    let mut fixture = Fixture::of_roles(2);
    fixture.answered(0, 1, &[log(2), log(0)]);
    for (offset, value) in (0..).zip([CLAIM, RELEASE]) {
        fixture.read(0, 1, 0, offset, "0", value);
    }
    assert_eq!(fixture.shown(0), [Leadership::Vacant, Leadership::Vacant]);
    fixture.answered(100, 1, &[Err("it has no leader".into()), log(0)]);
    assert_eq!(troubled(&fixture.shown(100)[0]), "it has no leader");
    assert_eq!(fixture.warnings(), ["it is unknown who leads: it has no leader"]);
    fixture.answered(200, 1, &[log(2), log(0)]);
    assert_eq!(fixture.shown(200)[0], Leadership::Vacant);
}

/// Otherwise a program that only asks who leads would log nothing.
#[test]
fn the_end_of_a_follower_is_its_last_warning() {
    let mut fixture = Fixture::of_roles(1);
    let (events, received) = mpsc::channel(1);
    events.try_send(TopicsEvent::Refused("a right is missing".to_owned())).unwrap();
    fixture.reading.run(&reader(), Waiter::new().unwrap(), received);
    let message = "it is unknown who leads: this follower has ended: a right is missing".to_owned();
    assert_eq!(*fixture.followers[0].borrow_and_update(), Err(Error::Refused("a right is missing".to_owned())));
    assert_eq!(fixture.told.try_recv(), Ok(Event::Warning { message }));
    assert!(fixture.told.try_recv().is_err());
}

/// Of a topic that nobody reads here.
fn reader() -> TopicsReader {
    TopicsReader::of_one(&Access::at("localhost:9", &Properties::default()), "t", mpsc::channel(1).0).unwrap()
}

#[test]
fn a_missing_right_ends_the_follower() {
    let mut fixture = Fixture::of_roles(1);
    let answer = LogsAnswer { identity: TopicIdentity::Unnamed, logs: Err("no right to READ it".into()) };
    let (asked, topics) = (fixture.began, BTreeMap::from([("t".into(), answer)]));
    let refused = fixture.handle(0, TopicsEvent::Answered { asked, topics });
    assert_eq!(refused, Err(Error::Refused("no right to READ it".to_owned())));
}

#[tokio::test(flavor = "current_thread")]
async fn the_thread_ends_once_no_role_is_followed_any_more() {
    let Fixture { reading, mut followers, .. } = Fixture::of_roles(2);
    let (events, received) = mpsc::channel(1);
    let thread = thread::spawn(move || reading.run(&reader(), Waiter::new().unwrap(), received));
    let mut last = followers[1].clone();
    followers.clear();
    events.send(TopicsEvent::Down("refused".to_owned())).await.unwrap();
    last.changed().await.unwrap();
    drop(last);
    thread.join().unwrap();
}

/// Each of thousands of leaders writes a heartbeat a second, and a look at all roles for each heartbeat would take more than a processor.
#[test]
fn a_record_of_one_role_costs_no_look_at_the_others() {
    let mut fixture = Fixture::of_roles(3);
    fixture.answered(0, 1, &[log(0)]);
    fixture.shown(0);
    fixture.read(0, 1, 0, 0, "1", CLAIM);
    assert_eq!(fixture.reading.touched, BTreeSet::from([1]));
    let after = |fixture: &mut Fixture, ms| fixture.reading.publish(fixture.at(ms)).map(|due| due.since(fixture.began));
    let (overdue, lease_end) = (Duration::from_millis(3_200), Duration::from_secs(5));
    assert_eq!(after(&mut fixture, 0), Some(overdue));
    assert!(fixture.reading.touched.is_empty());
    assert!(matches!(fixture.shown(0)[1], Leadership::Led(_)));
    assert_eq!(after(&mut fixture, 3_200), Some(lease_end));
    assert_eq!(after(&mut fixture, 5_000), None);
    assert_eq!(fixture.shown(5_000), [Leadership::Vacant, UNKNOWN, Leadership::Vacant]);
    fixture.handle(5_000, TopicsEvent::Down("no broker answers".to_owned())).unwrap();
    for leadership in fixture.shown(5_000) {
        assert_eq!(troubled(&leadership), "no broker answers");
    }
}

/// Candidates count the partitions when they start, and more may have been added since.
#[test]
fn a_role_is_followed_in_whichever_partition_its_records_are() {
    let mut fixture = Fixture::of_roles(2);
    fixture.answered(0, 1, &[log(1), log(0)]);
    fixture.read(0, 1, 0, 0, "1", CLAIM);
    assert!(matches!(fixture.shown(0).as_slice(), [Leadership::Vacant, Leadership::Led(_)]));
    fixture.read(10, 1, 0, 1, "1", RELEASE);
    fixture.read(20, 1, 1, 0, "1", &CLAIM.replace("db1", "db2"));
    let Leadership::Led(leader) = fixture.shown(20).remove(1) else { panic!("led") };
    assert_eq!(leader.name.as_deref(), Some("db2"));
}

/// Other elections share the topic, and have written more than a reading begins with since this one's leader left.
#[test]
fn a_release_far_back_in_the_log_is_found() {
    const END: i64 = FIRST_SPAN + 2;
    for has_record in [true, false] {
        let mut fixture = Fixture::of_roles(1);
        fixture.answered(0, 1, &[Ok(LogRange { start: 0, recent: END, end: END })]);
        for offset in 2..END {
            fixture.read(0, 1, 0, offset, "other", "{}");
        }
        assert_eq!(fixture.shown(0), [UNKNOWN], "it may be led by earlier records");
        let actions: Vec<TopicsAction> = std::iter::from_fn(|| fixture.reading.topics.poll_action()).collect();
        let is_of_past = matches!(actions.last(), Some(TopicsAction::ReadSince { since_ms: 0, reading: 2, .. }));
        assert!(is_of_past, "{actions:?}");
        fixture.handle(0, TopicsEvent::PastBegins { reading: 2, from: BTreeMap::from([(0, 0)]) }).unwrap();
        for (offset, value) in (0..END).zip([CLAIM, RELEASE].into_iter().chain(std::iter::repeat("{}"))) {
            let key = if offset < 2 && has_record { "0" } else { "other" };
            fixture.read(0, 2, 0, offset, key, value);
        }
        assert_eq!(fixture.shown(0), [Leadership::Vacant]);
    }
}

/// What can't be decoded may be a claim.
#[test]
fn a_batch_that_can_not_be_decoded_hides_each_role_until_its_next_record() {
    let mut fixture = Fixture::of_roles(2);
    fixture.answered(0, 1, &[log(0)]);
    fixture.read(0, 1, 0, 0, "1", CLAIM);
    assert!(matches!(fixture.shown(0).as_slice(), [Leadership::Vacant, Leadership::Led(_)]));
    let warning = "some records of a topic can't be read: a bad checksum";
    for hides_records in [false, true] {
        fixture.handle(10, TopicsEvent::Warning { warning: warning.to_owned(), hides_records }).unwrap();
        let shown = fixture.shown(10);
        assert!(matches!(shown[1], Leadership::Led(_)), "it is not overdue");
        assert_eq!(
            shown[0],
            if hides_records { Leadership::Unknown { trouble: Some(warning.into()) } } else { Leadership::Vacant }
        );
    }
    fixture.read(20, 1, 0, 2, "0", &CLAIM.replace("-1", "1"));
    assert!(matches!(fixture.shown(20)[0], Leadership::Led(_)));
    assert_eq!(fixture.warnings(), [warning, warning]);
}

#[test]
fn a_topic_that_is_gone_is_why_the_leader_is_unknown() {
    let mut fixture = Fixture::of_roles(1);
    fixture.answered(0, 1, &[log(0)]);
    assert_eq!(fixture.shown(0), [Leadership::Vacant]);
    for ms in [1_000, 2_000] {
        let gone = TopicsEvent::Answered { asked: fixture.at(ms).now, topics: BTreeMap::new() };
        fixture.handle(ms, gone).unwrap();
    }
    assert!(troubled(&fixture.shown(2_000)[0]).contains("does not exist yet"));
    fixture.answered(3_000, 2, &[log(0)]);
    assert_eq!(fixture.shown(3_000), [Leadership::Vacant]);
}

#[test]
fn a_warning_is_passed_on() {
    let mut fixture = Fixture::of_roles(1);
    fixture.handle(0, TopicsEvent::Warning { warning: "odd\nname".to_owned(), hides_records: false }).unwrap();
    assert_eq!(fixture.warnings(), ["odd\\nname"], "in one line");
}

/// The one role is vacant for ever: those candidates have elections of their own.
#[test]
fn a_follower_of_one_role_is_warned_of_candidates_with_names_of_roles() {
    let mut fixture = Fixture::of_roles(1);
    let hello = r#"{"v":1,"member":"m","name":"web2","seq":1,"kind":"hello","roles":"a,b","partitions":2}"#;
    fixture.answered(0, 1, &[log(1)]);
    fixture.read(0, 1, 0, 0, "a/hello", hello);
    assert_eq!(fixture.warnings(), [""; 0], "it may have gone");
    for offset in [1, 2] {
        fixture.read(0, 1, 0, offset, "a/hello", hello);
    }
    let message = "web2 stands in this group for other roles (a, b), and for none of those that are followed (0 alone); follow the roles of \
                   the candidates";
    assert_eq!(fixture.warnings(), [message], "once");
    let mut fixture = Fixture::of_roles(2);
    fixture.answered(0, 1, &[log(0)]);
    for roles in ["4", "2"] {
        fixture.read(0, 1, 0, 0, "0/hello", &hello.replace("a,b", roles));
    }
    assert_eq!(fixture.warnings(), [""; 0], "they have some in common");
}
