use std::mem;
use std::time::Duration;

use neli_proto::time::Time;

use super::*;
use crate::session::router::READER_RECOVERS;

const NOW: Time = Time::from_nanos(0);

/// A router, and the readings that it has begun.
struct Fixture(Router, BTreeSet<u32>);

impl Fixture {
    fn new(roles: u32) -> Self {
        Self(Router::new(0..roles), BTreeSet::new())
    }

    /// Of so many roles in a topic of so many partitions, all of which follow the live reading, number 1, from offset 10 on.
    fn reading(roles: u32, partitions: i32) -> Self {
        let mut fixture = Self::new(roles);
        for role in 0..roles {
            fixture.0.read_anew(NOW, role);
        }
        let wanted = ["start 1", "look for end 1"];
        assert_eq!(fixture.wanted(), wanted[..if roles > 1 { 2 } else { 1 }]);
        fixture.0.found(partitions);
        for partition in 0..partitions.min(roles.cast_signed()) {
            fixture.ends(1, partition, 10);
        }
        fixture.wanted();
        for role in 0..roles {
            fixture.0.read_from(NOW, role, 10);
            fixture.0.note_caught_up(role);
        }
        fixture.wanted();
        fixture
    }

    fn ends(&mut self, reading: u32, partition: i32, end: i64) {
        self.0.handle(NOW, reading, partition, &Event::Answered { asked: NOW, start: 0, end });
    }

    /// A record of this role.
    fn record(&mut self, reading: u32, partition: i32, offset: i64, role: u32) {
        let event = Event::Read { offset, record: None, written_ms: None };
        self.0.read(NOW, reading, partition, offset, Some(SessionEvent::Election { role, event }));
    }

    /// A record that is none of this process's.
    fn other(&mut self, reading: u32, partition: i32, offset: i64) {
        self.0.read(NOW, reading, partition, offset, None);
    }

    fn caught_up(&mut self, reading: u32, partition: i32, next: i64) {
        self.0.handle(NOW, reading, partition, &Event::ReachedEnd { next });
    }

    /// The readings that end and begin, the orders to the readers, and then the events.
    fn wanted(&mut self) -> Vec<String> {
        let before = mem::replace(&mut self.1, self.0.readings().collect());
        let ended = before.difference(&self.1).map(|reading| format!("close {reading}"));
        let begun = self.1.difference(&before).map(|reading| match self.0.only(*reading) {
            None => format!("start {reading}"),
            Some(only) => {
                let only: Vec<String> = only.iter().map(i32::to_string).collect();
                format!("start {reading} of {}", only.join(" "))
            }
        });
        let mut wanted: Vec<String> = ended.chain(begun).collect();
        wanted.extend(self.0.orders.drain(..).map(|(reading, order)| match order {
            Order::Ask => format!("look for end {reading}"),
            Order::ReadFrom { partition, offset } => format!("read {reading} {partition} from {offset}"),
        }));
        wanted.extend(self.0.events.drain(..).map(|event| in_words(&event)));
        wanted
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are shown as they are")]
fn in_words(event: &SessionEvent) -> String {
    match event {
        SessionEvent::Hello { offset, .. } => format!("hello {offset}"),
        SessionEvent::Election { role, event } => match event {
            Event::Passed { first, last } => format!("{role}: passed {first}-{last}"),
            Event::Read { offset, .. } | Event::ReadHello { offset, .. } => format!("{role}: read {offset}"),
            Event::ReachedEnd { next } => format!("{role}: caught up {next}"),
            Event::Answered { end, .. } => format!("{role}: ends {end}"),
            _ => format!("{role}: {event:?}"),
        },
        event => format!("{event:?}"),
    }
}

#[test]
fn nodes_that_start_together_share_one_reading() {
    let mut fixture = Fixture::new(3);
    for role in 0..3 {
        fixture.0.read_anew(NOW, role);
    }
    fixture.0.found(2);
    fixture.ends(1, 0, 4);
    fixture.ends(1, 1, 5);
    assert_eq!(fixture.wanted(), ["start 1", "look for end 1", "0: ends 4", "2: ends 4", "1: ends 5"]);
    for (role, from) in [(0, 0), (2, 0), (1, 1)] {
        fixture.0.read_from(NOW, role, from);
    }
    assert_eq!(fixture.wanted(), ["read 1 0 from 0", "read 1 1 from 1"]);
}

/// What others write costs nothing until it matters.
#[test]
fn other_elections_records_are_reported_before_the_next_own_record_and_before_acting() {
    let mut fixture = Fixture::reading(3, 1);
    for (offset, role) in [(10, 1), (11, 2), (12, 1)] {
        fixture.record(1, 0, offset, role);
    }
    fixture.other(1, 0, 13);
    let hello = Event::of_hello(14, Some(br#"{"v":1,"kind":"hello","member":"m"}"#));
    fixture.0.read(NOW, 1, 0, 14, Some(SessionEvent::Election { role: 0, event: hello }));
    let expected = [
        "1: read 10",
        "2: passed 10-10",
        "2: read 11",
        "1: passed 11-11",
        "1: read 12",
        "0: passed 10-13",
        "0: read 14",
    ];
    assert_eq!(fixture.wanted(), expected);
    assert_eq!(fixture.0.take_passed(0), None);
    assert_eq!(fixture.0.take_passed(1), Some(Event::Passed { first: 13, last: 14 }));
    assert_eq!(fixture.0.take_passed(1), None);
}

/// L4: a missing offset counts for each reader, and for each at once.
#[test]
fn a_missing_offset_is_shown_to_each() {
    let mut fixture = Fixture::reading(2, 1);
    fixture.other(1, 0, 10);
    fixture.record(1, 0, 12, 0);
    assert_eq!(fixture.wanted(), ["0: passed 10-10", "1: passed 10-10", "0: read 12", "1: passed 12-12"]);
    fixture.caught_up(1, 0, 15);
    assert_eq!(fixture.wanted(), ["0: caught up 15", "1: caught up 15"], "markers at the end");
    fixture.record(1, 0, 15, 1);
    assert_eq!(fixture.wanted(), ["1: read 15"]);
    assert_eq!(fixture.0.take_passed(0), Some(Event::Passed { first: 15, last: 15 }));
}

#[test]
fn a_node_behind_the_end_learns_when_it_is_reached() {
    let mut fixture = Fixture::new(1);
    fixture.0.read_anew(NOW, 0);
    fixture.ends(1, 0, 3);
    fixture.0.read_from(NOW, 0, 0);
    fixture.wanted();
    fixture.other(1, 0, 0);
    fixture.other(1, 0, 1);
    assert!(fixture.wanted().is_empty());
    fixture.other(1, 0, 2);
    assert_eq!(fixture.wanted(), ["0: passed 0-2"]);
    fixture.0.note_caught_up(0);
    fixture.other(1, 0, 3);
    assert!(fixture.wanted().is_empty());
}

/// R1 anew, or reading further back: the others notice nothing.
#[test]
fn a_node_that_reads_anew_has_its_own_reading_until_it_has_caught_up() {
    let mut fixture = Fixture::reading(3, 1);
    fixture.0.read_anew(NOW, 1);
    fixture.0.read_anew(NOW, 2);
    assert_eq!(fixture.wanted(), ["start 2 of 0", "look for end 2"], "both at once share it");
    fixture.record(1, 0, 10, 1);
    fixture.ends(2, 0, 11);
    assert_eq!(fixture.wanted(), ["1: ends 11", "2: ends 11"]);
    fixture.0.read_from(NOW, 1, 9);
    fixture.0.read_from(NOW, 2, 9);
    assert_eq!(fixture.wanted(), ["read 2 0 from 9"]);
    fixture.record(2, 0, 9, 1);
    fixture.record(1, 0, 11, 0);
    fixture.record(2, 0, 10, 1);
    let expected = ["1: read 9", "0: passed 10-10", "0: read 11", "1: read 10", "2: passed 9-10"];
    assert_eq!(fixture.wanted(), expected);
    fixture.record(2, 0, 11, 0);
    assert_eq!(fixture.wanted(), ["close 2", "1: passed 11-11", "2: passed 11-11"]);
    fixture.0.note_caught_up(1);
    fixture.0.note_caught_up(2);
    fixture.record(1, 0, 12, 2);
    assert_eq!(fixture.wanted(), ["2: read 12"], "from the live reading");
}

#[test]
fn reading_further_back_than_the_others_takes_its_own_reading() {
    let mut fixture = Fixture::new(2);
    fixture.0.read_anew(NOW, 0);
    fixture.0.read_anew(NOW, 1);
    fixture.0.found(1);
    fixture.ends(1, 0, 9);
    fixture.wanted();
    fixture.0.read_from(NOW, 0, 5);
    fixture.0.read_from(NOW, 1, 3);
    assert_eq!(fixture.wanted(), ["start 2 of 0", "read 1 0 from 5", "read 2 0 from 3"]);
}

/// A hello is the process's business; to each election it is a record of others.
#[test]
fn a_hello_of_any_candidate_is_reported_to_the_process() {
    let mut fixture = Fixture::reading(2, 1);
    fixture.0.read(NOW, 1, 0, 10, Some(SessionEvent::Hello { offset: 10, value: Box::from(*b"{}") }));
    assert_eq!(fixture.wanted(), ["hello 10"]);
    assert_eq!(fixture.0.take_passed(1), Some(Event::Passed { first: 10, last: 10 }));
}

/// No broker has answered for long: also the readings that have not come to anything get new clients, and go on as they were.
#[test]
fn each_reading_gets_a_new_client() {
    let mut fixture = Fixture::reading(2, 2);
    fixture.0.read_anew(NOW, 0);
    fixture.0.read_anew(NOW, 1);
    assert_eq!(fixture.wanted(), ["start 2 of 0", "start 3 of 1"]);
    fixture.0.renew_all(NOW);
    let starts = ["start 4", "start 5 of 0", "start 6 of 1", "read 4 0 from 10", "read 4 1 from 10"];
    assert_eq!(fixture.wanted(), [&["close 1", "close 2", "close 3"], &starts[..]].concat());
    fixture.ends(5, 0, 12);
    assert_eq!(fixture.wanted(), ["0: ends 12"]);
}

/// The elections find that the history was cut, each by itself. The log may be longer than the old one by then.
#[test]
fn a_partition_that_all_read_anew_after_a_cut_is_read_on_from_where_the_first_has_caught_up() {
    for end in [1, 20] {
        let mut fixture = Fixture::reading(4, 2);
        fixture.0.read_anew(NOW, 0);
        fixture.0.read_anew(NOW, 2);
        assert_eq!(fixture.wanted(), ["start 2 of 0", "look for end 2"]);
        fixture.ends(2, 0, end);
        fixture.0.read_from(NOW, 0, 0);
        fixture.0.read_from(NOW, 2, 0);
        fixture.wanted();
        // The client of the live reading waits at offset 10 of the old log.
        for asked in [NOW, NOW + Duration::from_secs(1)] {
            fixture.0.handle(asked, 1, 0, &Event::Answered { asked, start: 0, end });
        }
        assert_eq!(fixture.wanted(), [""; 0]);
        for offset in 0..end {
            fixture.record(2, 0, offset, 2);
        }
        fixture.caught_up(2, 0, end);
        let wanted = fixture.wanted();
        assert!(wanted.contains(&"close 2".to_owned()), "{wanted:?}");
        // A client that has read the old log may never reach the leaders of a new topic's partitions.
        assert_eq!(wanted.contains(&"read 3 0 from 1".to_owned()), end == 1, "{wanted:?}");
        fixture.record(if end == 1 { 3 } else { 1 }, 0, end, 0);
        assert!(fixture.wanted().contains(&format!("0: read {end}")));
    }
}

/// Such a role follows the reading still, and finds nothing any more.
#[test]
fn a_cut_is_found_beside_a_role_that_stands_no_longer() {
    let mut fixture = Fixture::reading(4, 2);
    fixture.0.read_anew(NOW, 0);
    fixture.ends(2, 0, 1);
    fixture.0.read_from(NOW, 0, 0);
    for asked in [0, 1000, 1200].map(|ms| NOW + Duration::from_millis(ms)) {
        fixture.0.handle(asked, 1, 0, &Event::Answered { asked, start: 0, end: 1 });
    }
    fixture.record(2, 0, 0, 0);
    fixture.wanted();
    fixture.caught_up(2, 0, 1);
    assert!(fixture.wanted().contains(&"read 3 0 from 1".to_owned()));
    fixture.record(3, 0, 1, 0);
    assert_eq!(fixture.wanted(), ["0: read 1"]);
    // An answer may be older than the last record, and what the earlier answers showed is over.
    for (seconds, end) in [(20, 1), (40, 2)] {
        let asked = NOW + Duration::from_secs(seconds);
        fixture.0.handle(asked, 3, 0, &Event::Answered { asked, start: 0, end });
        fixture.record(3, 0, end + 1, 0);
    }
    assert!(!fixture.wanted().iter().any(|wanted| wanted.contains("HistoryCut")));
}

/// It reads on, since its process hears hellos there.
#[test]
fn a_role_that_stands_no_longer_is_told_of_a_cut_that_the_answers_show() {
    let mut fixture = Fixture::reading(2, 2);
    let mut told = Vec::new();
    for asked in [0, 1000, 1200].map(|ms| NOW + Duration::from_millis(ms)) {
        fixture.0.handle(asked, 1, 0, &Event::Answered { asked, start: 0, end: 1 });
        told = fixture.wanted();
    }
    assert_eq!(told, ["0: ends 1", "0: HistoryCut"]);
    fixture.0.read_anew(NOW, 0);
    fixture.ends(2, 0, 1);
    fixture.0.read_from(NOW, 0, 0);
    fixture.0.read(NOW, 2, 0, 0, Some(SessionEvent::Hello { offset: 0, value: Box::default() }));
    assert!(fixture.wanted().contains(&"hello 0".to_owned()));
    fixture.caught_up(2, 0, 1);
    fixture.wanted();
    fixture.0.read(NOW, 3, 0, 1, Some(SessionEvent::Hello { offset: 1, value: Box::default() }));
    assert!(fixture.wanted().contains(&"hello 1".to_owned()));
}

/// The live reading goes on meanwhile, and its records may be on their way. If it began anew, it would hand them over twice, as if the history
/// had been cut.
#[test]
fn a_role_alone_in_its_partition_that_reads_anew_goes_on_with_the_live_reading() {
    let mut fixture = Fixture::reading(2, 2);
    fixture.0.read_anew(NOW, 0);
    assert_eq!(fixture.wanted(), ["start 2 of 0"]);
    fixture.ends(2, 0, 10);
    fixture.0.read_from(NOW, 0, 9);
    fixture.wanted();
    fixture.record(2, 0, 9, 0);
    fixture.caught_up(2, 0, 10);
    let wanted = fixture.wanted();
    assert!(!wanted.iter().any(|wanted| wanted.starts_with("read 1")), "{wanted:?}");
    assert!(wanted.contains(&"close 2".to_owned()), "{wanted:?}");
    fixture.record(1, 0, 10, 0);
    assert_eq!(fixture.wanted(), ["0: read 10"]);
}

#[test]
fn a_cut_partition_is_read_on_from_where_the_first_has_caught_up() {
    let mut fixture = Fixture::reading(4, 2);
    fixture.0.handle(NOW, 1, 0, &Event::HistoryCut);
    assert_eq!(fixture.wanted(), ["0: HistoryCut", "2: HistoryCut"]);
    fixture.record(1, 1, 10, 1);
    assert_eq!(fixture.wanted(), ["1: read 10"], "the other partition goes on");
    fixture.0.read_anew(NOW, 0);
    fixture.0.read_anew(NOW, 2);
    fixture.ends(2, 0, 1);
    fixture.0.read_from(NOW, 0, 0);
    fixture.0.read_from(NOW, 2, 0);
    fixture.wanted();
    fixture.record(2, 0, 0, 2);
    fixture.wanted();
    fixture.caught_up(2, 0, 1);
    let wanted = fixture.wanted();
    let replaced = ["close 1", "close 2", "start 3", "read 3 0 from 1", "read 3 1 from 11"];
    assert!(wanted.starts_with(&replaced.map(str::to_owned)), "{wanted:?}");
    fixture.record(3, 0, 1, 0);
    assert_eq!(fixture.wanted().last().unwrap(), "0: read 1");
    fixture.record(3, 1, 11, 1);
    assert_eq!(fixture.wanted(), ["1: read 11"]);
}

/// A topic that is made anew cuts each partition, and each replacement is a client that has to connect first.
#[test]
fn a_reading_of_cut_partitions_is_replaced_once() {
    let mut fixture = Fixture::reading(2, 2);
    for (partition, role) in [(0, 0), (1, 1)] {
        fixture.0.handle(NOW, 1, partition, &Event::HistoryCut);
        fixture.0.read_anew(NOW, role);
    }
    assert_eq!(fixture.wanted(), ["start 2 of 0", "start 3 of 1", "0: HistoryCut", "1: HistoryCut"]);
    for (reading, partition, role) in [(2, 0, 0), (3, 1, 1)] {
        fixture.ends(reading, partition, 0);
        fixture.0.read_from(NOW, role, 0);
    }
    fixture.wanted();
    for (reading, partition) in [(2, 0), (3, 1)] {
        fixture.caught_up(reading, partition, 0);
    }
    let wanted = fixture.wanted();
    let replaced = ["close 1", "close 2", "close 3", "start 4", "read 4 0 from 0", "read 4 1 from 0"];
    assert!(wanted.starts_with(&replaced.map(str::to_owned)), "{wanted:?}");
}

/// As before there were sessions: another client reads, in place of the one before.
#[test]
fn a_single_election_that_reads_anew_replaces_the_reading() {
    let mut fixture = Fixture::reading(1, 1);
    fixture.0.read_anew(NOW, 0);
    assert_eq!(fixture.wanted(), ["close 1", "start 2"]);
    fixture.record(1, 0, 10, 0);
    assert!(fixture.wanted().is_empty(), "what the one before has sent counts no more");
}

/// The answer to a question before a role came does not count for the role, and the next question would be 20 s away.
#[test]
fn a_role_that_comes_after_the_question_has_the_reading_ask_again() {
    let mut fixture = Fixture::reading(3, 1);
    fixture.0.read_anew(NOW, 0);
    assert_eq!(fixture.wanted(), ["start 2 of 0"]);
    fixture.0.read_anew(NOW, 1);
    assert_eq!(fixture.wanted(), ["look for end 2"]);
    fixture.ends(2, 0, 10);
    fixture.0.read_from(NOW, 0, 10);
    let wanted = ["close 2", "read 2 0 from 10", "look for end 1", "0: ends 10", "1: ends 10"];
    assert_eq!(fixture.wanted(), wanted, "it goes on with the live reading, which has to ask too");
}

#[test]
fn a_role_that_comes_after_the_answer_has_the_reading_ask_again() {
    let mut fixture = Fixture::new(2);
    fixture.0.read_anew(NOW, 0);
    fixture.0.found(1);
    fixture.ends(1, 0, 10);
    assert_eq!(fixture.wanted(), ["start 1", "0: ends 10"]);
    fixture.0.read_anew(NOW, 1);
    assert_eq!(fixture.wanted(), ["look for end 1"]);
    fixture.ends(1, 0, 11);
    assert_eq!(fixture.wanted(), ["0: ends 11", "1: ends 11"]);
}

#[test]
fn a_stuck_reading_is_replaced_and_the_others_notice_nothing() {
    let mut fixture = Fixture::reading(2, 1);
    fixture.ends(1, 0, 20);
    fixture.wanted();
    let later = NOW + READER_RECOVERS;
    fixture.0.read_anew(later, 1);
    assert_eq!(fixture.wanted(), ["close 1", "start 2", "start 3 of 0", "read 2 0 from 10"]);
    fixture.record(2, 0, 10, 0);
    assert_eq!(fixture.wanted(), ["0: read 10"]);
}

/// All roles of the partition notice it at once, and each replacement is a client that has to connect first.
#[test]
fn a_stuck_reading_is_replaced_once_for_all_that_read_anew() {
    let mut fixture = Fixture::reading(3, 1);
    fixture.ends(1, 0, 20);
    fixture.wanted();
    let later = NOW + READER_RECOVERS;
    for role in 0..3 {
        fixture.0.read_anew(later, role);
    }
    assert_eq!(fixture.wanted(), ["close 1", "start 2", "start 3 of 0", "read 2 0 from 10", "look for end 3"]);
}

/// Each extra reading is a client of its own, and hundreds of elections may lose their leases at once.
#[test]
fn of_many_that_read_anew_at_once_the_later_ones_share_the_next_reading() {
    let mut fixture = Fixture::reading(8, 8);
    for role in 0..7 {
        fixture.0.read_anew(NOW, role);
    }
    assert_eq!(fixture.wanted(), ["start 2 of 0", "start 3 of 1", "start 4 of 2", "start 5 of 3"]);
    fixture.0.look_for_end(6);
    fixture.ends(2, 0, 10);
    fixture.0.read_from(NOW, 0, 9);
    fixture.wanted();
    fixture.other(2, 0, 9);
    let wanted = ["close 2", "start 6 of 4 5 6", "0: passed 9-9"];
    assert_eq!(fixture.wanted(), wanted, "the first has come as far as the live one");
    for (role, partition) in [(4, 4), (5, 5), (6, 6)] {
        fixture.ends(6, partition, 10);
        fixture.0.read_from(NOW, role, 10);
    }
    let expected = [
        "close 6",
        "read 6 4 from 10",
        "read 6 5 from 10",
        "read 6 6 from 10",
        "4: ends 10",
        "5: ends 10",
        "6: ends 10",
    ];
    assert_eq!(fixture.wanted(), expected, "over when each of its partitions is");
    fixture.record(1, 6, 10, 6);
    assert_eq!(fixture.wanted(), ["6: read 10"], "from the live reading");
}

/// Those that go on may be of partitions without a leader.
#[test]
fn readings_that_come_to_nothing_hold_up_no_other_for_long() {
    let mut fixture = Fixture::reading(6, 6);
    for role in 0..5 {
        fixture.0.read_anew(NOW, role);
    }
    fixture.wanted();
    let goes_on = |fixture: &mut Fixture, seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        fixture.0.handle(now, 1, 5, &Event::ReachedEnd { next: 10 });
        fixture.wanted()
    };
    assert!(!goes_on(&mut fixture, 9).contains(&"start 6 of 4".to_owned()));
    assert!(goes_on(&mut fixture, 10).contains(&"start 6 of 4".to_owned()));
}

#[test]
fn a_waiting_reading_begins_at_its_offset_and_not_at_all_if_unwanted() {
    let mut fixture = Fixture::reading(6, 6);
    for role in 0..4 {
        fixture.0.read_anew(NOW, role);
    }
    // Further back than the live reading has been asked for.
    fixture.0.read_from(NOW, 4, 3);
    fixture.0.read_from(NOW, 5, 4);
    fixture.wanted();
    // It reads anew after all, and shares what waits.
    fixture.0.read_anew(NOW, 5);
    assert!(fixture.wanted().is_empty());
    fixture.ends(2, 0, 10);
    fixture.0.read_from(NOW, 0, 10);
    assert_eq!(fixture.wanted(), ["close 2", "start 6 of 4 5", "read 2 0 from 10", "read 6 4 from 3", "0: ends 10"]);
    fixture.0.stop();
    let closed = fixture.wanted();
    assert_eq!(closed, ["close 1", "close 3", "close 4", "close 5", "close 6"]);
}
