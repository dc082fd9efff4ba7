//! The pages, the objects and the metrics, of elections that are read here without Kafka.

use std::collections::BTreeMap;

use harness::schema::{self, Schema};
use neli_kafka::TopicsEvent;
use neli_proto::kafka::{LogRange, LogsAnswer};
use neli_proto::leadership::ReadAt;
use neli_proto::observer::Topics;
use neli_proto::record::LogRecord;
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use serde_json::Value;

use super::json;
use super::page::{Overview, of_group};
use super::state::State;

const WALL_MS: u64 = 1_769_860_800_000;
const MARKUP: &str = "<script>alert(1)</script>\"'&\u{202e}\u{1b}[31m";

fn at(seconds: u64) -> ReadAt {
    ReadAt { now: Time::from_nanos((1_000 + seconds) * 1_000_000_000), wall_ms: WALL_MS + seconds * 1_000 }
}

/// A topic of elections, and the one of their recorded runs.
struct World {
    state: State,
    next: BTreeMap<&'static str, i64>,
    /// The number of the first topic's reading.
    reading: u32,
}

impl World {
    fn new() -> Self {
        let mut world = Self { state: State::new(Topics::new(1_000, 100), None), next: BTreeMap::new(), reading: 1 };
        world.answer(0, &[("a.neli", Ok(())), ("a.neli.once", Ok(()))]);
        world
    }

    fn answer(&mut self, seconds: u64, topics: &[(&str, Result<(), &str>)]) {
        let answer = |(name, logs): &(&str, Result<(), &str>)| {
            let end = self.next.get(name).copied().unwrap_or_default();
            let logs =
                logs.map(|()| BTreeMap::from([(0, Ok(LogRange { start: 0, recent: end, end }))])).map_err(Into::into);
            ((*name).into(), LogsAnswer { identity: TopicIdentity::Unnamed, logs })
        };
        let topics = topics.iter().map(answer).collect();
        let event = TopicsEvent::Answered { asked: at(seconds).now, topics };
        self.state.handle(at(seconds), event).expect("an answer");
        while self.state.topics.poll_action().is_some() {}
    }

    fn write(&mut self, seconds: u64, topic: &'static str, key: &str, value: &str) {
        let offset = self.next.entry(topic).or_default();
        let record = LogRecord {
            offset: *offset,
            key: Some(key.as_bytes().into()),
            value: Some(value.as_bytes().into()),
            written_ms: Some(at(seconds).wall_ms),
            is_brokers_time: true,
        };
        *offset += 1;
        let reading = if topic == "a.neli" { self.reading } else { 2 };
        let event = TopicsEvent::Read { reading, topic: topic.into(), partition: 0, record };
        self.state.handle(at(seconds), event).expect("a record");
    }

    fn claim(&mut self, seconds: u64, group: &str, name: &str) {
        let after = self.next.get("a.neli").copied().unwrap_or_default() - 1;
        let name = serde_json::to_string(name).expect("a name");
        let claim =
            format!(r#"{{"v":1,"kind":"claim","member":"m","name":{name},"seq":1,"after":{after},"lease_ms":20000}}"#);
        self.write(seconds, "a.neli", &format!("{group}/0"), &claim);
    }

    fn object(&self, seconds: u64) -> Value {
        serde_json::from_str(&self.state.json(at(seconds))).expect("JSON")
    }

    fn states(&self, seconds: u64) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let elections = self.object(seconds)["elections"].as_array().cloned().unwrap_or_default();
        elections.iter().map(|election| (text(&election["group"]), text(&election["state"]))).collect()
    }
}

/// A line of each metric, with each label.
pub(crate) fn metrics_of_all_kinds() -> String {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    world.claim(1, "g", "db2");
    let fact = r#"{"v":1,"key":"2026-01-31T00:00:00Z","outcome":"done","term":0,"name":"db1","exit":0,"attempt":1,"at_ms":1769860800000}"#;
    world.write(1, "a.neli.once", "g/0", fact);
    world.state.metrics(at(2))
}

fn page(world: &World, seconds: u64) -> String {
    world.state.page(at(seconds))
}

/// The groups of the page in their order.
fn groups(page: &str) -> Vec<&str> {
    page.split("data-name=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// A topic of so many records, of which so many at least are read first, and then a day.
fn unread(records: i64, span: i64) -> World {
    let topics = Topics::new(span, 100).with_past(super::DAY);
    let mut world = World { state: State::new(topics, None), next: BTreeMap::from([("a.neli", records)]), reading: 1 };
    world.answer(1_300, &[("a.neli", Ok(()))]);
    world.next.insert("a.neli", (records - span).max(0));
    world
}

const RELEASE: &str =
    r#"{"v":1,"kind":"release","member":"m","name":"db1","seq":2,"term":0,"seen":0,"why":"resigned"}"#;

fn changes(world: &World) -> Vec<String> {
    let object: Value = serde_json::from_str(&json::of_group(&world.state, "g", at(1_301))).expect("JSON");
    let changes = object["elections"][0]["changes"].as_array().cloned().unwrap_or_default();
    changes.iter().map(|change| format!("{} {}", change["at"], change["what"]).replace('"', "")).collect()
}

/// What is unread may have ended it.
#[test]
fn no_silence_is_noted_of_a_topic_that_was_not_read_to_its_end() {
    let mut world = unread(2, 1_000);
    world.claim(0, "g", "db1");
    world.state.tick(at(1_300));
    world.write(20, "a.neli", "g/0", RELEASE);
    world.state.tick(at(1_301));
    let [led, released] = &changes(&world)[..] else { panic!("{:?}", changes(&world)) };
    assert!(led.ends_with("db1 leads, term 0") && released.contains("term 0 was released"), "{led} {released}");
}

#[test]
fn a_term_whose_middle_is_read_first_is_noted_once() {
    let beat = |seq: u8| {
        format!(
            r#"{{"v":1,"kind":"beat","member":"m","name":"db1","seq":{seq},"term":0,"seen":{},"lease_ms":20000,"state":"running"}}"#,
            seq - 2
        )
    };
    let mut world = unread(3, 1);
    world.write(1_299, "a.neli", "g/0", &beat(3));
    let first = ["2026-01-31T12:21:39.000Z db1 leads, term 0", "2026-01-31T12:21:39.000Z db1: the job runs"];
    assert_eq!(changes(&world), first);
    let past = TopicsEvent::PastBegins { reading: 2, from: BTreeMap::from([(0, 0)]) };
    world.state.handle(at(1_300), past).expect("an offset");
    world.next.insert("a.neli", 0);
    world.reading = 2;
    world.claim(1_290, "g", "db1");
    world.write(1_291, "a.neli", "g/0", &beat(2));
    world.write(1_299, "a.neli", "g/0", &beat(3));
    assert_eq!(
        changes(&world),
        ["2026-01-31T12:21:30.000Z db1 leads, term 0", "2026-01-31T12:21:31.000Z db1: the job runs"]
    );
}

/// Its first records are there when it is found.
#[test]
fn the_terms_of_a_topic_that_is_made_while_it_runs_are_counted_once() {
    let mut world = World { state: State::new(Topics::new(1_000, 100), None), next: BTreeMap::new(), reading: 1 };
    world.answer(10, &[]);
    world.next.insert("a.neli", 2);
    world.answer(20, &[("a.neli", Ok(()))]);
    world.next.insert("a.neli", 0);
    world.claim(9, "g", "db1");
    world.claim(15, "g", "db2");
    let terms = |world: &World| -> Vec<String> {
        let metrics = world.state.metrics(at(30));
        let counted = metrics.lines().filter(|line| line.starts_with("neli_election_terms_total{"));
        counted.filter_map(|line| Some(line.split_once("why=")?.1.to_owned())).collect()
    };
    assert_eq!(terms(&world), ["\"silent\"} 1"], "the first one began before");
    world.claim(21, "g", "db3");
    assert_eq!(terms(&world), ["\"silent\"} 2"]);
}

#[test]
fn trouble_comes_first_and_the_first_answer_has_the_whole_table() {
    let mut world = World::new();
    world.claim(0, "led", "db1");
    world.claim(0, "gone", "db2");
    world.write(
        1,
        "a.neli",
        "gone/0",
        r#"{"v":1,"kind":"release","member":"m","name":"db2","seq":2,"term":1,"seen":1,"why":"exited","exit":1}"#,
    );
    world.claim(1, "done", "db3");
    world.write(
        1,
        "a.neli",
        "done/0",
        r#"{"v":1,"kind":"release","member":"m","name":"db3","seq":2,"term":3,"seen":3,"why":"exited","exit":0,"once":"2026-01-31"}"#,
    );
    let shown = page(&world, 2);
    assert_eq!(groups(&shown), ["gone", "led", "done"]);
    for text in
        ["3 elections: 1 led, 1 without a leader, 0 unknown, 1 done", "db1 leads", "19s of 20s", "db2 released term 1"]
    {
        assert!(shown.contains(text) || text == "19s of 20s" && shown.contains("18s of 20s"), "{text}: {shown}");
    }
    let states = [("done", "released"), ("gone", "released"), ("led", "led")];
    assert_eq!(world.states(2), states.map(|(group, state)| (group.into(), state.into())));
    let assert_done = |world: &World, group: &str, is_done: u8| {
        let metrics = world.state.metrics(at(2));
        let line = format!("neli_election_done{{topic=\"a.neli\",group=\"{group}\",role=\"0\"}} {is_done}");
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    };
    for (group, is_done) in [("done", 1), ("gone", 0), ("led", 0)] {
        assert_done(&world, group, is_done);
    }
    // The last candidate is stopped while it runs the job, which ends by itself. With `--schedule` more windows come.
    for (term, group, is_window) in [(5, "scheduled", true), (7, "key", false)] {
        world.claim(2, group, "db4");
        let release = format!(
            r#"{{"v":1,"kind":"release","member":"m","seq":2,"term":{term},"seen":{term},"why":"stopped","exit":0,"once":"k","window":{is_window}}}"#
        );
        world.write(2, "a.neli", &format!("{group}/0"), &release);
        assert_done(&world, group, u8::from(!is_window));
    }
    let forgotten = r#"{"v":1,"key":"2026-01-31","outcome":"forgotten","term":4,"attempt":1,"forgets":1}"#;
    world.write(2, "a.neli.once", "done/0/2026-01-31%forgotten", forgotten);
    assert_done(&world, "done", 0);
}

/// Else it would seem to be of today.
#[test]
fn a_release_of_days_ago_has_its_date() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    world.write(1, "a.neli", "g/0", RELEASE);
    assert!(page(&world, 86_400).contains("db1 released term 0 at 12:00:01Z"));
    assert!(page(&world, 86_401).contains("db1 released term 0 at 2026-01-31 12:00:01Z"));
}

#[test]
fn a_topic_that_cannot_be_read_is_not_counted_as_read() {
    let mut world = World::new();
    world.answer(2, &[("a.neli", Err("no right")), ("a.neli.once", Ok(()))]);
    let metrics = world.state.metrics(at(3));
    for line in ["neli_observe_topics 1", "neli_observe_topics_unread 1"] {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
}

#[test]
fn a_heartbeat_after_the_lease_s_end_extends_no_lease() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"db1","seq":2,"term":0,"seen":0,"lease_ms":20000}"#;
    world.write(30, "a.neli", "g/0", beat);
    let election = &world.object(31)["elections"][0];
    assert_eq!(
        (election["state"].as_str(), election["lease_left_ms"].as_u64()),
        (Some("silent"), Some(0)),
        "{election}"
    );
    assert!(!world.state.metrics(at(31)).contains("neli_election_lease_seconds{"), "nobody leads");
}

#[test]
fn a_candidate_s_own_page_is_linked_if_other_machines_reach_it() {
    for (listen, host, url) in [
        ("192.0.2.1:9464", "web1", Some("http://192.0.2.1:9464/")),
        ("[2001:db8::1]:9464", "web1", Some("http://[2001:db8::1]:9464/")),
        ("[::]:9464", "web1.example", Some("http://web1.example:9464/")),
        ("0.0.0.0:9464", "web1", Some("http://web1:9464/")),
        ("0.0.0.0:9464", "web1/<b>@", None),
        ("0.0.0.0:9464", "", None),
        ("127.0.0.1:9464", "web1", None),
        ("[::ffff:127.0.0.1]:9464", "web1", None),
        ("[fe80::1%2]:9464", "web1", None),
        ("javascript:alert(1)//:9464", "web1", None),
    ] {
        let mut world = World::new();
        let hello = format!(r#"{{"v":1,"kind":"hello","member":"n","seq":1,"host":"{host}","listen":"{listen}"}}"#);
        world.write(1, "a.neli", "g/0/hello", &hello);
        let detail = of_group(&world.state, "g", at(2));
        let cell = url.map_or(listen.to_owned(), |url| format!("<a href=\"{url}\">{listen}</a>"));
        assert!(detail.contains(&format!("<td>{cell}</td></tr>")), "{listen} on {host}: {detail}");
    }
}

#[test]
fn names_with_markup_and_escapes_are_shown_as_text_everywhere() {
    let mut world = World::new();
    world.claim(0, MARKUP, MARKUP);
    let hello = format!(
        r#"{{"v":1,"kind":"hello","member":"n","seq":1,"name":{name},"host":{name},"version":{name},"listen":{name}}}"#,
        name = serde_json::to_string(MARKUP).expect("a name")
    );
    world.write(1, "a.neli", &format!("{MARKUP}/0/hello"), &hello);
    world.answer(2, &[("a.neli", Err(MARKUP)), ("a.neli.once", Ok(()))]);
    world.state.topics.no_answer(at(3).now, MARKUP);
    let detail = of_group(&world.state, MARKUP, at(4));
    assert!(detail.contains("&lt;script&gt;"), "{detail}");
    let mut sent = BTreeMap::new();
    let event = String::from_utf8(Overview::of(&world.state, at(4)).event(&mut sent)).expect("text");
    let metrics = world.state.metrics(at(4));
    let all = world.state.json(at(4));
    let group = json::of_group(&world.state, MARKUP, at(4));
    for html in [&page(&world, 4), &detail, &event] {
        assert!(!html.contains("<script>alert") && !html.contains("alert(1)</script>"), "{html}");
    }
    for text in [&page(&world, 4), &detail, &event, &metrics, &all, &group] {
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()), "{line}");
    }
    let found: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(found["elections"][0]["group"], MARKUP);
}

/// It was unhealthy, so that it waits before it claims again.
#[test]
fn one_that_has_stood_down_is_a_standby_which_waits_and_leads_no_more() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    let release =
        r#"{"v":1,"kind":"release","member":"m","name":"db1","seq":2,"term":0,"seen":0,"why":"unhealthy","exit":1}"#;
    world.write(1, "a.neli", "g/0", release);
    world.write(3, "a.neli", "g/0/hello", r#"{"v":1,"kind":"hello","member":"m","seq":3,"name":"db1"}"#);
    let object: Value = serde_json::from_str(&json::of_group(&world.state, "g", at(4))).expect("JSON");
    let election = &object["elections"][0];
    assert_eq!(election["leader_hello"], Value::Null);
    let [standby] = election["candidates"].as_array().expect("a list").as_slice() else { panic!("{election}") };
    assert_eq!((standby["failed_runs"].as_u64(), standby["waits_ms"].as_u64()), (Some(1), Some(37_000)));
    let detail = of_group(&world.state, "g", at(4));
    assert!(detail.contains("<td>db1</td>") && !detail.contains("(leads)"), "{detail}");
}

#[test]
fn a_role_for_which_no_standby_has_room_says_so() {
    let mut world = World::new();
    let many = r#"{"v":1,"kind":"hello","member":"n","seq":1,"roles":"a,b","partitions":1,"max_roles":1,"joined":0}"#;
    world.write(1, "a.neli", "g/a/hello", many);
    world.claim(2, "g", "db1");
    let why =
        "no leader: nobody has ever led; nobody has room for it: one candidate may lead 1 of 2 roles (--max-roles 1)";
    for (role, election) in [("a", 1), ("b", 2)] {
        let election = &world.object(3)["elections"][election];
        assert_eq!((election["role"].as_str(), election["why"].as_str()), (Some(role), Some(why)), "{election}");
    }
    assert!(page(&world, 3).contains(why) && of_group(&world.state, "g", at(3)).contains(why));
}

/// The objects have each field that the page describes, and no other.
#[test]
fn the_objects_are_as_documented() {
    let documented = include_str!("../../../docs/observe.md");
    let mut world = World::new();
    world.claim(0, "g", "db1");
    let fact = r#"{"v":1,"key":"2026-01-31T00:00:00Z","outcome":"done","term":0,"name":"db1","exit":0,"attempt":1,"at_ms":1769860800000}"#;
    world.write(1, "a.neli.once", "g/0", fact);
    world.write(1, "a.neli", "g/0/hello", r#"{"v":1,"kind":"hello","member":"n","seq":1,"name":"db2"}"#);
    let all = Schema::read(documented, "/elections");
    let group = Schema::read(documented, "/elections/GROUP");
    for seconds in [2, 60] {
        all.assert_holds(&world.object(seconds));
        let object = json::of_group(&world.state, "g", at(seconds));
        group.assert_holds(&serde_json::from_str(&object).expect("JSON"));
        world.answer(61, &[("a.neli", Err("no right")), ("a.neli.once", Ok(()))]);
    }
    assert_eq!(world.object(2)["elections"][0]["last_run"]["outcome"], "done");
}

/// A topic without records may be the one of before, whose old facts the brokers have deleted: each candidate has warned of that.
#[test]
fn the_runs_of_a_topic_of_facts_that_is_gone_or_was_made_anew_are_forgotten() {
    let made_anew: &[&[(&str, Result<(), &str>)]] = &[&[("a.neli", Ok(())), ("a.neli.once", Ok(()))]];
    let gone: &[&[(&str, Result<(), &str>)]] = &[&[("a.neli", Ok(()))], &[("a.neli", Ok(()))]];
    for answers in [made_anew, gone] {
        let mut world = World::new();
        world.claim(0, "g", "db1");
        let fact =
            r#"{"v":1,"key":"k","outcome":"done","term":0,"name":"db1","exit":0,"attempt":1,"at_ms":1769860800000}"#;
        world.write(1, "a.neli.once", "g/0", fact);
        world.state.tick(at(2));
        assert_eq!(world.object(2)["elections"][0]["last_run"]["outcome"], "done");
        world.next.insert("a.neli.once", 0);
        for (seconds, answer) in (3..).zip(answers.iter().chain(answers.iter())) {
            world.answer(seconds, answer);
        }
        // The reader may still hand over one of before.
        world.write(9, "a.neli.once", "g/0", fact);
        world.state.tick(at(9));
        assert_eq!(world.object(9)["elections"][0]["last_run"], Value::Null);
        assert!(!world.state.metrics(at(9)).contains("last_success_timestamp_seconds{"));
    }
}

/// The facts could not be written when the run ended: its release, which is as good, says how.
#[test]
fn the_outcome_of_a_run_is_that_of_its_release_if_no_fact_says_it() {
    for (exit, outcome) in [(0, "done"), (3, "failed")] {
        let mut world = World::new();
        world.claim(0, "g", "db1");
        world.write(
            0,
            "a.neli.once",
            "g/0/k%attempt",
            r#"{"v":1,"key":"k","outcome":"running","term":0,"member":"m","attempt":1}"#,
        );
        let release = format!(
            r#"{{"v":1,"kind":"release","member":"m","seq":2,"term":0,"seen":0,"why":"exited","exit":{exit},"once":"k"}}"#
        );
        let shown = |world: &mut World| {
            world.state.tick(at(2));
            world.object(2)["elections"][0]["last_run"]["outcome"].as_str().map(str::to_owned)
        };
        assert_eq!(shown(&mut world).as_deref(), Some("running"));
        world.write(1, "a.neli", "g/0", &release);
        assert_eq!(shown(&mut world).as_deref(), Some(outcome));
        let metrics = world.state.metrics(at(2));
        assert!(metrics.contains(&format!("outcome=\"{outcome}\"}} 1")), "{metrics}");
    }
}

/// The job ran past the next start, which was skipped.
#[test]
fn a_run_has_failed_until_the_next_one_has_ended() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    for (seq, place, outcome, from_ms, failed) in [
        (1, "%attempt", "running", 1_000, None),
        (2, "%attempt", "failed", 1_000, Some(1)),
        (3, "", "skipped", 2_000, Some(1)),
        (4, "%attempt", "running", 3_000, Some(1)),
        (5, "", "done", 3_000, Some(0)),
    ] {
        let window = format!(r#""key":"k{from_ms}","window_from_ms":{from_ms},"window_until_ms":{}"#, from_ms + 1_000);
        let exit = if outcome == "failed" { r#","exit":7"# } else { "" };
        let fact = format!(r#"{{"v":1,{window},"outcome":"{outcome}","term":0,"seq":{seq},"attempt":1{exit}}}"#);
        world.write(seq, "a.neli.once", &format!("g/0{place}"), &fact);
        let metrics = world.state.metrics(at(seq));
        let failed = failed
            .map(|failed| format!("neli_election_last_run_failed{{topic=\"a.neli\",group=\"g\",role=\"0\"}} {failed}"));
        let line = metrics.lines().find(|line| line.starts_with("neli_election_last_run_failed{"));
        assert_eq!(line, failed.as_deref(), "{outcome} {from_ms}");
        assert_eq!(world.object(seq)["elections"][0]["last_run"]["outcome"], outcome);
    }
}

/// `--once` was tried, long ago, with a group that runs a service now.
#[test]
fn a_leader_that_runs_without_a_key_or_windows_has_no_last_run() {
    let mut world = World::new();
    world.write(0, "a.neli.once", "g/0/k", r#"{"v":1,"key":"k","outcome":"done","term":0,"attempt":1}"#);
    let mut outcome = |once: &str| {
        world.write(1, "a.neli", "g/0/hello", &format!(r#"{{"v":1,"kind":"hello","member":"m","seq":1{once}}}"#));
        world.claim(1, "g", "db1");
        world.state.tick(at(2));
        world.object(2)["elections"][0]["last_run"]["outcome"].clone()
    };
    assert_eq!(outcome(r#","once":"--once""#), "done");
    assert_eq!(outcome(""), Value::Null);
    // The leader has died: it is not between two runs.
    world.state.tick(at(100));
    assert!(!world.state.metrics(at(100)).contains("neli_election_last_outcome{"));
}

/// Kafka answers: only this topic can't be read.
#[test]
fn an_election_whose_topic_cannot_be_read_is_unknown_for_that_reason() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    world.answer(60, &[("a.neli", Err("no right")), ("a.neli.once", Ok(()))]);
    let object = world.object(60);
    let why = "can't tell who leads: Kafka answers, but the topic can't be read now, or this partition of it";
    assert_eq!((&object["elections"][0]["why"], &object["broker"]["up"]), (&why.into(), &true.into()), "{object}");
}

/// The last run was by another schedule.
#[test]
fn the_next_window_is_the_leader_s() {
    let mut world = World::new();
    let hello = r#"{"v":1,"kind":"hello","member":"m","name":"db1","seq":1,"once":"--schedule '0 5 * * *'"}"#;
    world.write(0, "a.neli", "g/0/hello", hello);
    world.claim(0, "g", "db1");
    let fact = r#"{"v":1,"key":"k","window_from_ms":1769850000000,"window_until_ms":1769936400000,"outcome":"done","term":0,"attempt":1,"account":{"schedule":"0 9 * * *","timezone":"UTC"}}"#;
    world.write(0, "a.neli.once", "g/0", fact);
    world.state.tick(at(1));
    assert_eq!(world.object(1)["elections"][0]["next_window"], "2026-02-01T05:00:00.000Z");
}

#[test]
fn a_run_whose_runner_is_gone_is_interrupted() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    let begun = r#"{"v":1,"key":"k","outcome":"running","term":0,"member":"m","attempt":1}"#;
    world.write(0, "a.neli.once", "g/0/k%attempt", begun);
    for (seconds, outcome) in [(2, "running"), (3_000, "interrupted")] {
        world.answer(seconds, &[("a.neli", Ok(())), ("a.neli.once", Ok(()))]);
        assert_eq!(world.object(seconds)["elections"][0]["last_run"]["outcome"], outcome);
        let metrics = world.state.metrics(at(seconds));
        assert!(metrics.contains(&format!("outcome=\"{outcome}\"}} 1")), "{metrics}");
    }
}

/// The present is read first, and then the day before it, in which earlier runs are recorded.
#[test]
fn a_run_of_the_past_replaces_no_later_one() {
    let facts = "a.neli.once";
    let topics = Topics::new(1, 100).with_past(super::DAY);
    let mut world = World { state: State::new(topics, None), next: BTreeMap::from([(facts, 3)]), reading: 1 };
    world.answer(1_300, &[("a.neli", Ok(())), (facts, Ok(()))]);
    world.claim(1_300, "g", "db1");
    world.claim(1_300, "h", "db1");
    let read = |world: &mut World, reading, offset, (group, outcome): (&str, &str)| {
        let fact = format!(r#"{{"v":1,"key":"k{offset}","outcome":"{outcome}","term":0,"attempt":1}}"#);
        let (key, value) = (Some(format!("{group}/0/k{offset}").into_bytes().into()), Some(fact.into_bytes().into()));
        let record = LogRecord { offset, key, value, written_ms: Some(at(1_290).wall_ms), is_brokers_time: true };
        let event = TopicsEvent::Read { reading, topic: facts.into(), partition: 0, record };
        world.state.handle(at(1_300), event).expect("a record");
        let metrics = world.state.metrics(at(1_300));
        let outcomes = metrics.lines().filter(|line| line.starts_with("neli_election_last_outcome{"));
        outcomes.filter_map(|line| line.split('"').rev().nth(1).map(str::to_owned)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(&mut world, 2, 2, ("g", "done")), "done");
    let past = TopicsEvent::PastBegins { reading: 3, from: BTreeMap::from([(0, 0)]) };
    world.state.handle(at(1_300), past).expect("an offset");
    assert_eq!(read(&mut world, 3, 0, ("g", "failed")), "done");
    assert_eq!(read(&mut world, 3, 1, ("h", "failed")), "done failed", "of that nothing else is recorded");
}

/// Prometheus takes no two lines of the same labels.
#[test]
fn a_role_that_moves_to_another_partition_has_its_metrics_once() {
    let mut world = World::new();
    let answer = |ends: [i64; 2]| {
        let range = |end| Ok(LogRange { start: 0, recent: 0, end });
        let logs = Ok(BTreeMap::from([(0, range(ends[0])), (1, range(ends[1]))]));
        let topics = BTreeMap::from([("a.neli".into(), LogsAnswer { identity: TopicIdentity::Unnamed, logs })]);
        TopicsEvent::Answered { asked: at(1).now, topics }
    };
    world.state.handle(at(1), answer([0, 0])).expect("an answer");
    let mut write = |partition, name: &str| {
        let claim =
            format!(r#"{{"v":1,"kind":"claim","member":"m","name":"{name}","seq":1,"after":-1,"lease_ms":20000}}"#);
        let (key, value) = (Some(Box::from(&b"g/0"[..])), Some(claim.into_bytes().into()));
        let record = LogRecord { offset: 0, key, value, written_ms: Some(at(1).wall_ms), is_brokers_time: true };
        let event = TopicsEvent::Read { reading: 3, topic: "a.neli".into(), partition, record };
        world.state.handle(at(1), event).expect("a record");
    };
    write(0, "db1");
    write(1, "db2");
    assert_eq!(world.states(2).len(), 2);
    let metrics = world.state.metrics(at(2));
    let led = metrics.lines().filter(|line| line.starts_with("neli_election_led{")).count();
    assert_eq!(led, 1, "{metrics}");
}

#[test]
fn while_kafka_is_away_nothing_is_known_and_no_time_is_counted() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    let unled = |world: &World| {
        let text = world.state.metrics(at(0));
        let line = text.lines().find(|line| line.starts_with("neli_election_without_leader_seconds_total{"));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).expect("a value")
    };
    for seconds in 1..=5 {
        world.state.tick(at(seconds));
    }
    assert!(unled(&world).abs() < f64::EPSILON);
    world.state.handle(at(6), TopicsEvent::Down("refused".into())).expect("an outage");
    assert_eq!(world.states(3_000), [("g".into(), "unknown".into())]);
    assert!(page(&world, 3_000).contains("Kafka has not answered for "));
    world.state.tick(at(3_000));
    world.answer(3_001, &[("a.neli", Ok(())), ("a.neli.once", Ok(()))]);
    for seconds in 3_001..=3_004 {
        world.state.tick(at(seconds));
    }
    assert_eq!(world.states(3_004), [("g".into(), "silent".into())]);
    assert!((unled(&world) - 3.0).abs() < 0.01, "{}", unled(&world));
    world.claim(3_005, "g", "db2");
    assert_eq!(world.states(3_005), [("g".into(), "led".into())]);
    let metrics = world.state.metrics(at(3_005));
    for line in [
        "neli_election_led{topic=\"a.neli\",group=\"g\",role=\"0\"} 1",
        "neli_election_leader_info{topic=\"a.neli\",group=\"g\",role=\"0\",leader=\"db2\"} 1",
        "neli_election_terms_total{topic=\"a.neli\",group=\"g\",role=\"0\",why=\"silent\"} 1",
        "neli_election_terms_total{topic=\"a.neli\",group=\"g\",role=\"0\",why=\"first\"} 1",
        "neli_election_lease_seconds{topic=\"a.neli\",group=\"g\",role=\"0\"} 20",
        "neli_observe_broker_up 1",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
    let detail = of_group(&world.state, "g", at(3_005));
    assert!(detail.contains("no leader: db1 was silent for") || detail.contains("db1 has been silent"), "{detail}");
}

/// The lease is over before it is noticed that Kafka is away.
#[test]
fn a_silence_that_may_be_kafka_s_is_not_noted_and_not_counted() {
    let mut world = World::new();
    world.claim(0, "g", "db1");
    (1..=25).for_each(|seconds| world.state.tick(at(seconds)));
    world.state.handle(at(25), TopicsEvent::Down("refused".into())).expect("an outage");
    let election = world.object(26)["elections"][0].clone();
    assert_eq!(
        (election["state"].as_str(), &election["last_change"]["what"]),
        (Some("unknown"), &Value::from("db1 leads, term 0"))
    );
    let metrics = world.state.metrics(at(26));
    let total = "neli_election_without_leader_seconds_total{topic=\"a.neli\",group=\"g\",role=\"0\"} 0";
    assert!(metrics.lines().any(|line| line.starts_with(total)), "{metrics}");
}

/// docs/observe.md has each metric with its kind, and no other.
#[test]
fn the_metrics_are_as_documented() {
    let world = World::new();
    let text = world.state.metrics(at(0));
    let rendered = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    assert_eq!(schema::metrics(include_str!("../../../docs/observe.md")), rendered);
}

#[test]
fn an_event_has_what_has_changed() {
    let mut world = World::new();
    world.claim(0, "a", "db1");
    world.claim(0, "b", "db2");
    let mut sent = BTreeMap::new();
    let mut event = |world: &World, seconds| {
        let event = Overview::of(&world.state, at(seconds)).event(&mut sent);
        let text = String::from_utf8(event).expect("text");
        let event: Value = serde_json::from_str(text.strip_prefix("data: ").expect("an event")).expect("JSON");
        (event["order"].as_array().map_or(0, Vec::len), event["changed"].as_object().map_or(0, serde_json::Map::len))
    };
    assert_eq!(event(&world, 1), (2, 2));
    assert_eq!(event(&world, 1), (2, 0), "nothing has changed");
    world.write(1, "a.neli", "a/0/hello", r#"{"v":1,"kind":"hello","member":"n","seq":1,"name":"db3"}"#);
    assert_eq!(event(&world, 1), (2, 1), "a standby more");
}

#[test]
fn topics_are_meant_by_patterns() {
    for (pattern, name, is_meant) in [
        ("*.neli", "a.neli", true),
        ("*.neli", "a.neli.once", false),
        ("a.neli", "a.neli", true),
        ("a.neli", "ba.neli", false),
        ("a*b*c", "abc", true),
        ("a*b*c", "a-bb-c", true),
        ("a*b*c", "ac", false),
        ("aa*aa", "aaa", false),
        ("x,team-*.neli", "team-7.neli", true),
        ("*", "anything", true),
    ] {
        assert_eq!(pattern.split(',').any(|pattern| super::matches(pattern, name)), is_meant, "{pattern} {name}");
    }
}
