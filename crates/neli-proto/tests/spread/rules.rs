//! Single rules: the reactions of one process's spread, without a simulated world.

use std::time::Duration;

use neli_proto::hello::Hello;
use neli_proto::precedence::{Assignment, HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::record::MemberId;
use neli_proto::spread::{Action, Holding, PATIENCE, Spread};
use neli_proto::time::Time;

pub(crate) const START: Time = Time::from_nanos(1_000_000_000_000);

/// A process with so many roles.
pub(crate) fn with_roles(roles: usize) -> Spread {
    Spread::new(&Hello::new("m1".into(), None), roles, true)
}

/// The same if it leads this many of them at most.
fn limited(most: u32, roles: usize) -> Spread {
    Spread::new(&Hello { max_roles: Some(most), ..Hello::new("m1".into(), None) }, roles, true)
}

pub(crate) fn actions(spread: &mut Spread) -> Vec<Action> {
    std::iter::from_fn(|| spread.poll_action()).collect()
}

pub(crate) fn held_by(id: &str) -> Holding {
    Holding::Held { by: id.into() }
}

/// The next action, when those that are asked for a hello have answered.
pub(crate) fn next_action(spread: &mut Spread) -> Option<Action> {
    loop {
        if let Some(action) = spread.poll_action() {
            return Some(action);
        }
        let (now, member) = spread.poll_question()?;
        spread.hello_received(now, &member, None);
    }
}

/// The roles that are handed over, and to which member, if no event comes for this time but the answer of the one that is asked.
pub(crate) fn handed_over(spread: &mut Spread, from: Time, span: Duration) -> Vec<(usize, MemberId)> {
    let mut handed = Vec::new();
    let mut now = from;
    loop {
        while let Some(action) = next_action(spread) {
            if let Action::HandOver { role, to } = action {
                handed.push((role, to));
            }
        }
        match spread.poll_timeout() {
            Some(due) if due <= from + span => now = now.max(due),
            Some(_) | None => return handed,
        }
        spread.handle_timeout(now);
    }
}

/// A process that leads all roles, while another process holds none.
pub(crate) fn leads_all(roles: usize) -> Spread {
    leads_all_of(with_roles(roles), roles)
}

fn leads_all_of(mut spread: Spread, roles: usize) -> Spread {
    for role in 0..roles {
        spread.observe(START, role, Holding::Leading);
    }
    spread.hello_received(START, &"m2".into(), None);
    spread
}

#[test]
fn every_role_has_a_delay_before_it_is_claimed() {
    let mut spread = with_roles(2);
    let at_once = |role| Action::Delay { role, extra: Some(PATIENCE) };
    assert_eq!(actions(&mut spread), [at_once(0), at_once(1)], "nothing is known yet");
    spread.observe(START, 0, Holding::Vacant { successor: None });
    assert_eq!(actions(&mut spread), [Action::Delay { role: 0, extra: Some(Duration::ZERO) }], "nobody else is there");
    spread.observe(START, 0, Holding::Vacant { successor: None });
    assert_eq!(actions(&mut spread), []);
}

#[test]
fn the_named_successor_claims_first() {
    for (successor, extra) in [("m1", Duration::ZERO), ("m3", PATIENCE)] {
        let mut spread = with_roles(1);
        for other in ["m2", "m3"] {
            spread.hello_received(START, &other.into(), None);
        }
        spread.observe(START, 0, held_by("m2"));
        drop(actions(&mut spread));
        spread.observe(START, 0, Holding::Vacant { successor: Some(successor.into()) });
        let events =
            actions(&mut spread).into_iter().all(|action| action == Action::Delay { role: 0, extra: Some(extra) });
        assert!(events, "{successor}");
    }
}

#[test]
fn a_holder_of_more_roles_waits_longer() {
    let mut spread = with_roles(8);
    for role in 0..4 {
        spread.observe(START, role, Holding::Leading);
    }
    for (role, other) in [(4, "m2"), (5, "m2"), (6, "m2")] {
        spread.observe(START, role, held_by(other));
    }
    spread.hello_received(START, &"m3".into(), None);
    spread.observe(START, 7, held_by("m2"));
    let extra = |action| if let Action::Delay { role: 7, extra } = action { Some(extra) } else { None };
    let mut extras = actions(&mut spread).into_iter().filter_map(extra);
    assert_eq!(extras.next_back(), Some(Some(Duration::from_millis(700))), "four more than the one that is to have it");
}

#[test]
fn one_role_at_a_time_is_handed_over() {
    let mut spread = leads_all(4);
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), [(3, "m2".into())]);
    let later = START + Duration::from_secs(60);
    spread.observe(later, 3, Holding::Leading);
    assert_eq!(
        handed_over(&mut spread, later, Duration::ZERO),
        [],
        "its candidate does not know yet that it stands down"
    );
    spread.observe(later, 3, Holding::Ending);
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(9)), [], "its job takes long to stop");
    spread.observe(later, 3, Holding::Vacant { successor: Some("m2".into()) });
    spread.observe(later, 3, held_by("m2"));
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(9)), [(2, "m2".into())]);
}

/// A claim in flight may come to nothing, as where two processes claim two vacant roles at once: then each leads one, and nobody has too many.
#[test]
fn nothing_is_handed_over_for_a_claim_that_is_in_flight() {
    let mut spread = with_roles(2);
    spread.hello_received(START, &"m2".into(), None);
    let later = START + 10 * PATIENCE;
    spread.observe(later, 0, Holding::Leading);
    spread.observe(later, 1, Holding::Claiming);
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(5)), [], "while it is in flight");
    let (mut lost, mut won) = (spread.clone(), spread);
    let decided = later + Duration::from_secs(5);
    lost.observe(decided, 1, held_by("m2"));
    assert_eq!(handed_over(&mut lost, decided, Duration::from_secs(5)), [], "the other one took it");
    won.observe(decided, 1, Holding::Leading);
    assert_eq!(handed_over(&mut won, decided, Duration::from_secs(5)).len(), 1, "two roles are too many");
}

#[test]
fn nothing_is_handed_over_where_that_is_off() {
    let mut spread = leads_all_of(Spread::new(&Hello::new("m1".into(), None), 4, false), 4);
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), []);
}

#[test]
fn nothing_is_handed_to_a_leaving_or_failed_candidate() {
    for why in ["stopped", "suspended", "supervisor-died", "unhealthy", "restart-limit"] {
        let mut spread = leads_all(4);
        spread.released(START, 0, &"m2".into(), why);
        assert_eq!(handed_over(&mut spread, START, Duration::from_secs(50)), [], "{why}");
    }
}

/// Two delays that a process gets must not both expire at once: after one claim it may have no room for the other role.
#[test]
fn no_more_roles_are_claimed_than_there_is_room_for() {
    let mut spread = limited(1, 2);
    assert_eq!(actions(&mut spread).len(), 2);
    for role in 0..2 {
        spread.observe(START, role, Holding::Vacant { successor: None });
    }
    assert_eq!(spread.poll_action(), Some(Action::Delay { role: 0, extra: Some(Duration::ZERO) }));
    spread.observe(START, 0, Holding::Claiming);
    assert_eq!(actions(&mut spread), [Action::Delay { role: 1, extra: None }]);
    let mut spread = limited(1, 2);
    assert_eq!(spread.poll_action(), Some(Action::Delay { role: 0, extra: Some(PATIENCE) }));
    spread.observe(START, 0, Holding::Claiming);
    assert_eq!(actions(&mut spread), [Action::Delay { role: 1, extra: None }], "what was to be told is told no more");
}

/// The process of an old hello may have left. A process that is present says another hello within the interval, or slightly later.
#[test]
fn a_hello_from_before_the_reading_holds_until_the_next_one_is_overdue() {
    let holds = HELLO_INTERVAL + Duration::from_secs(5);
    assert!(holds < HELLO_HOLDS);
    let just_before = holds.saturating_sub(Duration::from_millis(1));
    for (after, handed) in [(just_before, vec![(3, "m2".into())]), (holds, vec![])] {
        let mut spread = with_roles(4);
        spread.received_earlier(START, &"m2".into(), None);
        drop(actions(&mut spread));
        (0..4).for_each(|role| spread.observe(START + after, role, Holding::Leading));
        assert_eq!(handed_over(&mut spread, START + after, Duration::ZERO), handed, "{after:?}");
    }
}

#[test]
fn a_role_without_a_leader_for_ten_seconds_counts_in_no_share() {
    let mut spread = with_roles(6);
    spread.hello_received(START, &"m2".into(), None);
    spread.observe(START, 0, held_by("m2"));
    (1..3).for_each(|role| spread.observe(START, role, Holding::Vacant { successor: None }));
    let later = START + Duration::from_secs(5);
    (3..6).for_each(|role| spread.observe(later, role, Holding::Leading));
    let (before, just) = (Duration::from_millis(4_999), Duration::from_millis(1));
    assert_eq!(handed_over(&mut spread, later, before), [], "three of six each, with the vacant ones");
    assert_eq!(handed_over(&mut spread, later + before, just), [(5, "m2".into())], "two of four each");
}

#[test]
fn where_nothing_is_moved_nothing_is_due() {
    let mut spread = Spread::new(&Hello::new("m1".into(), None), 2, false);
    assert_eq!(spread.poll_timeout(), None);
    (0..2).for_each(|role| spread.observe(START, role, Holding::Leading));
    spread.handle_timeout(START);
    let handed = actions(&mut spread).iter().any(|action| matches!(action, Action::HandOver { .. }));
    assert_eq!((handed, spread.poll_timeout()), (false, None));
}

/// Two of four roles are vacant, of which each of two processes is to have one.
fn beside_two_vacancies(standing: [Assignment; 2]) -> Spread {
    let mut spread = with_roles(4);
    spread.hello_received(START, &"m2".into(), None);
    spread.observe(START, 2, Holding::Leading);
    spread.observe(START, 3, held_by("m2"));
    for (role, standing) in (0..).zip(standing) {
        spread.stand(START, role, standing);
        spread.observe(START, role, Holding::Vacant { successor: None });
    }
    spread
}

/// By its number alone role 0 is this process's, and role 1 the other's.
#[test]
fn below_its_share_a_process_claims_first_what_the_group_has_assigned_to_it() {
    use Assignment::{Elsewhere, Own, Unknown};
    let patience = PATIENCE;
    for (standing, extras) in [
        ([Unknown, Unknown], [Duration::ZERO, patience]),
        ([Own, Elsewhere], [Duration::ZERO, patience]),
        ([Elsewhere, Own], [patience, Duration::ZERO]),
        // Its share is two.
        ([Own, Own], [Duration::ZERO, patience]),
    ] {
        let mut spread = beside_two_vacancies(standing);
        let delays: Vec<_> = actions(&mut spread);
        for (role, extra) in (0..).zip(extras) {
            let delay = Action::Delay { role, extra: Some(extra) };
            assert!(delays.contains(&delay), "{standing:?}: {delays:?}");
        }
    }
}

/// The leader named it, or has given the role up itself.
#[test]
fn an_assignment_counts_for_nothing_beside_a_named_successor_or_after_giving_the_role_up() {
    let delay = |spread: &mut Spread| {
        let extra = |action| if let Action::Delay { role: 0, extra } = action { extra } else { None };
        actions(spread).into_iter().filter_map(extra).next_back()
    };
    let patience = Some(PATIENCE);
    for (successor, gives_up, expected) in [(Some("m2"), false, patience), (None, true, patience), (None, false, None)]
    {
        let mut spread = beside_two_vacancies([Assignment::Own, Assignment::Unknown]);
        spread.observe(START, 0, Holding::Vacant { successor: successor.map(Into::into) });
        if gives_up {
            spread.released(START, 0, &"m1".into(), "resigned");
        }
        assert_eq!(delay(&mut spread), Some(expected.unwrap_or_default()), "{successor:?} {gives_up}");
    }
}

/// The group never decides which process keeps a role, only which of several goes.
#[test]
fn of_several_roles_one_that_is_assigned_to_another_goes_first() {
    for (elsewhere, expected) in [(vec![], 3), (vec![1], 1), (vec![0, 2], 2), (vec![0, 1, 2, 3], 3)] {
        let mut spread = leads_all(4);
        for role in 0..4 {
            let standing = if elsewhere.contains(&role) { Assignment::Elsewhere } else { Assignment::Own };
            spread.stand(START, role, standing);
        }
        let handed = handed_over(&mut spread, START, Duration::from_secs(60));
        assert_eq!(handed, [(expected, "m2".into())], "{elsewhere:?}");
    }
}

/// Whatever the group says, a process that holds its share keeps its roles.
#[test]
fn a_role_that_is_assigned_to_another_is_kept() {
    let mut spread = with_roles(4);
    spread.hello_received(START, &"m2".into(), None);
    for role in 0..4 {
        spread.stand(START, role, Assignment::Elsewhere);
        spread.observe(START, role, if role < 2 { Holding::Leading } else { held_by("m2") });
    }
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(3_600)), []);
}
