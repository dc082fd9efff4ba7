use std::sync::Arc;

use neli_proto::guard::{Grant, SeenEnd, Target};
use tokio::sync::mpsc;

use super::*;
use crate::error::Reason;
use crate::lease::{Commands, Tenure};

const LEASE: Duration = Duration::from_secs(10);
const PROCESS: i32 = 4711;

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn grant(term: i64, until: u64) -> Grant {
    Grant { term, seen: term, next_seq: 2, until: at(until) }
}

fn spawn(term: i64, until: u64) -> Order {
    Order::Spawn { grant: grant(term, until), run: 1, attempt: 1, window: None }
}

const fn answer(answer: Answer) -> Action {
    Action::Answer(answer)
}

/// That no task runs, as a lead that has ended shows it.
fn no_task() -> NoTask {
    let (commands, _) = mpsc::unbounded_channel();
    let tenure = Arc::new(Tenure::new(7, at(1), None, Commands::new(0, commands)));
    tenure.end(Reason::Expired);
    tenure.no_task().unwrap()
}

const STOPS: Action = Action::Signal { signal: STOP, to: Target::Group };

/// The actions of a guard that are about tasks.
fn actions(guard: &mut TaskGuard) -> Vec<Action> {
    let is_about_tasks = |action: &Action| {
        matches!(
            action,
            Action::Answer(_)
                | Action::Start { .. }
                | Action::KillMainGroup
                | Action::ShowEnd
                | Action::ShowDeadline { .. }
        ) || *action == STOPS
    };
    std::iter::from_fn(|| guard.poll_action()).filter(is_about_tasks).collect()
}

fn is_end(action: &Action) -> bool {
    matches!(action, Action::KillMainGroup | Action::ShowEnd)
}

/// A guard under which a lead has begun in term 7, until second 10.
fn leading() -> TaskGuard {
    let mut guard = TaskGuard::new(LEASE, PROCESS);
    guard.obey(at(1), spawn(7, 10));
    assert_eq!(
        actions(&mut guard),
        [
            answer(Answer::Accepted { until: at(10) }),
            Action::Start { term: 7, until: at(10), attempt: 1, window: None },
            answer(Answer::Started { pid: PROCESS }),
        ]
    );
    guard
}

#[test]
fn a_lease_is_extended() {
    let mut guard = leading();
    assert_eq!(guard.poll_timeout(), Some(at(10)));
    guard.obey(at(2), Order::Lease(grant(7, 12)));
    assert_eq!(
        actions(&mut guard),
        [Action::ShowDeadline { term: 7, until: at(12) }, answer(Answer::Extended { until: at(12) })]
    );
    assert_eq!(guard.poll_timeout(), Some(at(12)));
}

#[test]
fn at_the_deadline_what_runs_is_ended_and_only_its_end_is_answered() {
    let mut guard = leading();
    guard.handle_timeout(at(10));
    assert!(actions(&mut guard).iter().all(is_end));
    guard.ended(at(11), &no_task());
    assert_eq!(
        actions(&mut guard),
        [answer(Answer::Fenced { term: 7, end: Some(SeenEnd { gone_at: at(11), lived_at: Some(at(10)) }) })]
    );
}

/// What a dropped task has sent has a margin to arrive, at whose end the lease is over: nothing of the task was alive then.
#[test]
fn a_lead_is_not_late_while_only_what_was_sent_is_under_way() {
    for is_idle in [false, true] {
        let mut guard = leading();
        guard.handle_timeout(at(10));
        if is_idle {
            guard.note_no_task(&no_task());
        }
        for second in 11..14 {
            guard.handle_timeout(at(second));
        }
        actions(&mut guard);
        guard.ended(at(14), &no_task());
        let done = actions(&mut guard);
        let [Action::Answer(Answer::Fenced { end: Some(end), .. })] = done.as_slice() else { panic!("{done:?}") };
        assert_eq!(end.overrun(at(12)).is_none(), is_idle, "{end:?}");
    }
}

#[test]
fn the_task_learns_of_the_barrier_which_ends_at_the_stop_timeout() {
    let mut guard = leading();
    guard.obey(at(2), Order::Stop { signal: Some(STOP), kill_at: at(5) });
    assert_eq!(actions(&mut guard), [STOPS]);
    guard.handle_timeout(at(4));
    assert_eq!(actions(&mut guard), []);
    guard.handle_timeout(at(5));
    assert_eq!(actions(&mut guard), [answer(Answer::Killed), Action::KillMainGroup]);
    guard.ended(at(6), &no_task());
    assert_eq!(actions(&mut guard), [answer(Answer::Gone)]);
}

#[test]
fn a_lead_that_is_killed_ends_at_once() {
    let mut guard = leading();
    guard.obey(at(2), Order::Kill);
    let done = actions(&mut guard);
    assert!(done.iter().any(is_end) && !done.contains(&answer(Answer::Gone)), "{done:?}");
}

/// A supervisor whose order is not answered takes its guard for dead.
#[test]
fn every_order_that_is_watched_is_answered_in_the_same_turn() {
    let is_sign = |action: &Action| {
        matches!(action, Action::Answer(Answer::Accepted { .. } | Answer::Extended { .. } | Answer::Fenced { .. }))
    };
    let mut guard = leading();
    for order in [Order::Lease(grant(7, 12)), Order::Kill, Order::Lease(grant(7, 13)), Order::Kill, spawn(7, 14)] {
        guard.obey(at(3), order);
        assert_eq!(actions(&mut guard).iter().filter(|action| is_sign(action)).count(), 1, "{order:?}");
    }
    guard.handle_timeout(at(20));
    actions(&mut guard);
    guard.obey(at(20), Order::Lease(grant(7, 30)));
    assert_eq!(actions(&mut guard), [answer(Answer::Extended { until: Time::ZERO })], "it extends nothing");
}

#[test]
fn a_lease_that_is_over_begins_nothing() {
    let mut guard = TaskGuard::new(LEASE, PROCESS);
    guard.obey(at(10), spawn(7, 10));
    assert_eq!(actions(&mut guard), [answer(Answer::Fenced { term: 7, end: None })]);
}

#[test]
fn a_process_that_does_not_end_for_a_lease_is_stuck() {
    let mut guard = leading();
    guard.handle_timeout(at(10));
    let mut stuck_at = None;
    while let Some(due) = guard.poll_timeout().filter(|_| stuck_at.is_none()) {
        guard.handle_timeout(due);
        let is_stuck = actions(&mut guard).contains(&answer(Answer::Stuck { pids: vec![PROCESS] }));
        stuck_at = is_stuck.then_some(due);
    }
    assert!(stuck_at.is_some_and(|stuck| stuck >= at(20) && stuck < at(21)), "{stuck_at:?}");
    assert_eq!(guard.actions.len(), 0);
}
