//! Which candidate leads, and how a leader that is alive hands over the lead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::candidate::Elector;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::wait::PATIENCE;
use harness::with_both_electors;
use neli_election::{Error, Event, Events, Lost, Reason};
use nix::sys::signal::Signal;
use tokio::sync::Notify;

use super::{candidate, run, soon, test_election};

/// Waits for the first event that `pick` accepts.
async fn await_event<T>(events: &mut Events, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
    let find = async {
        loop {
            let event = events.next().await.expect("the candidate still stands");
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    };
    soon("an event", PATIENCE, find).await
}

with_both_electors! {
    /// The task is asked to end and is awaited. The term is only released after that.
    fn two_elections_hand_over(elector) {
        let test_election = test_election(elector);
        run(async {
            let first = candidate(&test_election).name("first").join().await.expect("the candidate joins");
            let mut lead = first.lead().await.expect("the candidate leads");
            let lease = lead.lease();
            assert!(lease.is_valid());

            let second = candidate(&test_election).name("second").join().await.expect("the candidate joins");
            let mut seen = second.events();
            assert!(second.lead_within(Duration::from_millis(200)).await.expect("the candidate joins").is_none(), "another leads");
            assert_eq!(second.leader().and_then(|leader| leader.name).as_deref(), Some("first"));

            let begun = Arc::new(Notify::new());
            let task = async |begun: Arc<Notify>| {
                let ended = lead
                    .run(|lease| async move {
                        begun.notify_one();
                        let reason = lease.ending().await;
                        assert!(lease.is_valid(), "it may end in order");
                        (lease.token(), reason)
                    })
                    .await;
                let next = lead.run(async |_| ()).await;
                drop(lead);
                (ended, next)
            };
            let first_leaves = async {
                begun.notified().await;
                first.leave().await;
            };
            let ((ended, next), ()) = tokio::join!(task(Arc::clone(&begun)), first_leaves);
            assert_eq!(ended, Ok((lease.token(), Reason::Left)), "its own value, since it came to its end");
            assert!(matches!(next, Err(Lost { reason: Reason::Left, .. })), "{next:?}");
            assert!(!lease.is_valid());

            let after = soon("the next lead", PATIENCE, second.lead()).await.expect("the candidate leads");
            assert!(after.lease().token() > lease.token());
            let term = after.lease().token();
            await_event(&mut seen, |event| (*event == Event::Acquired { term }).then_some(())).await;
            drop(after);
            second.leave().await;
        });
    }

    /// The library and the program share one journal.
    fn a_library_election_and_neli_run_elect_each_other(elector) {
        let test_election = test_election(elector);
        run(async {
            let election = candidate(&test_election).join().await.expect("the candidate joins");
            let lead = election.lead().await.expect("the candidate leads");
            let term = u64::try_from(lead.lease().token()).expect("an offset");
            let mut program = test_election.candidate().start();
            assert_eq!(program.await_event("standby").number("term"), term);

            let lease = lead.lease();
            election.leave().await;
            assert!(!lease.is_valid());
            let next = program.await_lead();
            assert!(next > term);
            test_election.await_witness(next);

            let mut events = {
                let election = candidate(&test_election).join().await.expect("the candidate joins");
                let events = election.events();
                assert_eq!(election.leader().map(|leader| leader.term), i64::try_from(next).ok());
                program.signal(Signal::SIGTERM);
                let lead = soon("the next lead", PATIENCE, election.lead()).await.expect("the candidate leads");
                assert!(lead.lease().is_valid());
                test_election.assert_gone(next);
                // The last handle is dropped, and the term is still released.
                events
            };
            let released = await_event(&mut events, |event| {
                if let Event::Released { delivered, reason, .. } = event { Some((*delivered, *reason)) } else { None }
            });
            assert!(matches!(released.await, (true, Reason::Resigned | Reason::Left)));
            assert_eq!(program.status(), 0);
        });
    }

    /// An operator's request has the same effect in the library as in `neli-run`: the task gets the reason, and another candidate
    /// leads.
    fn an_operators_request_makes_the_leader_resign(elector) {
        let test_election = test_election(elector);
        run(async {
            let first = candidate(&test_election).join().await.expect("the candidate joins");
            let mut lead = first.lead().await.expect("the candidate leads");
            let term = lead.lease().token();
            let second = candidate(&test_election).join().await.expect("the candidate joins");
            let ask = async {
                let text =
                    format!(r#"{{"v":1,"kind":"request","what":"resign","term":{term},"by":"me","reason":"why"}}"#);
                Pen::new(Kafka::shared(), &test_election.topic(), &[]).write(&test_election.key(), &[text.as_bytes()]);
            };
            let (outcome, ()) = tokio::join!(lead.run(async |lease| lease.ending().await), ask);
            assert_eq!(outcome, Ok(Reason::Resigned));
            let next = soon("the next lead", PATIENCE, second.lead()).await.expect("the candidate leads");
            assert!(next.lease().token() > term);
        });
    }

    /// The release waits for the callback.
    fn the_callback_before_the_release_is_awaited(elector) {
        let test_election = test_election(elector);
        run(async {
            let called = Arc::new(AtomicBool::new(false));
            let outcome = Arc::clone(&called);
            let builder = candidate(&test_election).before_release(PATIENCE, move |lease, reason| {
                let outcome = Arc::clone(&outcome);
                async move {
                    tokio::task::yield_now().await;
                    outcome.store(lease.is_valid() && reason == Reason::Resigned, Ordering::Relaxed);
                }
            });
            let election = builder.join().await.expect("the candidate joins");
            let mut events = election.events();
            let lead = election.lead().await.expect("the candidate leads");
            let term = lead.lease().token();
            lead.resign().await;
            let released = |event: &Event| matches!(event, Event::Released { delivered: true, .. }).then_some(());
            await_event(&mut events, released).await;
            assert!(called.load(Ordering::Relaxed), "the lease was valid");
            let records = test_election.verdicts();
            let release = records.iter().find(|line| line["record"]["kind"] == "release").expect("a release");
            assert_eq!((&release["record"]["why"], release["record"]["term"].as_i64()), (&"resigned".into(), Some(term)));
            election.leave().await;
        });
    }

    /// The operator's `end` also ends the election in the library.
    fn an_operator_ends_the_election(elector) {
        let test_election = test_election(elector);
        run(async {
            let election = candidate(&test_election).join().await.expect("the candidate joins");
            let mut lead = election.lead().await.expect("the candidate leads");
            let end = async {
                let text = r#"{"v":1,"kind":"request","what":"end","term":null,"by":"me","reason":"why"}"#;
                Pen::new(Kafka::shared(), &test_election.topic(), &[]).write(&test_election.key(), &[text.as_bytes()]);
            };
            let (outcome, ()) = tokio::join!(lead.run(async |lease| lease.ending().await), end);
            assert_eq!(outcome, Ok(Reason::Ended));
            assert_eq!(soon("the end", PATIENCE, election.lead()).await.map(drop), Err(Error::Ended));
        });
    }
}

/// The events of a leader that resigns come in order, and they name the next leader.
#[test]
fn events_report_a_lead_and_the_next_leader() {
    let test_election = test_election(Elector::Log);
    run(async {
        let first = candidate(&test_election).name("first").join().await.expect("the candidate joins");
        let mut events = first.events();
        let lead = first.lead().await.expect("the candidate leads");
        let term = lead.lease().token();
        let second = candidate(&test_election).name("second").join().await.expect("the candidate joins");
        lead.resign().await;
        let next = soon("the next lead", PATIENCE, second.lead()).await.expect("the candidate leads");
        let (mut seen, last) = (Vec::new(), Event::Standby { leader: Some("second".to_owned()) });
        await_event(&mut events, |event| {
            // It may have led before the events were asked for.
            let may_come = [Event::Acquired { term }, Event::Standby { leader: None }];
            let tells = !may_come.contains(event) && !matches!(event, Event::Warning { .. });
            seen.extend(tells.then(|| event.clone()));
            (*event == last).then_some(())
        })
        .await;
        let reason = Reason::Resigned;
        let released = Event::Released { term, reason, delivered: true };
        assert_eq!(seen, [Event::Revoked { term, reason }, released, last]);
        drop(next);
    });
}

/// A candidate whose user does not call `lead` resigns, so that it does not keep others from leading, and says so.
#[test]
fn a_lead_that_the_user_does_not_take_is_released() {
    let test_election = test_election(Elector::Log);
    run(async {
        let idle =
            candidate(&test_election).lease(Duration::from_millis(600)).join().await.expect("the candidate joins");
        let mut events = idle.events();
        let is_warning = |event: &Event| matches!(event, Event::Warning { message } if message.contains("nobody took"));
        await_event(&mut events, |event| is_warning(event).then_some(())).await;
        await_event(&mut events, |event| {
            matches!(event, Event::Released { reason: Reason::Resigned, .. }).then_some(())
        })
        .await;
        idle.leave().await;
    });
}

/// The same task runs in each lead, and is dropped at once when the lead is to end.
#[test]
fn a_background_task_runs_while_leading() {
    let test_election = test_election(Elector::Log);
    run(async {
        let election = candidate(&test_election).join().await.expect("the candidate joins");
        let runs = Arc::new(Notify::new());
        let ran = Arc::clone(&runs);
        let mut count = 0;
        let background = election.background(|lease| {
            count += 1;
            let (ran, is_first) = (Arc::clone(&ran), count == 1);
            async move {
                assert!(lease.is_valid());
                ran.notify_one();
                if !is_first {
                    std::future::pending::<()>().await;
                }
            }
        });
        let leave = async {
            runs.notified().await;
            runs.notified().await;
            election.clone().leave().await;
        };
        let (left, ()) = tokio::join!(background, leave);
        assert_eq!(left, Ok(()));
    });
}
/// A follower knows the leader's name, and writes nothing.
#[test]
fn a_follower_knows_the_leader() {
    let test_election = test_election(Elector::Log);
    run(async {
        let election = candidate(&test_election).name("10.0.0.7:8080").join().await.expect("the candidate joins");
        let lead = election.lead().await.expect("the candidate leads");
        let builder = neli_election::Election::builder(&test_election.group).brokers(Kafka::shared().address());
        let mut follower = builder.follow().expect("the follower starts");
        let learn = async {
            while follower.leader().is_none() {
                follower.changed().await.expect("the follower runs");
            }
        };
        soon("a leader", PATIENCE, learn).await;
        let leader = follower.leader().expect("the candidate leads");
        assert_eq!((leader.name.as_deref(), leader.term), (Some("10.0.0.7:8080"), lead.lease().token()));

        election.leave().await;
        let forget = async {
            while follower.leader().is_some() {
                follower.changed().await.expect("the follower runs");
            }
        };
        soon("a release", PATIENCE, forget).await;
    });
}
