//! Followers with the library's embedded broker.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod limit;

use std::time::Duration;

use neli_election::{Builder, Election, Elector, EmbeddedBroker, Follower, Leader, Leadership};

use crate::limit::soon;

const LEASE: Duration = Duration::from_secs(2);

fn candidate(broker: &EmbeddedBroker) -> Builder {
    Election::builder("billing").embedded(broker).lease(LEASE).elector(Elector::Log)
}

/// Follows until `pick` returns a value.
async fn until<T>(follower: &mut Follower, pick: impl Fn(&Leadership) -> Option<T>) -> T {
    let find = async {
        loop {
            if let Some(found) = pick(&follower.leadership()) {
                return found;
            }
            follower.changed().await.unwrap();
        }
    };
    soon("the leadership that the test waits for", find).await
}

fn led(leadership: &Leadership) -> Option<Leader> {
    if let Leadership::Led(leader) = leadership { Some(leader.clone()) } else { None }
}

fn trouble(leadership: &Leadership) -> Option<String> {
    if let Leadership::Unknown { trouble } = leadership { trouble.clone() } else { None }
}

fn vacant(leadership: &Leadership) -> Option<()> {
    (*leadership == Leadership::Vacant).then_some(())
}

/// A follower that is started before the first candidate reports that it waits for the topic.
#[tokio::test(flavor = "current_thread")]
async fn a_follower_waits_for_a_missing_topic() {
    let broker = EmbeddedBroker::start().unwrap();
    let mut follower = Follower::builder("billing").embedded(&broker).start().unwrap();
    let message = until(&mut follower, trouble).await;
    assert!(message.contains("billing.neli") && message.contains("does not exist yet"), "{message}");
    let election = candidate(&broker).name("web1").join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let leader = until(&mut follower, led).await;
    assert_eq!((leader.name.as_deref(), leader.term), (Some("web1"), lead.lease().token()));
    assert!(leader.since.is_some());
    // A candidate has the same information.
    assert_eq!(led(&election.leadership()).map(|leader| (leader.term, leader.is_self)), Some((leader.term, true)));
    let standby = candidate(&broker).name("web2").join().await.unwrap();
    let seen = led(&standby.leadership()).unwrap();
    assert_eq!((seen.name.as_deref(), seen.term, seen.is_self), (Some("web1"), leader.term, false));
    standby.leave().await;
    election.leave().await;
    until(&mut follower, vacant).await;
    drop(lead);
}

/// "No leader" is different from "not known yet".
#[tokio::test(flavor = "current_thread")]
async fn an_unreachable_broker_is_reported() {
    // No process listens at this address.
    let mut follower = Follower::builder("billing").brokers("127.0.0.1:9").start().unwrap();
    assert!(matches!(follower.leadership(), Leadership::Unknown { .. }), "nobody has said yet who leads");
    let message = until(&mut follower, trouble).await;
    assert!(message.contains("127.0.0.1:9"), "{message}");
}

/// Each role's leader is known, although several roles share a partition.
#[tokio::test(flavor = "current_thread")]
async fn the_leader_of_each_role_is_followed() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = candidate(&broker).name("web1").roles(3).join().await.unwrap();
    let builder = Follower::builder("billing").embedded(&broker);
    let followers = builder.roles(3).start().unwrap();
    let mut leads = Vec::new();
    for (role, election) in roles.iter() {
        let lead = election.lead().await.unwrap();
        let mut follower = followers.get(role).unwrap().clone();
        assert_eq!(until(&mut follower, led).await.term, lead.lease().token(), "role {role}");
        leads.push(lead);
    }
    assert!(followers.get("3").is_none());
    leads.remove(1).resign().await;
    let resigned = roles.get("1").unwrap().clone();
    let mut follower = followers.get("1").unwrap().clone();
    until(&mut follower, vacant).await;
    assert_eq!(followers.iter().filter(|(_, follower)| follower.leader().is_some()).count(), 2);
    // Records of the other roles in the same partition do not hide the next leader of this role.
    let next = resigned.lead().await.unwrap();
    assert_eq!(until(&mut follower, led).await.term, next.lease().token());
    roles.leave().await;
}

#[tokio::test(flavor = "current_thread")]
async fn roles_are_followed_by_their_names() {
    let broker = EmbeddedBroker::start().unwrap();
    let names = ["ingest", "bill"];
    let roles = candidate(&broker).named_roles(names).join().await.unwrap();
    let followers = Follower::builder("billing").embedded(&broker).named_roles(names).start().unwrap();
    let lead = roles.get("bill").unwrap().lead().await.unwrap();
    let mut follower = followers.get("bill").unwrap().clone();
    assert_eq!(until(&mut follower, led).await.term, lead.lease().token());
    drop(lead);
    let error = Follower::builder("billing").embedded(&broker).named_roles(["a", "a"]).start().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("named_roles a,a: "), "{error}");
}
