use alloc::vec::Vec;

use super::*;

const NOW: Time = Time::from_nanos(0);

fn delay(elector: Elector, assignment: Assignment, predecessor: Predecessor) -> Option<(u64, u64)> {
    let mut precedence = Precedence::new(elector);
    precedence.set_assignment(assignment);
    precedence.received(NOW, hello(1));
    let delay = precedence.delay(NOW, predecessor)?;
    Some((delay.fixed.as_millis().try_into().unwrap(), delay.random.as_millis().try_into().unwrap()))
}

fn hello(index: u128) -> Hello {
    Hello::new(MemberId::from_random(index), None)
}

#[test]
fn the_groups_choice_claims_first() {
    let group = Elector::Group(Some(Duration::from_millis(500)));
    assert_eq!(delay(group, Assignment::Own, Predecessor::Gone), Some((0, 0)));
    assert_eq!(delay(group, Assignment::Unknown, Predecessor::Gone), Some((0, 50)));
    assert_eq!(delay(group, Assignment::Elsewhere, Predecessor::Gone), Some((500, 0)));
    assert_eq!(delay(group, Assignment::Elsewhere, Predecessor::Died), Some((0, 50)));
}

/// With many roles the group may have assigned this one to a member with a limit.
#[test]
fn the_successor_that_a_release_names_waits_for_no_assignment() {
    for patience in [Some(Duration::from_millis(500)), None] {
        let mut precedence = Precedence::new(Elector::Group(patience));
        precedence.received(NOW, hello(1));
        precedence.set_assignment(Assignment::Elsewhere);
        precedence.successor = Some(precedence.member.clone());
        let at_once = Delay { fixed: Duration::ZERO, random: Duration::ZERO };
        assert_eq!(precedence.delay(NOW, Predecessor::Gone), Some(at_once));
    }
}

#[test]
fn a_candidate_alone_has_no_delay() {
    let mut precedence = Precedence::new(Elector::Group(Some(Duration::from_millis(500))));
    let at_once = Some(Delay { fixed: Duration::ZERO, random: Duration::ZERO });
    let spread = Some(Delay { fixed: Duration::ZERO, random: RANDOM_DELAY + JITTER_PER_STANDBY });
    assert_eq!(precedence.delay(NOW, Predecessor::Gone), at_once);
    precedence.received(NOW, hello(1));
    assert_eq!(precedence.delay(NOW, Predecessor::Gone), spread);
    // A leader that is silent or died does not stand by.
    precedence.set_leader(Some(&hello(1).member));
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).map(|delay| delay.random), Some(JITTER_PER_STANDBY));
    precedence.received(NOW, hello(2));
    precedence.set_assignment(Assignment::Elsewhere);
    assert!(precedence.delay(NOW, Predecessor::Died).is_some_and(|delay| delay.random > RANDOM_DELAY));
    precedence.released(&hello(1).member);
    precedence.released(&hello(2).member);
    assert_eq!(precedence.delay(NOW, Predecessor::Died), at_once);
    precedence.received(NOW, hello(3));
    assert_eq!(precedence.delay(NOW + HELLO_HOLDS, Predecessor::Died), at_once, "it has gone");
}

#[test]
fn the_spread_adds_to_every_delay_or_forbids_the_claim() {
    let mut precedence = Precedence::new(Elector::Log);
    precedence.spread_delay = Some(Duration::from_millis(500));
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().fixed, Duration::from_millis(500));
    precedence.successor = Some(precedence.member.clone());
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().fixed, Duration::ZERO, "it was named");
    precedence.spread_delay = Some(Duration::ZERO);
    precedence.successor = Some("another".into());
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().fixed, PATIENCE);
    precedence.spread_delay = None;
    assert_eq!(precedence.delay(NOW, Predecessor::Died), None);
}

#[test]
fn without_patience_only_the_groups_choice_claims() {
    let never = Elector::Group(None);
    assert_eq!(delay(never, Assignment::Own, Predecessor::Gone), Some((0, 0)));
    assert_eq!(delay(never, Assignment::Unknown, Predecessor::Died), None);
    assert_eq!(delay(never, Assignment::Elsewhere, Predecessor::Died), None);
    let mut precedence = Precedence::new(never);
    precedence.is_one_of_many = true;
    assert_eq!(precedence.delay(NOW, Predecessor::Gone), None, "it is not known whether the partition is its own");
    precedence.set_assignment(Assignment::Elsewhere);
    let default = Delay { fixed: PATIENCE, random: Duration::ZERO };
    assert_eq!(
        precedence.delay(NOW, Predecessor::Gone),
        Some(default),
        "the group's choice may hold its share already"
    );
}

#[test]
fn with_the_log_elector_no_candidate_has_precedence() {
    for assignment in [Assignment::Own, Assignment::Elsewhere, Assignment::Unknown] {
        assert_eq!(delay(Elector::Log, assignment, Predecessor::Gone), Some((0, 0)));
    }
}

#[test]
fn a_back_off_is_added_in_every_standing() {
    for elector in [Elector::Log, Elector::Group(Some(Duration::from_millis(500)))] {
        for assignment in [Assignment::Own, Assignment::Elsewhere, Assignment::Unknown] {
            let mut precedence = Precedence::new(elector);
            precedence.set_assignment(assignment);
            let before = precedence.delay(NOW, Predecessor::Gone).unwrap();
            precedence.back_off = Duration::from_secs(4);
            let after = precedence.delay(NOW, Predecessor::Gone).unwrap();
            assert_eq!(after, Delay { fixed: before.fixed + Duration::from_secs(4), ..before });
        }
    }
}

#[test]
fn each_known_higher_priority_adds_a_step() {
    let waits = |elector, others: &[u16]| {
        let mut precedence = Precedence::new(elector);
        precedence.priority = 5;
        for (index, priority) in (0..).zip(others) {
            precedence.received(NOW, Hello { priority: *priority, ..hello(index) });
        }
        assert_eq!(precedence.is_outranked(NOW), others.iter().any(|other| *other > 5));
        assert!(!precedence.is_outranked(NOW + HELLO_HOLDS), "it has gone");
        precedence.delay(NOW, Predecessor::Gone).unwrap().fixed.as_millis()
    };
    let group = Elector::Group(Some(Duration::from_secs(2)));
    assert_eq!([waits(Elector::Log, &[0, 5, 5]), waits(group, &[0, 5, 5])], [0, 0]);
    assert_eq!([waits(Elector::Log, &[6, 6, 1]), waits(group, &[6, 6, 1])], [500, 2_500]);
    assert_eq!([waits(Elector::Log, &[6, 7, 8]), waits(group, &[6, 7, 8])], [1_500, 7_500]);
    let many: Vec<u16> = (6..100).collect();
    assert_eq!(waits(Elector::Log, &many), 5_000);
    // A silent leader does not stand by.
    let mut precedence = Precedence::new(Elector::Log);
    precedence.received(NOW, Hello { priority: 10, ..hello(1) });
    precedence.set_leader(Some(&MemberId::from_random(1)));
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().fixed, Duration::ZERO);
}

#[test]
fn the_jitter_grows_with_the_standbys_and_is_bounded() {
    let mut precedence = Precedence::new(Elector::Log);
    for index in 0..1_200_u128 {
        precedence.received(NOW, hello(index));
        precedence.received(NOW, hello(0));
        let random = precedence.delay(NOW, Predecessor::Gone).unwrap().random;
        assert_eq!(random, Duration::from_micros(100 * u64::try_from(index + 1).unwrap().min(1_000)));
    }
    precedence.released(&MemberId::from_random(0));
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().random, Duration::from_micros(100 * 999));
    let later = NOW + HELLO_HOLDS;
    assert_eq!(precedence.delay(later, Predecessor::Gone).unwrap().random, Duration::ZERO);
}

#[test]
fn the_member_with_the_least_id_is_predicted() {
    let claims_at_once = |own: Option<&str>, others: &[&str], patience| {
        let mut precedence = Precedence::new(Elector::Group(patience));
        precedence.set_assignment(Assignment::Elsewhere);
        precedence.group_member = own.map(Into::into);
        precedence.received(NOW, hello(100));
        for (index, other) in (0..).zip(others) {
            precedence.received(NOW, Hello { group_member: Some((*other).into()), ..hello(index) });
        }
        precedence.foresee(NOW, "left");
        precedence.delay(NOW, Predecessor::Gone) == Some(Delay { fixed: Duration::ZERO, random: Duration::ZERO })
    };
    let patience = Some(Duration::from_millis(500));
    assert!(claims_at_once(Some("b"), &[], patience));
    assert!(claims_at_once(Some("b"), &["c", "left", "z"], patience));
    assert!(claims_at_once(Some("m"), &["left", "z"], patience), "who has left is no member");
    assert!(!claims_at_once(Some("b"), &["c", "a"], patience));
    assert!(!claims_at_once(None, &["c"], patience), "no member");
    assert!(!claims_at_once(Some("b"), &["c"], None), "the group's word is waited for");
}

#[test]
fn a_member_that_has_said_nothing_for_long_is_not_foreseen() {
    let mut precedence = Precedence::new(Elector::Group(Some(Duration::from_millis(500))));
    precedence.set_assignment(Assignment::Elsewhere);
    precedence.group_member = Some("b".into());
    precedence.received(NOW, Hello { group_member: Some("a".into()), ..hello(1) });
    let mut is_foreseen_at = |now| {
        precedence.foresee(now, "left");
        precedence.delay(now, Predecessor::Gone).unwrap().fixed.is_zero()
    };
    assert!(!is_foreseen_at(NOW + HELLO_HOLDS - Duration::from_millis(1)), "it is the turn of the other member");
    assert!(is_foreseen_at(NOW + HELLO_HOLDS));
}

#[test]
fn after_a_silence_the_least_id_but_the_leaders_is_foreseen() {
    let mut precedence = Precedence::new(Elector::Group(Some(Duration::from_millis(500))));
    let claims_at_once = |precedence: &Precedence, predecessor| {
        precedence.delay(NOW, predecessor) == Some(Delay { fixed: Duration::ZERO, random: Duration::ZERO })
    };
    precedence.set_assignment(Assignment::Elsewhere);
    precedence.group_member = Some("b".into());
    precedence.set_leader(Some(&hello(1).member));
    assert!(!claims_at_once(&precedence, Predecessor::Silent), "as whom the leader was in the group is not known");
    precedence.received(NOW, Hello { group_member: Some("a".into()), ..hello(1) });
    precedence.received(NOW, Hello { group_member: Some("c".into()), ..hello(2) });
    assert!(claims_at_once(&precedence, Predecessor::Silent));
    assert!(!claims_at_once(&precedence, Predecessor::Gone));
    precedence.group_member = Some("d".into());
    assert!(!claims_at_once(&precedence, Predecessor::Silent), "it is another's turn");
    precedence.group_member = None;
    assert!(!claims_at_once(&precedence, Predecessor::Silent), "no member");
}

#[test]
fn an_assignment_replaces_the_prediction() {
    let mut precedence = Precedence::new(Elector::Group(Some(Duration::from_millis(500))));
    precedence.group_member = Some("b".into());
    precedence.foresee(NOW, "left");
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().random, Duration::ZERO);
    precedence.set_assignment(Assignment::Elsewhere);
    assert_eq!(precedence.delay(NOW, Predecessor::Gone).unwrap().fixed, Duration::from_millis(500));
}
