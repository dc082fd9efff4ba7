use std::sync::Arc;

use rdkafka::mocking::MockCluster;

use super::*;
use crate::election::Properties;

/// A session of so many roles.
fn session(bootstrap: &str, roles: u32) -> Session {
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..roles, names: Arc::new([]) };
    let settings =
        SessionSettings { elections, create_topic: false, joins_group: false, timeout: Duration::from_secs(5) };
    Session::start(Access::at(bootstrap, &Properties::default()), settings).unwrap()
}

/// A role that has asked waits for the answer, and asks no second time: it would be fenced.
#[tokio::test]
async fn a_producer_that_is_renewed_asks_again_which_topic_it_is() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    // Nobody answers the first producer.
    let mut session = session("127.0.0.1:9", 2);
    session.handle_kafka_event(KafkaEvent::Partitions(2));
    session.identify();
    session.access = Access::at(&cluster.bootstrap_servers(), &Properties::default());
    session.renew_producer(0).unwrap();
    let answered = async {
        loop {
            session.wait().await;
            if let Some(SessionEvent::Role { role: 1, event: RoleEvent::Identified { .. } }) = session.poll() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), answered).await.expect("an answer for role 1");
}
