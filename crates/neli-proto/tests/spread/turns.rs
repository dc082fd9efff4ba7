//! Which process claims which vacancy first, and which process hands over which role when.

use std::time::Duration;

use neli_proto::precedence::Standing;
use neli_proto::record::MemberId;
use neli_proto::spread::{Action, By, Holding, PATIENCE, Settings, Spread};

use crate::rules::{START, actions, handed_over, held_by, settings};

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
    let mut spread = Spread::new(START, settings(4));
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
    let mut spread = Spread::new(START, settings(3));
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
        let mut spread = Spread::new(START, settings(roles));
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
        assert_eq!(handed_over(&mut spread, later + before, MILLISECOND), [(last, Some("m2".into()))], "{roles}");
    }
}

#[test]
fn a_role_is_not_handed_back_while_another_can_be() {
    for (from, handed) in [("m2", 2), ("m3", 3)] {
        let mut spread = Spread::new(START, settings(4));
        for other in ["m2", "m3"] {
            spread.hello_received(START, &other.into(), None);
        }
        spread.observe(START, 3, held_by(from));
        spread.observe(START, 3, Holding::Vacant { successor: None });
        (0..4).for_each(|role| spread.observe(START, role, Holding::Leading));
        // Otherwise it hands over the role that it took last.
        let first = handed_over(&mut spread, START, Duration::from_secs(2));
        assert_eq!(first, [(handed, Some(MemberId::from("m2")))], "{from}");
    }
}

/// With the group: a role that its leader left without a release is withheld until the group has noticed the leader's death, even if
/// that is not fair.
#[test]
fn a_role_taken_after_a_silence_is_withheld_until_the_death_is_known() {
    for roles in [1, 3] {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(roles) });
        spread.hello_received(START, &"m3".into(), None);
        spread.stand(START, 0, Standing::Elsewhere);
        spread.observe(START, 0, held_by("m2"));
        (0..roles).for_each(|role| spread.observe(START, role, Holding::Leading));
        let before = Duration::from_millis(19_999);
        assert_eq!(handed_over(&mut spread, START, before), [], "{roles}");
        assert_eq!(handed_over(&mut spread, START + before, MILLISECOND), [(0, None)], "{roles}");
    }
}

/// A role that the group's member did not take is withheld for twice as long at each repetition. The count starts again after twenty
/// minutes.
#[test]
fn a_refusal_of_long_ago_no_longer_counts() {
    let in_a_row = Duration::from_secs(20 * 60);
    for (after, seconds) in [(in_a_row.saturating_sub(MILLISECOND), 60), (in_a_row, 30)] {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(1) });
        spread.stand(START, 0, Standing::Elsewhere);
        for now in [START, START + after] {
            spread.observe(now, 0, held_by("m2"));
            spread.observe(now, 0, Holding::Vacant { successor: None });
            spread.released(now, 0, &"m2".into(), "spread");
            spread.observe(now, 0, Holding::Leading);
        }
        let (later, before) = (START + after, Duration::from_millis(seconds * 1_000 - 1));
        assert_eq!(handed_over(&mut spread, later, before), [], "{after:?}");
        assert_eq!(handed_over(&mut spread, later + before, MILLISECOND), [(0, None)], "{after:?}");
    }
}

#[test]
fn a_role_that_this_process_leads_by_assignment_needs_no_timer() {
    let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(1) });
    spread.stand(START, 0, Standing::Assigned);
    spread.observe(START, 0, Holding::Leading);
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), []);
    let later = START + Duration::from_secs(60);
    spread.stand(later, 0, Standing::Unknown);
    drop(actions(&mut spread));
    assert_eq!(spread.poll_timeout(), None);
}
