//! The introduction of a process, and the candidates beside which it does not stand.

use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;
use crate::role_set::RoleSet;

mod walks;

const START: Time = Time::from_nanos(1_000_000_000_000);

fn hello(member: &str, typed: &str, partitions: u32) -> Hello {
    let (roles, partitions) = (Some(typed.into()), Some(partitions));
    Hello { roles, partitions, ..Hello::new(member.into(), Some(member.into())) }
}

/// A process with four roles on three partitions, which begins to read at offset 10.
fn introduction() -> Introduction {
    let mut introduction = Introduction::new(hello("me", "4", 3));
    introduction.listens(START, 10);
    assert_eq!(actions(&mut introduction), []);
    introduction.topic_judged(START);
    assert_eq!(actions(&mut introduction), [own_hello(None)]);
    introduction
}

fn own_hello(joined: Option<Offset>) -> Action {
    Action::Hello(Box::new(Hello { joined, ..hello("me", "4", 3) }))
}

fn actions(introduction: &mut Introduction) -> Vec<Action> {
    core::iter::from_fn(|| introduction.poll_action()).collect()
}

fn refusal(name: &str, typed: &str, partitions: u32) -> Differs {
    Mapping::new("4", 3).refusal(&Mapping::new(typed, partitions), name).unwrap()
}

#[test]
fn nothing_is_claimed_before_the_others_could_answer() {
    let mut introduction = introduction();
    assert_eq!(introduction.poll_timeout(), Some(START + SAID_AGAIN));
    introduction.handle_timeout(START + SAID_AGAIN);
    assert_eq!(actions(&mut introduction), [own_hello(None)], "it was lost");
    let now = START + SAID_AGAIN;
    introduction.received(now, 12, &hello("me", "4", 3));
    for (offset, is_history) in [(13, false), (9, true)] {
        // It agrees.
        introduction.received(now, offset, &hello("other", "9", 3));
        assert_eq!(introduction.is_history(offset), is_history);
    }
    assert_eq!(introduction.poll_timeout(), Some(now + ANSWERS));
    introduction.handle_timeout(now + ANSWERS);
    assert_eq!((actions(&mut introduction), introduction.stands()), (vec![own_hello(Some(12))], true));
    introduction.handle_timeout(now + ANSWERS + HELLO_INTERVAL);
    assert_eq!(actions(&mut introduction), [own_hello(Some(12))]);
}

#[test]
fn of_two_processes_that_differ_the_one_with_the_later_first_hello_exits() {
    // The earlier process is found by the offset of its hello, or by the offset of its first hello, which the hello contains. After a cut
    // the two may be equal.
    for (joined, offset) in [(None, 10), (None, 11), (Some(11), 13), (Some(3), 13), (Some(12), 13)] {
        let mut introduction = introduction();
        if offset > 12 {
            introduction.received(START, 12, &hello("me", "4", 3));
        }
        introduction.received(START, offset, &Hello { joined, ..hello("other", "4", 4) });
        assert_eq!(actions(&mut introduction), [Action::Refuse(refusal("other", "4", 4))], "{offset}");
        introduction.handle_timeout(START + HELLO_HOLDS);
        assert_eq!(actions(&mut introduction), [], "it does not stand");
        assert_eq!(introduction.poll_timeout(), None);
    }
    let mut introduction = introduction();
    introduction.received(START, 12, &hello("me", "4", 3));
    introduction.received(START, 13, &hello("later", "4", 4));
    assert_eq!(actions(&mut introduction), [own_hello(Some(12))], "the later one is told at once");
}

/// It reads on until it has ended. A process that starts meanwhile beside the one that stands would exit because of one that does not.
#[test]
fn a_refused_process_answers_nobody() {
    for joined in [None, Some(13)] {
        let mut introduction = introduction();
        introduction.received(START, 12, &hello("me", "4", 3));
        introduction.received(START, 13, &Hello { joined: Some(3), ..hello("earlier", "4", 4) });
        assert_eq!(actions(&mut introduction), [Action::Refuse(refusal("earlier", "4", 4))]);
        for (offset, typed) in [(14, "4"), (15, "a,b")] {
            introduction.received(START, offset, &Hello { joined, asks: Some("me".into()), ..hello("new", typed, 4) });
            let is_hello = |action: &Action| matches!(action, Action::Hello(_));
            assert!(!actions(&mut introduction).iter().any(is_hello), "{typed}");
        }
    }
}

/// Its jobs may still be stopping, and the new one would look for their roles elsewhere.
#[test]
fn a_process_that_stood_and_is_refused_answers_a_new_one_with_another_mapping() {
    let mut introduction = introduction();
    introduction.received(START, 12, &hello("me", "4", 3));
    introduction.handle_timeout(START + ANSWERS);
    introduction.received(START, 13, &Hello { joined: Some(3), ..hello("earlier", "4", 4) });
    assert!(actions(&mut introduction).contains(&Action::Refuse(refusal("earlier", "4", 4))));
    introduction.received(START, 14, &hello("new", "4", 4));
    assert_eq!(actions(&mut introduction), [own_hello(Some(12))]);
}

#[test]
fn a_candidate_that_may_have_gone_is_waited_for() {
    let mut introduction = introduction();
    introduction.received(START, 3, &hello("third", "4", 4));
    introduction.received(START, 4, &Hello { joined: Some(1), ..hello("other", "4", 4) });
    introduction.received(START, 5, &Hello { leaves: true, ..hello("third", "4", 4) });
    introduction.received(START, 12, &hello("me", "4", 3));
    assert_eq!(actions(&mut introduction), []);
    assert_eq!(introduction.poll_timeout(), Some(START + ANSWERS), "then it says for what it waits");
    introduction.handle_timeout(START + ANSWERS);
    let until = START + HELLO_HOLDS;
    assert_eq!(
        actions(&mut introduction),
        [Action::Note(Note::MappingInDoubt { why: Box::new(refusal("other", "4", 4)), until })]
    );
    assert_eq!(introduction.poll_timeout(), Some(START + HELLO_INTERVAL));
    // The other process is alive.
    let mut there = introduction.clone();
    there.received(START, 14, &Hello { joined: Some(1), ..hello("other", "4", 4) });
    assert_eq!(actions(&mut there), [Action::Refuse(refusal("other", "4", 4))]);
    // The other process is dead: a hello was written for it. One of its guards may still have to end a job.
    let mut dead = introduction.clone();
    let left = RoleSet::of_first(4);
    dead.received(START + ANSWERS, 14, &Hello { joined: Some(1), left, ..hello("other", "4", 4) });
    let gone = START + ANSWERS + HELLO_HOLDS;
    dead.handle_timeout(gone - Duration::from_millis(1));
    assert!(!actions(&mut dead).iter().any(|action| matches!(action, Action::Refuse(_))));
    assert!(!dead.stands());
    dead.handle_timeout(gone);
    assert!(dead.stands());
    // The other process's last hello reports that it leaves.
    let mut gone = introduction.clone();
    gone.received(START + ANSWERS, 14, &Hello { leaves: true, ..hello("other", "4", 4) });
    let moved = Mapping::new("4", 3).warning_if_a_role_has_moved(&Mapping::new("4", 4), "other").unwrap();
    let moved = Action::Note(Note::RolesDiffer(Box::new(moved)));
    assert_eq!((actions(&mut gone), gone.stands()), (vec![moved, own_hello(Some(12))], true));
    // The other process has gone without a last hello.
    introduction.handle_timeout(until);
    assert!(introduction.stands());
}

/// Fencing tokens of a role in another partition may be lower than before. Only the first candidate of the role after the change warns of it.
#[test]
fn a_role_that_has_moved_since_a_candidate_of_it_last_stood_is_reported_once() {
    let warnings_of = |own: &Hello, earlier: &[Hello]| {
        let mut introduction = Introduction::new(own.clone());
        introduction.listens(START, 10);
        introduction.topic_judged(START);
        for (offset, hello) in (0..).zip(earlier) {
            introduction.received(START, offset, hello);
        }
        introduction.received(START, 12, own);
        // Those that may have gone have not been heard again.
        introduction.handle_timeout(START + HELLO_HOLDS);
        assert!(introduction.stands());
        introduction.handle_timeout(START + HELLO_HOLDS + HELLO_INTERVAL);
        actions(&mut introduction).iter().filter(|action| matches!(action, Action::Note(Note::RolesDiffer(_)))).count()
    };
    let warnings = |earlier: &[Hello]| warnings_of(&hello("me", "4", 3), earlier);
    let leaves = |hello: Hello| Hello { leaves: true, ..hello };
    let stood = |name: &str, typed: &str, on| Hello { joined: Some(0), ..hello(name, typed, on) };
    let [other, moved] = [("other", 3), ("moved", 4)].map(|(name, on)| stood(name, "4", on));
    assert_eq!(warnings(&[moved.clone(), leaves(moved.clone())]), 1);
    assert_eq!(warnings(&[moved.clone(), leaves(moved.clone()), other.clone()]), 0, "that one has warned");
    let fewer = stood("fewer", "3", 3);
    assert_eq!(warnings(&[fewer.clone(), leaves(fewer.clone())]), 0, "a role that is added moves none");
    assert_eq!(warnings(&[moved.clone(), fewer.clone()]), 1, "it has no role 3, so it has not warned of that one");
    assert_eq!(warnings_of(&hello("me", "5", 3), &[moved, other.clone()]), 0, "a further role was nowhere before");
    let refused = hello("refused", "4", 4);
    for stands in [other, fewer] {
        assert_eq!(
            warnings(&[stands.clone(), refused.clone(), stands, leaves(refused.clone())]),
            0,
            "it did not stand"
        );
    }
}

#[test]
fn a_candidate_without_roles_and_a_process_with_roles_do_not_stand_side_by_side() {
    let lone = |name: &str, joined| Hello { roles: None, partitions: None, joined, ..hello(name, "", 0) };
    let refused = || Action::Refuse(Mapping::new("4", 3).refusal(&Mapping::of_one_role(), "lone").unwrap());
    let introduced = || {
        let mut introduction = introduction();
        introduction.received(START, 9, &lone("gone", None));
        introduction.received(START, 12, &hello("me", "4", 3));
        introduction
    };
    let mut alone = introduced();
    alone.handle_timeout(START + ANSWERS);
    drop(actions(&mut alone));
    assert!(alone.stands(), "one that is not heard again is not waited for");
    let later = START + HELLO_INTERVAL;
    for (joined, is_refused) in [(None, false), (Some(13), false), (Some(11), true)] {
        let (mut before, mut stands) = (introduced(), alone.clone());
        for introduction in [&mut before, &mut stands] {
            introduction.received(later, 13, &lone("lone", joined));
            let wanted = if is_refused { refused() } else { own_hello(Some(12)) };
            assert_eq!(actions(introduction).first(), Some(&wanted), "it joined at {joined:?}");
        }
    }
    let mut first = introduction();
    first.received(START, 11, &lone("lone", None));
    assert_eq!(actions(&mut first), [refused()], "its own first hello is under way");
}

#[test]
fn a_candidate_of_other_roles_is_reported_once_and_answered_if_it_is_new() {
    let warning = |name: &str| {
        let warning = Mapping::new("4", 3).warning_if_each_lacks_a_role(&Mapping::new("a,b", 3), name).unwrap();
        Action::Note(Note::RolesDiffer(Box::new(warning)))
    };
    let mut introduction = introduction();
    introduction.received(START, 9, &hello("before", "a,b", 3));
    introduction.received(START, 10, &Hello { leaves: true, ..hello("goes", "a,b", 3) });
    assert_eq!(actions(&mut introduction), [], "it may have gone");
    introduction.received(START, 11, &hello("new", "a,b", 3));
    assert_eq!(actions(&mut introduction), [warning("new")], "its own hello is under way");
    introduction.received(START, 12, &hello("me", "4", 3));
    introduction.received(START, 13, &hello("newer", "a,b", 3));
    assert_eq!(actions(&mut introduction), [own_hello(Some(12))], "the roles were told of");
    introduction.received(START, 14, &Hello { joined: Some(13), ..hello("newer", "a,b", 3) });
    assert_eq!(actions(&mut introduction), []);
    for number in 0..2 * MOST_REPORTED {
        introduction.received(START, 15, &Hello { joined: Some(1), ..hello("odd", &format!("x{number}"), 3) });
    }
    assert_eq!(actions(&mut introduction).len(), MOST_REPORTED - 1);
    introduction.handle_timeout(START + ANSWERS);
    assert!(introduction.stands(), "it stands all the same");
}

#[test]
fn after_a_cut_it_is_introduced_again() {
    let mut introduction = introduction();
    introduction.received(START, 12, &hello("me", "4", 3));
    introduction.handle_timeout(START + ANSWERS);
    assert_eq!((actions(&mut introduction), introduction.stands()), (vec![own_hello(Some(12))], true));
    introduction.history_cut();
    introduction.listens(START, 0);
    assert_eq!(actions(&mut introduction), []);
    introduction.topic_judged(START);
    assert_eq!(actions(&mut introduction), [own_hello(None)]);
    introduction.received(START, 0, &hello("me", "4", 3));
    assert_eq!((actions(&mut introduction), introduction.hello.joined), (Vec::new(), Some(0)), "it stands already");
}

/// Its first hello was in the log that is gone, and so was that of the candidate for which it waits.
#[test]
fn a_process_that_does_not_stand_yet_waits_for_answers_again_after_a_cut() {
    for is_in_doubt in [false, true] {
        let mut introduction = introduction();
        if is_in_doubt {
            introduction.received(START, 9, &hello("old", "4", 4));
        }
        introduction.received(START, 12, &hello("me", "4", 3));
        introduction.history_cut();
        let now = START + ANSWERS;
        assert_eq!(introduction.poll_timeout(), None);
        introduction.handle_timeout(now);
        assert_eq!(actions(&mut introduction), [], "it has no hello in the new log");
        introduction.listens(now, 0);
        introduction.topic_judged(now);
        introduction.received(now, 0, &hello("me", "4", 3));
        assert_eq!(actions(&mut introduction), [own_hello(None)]);
        let answered = now + ANSWERS;
        introduction.handle_timeout(answered);
        if is_in_doubt {
            let (why, until) = (refusal("old", "4", 4), now + HELLO_HOLDS);
            assert_eq!(actions(&mut introduction), [Action::Note(Note::MappingInDoubt { why: Box::new(why), until })]);
        } else {
            assert_eq!((actions(&mut introduction), introduction.stands()), (vec![own_hello(Some(0))], true));
        }
    }
}

/// Several roles may be left, or have their records cut, within a moment: one hello is enough for them.
#[test]
fn one_hello_is_sent_for_all_roles_that_change_in_a_moment() {
    type Change = fn(&mut Introduction, Time, u32);
    let (leaves, is_undecided): (Change, Change) = (
        |introduction, now, role| introduction.role_left(now, role),
        |introduction, now, _| introduction.undecided(now, now),
    );
    for (tell, after, left) in
        [(leaves, HELLO_AFTER_LEAVING, RoleSet::of_first(2)), (is_undecided, HELLO_AFTER_LEAD, RoleSet::new())]
    {
        let mut introduction = introduction();
        introduction.received(START, 12, &hello("me", "4", 3));
        introduction.handle_timeout(START + ANSWERS);
        assert_eq!((actions(&mut introduction), introduction.stands()), (vec![own_hello(Some(12))], true));
        let now = START + Duration::from_secs(5);
        tell(&mut introduction, now, 0);
        introduction.handle_timeout(now);
        assert_eq!(actions(&mut introduction), []);
        tell(&mut introduction, now + after / 2, 1);
        assert_eq!(introduction.poll_timeout(), Some(now + after));
        introduction.handle_timeout(now + after);
        let said = Hello { joined: Some(12), left, ..hello("me", "4", 3) };
        assert_eq!(actions(&mut introduction), [Action::Hello(Box::new(said))]);
    }
}

#[test]
fn a_hello_is_sent_again_soon_after_a_release() {
    let mut introduction = introduction();
    introduction.received(START, 12, &hello("me", "4", 3));
    introduction.handle_timeout(START + ANSWERS);
    assert_eq!((actions(&mut introduction), introduction.stands()), (vec![own_hello(Some(12))], true));
    let now = START + Duration::from_secs(5);
    introduction.lead_ended(now);
    introduction.handle_timeout(now);
    assert_eq!(actions(&mut introduction), [], "whoever claims now takes it for gone");
    assert_eq!(introduction.poll_timeout(), Some(now + HELLO_AFTER_LEAD));
    introduction.handle_timeout(now + HELLO_AFTER_LEAD);
    assert_eq!(actions(&mut introduction), [own_hello(Some(12))]);
    let due = introduction.poll_timeout();
    introduction.lead_ended(now + HELLO_INTERVAL);
    assert_eq!(introduction.poll_timeout(), due, "it is due before that");
}
