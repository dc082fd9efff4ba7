use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;

const START: Time = Time::from_nanos(1_000_000_000_000);
const WALL_MS: u64 = 1_769_860_800_000;
const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":5000}"#;

fn at(seconds: u64) -> ReadAt {
    ReadAt { now: START + Duration::from_secs(seconds), wall_ms: WALL_MS + seconds * 1_000 }
}

/// A topic with this id and the ends of its logs, which begin at 0.
fn logs(id: i64, ends: &[Offset]) -> LogsAnswer {
    let logs = (0..)
        .zip(ends)
        .map(|(partition, end)| (partition, Ok(LogRange { start: 0, recent: *end, end: *end })))
        .collect();
    LogsAnswer { identity: TopicIdentity::Id { high: 0, low: id }, logs: Ok(logs) }
}

struct World {
    topics: Topics,
    seconds: u64,
    /// Where each reading of partition 0 is. What it has not been told of are records without a key.
    next: BTreeMap<u32, Offset>,
}

impl World {
    fn new() -> Self {
        Self { topics: Topics::new(100, 100), seconds: 0, next: BTreeMap::new() }
    }

    /// After the last 100 records it reads the last day.
    fn with_past() -> Self {
        Self { topics: Topics::new(100, 100).with_past(Duration::from_secs(86_400)), ..Self::new() }
    }

    /// The terms of each election of a topic, with the seconds at which they began.
    fn terms(&self, topic: &str) -> Vec<String> {
        let seconds = |ms: u64| (ms.cast_signed() - WALL_MS.cast_signed()) / 1_000;
        let terms = |found: &Election| {
            let terms = found.terms().iter();
            let terms = terms.map(|term| format!(" {} at {:?}", term.term, term.from_ms.map(seconds)));
            format!("{}:{}", found.place().group, terms.collect::<String>())
        };
        self.topics.topic(topic).into_iter().flat_map(|read| read.topic().elections()).map(terms).collect()
    }

    /// An answer five seconds after the last one. Returns the actions.
    fn answer(&mut self, answers: &[(&str, LogsAnswer)]) -> Vec<String> {
        self.seconds += 5;
        let answers = answers.iter().map(|(name, answer)| ((*name).into(), answer.clone())).collect();
        self.topics.answered(at(self.seconds), at(self.seconds).now, answers);
        self.actions()
    }

    fn actions(&mut self) -> Vec<String> {
        let next = &mut self.next;
        let shown = |action| match action {
            TopicsAction::Ask => "ask".to_string(),
            TopicsAction::ReadFrom { topic, partition, offset, reading } => {
                if partition == 0 {
                    next.insert(reading, offset);
                }
                format!("{reading}: read {topic} [{partition}] from {offset}")
            }
            TopicsAction::ReadSince { topic, since_ms, before, reading } => {
                format!(
                    "{reading}: read {topic} since {} before {before:?}",
                    since_ms.cast_signed() - WALL_MS.cast_signed()
                )
            }
            TopicsAction::Stop { topic } => format!("stop {topic}"),
            TopicsAction::StopPast => "stop the past".to_string(),
        };
        core::iter::from_fn(|| self.topics.poll_action()).map(shown).collect()
    }

    /// Whether the offset of a topic's past is where it begins to be read.
    fn past_begins(&mut self, reading: u32, offset: Offset) -> Vec<String> {
        self.next.insert(reading, offset);
        self.topics.past_begins(at(self.seconds), reading, &BTreeMap::from([(0, offset)]));
        self.actions()
    }

    fn read(&mut self, reading: u32, topic: &str, offset: Offset, key: &str, value: &str) -> bool {
        let (key, value) = (Some(Box::from(key.as_bytes())), Some(Box::from(value.as_bytes())));
        let written_ms = Some(at(self.seconds).wall_ms);
        let next = self.next.insert(reading, offset + 1).unwrap_or(offset);
        for offset in next..offset {
            let other = LogRecord { offset, key: None, value: None, written_ms, is_brokers_time: true };
            self.topics.read(at(self.seconds), (reading, topic), 0, &other);
        }
        let record = LogRecord { offset, key, value, written_ms, is_brokers_time: true };
        self.topics.read(at(self.seconds), (reading, topic), 0, &record).is_some()
    }

    /// Each topic, whether it is read to its end, and its elections with their leaders.
    fn shown(&self) -> Vec<String> {
        let leader = |found: &Election| {
            let leadership = found.observer().leadership(at(self.seconds));
            let leader = leadership.leader().filter(|_| leadership.is_led()).map_or("-", |leader| leader.shown());
            format!(" {}/{}={leader}", found.place().group, found.place().role)
        };
        let elections = |read: &ReadTopic| read.topic().elections().map(leader).collect::<String>();
        let topic = |(name, read): (&str, &ReadTopic)| {
            let trouble = read.trouble(Some(0)).map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{name}{}{trouble}", if read.is_live() { elections(read) } else { " reading".to_string() })
        };
        self.topics.topics().map(topic).collect()
    }
}

/// A command with a time limit must not take what is written on for progress.
#[test]
fn a_partition_is_read_at_the_end_that_its_log_had_whatever_the_others_are() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[2, 1]))]);
    let is_read = |world: &World| {
        let read = world.topics.topic("a.neli").expect("it is read");
        [0, 1, 2].map(|partition| read.is_read(partition))
    };
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    assert_eq!(is_read(&world), [false; 3]);
    world.read(1, "a.neli", 1, "g/0", CLAIM);
    assert_eq!(is_read(&world), [true, false, false]);
    assert_eq!(world.shown(), ["a.neli reading"]);
}

#[test]
fn a_topic_is_read_from_shortly_before_its_end_and_then_live() {
    let mut world = World::new();
    assert!(!world.topics.is_complete(), "it is not known which topics there are");
    assert_eq!(world.answer(&[("a.neli", logs(1, &[101]))]), ["1: read a.neli [0] from 1"]);
    assert_eq!(world.shown(), ["a.neli reading"]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"m","seq":2,"term":0,"seen":99,"lease_ms":5000}"#;
    assert!(world.read(1, "a.neli", 100, "g/0", beat));
    assert!(world.topics.is_complete());
    assert_eq!(world.shown(), ["a.neli g/0=m"]);
    assert_eq!(world.answer(&[("a.neli", logs(1, &[101]))]), [""; 0], "it is read on");
    assert_eq!(world.shown(), ["a.neli g/0=-"], "its lease of 5 s is over");
}

#[test]
fn topics_appear_and_vanish() {
    let mut world = World::new();
    assert_eq!(world.answer(&[]), [""; 0]);
    assert!(world.topics.is_complete(), "there is none");
    world.answer(&[("a.neli", logs(1, &[0]))]);
    assert_eq!(world.answer(&[("a.neli", logs(1, &[0])), ("b.neli", logs(2, &[0]))]), ["2: read b.neli [0] from 0"]);
    assert_eq!(world.shown(), ["a.neli", "b.neli"]);
    assert_eq!(world.answer(&[("b.neli", logs(2, &[0]))]), [""; 0], "one broker may not know it yet");
    world.topics.ask_about_silences(at(world.seconds));
    assert_eq!(world.actions(), ["ask"]);
    assert_eq!(world.answer(&[("a.neli", logs(1, &[0])), ("b.neli", logs(2, &[0]))]), [""; 0]);
    world.answer(&[("b.neli", logs(2, &[0]))]);
    assert_eq!(world.answer(&[("b.neli", logs(2, &[0]))]), ["stop a.neli"]);
    assert_eq!(world.shown(), ["b.neli"]);
}

#[test]
fn a_topic_that_was_made_anew_is_read_anew_and_its_old_records_are_dropped() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0]))]);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    assert_eq!(world.shown(), ["a.neli g/0=m"]);
    // It has more records than were read of the earlier one, so the offsets alone would not show it.
    assert_eq!(world.answer(&[("a.neli", logs(2, &[2]))]), ["stop a.neli", "2: read a.neli [0] from 0"]);
    assert!(!world.read(1, "a.neli", 1, "g/0", CLAIM), "of the earlier reading");
    for (offset, key) in [(0, "h/0"), (1, "i/0")] {
        world.read(2, "a.neli", offset, key, &CLAIM.replace("-1", &(offset - 1).to_string()));
    }
    assert_eq!(world.shown(), ["a.neli h/0=m i/0=m"]);
}

#[test]
fn without_ids_a_log_that_is_shorter_than_what_was_read_is_read_anew() {
    let mut world = World::new();
    let unnamed = |end| LogsAnswer { identity: TopicIdentity::Unnamed, ..logs(1, &[end]) };
    world.answer(&[("a.neli", unnamed(0))]);
    for offset in 0..5 {
        world.read(1, "a.neli", offset, "g/0", CLAIM);
    }
    assert_eq!(world.answer(&[("a.neli", unnamed(1))]), [""; 0], "a new leader may not know all of it yet");
    assert_eq!(world.answer(&[("a.neli", unnamed(1))]), ["stop a.neli", "2: read a.neli [0] from 0"]);
    assert_eq!(world.shown(), ["a.neli reading"]);
}

#[test]
fn a_topic_that_may_not_be_read_hides_no_other_and_is_read_once_it_may_be() {
    let mut world = World::new();
    let forbidden = LogsAnswer { logs: Err("no right to READ it".into()), ..logs(1, &[]) };
    world.answer(&[("a.neli", forbidden.clone()), ("b.neli", logs(2, &[0]))]);
    assert!(world.topics.is_complete());
    assert_eq!(world.shown(), ["a.neli (no right to READ it)", "b.neli"]);
    assert_eq!(
        world.answer(&[("a.neli", logs(1, &[0])), ("b.neli", logs(2, &[0]))]),
        ["stop a.neli", "3: read a.neli [0] from 0"]
    );
    assert_eq!(world.shown(), ["a.neli", "b.neli"]);
    let forbidden = [("a.neli", forbidden), ("b.neli", logs(2, &[0]))];
    assert_eq!(world.answer(&forbidden), ["stop a.neli"]);
    assert_eq!(world.answer(&forbidden), [""; 0], "said once");
    assert_eq!(world.shown(), ["a.neli (no right to READ it)", "b.neli"]);
}

#[test]
fn a_right_that_is_lost_while_the_topic_is_read_keeps_nothing_incomplete() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[9])), ("b.neli", logs(2, &[0]))]);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    assert!(!world.topics.is_complete());
    let forbidden = LogsAnswer { logs: Err("no right to READ it".into()), ..logs(1, &[]) };
    let answer = [("a.neli", forbidden), ("b.neli", logs(2, &[0]))];
    assert_eq!(world.answer(&answer), ["stop a.neli"]);
    assert_eq!((world.topics.is_complete(), world.answer(&answer)), (true, Vec::new()));
    assert_eq!(world.shown(), ["a.neli (no right to READ it)", "b.neli"]);
}

#[test]
fn a_partition_without_a_leader_hides_no_other_partition() {
    let mut world = World::new();
    let mut half = logs(1, &[0, 0]);
    half.logs.as_mut().unwrap().insert(0, Err("no leader".into()));
    assert_eq!(world.answer(&[("a.neli", half.clone())]), ["1: read a.neli [1] from 0"]);
    assert_eq!(world.shown(), ["a.neli (no leader)"]);
    let whole = logs(1, &[0, 0]);
    let anew = ["stop a.neli", "2: read a.neli [0] from 0", "2: read a.neli [1] from 0"];
    assert_eq!(
        world.answer(&[("a.neli", whole)]),
        anew,
        "a hello in one partition may be about an election in another"
    );
    assert_eq!(world.answer(&[("a.neli", half)]), [""; 0], "it loses its leader later");
    assert_eq!(world.shown(), ["a.neli (no leader)"]);
}

#[test]
fn a_partition_that_loses_its_leader_while_it_is_read_keeps_nothing_incomplete() {
    let mut world = World::new();
    let whole = [("a.neli", logs(1, &[9, 0]))];
    let mut half = whole.clone();
    half[0].1.logs.as_mut().unwrap().insert(0, Err("no leader".into()));
    world.answer(&whole);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    assert_eq!(world.answer(&half), [""; 0], "the rest may be on its way");
    world.read(1, "a.neli", 1, "g/0", "");
    assert_eq!(world.answer(&half), [""; 0], "it goes on");
    assert_eq!(world.answer(&half), ["stop a.neli", "2: read a.neli [1] from 0"]);
    assert_eq!((world.topics.is_complete(), world.shown()), (true, vec!["a.neli (no leader)".to_string()]));
    assert_eq!(world.answer(&half), [""; 0], "once");
    let anew = ["stop a.neli", "3: read a.neli [0] from 0", "3: read a.neli [1] from 0"];
    assert_eq!(world.answer(&whole), anew, "it has a leader again");
    world.read(3, "a.neli", 0, "g/0", CLAIM);
    assert_eq!(
        (world.answer(&half), world.answer(&whole)),
        (Vec::new(), Vec::new()),
        "a leader that is back has told of no more"
    );
    world.read(3, "a.neli", 8, "g/0", "");
    assert!(world.topics.is_complete());
    assert_eq!((world.answer(&half), world.answer(&half)), (Vec::new(), Vec::new()), "what was read is kept");
}

#[test]
fn kafka_away_for_an_hour_loses_nothing() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0]))]);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    world.topics.no_answer(at(6).now, "refused");
    world.topics.no_answer(at(3_600).now, "still refused");
    assert_eq!(world.topics.outage(), Some((at(6).now, "still refused")));
    world.seconds = 3_600;
    let mut elections = world.topics.topics_mut().flat_map(|(_, topic)| topic.elections_mut());
    assert!(elections.all(|of| of.untold_silence(at(3_600)).is_none()), "nothing is known of a silence meanwhile");
    drop(elections);
    assert_eq!(world.answer(&[("a.neli", logs(1, &[1]))]), [""; 0]);
    assert_eq!((world.topics.outage(), world.shown()), (None, ["a.neli g/0=-".to_string()].into()));
    world.read(1, "a.neli", 1, "g/0", &CLAIM.replace("-1", "0"));
    assert_eq!(world.shown(), ["a.neli g/0=m"]);
}

/// A leader with a lease of 5 s and Kafka fall silent at once, which is noticed of Kafka after the lease.
#[test]
fn a_silence_is_known_only_up_to_the_moment_at_which_kafka_answered_last() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0, 0]))]);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    let state = |world: &World, seconds| {
        let read = world.topics.topic("a.neli").expect("it is read");
        let found = read.topic().elections().next().expect("an election");
        let current = world.topics.leadership(at(seconds), read, found);
        let is = [current.is_led(), current.is_vacant(), current.is_unknown()];
        ["led", "silent", "unknown"]
            .into_iter()
            .zip(is)
            .find_map(|(state, is)| is.then_some(state))
            .unwrap_or("overdue")
    };
    // Also before the question is asked and answered: its lease is over.
    assert_eq!((state(&world, 6), state(&world, 9), state(&world, 11)), ("led", "led", "unknown"));
    let age = |world: &World, seconds| {
        let read = world.topics.topic("a.neli").expect("it is read");
        let found = read.topic().elections().next().expect("an election");
        let current = world.topics.leadership(at(seconds), read, found);
        let (Leadership::Led { age, left, .. } | Leadership::Overdue { age, left, .. }) = current else {
            panic!("{current:?}")
        };
        (age.as_secs(), left.as_secs())
    };
    assert_eq!((age(&world, 6), age(&world, 9)), ((1, 4), (4, 1)));
    let asks = |world: &mut World, seconds| {
        world.topics.ask_about_silences(at(seconds));
        world.actions()
    };
    assert_eq!((asks(&mut world, 6), asks(&mut world, 11)), (Vec::new(), ["ask".to_string()].into()));
    world.answer(&[("a.neli", logs(1, &[1, 0]))]);
    assert_eq!((state(&world, 10), state(&world, 11)), ("overdue", "overdue"));
    assert_eq!((age(&world, 10), age(&world, 11)), ((5, 0), (6, 0)), "it goes on");
    let told = |world: &mut World, seconds| {
        let mut elections = world.topics.topics_mut().flat_map(|(_, topic)| topic.elections_mut());
        elections.find_map(|election| election.untold_silence(at(seconds)).map(Leadership::is_vacant))
    };
    assert_eq!((told(&mut world, 11), told(&mut world, 12)), (Some(false), None), "that its lease is over is unknown");
    let mut without = logs(1, &[0, 0]);
    without.logs.as_mut().unwrap().insert(0, Err("no answer".into()));
    world.answer(&[("a.neli", without)]);
    assert_eq!(
        (state(&world, 15), told(&mut world, 15)),
        ("unknown", None),
        "another broker's answer says nothing of it"
    );
    world.topics.no_answer(at(16).now, "refused");
    assert_eq!((state(&world, 16), told(&mut world, 16)), ("unknown", None));
    assert_eq!(asks(&mut world, 16), [""; 0], "it is asked again and again");
    // There is a record that was not read yet.
    world.answer(&[("a.neli", logs(1, &[2, 0]))]);
    assert_eq!((state(&world, 20), told(&mut world, 20)), ("overdue", None));
    world.read(1, "a.neli", 1, "other/0", "");
    assert_eq!((state(&world, 20), told(&mut world, 20)), ("silent", Some(true)));
    assert_eq!(asks(&mut world, 30), [""; 0], "it was silent already");
}

#[test]
fn garbage_and_a_marker_at_the_end_of_a_log_delay_nothing() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[4]))]);
    for (offset, key) in [(0, "g/0"), (1, "no key of an election"), (2, "g/0/hello")] {
        world.read(1, "a.neli", offset, key, "\u{0}garbage");
    }
    // No record is handed over for the offset 3.
    assert_eq!(world.shown(), ["a.neli reading"]);
    let log = [("a.neli", logs(1, &[4]))];
    assert_eq!(world.answer(&log), [""; 0]);
    assert_eq!(world.answer(&log), ["stop a.neli", "2: read a.neli [0] from 0"], "the client may have lost a fetch");
    for (offset, key) in [(0, "g/0"), (1, "no key of an election"), (2, "g/0/hello")] {
        world.read(2, "a.neli", offset, key, "\u{0}garbage");
    }
    world.answer(&log);
    assert_eq!(world.answer(&log), [""; 0], "nothing more comes");
    assert_eq!(world.shown(), ["a.neli g/0=-"]);
}

/// Also one that was read to its end once.
#[test]
fn a_reading_that_stands_still_is_begun_anew() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0]))]);
    assert_eq!(world.answer(&[("a.neli", logs(1, &[2]))]), [""; 0], "the records may be on their way");
    assert_eq!(world.answer(&[("a.neli", logs(1, &[2]))]), ["stop a.neli", "2: read a.neli [0] from 0"]);
    assert!(world.read(2, "a.neli", 0, "g/0", CLAIM));
    assert_eq!(world.answer(&[("a.neli", logs(1, &[3]))]), [""; 0]);
    assert!(world.read(2, "a.neli", 1, "h/0", &CLAIM.replace("-1", "0")));
    assert_eq!(world.shown(), ["a.neli g/0=- h/0=m"], "the first one's lease is over");
}

/// A hello of a process with many roles, which is in partition 0, is about elections in all partitions.
#[test]
fn roles_are_found_by_hellos_that_come_later() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0, 0]))]);
    let hello = r#"{"v":1,"kind":"hello","member":"p","roles":"x,y","partitions":2,"joined":0}"#;
    world.read(1, "a.neli", 0, "g/x/hello", hello);
    assert_eq!(world.shown(), ["a.neli g/x=- g/y=-"]);
    let standbys = |world: &World| -> Vec<usize> {
        let elections = world.topics.topics().flat_map(|(_, read)| read.topic().elections());
        elections.map(|found| found.observer().standbys(at(world.seconds)).len()).collect()
    };
    assert_eq!(standbys(&world), [1, 1]);
    // A role of an earlier list has its first record after the hello.
    world.read(1, "a.neli", 1, "g/z", CLAIM);
    assert_eq!(world.shown(), ["a.neli g/x=- g/y=- g/z=m"]);
    assert_eq!(standbys(&world), [1, 1, 0]);
}

#[test]
fn an_election_is_dead_a_week_after_its_last_record() {
    let mut world = World::new();
    world.answer(&[("a.neli", logs(1, &[0]))]);
    world.read(1, "a.neli", 0, "g/0", CLAIM);
    let dead = |seconds| {
        let elections = world.topics.topics().flat_map(|(_, read)| read.topic().elections());
        elections.map(|found| found.observer().is_dead(at(seconds))).collect::<Vec<bool>>()
    };
    assert_eq!(dead(5 + 7 * 86_400), [false]);
    assert_eq!(dead(6 + 7 * 86_400), [true]);
}

fn claim(member: &str, after: Offset) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"{member}","name":"{member}","seq":1,"after":{after},"lease_ms":5000}}"#)
}

/// A log of 200 records, of which the last 100 are read first: `g` was claimed before, and is led; `h` was released before.
fn read_the_present(world: &mut World) {
    assert_eq!(world.answer(&[("a.neli", logs(1, &[200]))]), ["1: read a.neli [0] from 100"]);
    let beat = r#"{"v":1,"kind":"beat","member":"b","name":"b","seq":2,"term":60,"seen":110,"lease_ms":5000}"#;
    assert!(world.read(1, "a.neli", 120, "g/0", beat));
    world.read(1, "a.neli", 199, "x", "");
    assert_eq!((world.topics.is_complete(), world.terms("a.neli")), (true, ["g: 60 at None".to_string()].into()));
    let since = world.topics.topic("a.neli").and_then(|read| read.known_since_ms(0));
    assert_eq!(since, Some(at(5).wall_ms), "that of the first record that was read");
}

/// What stands before the offset 100 of that log.
fn read_the_past(world: &mut World, reading: u32) {
    assert!(world.read(reading, "a.neli", 20, "g/0", &claim("a", 19)), "a record that is new to the user");
    let release = r#"{"v":1,"kind":"release","member":"c","name":"c","seq":2,"term":30,"seen":30,"why":"exited"}"#;
    world.read(reading, "a.neli", 30, "h/0", &claim("c", 29));
    world.read(reading, "a.neli", 31, "h/0", release);
    world.read(reading, "a.neli", 60, "g/0", &claim("b", 59));
    let beat = r#"{"v":1,"kind":"beat","member":"b","name":"b","seq":2,"term":60,"seen":110,"lease_ms":5000}"#;
    assert!(!world.read(reading, "a.neli", 120, "g/0", beat), "it is known");
}

#[test]
fn the_day_before_is_read_after_the_present_and_its_terms_are_put_before() {
    let mut world = World::with_past();
    read_the_present(&mut world);
    assert_eq!(world.actions(), ["2: read a.neli since -86395000 before {0: 100}"]);
    assert_eq!(world.past_begins(2, 10), [""; 0]);
    read_the_past(&mut world, 2);
    // The present goes on meanwhile.
    assert!(world.read(1, "a.neli", 200, "g/0", &claim("d", 199)));
    world.read(2, "a.neli", 199, "x", "");
    assert_eq!(world.actions(), [""; 0], "the first reading is further on");
    assert_eq!(world.terms("a.neli"), ["g: 60 at None 200 at Some(5)"]);
    world.read(2, "a.neli", 200, "g/0", &claim("d", 199));
    assert_eq!(world.actions(), ["stop the past"]);
    assert_eq!(world.terms("a.neli"), ["g: 20 at Some(5) 60 at Some(5) 200 at Some(5)", "h: 30 at Some(5)"]);
    assert_eq!(world.topics.topic("a.neli").and_then(|read| read.known_since_ms(0)), None);
    assert!(world.read(1, "a.neli", 201, "h/0", &claim("e", 200)), "an election of the past goes on");
    assert_eq!(world.terms("a.neli")[1], "h: 30 at Some(5) 201 at Some(5)");
    assert_eq!(world.answer(&[("a.neli", logs(1, &[202]))]), [""; 0], "it is read once");
}

#[test]
fn a_topic_without_an_earlier_record_of_that_day_has_no_past() {
    let mut world = World::with_past();
    read_the_present(&mut world);
    world.actions();
    world.topics.past_begins(at(world.seconds), 2, &BTreeMap::new());
    assert_eq!(world.actions(), ["stop the past"]);
    assert_eq!(world.topics.topic("a.neli").and_then(|read| read.known_since_ms(0)), None);
    let mut small = World::with_past();
    small.answer(&[("a.neli", logs(1, &[1]))]);
    small.read(1, "a.neli", 0, "g/0", CLAIM);
    assert_eq!(small.actions(), [""; 0], "all of it was read");
}

/// The claim of `b` at 60 is in no reading if retention deletes it meanwhile.
#[test]
fn a_past_that_stands_still_is_read_again_a_few_times_and_after_those_of_other_topics() {
    let mut world = World::with_past();
    let both = |ends: Offset| [("a.neli", logs(1, &[ends])), ("b.neli", logs(2, &[ends]))];
    world.answer(&both(200));
    for (reading, topic) in [(1, "a.neli"), (2, "b.neli")] {
        world.read(reading, topic, 199, "x", "");
    }
    let began =
        |actions: Vec<String>| actions.first().map(|first| first.split(" since").next().unwrap_or("").to_string());
    assert_eq!(began(world.actions()).as_deref(), Some("3: read a.neli"));
    assert_eq!(world.answer(&both(200)), [""; 0], "the offsets may be on their way");
    assert_eq!(began(world.answer(&both(200))).as_deref(), Some("4: read b.neli"));
    assert!(!world.read(3, "a.neli", 10, "g/0", &claim("a", 9)), "of a reading that has ended");
    let mut again = Vec::new();
    for _ in 0..40 {
        again.extend(began(world.answer(&both(200))));
    }
    assert_eq!(again.len(), 9, "{again:?}");
    assert_eq!(again.last().map(String::as_str), Some("stop the past"), "it is read no more");
}

#[test]
fn a_past_ends_with_its_topic_and_is_read_of_the_one_that_is_made_anew() {
    let mut world = World::with_past();
    read_the_present(&mut world);
    world.actions();
    world.past_begins(2, 10);
    assert_eq!(world.answer(&[("a.neli", logs(9, &[150]))]), ["stop a.neli", "3: read a.neli [0] from 50"]);
    read_the_past_of_another(&mut world);
    world.read(3, "a.neli", 149, "x", "");
    assert_eq!(world.actions(), ["4: read a.neli since -86390000 before {0: 50}"]);
    world.answer(&[]);
    assert_eq!(world.answer(&[]), ["stop a.neli"]);
    assert_eq!(world.past_begins(4, 10), [""; 0]);
}

fn read_the_past_of_another(world: &mut World) {
    assert!(!world.read(2, "a.neli", 20, "g/0", &claim("a", 19)), "of the earlier topic");
    assert_eq!(world.terms("a.neli"), [""; 0]);
}

#[test]
fn a_reading_begins_so_far_back_that_each_leader_and_standby_has_written() {
    let mut world = World::new();
    let mut answer = logs(1, &[1_000]);
    answer.logs = Ok([(0, Ok(LogRange { start: 10, recent: 300, end: 1_000 }))].into());
    assert_eq!(world.answer(&[("a.neli", answer)]), ["1: read a.neli [0] from 300"]);
}
