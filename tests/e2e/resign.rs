//! `resign` and `end`: an operator's requests and their effect.

use std::process::Command;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::{Answer, TestElection};
use harness::journal::{Pen, RepeatedRecord};
use harness::kafka::{Kafka, Wired};
use harness::network::LinkConditions;
use harness::schema::Schema;
use harness::terminal::{Shell, Terminal};
use harness::wait;
use harness::witness::Event;
use serde_json::Value;

use crate::death::machine;
use crate::{PROGRAM, election, with_both_electors};

const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":60000}"#;

const BEAT: &str = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":60000}"#;

/// The journal of a leader `web` that goes on, and the pen that wrote it.
fn led(election: &TestElection) -> (Pen, RepeatedRecord) {
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let pen = || Pen::new(Kafka::shared(), &election.topic(), &[]);
    pen().write(&election.key(), &[CLAIM.as_bytes()]);
    (pen(), RepeatedRecord::start(pen(), election.key(), BEAT.to_owned()))
}

/// The exit status and the JSON that `resign` prints, which is checked against docs/json.md.
fn resign(election: &TestElection, arguments: &[&str]) -> (Value, i32) {
    let answer = election.ask("resign", &[&["--json"], arguments].concat());
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "resign").assert_holds(&object);
    (object, answer.status)
}

/// Waits until `status` shows this number of standbys.
fn await_standbys(election: &TestElection, count: usize) {
    wait::until_true("the hellos of those that stand by", || {
        let object = election.ask("status", &["--json"]).json();
        object["standbys"].as_array().is_some_and(|standbys| standbys.len() == count)
    });
}

fn pair(election: &TestElection) -> (Running, Running) {
    let mut first = election.candidate().option("--name", "first").start();
    election.await_witness(first.await_lead());
    let mut second = election.candidate().option("--name", "second").start();
    second.await_event("standby");
    await_standbys(election, 1);
    (first, second)
}

with_both_electors! {
    fn a_leader_that_is_asked_hands_over(elector) {
        let election = election(elector);
        let (mut first, mut second) = pair(&election);
        let answer = election.ask("resign", &["--reason", "patching db1"]);
        let term = second.await_lead();
        let expected = format!("second leads, term {term}; nobody led for ");
        assert!(answer.text.starts_with(&expected) && answer.text.lines().count() == 1, "{answer:?}");
        assert_eq!((answer.errors.as_str(), answer.status), ("", 0));
        let resigned = first.await_event("resigned");
        assert_eq!(resigned.text("reason"), "patching db1");
        assert!(resigned.text("by").contains('@'), "{resigned:?}");

        await_standbys(&election, 1);
        let (object, status) = resign(&election, &[]);
        let new = first.await_lead();
        assert_eq!((object["outcome"].as_str(), status), (Some("resigned"), 0), "{object}");
        assert_eq!((object["from"]["term"].as_u64(), object["to"]["term"].as_u64()), (Some(term), Some(new)));
        assert_eq!(object["to"]["name"], "first");
        let terms = election.ask("history", &["--json"]).text;
        let of_term = |line: &Value| line["term"].as_u64() == Some(term);
        let over = terms.lines().map(|line| serde_json::from_str(line).expect("JSON")).find(of_term).expect("the term");
        assert!(object["gap_ms"].is_u64() && object["gap_ms"] == over["gap_ms"], "{object} {over}");
        election.close([first, second]);
    }
}

with_both_electors! {
    /// The named standby claims at once, although another has a higher priority.
    fn the_named_standby_leads_next(elector) {
        let election = election(elector);
        let (mut first, mut second) = pair(&election);
        let higher = election.candidate().option("--name", "higher").option("--priority", "10").start();
        let last = election.candidate().option("--name", "last").start();
        await_standbys(&election, 3);
        let (object, status) = resign(&election, &["--to", "last"]);
        assert_eq!((object["outcome"].as_str(), &object["to"]["name"], status), (Some("resigned"), &"last".into(), 0));
        let gap = object["gap_ms"].as_u64().expect("a gap");
        assert!(gap < 500, "it waits for nobody: {object}");
        assert_eq!(first.await_event("resigned").text("successor"), "last");
        await_standbys(&election, 3);
        // Nobody leads for longer than a named one that has it already.
        let answer = election.ask("resign", &["--to", "last"]);
        assert_eq!((answer.text, answer.status), (format!("last leads already, term {}\n", object["to"]["term"]), 0));
        assert_eq!(last.count("resigned"), 0);
        let answer = election.ask("resign", &["--to", "second"]);
        let expected = format!("second leads, term {}; nobody led for ", second.await_lead());
        assert!(answer.text.starts_with(&expected) && answer.status == 0, "{answer:?}");
        assert_eq!(higher.count("leading"), 0);
        let changes = election.ask("watch", &["--from", "start", "--until-end"]).text;
        assert!(changes.contains(" has asked last to stand down for second"), "{changes}");
        election.close([first, second, higher, last]);
    }

    /// With `--overlap` the named one claims before the release that names it.
    fn the_named_standby_overlaps(elector) {
        let election = election(elector);
        let start = |name: &str| election.candidate().option("--name", name).option("--overlap", "2s").start();
        let mut first = start("first");
        election.await_witness(first.await_lead());
        let others = ["a", "b", "c"].map(start);
        await_standbys(&election, 3);
        let (object, status) = resign(&election, &["--to", "c"]);
        assert_eq!((object["outcome"].as_str(), &object["to"]["name"], status), (Some("resigned"), &"c".into(), 0));
        first.await_event("overlapped");
        crate::overlap::close(&election, others.into_iter().chain([first]));
    }
}

/// They may be on two machines, so what leads next is not what led.
#[test]
fn another_candidate_of_the_same_name_is_told_apart() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "same").start();
    election.await_witness(first.await_lead());
    let mut second = election.candidate().option("--name", "same").start();
    await_standbys(&election, 1);
    let answer = election.ask("resign", &[]);
    let expected = format!("another candidate named same leads, term {}; nobody led for ", second.await_lead());
    assert!(answer.text.starts_with(&expected) && answer.status == 0, "{answer:?}");
    election.close([first, second]);
}

/// Each is refused with its reason, and the leader is not asked.
#[test]
fn one_that_can_not_lead_is_not_named() {
    let election = election(Elector::Log);
    let (first, mut second) = pair(&election);
    let twins = ["twin", "twin"].map(|name| election.candidate().option("--name", name).start());
    await_standbys(&election, 3);
    let refused = |to: &str, within: &str, why: &str| {
        let answer = election.ask("resign", &["--to", to, "--timeout", within]);
        assert_eq!((answer.text.as_str(), answer.status), ("", 2), "{to}: {answer:?}");
        let line = format!("neli-run: first leads, and {why}");
        assert!(answer.errors.starts_with(&line), "{to}: {answer:?}");
    };
    refused(
        "nobody",
        "30s",
        "\"nobody\" does not stand by: no candidate has this name, or it has left, or was not heard for 1m 15s; those that do: second, twin, twin\n",
    );
    refused("twin", "30s", "2 standbys are named twin: --name makes each name unique\n");
    machine(&mut second, &[]);
    // The others answer.
    refused("second", "3s", "second has not answered within 3s; second said hello ");
    let (object, status) = resign(&election, &["--to", "second", "--timeout", "3s"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("can-not-lead"), 2), "{object}");
    assert_eq!(first.count("resigned"), 0);
    // The name of one that has died costs 500 ms, and then another leads.
    let (object, status) = resign(&election, &["--to", "second", "--force"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("another-leads"), 1), "{object}");
    assert!(object["why"].as_str().is_some_and(|why| why.contains(", and not second; nobody led for ")), "{object}");
    election.close(twins.into_iter().chain([first]));
}

/// The one that died counts as a standby for 75 s.
#[test]
fn a_standby_that_was_killed_and_started_again_is_named() {
    let election = election(Elector::Log);
    let (first, mut second) = pair(&election);
    for options in [&[] as &[&str], &["--force"]] {
        machine(&mut second, &[]);
        let dead = std::mem::replace(&mut second, election.candidate().option("--name", "second").start());
        drop(dead);
        second.await_event("standby");
        await_standbys(&election, 2);
        let (object, status) = resign(&election, &[&["--to", "second"], options].concat());
        assert_eq!((&object["to"]["name"], status), (&"second".into(), 0), "{object}");
        let (object, status) = resign(&election, &[&["--to", "second"], options].concat());
        assert_eq!((&object["outcome"], status), (&"leads-already".into(), 0), "{object}");
        let (object, status) = resign(&election, &["--to", "first"]);
        assert_eq!((&object["to"]["name"], status), (&"first".into(), 0), "{object}");
    }
    election.close([first, second]);
}

/// One whose run has failed comes late, so it is not named.
#[test]
fn one_whose_runs_fail_is_not_named() {
    let election = election(Elector::Log);
    let start = |name: &str| {
        let candidate = election.candidate().option("--name", name).option("--once", "k").option("--retries", "9");
        candidate.job(["sh", "-c", "[ $NELI_NAME = failing ] && exit 1; exec sleep 100000"]).start()
    };
    let mut failing = start("failing");
    failing.await_event("job_exited");
    let mut other = start("other");
    other.await_lead();
    await_standbys(&election, 1);
    let answer = election.ask("resign", &["--to", "failing"]);
    let begin = "neli-run: other leads, and failing failed ";
    let says_why = answer.errors.contains("so that it would claim ");
    assert!(answer.errors.starts_with(begin) && says_why && answer.status == 2, "{answer:?}");
    election.close([failing, other]);
}

/// Each candidate stops its job and exits with 0, and none is left.
#[test]
fn an_election_that_is_ended() {
    let election = election(Elector::Group);
    let (mut first, mut second) = pair(&election);
    let answer = election.ask("end", &["--reason", "moved"]);
    assert!(answer.text.starts_with(&format!("{} is ended: ", election.group)), "{answer:?}");
    assert_eq!((answer.errors.as_str(), answer.status), ("", 0));
    assert_eq!((first.status(), second.status()), (0, 0));
    assert_eq!(first.await_event("ended").text("reason"), "moved");
    assert!(election.testimony().lines.iter().any(|line| line.event == Event::Signal(15)), "the job was asked to stop");
    election.close([]);
}

#[test]
fn nobody_stands_by() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "first").lease("5s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let answer = election.ask("resign", &[]);
    let line = "neli-run: first leads, and nobody stands by; --force asks first to stand down anyway\n";
    assert_eq!(answer, Answer { text: String::new(), errors: line.to_owned(), status: 2 });
    assert!(first.events("resigned").is_empty());
    // After two leases it leads again, because no other candidate does.
    let answer = election.ask("resign", &["--force"]);
    assert!(answer.text.starts_with("first leads again, term "), "{answer:?}");
    assert_eq!(answer.status, 0);
    election.close([first]);
}

/// For 2 s after a lead a candidate says no hello by itself. It is asked for one before it counts as none.
#[test]
fn a_candidate_that_has_just_lost_its_lead_is_heard() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "first").lease("5s").start();
    election.await_witness(first.await_lead());
    let mut second = election.candidate().option("--name", "second").lease("5s").start();
    second.await_event("standby");
    await_standbys(&election, 1);
    for name in ["second", "first"] {
        let answer = election.ask("resign", &[]);
        assert!(answer.text.starts_with(&format!("{name} leads, term ")), "{answer:?}");
    }
    second.signal(nix::sys::signal::Signal::SIGTERM);
    second.status();
    first.await_release();
    let request = format!(r#"{{"v":1,"kind":"request","what":"resign","term":{}}}"#, first.await_lead());
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[request.as_bytes()]);
    first.await_release();
    let answer = election.ask("end", &[]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(first.status(), 0);
    election.close([first, second]);
}

/// The last hello of a dead leader does not make it a standby, so there is no candidate to hand over to.
#[test]
fn a_leader_that_died_does_not_stand_by() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "first").lease("5s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let job = first.await_job();
    let mut second = election.candidate().option("--name", "second").lease("5s").start();
    second.await_event("standby");
    await_standbys(&election, 1);
    machine(&mut first, &[job]);
    election.await_witness(second.await_lead());
    let object = election.ask("status", &["--json"]).json();
    assert_eq!(object["standbys"], serde_json::json!([]), "{object}");
    let (object, status) = resign(&election, &[]);
    assert_eq!((object["outcome"].as_str(), status), (Some("nobody-stands-by"), 2), "{object}");
    election.close([second]);
}

/// A standby that died without a word counts as one for 75 s. The leader's job is not stopped for it.
#[test]
fn a_standby_that_died_is_not_waited_for() {
    let election = election(Elector::Log);
    let (first, mut second) = pair(&election);
    machine(&mut second, &[]);
    await_standbys(&election, 1);
    let (object, status) = resign(&election, &["--timeout", "3s"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("nobody-stands-by"), 2), "{object}");
    let why = object["why"].as_str().unwrap_or_default();
    let begin = "first leads, and no standby has answered within 3s; second said hello ";
    let end = " ago, and may have died; --force asks first to stand down anyway";
    let age = why.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)).expect(why);
    // It was waited for, so the hello is older than that.
    let seconds = age.strip_suffix('s').and_then(|seconds| seconds.parse::<f64>().ok());
    assert!(!age.ends_with("ms") && seconds.is_none_or(|seconds| seconds >= 3.0), "{why}");
    assert!(first.events("resigned").is_empty());
    election.close([first]);
}

/// Kafka, and not the standby, is to blame.
#[test]
fn that_kafka_refuses_the_question_to_the_standbys_is_said() {
    let (kafka, election) = (Kafka::shared(), election(Elector::Log));
    kafka.create_topic(&election.topic(), &[]);
    let pen = Pen::new(kafka, &election.topic(), &[]);
    pen.write(&election.key(), &[CLAIM.as_bytes()]);
    pen.write(&format!("{}/hello", election.key()), &[br#"{"v":1,"kind":"hello","member":"b","name":"b","seq":1}"#]);
    // No record is that short, so none is accepted.
    kafka.set_topic(&election.topic(), &[("max.message.bytes", "1")]);
    wait::until_true("a record that is refused", || {
        let end = harness::journal::end(kafka, &election.topic());
        pen.try_write("other", b"x");
        harness::journal::end(kafka, &election.topic()) == end
    });
    let (object, status) = resign(&election, &["--timeout", "20s"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("timed-out"), 1), "{object}");
    let why = object["why"].as_str().unwrap_or_default();
    let begin = "web was not asked to stand down, since no standby has answered, and Kafka has not taken the question to them: ";
    assert!(why.starts_with(begin) && why.contains("Message size too large"), "{why}");
}

/// Its standby does not answer. That it has stood down meanwhile, or another leads, is the answer.
#[test]
fn a_leader_that_leads_no_more_while_a_standby_is_waited_for() {
    let release = r#"{"v":1,"kind":"release","member":"m","name":"web","seq":2,"term":0,"seen":0,"why":"signal"}"#;
    let claim = r#"{"v":1,"kind":"claim","member":"n","name":"db","seq":1,"after":2,"lease_ms":60000}"#;
    for (record, outcome, expected) in [(release, "vacant", 3), (claim, "resigned", 0)] {
        let election = election(Elector::Log);
        Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
        let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
        pen.write(&election.key(), &[CLAIM.as_bytes()]);
        pen.write(
            &format!("{}/hello", election.key()),
            &[br#"{"v":1,"kind":"hello","member":"b","name":"b","seq":1}"#],
        );
        let answered = std::thread::scope(|scope| {
            let asks = scope.spawn(|| resign(&election, &["--timeout", "50s"]));
            wait::until_true("the question to the candidates", || {
                harness::journal::end(Kafka::shared(), &election.topic()) == 3
            });
            pen.write(&election.key(), &[record.as_bytes()]);
            asks.join().expect("an answer")
        });
        assert_eq!((answered.0["outcome"].as_str(), answered.1), (Some(outcome), expected), "{answered:?}");
    }
}

/// With one of that name the leader would hand over to it.
#[test]
fn a_leader_whose_name_several_standbys_have() {
    let election = election(Elector::Log);
    let (pen, _heartbeats) = led(&election);
    for member in ["a", "b"] {
        let hello = format!(r#"{{"v":1,"kind":"hello","member":"{member}","name":"web","seq":1}}"#);
        pen.write(&format!("{}/hello", election.key()), &[hello.as_bytes()]);
    }
    let (object, status) = resign(&election, &["--to", "web"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("leads-already"), 0), "{object}");
    assert_eq!(object["why"], "2 standbys are named web: --name makes each name unique");
    let answer = election.ask("resign", &["--to", "web"]);
    assert!(answer.text.starts_with("web leads already, term 0; 2 standbys are named web: "), "{answer:?}");
}

#[test]
fn one_that_is_about_to_stand_down_does_not_lead_already() {
    let request = |what: &str, term: &str| {
        format!(
            r#"{{"v":1,"kind":"request","name":"ann","what":"{what}","term":{term},"by":"ann","reason":"patching"}}"#
        )
    };
    for (what, term, why) in [
        ("resign", "0", "web leads, and it was asked to stand down by ann: patching"),
        ("end", "null", "web leads, and the election was ended by ann: patching"),
    ] {
        let election = election(Elector::Log);
        let (pen, _heartbeats) = led(&election);
        assert_eq!(resign(&election, &["--to", "web"]).0["outcome"], "leads-already");
        pen.write(&election.key(), &[request(what, term).as_bytes()]);
        let (object, status) = resign(&election, &["--to", "web"]);
        assert_eq!((object["outcome"].as_str(), object["why"].as_str(), status), (Some("can-not-lead"), Some(why), 2));
    }
}

#[test]
fn nobody_leads() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[]);
    let (object, status) = resign(&election, &[]);
    assert_eq!((object["outcome"].as_str(), status), (Some("vacant"), 3), "{object}");
    let answer = election.ask("resign", &[]);
    let line = format!("neli-run: topic {} keeps no record of {}\n", election.topic(), election.group);
    assert_eq!((answer.errors.as_str(), answer.status), (line.as_str(), 3));
}

#[test]
fn a_leader_that_does_not_stand_down() {
    let election = election(Elector::Log);
    let (_, _heartbeats) = led(&election);
    let (object, status) = resign(&election, &["--force", "--timeout", "2s"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("timed-out"), 1), "{object}");
    let why = object["why"].as_str().unwrap_or_default();
    assert_eq!(why, "web has been asked, and has not stood down within 2s; it still may: see neli-run status");
    let records = election.verdicts();
    let request = records.iter().find(|line| line["record"]["kind"] == "request").expect("the request");
    assert_eq!((request["verdict"].as_str(), request["record"]["what"].as_str()), (Some("effective"), Some("resign")));
}

/// It may be dead: its lease still runs.
#[test]
fn that_a_leader_is_silent_is_said_with_the_answer() {
    let election = election(Elector::Log);
    drop(led(&election));
    wait::until_true("three missed heartbeats", || election.ask("status", &[]).status == 4);
    let (object, status) = resign(&election, &["--to", "web"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("unknown"), 4), "{object}");
    let silent = "web has been silent for ";
    assert!(object["why"].as_str().is_some_and(|why| why.starts_with(silent)), "{object}");
    for words in [&["--to", "nobody"][..], &[]] {
        let (object, status) = resign(&election, words);
        assert!(object["why"].as_str().is_some_and(|why| why.starts_with(silent)), "{object}");
        assert!(status > 0, "{object}");
    }
    let (object, status) = resign(&election, &["--force", "--timeout", "1s"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("timed-out"), 1), "{object}");
    let begin = format!("web has been asked, and has not stood down within 1s; {silent}");
    assert!(object["why"].as_str().is_some_and(|why| why.starts_with(&begin)), "{object}");
}

/// The leader's record is from the future, so the command first listens for a heartbeat. The topic is made again in that time.
#[test]
fn a_topic_that_is_made_again_while_a_clock_is_doubted_is_noticed() {
    let (election, kafka) = (election(Elector::Log), Kafka::shared());
    let settings = [("message.timestamp.type", "CreateTime")];
    kafka.create_topic(&election.topic(), &settings);
    Pen::new(kafka, &election.topic(), &[]).write_ahead(&election.key(), &[CLAIM.as_bytes()], 60);
    let late = wait::after(Duration::from_secs(50));
    // On a terminal it says when it listens.
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let options = format!("--timeout 60s --group {} --brokers {}", election.group, kafka.address());
    terminal.type_line(&format!("{PROGRAM} resign --force {options}; echo status $?"));
    terminal.await_text("; listening for ");
    kafka.delete_topic(&election.topic());
    kafka.create_topic(&election.topic(), &settings);
    let shown = terminal.await_text("status 125");
    let line = format!(
        "neli-run: topic {}: its history was cut or made anew meanwhile; run the command again",
        election.topic()
    );
    assert!(shown.contains(&line), "{shown}");
    assert!(wait::now() < late, "it does not wait until the time limit");
}

/// Kafka takes the request, and its answer is lost.
#[test]
fn a_request_without_an_answer_may_take_effect() {
    const PRODUCE: i16 = 0;
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    wired.direct().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    Pen::new(&wired.direct(), &election.topic(), &[]).write(&election.key(), &[CLAIM.as_bytes()]);
    wired.wire().set(LinkConditions { swallows: Some(PRODUCE), ..LinkConditions::default() });
    let why = "no acknowledgement within 2000 ms";
    let line = format!(
        "neli-run: whether web was asked is unknown: {why}; if Kafka has taken the request, web stands down: see neli-run \
         status\n"
    );
    let answer = election.ask("resign", &["--force", "--timeout", "2s"]);
    assert_eq!((answer.errors, answer.status), (line, 1));
    let line = format!(
        "neli-run: whether {} is ended is unknown: {why}; if Kafka has taken the request, its candidates stop its job, at \
         the latest when its lease ends, and exit if they stand for nothing else: see neli-run status\n",
        election.group
    );
    let answer = election.ask("end", &["--timeout", "2s"]);
    assert_eq!((answer.errors, answer.status), (line, 1));
    let line = "neli-run: whether k is forgotten is unknown: ";
    let answer = election.ask("forget", &["--once", "k", "--force", "--timeout", "2s"]);
    assert!(
        answer.errors.starts_with(line) && answer.errors.ends_with("; run the command again to make sure\n"),
        "{answer:?}"
    );
    assert_eq!(answer.status, 1);
}

/// Kafka has taken the request, and the journal shows what has become of it.
#[test]
fn a_request_whose_answer_is_lost_is_seen_to_take_effect() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, &wired.direct(), Elector::Log);
    let (first, second) = pair(&election);
    wired.wire().set(LinkConditions { falsifies: true, ..LinkConditions::default() });
    wired.wire().lose_acknowledgements(true);
    let (object, status) = resign(&election, &["--brokers", wired.kafka().address(), "--timeout", "3s"]);
    let (outcome, next) = (&object["outcome"], &object["to"]["name"]);
    assert_eq!((outcome.as_str(), next.as_str(), status), (Some("resigned"), Some("second"), 0), "{object}");
    election.close([first, second]);
}

/// A mistyped name ends nothing, and the error explains it.
#[test]
fn an_election_without_candidates_is_not_ended() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    Pen::new(Kafka::shared(), &election.topic(), &[]).write("billing/0", &[CLAIM.as_bytes()]);
    let topic = election.topic();
    let no_record = format!("topic {topic} keeps no record of {}; this topic has billing", election.group);
    let answer = election.ask("end", &[]);
    let force = "--force writes the request anyway";
    let line = format!("neli-run: {} was not ended: {no_record}; {force}\n", election.group);
    assert_eq!(answer, Answer { text: String::new(), errors: line, status: 3 });
    let answer = election.ask("end", &["--json"]);
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "end").assert_holds(&object);
    assert_eq!((object["outcome"].as_str(), answer.status), (Some("nobody-stands"), 3), "{object}");
    assert_eq!(election.verdicts().len(), 0);
    for command in ["resign", "history"] {
        let answer = election.ask(command, &[]);
        assert_eq!((answer.errors, answer.status), (format!("neli-run: {no_record}\n"), 3), "{command}");
    }
    let answer = election.ask("watch", &["--until-end"]);
    assert_eq!((answer.errors, answer.status), (format!("neli-run: warning: {no_record}\n"), 0));
    let answer = election.ask("list", &["--topic", &topic]);
    let line =
        format!("neli-run: no election of group \"{}\" in topic {topic}; groups found: billing\n", election.group);
    assert_eq!((answer.errors, answer.status), (line, 3));
    assert_eq!(election.ask("end", &["--force"]).status, 0);
    assert_eq!(election.verdicts().len(), 1);
}

/// `--role` or `--all-roles` is required, also with `--force`.
#[test]
fn an_end_of_one_of_several_roles_requires_role() {
    let election = election(Elector::Log);
    let run = election.candidate().option("--roles", "ingest,bill").job(["sleep", "100000"]).start();
    let hello = || election.ask("status", &["--role", "bill"]).status == 0;
    wait::until_true("a leader of the role", hello);
    let answer = election.ask("end", &["--force"]);
    let has = format!("{} has the roles ingest, bill", election.group);
    let line = format!("neli-run: {has}: --role says which is to be ended, and --all-roles ends them all\n");
    assert_eq!(answer, Answer { text: String::new(), errors: line, status: 125 });
    assert_eq!(run.count("ended"), 0);
    election.close([run]);
}

/// On a terminal the user must confirm; an empty answer cancels.
#[test]
fn at_a_terminal_an_end_is_confirmed() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[CLAIM.as_bytes()]);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let line =
        format!("{PROGRAM} end --group {} --brokers {}; echo status $?", election.group, Kafka::shared().address());
    for (answer, status) in [("", 1), ("n", 1), ("y", 0)] {
        terminal.type_line(&line);
        let question = terminal.await_text("End this election? [y/N] ");
        assert!(question.contains("Restart=always"), "{question}");
        terminal.type_line(answer);
        terminal.await_text(&format!("status {status}"));
        terminal.await_prompt();
        assert_eq!(election.verdicts().len(), 1 + usize::from(status == 0));
    }
    let answer = election.ask("end", &["--yes", "--json"]);
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "end").assert_holds(&object);
    assert_eq!((object["outcome"].as_str(), &object["why"], answer.status), (Some("ended"), &Value::Null, 0));
    let asked = terminal.run(&line.replace(" end ", " end --yes "));
    assert!(asked.contains(" is ended: ") && !asked.contains("[y/N]"), "{asked}");
}

#[test]
fn without_a_broker_nothing_is_ended() {
    let mut command = Command::new(PROGRAM);
    command.args(["end", "--yes", "--json", "--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    let answer = Answer::of(command);
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "end").assert_holds(&object);
    assert_eq!((object["outcome"].as_str(), answer.status), (Some("no-answer"), 1), "{object}");
}

#[test]
fn a_broker_that_is_away() {
    for (words, status, line) in [
        (&["resign"][..], 4, "neli-run: can't tell who leads: 127.0.0.1:1"),
        (&["end", "--yes"], 1, "neli-run: g was not ended: 127.0.0.1:1"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(words).args(["--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
        let answer = Answer::of(command);
        assert!(answer.errors.starts_with(line) && answer.errors.lines().count() == 1, "{answer:?}");
        assert_eq!(answer.status, status);
    }
}
