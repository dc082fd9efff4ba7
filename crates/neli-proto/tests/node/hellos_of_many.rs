//! The one hello of a process with many roles: what it says and when, and what the hellos of others mean for the roles.

use neli_proto::hello::{Hello, question};
use neli_proto::kafka::Request;
use neli_proto::many_roles::{Action, ManyRoles};
use neli_proto::node::{Action as NodeAction, Event, Node};
use neli_proto::precedence::{Assignment, HELLO_AFTER_LEAD};
use neli_proto::random::Random;
use neli_proto::role_set::RoleSet;
use neli_proto::spread::Holding;
use neli_proto::time::Time;
use neli_proto::timings::{Elector, PATIENCE};

use super::many_roles::{
    GROUP, LONG, heard, hello, introduced, is_claimed, let_time_pass, let_time_pass_beside, standing, wanted,
};
use super::*;

/// The hello that is due by then.
fn said_at(many: &mut ManyRoles, now: Time) -> Option<Hello> {
    many.handle_timeout(now);
    let hello = |action| if let Action::Hello(hello) = action { Some(*hello) } else { None };
    wanted(many).into_iter().find_map(hello)
}

/// A process that may claim, at the time of one of its regular hellos.
fn said_hello_just_now() -> (ManyRoles, Time) {
    let (mut many, now) = standing(Elector::Log);
    let due = many.poll_timeout().filter(|due| *due > now).unwrap();
    assert_eq!(said_at(&mut many, due).map(|hello| hello.joined), Some(Some(12)));
    (many, due)
}

/// Whether the event is the hello of a candidate that leaves.
fn says_that_it_leaves(event: &Event) -> bool {
    matches!(event, Event::Election(candidate::Event::HelloReceived(hello)) if hello.leaves)
}

/// The others must not give it such a role.
#[test]
fn the_hello_names_the_roles_for_which_the_process_no_longer_stands() {
    let (mut many, now) = said_hello_just_now();
    many.observe(now, 1, Holding::Done);
    many.observe(now, 2, Holding::Done);
    // Before the others claim the role.
    let soon = now + PATIENCE / 2;
    assert_eq!(said_at(&mut many, soon).map(|hello| hello.left.text()), Some("1-2".into()));
    many.observe(soon, 1, Holding::Done);
    assert_eq!(said_at(&mut many, soon + HELLO_AFTER_LEAD), None, "it was said");

    let other = Hello { joined: Some(20), left: RoleSet::parse("1"), ..hello("other", "4", Some(4)) };
    let told = many.received(soon, 20, &other.to_bytes()).unwrap();
    assert_eq!([0, 1, 2].map(|role| says_that_it_leaves(&heard(&told, role))), [false, true, false]);
}

/// The others take a leader that was silent for gone, and must learn that it stands by.
#[test]
fn after_a_lead_that_was_lost_the_hello_is_said_again_soon() {
    let by_other = Holding::Held { by: "other".into() };
    for (after, is_lost) in [(by_other, true), (Holding::Unknown, true), (Holding::Claiming, false)] {
        for before in [Holding::Leading, Holding::Ending, Holding::Claiming] {
            let is_lost = is_lost && before != Holding::Claiming;
            let (mut many, now) = said_hello_just_now();
            many.observe(now, 1, before.clone());
            many.observe(now, 1, after.clone());
            let soon = now + HELLO_AFTER_LEAD;
            assert_eq!(said_at(&mut many, soon).is_some(), is_lost, "{after:?}");
        }
    }
}

/// After a cut, for example, the records of a role do not tell who leads. The hello says so, soon.
#[test]
fn the_hello_says_for_how_long_the_records_of_a_role_do_not_tell_who_leads() {
    let (mut many, now) = said_hello_just_now();
    let said = |many: &mut ManyRoles, now: Time| said_at(many, now).map(|hello| hello.waits_ms);
    becomes_undecided(&mut many, now, 1);
    let soon = now + HELLO_AFTER_LEAD;
    let undecided = said(&mut many, soon);
    assert_eq!(undecided, Some(Some(58_610)));
    let regular = said(&mut many, soon + Duration::from_secs(30));
    assert_eq!(regular, undecided.map(|waits| waits.map(|waits| waits - 30_000)));
    assert_eq!(said(&mut many, soon + Duration::from_secs(60)), Some(None));
}

/// A hello for each of a thousand roles would be too many.
#[test]
fn while_a_role_is_undecided_another_one_causes_no_further_hello() {
    let (mut many, now) = said_hello_just_now();
    becomes_undecided(&mut many, now, 1);
    let soon = now + HELLO_AFTER_LEAD;
    assert!(said_at(&mut many, soon).is_some());
    becomes_undecided(&mut many, soon, 2);
    assert_eq!(said_at(&mut many, soon + HELLO_AFTER_LEAD), None);
}

/// A candidate reads anew after a fence, too. Its process has introduced itself all the same, and answers and refuses others meanwhile.
#[test]
fn a_fence_is_no_cut_of_the_history() {
    let (mut many, now) = said_hello_just_now();
    let mut node = Node::new(now, Host::settings(now, &[], true), Random::from_seed(1)).one_of_many();
    many.tell(now, 0, &mut node, candidate::Event::Answered { asked: now, start: 0, end: 5 });
    while node.poll_action().is_some() {}
    // Its reader is stuck.
    let now = now + LONG;
    many.tell(now, 0, &mut node, candidate::Event::Answered { asked: now, start: 0, end: 5 });
    let actions: Vec<_> = core::iter::from_fn(|| node.poll_action()).collect();
    assert!(actions.contains(&NodeAction::Kafka(Request::ReadAnew)), "{actions:?}");
    assert!(many.last_hello().is_some_and(|hello| hello.joined == Some(12)), "it has introduced itself");
    many.tell(now, 0, &mut node, candidate::Event::HistoryCut);
    assert_eq!(many.last_hello(), None, "its hello is not in the new log");
}

/// It stands for other roles, and would take the other processes for dead, also one that looks for these roles in other partitions.
#[test]
fn a_process_that_has_left_its_first_role_hears_hellos_after_a_cut() {
    let leaves = Event::StandDown { why: Why::Left, leaving: true };
    for (is_answered, ends) in [(true, leaves.clone()), (false, leaves), (true, Event::Refused("no".into()))] {
        let (mut many, now) = said_hello_just_now();
        let other = Hello { joined: Some(13), ..hello("other", "4", Some(4)) };
        drop(many.received(now, 20, &other.to_bytes()));
        let mut node = Node::new(now, Host::settings(now, &[], true), Random::from_seed(1)).one_of_many();
        let actions_at = |node: &mut Node, many: &mut ManyRoles, start, end| {
            many.tell(now, 0, node, candidate::Event::Answered { asked: now, start, end });
            core::iter::from_fn(|| node.poll_action()).collect::<Vec<_>>()
        };
        if is_answered {
            actions_at(&mut node, &mut many, 0, 30);
        }
        node.handle(now, ends);
        node.handle(now, Event::Exiting);
        while node.poll_action().is_some() {}
        if !is_answered {
            assert_eq!(actions_at(&mut node, &mut many, 0, 30), [NodeAction::Kafka(Request::ReadFrom(0))]);
        }
        // Only the log's head was removed.
        many.tell(now, 0, &mut node, candidate::Event::Passed { first: 0, last: 39 });
        assert_eq!(actions_at(&mut node, &mut many, 40, 50), []);
        many.tell(now, 0, &mut node, candidate::Event::HistoryCut);
        assert_eq!(node.poll_action(), Some(NodeAction::Kafka(Request::ReadAnew)));
        assert_eq!(many.last_hello(), None, "its hello is not in the new log");
        assert_eq!(actions_at(&mut node, &mut many, 7, 9), [NodeAction::Kafka(Request::ReadFrom(7))]);
        assert!(many.received(now, 8, &other.to_bytes()).is_some(), "the offset is one of the new log");
    }
}

/// A node of this role finds that its records do not tell who leads.
fn becomes_undecided(many: &mut ManyRoles, now: Time, role: usize) {
    let mut node = Node::new(now, Host::settings(now, &[], true), Random::from_seed(1)).one_of_many();
    let identity = TopicIdentity::Unnamed;
    many.tell(now, role, &mut node, candidate::Event::TopicIdentified { asked: now, identity });
    many.tell(now, role, &mut node, candidate::Event::Answered { asked: now, start: 5, end: 5 });
}

#[test]
fn roles_are_handed_only_to_candidates_that_take_roles() {
    let first = hello("other", "4", Some(4));
    let again = Hello { joined: Some(20), ..first.clone() };
    let last = Hello { leaves: true, ..again.clone() };
    let left_all = Hello { left: RoleSet::of_first(4), ..again.clone() };
    let of_other_roles = hello("other", "a,b,c,d", Some(4));
    let stands_for_others = Hello { joined: Some(20), ..of_other_roles.clone() };
    for (hellos, hands_over) in [
        (vec![&first], false),
        (vec![&first, &again], true),
        (vec![&again, &last], false),
        (vec![&again, &left_all], false),
        (vec![&of_other_roles, &stands_for_others], false),
    ] {
        let (mut many, now) = standing(Elector::Log);
        (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
        for (offset, hello) in (20..).zip(hellos) {
            let told = many.received(now, offset, &hello.to_bytes()).map(|told| heard(&told, 0));
            let stands = !hello.leaves && *hello != left_all && hello.roles == first.roles;
            assert_eq!(told.as_ref().map(says_that_it_leaves), Some(!stands), "{hello:?}");
        }
        let actions = let_time_pass_beside(&mut many, now, &[&again]);
        let to_other = |action: &Action| {
            let Action::HandOver { to, .. } = action else { return false };
            *to == "other".into()
        };
        assert_eq!(actions.iter().any(to_other), hands_over, "{actions:?}");
    }
}

/// A process that looks for the same role in another partition must not lead it while the dead one's guard may have to end a job of it.
#[test]
fn a_hello_after_death_says_that_the_process_stands_for_nothing_but_not_that_it_leads_nothing() {
    let (many, now) = standing(Elector::Log);
    let of_dead = many.hello_after_death().unwrap();
    assert_eq!((of_dead.left.text(), of_dead.leaves, of_dead.joined), ("0-3".into(), false, Some(12)));

    let (mut elsewhere, _) = introduced(Elector::Log);
    let of_dead = Hello { member: "dead".into(), partitions: Some(3), ..of_dead };
    drop(elsewhere.received(now, 13, &of_dead.to_bytes()));
    // By then each lease is over.
    elsewhere.handle_timeout(now + Duration::from_secs(74));
    let actions = wanted(&mut elsewhere);
    assert!(
        !actions.iter().any(is_claimed) && !actions.iter().any(|action| matches!(action, Action::Refuse { .. })),
        "{actions:?}"
    );
    elsewhere.handle_timeout(now + Duration::from_secs(75));
    assert!(wanted(&mut elsewhere).iter().any(is_claimed));
}

/// A reader that starts again reads old hellos again. Their processes may have left since then, and must not get a role.
#[test]
fn a_hello_that_is_read_again_does_not_count() {
    let (mut many, now) = introduced(Elector::Log);
    let other = Hello { joined: Some(13), ..hello("other", "4", Some(4)) };
    drop(many.received(now, 14, &other.to_bytes()));
    // Longer than a hello is valid.
    drop(let_time_pass(&mut many, now));
    let now = now + LONG;
    (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
    assert_eq!(many.received(now, 14, &other.to_bytes()), None);
    let mut actions = wanted(&mut many);
    actions.extend(let_time_pass(&mut many, now));
    let is_handed_over = |action: &Action| matches!(action, Action::HandOver { .. });
    assert!(!actions.iter().any(is_handed_over), "{actions:?}");
    assert!(many.received(now + LONG, 15, &other.to_bytes()).is_some(), "a later one is news");
}

/// Without it each process would take every leader for one of the lowest priority: it would claim beside those of a higher priority, and
/// `--preempt` would ask a leader of the same priority to resign.
#[test]
fn the_hello_contains_the_priority_and_the_nodes_get_that_of_others() {
    let own = Hello { priority: 10, ..hello("me", "4", None) };
    let mut many = ManyRoles::new(own, 4, Elector::Log, false);
    let now = Time::from_nanos(1_000_000_000_000);
    many.topic_judged(now, 0);
    many.listens(now, 0, 10, 4);
    let actions = wanted(&mut many);
    assert!(matches!(&actions[..], [Action::Hello(hello)] if hello.priority == 10), "{actions:?}");

    let other = Hello { priority: 5, ..hello("other", "4", Some(4)) };
    assert_eq!(many.received(now, 11, &other.to_bytes()).unwrap().about(1).priority, 5);
}

/// With one role, that is so because the others wait for the candidates of a higher priority.
#[test]
fn vacant_roles_are_claimed_at_once_by_the_process_of_the_highest_priority_alone() {
    for (priority, extra) in [(5, Some(PATIENCE)), (20, Some(Duration::ZERO))] {
        let own = Hello { priority, ..hello("me", "4", None) };
        let mut many = ManyRoles::new(own, 4, Elector::Log, false);
        let now = Time::from_nanos(1_000_000_000_000);
        many.topic_judged(now, 0);
        many.listens(now, 0, 10, 4);
        drop(wanted(&mut many));
        let other = Hello { priority: 10, joined: Some(3), ..hello("other", "4", Some(4)) };
        drop(many.received(now, 11, &other.to_bytes()));
        assert_eq!(many.received(now, 12, &hello("me", "4", Some(4)).to_bytes()), None);
        (0..4).for_each(|role| many.observe(now, role, Holding::Vacant { successor: None }));
        let mut delays = [None; 4];
        while let Some(due) = many.poll_timeout().filter(|due| *due < now + HELLO_AFTER_LEAD) {
            many.handle_timeout(due);
            for action in wanted(&mut many) {
                if let Action::Delay { role, extra } = action {
                    delays[role] = extra;
                }
            }
        }
        assert_eq!(delays, [extra; 4]);
    }
}

/// An operator sees it, as with one role.
#[test]
fn the_hello_says_why_the_group_does_not_take_the_process() {
    let said = |many: &mut ManyRoles| {
        let hellos = wanted(many)
            .into_iter()
            .filter_map(|action| if let Action::Hello(hello) = action { Some(hello) } else { None });
        hellos.map(|hello| hello.group_refuses).collect::<Vec<_>>()
    };
    let refused: [Option<Box<str>>; 1] = [Some("Group authorization failed".into())];
    let (mut many, now) = standing(GROUP);
    drop(wanted(&mut many));
    let mut nodes: Vec<Node> =
        (0..2).map(|_| Node::new(now, Host::settings(now, &[], true), Random::from_seed(1)).one_of_many()).collect();
    for (role, node) in nodes.iter_mut().enumerate() {
        many.tell(now, role, node, candidate::Event::GroupRefuses { words: refused[0].clone() });
    }
    assert_eq!(said(&mut many), refused, "once for all roles");
    many.tell(now, 0, &mut nodes[0], candidate::Event::GroupRefuses { words: None });
    assert_eq!(said(&mut many), [None], "it is taken again");
    many.tell(now, 1, &mut nodes[1], candidate::Event::GroupRefuses { words: refused[0].clone() });
    assert_eq!(said(&mut many), refused);
    many.stand(now, 0, Assignment::Elsewhere);
    assert_eq!(said(&mut many), [None], "an assignment shows that it is a member");
}

/// A candidate of an earlier version hands roles over by the group's assignment, unless another candidate states a limit.
#[test]
fn in_the_group_the_hello_states_a_limit() {
    for (elector, stated) in [(GROUP, Some(4)), (Elector::Log, None)] {
        let (mut many, now) = standing(elector);
        let due = many.poll_timeout().filter(|due| *due > now).unwrap();
        assert_eq!(said_at(&mut many, due).map(|hello| hello.max_roles), Some(stated), "{elector:?}");
    }
}

/// A job would be stopped for a candidate that has died since its last hello.
#[test]
fn a_role_is_handed_over_only_when_the_one_that_is_to_have_it_has_answered() {
    let other = Hello { joined: Some(20), ..hello("other", "4", Some(4)) };
    let mut asked = [0; 2];
    for (answers, asked) in [false, true].into_iter().zip(&mut asked) {
        let (mut many, now) = standing(Elector::Log);
        (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
        many.received(now, 20, &other.to_bytes());
        let answer: &[_] = if answers { &[&other] } else { &[] };
        let actions = let_time_pass_beside(&mut many, now, answer);
        let is_handed_over = |action: &Action| matches!(action, Action::HandOver { .. });
        let is_given = actions.iter().any(is_handed_over);
        assert!(answers || !is_given, "stops a job for a candidate that has not answered");
        assert!(is_given || !answers, "a candidate that answers gets its share");
        let asks = |action: &&Action| matches!(action, Action::Hello(hello) if hello.asks == Some("other".into()));
        *asked = actions.iter().filter(asks).count();
    }
    assert_eq!(asked, [2, 1], "a question that has no answer is asked once more");
}

#[test]
fn a_hello_that_asks_for_one_is_answered_at_once() {
    let (mut many, now) = said_hello_just_now();
    many.received(now, 20, &question("ann"));
    assert!(wanted(&mut many).iter().any(|action| matches!(action, Action::Hello(_))), "an operator asks");
    for (asked, answers) in [("me", true), ("third", false)] {
        let (mut many, now) = said_hello_just_now();
        let question = Hello { joined: Some(20), asks: Some(asked.into()), ..hello("other", "4", Some(4)) };
        many.received(now, 20, &question.to_bytes());
        assert_eq!(wanted(&mut many).iter().any(|action| matches!(action, Action::Hello(_))), answers, "{asked}");
    }
}
