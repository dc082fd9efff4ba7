use alloc::vec::Vec;

use super::*;
use crate::job::JobStatus;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Passes the event to the guard at that time; returns whether the guard is over then.
fn handle_event(guard: &mut Guard, millis: u64, event: Event) -> bool {
    guard.handle(at(millis), event);
    core::iter::from_fn(|| guard.poll_action()).any(|action| matches!(action, Action::Release { .. } | Action::End))
}

fn spawn(until: u64) -> Event {
    let grant = Grant { term: 5, seen: 5, next_seq: 1, until: at(until) };
    Event::Ordered(Order::Spawn { grant, run: 1, attempt: 1, window: None })
}

fn nothing_left() -> Event {
    Event::Waited(Remains::seen(false, || false))
}

#[test]
fn at_the_deadline_nothing_is_allocated() {
    let mut guard = Guard::new(Duration::from_secs(5));
    handle_event(&mut guard, 0, spawn(1_000));
    handle_event(&mut guard, 0, Event::Executed);
    let capacity = guard.actions.capacity();
    guard.fence(at(1_000));
    assert!(guard.actions.contains(&Action::KillMainGroup));
    assert_eq!(guard.actions.capacity(), capacity);
}

/// The first thread stalls at a memory limit. From the start of a run to its end the second one has a time at which it kills.
#[test]
fn the_second_thread_has_a_time_for_each_run_and_none_without_one() {
    let mut guard = Guard::new(Duration::from_secs(5));
    let due = |guard: &Guard, millis| guard.second_thread_kills_at(at(millis));
    assert_eq!(due(&guard, 0), None);
    handle_event(&mut guard, 0, spawn(1_000));
    assert_eq!(due(&guard, 0), Some(at(1_005)));
    handle_event(&mut guard, 0, Event::Executed);
    handle_event(&mut guard, 500, spawn(2_000));
    assert_eq!(due(&guard, 600), Some(at(1_005)), "a second order to start extends nothing");
    handle_event(
        &mut guard,
        600,
        Event::Ordered(Order::Lease(Grant { term: 5, seen: 6, next_seq: 2, until: at(3_000) })),
    );
    assert_eq!(due(&guard, 700), Some(at(3_005)));
    handle_event(&mut guard, 800, Event::Ordered(Order::Kill));
    assert_eq!(due(&guard, 900), Some(at(905)));
    handle_event(&mut guard, 1_000, Event::MainEnded { status: JobStatus::Signaled(9) });
    assert_eq!(due(&guard, 1_000), Some(at(1_005)));
    handle_event(&mut guard, 1_001, nothing_left());
    assert_eq!(due(&guard, 1_002), None);
}

/// A fork takes long, and fails, at a memory limit.
#[test]
fn a_deadline_during_a_fork_that_fails_is_reported_once_and_not_for_the_next_run() {
    let answers = |guard: &mut Guard| -> Vec<Answer> {
        let actions = core::iter::from_fn(|| guard.poll_action());
        actions.filter_map(|action| if let Action::Answer(answer) = action { Some(answer) } else { None }).collect()
    };
    let mut guard = Guard::new(Duration::from_secs(5));
    handle_event(&mut guard, 0, spawn(1_000));
    guard.handle(at(1_001), Event::NotStarted { errno: 12, at: Step::Fork });
    let failed = Answer::NotStarted { errno: 12, at: Step::Fork };
    assert_eq!(answers(&mut guard), [failed, Answer::Fenced { term: 5, end: None }]);

    let grant = Grant { term: 6, seen: 6, next_seq: 2, until: at(9_000) };
    handle_event(&mut guard, 2_000, Event::Ordered(Order::Spawn { grant, run: 1, attempt: 1, window: None }));
    handle_event(&mut guard, 2_000, Event::Executed);
    handle_event(&mut guard, 3_000, Event::MainEnded { status: JobStatus::Exited(0) });
    guard.handle(at(3_000), nothing_left());
    assert_eq!(answers(&mut guard), [Answer::Gone]);
}

/// A search of a large tree takes longer than the kill margin, and at a memory limit it may stall.
#[test]
fn shortly_before_the_deadline_the_tree_is_not_searched() {
    for (millis, may_search) in [(900, true), (901, false)] {
        let mut guard = Guard::new(Duration::from_secs(5));
        handle_event(&mut guard, 0, spawn(1_000));
        handle_event(&mut guard, 0, Event::Executed);
        guard.handle(at(millis), Event::MainEnded { status: JobStatus::Exited(0) });
        let look = may_search;
        assert_eq!(guard.poll_action(), Some(Action::AnswerExited { status: JobStatus::Exited(0), look }));
        guard.handle(at(millis), Event::Ordered(Order::Stop { signal: Some(15), kill_at: at(9_000) }));
        let asks = Action::SignalRest { signal: 15, but_group: false, until: at(950) };
        assert_eq!(guard.poll_action(), may_search.then_some(asks));
    }
}

/// The guard gets three events in any order: its supervisor is dead, all orders were read, and no process is left. It is over after the
/// last of them, and not before.
#[test]
fn it_is_over_when_the_supervisor_is_dead_all_orders_are_read_and_no_process_is_left() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in ORDERS {
        let mut guard = Guard::new(Duration::from_secs(5));
        handle_event(&mut guard, 0, spawn(1_000));
        handle_event(&mut guard, 0, Event::Executed);
        for (count, which) in order.into_iter().enumerate() {
            let mut is_over = false;
            match which {
                0 => is_over |= handle_event(&mut guard, 1, Event::SupervisorDied),
                1 => is_over |= handle_event(&mut guard, 1, Event::SocketClosed),
                _ => {
                    is_over |= handle_event(&mut guard, 1, Event::MainEnded { status: JobStatus::Signaled(9) });
                    is_over |= handle_event(&mut guard, 1, nothing_left());
                }
            }
            assert_eq!(is_over, count == 2, "{order:?} after {}", count + 1);
        }
        assert!(!handle_event(&mut guard, 2, nothing_left()), "it is over once");
        assert_eq!(guard.poll_timeout(), None);
    }
}

/// A round by all methods may block, so it begins only after the deadline was checked.
#[test]
fn a_child_s_end_does_not_begin_a_round_by_all_methods() {
    let with_every_method = Action::Kill(&[KillMethod::Known, KillMethod::Cgroup, KillMethod::Found]);
    for remains in [Remains::seen(true, || false), Remains::seen(false, || true)] {
        let mut guard = Guard::new(Duration::from_secs(5));
        handle_event(&mut guard, 0, spawn(1_000));
        handle_event(&mut guard, 0, Event::Executed);
        handle_event(&mut guard, 0, Event::Ordered(Order::Kill));
        handle_event(&mut guard, 0, Event::Killed(KillRound { has_seen_all: true, ..KillRound::default() }));
        handle_event(&mut guard, 1, Event::MainEnded { status: JobStatus::Signaled(9) });
        assert_eq!(guard.poll_timeout(), Some(at(2)));
        guard.handle(at(2), Event::Waited(remains));
        assert_eq!(guard.poll_action(), None);
        guard.handle_timeout(at(2));
        assert_eq!(guard.poll_action(), Some(Action::Answer(Answer::StillKilling)));
        assert_eq!(guard.poll_action(), Some(with_every_method.clone()));
    }
}

/// A look at the tree takes at most `LOOK`, and as much again is left before the deadline.
#[test]
fn the_tree_is_looked_at_only_if_twice_the_time_of_a_look_is_left() {
    let grant = Grant { term: 5, seen: 5, next_seq: 1, until: at(1_000) };
    let tenure = Some(Tenure::granted(None, grant, Time::ZERO).0);
    let latest = at(1_000) - LOOK * 2;
    assert_eq!(end_of_look(tenure, latest), Some(latest + LOOK));
    assert_eq!(end_of_look(tenure, latest + Duration::from_nanos(1)), None);
    assert_eq!(end_of_look(None, latest), None);
}
