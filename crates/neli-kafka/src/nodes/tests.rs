use std::sync::Arc;
use std::time::Duration;

use neli_proto::listener::FIRST_SPAN;
use neli_proto::record::{Body, MemberId, Record, Why};
use neli_proto::restart::RestartPolicy;
use neli_proto::supervisor::{OnLoss, Policy, StopPolicy};
use neli_proto::timings::{Durations, Timings};
use rdkafka::mocking::MockCluster;

use super::*;
use crate::access::Access;
use crate::election::Properties;
use crate::event::{KafkaEvent, SessionEvent};
use crate::reading::{IfMissing, Source};

struct Role {
    node: Node,
}

impl HasNode for Role {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.node.poll_timeout()
    }
}

/// The settings of a node whose candidate is in the group.
fn settings() -> Settings {
    let durations = Durations {
        lease: Duration::from_secs(20),
        heartbeat_interval: Duration::from_secs(1),
        kill_margin: Duration::from_millis(500),
        fence_warning: Duration::ZERO,
        preempt_after: None,
        overlap: None,
    };
    Settings {
        hello: Hello::new(MemberId::from("me"), Some("me".into())),
        timings: Timings::new(durations, Elector::Group(Some(Duration::from_millis(500)))).unwrap(),
        job: Policy {
            settle: Duration::ZERO,
            stop: StopPolicy { signal: None, timeout: Duration::ZERO },
            restart: RestartPolicy::default(),
            on_loss: OnLoss::Standby,
            health: None,
        },
        hooks: Vec::new(),
        accepts_remade_topic: true,
        once: None,
        started: clock::now(),
        wait: None,
        first_span: FIRST_SPAN,
    }
}

/// The nodes of two roles; nobody answers their session.
fn nodes() -> Nodes<Role> {
    nodes_at("127.0.0.1:9")
}

/// The nodes of two roles, whose session has its Kafka at `bootstrap`.
fn nodes_at(bootstrap: &str) -> Nodes<Role> {
    let settings = settings();
    let elections = Elections { group: "g".into(), topic: "t".into(), roles: 0..2, names: Arc::new([]) };
    let role = || Role { node: new_node(settings.clone(), false).unwrap() };
    let roles = vec![role(), role()];
    let source = Source::new(Access::at(bootstrap, &Properties::default()), elections, IfMissing::Refuse);
    let session = Session::start(source, Duration::from_secs(5)).unwrap();
    Nodes::new(roles, session, None)
}

fn perform_all(nodes: &mut Nodes<Role>) {
    while let Some(at) = nodes.touched.pop_first() {
        while let Some(action) = nodes.roles[at].node.poll_action() {
            if let Action::Kafka(request) = action {
                nodes.request(at, &request);
            }
        }
    }
}

/// Kafka comes to something, and what comes of that is passed on.
fn happens(nodes: &mut Nodes<Role>, event: KafkaEvent) {
    nodes.session.handle_kafka_event(event);
    while let Some(event) = nodes.session.poll() {
        if let SessionEvent::Election { role, event } = event {
            nodes.handle_election_event(clock::now(), role as usize, event);
            perform_all(nodes);
        }
    }
}

/// A record of role 1 is read, which role 0 is told of before it acts.
fn another_writes(nodes: &mut Nodes<Role>, offset: i64) {
    let event = candidate::Event::of_record(offset, None, None);
    let record = Some(SessionEvent::Election { role: 1, event });
    happens(nodes, KafkaEvent::Read { reading: 1, partition: 0, offset, record });
}

#[tokio::test]
async fn what_others_wrote_is_passed_to_a_node_before_whatever_happens_to_it() {
    let mut nodes = nodes();
    perform_all(&mut nodes);
    happens(&mut nodes, KafkaEvent::Partitions(1));
    let ends = candidate::Event::Answered { asked: clock::now(), start: 0, end: 0 };
    happens(&mut nodes, KafkaEvent::Reading { reading: 1, partition: 0, event: ends });
    // A node that reads to the end is told at once, which shows it that it is there.
    another_writes(&mut nodes, 0);
    assert!(nodes.roles[0].node.is_caught_up());
    another_writes(&mut nodes, 1);
    assert_eq!(
        nodes.session.router.take_passed(0),
        Some(candidate::Event::Passed { first: 1, last: 1 }),
        "it waits for the next event"
    );
    another_writes(&mut nodes, 2);
    nodes.handle_timeout(clock::now(), 0);
    assert_eq!(nodes.session.router.take_passed(0), None);
    another_writes(&mut nodes, 3);
    nodes.tell(clock::now(), 0, Event::StandDown { why: Why::Resigned, leaving: false });
    assert_eq!(nodes.session.router.take_passed(0), None);
    another_writes(&mut nodes, 4);
    nodes.tell_all(&Event::SpreadBy(None));
    assert_eq!(nodes.session.router.take_passed(0), None);
}

#[tokio::test]
async fn what_can_not_be_handed_over_is_told_to_its_node() {
    let mut nodes = nodes();
    perform_all(&mut nodes);
    // The topic is not known yet.
    assert!(!nodes.request(1, &claim(7)));
    let told = [(); 2].map(|()| nodes.session.poll());
    let [
        Some(SessionEvent::AppendRefused { .. }),
        Some(SessionEvent::Election { role: 1, event: candidate::Event::Undelivered { seq: 7, may_be_in_log: false } }),
    ] = told
    else {
        panic!("{told:?}");
    };
}

/// A claim with this sequence number.
fn claim(seq: u64) -> Request {
    let body = Body::Claim { after: -1, lease_ms: 300, overlap: None };
    Request::Send { record: Record { member: None, name: None, seq: Some(seq), body } }
}

/// Does a request of role 0, and waits for the event that follows from it. Without it a reader asks for the log's end every 20 s, and
/// the topic is identified once.
async fn perform(nodes: &mut Nodes<Role>, request: Request, wanted: fn(&candidate::Event) -> bool) {
    assert!(nodes.request(0, &request));
    let follows = async {
        loop {
            nodes.session.wait().await;
            while let Some(event) = nodes.session.poll() {
                if let SessionEvent::Election { role: 0, event } = event
                    && wanted(&event)
                {
                    return;
                }
            }
        }
    };
    let followed = tokio::time::timeout(Duration::from_secs(10), follows).await;
    assert!(followed.is_ok(), "{request:?} was not done");
}

#[tokio::test]
async fn requests_are_done_by_the_session() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let mut nodes = nodes_at(&cluster.bootstrap_servers());
    let bounds = |event: &candidate::Event| matches!(event, candidate::Event::Answered { .. });
    let identity = |event: &candidate::Event| matches!(event, candidate::Event::TopicIdentified { .. });
    perform(&mut nodes, Request::ReadAnew, bounds).await;
    perform(&mut nodes, Request::LookForEnd, bounds).await;
    perform(&mut nodes, Request::ReadFrom(0), |event| matches!(event, candidate::Event::ReachedEnd { next: 0 })).await;
    perform(&mut nodes, Request::Identify, identity).await;
    perform(&mut nodes, Request::RenewProducer, identity).await;
    perform(&mut nodes, claim(1), |event| matches!(event, candidate::Event::Delivered { seq: 1 })).await;
    perform(&mut nodes, Request::ReadAnew, bounds).await;
}

/// Kafka answers, so a claim that is under way may take effect. Nobody would lead for a lease if its writer was gone.
#[tokio::test]
async fn a_process_that_is_refused_for_its_mapping_waits_for_its_claims() {
    let (mut nodes, now) = (nodes(), clock::now());
    for event in [
        candidate::Event::TopicIdentified { asked: now, identity: TopicIdentity::Unnamed },
        candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true },
        candidate::Event::Answered { asked: now, start: 0, end: 0 },
    ] {
        nodes.roles[0].node.handle(now, Event::Election(event));
    }
    let hello = |member: &str, partitions| Hello {
        member: member.into(),
        partitions: Some(partitions),
        ..Hello::parse(br#"{"v":1,"kind":"hello","member":"","roles":"2"}"#).unwrap()
    };
    let (hello_of_me, roles) = (hello("me", 2), 2);
    let many = nodes.many.insert(ManyRoles::new(hello_of_me.clone(), roles, Elector::Log, true));
    many.topic_judged(now, 0);
    many.listens(now, 0, 10, 2);
    while many.poll_action().is_some() {}
    nodes.handle_hello(now, 12, &hello_of_me.to_bytes());
    nodes.handle_hello(now, 13, &Hello { joined: Some(3), ..hello("other", 1) }.to_bytes());

    let mut exits = |at: usize| {
        std::iter::from_fn(|| nodes.roles[at].node.poll_action()).any(|action| matches!(action, Action::Exit(_)))
    };
    assert_eq!([exits(0), exits(1)], [false, true], "the first has claimed");
    assert!(nodes.roles[0].node.is_leaving());
}

mod timeouts {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_each_role_has_one() {
        let mut timeouts = Timeouts::default();
        assert_eq!(timeouts.first(), None);
        let at = Time::from_nanos;
        timeouts.set(1, Some(at(30)));
        timeouts.set(2, Some(at(20)));
        timeouts.set(1, Some(at(10)));
        assert_eq!(timeouts.first(), Some(at(10)));
        assert_eq!(timeouts.due(at(9)), [0; 0]);
        assert_eq!(timeouts.due(at(20)), [1, 2]);
        timeouts.set(1, None);
        assert_eq!((timeouts.first(), timeouts.due(at(20))), (Some(at(20)), vec![2]));
    }
}
