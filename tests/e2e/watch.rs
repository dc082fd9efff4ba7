//! `watch`: the verdict of the law on every record, of any program.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;

use harness::candidate::Elector;
use harness::election::{Answer, TestElection};
use harness::journal::{Pen, RepeatedRecord, end};
use harness::kafka::{Kafka, Wired};
use harness::schema::Schema;
use harness::terminal::{Ctrl, Shell, Terminal};
use harness::wait;
use serde_json::Value;

use crate::{PROGRAM, election};

/// Creates an election's topic with these records under its key.
fn written(records: &[&str]) -> (TestElection, Pen) {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let payloads: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();
    pen.write(&election.key(), &payloads);
    (election, pen)
}

fn claim(after: i64) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":{after},"lease_ms":5000}}"#)
}

fn beat(term: i64, seen: i64) -> String {
    format!(
        r#"{{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":{term},"seen":{seen},"lease_ms":5000,"state":"running","pid":7,"attempt":1,"since_ms":0}}"#
    )
}

/// Heartbeats of the leader of this election.
fn beating(election: &TestElection, beat: String) -> RepeatedRecord {
    RepeatedRecord::start(Pen::new(Kafka::shared(), &election.topic(), &[]), election.key(), beat)
}

const RELEASE: &str =
    r#"{"v":1,"kind":"release","member":"m","name":"web","seq":3,"term":0,"seen":1,"why":"exited","exit":3}"#;

fn watch(election: &TestElection, arguments: &[&str]) -> Command {
    let mut watch = Command::new(PROGRAM);
    watch.args(["watch", "--group", &election.group, "--brokers", Kafka::shared().address()]).args(arguments);
    watch.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    watch
}

/// The output with the arguments, as lines and whole, and the exit status.
fn watched(election: &TestElection, arguments: &[&str]) -> (Vec<String>, String, i32) {
    let Answer { text, errors, status } = Answer::of(watch(election, arguments));
    (text.lines().map(str::to_owned).collect(), errors, status)
}

#[test]
fn shows_the_verdict_on_every_record() {
    let (election, pen) = written(&[&claim(-1), &beat(0, 0), "nonsense", &claim(1), RELEASE]);
    pen.write("another/0", &[claim(-1).as_bytes()]);
    pen.write(&format!("{}/hello", election.key()), &[b"{}"]);
    pen.write_tombstone(&election.key());
    pen.write(&election.key(), &[claim(7).as_bytes()]);
    let verdicts: Vec<(i64, String, Option<i64>)> = election
        .verdicts()
        .iter()
        .map(|line| {
            let number = |field: &str| line[field].as_i64();
            (
                number("offset").expect("an offset"),
                line["verdict"].as_str().unwrap_or_default().to_owned(),
                number("term"),
            )
        })
        .collect();
    let expected = [
        (0, "effective", Some(0)),
        (1, "effective", Some(0)),
        (2, "nonsense", Some(0)),
        (3, "void", Some(0)),
        (4, "effective", None),
        (7, "nonsense", None),
        (8, "effective", Some(8)),
    ];
    assert_eq!(verdicts, expected.map(|(offset, verdict, term)| (offset, verdict.to_owned(), term)));
    assert_eq!(election.verdicts()[0]["record"], serde_json::from_str::<Value>(&claim(-1)).expect("JSON"));
}

#[test]
fn begins_at_the_given_offset_and_judges_by_earlier_records() {
    let (election, _) = written(&[&claim(-1), &beat(0, 0), RELEASE]);
    let (lines, _, status) = watched(&election, &["--json", "--from", "2", "--until-end"]);
    assert_eq!((lines.len(), status), (1, 0));
    assert!(lines[0].contains(r#","partition":0,"offset":2,"verdict":"effective","term":null,"#), "{lines:?}");
    assert_eq!(watched(&election, &["--json", "--from", "3", "--until-end"]).0.len(), 0);
    assert_eq!(watched(&election, &["--json", "--until-end"]).0.len(), 0);
    let (_, error, status) = watched(&election, &["--from", "4"]);
    assert_eq!((error.as_str(), status), ("neli-run: --from 4: must be at most 3, the log's end\n", 125));
    let (lines, _, _) = watched(&election, &["--from", "start", "--until-end"]);
    let sentences: Vec<&str> =
        lines.iter().filter_map(|line| line.split_once(' ')).map(|(_, watched)| watched).collect();
    let expected = [
        "web leads, term 0",
        "web: the job runs, pid 7",
        "term 0 was released: the job has ended (the job's status: 3)",
    ];
    assert_eq!(sentences, expected);
}

/// Earlier records are read but not shown; each line is checked against docs/json.md.
#[test]
fn begins_at_a_given_age_and_shows_hellos_with_all() {
    let (election, pen) = written(&[&claim(-1), &beat(0, 0)]);
    let hello = br#"{"v":1,"kind":"hello","member":"m","name":"web","seq":1,"host":"h"}"#;
    pen.write(&format!("{}/hello", election.key()), &[hello, b"garbage"]);
    pen.write("another/0/hello", &[hello]);
    let (lines, _, status) = watched(&election, &["--json", "--all", "--from", "1h", "--until-end"]);
    let schema = Schema::read(include_str!("../../docs/json.md"), "watch");
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let verdicts: Vec<&str> = lines.iter().map(|line| line["verdict"].as_str().unwrap_or_default()).collect();
    assert_eq!((verdicts, status), (vec!["effective", "effective", "hello", "hello"], 0));
    for line in &lines {
        schema.assert_holds(line);
    }
    let (lines, _, _) = watched(&election, &["--all", "--from", "1h", "--until-end"]);
    assert!(lines.len() == 3 && lines[2].ends_with(" web says hello: on h"), "{lines:?}");
    wait::until_true("a second after what was written", || {
        watched(&election, &["--from", "1s", "--until-end"]).0.is_empty()
    });
}

#[test]
fn reports_changes_as_they_happen_until_its_reader_closes() {
    let (election, pen) = written(&[&claim(-1), &beat(0, 0)]);
    let heartbeats = beating(&election, beat(0, 0));
    let mut watch = watch(&election, &[]).spawn().expect("the program is there");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let (sender, watched) = sync_channel(0);
    // The thread ends and closes the pipe when the receiver is dropped.
    let listener = thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let next = || watched.recv_timeout(wait::PATIENCE).expect("a line");
    assert!(next().ends_with(" as of now: web leads, term 0: the job runs, pid 7"));
    drop(heartbeats);
    let overdue = next();
    assert!(overdue.contains(" web has been silent for ") && overdue.contains(", another may claim in "), "{overdue}");
    let silent = next();
    assert!(silent.contains(" no leader: web has been silent for "), "{silent}");
    pen.write(&election.key(), &[RELEASE.as_bytes()]);
    assert!(next().ends_with(" term 0 was released: the job has ended (the job's status: 3)"));
    drop(watched);
    let last = end(Kafka::shared(), &election.topic()) - 1;
    pen.write(&election.key(), &[claim(last).as_bytes()]);
    assert!(listener.join().expect("no panic").is_err(), "a line that nobody takes");
    pen.write(&election.key(), &[beat(last + 1, last + 1).as_bytes()]);
    let status = wait::until("an end of watch", || watch.try_wait().expect("a child can be waited for"));
    assert_eq!(status.code(), Some(0));
}

/// Also if its lease ends before it is noticed that Kafka is away.
#[test]
fn no_leader_is_silent_while_kafka_is_away() {
    let wired = Wired::take();
    let kafka = wired.direct();
    kafka.create_topic("away.neli", &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(&kafka, "away.neli", &[]);
    let short = |record: String| record.replace("5000", "2000");
    pen.write("away/0", &[short(claim(-1)).as_bytes()]);
    let _heartbeats = RepeatedRecord::start(pen, "away/0".to_owned(), short(beat(0, 0)));
    let mut watch = Command::new(PROGRAM);
    watch.args(["watch", "--group", "away", "--brokers", wired.kafka().address()]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program is there");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut warnings = BufReader::new(watch.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.next().is_some_and(|line| line.contains(" as of now: web leads, term 0")));
    wired.freeze();
    assert!(warnings.any(|line| line.contains("Kafka does not answer")), "an outage");
    watch.kill().and_then(|()| watch.wait()).expect("a child");
    assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "nothing is said of the leader");
}

/// On a terminal it draws a page: leader, job, a bar for the lease, standbys, and the last events.
#[test]
fn on_a_terminal_it_is_a_page() {
    let (election, pen) = written(&[&claim(-1).replace("5000", "60000"), &beat(0, 0).replace("5000", "60000")]);
    let _heartbeats = beating(&election, beat(0, 0).replace("5000", "60000"));
    let facts = format!("{}.once", election.topic());
    Kafka::shared().create_topic(&facts, &[]);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let line = format!("{PROGRAM} watch --group {} --brokers {}", election.group, Kafka::shared().address());
    for columns in [20, 80] {
        terminal.resize(24, columns);
        let first = terminal_page(&mut terminal, &format!("NO_COLOR=1 TERM=xterm {line}"));
        let lines: Vec<&str> = first.lines().map(|line| line.trim_end_matches("\u{1b}[K")).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {first}");
        assert!(!first.contains("\u{1b}[1;3"), "NO_COLOR: {first}");
        assert!(first.contains("####"), "{first}");
        let words = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(": web leads ") && words.contains("standbys none"), "{words}");
        assert!(words.ends_with("web: the job runs, pid 7"), "{words}");
    }
    let hello = |standby: u32| format!(r#"{{"v":1,"kind":"hello","member":"s{standby}","name":"s{standby}","seq":1}}"#);
    (0..39).for_each(|standby| pen.write(&format!("{}/hello", election.key()), &[hello(standby).as_bytes()]));
    terminal.resize(30, 80);
    let page = terminal_page(&mut terminal, &format!("NO_COLOR=1 TERM=xterm {line}"));
    assert!(page.contains(" more\u{1b}[K") && page.contains("web: the job runs, pid 7"), "{page}");
    terminal.type_line(&format!("TERM=xterm {line}"));
    terminal.await_text("\u{1b}[1;32m");
    let fact = r#"{"v":1,"key":"k","outcome":"done","term":0,"member":"m","name":"web","exit":0,"attempt":1}"#;
    Pen::new(Kafka::shared(), &facts, &[]).write(&format!("{}/k", election.key()), &[fact.as_bytes()]);
    // The run lies between two pages.
    let (run, after) = (beat(0, 0).replace('7', "8"), beat(0, 0));
    pen.write(
        &election.key(),
        &[run, after].map(|beat| beat.replace("5000", "60000")).each_ref().map(String::as_bytes),
    );
    terminal.await_text("k: done by web");
    pen.write(&election.key(), &[RELEASE.as_bytes()]);
    terminal.await_text("\u{1b}[1;31m");
    terminal.await_text("term 0 was released: the job has ended");
    terminal.press(Ctrl::C);
    terminal.await_prompt();
    // Only the output as lines contains this.
    let text = terminal.run(&format!("TERM=xterm {line} --from start --until-end"));
    assert!(text.contains("Z web leads, term 0") && !text.contains('\u{1b}'), "{text}");
}

/// Runs the command line until its first page, and interrupts it.
fn terminal_page(terminal: &mut Terminal, line: &str) -> String {
    terminal.type_line(line);
    terminal.await_text("\u{1b}[H");
    let page = terminal.await_text("\u{1b}[J");
    terminal.press(Ctrl::C);
    terminal.await_prompt();
    page
}

#[test]
fn makes_no_topic() {
    let election = election(Elector::Log);
    let (lines, error, status) = watched(&election, &[]);
    assert_eq!((lines.len(), status), (0, 125));
    let topic = election.topic();
    assert!(error.starts_with(&format!("neli-run: topic \"{topic}\" does not exist; ")), "{error}");
    assert_eq!(error.lines().count(), 1);
    assert!(!Kafka::shared().has_topic(&topic));
}

#[test]
fn an_empty_log_has_an_end() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[]);
    assert_eq!(end(Kafka::shared(), &election.topic()), 0);
    assert_eq!(watched(&election, &["--json", "--from", "start", "--until-end"]), (vec![], String::new(), 0));
}

/// As with `status`, the wait for an unreachable broker is limited by `--timeout`.
#[test]
fn the_wait_for_kafka_s_first_answers_is_limited_by_timeout() {
    let mut command = Command::new(PROGRAM);
    command.args(["watch", "--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    let answer = Answer::of(command);
    assert_eq!((answer.text.as_str(), answer.status), ("", 4), "{answer:?}");
    let last = answer.errors.lines().last().unwrap_or_default();
    assert!(last.starts_with("neli-run: can't tell who leads: 127.0.0.1:1"), "{answer:?}");
    assert!(last.ends_with(" (no answer within 2s)"), "{answer:?}");
}
