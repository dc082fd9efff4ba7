//! Leases of the library, with its embedded broker. The mutants of the library are noticed here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use neli_election::{Election, Elector, EmbeddedBroker, Error, Lease};
use tokio::sync::oneshot;

use crate::limit::soon;

/// A lease that does not end on a busy machine, which stalls for more than half a second.
const LEASE: Duration = Duration::from_secs(2);

/// Blocks the thread for this time, since nothing is sent.
fn block(time: Duration) {
    let (_sender, blocked) = mpsc::channel::<()>();
    let _ = blocked.recv_timeout(time);
}

/// A lead lasts longer than a lease, and the next candidate leads when it ends.
#[tokio::test(flavor = "current_thread")]
async fn a_lead_is_kept_by_heartbeats() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let mut lead = election.lead().await.unwrap();
    lead.run(async |lease| {
        let first = lease.deadline().unwrap();
        let mut times = tokio::time::interval(Duration::from_millis(5));
        while lease.deadline().unwrap() < first + 2 * LEASE {
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

/// If a task runs when its lead must end, no other candidate leads before the task has ended.
#[tokio::test(flavor = "current_thread")]
async fn a_task_that_runs_is_awaited() {
    let broker = EmbeddedBroker::start().unwrap();
    let join = || Election::builder("billing").embedded(&broker).lease(LEASE).elector(Elector::Log).join();
    let (first, second) = (join().await.unwrap(), join().await.unwrap());
    let mut lead = first.lead().await.unwrap();
    let (begun, is_begun) = oneshot::channel();
    let task = lead.run(async |lease| {
        begun.send(()).unwrap();
        lease.ending().await;
        // This is longer than a release takes; the lease is kept meanwhile.
        let other = second.lead_within(2 * LEASE).await.unwrap();
        assert!(other.is_none(), "led while a task of the lead before ran");
        assert!(lease.is_valid());
    });
    let leave = async {
        is_begun.await.unwrap();
        first.leave().await;
    };
    let (ended, ()) = tokio::join!(task, leave);
    ended.unwrap();
    assert!(second.lead().await.unwrap().lease().is_valid());
}

/// A task that is dropped may have sent what is still under way: no other candidate leads before that has had the margin to arrive.
#[tokio::test(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "how long nobody leads is what it shows")]
async fn what_a_dropped_task_has_sent_has_the_margin_to_arrive() {
    const MARGIN: Duration = Duration::from_millis(700);
    let broker = EmbeddedBroker::start().unwrap();
    let builder = || Election::builder("billing").embedded(&broker).lease(LEASE).elector(Elector::Log).margin(MARGIN);
    for callback in [false, true] {
        let first = builder().stop_timeout(Duration::ZERO);
        let first = if callback { first.before_release(LEASE, |_, _| async {}) } else { first }.join().await.unwrap();
        let second = builder().join().await.unwrap();
        let mut lead = first.lead().await.unwrap();
        let (begun, is_begun) = oneshot::channel();
        let task = lead.run(async |_| {
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        let leave = async {
            is_begun.await.unwrap();
            let before = Instant::now();
            first.leave().await;
            before
        };
        let next = async { second.lead().await.map(|lead| (Instant::now(), lead)).unwrap() };
        let (ended, before, (begun, _lead)) = tokio::join!(task, leave, next);
        assert!(ended.is_err() && begun - before >= MARGIN, "{:?} after the drop, {callback}", begun - before);
    }
}

/// The same for a task that blocks for longer than that when it is dropped: its lease goes on for the callback, and so it may send until its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "how long nobody leads is what it shows")]
async fn what_a_task_has_sent_that_blocks_when_it_is_dropped_has_the_margin_to_arrive() {
    const MARGIN: Duration = Duration::from_millis(300);
    let broker = EmbeddedBroker::start().unwrap();
    let builder =
        || Election::builder("billing").embedded(&broker).lease(2 * LEASE).elector(Elector::Log).margin(MARGIN);
    let first = builder().stop_timeout(Duration::ZERO).before_release(10 * LEASE, |_, _| async {});
    let (first, second) = (first.join().await.unwrap(), builder().join().await.unwrap());
    let lead = first.lead().await.unwrap();
    let (lease, (begun, is_begun)) = (lead.lease(), oneshot::channel());
    let task = tokio::spawn(async move {
        let (ended, has_ended) = oneshot::channel();
        let task = async |lease: Lease| {
            begun.send(()).unwrap();
            block(2 * MARGIN);
            ended.send((lease.is_valid(), Instant::now())).unwrap();
            std::future::pending::<()>().await;
        };
        assert!(lease.run(task).await.is_err());
        has_ended.await.unwrap()
    });
    is_begun.await.unwrap();
    let ((), next) = tokio::join!(lead.resign(), second.lead());
    let (begins, (was_valid, ends)) = (Instant::now(), task.await.unwrap());
    assert!(next.is_ok() && was_valid && begins - ends >= MARGIN, "{:?} after its end", begins - ends);
}

/// The same for a callback before the release that blocks beyond its limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "how long nobody leads is what it shows")]
async fn what_a_callback_has_sent_that_blocks_beyond_its_limit_has_the_margin_to_arrive() {
    const MARGIN: Duration = Duration::from_millis(300);
    let broker = EmbeddedBroker::start().unwrap();
    let builder =
        || Election::builder("billing").embedded(&broker).lease(2 * LEASE).elector(Elector::Log).margin(MARGIN);
    let (ended, has_ended) = mpsc::channel();
    let first = builder().before_release(Duration::from_millis(50), move |lease, _| {
        let ended = ended.clone();
        async move {
            block(2 * MARGIN);
            ended.send((lease.is_valid(), Instant::now())).unwrap();
        }
    });
    let (first, second) = (first.join().await.unwrap(), builder().join().await.unwrap());
    let lead = first.lead().await.unwrap();
    let ((), next) = tokio::join!(lead.resign(), second.lead());
    let (begins, (was_valid, ends)) = (Instant::now(), has_ended.recv().unwrap());
    assert!(next.is_ok() && was_valid && begins - ends >= MARGIN, "{:?} after its end", begins - ends);
}

/// The same for the callback before the release, which is dropped at its limit.
#[tokio::test(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "how long nobody leads is what it shows")]
async fn what_a_dropped_callback_has_sent_has_the_margin_to_arrive() {
    const MARGIN: Duration = Duration::from_millis(700);
    let limit = Duration::from_millis(50);
    let broker = EmbeddedBroker::start().unwrap();
    let builder = || Election::builder("billing").embedded(&broker).lease(LEASE).elector(Elector::Log).margin(MARGIN);
    let first = builder().before_release(limit, |_, _| std::future::pending()).join().await.unwrap();
    let second = builder().join().await.unwrap();
    let lead = first.lead().await.unwrap();
    let before = Instant::now();
    let ((), next) = tokio::join!(lead.resign(), second.lead());
    let passed = before.elapsed();
    assert!(next.is_ok() && passed >= limit + MARGIN, "{passed:?}");
}

/// A task that does not end is dropped at the stop timeout. The lease continues, so that the callback before the release has it.
#[tokio::test(flavor = "current_thread")]
async fn the_callback_runs_under_the_lease_when_tasks_were_dropped() {
    let broker = EmbeddedBroker::start().unwrap();
    let (call, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let builder = Election::builder("billing").embedded(&broker).lease(LEASE).elector(Elector::Log);
    let builder = builder.stop_timeout(LEASE / 10).before_release(10 * LEASE, move |lease: Lease, _| {
        let call = call.clone();
        async move { call.send(lease.is_valid()).unwrap() }
    });
    let election = builder.join().await.unwrap();
    let mut lead = election.lead().await.unwrap();
    let (begun, is_begun) = oneshot::channel();
    let task = lead.run(async |_| {
        begun.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    let leave = async {
        is_begun.await.unwrap();
        election.leave().await;
    };
    let (ended, ()) = tokio::join!(task, leave);
    assert!(ended.is_err());
    assert_eq!(soon("a call", calls.recv()).await, Some(true), "the callback has not run under the lease");
}

/// A task that blocks can't be dropped. But its lease ends at the stop timeout, even if heartbeats are still read back. Eighty are due in the
/// lease after that, before the candidate gives up; each would take the lease up again.
#[test]
fn a_lease_that_is_over_is_not_taken_up_again() {
    let broker = EmbeddedBroker::start().unwrap();
    let (say, said) = mpsc::channel();
    let (go_on, receiver) = mpsc::channel::<()>();
    let task = thread::spawn(move || {
        block_on(async {
            let builder = Election::builder("billing").embedded(&broker).lease(2 * LEASE).elector(Elector::Log);
            let builder = builder.heartbeat_interval(LEASE / 40).stop_timeout(Duration::ZERO);
            let election = builder.join().await.unwrap();
            let mut lead = election.lead().await.unwrap();
            let task = async |lease: Lease| {
                say.send((lease, election.clone())).unwrap();
                let _ = receiver.recv();
                std::future::pending::<()>().await;
            };
            let _ = lead.run(task).await;
        });
    });
    let (lease, election) = said.recv_timeout(Duration::from_secs(60)).unwrap();
    block_on(async {
        let departure = soon("the end of the candidacy", election.leave());
        tokio::pin!(departure);
        let mut times = tokio::time::interval(Duration::from_millis(1));
        let mut has_ended = false;
        loop {
            tokio::select! {
                () = &mut departure => break,
                _ = times.tick() => {
                    has_ended |= !lease.is_valid();
                    assert!(!has_ended || !lease.is_valid(), "valid after its end");
                }
            }
        }
        assert!(has_ended);
    });
    go_on.send(()).unwrap();
    task.join().unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A task that blocks is not dropped at the stop timeout, and `resign` waits for its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resignation_waits_for_the_end_of_every_task() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = Election::builder("billing").embedded(&broker).lease(LEASE).stop_timeout(Duration::ZERO);
    let election = builder.join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let (lease, has_ended) = (lead.lease(), Arc::new(AtomicBool::new(false)));
    let (begun, is_begun) = oneshot::channel();
    let ended = Arc::clone(&has_ended);
    let task = tokio::spawn(async move {
        let task = async |_| {
            begun.send(()).unwrap();
            block(LEASE / 4);
            ended.store(true, Ordering::Relaxed);
        };
        lease.run(task).await
    });
    is_begun.await.unwrap();
    lead.resign().await;
    assert!(has_ended.load(Ordering::Relaxed), "the task still runs");
    let _ = task.await.unwrap();
}

/// A task that is not polled can't notice that its lead must end. It does not count as ended, and the term is not released. A spawned
/// task ends by itself.
#[tokio::test(flavor = "current_thread")]
async fn a_task_that_is_not_polled_does_not_count_as_ended() {
    let broker = EmbeddedBroker::start().unwrap();
    let join = || Election::builder("billing").embedded(&broker).lease(LEASE).stop_timeout(LEASE / 4).join();
    let election = join().await.unwrap();
    let mut lead = election.lead().await.unwrap();
    {
        let mut task = std::pin::pin!(lead.run(async |lease| lease.ending().await));
        assert!(tokio::time::timeout(Duration::ZERO, task.as_mut()).await.is_err(), "it waits");
        election.clone().leave().await;
        assert_eq!(election.lead().await.unwrap_err(), Error::Blocked);
    }

    let election = join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let (begun, is_begun) = oneshot::channel();
    let lease = lead.lease();
    let task = tokio::spawn(async move {
        lease
            .run(async |lease| {
                begun.send(()).unwrap();
                lease.ending().await
            })
            .await
    });
    is_begun.await.unwrap();
    election.clone().leave().await;
    assert_eq!(election.lead().await.unwrap_err(), Error::Left);
    assert_eq!(task.await.unwrap().unwrap(), neli_election::Reason::Left);
}

/// A dropped handle ends the candidacy, whether a caller awaits it or not.
#[tokio::test(flavor = "current_thread")]
async fn elections_end() {
    let broker = EmbeddedBroker::start().unwrap();
    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let lead = election.lead().await.unwrap();
    let lease = lead.lease();
    let mut events = election.events();
    drop((election, lead));
    while soon("the end of the events", events.next()).await.is_some() {}
    assert!(!lease.is_valid());

    let election = Election::builder("billing").embedded(&broker).lease(LEASE).join().await.unwrap();
    let clone = election.clone();
    election.leave().await;
    assert_eq!(clone.lead().await.unwrap_err(), Error::Left);
}

/// Leads and their tasks are `Send`.
#[test]
fn futures_of_leads_are_send() {
    fn is_send<T: Send>(_: T) {}
    fn is_shared<T: Send + Sync>() {}
    let _ = |election: Election, mut lead: neli_election::Lead| {
        is_send(async move {
            let _ = election.lead_within(LEASE).await;
            let _ = lead.run(async |lease| lease.ending().await).await;
            let _ = lead.lease().run(async |lease| lease.ending().await).await;
            lead.resign().await;
            let _ = election.serve(async |lease| _ = lease.ending().await).await;
            let _ = election.background(async |lease| _ = lease.ending().await).await;
            election.leave().await;
        });
    };
    is_shared::<(
        Election,
        neli_election::Lead,
        Lease,
        neli_election::Roles,
        neli_election::Events,
        neli_election::Events<(String, neli_election::Event)>,
        neli_election::Follower,
    )>();
}
