//! A topic that is deleted and created again, with offsets that continue those of the old one.

use std::slice;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Event, Running};
use harness::cluster::{Cluster, move_leader};
use harness::election::TestElection;
use harness::journal;
use harness::kafka::Kafka;
use harness::process::Process;
use harness::wait;
use neli_kafka::topic_identity;
use neli_proto::topic::TopicIdentity;
use nix::sys::signal::Signal;
use rdkafka::producer::{BaseProducer, Producer as _};

use crate::{PROGRAM, roles};

/// All tests here assume that Kafka reports another id for the second topic with a name, and none while there is none.
#[test]
fn a_topic_that_is_made_again_has_another_id() {
    let kafka = Kafka::shared();
    let name = format!("remade-{}", std::process::id());
    let client: BaseProducer = kafka.client().create().expect("a client");
    let metadata = kafka.metadata();
    let broker = metadata.brokers().first().expect("there is one").id();
    let identity = || topic_identity(client.client(), &name, Some(broker), Duration::from_secs(10));
    let await_identity = |wanted: fn(TopicIdentity) -> bool| {
        wait::until("an answer about the topic", || identity().ok().filter(|identity| wanted(*identity)))
    };
    let is_there = |identity| matches!(identity, TopicIdentity::Id { .. });

    assert_eq!(identity(), Ok(TopicIdentity::Missing));
    kafka.create_topic(&name, &[]);
    let first = await_identity(is_there);
    assert_eq!(identity(), Ok(first));
    kafka.delete_topic(&name);
    await_identity(|identity| identity == TopicIdentity::Missing);
    kafka.create_topic(&name, &[]);
    assert_ne!(await_identity(is_there), first);
}

/// The topic is deleted while a candidate leads, and a candidate that does not know this creates it again. Its claim and beats have the
/// offsets of the old ones, and both candidates lead the same term. By the offsets alone neither candidate could notice it.
#[test]
fn a_leader_whose_topic_is_made_again_loses_its_lead() {
    let election = crate::election(Elector::Log);
    let Remade { mut old, old_job, mut new, new_since, term } = remake(&election, election.candidate());
    // If a beat of it is in the new topic before the new leader's first claim, that is void, and it may read the second one before it learns the id.
    let is_lost = |event: &Event| ["fenced", "superseded"].contains(&event.name());
    let lost = wait::until("the end of its lead", || old.history().into_iter().find(is_lost));
    if lost.name() == "superseded" {
        assert!(lost.number("by_term") == term && term > lost.number("term"), "a claim behind its beat: {lost:?}");
    } else {
        assert_eq!(lost.text("why"), "history-cut");
    }
    assert!(warned_that_it_was_remade(&old, "warning"));
    wait::until_true("the old leader's job to be gone", || !old_job.lives());
    let both = Duration::from_nanos(wait::now().saturating_sub(new_since));
    // On a busy machine the question for the id and the kill come later.
    assert!(both <= LEASE / 2 + Duration::from_secs(3), "two jobs for {both:?}");
    let standby = wait::until("whom it stands by", || {
        old.history().into_iter().rfind(|event| event.name() == "standby" && !event.text("leader").is_empty())
    });
    assert_eq!((standby.text("leader"), standby.number("term")), (NEW, term));
    assert!(new.events("fenced").is_empty());
    end([&mut old, &mut new]);
}

/// A process with many roles says one hello for all of them. The hello states that it claims none for a minute.
#[test]
fn a_leader_of_many_roles_whose_topic_is_made_again_says_one_hello_for_all() {
    let election = crate::election(Elector::Log);
    let mut candidate = roles::candidate(&election, "2").lease("4s").start();
    let both = roles::numbers(2);
    wait::until_true("a job of each role", || roles::are_all_led(&election, slice::from_ref(&candidate), &both));
    Kafka::shared().delete_topic(&election.topic());
    // The candidate creates the topic again. It does not say so if Kafka's answer comes too late.
    wait::until_true("another topic", || !candidate.warnings_with("deleted and made again").is_empty());
    for role in &both {
        let waits = wait::until("a candidate that says when it claims", || {
            let answer = election.ask("status", &["--role", role, "--json"]);
            // A broker may not know the new topic yet.
            let status = answer.errors.is_empty().then(|| answer.json())?;
            status["standbys"][0]["waits_ms"].as_u64().filter(|left| *left > 0)
        });
        assert!(waits <= 61_000, "{waits}");
    }
    end([&mut candidate]);
}

/// If a candidate may not create topics, it logs the deletion, and does not use a topic that another process created again.
#[test]
fn a_leader_that_makes_no_topics_does_not_use_one_that_another_made_again() {
    let election = crate::election(Elector::Log);
    election.candidate().job(["true"]).start().status();
    let Remade { mut old, mut new, .. } = remake(&election, election.candidate().flag("--no-create-topic"));
    assert_eq!(old.status(), 125);
    assert!(warned_that_it_was_remade(&old, "error"));
    end([&mut new]);
}

/// The new topic's leader is another broker, in an earlier leader epoch than the old one's. Because of librdkafka's cached epoch the
/// producer never uses the new topic (its issue 4898). The candidate replaces its producer, and so can write to the new topic.
#[test]
fn a_topic_that_is_made_again_on_another_broker_is_written_to() {
    const KEPT: [(&str, &str); 2] = [("message.timestamp.type", "LogAppendTime"), ("min.insync.replicas", "2")];
    let cluster = Cluster::shared();
    let kafka = cluster.kafka();
    let election = TestElection::new(PROGRAM, &kafka, Elector::Log);
    let topic = election.topic();
    kafka.create_topic_on(&topic, &[1, 2, 3], &KEPT);
    // Each move of the leadership increments the leader epoch.
    for leader in [1, 2, 0, 1] {
        wait::until_true("a leader that has moved", || {
            cluster.leader_of(&topic, 0) == Some(leader)
                || move_leader(&cluster.addresses(), &topic, leader).is_err()
                || cluster.leader_of(&topic, 0) == Some(leader)
        });
    }
    // The cut is noticed long before the lease's end, also where the cluster takes half a minute to make the topic.
    let mut run = election.candidate().lease("60s").start();
    let term = run.await_lead();
    election.await_witness(term);
    kafka.delete_topic(&topic);
    kafka.create_topic_on(&topic, &[1, 3, 2], &KEPT);
    assert_eq!(run.await_event("fenced").text("why"), "history-cut");
    wait::until_true("its hello in the new topic", || {
        let records = journal::read(&kafka, &topic);
        records.iter().any(|record| record.key.ends_with(b"/hello"))
    });
    // It claims nothing for a minute, and `status` shows until when.
    let answer = election.ask("status", &[]);
    let claimable = answer.text.split_once("\nclaimable  at ").and_then(|(_, rest)| rest.lines().next());
    let waits = "; start no other before then: it would not wait";
    assert!(claimable.is_some_and(|line| line.ends_with(waits)), "{answer:?}");
    let object = election.ask("status", &["--json"]).json();
    // Each answer says the same.
    assert_eq!(object["state"], "unknown", "{object}");
    let why = object["why"].as_str().unwrap_or_default();
    assert!(why.contains(": the topic was made anew"), "{object}");
    let listed = election.ask("list", &["--json"]).json();
    assert_eq!((&listed["state"], &listed["why"]), (&object["state"], &object["why"]));
    assert!(object["standbys"][0]["waits_ms"].as_u64().is_some_and(|left| left > 0), "{object}");
    assert!(object["claimable_since"].as_str() > object["ts"].as_str(), "{object}");
    election.close([run]);
}

const LEASE: Duration = Duration::from_secs(4);
/// The name of the candidate that creates the topic again.
const NEW: &str = "new";

/// A leader whose topic another candidate has created again.
struct Remade {
    old: Running,
    old_job: Process,
    new: Running,
    /// The time since when both have a job, in nanoseconds of `CLOCK_BOOTTIME`.
    new_since: u64,
    /// The new leader's term.
    term: u64,
}

fn remake(election: &TestElection, candidate: Candidate) -> Remade {
    let mut old = candidate.lease("4s").start();
    old.await_lead();
    let old_job = old.await_job();
    // The first extended lease shows that the leader knows its topic's id. It writes little after that, so that the new topic can become
    // longer than the old one.
    let deadlines =
        || election.testimony().lines.into_iter().map(|line| line.deadline).filter(|deadline| *deadline > 0);
    wait::until_true("a lease that is extended", || deadlines().min() < deadlines().max());
    Kafka::shared().delete_topic(&election.topic());
    let mut new = election.candidate().option("--name", NEW).lease("4s").start();
    let term = new.await_lead();
    let new_since = new.await_event("job_started").at;
    Remade { old, old_job, new, new_since, term }
}

fn warned_that_it_was_remade(candidate: &Running, event: &str) -> bool {
    wait::until_true("a word about it", || {
        candidate.events(event).iter().any(|event| event.text("message").contains("deleted and made again"))
    });
    true
}

fn end<'a>(candidates: impl IntoIterator<Item = &'a mut Running>) {
    for candidate in candidates {
        candidate.signal(Signal::SIGTERM);
        candidate.status();
    }
}
