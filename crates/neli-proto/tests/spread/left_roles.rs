//! Candidates that no longer stand for some of the roles: those were ended, or their job ended by itself and is not run again.

use std::time::Duration;

use neli_proto::role_set::RoleSet;
use neli_proto::spread::{Action, Holding, PATIENCE, Spread};

use crate::rules::{START, actions, handed_over, held_by, leads_all, with_roles};

const MINUTE: Duration = Duration::from_secs(60);

/// A process that leads all of its roles, and another that has left these.
fn leads_all_beside(roles: usize, left: &str) -> Spread {
    let mut spread = with_roles(roles);
    (0..roles).for_each(|role| spread.observe(START, role, Holding::Leading));
    spread.hello_received(START, &"m2".into(), None);
    spread.roles_left(START, &"m2".into(), &RoleSet::parse(left));
    spread
}

#[test]
fn a_candidate_is_handed_only_roles_for_which_it_stands() {
    for (left, role) in [("", Some(3)), ("3", Some(2)), ("1-3", Some(0)), ("0-3", None)] {
        let mut spread = leads_all_beside(4, left);
        let expected: Vec<_> = role.map(|role| (role, "m2".into())).into_iter().collect();
        assert_eq!(handed_over(&mut spread, START, MINUTE), expected, "{left:?}");
    }
}

#[test]
fn a_vacant_role_is_left_to_no_candidate_that_does_not_stand_for_it() {
    // By its number alone, role 1 would be the other's.
    for (left, extra) in [("0", PATIENCE), ("1", Duration::ZERO)] {
        let mut spread = with_roles(2);
        spread.hello_received(START, &"m2".into(), None);
        spread.roles_left(START, &"m2".into(), &RoleSet::parse(left));
        (0..2).for_each(|role| spread.observe(START, role, Holding::Vacant { successor: None }));
        let delays = actions(&mut spread);
        assert!(delays.contains(&Action::Delay { role: 1, extra: Some(extra) }), "{left}: {delays:?}");
    }
}

/// The other candidate led these of four roles until its jobs ended with `--restart no`. A third one led them after it and has gone, and
/// this process leads all of them again.
fn after_ends_elsewhere(roles: usize, ended: &[usize], why: &str) -> Spread {
    let mut spread = leads_all(roles);
    for role in ended {
        spread.observe(START, *role, held_by("m2"));
        spread.observe(START, *role, Holding::Vacant { successor: None });
        spread.released(START, *role, &"m2".into(), why);
        spread.observe(START, *role, held_by("m3"));
        spread.observe(START, *role, Holding::Vacant { successor: None });
        spread.released(START, *role, &"m3".into(), "stopped");
        spread.observe(START, *role, Holding::Leading);
    }
    spread
}

/// A candidate does not stand for a role any more when its job for it has ended, or failed too often: there the role would have no leader.
#[test]
fn a_role_is_not_handed_to_a_candidate_that_has_left_it() {
    // How long it is given nothing at all.
    let barred = Duration::from_secs(59);
    for (why, barred) in
        [("exited", Duration::ZERO), ("left", Duration::ZERO), ("skipped", Duration::ZERO), ("restart-limit", barred)]
    {
        let mut spread = after_ends_elsewhere(4, &[2, 3], why);
        assert_eq!(handed_over(&mut spread, START, barred), [], "{why}");
        spread.hello_received(START + barred, &"m2".into(), None);
        let handed = handed_over(&mut spread, START + barred, MINUTE);
        assert_eq!(handed, [(1, "m2".into())], "{why}: the last of those for which it stands");
    }
    let mut spread = after_ends_elsewhere(4, &[0, 1, 2, 3], "exited");
    assert_eq!(handed_over(&mut spread, START, MINUTE), [], "it stands for none");
    // Three of four: a fair share is what it stands for.
    let mut spread = after_ends_elsewhere(4, &[0, 1, 3], "exited");
    assert_eq!(handed_over(&mut spread, START, MINUTE), [(2, "m2".into())]);
    spread.observe(START + MINUTE, 2, Holding::Vacant { successor: Some("m2".into()) });
    spread.observe(START + MINUTE, 2, held_by("m2"));
    assert_eq!(handed_over(&mut spread, START + MINUTE, MINUTE), []);
}

/// `end --role` ends the election of one role. The process that led it stands for the others.
#[test]
fn a_process_whose_one_role_was_ended_is_given_others() {
    let mut spread = after_ends_elsewhere(4, &[3], "ended");
    assert_eq!(handed_over(&mut spread, START, MINUTE), [(2, "m2".into())]);
}

/// A candidate that can be given none of the roles that this process leads keeps no other from its share.
#[test]
fn a_role_is_handed_to_the_next_where_the_first_has_left_it() {
    for left in [&[0, 1, 2, 3][..], &[0, 1, 2]] {
        let mut spread = after_ends_elsewhere(4, left, "exited");
        if left.len() == 3 {
            spread.observe(START, 3, held_by("m4"));
        }
        spread.hello_received(START, &"m2".into(), None);
        spread.hello_received(START, &"m4".into(), None);
        let handed = handed_over(&mut spread, START, MINUTE);
        assert_eq!(handed, [(left.len() - 1, "m4".into())], "{left:?}");
    }
}

/// Nor is it waited for.
#[test]
fn a_candidate_that_has_left_a_role_is_not_its_successor() {
    for (has_left, is_named) in [(true, false), (true, true), (false, false)] {
        let mut spread = with_roles(2);
        spread.hello_received(START, &"m2".into(), None);
        spread.observe(START, 0, Holding::Leading);
        if has_left {
            spread.released(START, 1, &"m2".into(), "exited");
        }
        spread.observe(START, 1, held_by("m3"));
        spread.observe(START, 1, Holding::Vacant { successor: is_named.then(|| "m2".into()) });
        spread.released(START, 1, &"m3".into(), "stopped");
        let delays = actions(&mut spread);
        let at_once = Action::Delay { role: 1, extra: Some(Duration::ZERO) };
        assert_eq!(delays.last() == Some(&at_once), has_left, "{delays:?}");
    }
}

/// A process does not know who leads the roles for which it does not stand any more: each other that has not left them too may.
#[test]
fn roles_that_this_process_has_left_count_as_the_others() {
    let handed = |led: std::ops::Range<usize>, has_left_too: bool| {
        let mut spread = with_roles(6);
        spread.hello_received(START, &"m2".into(), None);
        for role in 0..2 {
            if has_left_too {
                spread.released(START, role, &"m2".into(), "exited");
            }
            spread.observe(START, role, Holding::Done);
        }
        for role in 2..6 {
            let holding = if led.contains(&role) { Holding::Leading } else { held_by("m2") };
            spread.observe(START, role, holding);
        }
        handed_over(&mut spread, START, MINUTE).len()
    };
    assert_eq!(handed(2..5, false), 0, "three, and one of the other's besides those two");
    assert_eq!(handed(2..6, false), 1, "four, and two of the other's");
    assert_eq!(handed(2..5, true), 1, "three, and one of the other's");
}
