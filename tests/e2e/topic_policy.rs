//! A cluster whose policy judges new topics, as that of a managed cluster does.

use std::process::Command;

use harness::accounts::Account;
use harness::candidate::{Elector, Event};
use harness::election::{Answer, TestElection};
use harness::kafka::Broker;

use crate::PROGRAM;
use crate::doctor::Found;
use crate::guarded::{Guarded, assert_refused};

/// What the policy refuses, all in one test, since a broker costs seconds: a name, and settings that clients may not set.
#[test]
fn its_words_are_shown_and_what_it_allows_is_made() {
    let broker = Broker::with_topic_policy();
    let plain = broker.kafka();
    let address = plain.accounts_address().expect("the broker has a listener with accounts").to_owned();
    let election = TestElection::new(PROGRAM, &plain, Elector::Log);
    let guarded = Guarded::of(broker, election, plain, address);
    let words = ["Policy violation: the name of a topic must begin with team-", "create it by hand"];

    let refused = format!("refused-{}", guarded.election.group);
    let candidate = guarded.election.candidate().option("--topic", &refused);
    assert_refused(candidate.start(), &words);
    let options =
        ["--group", &guarded.election.group, "--brokers", guarded.plain.address(), "--topic", refused.as_str()];
    Found::of(&options).assert_finding("topic", "fail", &words);

    let throttled = format!("throttled-{}", guarded.election.group);
    let mut run = guarded.election.candidate().option("--topic", &throttled).job(["true"]).start();
    assert_eq!(run.status(), 0, "{run:?}");
    assert!(run.events("broker_down").is_empty(), "Kafka has answered: {run:?}");
    let is_quota = |event: &Event| event.text("message").contains("Throttling quota has been exceeded");
    assert_eq!(run.events("warning").iter().filter(|event| is_quota(event)).count(), 1, "{run:?}");

    // One user may see the cluster's defaults, and the other may not.
    for (number, account) in [None, Some(Account::NoConfigs)].into_iter().enumerate() {
        let topic = format!("restricted-{number}-{}", guarded.election.group);
        let properties = account.map(Account::properties).unwrap_or_default();
        let brokers = if account.is_some() { guarded.address.as_str() } else { guarded.plain.address() };
        let mut doctor = Command::new(PROGRAM);
        doctor.args([
            "doctor",
            "--print-topic",
            "--once",
            "k",
            "--group",
            &guarded.election.group,
            "--brokers",
            brokers,
            "--topic",
            &topic,
        ]);
        for (key, value) in &properties {
            doctor.args(["-X", &format!("{key}={value}")]);
        }
        let Answer { text, errors, status } = Answer::of(doctor);
        assert_eq!((status, text.lines().count()), (0, 2), "{errors}");
        for setting in
            ["retention.bytes", "unclean.leader.election.enable", "min.insync.replicas", "cleanup.policy=delete "]
        {
            assert!(!text.contains(setting), "{setting} is in {text}");
        }
        assert!(text.contains("message.timestamp.type=LogAppendTime") && text.contains("segment.ms=3600000"), "{text}");
        let candidate = guarded.election.candidate().option("--topic", &topic).option("--brokers", brokers);
        let candidate = properties.iter().fold(candidate, |candidate, (key, value)| candidate.property(key, value));
        let mut run = candidate.job(["true"]).start();
        assert_eq!(run.status(), 0, "{run:?}");
        let created = run.events("topic_created");
        assert_eq!(created.len(), 1, "{run:?}");
        assert_eq!((created[0].text("topic"), created[0].number("replicas")), (topic.as_str(), 1));
        assert_eq!(guarded.plain.topic_setting(&topic, "cleanup.policy"), "delete");
        assert_eq!(guarded.plain.topic_setting(&topic, "message.timestamp.type"), "LogAppendTime");
    }
}
