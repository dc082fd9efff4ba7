//! Which process claims which vacancy first, and which process hands over which role when.

use std::time::Duration;

use neli_proto::record::MemberId;
use neli_proto::spread::{Action, Holding, PATIENCE, Spread};

use crate::rules::{START, actions, handed_over, held_by, with_roles};

const MILLISECOND: Duration = Duration::from_millis(1);

/// The claim delays of all roles, in this order.
fn delays(spread: &mut Spread) -> Vec<(usize, Option<Duration>)> {
    let delay = |action| if let Action::Delay { role, extra } = action { Some((role, extra)) } else { None };
    actions(spread).into_iter().filter_map(delay).collect()
}

fn named(successor: &str) -> Holding {
    Holding::Vacant { successor: Some(successor.into()) }
}

/// Two leaders that hand over at the same time may choose the same candidate.
#[test]
fn a_candidate_that_is_named_twice_takes_no_more_than_its_share() {
    let mut spread = with_roles(4);
    for other in ["m2", "m3", "m4"] {
        spread.hello_received(START, &other.into(), None);
    }
    for (role, leader) in [(0, "m2"), (1, "m2"), (2, "m3"), (3, "m3")] {
        spread.observe(START, role, held_by(leader));
    }
    drop(actions(&mut spread));
    // Each process has one role; the second goes to the process that holds none.
    spread.observe(START, 1, named("m1"));
    spread.observe(START, 2, named("m1"));
    let events = delays(&mut spread);
    assert!(events.contains(&(1, Some(Duration::ZERO))) && !events.contains(&(2, Some(Duration::ZERO))), "{events:?}");
}

/// Roles that a process is about to claim count as well.
#[test]
fn of_two_vacancies_it_takes_no_more_than_its_share() {
    let mut spread = with_roles(3);
    spread.hello_received(START, &"m2".into(), None);
    spread.observe(START, 1, Holding::Leading);
    for role in [0, 2] {
        spread.observe(START, role, Holding::Vacant { successor: None });
    }
    let patience = PATIENCE + Duration::from_millis(50);
    let events: Vec<_> = delays(&mut spread).into_iter().filter(|(role, _)| *role != 1).collect();
    assert_eq!(events, [(0, Some(Duration::ZERO)), (2, Some(patience))], "two of three, and one more than the other");
}

/// A process with one role more than others, but not above the fair share, waits for the others. A process above the fair share does
/// not wait.
#[test]
fn a_holder_of_one_more_waits_before_it_hands_over() {
    for (roles, wait) in [(4, Duration::from_millis(300)), (6, Duration::ZERO)] {
        let mut spread = with_roles(roles);
        spread.hello_received(START, &"m2".into(), None);
        (0..2).for_each(|role| spread.observe(START, role, held_by("m0")));
        (2..roles - 1).for_each(|role| spread.observe(START, role, Holding::Leading));
        let last = roles - 1;
        spread.observe(START, last, held_by("m0"));
        assert_eq!(handed_over(&mut spread, START, MILLISECOND), []);
        // This process claims a role without a leader.
        let later = START + Duration::from_secs(1);
        spread.observe(later, last, Holding::Vacant { successor: None });
        spread.observe(later, last, Holding::Leading);
        let before = wait.saturating_sub(MILLISECOND);
        if !wait.is_zero() {
            assert_eq!(handed_over(&mut spread, later, before), []);
        }
        assert_eq!(handed_over(&mut spread, later + before, MILLISECOND), [(last, "m2".into())], "{roles}");
    }
}

#[test]
fn a_role_is_not_handed_back_while_another_can_be() {
    for (from, handed) in [("m2", 2), ("m3", 3)] {
        let mut spread = with_roles(4);
        for other in ["m2", "m3"] {
            spread.hello_received(START, &other.into(), None);
        }
        spread.observe(START, 3, held_by(from));
        spread.observe(START, 3, Holding::Vacant { successor: None });
        (0..4).for_each(|role| spread.observe(START, role, Holding::Leading));
        // Otherwise it hands over the role that it took last.
        let first = handed_over(&mut spread, START, Duration::from_secs(2));
        assert_eq!(first, [(handed, MemberId::from("m2"))], "{from}");
    }
}
