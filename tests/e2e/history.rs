//! `history`: the terms that the topic still contains, and anomalies in them.

use std::fs;

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::election;

const PAGE: &str = include_str!("../../docs/json.md");

/// The exit status and each line of JSON, which is checked against docs/json.md.
fn json(election: &TestElection, arguments: &[&str]) -> (Vec<Value>, i32) {
    let answer = election.ask("history", &[&["--json"], arguments].concat());
    assert_eq!(answer.errors, "", "{answer:?}");
    let lines: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (term, finding) = (Schema::read(PAGE, "history"), Schema::read(PAGE, "history --check"));
    for line in &lines {
        if line["kind"] == "term" { term.assert_holds(line) } else { finding.assert_holds(line) }
    }
    (lines, answer.status)
}

fn written(election: &TestElection, records: &[&str]) {
    written_with("LogAppendTime", election, records);
}

/// The same in a topic whose timestamps are of this type.
fn written_with(timestamps: &str, election: &TestElection, records: &[&str]) {
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", timestamps)]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let payloads: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();
    pen.write(&election.key(), &payloads);
}

#[test]
fn each_term_is_shown_with_its_end_and_the_gap_to_the_next() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "first").start();
    let earlier = first.await_lead();
    election.await_witness(earlier);
    let mut second = election.candidate().option("--name", "second").start();
    second.await_event("standby");
    first.signal(Signal::SIGTERM);
    let term = second.await_lead();
    election.await_witness(term);
    let (lines, status) = json(&election, &[]);
    let shown: Vec<(&str, &str)> =
        lines.iter().map(|line| (line["name"].as_str().unwrap_or("?"), line["end"].as_str().unwrap_or("?"))).collect();
    assert_eq!((shown, status), (vec![("first", "released"), ("second", "leads")], 0));
    assert_eq!((lines[0]["why"].as_str(), lines[0]["exit"].as_u64()), (Some("stopped"), Some(0)));
    assert!(lines[0]["gap_ms"].is_u64() && lines[1]["gap_ms"].is_null(), "{lines:?}");

    let answer = election.ask("history", &[]);
    let rows: Vec<&str> = answer.text.lines().collect();
    assert!(rows[0].starts_with("TERM  LEADER  FROM"), "{answer:?}");
    assert!(
        rows[1].starts_with(&format!("{earlier:<4}  first   20")) && rows[1].contains("a signal to neli-run"),
        "{answer:?}"
    );
    assert!(rows[2].starts_with(&format!("{term:<4}  second  20")) && rows[2].ends_with("  leads"), "{answer:?}");

    let answer = election.ask("history", &["--check"]);
    assert!(answer.text.starts_with("2 terms: no two overlapped\n"), "{answer:?}");
    assert_eq!(answer.status, 0);
    // `--since` leaves out terms that had ended by then, and not the current one.
    wait::until_true("the first term ended more than 1 ms ago", || json(&election, &["--since", "1ms"]).0.len() == 1);

    let drawing = election.directory().join("history.svg");
    let answer = election.ask("history", &["--svg", drawing.to_str().expect("UTF-8")]);
    assert_eq!(answer.status, 0);
    let drawn = fs::read_to_string(&drawing).expect("the file exists");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"), "{drawn}");
    assert!(drawn.contains(&format!("<title>term {earlier}: first, ")) && drawn.contains(&election.group), "{drawn}");
    election.close([first, second]);
}

fn claim(member: &str, after: i64) -> String {
    format!(
        r#"{{"v":1,"kind":"claim","member":"{member}","name":"{member}","seq":1,"after":{after},"lease_ms":60000}}"#
    )
}

/// The journal of a leader whose successor did not wait for the lease's end.
#[test]
fn check_finds_two_leaders_at_once() {
    let election = election(Elector::Log);
    let late =
        r#"{"v":1,"kind":"release","member":"a<b","name":"a<b","seq":2,"term":0,"seen":0,"why":"fenced","late_ms":70}"#;
    written(&election, &[&claim("a<b", -1), &claim("late", -1), &claim("c", 1), "nonsense", late]);
    let answer = election.ask("history", &["--check"]);
    let lines: Vec<&str> = answer.text.lines().collect();
    assert_eq!((lines[0], answer.status), ("2 terms: two jobs may have run at once", 1), "{answer:?}");
    assert!(lines[1].starts_with("overlap: term 2 was claimed up to "), "{answer:?}");
    assert!(lines[2].starts_with("late fence: the job of term 0 ") && lines[2].ends_with(" led by then"), "{answer:?}");
    assert!(lines[3].starts_with("not effective: 1 claim that came too late, 1 record of leaders "), "{answer:?}");
    let (objects, status) = json(&election, &["--check"]);
    let violations = objects.iter().filter(|line| line["violation"] == true).count();
    assert_eq!((violations, status), (2, 1), "{objects:?}");

    let drawing = election.directory().join("history.svg");
    assert_eq!(election.ask("history", &["--svg", drawing.to_str().expect("UTF-8")]).status, 0);
    let drawn = fs::read_to_string(&drawing).expect("the file exists");
    assert!(drawn.contains("a&lt;b") && !drawn.contains("a<b"), "{drawn}");
}

/// If the candidates give the timestamps, a clock that is behind looks like a claim that came too soon.
#[test]
fn timestamps_of_candidates_do_not_show_two_leaders_at_once() {
    let election = election(Elector::Log);
    written_with("CreateTime", &election, &[&claim("a", -1), &claim("b", 0)]);
    let answer = election.ask("history", &["--check"]);
    let lines: Vec<&str> = answer.text.lines().collect();
    assert_eq!((lines[0], answer.status), ("2 terms: can't tell whether two overlapped", 0), "{answer:?}");
    assert!(
        lines[1].starts_with("overlap: term 1 was claimed up to ") && lines[1].contains("CreateTime"),
        "{answer:?}"
    );
    let (objects, status) = json(&election, &["--check"]);
    let of_overlap = objects.iter().find(|line| line["finding"] == "overlap").expect("an overlap");
    assert_eq!((of_overlap["violation"].as_bool(), status), (Some(false), 0), "{objects:?}");
}

#[test]
fn an_election_without_a_leader_so_far_has_no_terms() {
    let election = election(Elector::Log);
    written(&election, &["nonsense"]);
    let answer = election.ask("history", &[]);
    assert_eq!((answer.text.as_str(), answer.errors.as_str(), answer.status), ("no terms\n", "", 0));
    assert_eq!(json(&election, &[]), (Vec::new(), 0));
    let answer = election.ask("history", &["--svg", "/no/such/place"]);
    assert_eq!(answer.errors, "neli-run: --svg /no/such/place: no such file or directory\n");
    assert_eq!(answer.status, 125);
}

/// A role without a leader may have only hellos, under another role's key. Undecodable records among them change nothing.
#[test]
fn a_role_with_only_hellos_has_no_terms() {
    let election = election(Elector::Log);
    written(&election, &[]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let hello = br#"{"v":1,"kind":"hello","member":"p","name":"web","seq":1,"roles":"in,out","partitions":1}"#;
    pen.write(&format!("{}/in/hello", election.group), &[b"\xff\x00", b"[]", hello]);
    pen.write_keyless(b"x");
    pen.write_tombstone(&format!("{}/out", election.group));
    for role in ["in", "out"] {
        let answer = election.ask("history", &["--role", role]);
        assert_eq!((answer.text.as_str(), answer.errors.as_str(), answer.status), ("no terms\n", "", 0));
    }
    let answer = election.ask("history", &[]);
    assert_eq!((answer.text.as_str(), answer.errors.as_str(), answer.status), ("no terms\n", "", 0));
}
