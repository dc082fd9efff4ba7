use std::sync::Arc;
use std::time::Duration;

use neli_proto::record::{Body, Record, Why};

use super::*;
use crate::builder::Builder;
use crate::election::{Elections, Properties};
use crate::kafka::access::Access;
use crate::kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
use crate::session::SessionSettings;
use crate::session::event::SessionEvent;

struct Role {
    node: Node,
    election: ElectionId,
}

impl HasNode for Role {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    fn election(&self) -> &ElectionId {
        &self.election
    }

    fn election_mut(&mut self) -> &mut ElectionId {
        &mut self.election
    }
}

/// The nodes of two roles; nobody answers their session.
fn nodes() -> Nodes<Role> {
    let settings = Builder::new("g".to_owned()).brokers("127.0.0.1:9").settings().unwrap().node;
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..2, names: Arc::new([]) };
    let role = |role| Role { node: new_node(settings.clone(), false).unwrap(), election: elections.election(role, 1) };
    let roles = vec![role(0), role(1)];
    let timeout = Duration::from_secs(5);
    let session = SessionSettings { elections, create_topic: false, joins_group: false, timeout };
    let session = Session::start(Access::at("127.0.0.1:9", &Properties::default()), session).unwrap();
    Nodes::new(roles, session, None)
}

fn perform_all(nodes: &mut Nodes<Role>) {
    while let Some(at) = nodes.next_touched() {
        while let Some(action) = nodes.poll_action(at) {
            let _ = nodes.perform(clock::now(), at, &action);
        }
    }
}

/// Kafka comes to something, and what comes of that is passed on.
fn happens(nodes: &mut Nodes<Role>, event: KafkaEvent) {
    nodes.session.handle_kafka_event(event);
    while let Some(event) = nodes.session.poll() {
        if let SessionEvent::Role { role, event } = event {
            nodes.handle_role_event(clock::now(), role as usize, event, true, |_| {});
            perform_all(nodes);
        }
    }
}

/// A record of role 1 is read, which role 0 is told of before it acts.
fn another_writes(nodes: &mut Nodes<Role>, offset: i64) {
    let record = ReadRecord {
        offset,
        key: Key::Election(1),
        value: None,
        other_key: None,
        written_ms: None,
        is_brokers_time: false,
    };
    happens(nodes, KafkaEvent::Reading { reading: 1, partition: 0, event: ReadingEvent::Record(record) });
}

#[tokio::test]
async fn what_others_wrote_is_passed_to_a_node_before_whatever_happens_to_it() {
    let mut nodes = nodes();
    perform_all(&mut nodes);
    happens(&mut nodes, KafkaEvent::Partitions(1));
    let ends = ReadingEvent::Ends { asked: clock::now(), start: 0, end: 0 };
    happens(&mut nodes, KafkaEvent::Reading { reading: 1, partition: 0, event: ends });
    // A node that reads to the end is told at once, which shows it that it is there.
    another_writes(&mut nodes, 0);
    assert!(nodes.roles[0].node.is_caught_up());
    another_writes(&mut nodes, 1);
    assert_eq!(
        nodes.session.take_passed(0),
        Some(RoleEvent::Passed { first: 1, last: 1 }),
        "it waits for the next event"
    );
    another_writes(&mut nodes, 2);
    nodes.let_time_pass(clock::now(), 0);
    assert_eq!(nodes.session.take_passed(0), None);
    another_writes(&mut nodes, 3);
    nodes.tell(clock::now(), 0, Event::StandDown { why: Why::Resigned, leaving: false });
    assert_eq!(nodes.session.take_passed(0), None);
    another_writes(&mut nodes, 4);
    nodes.tell_all(&Event::Continued);
    assert_eq!(nodes.session.take_passed(0), None);
}

#[tokio::test]
async fn what_can_not_be_handed_over_is_told_to_its_node() {
    let mut nodes = nodes();
    perform_all(&mut nodes);
    // The topic is not known yet.
    let record = Record {
        member: None,
        name: None,
        seq: Some(1),
        body: Body::Claim { after: -1, lease_ms: 300, overlap: None },
    };
    let sent = nodes.perform(clock::now(), 1, &Action::Send { record });
    assert!(matches!(sent, Err(Unperformed::Append(_))), "{sent:?}");
    assert_eq!(nodes.next_touched(), Some(1));
}
