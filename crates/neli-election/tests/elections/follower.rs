//! Followers with the library's embedded broker.

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
    let mut follower = Election::builder("billing").embedded(&broker).follow().unwrap();
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
    let mut follower = Election::builder("billing").brokers("127.0.0.1:9").follow().unwrap();
    assert!(matches!(follower.leadership(), Leadership::Unknown { .. }), "nobody has said yet who leads");
    let message = until(&mut follower, trouble).await;
    assert!(message.contains("127.0.0.1:9"), "{message}");
}

/// With a callback for warnings they go there, and not to stderr.
#[tokio::test(flavor = "current_thread")]
async fn warnings_go_to_the_callback() {
    let (sender, mut warnings) = tokio::sync::mpsc::unbounded_channel();
    let builder = Election::builder("billing").brokers("127.0.0.1:9");
    let builder = builder.on_warning(move |message| sender.send(message.to_owned()).unwrap());
    let _follower = builder.follow().unwrap();
    let warning = soon("the warning", warnings.recv()).await.unwrap();
    assert!(warning.starts_with("it is unknown who leads: ") && warning.contains("127.0.0.1:9"), "{warning}");
}

/// The callback runs in the follower's own thread, which must go on.
#[tokio::test(flavor = "current_thread")]
async fn a_callback_that_panics_does_not_end_the_follower() {
    let builder = Election::builder("billing").brokers("127.0.0.1:9").on_warning(|_| panic!("a user's fault"));
    let mut follower = builder.follow().unwrap();
    let message = until(&mut follower, trouble).await;
    assert!(message.contains("127.0.0.1:9"), "{message}");
}

/// One election and several roles are joined and followed by different calls, which say so.
#[tokio::test(flavor = "current_thread")]
async fn roles_are_refused_where_one_election_is_meant() {
    let broker = EmbeddedBroker::start().unwrap();
    let error = candidate(&broker).roles(3).join().await.map(drop).unwrap_err();
    assert_eq!(error.to_string(), "roles 3: join stands in one election, join_roles for these roles");
    let error = candidate(&broker).named_roles(["a", "b"]).follow().map(drop).unwrap_err();
    assert_eq!(error.to_string(), "roles a,b: follow follows one election, follow_roles those of these roles");
    let roles = candidate(&broker).join_roles().await.unwrap();
    assert_eq!(roles.iter().map(|(role, _)| role).collect::<Vec<_>>(), ["0"], "a single role is a list of one");
}

/// Each role's leader is known, although several roles share a partition.
#[tokio::test(flavor = "current_thread")]
async fn the_leader_of_each_role_is_followed() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = candidate(&broker).name("web1").roles(3).join_roles().await.unwrap();
    let builder = Election::builder("billing").embedded(&broker);
    let followers = builder.roles(3).follow_roles().unwrap();
    let mut leads = Vec::new();
    for (role, election) in roles.iter() {
        let lead = election.lead().await.unwrap();
        let mut follower = followers.get(role).unwrap().clone();
        assert_eq!(until(&mut follower, led).await.term, lead.lease().token(), "role {role}");
        leads.push(lead);
    }
    assert!(!followers.contains_key("3"));
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
    let roles = candidate(&broker).named_roles(names).join_roles().await.unwrap();
    let followers = Election::builder("billing").embedded(&broker).named_roles(names).follow_roles().unwrap();
    let lead = roles.get("bill").unwrap().lead().await.unwrap();
    let mut follower = followers.get("bill").unwrap().clone();
    assert_eq!(until(&mut follower, led).await.term, lead.lease().token());
    drop(lead);
    let error =
        Election::builder("billing").embedded(&broker).named_roles(["a", "a"]).follow_roles().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("named_roles a,a: "), "{error}");
}
