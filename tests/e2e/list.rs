//! `list`: the elections that exist.

use std::io::{BufRead, BufReader, Read};
use std::iter;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use harness::accounts::login;
use harness::candidate::Elector;
use harness::election::{Answer, TestElection};
use harness::journal::{Pen, RepeatedRecord};
use harness::kafka::{Kafka, Wired};
use harness::network::LinkConditions;
use harness::schema::Schema;
use harness::terminal::{Ctrl, Shell, Terminal};
use harness::wait;
use serde_json::Value;

use crate::guarded::Guarded;
use crate::{PROGRAM, election};

fn list(arguments: &[&str]) -> Answer {
    let mut command = Command::new(PROGRAM);
    command.args(["list", "--brokers", Kafka::shared().address()]).args(arguments);
    Answer::of(command)
}

/// The JSON about each election, which is checked against docs/json.md.
pub(crate) fn json(arguments: &[&str]) -> Vec<Value> {
    let answer = list(&[&["--json", "--timeout", "30s"], arguments].concat());
    // The broker is shared, so another test may be deleting its topic.
    let is_one_topic = arguments.contains(&"--topic");
    assert!((answer.errors.is_empty() && answer.status == 0) || !is_one_topic, "{answer:?}");
    let schema = Schema::read(include_str!("../../docs/json.md"), "list");
    let lines = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.inspect(|line| schema.assert_holds(line)).collect()
}

#[test]
fn the_elections_of_a_topic_and_those_of_all() {
    let election = election(Elector::Log);
    let topic = election.topic();
    Kafka::shared().create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(Kafka::shared(), &topic, &[]);
    let claim = |after: i64| {
        format!(r#"{{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":{after},"lease_ms":60000}}"#)
    };
    let hello = br#"{"v":1,"kind":"hello","member":"h","name":"other","seq":1}"#;
    pen.write("a/b/ingest", &[claim(-1).as_bytes()]);
    pen.write("a/b/ingest/hello", &[hello, b"garbage"]);
    pen.write("no election's key", &[b"x"]);
    pen.write_keyless(b"x");
    let release =
        br#"{"v":1,"kind":"release","member":"m","name":"web","seq":9,"term":5,"seen":5,"why":"exited","exit":0}"#;
    pen.write("c/0", &[claim(4).as_bytes(), release]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":60000}"#;
    let _heartbeats = RepeatedRecord::start(pen, "a/b/ingest".to_owned(), beat.to_owned());
    let found = json(&["--topic", &topic]);
    let shown: Vec<[&str; 3]> =
        found.iter().map(|line| ["group", "role", "state"].map(|field| line[field].as_str().unwrap_or("?"))).collect();
    assert_eq!(shown, [["a/b", "ingest", "led"], ["c", "0", "released"]]);
    assert_eq!((found[0]["leader"].as_str(), found[0]["standbys"].as_u64()), (Some("web"), Some(1)));
    assert_eq!(json(&["--topic", &topic, "--group", "c"]).len(), 1);

    let text = list(&["--topic", &topic]).text;
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[0].starts_with("GROUP  ROLE    TOPIC"), "{text}");
    assert!(rows[1].starts_with("a/b    ingest  ") && rows[1].contains("  web leads, heartbeat "), "{text}");
    assert!(rows[2].contains("  no leader: web released term 5 "), "{text}");

    let mut run = election.candidate().job(["true"]).start();
    assert_eq!(run.status(), 0);
    let all = json(&[]);
    let is_there = |group: &str| all.iter().any(|line| line["group"] == group && line["topic"] == topic.as_str());
    assert!(is_there("c") && is_there("a/b") && is_there(&election.group), "{all:?}");
}

/// Elections whose last records are 30 days, 8 days and 6 days old.
#[test]
fn a_dead_election_is_only_counted_unless_it_is_asked_for() {
    const DAY: i64 = 24 * 3_600;
    let election = election(Elector::Log);
    let topic = election.topic();
    Kafka::shared().create_topic(&topic, &[("message.timestamp.type", "CreateTime"), ("retention.ms", "-1")]);
    let pen = Pen::new(Kafka::shared(), &topic, &[]);
    let hello = br#"{"v":1,"kind":"hello","member":"h","name":"h","seq":1}"#;
    for (days, after, group) in [(30, -1, "oldest"), (8, 0, "old"), (6, 1, "young")] {
        let claim =
            format!(r#"{{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":{after},"lease_ms":5000}}"#);
        pen.write_ahead(&format!("{group}/0"), &[claim.as_bytes()], -days * DAY);
    }
    pen.write_ahead("stood/0/hello", &[hello], -9 * DAY);
    let of_topic = ["--topic", topic.as_str()];
    let found = json(&of_topic);
    let is_dead = |group: &str| found.iter().find(|line| line["group"] == group).map(|line| line["dead"] == true);
    assert_eq!(["old", "oldest", "stood", "young"].map(is_dead), [Some(true), Some(true), Some(true), Some(false)]);

    let shown = |more: &[&str]| list(&[&of_topic, more].concat()).text;
    let text = shown(&[]);
    assert!(text.contains("\nyoung ") && !text.contains("\nold"), "{text}");
    assert!(text.ends_with("\n3 elections not shown, dead for more than a week; --all shows all\n"), "{text}");
    let text = shown(&["--all"]);
    assert_eq!(text.lines().count(), 5, "{text}");
    let text = shown(&["--group", "old"]);
    assert!(text.contains("\nold ") && text.lines().count() == 2, "{text}");
}

#[test]
fn a_topic_without_elections_one_that_does_not_exist_and_a_broker_that_is_down() {
    let empty = election(Elector::Log).topic();
    Kafka::shared().create_topic(&empty, &[("message.timestamp.type", "LogAppendTime")]);
    assert_eq!(list(&["--topic", &empty]).text, format!("no elections in topic {empty}\n"));
    let answer = list(&["--topic", "no-such-topic"]);
    assert_eq!((answer.errors.as_str(), answer.status), ("neli-run: topic \"no-such-topic\" does not exist\n", 125));
    let mut command = Command::new(PROGRAM);
    command.args(["list", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    let answer = Answer::of(command);
    assert_eq!((answer.text.as_str(), answer.status), ("", 4), "{answer:?}");
    assert!(answer.errors.starts_with("neli-run: 127.0.0.1:1") && answer.errors.lines().count() == 1, "{answer:?}");
}

/// That nothing comes behind its last record, a transaction's marker, is known only after some of Kafka's answers.
#[test]
fn a_topic_that_is_not_read_to_its_end_in_time() {
    let topic = election(Elector::Log).topic();
    Kafka::shared().create_topic(&topic, &[]);
    let pen = Pen::new(Kafka::shared(), &topic, &[("transactional.id", &topic)]);
    pen.begin();
    pen.write("g/0", &[b"aborted"]);
    pen.abort();
    // The limit is that of each answer: on a busy machine there may be so many of them meanwhile that the end is known.
    let mut answers = (0..5).map(|_| list(&["--topic", &topic, "--timeout", "1s"]));
    let answer = answers.find(|answer| answer.status != 0).expect("the end is not known at once");
    let why = format!("neli-run: not all could be read: topic \"{topic}\": it is not read to its end within 1s\n");
    assert!(answer.text.contains("can't tell who leads"), "{answer:?}");
    assert_eq!((answer.errors, answer.status), (why, 4));
}

/// A candidate with many roles sends one hello in partition 0, for elections in all partitions.
#[test]
fn a_role_with_only_hellos_is_listed() {
    let election = election(Elector::Log);
    let topic = election.topic();
    Kafka::shared().create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let hello = br#"{"v":1,"kind":"hello","member":"p","name":"web","seq":1,"roles":"in,out","partitions":1}"#;
    Pen::new(Kafka::shared(), &topic, &[]).write("many/in/hello", &[hello]);
    let found = json(&["--topic", &topic]);
    let shown: Vec<[&str; 2]> =
        found.iter().map(|line| ["role", "state"].map(|field| line[field].as_str().unwrap_or("?"))).collect();
    assert_eq!(shown, [["in", "never-led"], ["out", "never-led"]]);
    assert!(found.iter().all(|line| line["standbys"] == 1), "{found:?}");
}

/// No process listens on port 9.
#[test]
fn why_no_broker_answers() {
    let answer = list(&["--brokers", "127.0.0.1:9", "--timeout", "2s"]);
    let why = "127.0.0.1:9/bootstrap: Connect to ipv4#127.0.0.1:9 failed: Connection refused (no answer within 2s)";
    assert_eq!((answer.status, answer.errors), (4, format!("neli-run: {why}\n")));
}

/// Like every other command, and at once.
#[test]
fn a_login_that_is_refused() {
    let guarded = Guarded::new(Elector::Log);
    let properties = login("operator", "wrong horse");
    let properties: Vec<String> = properties.iter().map(|(key, value)| format!("--property={key}={value}")).collect();
    let mut words = vec!["--brokers", &guarded.address, "--timeout", "60s"];
    words.extend(properties.iter().map(String::as_str));
    let answer = list(&words);
    assert!(answer.errors.contains("Authentication failed"), "{answer:?}");
    assert!(answer.errors.contains("; check sasl.mechanisms, sasl.username and sasl.password"), "{answer:?}");
    assert_eq!(answer.status, 125);
}

/// A candidate with another order of names was refused, and another one without `--roles`: neither adds a role to the list, and neither does a
/// candidate that has left without ever leading.
#[test]
fn what_is_known_only_from_a_refused_candidate_is_not_listed() {
    let election = election(Elector::Log);
    let topic = election.topic();
    let kafka = Kafka::shared();
    kafka.create_topic(&topic, &[]);
    kafka.add_partitions(&topic, 2);
    let hello = |member: &str, fields: &str| {
        format!(r#"{{"v":1,"kind":"hello","member":"{member}","name":"{member}","roles":{fields}}}"#).into_bytes()
    };
    let stands = hello("web", r#""in,out","partitions":2,"joined":0"#);
    let other = hello("odd", r#""out,in","partitions":2"#);
    let refused = hello("odd", r#""out,in","partitions":2,"joined":1,"leaves":true"#);
    let pen = Pen::new(kafka, &topic, &[]);
    pen.write("many/in/hello", &[&stands, &stands]);
    pen.write("many/out/hello", &[&other, &refused]);
    pen.write("many/0/hello", &[br#"{"v":1,"kind":"hello","member":"lone","name":"lone","leaves":true}"#]);
    let found = json(&["--topic", &topic]);
    let shown: Vec<(&str, i64)> = found
        .iter()
        .map(|line| (line["role"].as_str().unwrap_or("?"), line["partition"].as_i64().unwrap_or(-1)))
        .collect();
    assert_eq!(shown, [("in", 0), ("out", 1)]);
    assert!(found.iter().all(|line| line["standbys"] == 1), "{found:?}");
}

/// The lines of `list --watch`, which ends when this is dropped.
struct Watched {
    child: Child,
    lines: Receiver<String>,
    warnings: Receiver<String>,
}

impl Watched {
    fn start(topic: &str, more: &[&str]) -> Self {
        Self::at(Kafka::shared().address(), topic, more)
    }

    fn at(brokers: &str, topic: &str, more: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["list", "--watch", "--brokers", brokers, "--topic", topic]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program is there");
        let lines = lines_of(child.stdout.take().expect("piped"));
        let warnings = lines_of(child.stderr.take().expect("piped"));
        Self { child, lines, warnings }
    }

    /// The next line.
    fn next(&self) -> String {
        self.lines.recv_timeout(wait::PATIENCE).expect("a line")
    }

    /// Waits for a line with these words.
    fn await_line(&self, words: &str) -> String {
        wait::until(words, || Some(self.next()).filter(|line| line.contains(words)))
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, received) = channel();
    let lines = BufReader::new(stream).lines();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line: String| sender.send(line)));
    received
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watched_claim(name: &str, after: i64) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"{name}","name":"{name}","seq":1,"after":{after},"lease_ms":60000}}"#)
}

/// A line for each election as it is at the start, and then for each change, also of an election that appears, and of a topic that is gone or
/// made anew.
#[test]
fn what_is_watched_is_a_line_for_each_change() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    kafka.create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(kafka, &topic, &[]);
    pen.write("one/0", &[watched_claim("web", -1).as_bytes()]);
    let (text, objects) = (Watched::start(&topic, &[]), Watched::start(&topic, &["--json"]));
    let only = Watched::start(&topic, &["--group", "two"]);
    let named = format!(" one in {topic}: ");
    assert!(text.next().ends_with(&format!("{named}as of now: web leads")));
    let schema = Schema::read(include_str!("../../docs/json.md"), "list");
    let object = || -> Value { serde_json::from_str(&objects.next()).expect("JSON") };
    let first = object();
    schema.assert_holds(&first);
    assert_eq!((first["group"].as_str(), first["state"].as_str()), (Some("one"), Some("led")));

    let release =
        r#"{"v":1,"kind":"release","member":"web","name":"web","seq":9,"term":0,"seen":0,"why":"exited","exit":3}"#;
    pen.write("one/0", &[release.as_bytes()]);
    text.await_line(&format!("{named}term 0 was released: the job has ended (the job's status: 3)"));
    assert_eq!(object()["state"], "released");
    pen.write("one/0/hello", &[br#"{"v":1,"kind":"hello","member":"other","name":"other","seq":1}"#]);
    assert_eq!(object()["standbys"], 1);
    pen.write("two/a", &[watched_claim("db", 2).as_bytes()]);
    text.await_line(&format!(" two/a in {topic}: db leads, term 3"));
    assert_eq!(object()["role"], "a");
    assert!(only.next().ends_with(&format!(" two/a in {topic}: db leads, term 3")), "only that group");

    // If a deletion takes long, a leader without heartbeats is reported as silent before.
    let unknown = || iter::repeat_with(object).find(|object| object["state"] == "unknown").expect("an endless line");
    kafka.delete_topic(&topic);
    text.await_line(&format!(" topic {topic} is gone"));
    for group in ["one", "two"] {
        let object = unknown();
        schema.assert_holds(&object);
        let why = format!("can't tell who leads: topic {topic} is gone");
        let shown = [&object["group"], &object["state"], &object["why"], &object["leader"]];
        assert_eq!(shown, [&group.into(), &"unknown".into(), &why.into(), &Value::Null], "{object}");
    }
    kafka.create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    Pen::new(kafka, &topic, &[]).write("three/0", &[watched_claim("new", -1).as_bytes()]);
    text.await_line(&format!(" three in {topic}: "));
    assert_eq!(object()["group"], "three");
    // Whether it is read before or after it is there again.
    kafka.delete_topic(&topic);
    kafka.create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    assert_eq!(unknown()["group"], "three");
}

/// The table fits the terminal, shows an election without a leader first, and counts what it leaves out.
#[test]
fn what_is_watched_on_a_terminal_is_a_table() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    kafka.create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(kafka, &topic, &[]);
    for number in 0..20 {
        pen.write(&format!("group-{number:02}/0"), &[watched_claim("web", number - 1).as_bytes()]);
    }
    let release =
        r#"{"v":1,"kind":"release","member":"web","name":"web","seq":9,"term":9,"seen":19,"why":"exited","exit":3}"#;
    pen.write("group-09/0", &[release.as_bytes()]);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    terminal.resize(12, 80);
    let line = format!("{PROGRAM} list --watch --topic {topic} --brokers {}", kafka.address());
    terminal.type_line(&format!("NO_COLOR=1 TERM=xterm {line}"));
    terminal.await_text(" of 20 elections are led");
    let page = terminal.await_text("\u{1b}[J");
    let lines: Vec<&str> = page.lines().map(|line| line.trim_end_matches("\u{1b}[K")).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{page}");
    assert!(lines[1].starts_with("ELECTION") && lines[2].starts_with("group-09 in "), "{page}");
    assert!(lines[2].contains("no leader: web released"), "{page}");
    assert!(page.contains("and 12 more"), "{page}");
    // The others have no heartbeats.
    terminal.await_text("\u{1b}[H0 of 20 elections are led");
    pen.write("group-09/0", &[watched_claim("web", 20).as_bytes()]);
    terminal.await_text("\u{1b}[H1 of 20 elections are led");
    terminal.press(Ctrl::C);
    terminal.await_prompt();
}

/// It says once what it waits for: the topic, and then the group.
#[test]
fn a_watch_waits_for_a_topic_and_a_group() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    let watched = Watched::start(&topic, &["--group", "two"]);
    let warning = || watched.warnings.recv_timeout(wait::PATIENCE).expect("a warning");
    assert_eq!(warning(), format!("neli-run: warning: topic \"{topic}\" does not exist; waiting for it"));
    kafka.create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let waits = format!("neli-run: warning: no election of group \"two\" in topic {topic}; waiting for one");
    assert_eq!(warning(), waits);
    let pen = Pen::new(kafka, &topic, &[]);
    pen.write("one/0", &[watched_claim("web", -1).as_bytes()]);
    pen.write("two/0", &[watched_claim("web", 0).as_bytes()]);
    assert!(watched.next().ends_with(&format!(" two in {topic}: web leads, term 1")));
    assert_eq!(watched.warnings.try_iter().count(), 0);
}

/// Also of a lease that ends before it is noticed that Kafka is away.
#[test]
fn an_election_is_unknown_while_kafka_is_away() {
    let wired = Wired::take();
    let topic = TestElection::new(PROGRAM, wired.kafka(), Elector::Log).topic();
    wired.direct().create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(wired.kafka(), &topic, &[]);
    let lease = |text: String| text.replace("60000", "2000");
    pen.write("g/0", &[lease(watched_claim("m", -1)).as_bytes()]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"m","seq":2,"term":0,"seen":0,"lease_ms":2000}"#;
    let _heartbeats = RepeatedRecord::start(pen, "g/0".to_owned(), beat.to_owned());
    let watched = Watched::at(wired.kafka().address(), &topic, &["--json"]);
    let schema = Schema::read(include_str!("../../docs/json.md"), "list");
    let state = || {
        let object: Value = serde_json::from_str(&watched.next()).expect("JSON");
        schema.assert_holds(&object);
        object["state"].as_str().expect("a state").to_owned()
    };
    wait::until_true("a leader", || state() == "led");
    wired.wire().set(LinkConditions { refuses: true, ..LinkConditions::default() });
    let mut until_unknown = Vec::new();
    while until_unknown.last().is_none_or(|last| last != "unknown") {
        until_unknown.push(state());
    }
    assert!(!until_unknown.contains(&"silent".to_owned()), "{until_unknown:?}");
    wired.wire().set(LinkConditions::default());
    assert_ne!(state(), "unknown");
}

#[test]
fn a_watch_without_an_answer_ends() {
    let answer = list(&["--watch", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    assert_eq!((answer.text.as_str(), answer.status), ("", 4), "{answer:?}");
    // On a busy machine the refused connection is not known by then.
    assert!(answer.errors.contains("no answer within 2s") && answer.errors.lines().count() == 1, "{answer:?}");
}
