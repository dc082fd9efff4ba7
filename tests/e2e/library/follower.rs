//! Followers on a real Kafka: with READ on the topic alone, before the topic exists, and after it was created again.

use harness::accounts::Account;
use harness::candidate::Elector;
use harness::kafka::Kafka;
use harness::rights::{Operation, Resource, Rights, Rule};
use harness::wait::PATIENCE;
use neli_election::{Election, Follower, Leader, Leadership, Roles};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

use super::worker::Worker;
use super::{candidate, candidate_at, run, soon, test_election};
use crate::guarded::Guarded;

const LEASE: Duration = Duration::from_millis(1500);

/// Follows until `pick` returns a value.
pub(crate) async fn until<T>(what: &str, follower: &mut Follower, pick: impl Fn(&Leadership) -> Option<T>) -> T {
    let follow = async {
        loop {
            if let Some(found) = pick(&follower.leadership()) {
                return found;
            }
            follower.changed().await.expect("the follower runs");
        }
    };
    soon(what, PATIENCE, follow).await
}

pub(crate) fn led(leadership: &Leadership) -> Option<Leader> {
    if let Leadership::Led(leader) = leadership { Some(leader.clone()) } else { None }
}

fn vacant(leadership: &Leadership) -> Option<()> {
    (*leadership == Leadership::Vacant).then_some(())
}

/// With only READ on the topic, which does not exist yet: the follower waits for it and reports that.
#[test]
fn the_right_to_read_a_topic_that_is_created_later_is_enough() {
    let Guarded { election: test_election, plain, address, .. } = &Guarded::new(Elector::Log);
    let topic = test_election.topic();
    let reads = Rule::allow(Account::Tenant.name(), Resource::Topic(&topic), Operation::Read);
    let rights = Rights::of(plain);
    rights.make(std::slice::from_ref(&reads));
    run(async {
        let mut builder = Election::builder(&test_election.group).brokers(address);
        for (key, value) in Account::Tenant.properties() {
            builder = builder.property(key, value);
        }
        let mut follower = builder.follow().expect("the follower starts");
        let trouble = until("what is wrong", &mut follower, |leadership| {
            if let Leadership::Unknown { trouble } = leadership { trouble.clone() } else { None }
        });
        let trouble = trouble.await;
        assert!(trouble.contains(&topic) && trouble.contains("does not exist yet"), "{trouble}");
        let election = candidate_at(test_election, plain.address())
            .name("10.0.0.7:8080")
            .join()
            .await
            .expect("the candidate joins");
        let lead = election.lead().await.expect("the candidate leads");
        let leader = until("a leader", &mut follower, led).await;
        assert_eq!((leader.name.as_deref(), leader.term), (Some("10.0.0.7:8080"), lead.lease().token()));
        election.leave().await;
        until("a release", &mut follower, vacant).await;
        drop(lead);
    });
    rights.unmake(&[reads]);
}

/// If a leader stops without a release, the leader is unknown when its lease is over.
#[test]
fn a_leader_without_records_is_unknown_after_its_lease() {
    let test_election = test_election(Elector::Log);
    let worker = Worker::start(&test_election, Kafka::shared().address(), LEASE);
    worker.await_lead(&test_election, None);
    run(async {
        let builder = Election::builder(&test_election.group).brokers(Kafka::shared().address());
        let mut follower = builder.follow().expect("the follower starts");
        until("a leader", &mut follower, led).await;
        worker.process().signal(Signal::SIGSTOP);
        let silent = |leadership: &Leadership| (*leadership == Leadership::Unknown { trouble: None }).then_some(());
        until("the end of the lease", &mut follower, silent).await;
        worker.process().signal(Signal::SIGCONT);
        until("the next leader", &mut follower, led).await;
    });
}

/// The topic is deleted and created again: the records of the old one no longer count.
#[test]
fn a_topic_that_is_created_again_is_followed() {
    let test_election = test_election(Elector::Log);
    let kafka = Kafka::shared();
    let mut follower = run(async {
        let election = candidate(&test_election).name("first").join().await.expect("the candidate joins");
        let lead = election.lead().await.expect("the candidate leads");
        let builder = Election::builder(&test_election.group).brokers(kafka.address());
        let mut follower = builder.follow().expect("the follower starts");
        until("a leader", &mut follower, led).await;
        election.leave().await;
        until("a release", &mut follower, vacant).await;
        drop(lead);
        follower
    });
    kafka.delete_topic(&test_election.topic());
    run(async {
        let is_gone = |leadership: &Leadership| matches!(leadership, Leadership::Unknown { .. }).then_some(());
        until("the end of the topic", &mut follower, is_gone).await;
        let election = candidate(&test_election).name("second").join().await.expect("the candidate joins");
        let lead = election.lead().await.expect("the candidate leads");
        let leader = until("the next leader", &mut follower, led).await;
        assert_eq!((leader.name.as_deref(), leader.term), (Some("second"), lead.lease().token()));
        election.leave().await;
        drop(lead);
    });
}

/// The same with many roles. The roles have other partitions in the new topic.
#[test]
fn a_topic_that_is_created_again_with_other_partitions_is_followed() {
    let test_election = test_election(Elector::Log);
    let kafka = Kafka::shared();
    kafka.create_partitioned_topic(&test_election.topic(), 4);
    let followers = run(async {
        let roles = candidate(&test_election).roles(4).join_roles().await.expect("the candidate joins");
        let followers = Election::builder(&test_election.group)
            .brokers(kafka.address())
            .roles(4)
            .follow_roles()
            .expect("the follower starts");
        follow_leads(roles, &followers).await;
        followers
    });
    kafka.delete_topic(&test_election.topic());
    run(async {
        for (role, follower) in &followers {
            let is_gone = |leadership: &Leadership| matches!(leadership, Leadership::Unknown { .. }).then_some(());
            until(&format!("the end of the topic, by {role}"), &mut follower.clone(), is_gone).await;
        }
    });
    kafka.create_partitioned_topic(&test_election.topic(), 3);
    run(async {
        let roles = candidate(&test_election).roles(4).join_roles().await.expect("the candidate joins");
        follow_leads(roles, &followers).await;
    });
}

/// Candidates keep the number of partitions that they found when they started. A follower that is started after partitions were added finds
/// the leaders all the same; and when candidates that count the new number have taken over, it finds those.
#[test]
fn partitions_that_were_added_under_running_candidates_hide_no_leader() {
    let test_election = test_election(Elector::Log);
    let kafka = Kafka::shared();
    kafka.create_partitioned_topic(&test_election.topic(), 2);
    run(async {
        let roles = candidate(&test_election).roles(4).join_roles().await.expect("the candidate joins");
        let topic = test_election.topic();
        let add = tokio::task::spawn_blocking(move || kafka.add_partitions(&topic, 3));
        add.await.expect("the partitions are added");
        let builder = Election::builder(&test_election.group).brokers(kafka.address());
        let followers = builder.roles(4).follow_roles().expect("the follower starts");
        follow_leads(roles, &followers).await;
        // A candidate that joins while the broker still names two is refused when it names three.
        let topic = test_election.topic();
        let named = tokio::task::spawn_blocking(move || kafka.await_partitions(&topic, 3));
        named.await.expect("the broker names them");
        let roles = candidate(&test_election).roles(4).join_roles().await.expect("the candidate joins");
        follow_leads(roles, &followers).await;
    });
}

/// Leads each role, and follows each lead and each release.
async fn follow_leads(roles: Roles, followers: &BTreeMap<String, Follower>) {
    let mut leads = Vec::new();
    for (role, election) in roles.iter() {
        let lead = election.lead().await.expect("the candidate leads");
        let mut follower = followers.get(role).expect("it is followed").clone();
        assert_eq!(until("a leader", &mut follower, led).await.term, lead.lease().token(), "role {role}");
        leads.push(lead);
    }
    roles.leave().await;
    for follower in followers.values() {
        until("a release", &mut follower.clone(), vacant).await;
    }
}
