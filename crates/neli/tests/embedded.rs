//! The library on its own embedded broker.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::time::Duration;

use neli::{Election, EmbeddedBroker, Error};

const LEASE: Duration = Duration::from_millis(600);

/// A lead lasts longer than a lease, and the next candidate has it when it ends.
#[tokio::test(flavor = "current_thread")]
async fn a_lead_is_kept_by_heartbeats() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let mut lead = election.lead().await.unwrap();
    lead.run(async |lease| {
        let first = lease.deadline().unwrap();
        let mut times = tokio::time::interval(Duration::from_millis(5));
        while lease.deadline().unwrap() < first + 3 * LEASE {
            times.tick().await;
            assert!(lease.is_valid());
        }
    })
    .await
    .unwrap();
    let other = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    assert!(other.lead_within(LEASE).await.unwrap().is_none());
    let term = lead.lease().token();
    election.leave().await;
    assert!(other.lead().await.unwrap().lease().token() > term);
}

/// What is dropped stands no more, whether somebody has waited for it or not.
#[tokio::test(flavor = "current_thread")]
async fn elections_end() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let lease = lead.lease();
    let mut events = election.events();
    drop((election, lead));
    while events.next().await.is_some() {}
    assert!(!lease.is_valid());

    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let clone = election.clone();
    election.leave().await;
    assert_eq!(clone.lead().await.unwrap_err(), Error::Left);
}

/// Leads and their tasks may be sent to other threads.
#[test]
fn what_waits_may_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    let _ = |election: Election, mut lead: neli::Lead| {
        is_send(async move {
            let _ = election.lead_within(LEASE).await;
            let _ = lead.run(async |lease| lease.ending().await).await;
            lead.resign().await;
            election.leave().await;
        });
    };
}
