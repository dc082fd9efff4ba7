//! Ways to work as the leader: a loop that awaits its task, a loop that drops it, concurrent tasks, and a task that resigns by itself.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use neli_election::{Builder, Election, Elector, EmbeddedBroker, Error, Lease, Reason};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Notify, oneshot};

use crate::limit::soon;

/// A lease that does not end on a busy machine, which stalls for more than half a second.
const LEASE: Duration = Duration::from_secs(2);

fn candidate(broker: &EmbeddedBroker) -> Builder {
    Election::builder("billing").embedded(broker).lease(LEASE).elector(Elector::Log)
}

/// Each lead's task is awaited before the release. Then the loop waits for the next lead, until the candidate has left.
#[tokio::test(flavor = "current_thread")]
async fn serving_continues_in_the_next_lead() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = candidate(&broker).join().await.unwrap();
    let (tell, mut receiver) = unbounded_channel();
    let served = election.serve(|lease: Lease| {
        let tell = tell.clone();
        async move {
            tell.send((lease.token(), None)).unwrap();
            let reason = lease.ending().await;
            assert!(lease.is_valid(), "it ends in order");
            tell.send((lease.token(), Some(reason))).unwrap();
        }
    });
    let steer = async {
        let (first, _) = soon("what a task tells", receiver.recv()).await.unwrap();
        let lead_of_first = election.leader().unwrap();
        assert_eq!(lead_of_first.term, first);
        let other = candidate(&broker).join().await.unwrap();
        // An operator or the group could cause the same.
        election.clone().leave().await;
        assert_eq!(soon("what a task tells", receiver.recv()).await, Some((first, Some(Reason::Left))));
        assert!(other.lead().await.unwrap().lease().token() > first);
    };
    let (left, ()) = tokio::join!(served, steer);
    assert_eq!(left, Ok(()));
}

/// A task resigns, another candidate leads, and then this one leads again.
#[tokio::test(flavor = "current_thread")]
async fn a_task_resigns_and_another_leads() {
    let broker = EmbeddedBroker::start().unwrap();
    let first = candidate(&broker).join().await.unwrap();
    let second = candidate(&broker).join().await.unwrap();
    let (tell, mut receiver) = unbounded_channel();
    let serve = |election: Election, name: &'static str| {
        let tell = tell.clone();
        tokio::spawn(async move {
            election
                .serve(async |lease| {
                    lease.resign();
                    let reason = lease.ending().await;
                    let _ = tell.send((name, lease.token(), reason));
                })
                .await
        })
    };
    let served = [serve(first.clone(), "first"), serve(second.clone(), "second")];
    let (mut seen, mut terms) = (BTreeSet::new(), Vec::new());
    while seen.len() < 2 || terms.len() < 4 {
        let (name, term, reason) = soon("what a task tells", receiver.recv()).await.unwrap();
        assert_eq!(reason, Reason::Resigned);
        seen.insert(name);
        terms.push(term);
    }
    assert!(terms.is_sorted_by(|earlier, later| earlier < later), "{terms:?}");
    first.leave().await;
    second.leave().await;
    for served in served {
        assert_eq!(served.await.unwrap(), Ok(()));
    }
}

/// Several tasks run concurrently in one lead, which none of them owns. The lead is released after the last one has ended.
#[tokio::test(flavor = "current_thread")]
async fn concurrent_tasks_are_all_awaited() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = candidate(&broker).join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let go_on = Arc::new(Notify::new());
    let tasks: Vec<_> = (0..3)
        .map(|number| {
            let (lease, go_on, (begun, is_begun)) = (lead.lease(), Arc::clone(&go_on), oneshot::channel());
            let task = tokio::spawn(async move {
                lease
                    .run(async |lease| {
                        begun.send(()).unwrap();
                        go_on.notified().await;
                        (number, lease.is_valid())
                    })
                    .await
            });
            (task, is_begun)
        })
        .collect();
    let mut running = Vec::new();
    for (task, is_begun) in tasks {
        is_begun.await.unwrap();
        running.push(task);
    }
    let lease = lead.lease();
    drop(lead);
    assert_eq!(lease.ending().await, Reason::Resigned);
    let late = lease.run(async |_| ()).await;
    assert_eq!(late.unwrap_err().reason, Reason::Resigned, "nothing is begun any more");
    for (number, task) in running.into_iter().enumerate() {
        assert!(lease.is_valid());
        go_on.notify_one();
        assert_eq!(task.await.unwrap().unwrap(), (number, true));
    }
    let wait = async {
        while lease.is_valid() {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of the lease", wait).await;
}

/// A background task that ignores the end of its lead is dropped, and started again in the next lead.
#[tokio::test(flavor = "current_thread")]
async fn a_background_task_is_run_again_under_the_next_lead() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = candidate(&broker).join().await.unwrap();
    let (tell, mut receiver) = unbounded_channel();
    let background = election.background(|lease: Lease| {
        tell.send(lease).unwrap();
        pending::<()>()
    });
    let steer = async {
        let first = soon("what a task tells", receiver.recv()).await.unwrap();
        first.resign();
        let second = soon("what a task tells", receiver.recv()).await.unwrap();
        assert!(second.token() > first.token() && !first.is_valid() && second.is_valid());
        election.clone().leave().await;
    };
    let (left, ()) = tokio::join!(background, steer);
    assert_eq!(left, Ok(()));
}

/// `?` converts the loss of a lead to the library's error.
#[tokio::test(flavor = "current_thread")]
async fn a_loss_is_an_error() {
    async fn work(election: &Election) -> Result<(), Error> {
        let mut lead = election.lead().await?;
        election.clone().leave().await;
        lead.run(async |_| ()).await?;
        Ok(())
    }
    let broker = EmbeddedBroker::start().unwrap();
    let election = candidate(&broker).join().await.unwrap();
    let error = work(&election).await.unwrap_err();
    assert!(matches!(error, Error::Lost(lost) if lost.reason == Reason::Left), "{error:?}");
}
