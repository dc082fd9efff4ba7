//! The callback of [`neli_election::Builder::before_release`]: when and where it is called, and what happens when it fails.

use std::future::{Ready, pending, ready};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use neli_election::{Builder, Election, Elector, EmbeddedBroker, Error, Event, Events, Lease, Reason};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::limit::soon;

/// A lease that does not end on a busy machine, which stalls for more than half a second.
const LEASE: Duration = Duration::from_secs(2);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

fn candidate(broker: &EmbeddedBroker) -> Builder {
    Election::builder("billing").embedded(broker).lease(LEASE).elector(Elector::Log)
}

/// The calls of the callback: whether the lease was valid, and why the lead ends.
type Calls = UnboundedReceiver<(bool, Reason)>;

fn noting_calls(builder: Builder) -> (Builder, Calls) {
    let (call, calls) = unbounded_channel();
    let builder = builder.before_release(LONG, move |lease: Lease, reason| {
        let call = call.clone();
        async move { call.send((lease.is_valid(), reason)).unwrap() }
    });
    (builder, calls)
}

/// The election's own thread has no runtime, so the callback must not be called there. A callback that spawns before its future is
/// polled would panic there.
#[tokio::test(flavor = "current_thread")]
async fn the_callback_itself_runs_in_the_runtime_of_join() {
    let broker = EmbeddedBroker::start().unwrap();
    let (call, mut calls) = unbounded_channel();
    let builder = candidate(&broker).before_release(LONG, move |_, reason| {
        let call = call.clone();
        // The closure spawns this task, not its future.
        let spawned = tokio::spawn(async move { call.send(reason).unwrap() });
        async move { spawned.await.unwrap() }
    });
    let election = builder.join().await.unwrap();
    election.lead().await.unwrap().resign().await;
    assert_eq!(soon("a call", calls.recv()).await, Some(Reason::Resigned));
    assert!(election.lead().await.unwrap().lease().is_valid(), "the election goes on");
}

/// The term is still released, and the candidate stands by again.
#[tokio::test(flavor = "current_thread")]
async fn a_callback_that_panics_does_not_end_the_election() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = candidate(&broker).before_release(LONG, |_, _| -> Ready<()> { panic!("a user's fault") });
    let election = builder.join().await.unwrap();
    let mut events = election.events();
    let lead = election.lead().await.unwrap();
    let term = lead.lease().token();
    lead.resign().await;
    let (warnings, released, _) = until_released(&mut events).await;
    assert_eq!(released, term);
    assert!(
        warnings.iter().any(|warning| warning.contains("before_release") && warning.contains("panicked")),
        "{warnings:?}"
    );
    assert!(election.lead().await.unwrap().lease().is_valid());
}

/// The callback has its own time limit, so the time that the task uses before the stop timeout does not shorten it.
#[tokio::test(flavor = "current_thread")]
async fn it_runs_after_a_task_that_is_dropped_at_the_stop_timeout() {
    for stop_timeout in [Duration::ZERO, Duration::from_millis(50)] {
        let broker = EmbeddedBroker::start().unwrap();
        let (builder, mut calls) = noting_calls(candidate(&broker).stop_timeout(stop_timeout));
        let election = builder.join().await.unwrap();
        let mut lead = election.lead().await.unwrap();
        let (begun, is_begun) = oneshot::channel();
        let task = lead.run(async |_| {
            begun.send(()).unwrap();
            pending::<()>().await;
        });
        let leave = async {
            is_begun.await.unwrap();
            election.leave().await;
        };
        let (ended, ()) = tokio::join!(task, leave);
        assert_eq!(ended.unwrap_err().reason, Reason::Left);
        assert_eq!(soon("a call", calls.recv()).await, Some((true, Reason::Left)), "stop timeout {stop_timeout:?}");
    }
}

/// The callback is called before each release, even if no task ran.
#[tokio::test(flavor = "current_thread")]
async fn it_runs_where_no_task_runs() {
    let broker = EmbeddedBroker::start().unwrap();
    let (builder, mut calls) = noting_calls(candidate(&broker).stop_timeout(Duration::ZERO));
    let election = builder.join().await.unwrap();
    let lead = election.lead().await.unwrap();
    election.leave().await;
    assert_eq!(soon("a call", calls.recv()).await, Some((true, Reason::Left)));
    drop(lead);
}

/// A callback that could not be called within its time counts as one that takes too long. Otherwise nothing would be released, as if it could
/// not be ended.
#[test]
fn a_callback_in_a_runtime_that_does_not_run_delays_the_release_for_its_time_only() {
    let broker = EmbeddedBroker::start().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (joined, other) = (runtime(), runtime());
    let builder = candidate(&broker).before_release(Duration::from_millis(50), |_, _| pending());
    let (mut events, lead) = joined.block_on(async {
        let election = builder.join().await.unwrap();
        (election.events(), election.lead().await.unwrap())
    });
    drop(lead);
    let released = async { while !matches!(events.next().await.expect("it is released"), Event::Released { .. }) {} };
    other.block_on(soon("the release", released));
}

/// A callback that takes too long is dropped, with a warning, and the lead is released.
#[tokio::test(flavor = "current_thread")]
async fn it_is_dropped_at_the_end_of_its_time() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = candidate(&broker).stop_timeout(LONG).before_release(Duration::from_millis(50), |_, _| pending());
    let election = builder.join().await.unwrap();
    let mut events = election.events();
    let lead = election.lead().await.unwrap();
    lead.resign().await;
    let (warnings, _, reason) = until_released(&mut events).await;
    assert_eq!(reason, Reason::Resigned);
    assert!(warnings.len() == 1 && warnings[0].contains("dropped before its end"), "{warnings:?}");
}

/// The warnings before the release; its term and its reason.
async fn until_released(events: &mut Events) -> (Vec<String>, i64, Reason) {
    let mut warnings = Vec::new();
    loop {
        let event = soon("an event", events.next()).await.unwrap();
        if let Event::Warning { message } = event {
            warnings.push(message);
        } else if let Event::Released { term, reason, .. } = event {
            return (warnings, term, reason);
        }
    }
}

/// The events until their end.
async fn all(events: &mut Events) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(event) = soon("the end of the events", events.next()).await {
        all.push(event);
    }
    all
}

/// A callback that a runtime does not begin, since nobody runs it or because it has ended, is reported. The events end with the election,
/// although the runtime keeps the callback.
#[test]
fn a_callback_that_is_not_called_is_reported() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for has_ended in [false, true] {
        let broker = EmbeddedBroker::start().unwrap();
        let (joined, other) = (runtime(), runtime());
        let builder = candidate(&broker).before_release(Duration::from_millis(50), |_, _| pending());
        let (election, mut events, lead) = joined.block_on(async {
            let election = builder.join().await.unwrap();
            (election.clone(), election.events(), election.lead().await.unwrap())
        });
        let kept = (!has_ended).then_some(joined);
        let all = other.block_on(async {
            election.leave().await;
            all(&mut events).await
        });
        let is_report =
            |event: &Event| matches!(event, Event::Warning { message } if message.contains("was not called"));
        let warned = all.iter().position(is_report).unwrap_or_else(|| panic!("{all:?}"));
        let is_release = |event: &Event| matches!(event, Event::Released { delivered: true, .. });
        assert!(all[warned..].iter().any(is_release), "{all:?}");
        drop((lead, kept));
    }
}

/// The lead is released after it nevertheless, so what the callback was to do is not done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_for_which_a_blocking_task_leaves_no_time_is_reported() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = candidate(&broker).stop_timeout(Duration::ZERO);
    let builder =
        builder.before_release(Duration::from_millis(50), |_, _| -> Ready<()> { panic!("it comes too late") });
    let election = builder.join().await.unwrap();
    let mut events = election.events();
    let lead = election.lead().await.unwrap();
    let lease = lead.lease();
    let (begun, is_begun) = oneshot::channel();
    let task = tokio::spawn(async move {
        let blocking = async |lease: Lease| {
            begun.send(()).unwrap();
            while lease.is_valid() {
                std::thread::yield_now();
            }
        };
        lease.run(blocking).await
    });
    is_begun.await.unwrap();
    lead.resign().await;
    let (warnings, _, reason) = until_released(&mut events).await;
    assert_eq!(reason, Reason::Resigned);
    assert!(warnings.len() == 1 && warnings[0].contains("was not called: a task under the lead"), "{warnings:?}");
    let _ended = task.await.unwrap();
}

/// The events of a candidate whose callback blocks, and can't be dropped, end with its candidacy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_end_while_a_callback_blocks() {
    let broker = EmbeddedBroker::start().unwrap();
    let (go_on, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let builder = candidate(&broker).before_release(Duration::from_millis(50), move |_, _| {
        let _ = blocked.lock().unwrap().recv();
        ready(())
    });
    let election = builder.join().await.unwrap();
    let mut events = election.events();
    drop(election.lead().await.unwrap());
    assert_eq!(election.lead().await.unwrap_err(), Error::Blocked);
    all(&mut events).await;
    go_on.send(()).unwrap();
}
