//! Single rules: the reactions of one process's spread, without a simulated world.

use std::time::Duration;

use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL, Standing};
use neli_proto::record::MemberId;
use neli_proto::spread::{ASSIGNMENT_TAKES, Action, By, Holding, PATIENCE, Settings, Spread};
use neli_proto::time::Time;

pub(crate) const START: Time = Time::from_nanos(1_000_000_000_000);

pub(crate) fn settings(roles: usize) -> Settings {
    Settings { member: "m1".into(), roles, by: By::Count, is_on: true, max_roles: None }
}

pub(crate) fn actions(spread: &mut Spread) -> Vec<Action> {
    std::iter::from_fn(|| spread.poll_action()).collect()
}

pub(crate) fn held_by(id: &str) -> Holding {
    Holding::Held { by: id.into() }
}

/// The roles that are handed over, and to which member, if no event comes for this time but the answer of the one that is asked.
pub(crate) fn handed_over(spread: &mut Spread, from: Time, span: Duration) -> Vec<(usize, Option<MemberId>)> {
    let mut handed = Vec::new();
    let mut now = from;
    loop {
        while let Some(action) = spread.poll_action() {
            match action {
                Action::Ask { member, .. } => spread.hello_received(now, &member, None),
                Action::Delay { .. } | Action::HolderMayBeIdle { .. } => {}
                Action::HandOver { role, to } => handed.push((role, to)),
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
pub(crate) fn leads_all(settings: Settings) -> Spread {
    let roles = settings.roles;
    let mut spread = Spread::new(START, settings);
    for role in 0..roles {
        spread.observe(START, role, Holding::Leading);
    }
    spread.hello_received(START, &"m2".into(), None);
    spread
}

#[test]
fn every_role_has_a_delay_before_it_is_claimed() {
    let mut spread = Spread::new(START, settings(2));
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
        let mut spread = Spread::new(START, settings(1));
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
    let mut spread = Spread::new(START, settings(8));
    for role in 0..4 {
        spread.observe(START, role, Holding::Leading);
    }
    for (role, other) in [(4, "m2"), (5, "m2"), (6, "m2")] {
        spread.observe(START, role, held_by(other));
    }
    spread.hello_received(START, &"m3".into(), None);
    spread.observe(START, 7, held_by("m2"));
    let mut extras = actions(&mut spread).into_iter().filter_map(|action| match action {
        Action::Delay { role: 7, extra } => Some(extra),
        Action::Ask { .. } | Action::Delay { .. } | Action::HandOver { .. } | Action::HolderMayBeIdle { .. } => None,
    });
    assert_eq!(extras.next_back(), Some(Some(Duration::from_millis(700))), "four more than the one that is to have it");
}

#[test]
fn one_role_at_a_time_is_handed_over() {
    let mut spread = leads_all(settings(4));
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), [(3, Some("m2".into()))]);
    let later = START + Duration::from_secs(60);
    spread.observe(later, 3, Holding::Ending);
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(9)), [], "its job takes long to stop");
    spread.observe(later, 3, Holding::Vacant { successor: Some("m2".into()) });
    spread.observe(later, 3, held_by("m2"));
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(9)), [(2, Some("m2".into()))]);
}

#[test]
fn nothing_is_handed_over_where_that_is_off() {
    let mut spread = leads_all(Settings { is_on: false, ..settings(4) });
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), []);
}

#[test]
fn nothing_is_handed_to_a_leaving_or_failed_candidate() {
    for why in ["stopped", "suspended", "supervisor-died", "unhealthy", "restart-limit"] {
        let mut spread = leads_all(settings(4));
        spread.released(START, 0, &"m2".into(), why);
        assert_eq!(handed_over(&mut spread, START, Duration::from_secs(50)), [], "{why}");
    }
}

/// Two delays that a process gets must not both expire at once: after one claim it may have no room for the other role.
#[test]
fn no_more_roles_are_claimed_than_there_is_room_for() {
    let mut spread = Spread::new(START, Settings { max_roles: Some(1), ..settings(2) });
    assert_eq!(actions(&mut spread).len(), 2);
    for role in 0..2 {
        spread.observe(START, role, Holding::Vacant { successor: None });
    }
    assert_eq!(spread.poll_action(), Some(Action::Delay { role: 0, extra: Some(Duration::ZERO) }));
    spread.observe(START, 0, Holding::Claiming);
    assert_eq!(actions(&mut spread), [Action::Delay { role: 1, extra: None }]);
    let mut spread = Spread::new(START, Settings { max_roles: Some(1), ..settings(2) });
    assert_eq!(spread.poll_action(), Some(Action::Delay { role: 0, extra: Some(PATIENCE) }));
    spread.observe(START, 0, Holding::Claiming);
    assert_eq!(actions(&mut spread), [Action::Delay { role: 1, extra: None }], "what was to be told is told no more");
}

/// A process is notified of a revocation before it gets the new assignment. Until then the others wait for the new member.
#[test]
fn after_a_revoke_the_groups_new_choice_is_waited_for() {
    for member in ["m1", "m2"] {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(1) });
        spread.stand(START, 0, Standing::Elsewhere);
        spread.observe(START, 0, if member == "m1" { Holding::Ending } else { held_by("m2") });
        drop(actions(&mut spread));
        spread.observe(START, 0, Holding::Vacant { successor: None });
        spread.released(START, 0, &member.into(), "revoked");
        let events = actions(&mut spread);
        assert_eq!(events.last(), Some(&Action::Delay { role: 0, extra: Some(ASSIGNMENT_TAKES) }), "{member}");
        spread.stand(START, 0, Standing::Assigned);
        assert_eq!(actions(&mut spread), [Action::Delay { role: 0, extra: Some(Duration::ZERO) }]);
    }
}

/// A role that its leader could not run, or was asked to give up, does not go back to that leader because the group assigns it.
#[test]
fn a_role_that_was_given_up_is_withheld_from_the_groups_choice() {
    for (why, kept) in [("resigned", true), ("unhealthy", true), ("exited", true), ("spread", false)] {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(1) });
        spread.hello_received(START, &"m2".into(), None);
        spread.stand(START, 0, Standing::Elsewhere);
        spread.observe(START, 0, held_by("m2"));
        spread.released(START, 0, &"m2".into(), why);
        spread.hello_received(START, &"m2".into(), None);
        spread.observe(START, 0, Holding::Vacant { successor: None });
        spread.observe(START, 0, Holding::Leading);
        let expected: &[_] = if kept { &[] } else { &[(0, None)] };
        assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), expected, "{why}");
    }
}

/// The time for which a role is withheld depends on how the last lead ended, and on whether another process holds two roles fewer.
#[test]
fn a_withheld_role_is_handed_over_in_the_end() {
    let kept = [
        ("stopped", 1, 1),
        ("supervisor-died", 1, 20),
        ("spread", 1, 30),
        ("resigned", 1, 600),
        ("resigned", 2, 30),
        ("unhealthy", 2, 600),
    ];
    for (why, roles, seconds) in kept {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(roles) });
        spread.hello_received(START, &"m2".into(), None);
        spread.stand(START, 0, Standing::Elsewhere);
        spread.observe(START, 0, held_by("m2"));
        spread.observe(START, 0, Holding::Vacant { successor: None });
        spread.released(START, 0, &"m2".into(), why);
        (0..roles).for_each(|role| spread.observe(START, role, Holding::Leading));
        let (before, just) = (Duration::from_millis(seconds * 1_000 - 1), Duration::from_millis(1));
        assert_eq!(handed_over(&mut spread, START, before), [], "{why}, {roles}");
        assert_eq!(handed_over(&mut spread, START + before, just), [(0, None)], "{why}, {roles}");
    }
}

/// The group has assigned a role's partition to another member, but this process leads the role.
#[test]
fn with_the_group_the_assignment_decides() {
    let mut spread = leads_all(Settings { by: By::Assignment, ..settings(4) });
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), [], "no assignment is known");
    for (role, standing) in [(0, Standing::Assigned), (1, Standing::Elsewhere), (2, Standing::Elsewhere)] {
        spread.stand(START, role, standing);
    }
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(60)), [(1, None)]);
    let later = START + Duration::from_secs(60);
    spread.observe(later, 1, Holding::Ending);
    spread.observe(later, 1, Holding::Vacant { successor: None });
    spread.observe(later, 1, Holding::Leading);
    assert_eq!(handed_over(&mut spread, later, Duration::from_secs(60)), [(2, None)], "what nobody took is kept");
}

/// The process of an old hello may have left. A process that is present says another hello within the interval, or slightly later.
#[test]
fn a_hello_from_before_the_reading_holds_until_the_next_one_is_overdue() {
    let holds = HELLO_INTERVAL + Duration::from_secs(5);
    assert!(holds < HELLO_HOLDS);
    let just_before = holds.saturating_sub(Duration::from_millis(1));
    for (after, handed) in [(just_before, vec![(3, Some("m2".into()))]), (holds, vec![])] {
        let mut spread = Spread::new(START, settings(4));
        spread.received_earlier(START, &"m2".into(), None);
        drop(actions(&mut spread));
        (0..4).for_each(|role| spread.observe(START + after, role, Holding::Leading));
        assert_eq!(handed_over(&mut spread, START + after, Duration::ZERO), handed, "{after:?}");
    }
}

#[test]
fn a_role_without_a_leader_for_ten_seconds_counts_in_no_share() {
    let mut spread = Spread::new(START, settings(6));
    spread.hello_received(START, &"m2".into(), None);
    spread.observe(START, 0, held_by("m2"));
    (1..3).for_each(|role| spread.observe(START, role, Holding::Vacant { successor: None }));
    let later = START + Duration::from_secs(5);
    (3..6).for_each(|role| spread.observe(later, role, Holding::Leading));
    let (before, just) = (Duration::from_millis(4_999), Duration::from_millis(1));
    assert_eq!(handed_over(&mut spread, later, before), [], "three of six each, with the vacant ones");
    assert_eq!(handed_over(&mut spread, later + before, just), [(5, Some("m2".into()))], "two of four each");
}

/// A resigned role goes back to the member chosen by the group only after ten seconds without a change, because another change may make
/// the shares fair.
#[test]
fn a_hand_over_by_this_process_is_no_change_that_is_waited_for() {
    for (is_another, seconds) in [(false, 30), (true, 35)] {
        let mut spread = Spread::new(START, Settings { by: By::Assignment, ..settings(5) });
        spread.hello_received(START, &"m2".into(), None);
        (0..2).for_each(|role| spread.stand(START, role, Standing::Elsewhere));
        spread.observe(START, 0, held_by("m2"));
        spread.observe(START, 0, Holding::Vacant { successor: None });
        spread.released(START, 0, &"m2".into(), "resigned");
        (0..4).for_each(|role| spread.observe(START, role, Holding::Leading));
        assert_eq!(handed_over(&mut spread, START, Duration::from_secs(24)), [(1, None)]);
        let later = START + Duration::from_secs(25);
        if is_another {
            spread.hello_received(later, &"m3".into(), None);
            spread.observe(later, 4, held_by("m3"));
        }
        spread.observe(later, 1, Holding::Vacant { successor: None });
        spread.observe(later, 1, held_by("m2"));
        let (before, just) = (Duration::from_millis((seconds - 25) * 1_000 - 1), Duration::from_millis(1));
        assert_eq!(handed_over(&mut spread, later, before), [], "{is_another}");
        assert_eq!(handed_over(&mut spread, later + before, just), [(0, None)], "{is_another}");
    }
}

#[test]
fn where_nothing_is_moved_nothing_is_due() {
    let mut spread = Spread::new(START, Settings { is_on: false, ..settings(2) });
    assert_eq!(spread.poll_timeout(), None);
    (0..2).for_each(|role| spread.observe(START, role, Holding::Leading));
    spread.handle_timeout(START);
    let handed = actions(&mut spread).iter().any(|action| matches!(action, Action::HandOver { .. }));
    assert_eq!((handed, spread.poll_timeout()), (false, None));
}
