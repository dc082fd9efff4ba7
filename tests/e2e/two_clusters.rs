//! `--brokers` that names servers of two clusters: each client would be in one of the two by chance, and each cluster would have a leader.

use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::election::TestElection;
use harness::kafka::Kafka;
use rdkafka::mocking::MockCluster;

use crate::PROGRAM;
use crate::doctor::Found;
use crate::guarded::assert_refused;

/// The id that all real clusters of these tests have.
const ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// An election on both servers, in both orders.
fn elections(elector: Elector, other: &str) -> [TestElection; 2] {
    let shared = Kafka::shared().address();
    [format!("{shared},{other}"), format!("{other},{shared}")]
        .map(|both| TestElection::new(PROGRAM, &Kafka::at(&both), elector))
}

#[test]
fn a_candidate_is_refused_before_it_claims_and_no_topic_is_made() {
    let other = MockCluster::new(1).expect("another cluster");
    for election in
        [Elector::Group, Elector::Log].into_iter().flat_map(|elector| elections(elector, &other.bootstrap_servers()))
    {
        let run = election.candidate().start();
        assert_refused(run, &["of two clusters", ID, "mockCluster"]);
        assert!(election.testimony().spans().is_empty());
        assert!(!Kafka::shared().has_topic(&election.topic()));
    }
}

/// Many clusters have the id that an image or a manual gives to each.
#[test]
fn clusters_with_one_id_are_distinguished_by_their_topics() {
    let other = &Cluster::shared().brokers()[0];
    let [election, _] = elections(Elector::Log, &other.address());
    for kafka in [Kafka::shared(), &other.kafka()] {
        kafka.create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    }
    let run = election.candidate().start();
    assert_refused(run, &["servers of two clusters", &election.topic(), ID]);
}

#[test]
fn each_command_is_refused() {
    let other = MockCluster::new(1).expect("another cluster");
    let [election, _] = elections(Elector::Log, &other.bootstrap_servers());
    let commands: [(&str, &[&str]); 9] = [
        ("status", &[]),
        ("watch", &["--until-end"]),
        ("history", &[]),
        ("assert", &["--epoch", "0"]),
        ("resign", &[]),
        ("end", &["--yes"]),
        ("forget", &["--once", "key", "--yes"]),
        ("status", &["--json"]),
        ("watch", &["--json", "--until-end"]),
    ];
    for (command, arguments) in commands {
        let answer = election.ask(command, arguments);
        assert_eq!(answer.status, 125, "{command}: {answer:?}");
        let is_named = [" of two clusters: ", ID, "mockCluster"].iter().all(|words| answer.errors.contains(words));
        assert!(is_named, "{command}: {answer:?}");
    }
    let both = format!("{},{}", Kafka::shared().address(), other.bootstrap_servers());
    let list = harness::election::Answer::of({
        let mut list = std::process::Command::new(PROGRAM);
        list.args(["list", "--brokers", &both]);
        list
    });
    assert!(list.status == 125 && list.errors.contains(" of two clusters: "), "{list:?}");
    let found = Found::of(&["--group", &election.group, "--brokers", &both]);
    found.assert_finding("brokers", "fail", &["of two clusters", ID, "mockCluster"]);
}
