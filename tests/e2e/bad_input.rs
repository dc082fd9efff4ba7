//! Errors of Kafka that are final, and topics that a candidate refuses: exit status 125, one line, and the candidate joins no group.

use std::process::Command;
use std::time::Duration;

use harness::accounts::{Account, login};
use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::election::{Answer, TestElection};
use harness::journal;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::doctor::Found;
use crate::guarded::{Guarded, assert_refused};
use crate::{PROGRAM, bare, election};

#[test]
fn wrong_credentials_are_refused() {
    let guarded = Guarded::new(Elector::Group);
    guarded.create_topic();
    let mut run = guarded.candidate(Elector::Group, &login("operator", "wrong horse")).start();
    assert_eq!(run.status(), 125);
    assert!(run.events("broker_down").is_empty(), "nothing is waited for: {run:?}");
    assert_refused(run, &["authentication"]);
}

/// A client that does not log in where a login is required: the broker closes the connection without an answer.
#[test]
fn a_missing_login_is_refused() {
    let guarded = Guarded::new(Elector::Log);
    let mut run = guarded.candidate(Elector::Log, &[]).start();
    let message = run.await_event("broker_down").text("error").to_owned();
    let words = ["closes each connection at once", "expects a login", "security.protocol"];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
}

#[test]
fn a_topic_that_may_not_be_read_is_refused() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let run = guarded.candidate(Elector::Log, &Account::NoRead.properties()).lease("3s").start();
    assert_refused(run, &[&guarded.election.topic()]);
}

#[test]
fn a_topic_that_may_not_be_written_is_refused() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let run = guarded.candidate(Elector::Log, &Account::NoWrite.properties()).lease("3s").start();
    assert_refused(run, &[&guarded.election.topic()]);
    assert_eq!(journal::end(&guarded.plain, &guarded.election.topic()), 0);
}

#[test]
fn a_topic_that_may_not_be_created_is_refused() {
    let guarded = Guarded::new(Elector::Log);
    let run = guarded.candidate(Elector::Log, &Account::NoCreate.properties()).start();
    assert_refused(run, &[&guarded.election.topic()]);
    assert!(!guarded.plain.has_topic(&guarded.election.topic()));
}

#[test]
fn a_topic_that_is_missing_and_shall_not_be_created_is_refused() {
    let election = election(Elector::Log);
    let run = election.candidate().flag("--no-create-topic").start();
    assert_refused(run, &[&election.topic()]);
    assert!(!Kafka::shared().has_topic(&election.topic()));
}

/// A candidate with exactly the rights that the manual asks for leads.
#[test]
fn the_rights_that_are_asked_for_are_enough() {
    let guarded = Guarded::new(Elector::Group);
    let mut run = guarded.candidate(Elector::Group, &Account::Operator.properties()).start();
    let term = run.await_lead();
    guarded.election.await_witness(term);
    guarded.election.close([run]);
}

/// The right to create a topic is not needed if the topic exists.
#[test]
fn a_topic_that_is_there_need_not_be_created() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let mut run = guarded.candidate(Elector::Log, &Account::NoCreate.properties()).start();
    run.await_lead();
    guarded.election.close([run]);
}

/// A topic whose configuration may not be read is accepted with a warning.
#[test]
fn a_configuration_that_may_not_be_read_is_warned_of() {
    let guarded = Guarded::new(Elector::Log);
    guarded.create_topic();
    let mut run = guarded.candidate(Elector::Log, &Account::NoConfigs.properties()).start();
    run.await_event("warning");
    run.await_lead();
    guarded.election.close([run]);
}

/// R0: a topic that does not keep its records is refused.
#[test]
fn a_topic_that_does_not_keep_its_records_is_refused() {
    for (settings, word) in [
        (&[("cleanup.policy", "compact")][..], "cleanup.policy"),
        (&[("cleanup.policy", "compact,delete")], "cleanup.policy"),
        (&[("retention.ms", "300000")], "retention.ms"),
        (&[("retention.ms", "599999")], "retention.ms"),
    ] {
        let election = election(Elector::Log);
        Kafka::shared().create_topic(&election.topic(), settings);
        assert_refused(election.candidate().start(), &[word]);
        // The topic is examined while it is being read. A claim may have been made meanwhile, and is released. No other record is written.
        let written: Vec<_> =
            journal::read(Kafka::shared(), &election.topic()).into_iter().filter_map(|raw| raw.payload).collect();
        let says = |at: usize, kind: &str| String::from_utf8_lossy(&written[at]).contains(kind);
        let is_released = written.len() == 2 && says(0, r#""kind":"claim""#) && says(1, r#""why":"refused""#);
        assert!(written.is_empty() || is_released, "{written:?}");
        assert_eq!(election.testimony().starts().count(), 0, "no job ran");
    }
}

/// An election whose topic accepts no record.
fn election_whose_topic_accepts_nothing() -> TestElection {
    let election = election(Elector::Log);
    let settings = [("max.message.bytes", "100"), ("message.timestamp.type", "LogAppendTime")];
    Kafka::shared().create_topic(&election.topic(), &settings);
    election
}

/// A topic that accepts no record: Kafka's error is logged once, not for each record.
#[test]
fn a_topic_that_accepts_no_record_is_reported_once() {
    let election = election_whose_topic_accepts_nothing();
    let mut run = election.candidate().lease("3s").start();
    run.await_event("claiming");
    wait::until_true("a line that says why", || !run.warnings_with("Message size too large").is_empty());
    // Meanwhile claims are given up and repeated, and each is refused too. Only the first claim and the first refusal are logged, so there is
    // nothing else to wait for.
    wait::pause(Duration::from_secs(3));
    let lines = run.warnings_with("");
    assert!(lines.len() == 1 && lines[0].contains("max.message.bytes must be"), "{lines:?}");
    assert!(lines[0].contains(&election.topic()) && run.events("leading").is_empty(), "{lines:?}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
}

/// The lease, for which a claim under way would be waited for, is longer than any wait of a test.
#[test]
fn a_claim_that_kafka_refuses_is_not_waited_for() {
    let election = election_whose_topic_accepts_nothing();
    let mut run = election.candidate().lease("60s").start();
    let standby = run.await_event("standby");
    assert_eq!(standby.text("why"), "nobody leads; its last claim was refused");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    let mut run = election.candidate().lease("60s").option("--wait", "1s").start();
    assert_eq!(run.status(), 75);
}

/// A controller answers a client in Kafka's protocol, but not what every client asks first.
#[test]
fn the_port_of_a_controller_is_recognized() {
    let Some(controller) = Cluster::shared().brokers()[0].controller_address() else { return };
    let said = "this may be the port of a controller";
    let mut run = bare().option("--group", "g").option("--brokers", &controller).job(["true"]).start();
    let down = run.await_event("broker_down");
    assert!(down.text("error").starts_with(&controller) && down.text("error").contains(said), "{down:?}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    let found = Found::of(&["--group", "g", "--brokers", &controller]);
    found.assert_finding("brokers", "fail", &[&controller, said]);
    let mut list = Command::new(PROGRAM);
    list.args(["list", "--brokers", &controller, "--timeout", "2s"]);
    let answer = Answer::of(list);
    assert!(answer.errors.contains(said), "{answer:?}");
}

/// The line about a new topic says how many replicas it has, since that does not change later.
#[test]
fn a_created_topic_is_reported_with_its_replicas() {
    let election = election(Elector::Log);
    let mut run = election.candidate().job(["true"]).start();
    assert_eq!(run.status(), 0);
    let created = run.events("topic_created");
    assert_eq!(created.len(), 1, "{run:?}");
    assert_eq!(created[0].text("topic"), election.topic());
    assert_eq!((created[0].number("replicas"), created[0].number("brokers")), (1, 1));
}

/// R0: a topic that keeps its records long enough is accepted, and a risky setting gets one warning that names it.
#[test]
fn a_topic_with_risks_is_accepted() {
    for (settings, warning) in [
        (&[("retention.ms", "600000"), ("message.timestamp.type", "LogAppendTime")][..], None),
        (&[("retention.ms", "-1"), ("message.timestamp.type", "LogAppendTime")], None),
        (&[("message.timestamp.type", "CreateTime")], Some("CreateTime")),
        (&[("message.timestamp.type", "LogAppendTime"), ("retention.bytes", "1000000")], Some("retention.bytes")),
        (
            &[("message.timestamp.type", "LogAppendTime"), ("unclean.leader.election.enable", "true")],
            Some("unclean.leader.election.enable"),
        ),
    ] {
        let election = election(Elector::Log);
        Kafka::shared().create_topic(&election.topic(), settings);
        let mut run = election.candidate().job(["true"]).start();
        assert_eq!(run.status(), 0);
        let warnings: Vec<String> = run.events("warning").iter().map(|event| event.fields.to_string()).collect();
        match warning {
            None => assert!(!warnings.iter().any(|text| text.contains(&election.topic())), "{warnings:?}"),
            Some(word) => {
                assert_eq!(warnings.iter().filter(|text| text.contains(word)).count(), 1, "{word}: {warnings:?}");
            }
        }
    }
}

/// A topic that a candidate creates keeps its records.
#[test]
fn a_topic_that_a_candidate_creates_keeps_its_records() {
    let election = election(Elector::Log);
    let mut run = election.candidate().job(["true"]).start();
    assert_eq!(run.status(), 0);
    for (key, value) in [
        ("cleanup.policy", "delete"),
        ("retention.ms", "86400000"),
        ("segment.ms", "3600000"),
        ("message.timestamp.type", "LogAppendTime"),
        ("unclean.leader.election.enable", "false"),
    ] {
        assert_eq!(Kafka::shared().topic_setting(&election.topic(), key), value, "{key}");
    }
}
