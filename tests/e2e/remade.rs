//! A topic that is deleted and made again, with offsets that go on where the old one's were.

use std::time::Duration;

use harness::kafka::Kafka;
use harness::wait;
use neli_run::driver::librdkafka;
use neli_run::logic::topic::TopicIdentity;
use rdkafka::producer::{BaseProducer, Producer as _};

/// What everything below rests on: Kafka says another id for the second topic of a name, and none while there is none.
#[test]
fn a_topic_that_is_made_again_has_another_id() {
    let kafka = Kafka::shared();
    let name = format!("remade-{}", std::process::id());
    let client: BaseProducer = kafka.client().create().expect("a client");
    let metadata = client.client().fetch_metadata(None, wait::PATIENCE).expect("the broker answers");
    let broker = metadata.brokers().first().expect("there is one").id();
    let identity = || librdkafka::topic_identity(client.client(), &name, broker, Duration::from_secs(10));
    let await_identity = |wanted: fn(TopicIdentity) -> bool| {
        wait::until("an answer about the topic", || identity().ok().filter(|identity| wanted(*identity)))
    };
    let is_there = |identity| matches!(identity, TopicIdentity::Id(_));

    assert_eq!(identity(), Ok(TopicIdentity::Missing));
    kafka.create_topic(&name, &[]);
    let first = await_identity(is_there);
    assert_eq!(identity(), Ok(first));
    kafka.delete_topic(&name);
    await_identity(|identity| identity == TopicIdentity::Missing);
    kafka.create_topic(&name, &[]);
    assert_ne!(await_identity(is_there), first);
}
