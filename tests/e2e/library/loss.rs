//! Loss of the lead: a network that is cut, a process that is stopped, a task that does not end.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::kafka::Wired;
use harness::network::{Flow, LinkConditions};
use harness::wait::{self, PATIENCE};
use neli_election::{Error, Event, Reason};
use nix::sys::signal::Signal;

use super::worker::Worker;
use super::{candidate, candidate_at, run, soon, test_election};
use crate::PROGRAM;

/// A lease that does not end on a busy machine, which stalls for up to a second.
const LEASE: Duration = Duration::from_secs(2);

/// A task can't extend its lease: the lease is over before another candidate leads, and the task is dropped.
#[test]
fn a_cut_network_ends_the_lease_before_another_leads() {
    let test_election = test_election(Elector::Log);
    run(async {
        let wired = Wired::take();
        let far = wired.kafka();
        let builder = candidate_at(&test_election, far.address()).lease(LEASE).fence_warning(Duration::ZERO);
        let election = builder.join().await.expect("the candidate joins");
        let mut events = election.events();
        let mut lead = election.lead().await.expect("the candidate leads");
        let (lease, term) = (lead.lease(), lead.lease().token());
        let near = wired.direct();
        let program = Candidate::new(Path::new(PROGRAM))
            .option("--group", &test_election.group)
            .option("--brokers", near.address())
            .option("--elect", Elector::Log.name())
            .lease("2s")
            .job(test_election.witness().command());
        let mut program = program.start();
        program.await_event("standby");

        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // This thread checks the lease without any await.
            let mut last = 0;
            loop {
                let now = wait::now();
                if !lease.is_valid() {
                    return sender.send(last);
                }
                last = now;
                std::thread::yield_now();
            }
        });
        wired.wire().set(LinkConditions { there: Flow::Lost, back: Flow::Lost, ..LinkConditions::default() });
        let lost = soon("the end of the lease", PATIENCE, lead.run(|_| std::future::pending::<()>())).await;
        assert_eq!(lost.map_err(|lost| (lost.term, lost.reason)), Err((term, Reason::Expired)));
        let fenced =
            async { while events.next().await.expect("the candidate still stands") != (Event::Fenced { term }) {} };
        soon("the event Fenced", PATIENCE, fenced).await;
        let last_valid = receiver.recv_timeout(PATIENCE).expect("the lease ends");
        let next = program.await_lead();
        test_election.await_witness(next);
        let first = test_election.first_instruction(next);
        assert!(last_valid < first, "valid {} us after another's job began", last_valid.saturating_sub(first) / 1000);
        drop((lead, election));
        test_election.close([program]);
    });
}

/// A process that was stopped for longer than its lease sees that the lease is over as soon as it continues.
#[test]
fn a_stopped_process_does_not_act_after_its_lease() {
    let test_election = test_election(Elector::Group);
    let worker = Worker::start(&test_election, Kafka::shared().address(), LEASE);
    let term = worker.await_lead(&test_election, None);
    let mut program = test_election.candidate().lease("2s").start();
    program.await_event("standby");
    worker.process().signal(Signal::SIGSTOP);
    let next = program.await_lead();
    test_election.await_witness(next);
    worker.process().signal(Signal::SIGCONT);
    // The worker stands by, and leads when the program has ended.
    program.signal(Signal::SIGTERM);
    assert_eq!(program.status(), 0);
    let later = worker.await_lead(&test_election, Some(next));
    assert!(later > next && next > term);
    drop(worker);
    test_election.assert_never_two();
}
/// A task that never reaches an await can't be dropped. Then the term is not released, and the candidate no longer stands by.
#[test]
fn the_term_of_a_blocked_task_is_never_released() {
    let test_election = test_election(Elector::Log);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (go_on, blocked) = mpsc::channel::<()>();
    let (sender, receiver) = mpsc::channel();
    let builder = candidate(&test_election).lease(LEASE).stop_timeout(Duration::from_millis(100));
    let (handle, handles) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        runtime.block_on(async {
            let election = builder.join().await.expect("the candidate joins");
            handle.send((election.clone(), election.events())).expect("the receiver exists");
            let mut lead = election.lead().await.expect("the candidate leads");
            let block = async |lease: neli_election::Lease| {
                sender.send(lease).expect("the receiver exists");
                // This blocks the thread, which no task should do.
                let _ = blocked.recv();
                std::future::pending::<()>().await;
            };
            let lost = lead.run(block).await;
            (lost.map_err(|lost| lost.reason), election.lead().await.map(drop))
        })
    });
    let lease = receiver.recv_timeout(PATIENCE).expect("the task runs");
    let (election, mut events) = handles.recv_timeout(PATIENCE).expect("the candidate joins");
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    other.block_on(soon("the end", PATIENCE, election.leave()));
    assert!(!lease.is_valid());
    go_on.send(()).expect("it waits");
    let (lost, after) = worker.join().expect("no panic");
    assert_eq!((lost, after), (Err(Reason::Left), Err(Error::Blocked)));
    let mut seen = Vec::new();
    while let Some(event) = other.block_on(soon("events", PATIENCE, events.next())) {
        seen.push(event);
    }
    assert!(!seen.iter().any(|event| matches!(event, Event::Released { .. })), "{seen:?}");
    let kinds: Vec<_> = test_election.verdicts().iter().map(|line| line["record"]["kind"].clone()).collect();
    assert!(!kinds.iter().any(|kind| kind == "release"), "{kinds:?}");
}

/// Another candidate's claim takes the lead from a running leader. The term ends without a release, and the events contain its end
/// and the next leader.
#[test]
fn a_lead_that_another_candidate_takes_ends_with_an_event() {
    let test_election = test_election(Elector::Log);
    run(async {
        let election = candidate(&test_election).join().await.expect("the candidate joins");
        let mut events = election.events();
        let mut lead = election.lead().await.expect("the candidate leads");
        let term = lead.lease().token();
        let pen = Pen::new(Kafka::shared(), &test_election.topic(), &[]);
        let take = async { pen.supersede(&test_election.key()) };
        let (lost, ()) = tokio::join!(lead.run(|_| std::future::pending::<()>()), take);
        assert_eq!(lost.map_err(|lost| (lost.term, lost.reason)), Err((term, Reason::Expired)));
        let mut seen = Vec::new();
        let standby = Event::Standby { leader: Some("other".to_owned()) };
        let see = async {
            while seen.last() != Some(&standby) {
                seen.push(events.next().await.expect("the candidate still stands"));
            }
        };
        soon("the next leader", PATIENCE, see).await;
        let why = format!("other leads although term {term} was not over here");
        let is_said = |event: &Event| matches!(event, Event::Warning { message } if message.starts_with(&why));
        assert_eq!(seen.iter().filter(|event| is_said(event)).count(), 1, "{seen:?}");
        // It may have led before the events were asked for.
        let may_come = [Event::Acquired { term }, Event::Standby { leader: None }];
        seen.retain(|event| !may_come.contains(event) && !matches!(event, Event::Warning { .. }));
        assert_eq!(seen, [Event::Fenced { term }, standby]);
    });
}

/// A background task is dropped when the lease is lost, and runs again in the next lead once the network is back.
#[test]
fn a_background_task_runs_again_after_a_loss() {
    let test_election = test_election(Elector::Log);
    run(async {
        let wired = Wired::take();
        let far = wired.kafka();
        let builder = candidate_at(&test_election, far.address()).lease(LEASE).fence_warning(Duration::ZERO);
        let election = builder.join().await.expect("the candidate joins");
        let (sender, mut leases) = tokio::sync::mpsc::unbounded_channel();
        let background = election.background(|lease: neli_election::Lease| {
            sender.send(lease).expect("the receiver exists");
            // This is pending until it is dropped: the task does not watch for the end of its lead.
            std::future::pending::<()>()
        });
        let conditions = async {
            let first = soon("the first lead", PATIENCE, leases.recv()).await.expect("the candidate leads");
            let cut = LinkConditions { there: Flow::Lost, back: Flow::Lost, ..LinkConditions::default() };
            wired.wire().set(cut);
            assert_eq!(soon("the end of the lease", PATIENCE, first.ending()).await, Reason::Expired);
            assert!(!first.is_valid());
            wired.wire().set(LinkConditions::default());
            let second = soon("the second lead", PATIENCE, leases.recv()).await.expect("the candidate leads");
            assert!(second.token() > first.token() && second.is_valid());
            election.clone().leave().await;
        };
        let (left, ()) = tokio::join!(background, conditions);
        assert_eq!(left, Ok(()));
    });
}

/// A broker refuses each record, and each attempt to send one; the events have one warning about it, with Kafka's reason.
#[test]
fn refused_records_are_one_warning_with_kafkas_reason() {
    const NO_RECORD: [(&str, &str); 2] = [("max.message.bytes", "100"), ("message.timestamp.type", "LogAppendTime")];
    let test_election = test_election(Elector::Log);
    let topic = test_election.topic();
    let set = |settings: &'static [_]| {
        let topic = topic.clone();
        let set = move || Kafka::shared().set_topic(&topic, settings);
        std::thread::spawn(set).join().expect("they are set");
    };
    Kafka::shared().create_topic(&topic, &NO_RECORD[1..]);
    run(async {
        let election =
            candidate(&test_election).lease(Duration::from_secs(2)).join().await.expect("the candidate joins");
        let mut events = election.events();
        set(&NO_RECORD);
        let mut warnings = Vec::new();
        // Until there is one, and then until it leads.
        for until_it_leads in [false, true] {
            let seen = async {
                while until_it_leads || warnings.is_empty() {
                    let event = events.next().await.expect("the candidate still stands");
                    if until_it_leads && matches!(event, Event::Acquired { .. }) {
                        break;
                    }
                    if let Event::Warning { message } = event
                        && message.contains("does not append")
                    {
                        warnings.push(message);
                    }
                }
            };
            soon("a warning and a lead", PATIENCE, seen).await;
            if !until_it_leads {
                // Meanwhile claims are given up and repeated, and each is refused as well.
                wait::pause(Duration::from_secs(3));
                set(&NO_RECORD[1..]);
            }
        }
        assert!(warnings.len() == 1 && warnings[0].contains("max.message.bytes must be"), "{warnings:?}");
    });
}
