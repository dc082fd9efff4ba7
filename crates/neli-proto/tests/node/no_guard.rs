//! If no guard can be started, held terms are released before the exit, since no guard would release them later.

use std::time::Duration;

use neli_proto::candidate;
use neli_proto::guard::{Answer, Order, SeenEnd};
use neli_proto::kafka::Request;
use neli_proto::node::{Action, Event, Node};
use neli_proto::note::{Note, Refusal};
use neli_proto::random::Random;
use neli_proto::supervisor::{self, Ending};

use crate::host::{Host, exits, refusals, sends};

const WHY: &str = "the guard can't be started: Too many open files (os error 24)";

/// Reports the failure as the process does.
fn no_guard(host: &mut Host) -> Vec<Action> {
    host.job(supervisor::Event::GuardNotStarted { again: false });
    host.happens(Event::Refused(WHY.into()));
    host.actions()
}

#[test]
fn the_term_of_a_dead_guard_is_released_before_the_end() {
    let mut host = Host::leading(&[]);
    host.job(supervisor::Event::GuardDied);
    host.actions();
    let end = SeenEnd { gone_at: host.now, lived_at: None };
    host.job(supervisor::Event::OrphansGone(end));
    let actions = host.actions();
    assert!(
        actions.contains(&Action::StartGuard) && actions.iter().any(|action| sends(action, "release")),
        "{actions:?}"
    );
    let actions = no_guard(&mut host);
    assert_eq!((refusals(&actions), exits(&actions)), (vec![Refusal::Said(WHY.into())], vec![]));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}

/// One role of many lacks a guard for the moment: nothing is claimed until one is set up, and the attempts come ever later.
#[test]
fn a_guard_that_could_not_be_started_for_now_is_started_later() {
    let mut host = Host::listening(&[]);
    host.job(supervisor::Event::GuardDied);
    assert!(host.actions().contains(&Action::StartGuard));
    let mut waited = Vec::new();
    for _ in 0..8 {
        host.job(supervisor::Event::GuardNotStarted { again: true });
        host.answered();
        let failed_at = host.now;
        loop {
            let actions = host.actions();
            assert!(!actions.iter().any(|action| sends(action, "claim")) && exits(&actions).is_empty(), "{actions:?}");
            if actions.contains(&Action::StartGuard) {
                break;
            }
            host.pass_until_due();
        }
        waited.push(host.now.since(failed_at).as_millis());
    }
    assert_eq!(waited, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    host.answers(Answer::Ready);
    assert!(host.actions().iter().any(|action| sends(action, "claim")));
}

/// Without a guard nobody would release the term if this process died.
#[test]
fn a_term_is_not_kept_while_no_guard_can_be_started() {
    let mut host = Host::settling(&[], Duration::from_secs(60));
    host.job(supervisor::Event::GuardNotStarted { again: true });
    let actions = host.actions();
    assert!(actions.iter().any(|action| sends(action, "release")) && exits(&actions).is_empty(), "{actions:?}");
}

/// No other message without a term is sent to the log, so it is not taken for one of term 1.
#[test]
fn the_end_of_a_guard_before_the_first_term_names_no_term() {
    let mut host = Host::listening(&[]);
    host.actions();
    host.job(supervisor::Event::GuardDied);
    let lost = Action::Note(Note::GuardLost { is_killed: false });
    assert!(host.actions().contains(&lost));
}

/// The death of a guard that was replaced would never be noticed, and no claim would be made any more.
#[test]
fn a_guard_that_is_being_killed_is_not_replaced_when_the_history_was_cut() {
    let mut host = Host::listening(&[]);
    host.job(supervisor::Event::GuardDied);
    host.job(supervisor::Event::GuardDied);
    host.pass(Duration::from_secs(1));
    assert!(host.actions().contains(&Action::StartGuard));
    host.pass(Duration::from_secs(10));
    assert!(host.actions().contains(&Action::KillGuard), "it is not set up, and does not die");
    host.elects(candidate::Event::HistoryCut);
    assert!(!host.actions().contains(&Action::RenewGuard));
    host.job(supervisor::Event::GuardDied);
    host.pass(Duration::from_secs(5));
    assert!(host.actions().contains(&Action::StartGuard));
    host.answers(Answer::Ready);
    assert!(host.actions().contains(&Action::RenewGuard));
}

/// The term is won before the next attempt to start the guard.
#[test]
fn a_run_that_no_guard_received_has_never_begun() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    for _ in 0..2 {
        host.job(supervisor::Event::GuardDied);
    }
    host.actions();
    host.reads_what_it_sent();
    host.pass(Duration::from_millis(100));
    let actions = host.actions();
    let at = |wanted: fn(&Action) -> bool| actions.iter().position(wanted).unwrap_or_else(|| panic!("{actions:?}"));
    let started = at(|action| *action == Action::StartGuard);
    assert!(started < at(|action| matches!(action, Action::Order(Order::Spawn { .. }))));
    let actions = no_guard(&mut host);
    let is_released = actions.iter().any(|action| sends(action, "release"));
    assert!(is_released && exits(&actions).is_empty(), "the term of a run that has never begun is kept: {actions:?}");
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}

#[test]
fn a_claim_that_takes_effect_without_a_guard_is_released() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    assert_eq!(exits(&no_guard(&mut host)), []);
    host.reads_what_it_sent();
    let actions = host.actions();
    assert!(actions.iter().any(|action| sends(action, "release")), "{actions:?}");
    assert!(!actions.iter().any(|action| matches!(action, Action::Order(Order::Spawn { .. }))), "{actions:?}");
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}

#[test]
fn without_a_term_it_exits_at_once() {
    let mut host = Host::listening(&[]);
    host.actions();
    let actions = no_guard(&mut host);
    assert_eq!((refusals(&actions), exits(&actions)), (vec![Refusal::Said(WHY.into())], vec![Ending::Refused]));
}

/// SIGKILL to a guard that does not answer may stay pending for long (state D, frozen). No job could be started meanwhile.
#[test]
fn beside_a_guard_that_does_not_answer_nothing_is_claimed() {
    let mut host = Host::listening(&[]);
    let mut settings = Host::settings(host.now, &[], true);
    settings.job.settle = Duration::from_secs(60);
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    host.happens(Event::Guard(Answer::Ready));
    let mut host = host.listened();
    host.answered();
    host.claims();
    host.reads_what_it_sent();
    let mut actions = host.actions();
    while !actions.contains(&Action::KillGuard) {
        host.pass_until_due();
        actions = host.actions();
    }
    assert!(actions.iter().any(|action| sends(action, "release")), "no process was started: {actions:?}");
    host.reads_what_it_sent();
    host.pass_until_due();
    assert!(host.actions().contains(&Action::Kafka(Request::ReadAnew)));
    host.answered_with(host.end());
    (0..host.end()).for_each(|offset| host.reads_at(offset));
    let mut claims = |event: Option<supervisor::Event>| {
        if let Some(event) = event {
            host.job(event);
        }
        host.pass_until_due();
        host.actions().iter().any(|action| sends(action, "claim"))
    };
    assert!((0..10).all(|_| !claims(None)));
    assert!(claims(Some(supervisor::Event::GuardDied)));
}

/// Another role of the same process has its guard, and its job is stopped in order.
#[test]
fn a_job_that_runs_under_another_guard_is_stopped_in_order() {
    let mut host = Host::leading(&[]);
    host.happens(Event::Refused(WHY.into()));
    let actions = host.actions();
    assert!(actions.iter().any(|action| matches!(action, Action::Order(Order::Stop { .. }))), "{actions:?}");
    host.ends(supervisor::JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}
