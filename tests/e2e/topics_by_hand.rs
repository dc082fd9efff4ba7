//! The commands in docs/operating.md that create topics give the same topics as `neli-run`.

use harness::candidate::Elector;
use harness::kafka::Kafka;

use crate::election;

const PAGE: &str = include_str!("../../docs/operating.md");

/// The settings in the page's command for `topic`.
fn settings(topic: &str) -> Vec<(&'static str, &'static str)> {
    let (_, rest) = PAGE.split_once(&format!("--create --topic {topic} ")).expect("the page makes it");
    let (command, _) = rest.split_once("```").expect("a block ends");
    let words = command.split_whitespace().skip_while(|word| *word != "--config");
    words.filter_map(|word| word.split_once('=')).collect()
}

#[test]
fn have_the_settings_of_topics_that_neli_run_creates() {
    let election = election(Elector::Log);
    // The example's day, where the longest has 25 hours.
    let nightly = election.candidate().option("--window", "1d").job(["true"]);
    assert_eq!(nightly.start().status(), 0);
    for (by_hand, made) in
        [("billing.neli", election.topic()), ("nightly.neli.once", format!("{}.once", election.topic()))]
    {
        let settings = settings(by_hand);
        assert!(settings.len() >= 6, "{settings:?}");
        // This cluster has one broker, so two replicas can't be in sync.
        for (key, value) in settings.into_iter().filter(|setting| *setting != ("min.insync.replicas", "2")) {
            assert_eq!(Kafka::shared().topic_setting(&made, key), value, "{made}: {key}");
        }
    }
}
