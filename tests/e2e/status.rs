//! `status`: the leader, or why there is none, according to the topic alone.

use std::net::TcpListener;
use std::process::Command;

use harness::candidate::Elector;
use harness::election::{Answer, TestElection};
use harness::journal::{Pen, RepeatedRecord};
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::terminal::{Ctrl, Shell, Terminal};
use harness::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{PROGRAM, election};

/// The exit status and the JSON, which is checked against docs/json.md.
fn json(election: &TestElection) -> (Value, i32) {
    let answer = election.ask("status", &["--json"]);
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "status").assert_holds(&object);
    (object, answer.status)
}

/// Creates an election's topic, and returns a producer for it.
fn written(election: &TestElection) -> Pen {
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    Pen::new(Kafka::shared(), &election.topic(), &[])
}

fn claim(after: i64) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":{after},"lease_ms":300}}"#)
}

#[test]
fn a_leader_and_a_standby_are_shown() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().option("--name", "first").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let mut standby = election.candidate().option("--name", "second").option("--elect", "log").start();
    standby.await_event("standby");
    wait::until_true("the hellos of both", || {
        let (object, _) = json(&election);
        object["leader"]["hello"].is_object()
            && object["standbys"].as_array().is_some_and(|standbys| standbys.len() == 1)
    });

    let (object, status) = json(&election);
    assert_eq!((object["state"].as_str(), status), (Some("led"), 0), "{object}");
    assert_eq!(object["leader"]["name"], "first");
    assert_eq!(object["leader"]["term"].as_u64(), Some(term));
    assert_eq!(object["leader"]["job"]["state"], "running");
    assert_eq!(object["leader"]["lease_ms"], 20_000);
    assert!(object["leader"]["heartbeat_age_ms"].as_u64().is_some_and(|age| age < 20_000), "{object}");
    assert_eq!(object["leader"]["hello"]["elector"], "group");
    assert_eq!(object["standbys"][0]["name"], "second");

    let Answer { text, errors, status } = election.ask("status", &[]);
    assert_eq!((errors.as_str(), status), ("", 0));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{}: first leads", election.group));
    assert!(lines[1].starts_with(&format!("term       {term}, since 20")), "{text}");
    assert!(lines[2].starts_with("job        running for "), "{text}");
    assert!(lines[3].starts_with("lease      20s, "), "{text}");
    let last = lines.last().copied().unwrap_or_default();
    assert!(last.starts_with("standbys   second, hello ") && last.ends_with(", --elect log"), "{text}");

    // Its last hello reports that it leaves. Otherwise it would be shown for 75 s after its last hello.
    standby.signal(Signal::SIGTERM);
    assert_eq!(standby.status(), 143);
    wait::until_true("no standby", || json(&election).0["standbys"].as_array().is_some_and(Vec::is_empty));
    election.close([leader]);
}

#[test]
fn a_released_term_is_shown_with_its_reason() {
    let election = election(Elector::Log);
    let mut run = election.candidate().option("--name", "first").job(["sh", "-c", "exit 3"]).start();
    assert_eq!(run.status(), 3);
    let (object, status) = json(&election);
    assert_eq!((object["state"].as_str(), status), (Some("released"), 3), "{object}");
    assert_eq!((object["release"]["why"].as_str(), object["release"]["exit"].as_u64()), (Some("exited"), Some(3)));
    let answer = election.ask("status", &[]);
    let words = ["no leader: first released term ", " ago: the job has ended (the job's status: 3)\n"];
    assert!(words.iter().all(|word| answer.text.contains(word)), "{}", answer.text);
    assert!(answer.text.ends_with("standbys   none\n"), "{}", answer.text);
    assert_eq!(answer.status, 3);
}

/// Its guard is killed too, so no term is released.
#[test]
fn a_leader_that_is_silent_beyond_its_lease_is_no_leader() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().option("--name", "first").lease("3s").start();
    let term = leader.await_lead();
    let knows_job = || json(&election).0["leader"]["job"]["for_ms"].is_u64();
    wait::until_true("a heartbeat with the job", knows_job);
    let guard = leader.guard();
    leader.signal(Signal::SIGSTOP);
    guard.signal(Signal::SIGKILL);
    leader.signal(Signal::SIGKILL);
    leader.status();
    election.await_gone(term);
    let answer = wait::until("a leader that is silent", || {
        let answer = election.ask("status", &[]);
        (answer.status == 3).then_some(answer)
    });
    let head = answer.text.lines().next().unwrap_or_default();
    let expected = format!("{}: no leader: first has been silent for ", election.group);
    assert!(head.starts_with(&expected) && head.ends_with(" (lease 3s)"), "{}", answer.text);
    assert!(answer.text.contains("\nclaimable  since "), "{}", answer.text);
    let (object, status) = json(&election);
    assert_eq!((object["state"].as_str(), status), (Some("silent"), 3), "{object}");
    assert_eq!(object["leader"]["lease_left_ms"], 0);
    let known = object["leader"]["job"]["for_ms"].as_u64().expect("as of its last heartbeat");
    assert_eq!(json(&election).0["leader"]["job"]["for_ms"].as_u64(), Some(known), "nothing is known of it since then");
}

/// The candidates' clocks gave the timestamps, so they do not count at once. On a terminal a line explains the wait.
#[test]
fn the_wait_for_a_heartbeat_is_explained_on_a_terminal() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "CreateTime")]);
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[claim(-1).as_bytes()]);
    let answer = wait::until("a leader that is silent", || {
        let answer = election.ask("status", &[]);
        (answer.status == 3).then_some(answer)
    });
    assert_eq!(answer.errors, "", "piped it says nothing");
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let line = format!("{PROGRAM} status --group {} --brokers {}", election.group, Kafka::shared().address());
    let shown = terminal.run(&line);
    assert!(
        shown.contains("neli-run: the last heartbeat of web is ")
            && shown.contains(" old (lease 300ms); listening for 400ms, "),
        "{shown}"
    );
    assert!(shown.contains("no leader: web has been silent for "), "{shown}");
}

/// A mistyped name: the error lists the existing groups.
#[test]
fn an_election_without_a_leader_so_far_is_reported_with_the_groups_that_exist() {
    let election = election(Elector::Log);
    let pen = written(&election);
    let answer = election.ask("status", &[]);
    let head = format!("{}: no leader: nobody has ever led\nstandbys   none\n", election.group);
    assert_eq!((answer.text, answer.status), (head, 3));
    // A closed pipe on stdout must not lead to an endless loop.
    let (read, write) = std::io::pipe().expect("a pipe");
    drop(read);
    let mut command = Command::new(PROGRAM);
    command.args(["status", "--group", &election.group, "--brokers", Kafka::shared().address()]).stdout(write);
    assert_eq!(command.status().expect("the program is there").code(), Some(3));
    pen.write("billing/0", &[claim(-1).as_bytes()]);
    pen.write("mail/ingest/hello", &[b"{}"]);
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\ngroups     this topic has billing, mail\n"), "{}", answer.text);
    assert_eq!(json(&election).0["state"], "never-led");
}

#[test]
fn invalid_records_are_ignored() {
    let election = election(Elector::Log);
    let pen = written(&election);
    pen.write_tombstone(&election.key());
    pen.write_keyless(b"\xff\xfe");
    pen.write(&election.key(), &[b"\xff\x00", b"{}", &[b'x'; 5_000]]);
    pen.write(&format!("{}/hello", election.key()), &[b"[]", br#"{"v":1,"kind":"hello","member":"h","name":"a\nb"}"#]);
    pen.write(&election.key(), &[claim(4).as_bytes()]);
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\nstandbys   a\\nb, hello "), "{answer:?}");
    assert!(answer.text.starts_with(&format!("{}: ", election.group)) && answer.errors.is_empty(), "{answer:?}");
}

#[test]
fn a_topic_that_does_not_exist_is_reported() {
    let election = election(Elector::Log);
    let other = crate::election(Elector::Log);
    written(&other);
    let answer = election.ask("status", &[]);
    let line = format!("neli-run: topic \"{}\" does not exist; topics *.neli: ", election.topic());
    assert!(answer.errors.starts_with(&line) && answer.errors.lines().count() == 1, "{answer:?}");
    assert_eq!((answer.text.as_str(), answer.status), ("", 125));
    assert!(!Kafka::shared().has_topic(&election.topic()));
}

#[test]
fn a_broker_that_is_away_is_reported() {
    let mut command = Command::new(PROGRAM);
    command.args(["status", "--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    let answer = Answer::of(command);
    assert_eq!((answer.text.as_str(), answer.status), ("", 4), "{answer:?}");
    assert!(answer.errors.starts_with("neli-run: can't tell who leads: 127.0.0.1:1"), "{answer:?}");
    assert!(answer.errors.ends_with(" (no answer within 2s)\n"), "{answer:?}");
    let mut command = Command::new(PROGRAM);
    command.args(["status", "--json", "--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    let answer = Answer::of(command);
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "status").assert_holds(&object);
    assert_eq!((object["state"].as_str(), answer.status), (Some("unknown"), 4));
}

/// A broker that accepts connections, and answers nothing.
#[test]
fn a_broker_that_is_silent_is_reported() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    // After 2 s librdkafka tells of it.
    for timeout in ["500ms", "4s"] {
        let mut command = Command::new(PROGRAM);
        command.args(["status", "--group", "g", "--brokers", &address, "--timeout", timeout]);
        let why = format!("{address}: no answer within {timeout}; on a slow link a longer --timeout helps");
        assert_eq!(Answer::of(command).errors, format!("neli-run: can't tell who leads: {why}\n"));
    }
}

/// The claim of a long-lived leader is older than the part of the log that is read. So the claim is read separately.
#[test]
fn the_begin_of_a_long_lead_is_read_from_its_claim() {
    let election = election(Elector::Log);
    let pen = written(&election);
    pen.write(&election.key(), &[claim(-1).as_bytes()]);
    let other = vec![&b"x"[..]; 12_000];
    for records in other.chunks(500) {
        pen.write("another/0", records);
    }
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":12000,"lease_ms":60000,"state":"running","pid":7,"attempt":1,"since_ms":0}"#;
    pen.write(&election.key(), &[beat.as_bytes()]);
    // If that takes long, the leader has fallen silent.
    let (object, _) = json(&election);
    assert_eq!(object["leader"]["term"], 0, "{object}");
    assert!(object["leader"]["since"].is_string(), "{object}");
}

/// `--once` and `--window`: the recorded result of the last run.
#[test]
fn the_last_run_is_named_with_its_key_or_window() {
    let election = election(Elector::Log);
    let run = |option: (&str, &str)| election.candidate().option("--name", "first").option(option.0, option.1);
    assert!(json(&stage_without_runs()).0["last_run"].is_null());
    assert_eq!(run(("--once", "v1.42")).job(["true"]).start().status(), 0);
    let (object, _) = json(&election);
    let last_run = ["key", "outcome", "by"].map(|field| object["last_run"][field].as_str());
    assert_eq!(last_run, [Some("v1.42"), Some("done"), Some("first")], "{object}");
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\nonce       v1.42: done by first at 20"), "{answer:?}");
    assert_eq!(
        (&object["runs"]["count"], &object["runs"]["last_success"]["by"]),
        (&1.into(), &"first".into()),
        "{object}"
    );
    let of_key = |key: &str| {
        let answer = election.ask("status", &["--once", key, "--json"]);
        let object = answer.json();
        Schema::read(include_str!("../../docs/json.md"), "status --once").assert_holds(&object);
        assert!(object["run"]["window_start"].is_null() && object["run"]["window_end"].is_null(), "{object}");
        (object["state"].as_str().unwrap_or_default().to_owned(), object["run"]["by"].clone(), answer.status)
    };
    assert_eq!(of_key("v1.42"), ("done".to_owned(), "first".into(), 0));
    assert_eq!(of_key("v2"), ("not-recorded".to_owned(), Value::Null, 3));
    assert_eq!(run(("--once", "v3")).job(["sh", "-c", "exit 3"]).start().status(), 3);
    assert_eq!(of_key("v3"), ("failed".to_owned(), "first".into(), 3));
    let mut stopped = run(("--once", "v4")).job(["sleep", "600"]).start();
    stopped.await_event("job_started");
    let is_left = || {
        let answer = election.ask("status", &[]);
        assert!(answer.text.contains("\nonce       v4: begun by first at 20"), "{answer:?}");
        answer.text.contains("; its runner is gone\n")
    };
    let outcome = || json(&election).0["last_run"]["outcome"].clone();
    assert_eq!((is_left(), outcome()), (false, "running".into()));
    stopped.signal(Signal::SIGTERM);
    stopped.status();
    assert_eq!((is_left(), outcome()), (true, "interrupted".into()));
    let pen = Pen::new(Kafka::shared(), &format!("{}.once", election.topic()), &[]);
    for place in ["v1.42%attempt", "v3"] {
        pen.write(&format!("{}/{place}", election.key()), &[b"nonsense"]);
    }
    assert_eq!(of_key("v1.42"), ("done".to_owned(), "first".into(), 0), "a candidate says the same");
    assert_eq!(run(("--once", "v1.42")).job(["false"]).start().status(), 0);
    assert_eq!(of_key("v3"), ("unknown".to_owned(), Value::Null, 4), "it may be done");
    let answer = election.ask("status", &["--once", "v2"]);
    assert!(answer.status == 3 && answer.text.ends_with(": v2: nothing is recorded\n"), "{answer:?}");
    assert_eq!(run(("--window", "1d")).job(["sh", "-c", "exit 3"]).start().status(), 3);
    let (object, _) = json(&election);
    assert_eq!(object["last_run"]["outcome"], "failed", "{object}");
    assert_eq!((object["last_run"]["window_start"].is_string(), &object["last_run"]["exit"]), (true, &3.into()));
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\nwindow     20") && answer.text.contains("; the next begins at 20"), "{answer:?}");
}

/// The facts could not be written when the run ended.
#[test]
fn the_last_run_has_ended_as_its_release_says() {
    let election = election(Elector::Log);
    let (pen, facts) = (written(&election), format!("{}.once", election.topic()));
    Kafka::shared().create_topic(&facts, &[]);
    let fact = r#"{"v":1,"key":"k","outcome":"running","term":0,"member":"m","name":"web","attempt":1}"#;
    Pen::new(Kafka::shared(), &facts, &[]).write(&format!("{}/k%attempt", election.key()), &[fact.as_bytes()]);
    let release = r#"{"v":1,"kind":"release","member":"m","name":"web","seq":2,"term":0,"seen":0,"why":"exited","exit":0,"once":"k"}"#;
    pen.write(&election.key(), &[claim(-1).as_bytes(), release.as_bytes()]);
    let (object, _) = json(&election);
    assert_eq!((&object["last_run"]["outcome"], &object["last_run"]["exit"]), (&"done".into(), &0.into()), "{object}");
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\nonce       k: done by web (term 0, status 0)\n"), "{answer:?}");
}

/// An election whose topic exists, without a topic of facts.
fn stage_without_runs() -> TestElection {
    let election = election(Elector::Log);
    written(&election);
    election
}

/// `--overlap`: a leader that waits for its successor, and then the old job that may run beside the new one.
#[test]
fn a_job_that_may_run_beside_the_leader_s_is_shown() {
    let election = election(Elector::Log);
    let pen = written(&election);
    let of = |member: &str, fields: &str| {
        format!(r#"{{"v":1,"member":"{member}","name":"{member}","lease_ms":60000,"overlap_ms":2000,{fields}}}"#)
    };
    let claim = of("old", r#""kind":"claim","seq":1,"after":-1"#);
    let yields =
        of("old", r#""kind":"beat","seq":2,"term":0,"seen":0,"state":"running","pid":7,"attempt":1,"yields":true"#);
    pen.write(&election.key(), &[claim.as_bytes(), yields.as_bytes()]);
    let answer = election.ask("status", &[]);
    let sentence = "old leads (it is to stop; its job runs on until another has claimed)";
    assert!(answer.text.contains(sentence), "{answer:?}");
    assert_eq!(json(&election).0["why"], sentence);
    pen.write(&election.key(), &[of("new", r#""kind":"claim","seq":1,"after":1,"over":0"#).as_bytes()]);
    let (object, _) = json(&election);
    assert_eq!((&object["leader"]["name"], &object["earlier_job"]["name"]), (&"new".into(), &"old".into()), "{object}");
    assert_eq!(object["earlier_job"]["term"], 0);
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("\noverlap    the job of term 0 of old may run beside it, for 1m"), "{answer:?}");
}

/// `watch` on a terminal: every second the page replaces the previous one.
#[test]
fn it_is_shown_again_until_it_is_interrupted() {
    let election = election(Elector::Log);
    let pen = written(&election);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let line = format!("{PROGRAM} watch --group {} --brokers {}", election.group, Kafka::shared().address());
    terminal.type_line(&format!("TERM=xterm {line}"));
    terminal.await_text("\u{1b}[H");
    terminal.await_text("nobody has ever led");
    pen.write(&election.key(), &[claim(-1).replace("300", "60000").as_bytes()]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":60000}"#;
    let _heartbeats = RepeatedRecord::start(pen, election.key(), beat.to_owned());
    terminal.await_text(&format!("\u{1b}[H\u{1b}[1;32m{}: web leads", election.group));
    terminal.press(Ctrl::C);
    terminal.await_prompt();
}

#[test]
fn on_a_terminal_it_is_coloured_and_as_wide_as_that() {
    let election = election(Elector::Log);
    written(&election);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let line = format!("{PROGRAM} status --group {} --brokers {}", election.group, Kafka::shared().address());
    terminal.run("stty cols 20");
    let plain = terminal.run(&line);
    let widest =
        plain.lines().filter(|line| !line.contains("status")).map(|line| line.trim_end().chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 20), "{plain}");
    assert!(!plain.contains('\u{1b}'), "a dumb terminal knows no colours: {plain}");
    assert!(terminal.run(&format!("TERM=xterm {line}")).contains("\u{1b}[1;31m"));
    assert!(!terminal.run(&format!("NO_COLOR=1 TERM=xterm {line}")).contains('\u{1b}'));
}
