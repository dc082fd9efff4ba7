//! `observe`: all elections of a cluster over HTTP, while topics come and go, rights are missing and Kafka is away.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use harness::accounts::{Account, PASSWORD, login};
use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::election::Answer;
use harness::journal::{self, Pen, RepeatedRecord};
use harness::kafka::{Broker, Kafka};
use harness::process::Process;
use harness::rights::{Operation, Resource, Rights, Rule};
use harness::schema::Schema;
use harness::wait;
use nix::sys::resource::{self, getrlimit};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::guarded::Guarded;
use crate::listen::{get, send};
use crate::{PROGRAM, election, list};

/// A running `observe`.
struct Observing {
    child: Child,
    address: String,
    lines: Receiver<String>,
}

impl Observing {
    fn start(brokers: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["observe", "--listen", "127.0.0.1:0", "--brokers", brokers]).args(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        // A password on the command line is warned of before.
        let address = errors
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("neli-run: listening on http://")?.strip_suffix('/')?.to_owned()));
        let address = address.expect("it listens");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || errors.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, address, lines }
    }

    fn await_ready(&self) {
        wait::until_true("the topics to be read", || get(&self.address, "/readyz").0 == 200);
    }

    /// The object of `/elections`, checked against docs/observe.md.
    fn object(&self) -> Value {
        let object = serde_json::from_str(&get(&self.address, "/elections").1).expect("JSON");
        Schema::read(include_str!("../../docs/observe.md"), "/elections").assert_holds(&object);
        object
    }

    /// The leader of a group's election, also if it has missed heartbeats since; none if the election is not shown.
    fn leader(&self, group: &str) -> Option<String> {
        let object = self.object();
        let mut elections = object["elections"].as_array().expect("a list").iter();
        let found = elections.find(|election| election["group"] == group)?;
        found["leader"].as_str().map(str::to_owned)
    }

    fn await_leader(&self, group: &str, leader: Option<&str>) {
        let is_so = wait::poll_for(wait::PATIENCE, || (self.leader(group).as_deref() == leader).then_some(()));
        assert!(is_so.is_some(), "{group} is not led by {leader:?}: {}", self.object());
    }

    /// Waits for a line with these words on stderr.
    fn await_line(&self, words: &str) -> String {
        wait::until(words, || self.lines.try_iter().find(|line| line.contains(words)))
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn claim(after: i64, name: &str) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"m","name":"{name}","seq":1,"after":{after},"lease_ms":60000}}"#)
}

const STAMPED: [(&str, &str); 1] = [("message.timestamp.type", "LogAppendTime")];

#[test]
fn it_shows_what_list_and_status_show_and_follows_live() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    let mut run = election.candidate().option("--name", "<b>one").option("--listen", "127.0.0.1:0").start();
    run.await_lead();
    let observing = Observing::start(kafka.address(), &["--topics", &format!("{topic},no-such-topic")]);
    observing.await_ready();
    observing.await_leader(&election.group, Some("<b>one"));
    // On a busy machine heartbeats may be late for one of them.
    let [listed, status, shown] = wait::until("a leader for all of them", || {
        let status = election.ask("status", &["--json"]).json();
        let answers = [list::json(&["--topic", &topic])[0].clone(), status, observing.object()["elections"][0].clone()];
        answers.iter().all(|answer| answer["state"] == "led").then_some(answers)
    });
    for field in ["group", "role", "topic", "partition", "leader", "term", "standbys", "dead"] {
        assert_eq!(shown[field], listed[field], "{field}");
    }
    assert_eq!((&shown["since"], &shown["lease_ms"]), (&status["leader"]["since"], &status["leader"]["lease_ms"]));
    let (_, page) = get(&observing.address, "/");
    assert!(page.contains("&lt;b&gt;one leads") && !page.contains("<b>one"), "{page}");
    let (code, detail) = get(&observing.address, &format!("/election/{}", election.group));
    assert!(code == 200 && detail.contains("<h3>Terms</h3>") && !detail.contains("<b>one"), "{detail}");
    // The port that the candidate really has.
    let own = status["leader"]["hello"]["listen"].as_str().expect("an address");
    assert!(detail.contains(&format!("<td>{own}</td>")), "{own}: {detail}");
    assert_eq!(get(own, "/leader").0, 200);
    let (_, object) = get(&observing.address, &format!("/elections/{}", election.group));
    let object: Value = serde_json::from_str(&object).expect("JSON");
    Schema::read(include_str!("../../docs/observe.md"), "/elections/GROUP").assert_holds(&object);
    let history = election.ask("history", &["--json"]).json();
    assert_eq!(object["elections"][0]["terms"][0]["from"], history["from"]);
    assert_eq!(get(&observing.address, "/election/nobody").0, 404);

    // A client that follows sees the end of the lead.
    let mut follower = BufReader::new(send(&observing.address, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"));
    run.signal(Signal::SIGTERM);
    let mut line = String::new();
    while !line.contains("released term") {
        line.clear();
        assert!(follower.read_line(&mut line).expect("it goes on") > 0, "the connection was closed");
    }
    assert_eq!(run.status(), 0);
    let (_, metrics) = get(&observing.address, "/metrics");
    let led = format!("neli_election_led{{topic=\"{topic}\",group=\"{}\",role=\"0\"}} 0", election.group);
    wait::until_true("the metric", || get(&observing.address, "/metrics").1.contains(&led));
    assert!(metrics.contains("neli_election_terms_total") && get(&observing.address, "/healthz").0 == 200);

    // It stops at once, in order.
    let pid = observing.child.id();
    Process::child(pid).signal(Signal::SIGTERM);
    let mut observing = observing;
    assert!(observing.child.wait().expect("it ends").success());
}

#[test]
fn topics_that_are_made_remade_and_deleted_are_followed() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    let observing = Observing::start(kafka.address(), &["--topics", &format!("{topic}*")]);
    let line = observing.await_line("none has such a name");
    assert!(line.starts_with("neli-run: warning: --topics "), "{line}");
    assert_eq!(observing.object()["elections"].as_array().map(Vec::len), Some(0));
    let group = Observing::start(kafka.address(), &["--topics", &format!("{topic}*"), "--group", "second"]);
    group.await_line("none has such a name");

    kafka.create_topic(&topic, &STAMPED);
    let pen = Pen::new(kafka, &topic, &[]);
    pen.write("first/0", &[claim(-1, "a").as_bytes(), b"garbage"]);
    pen.write("no election's key", &[b"x"]);
    pen.write_keyless(b"x");
    observing.await_leader("first", Some("a"));
    let line = group.await_line("no election of group \"second\"");
    let place = format!("in any topic {topic}* that this user may see; waiting for one");
    assert!(line.starts_with("neli-run: warning: ") && line.ends_with(&place), "{line}");

    // The new topic has more records than were read of the old one.
    kafka.delete_topic(&topic);
    wait::until("a new topic", || kafka.try_create_replicated_topic(&topic, 1, 1, &STAMPED).ok());
    let pen = Pen::new(kafka, &topic, &[]);
    for after in -1..8 {
        pen.write("second/0", &[claim(after, "b").as_bytes()]);
    }
    observing.await_leader("first", None);
    observing.await_leader("second", Some("b"));
    group.await_leader("second", Some("b"));

    kafka.delete_topic(&topic);
    observing.await_leader("second", None);
    wait::until_true("readiness", || get(&observing.address, "/readyz").0 == 200);
}

/// The last 10,000 records show no record of `gone`, and not since when `led` is led.
#[test]
fn the_day_before_is_read_once_the_present_is_known() {
    let election = election(Elector::Log);
    let (topic, kafka) = (election.topic(), Kafka::shared());
    kafka.create_topic(&topic, &[]);
    let pen = Pen::new(kafka, &topic, &[]);
    let release =
        r#"{"v":1,"kind":"release","member":"m","name":"a","seq":2,"term":0,"seen":0,"why":"stopped","exit":0}"#;
    pen.write_ahead("gone/0", &[claim(-1, "a").as_bytes(), release.as_bytes()], -7_200);
    pen.write_ahead("led/0", &[claim(1, "b").as_bytes()], -7_000);
    pen.write_ahead("x", &vec![&b"x"[..]; 12_000], -3_600);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"b","seq":2,"term":2,"seen":12002,"lease_ms":60000}"#;
    let _heartbeats = RepeatedRecord::start(Pen::new(kafka, &topic, &[]), "led/0".to_owned(), beat.to_owned());
    let observing = Observing::start(kafka.address(), &["--topics", &topic]);
    let found = |group: &str| {
        let object = observing.object();
        object["elections"].as_array()?.iter().find(|election| election["group"] == group).cloned()
    };
    observing.await_leader("led", Some("b"));
    let gone = wait::until("an election of the day before", || found("gone"));
    let last = gone["last_change"]["what"].as_str().unwrap_or_default();
    assert!(gone["state"] == "released" && last.starts_with("term 0 was released"), "{gone}");
    let led = found("led").expect("it is led");
    assert!(led["known_since"].is_null() && led["since"].is_string(), "{led}");
    assert_eq!((led["state"].as_str(), led["leader"].as_str()), (Some("led"), Some("b")), "{led}");
}

#[test]
fn a_kafka_that_was_away_needs_no_restart() {
    let mut broker = Broker::own();
    let kafka = broker.kafka();
    kafka.create_topic("away.neli", &STAMPED);
    let pen = Pen::new(&kafka, "away.neli", &[]);
    pen.write("g/0", &[claim(-1, "a").as_bytes()]);
    let observing = Observing::start(kafka.address(), &[]);
    observing.await_leader("g", Some("a"));
    broker.end();
    observing.await_line("Kafka does not answer");
    wait::until_true("it to say so", || {
        let object = observing.object();
        object["broker"]["up"] == false && get(&observing.address, "/readyz").0 == 503
    });
    assert!(get(&observing.address, "/").1.contains("Kafka has not answered for "));
    broker.begin();
    assert_eq!(journal::read(&kafka, "away.neli").len(), 1, "a broker that was restarted still has its records");
    observing.await_line("Kafka answers again");
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"a","seq":2,"term":0,"seen":0,"lease_ms":60000}"#;
    let _heartbeats = RepeatedRecord::start(Pen::new(&kafka, "away.neli", &[]), "g/0".to_owned(), beat.to_owned());
    observing.await_leader("g", Some("a"));
    let object = observing.object();
    assert!(object["broker"]["up"] == true && object["complete"] == true, "{object}");
}

/// The two other brokers die, of which one leads another topic: the leader can't append, and the answer that shows its silence waits for no broker
/// that is dead.
#[test]
fn a_leader_whose_lease_is_over_is_not_shown_to_lead_while_an_answer_is_late() {
    let mut cluster = Cluster::in_turn();
    let kafka = cluster.kafka();
    kafka.create_topic_on("a.neli", &[1, 2, 3], &STAMPED);
    kafka.create_topic_on("b.neli", &[2, 3, 1], &STAMPED);
    let observing = Observing::start(kafka.address(), &["--topics", "a.neli,b.neli"]);
    observing.await_ready();
    let pen = Pen::new(&kafka, "a.neli", &[]);
    pen.write("g/0", &[claim(-1, "a").replace("60000", "6000").as_bytes()]);
    observing.await_leader("g", Some("a"));
    cluster.broker(1).end();
    cluster.broker(2).end();
    wait::until_true("a silent leader", || {
        let shown = observing.object()["elections"][0].take();
        assert!(shown["state"] != "led" || shown["lease_left_ms"] != 0, "{shown}");
        shown["state"] == "silent"
    });
}

/// A thousand clients that follow the page and never read, of which sixteen are served; fewer where this process may not open so many files.
#[test]
fn streams_that_nobody_reads_do_not_keep_it_from_answering() {
    let election = election(Elector::Log);
    let topic = election.topic();
    Kafka::shared().create_topic(&topic, &STAMPED);
    let pen = Pen::new(Kafka::shared(), &topic, &[]);
    for after in -1..99 {
        pen.write(&format!("group-{after}/0"), &[claim(after, "a").as_bytes()]);
    }
    let observing = Observing::start(Kafka::shared().address(), &["--topics", &topic]);
    observing.await_leader("group-98", Some("a"));
    let follow = || send(&observing.address, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    let (soft, _) = getrlimit(resource::Resource::RLIMIT_NOFILE).expect("every process has limits");
    let streams: Vec<_> = (0..if soft > 2_048 { 1_000 } else { 500 }).map(|_| follow()).collect();
    for path in ["/healthz", "/readyz", "/elections"] {
        assert_eq!(get(&observing.address, path).0, 200, "{path}");
    }
    drop(streams);
    wait::until_true("a place for a new one", || {
        let mut line = String::new();
        BufReader::new(follow()).read_line(&mut line).is_ok_and(|_| line.starts_with("HTTP/1.1 200"))
    });
}

#[test]
fn a_topic_that_may_not_be_read_is_named_and_hides_no_other() {
    let guarded = Guarded::new(Elector::Log);
    let topic = guarded.election.topic();
    let (open, closed) = (format!("{topic}-open"), format!("{topic}-closed"));
    let (rights, tenant) = (Rights::of(&guarded.plain), Account::Tenant.name());
    for name in [&open, &closed] {
        guarded.plain.create_topic(name, &STAMPED);
        Pen::new(&guarded.plain, name, &[]).write(&format!("{name}/0"), &[claim(-1, "a").as_bytes()]);
    }
    rights.make(&[
        Rule::allow(tenant, Resource::Topic(&open), Operation::Read),
        Rule::allow(tenant, Resource::Topic(&closed), Operation::Describe),
    ]);
    let properties = login(tenant, PASSWORD);
    let properties: Vec<String> = properties.iter().map(|(key, value)| format!("--property={key}={value}")).collect();
    let pattern = format!("{topic}-*");
    let words: Vec<&str> = ["--topics", &pattern].into_iter().chain(properties.iter().map(String::as_str)).collect();
    let observing = Observing::start(&guarded.address, &words);
    observing.await_leader(&open, Some("a"));
    let line = observing.await_line("no right to READ it");
    assert!(line.contains(&closed), "{line}");
    let object = observing.object();
    assert_eq!(object["unread"][0]["topic"], closed.as_str(), "{object}");
    assert!(get(&observing.address, "/").1.contains("no right to READ it"));
    rights.make(&[Rule::allow(tenant, Resource::Topic(&closed), Operation::Read)]);
    observing.await_leader(&closed, Some("a"));
    assert_eq!(observing.object()["unread"].as_array().map(Vec::len), Some(0));
    // Kafka lists it no more, as if it were gone.
    rights.unmake(
        &[Operation::Describe, Operation::Read]
            .map(|operation| Rule::allow(tenant, Resource::Topic(&closed), operation)),
    );
    let line = observing.await_line("no right to DESCRIBE it");
    assert!(line.contains(&closed), "{line}");
    wait::until_true("the topic that can't be seen", || observing.object()["unread"][0]["topic"] == closed.as_str());
    let metrics = get(&observing.address, "/metrics").1;
    assert!(metrics.contains("neli_observe_topics_unread 1\n"), "{metrics}");
    let is_led = |topic: &str| metrics.contains(&format!("neli_election_led{{topic=\"{topic}\""));
    assert!(is_led(&open) && !is_led(&closed), "no alert says that nobody leads: {metrics}");
}

/// Kafka lists no topic that its user may not see.
#[test]
fn a_topic_that_is_named_and_may_not_be_seen_is_named() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let topic = guarded.election.topic();
    let properties = login(Account::Tenant.name(), PASSWORD);
    let properties: Vec<String> = properties.iter().map(|(key, value)| format!("--property={key}={value}")).collect();
    let words: Vec<&str> = ["--topics", &topic].into_iter().chain(properties.iter().map(String::as_str)).collect();
    let observing = Observing::start(&guarded.address, &words);
    let line = observing.await_line("no right to DESCRIBE it");
    assert!(line.contains(&topic), "{line}");
    assert_eq!(observing.object()["unread"][0]["topic"], topic.as_str());
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let brokers = Kafka::shared().address();
    for (arguments, words, status) in [
        (&["--brokers", brokers][..], "--listen is required", 125),
        (&["--brokers", brokers, "--listen", "nonsense"], "--listen nonsense: must be HOST:PORT", 125),
        (&["--brokers", brokers, "--listen", &address], "address already in use", 86),
        (&["--brokers", brokers, "--listen", ":0", "--topics", "a b"], "--topics 'a b': must be names of topics", 125),
        (&["--brokers", brokers, "--listen", ":0", "--topics", "a,"], "--topics a,: must be names of topics", 125),
    ] {
        let mut command = Command::new(PROGRAM);
        command.arg("observe").args(arguments);
        let answer = Answer::of(command);
        assert!(answer.errors.to_lowercase().contains(&words.to_lowercase()), "{words}: {answer:?}");
        assert_eq!((answer.status, answer.errors.lines().count()), (status, 1), "{answer:?}");
    }
}
