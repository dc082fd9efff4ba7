//! Candidates that no longer stand for some of the roles: those were ended, or their job ended by itself and is not run again.

use std::time::Duration;

use neli_proto::precedence::Standing;
use neli_proto::role_set::RoleSet;
use neli_proto::spread::{Action, By, Holding, PATIENCE, Settings, Spread};

use crate::rules::{START, actions, handed_over, settings};

const MINUTE: Duration = Duration::from_secs(60);

/// A process that leads all of its roles, and another that has left these.
fn leads_all_beside(settings: Settings, left: &str) -> Spread {
    let roles = settings.roles;
    let mut spread = Spread::new(START, settings);
    (0..roles).for_each(|role| spread.observe(START, role, Holding::Leading));
    spread.received(START, &"m2".into(), None);
    spread.has_left(START, &"m2".into(), &RoleSet::parse(left));
    spread
}

#[test]
fn a_candidate_is_handed_only_roles_for_which_it_stands() {
    for (left, role) in [("", Some(3)), ("3", Some(2)), ("1-3", Some(0)), ("0-3", None)] {
        let mut spread = leads_all_beside(settings(4), left);
        let expected: Vec<_> = role.map(|role| (role, Some("m2".into()))).into_iter().collect();
        assert_eq!(handed_over(&mut spread, START, MINUTE), expected, "{left:?}");
    }
}

/// The group assigns the role's partition to a member, and does not say to which.
#[test]
fn a_role_that_a_member_has_left_is_not_handed_to_the_groups_choice() {
    for (left, expected) in [("", &[(0, None)][..]), ("1", &[(0, None)]), ("0", &[])] {
        let mut spread = leads_all_beside(Settings { by: By::Assignment, ..settings(2) }, left);
        spread.stand(START, 0, Standing::Elsewhere);
        assert_eq!(handed_over(&mut spread, START, MINUTE), expected, "{left:?}");
    }
    let mut spread = leads_all_beside(Settings { by: By::Assignment, ..settings(2) }, "0");
    spread.stand(START, 0, Standing::Elsewhere);
    spread.left(START, &"m2".into());
    assert_eq!(handed_over(&mut spread, START, MINUTE), [(0, None)], "that member has gone");
}

#[test]
fn a_vacant_role_is_left_to_no_candidate_that_does_not_stand_for_it() {
    // By its number alone, role 1 would be the other's.
    for (left, extra) in [("0", PATIENCE), ("1", Duration::ZERO)] {
        let mut spread = Spread::new(START, settings(2));
        spread.received(START, &"m2".into(), None);
        spread.has_left(START, &"m2".into(), &RoleSet::parse(left));
        (0..2).for_each(|role| spread.observe(START, role, Holding::Vacant { successor: None }));
        let delays = actions(&mut spread);
        assert!(delays.contains(&Action::Delay { role: 1, extra: Some(extra) }), "{left}: {delays:?}");
    }
}
