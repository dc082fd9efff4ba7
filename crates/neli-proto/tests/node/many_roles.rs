//! A process with many roles, from its first reading on: when it may claim, and beside which other processes it refuses to stand by.

use neli_proto::many_roles::{Action, ManyRoles, Settings};
use neli_proto::node::{Action as NodeAction, Event, Node};
use neli_proto::precedence::{HELLO_AFTER_LEAD, Standing};
use neli_proto::process_hello::ProcessHello;
use neli_proto::random::Random;
use neli_proto::record::{Hello, Record};
use neli_proto::role_set::RoleSet;
use neli_proto::spread::{ASSIGNMENT_TAKES, Holding};
use neli_proto::time::Time;
use neli_proto::timings::{Elector, PATIENCE, Patience};

use super::*;
use crate::records::hello as hello_of_one;

pub(super) const LONG: Duration = Duration::from_secs(120);
const GROUP: Elector = Elector::Group(Patience::For(Duration::from_millis(500)));

pub(super) fn hello(member: &str, typed: &str, partitions: Option<u32>) -> ProcessHello {
    ProcessHello {
        member: member.into(),
        name: Some(member.into()),
        host: None,
        pid: None,
        version: None,
        elector: None,
        roles: Some(typed.into()),
        partitions,
        max_roles: None,
        joined: None,
        waits_ms: None,
        left: RoleSet::new(),
        leaves: false,
    }
}

fn many(elector: Elector) -> ManyRoles {
    ManyRoles::new(Settings { hello: hello("me", "4", None), roles: 4, elector, are_spread: true })
}

/// The actions until there are no more.
pub(super) fn wanted(many: &mut ManyRoles) -> Vec<Action> {
    std::iter::from_fn(|| many.poll_action()).collect()
}

/// Lets time pass until there are no more actions, or for a long time.
pub(super) fn let_time_pass(many: &mut ManyRoles, from: Time) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some(due) = many.poll_timeout().filter(|due| *due < from + LONG) {
        many.handle_timeout(due);
        actions.extend(wanted(many));
        assert_ne!(many.poll_timeout(), Some(due), "it would be called again for ever");
    }
    actions
}

fn is_claimed(action: &Action) -> bool {
    matches!(action, Action::Tell { event: Event::SpreadBy(Some(_)), .. })
}

/// A process with four roles on four partitions that has said hello and read it back at offset 12.
pub(super) fn introduced(elector: Elector) -> (ManyRoles, Time) {
    let (mut many, now) = (many(elector), Time::from_nanos(1_000_000_000_000));
    many.topic_judged(now, 0);
    assert_eq!(wanted(&mut many), [], "it is not known how many partitions there are");
    many.listens(now, 1, 10, 4);
    assert_eq!(wanted(&mut many), [], "it does not read partition 0 yet");
    many.listens(now, 0, 10, 4);
    let actions = wanted(&mut many);
    assert!(matches!(&actions[..], [Action::Hello(hello)] if hello.partitions == Some(4)), "{actions:?}");
    assert_eq!(many.received(now, 12, &hello("me", "4", Some(4)).to_bytes()), None);
    (many, now)
}

/// The same process after the time when it may claim.
fn standing(elector: Elector) -> (ManyRoles, Time) {
    let (mut many, now) = introduced(elector);
    let actions = let_time_pass(&mut many, now);
    assert!(actions.iter().any(is_claimed));
    (many, now + LONG)
}

/// The last claim delay of a role.
fn last_delay(actions: &[Action]) -> Option<Duration> {
    let delay = |action: &Action| {
        if let Action::Tell { role: 0, event: Event::SpreadBy(extra) } = action { *extra } else { None }
    };
    actions.iter().rev().find_map(delay)
}

#[test]
fn nothing_is_claimed_before_the_others_could_answer() {
    let (mut many, now) = introduced(Elector::Log);
    assert_eq!((wanted(&mut many), many.stands()), (vec![], false));
    let actions = let_time_pass(&mut many, now);
    assert!(many.stands());
    assert_eq!(actions.iter().filter(|action| is_claimed(action)).count(), 4, "{actions:?}");
    assert!(many.last_hello().is_some_and(|hello| hello.leaves && hello.joined == Some(12)));
}

/// This test notices a mutant of the table.
#[test]
fn nothing_is_claimed_beside_one_that_maps_a_role_elsewhere() {
    let (mut many, now) = introduced(Elector::Log);
    let other = ProcessHello { joined: Some(3), ..hello("other", "4", Some(3)) };
    assert!(many.received(now, 13, &other.to_bytes()).is_some());
    let mut actions = wanted(&mut many);
    actions.extend(let_time_pass(&mut many, now));
    let claims = actions.iter().any(is_claimed);
    assert!(!claims, "claims a role that another looks for in another partition");
}

/// This test notices a mutant of the table.
#[test]
fn nothing_is_claimed_before_a_slow_answer_to_the_first_hello() {
    let (mut many, now) = introduced(Elector::Log);
    let answered = now + Duration::from_millis(400);
    let mut actions = wanted(&mut many);
    while let Some(due) = many.poll_timeout().filter(|due| *due < answered) {
        many.handle_timeout(due);
        actions.extend(wanted(&mut many));
    }
    let other = ProcessHello { joined: Some(3), ..hello("other", "4", Some(3)) };
    assert!(many.received(answered, 13, &other.to_bytes()).is_some());
    actions.extend(wanted(&mut many));
    let claims = actions.iter().any(is_claimed);
    assert!(!claims, "claims a role before its first hello was answered");
}

#[test]
fn a_group_that_can_not_give_fair_shares_is_not_used() {
    assert!(introduced(GROUP).0.uses_group(), "a partition for each role");
    let mut many = many(GROUP);
    many.listens(Time::from_nanos(1), 0, 0, 5);
    assert_eq!(wanted(&mut many), [Action::SpreadWithoutGroup { partitions: 5 }]);
    assert!(!many.uses_group());
}

#[test]
fn a_late_call_does_everything_that_is_due() {
    let (mut many, now) = introduced(Elector::Log);
    many.handle_timeout(now + LONG);
    assert!(wanted(&mut many).iter().any(is_claimed));
}

#[test]
fn after_a_cut_of_partition_0_it_introduces_itself_again() {
    let (mut many, now) = introduced(Elector::Log);
    many.history_cut(1);
    many.listens(now, 1, 0, 4);
    many.topic_judged(now, 1);
    assert_eq!((wanted(&mut many), many.last_hello().is_some()), (vec![], true), "its hello stands in partition 0");
    many.history_cut(0);
    assert_eq!(many.last_hello(), None, "its hello is no longer in the log");
    many.listens(now, 0, 0, 4);
    many.topic_judged(now, 0);
    let actions = wanted(&mut many);
    assert!(matches!(&actions[..], [Action::Hello(hello)] if hello.joined.is_none()), "{actions:?}");
}

/// The hello that is due by then.
fn said_at(many: &mut ManyRoles, now: Time) -> Option<ProcessHello> {
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
    matches!(event, Event::Election(candidate::Event::HelloReceived(Hello { leaves: true, .. })))
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

    let other = ProcessHello { joined: Some(20), left: RoleSet::parse("1"), ..hello("other", "4", Some(4)) };
    let told = many.received(soon, 20, &other.to_bytes()).unwrap();
    assert_eq!([0, 1, 2].map(|role| says_that_it_leaves(&told.event(role))), [false, true, false]);
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

/// A node of this role finds that its records do not tell who leads.
fn becomes_undecided(many: &mut ManyRoles, now: Time, role: usize) {
    let mut node = Node::new(now, Host::settings(now, &[], true), Random::from_seed(1)).one_of_many();
    let identity = TopicIdentity::Unnamed;
    many.tell(now, role, &mut node, candidate::Event::TopicIdentified { asked: now, identity });
    many.tell(now, role, &mut node, candidate::Event::Answered { asked: now, start: 5, end: 5, trusted: true });
}

#[test]
fn roles_are_handed_only_to_candidates_that_take_roles() {
    let first = hello("other", "4", Some(4));
    let again = ProcessHello { joined: Some(20), ..first.clone() };
    let last = ProcessHello { leaves: true, ..again.clone() };
    let left_all = ProcessHello { left: RoleSet::of_first(4), ..again.clone() };
    let of_other_roles = hello("other", "a,b,c,d", Some(4));
    let stands_for_others = ProcessHello { joined: Some(20), ..of_other_roles.clone() };
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
            let told = many.received(now, offset, &hello.to_bytes()).map(|told| told.event(0));
            let stands = !hello.leaves && *hello != left_all && hello.roles == first.roles;
            assert_eq!(told.as_ref().map(says_that_it_leaves), Some(!stands), "{hello:?}");
        }
        let actions = let_time_pass(&mut many, now);
        let to_other = |action: &Action| {
            let Action::Tell { event: Event::HandOver { to }, .. } = action else { return false };
            *to == Some("other".into())
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
    let of_dead = ProcessHello { member: "dead".into(), partitions: Some(3), ..of_dead };
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
    let other = ProcessHello { joined: Some(13), ..hello("other", "4", Some(4)) };
    drop(many.received(now, 14, &other.to_bytes()));
    // Longer than a hello is valid.
    drop(let_time_pass(&mut many, now));
    let now = now + LONG;
    (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
    assert_eq!(many.received(now, 14, &other.to_bytes()), None);
    let mut actions = wanted(&mut many);
    actions.extend(let_time_pass(&mut many, now));
    let is_handed_over = |action: &Action| matches!(action, Action::Tell { event: Event::HandOver { .. }, .. });
    assert!(!actions.iter().any(is_handed_over), "{actions:?}");
    assert!(many.received(now + LONG, 15, &other.to_bytes()).is_some(), "a later one is news");
}

/// The process wakes only when an action is due.
#[test]
fn roles_are_handed_over_in_time_where_claim_delays_have_changed_as_well() {
    let (mut many, now) = standing(Elector::Log);
    // Its own hello, so that no other is due soon.
    let now = now + Duration::from_millis(500);
    many.handle_timeout(now);
    assert!(matches!(wanted(&mut many)[..], [Action::Hello(_)]));
    (0..3).for_each(|role| many.observe(now, role, Holding::Leading));
    let other = ProcessHello { joined: Some(20), ..hello("other", "4", Some(4)) };
    many.received(now, 20, &other.to_bytes());
    many.observe(now, 3, Holding::Vacant { successor: None });
    let wanted_actions = wanted(&mut many);
    assert!(
        matches!(wanted_actions[..], [Action::Tell { role: 3, event: Event::SpreadBy(Some(_)) }]),
        "{wanted_actions:?}"
    );
    let is_hand_over = |action: &Action| matches!(action, Action::Tell { event: Event::HandOver { .. }, .. });
    let mut handed_over_after = None;
    while let Some(due) = many.poll_timeout().filter(|due| handed_over_after.is_none() && *due < now + LONG) {
        many.handle_timeout(due);
        handed_over_after = wanted(&mut many).iter().any(is_hand_over).then(|| due.since(now));
    }
    assert_eq!(handed_over_after, Some(Duration::from_secs(1)), "by then everybody knows who is there");
}

#[test]
fn the_groups_new_choice_is_waited_for() {
    let (mut many, now) = standing(GROUP);
    let mut host = Host::listening(&[]);
    host.answered();
    // It claims nothing itself.
    host.happens(Event::SpreadBy(None));
    many.stand(now, 0, Standing::Elsewhere);
    let mut reads = |many: &mut ManyRoles, record: Record| {
        let event = candidate::Event::Read { offset: host.end(), record: Some(record.clone()), written_ms: None };
        host.log.push(record);
        many.tell(now, 0, &mut host.node, event);
        last_delay(&wanted(many))
    };
    let release = Body::Release {
        term: 0,
        seen: 0,
        why: Some("revoked".into()),
        exit: None,
        late_ms: None,
        group_member: None,
        once: None,
        successor: None,
    };
    assert_eq!(reads(&mut many, by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None })), None);
    assert_eq!(reads(&mut many, by("db1", release)), Some(ASSIGNMENT_TAKES));
    many.stand(now, 0, Standing::Assigned);
    assert_eq!(last_delay(&wanted(&mut many)), Some(Duration::ZERO), "it is chosen");
}

#[test]
fn a_role_that_the_group_gives_to_another_is_kept_where_roles_are_not_spread() {
    for are_spread in [true, false] {
        let settings = Settings { hello: hello("me", "4", None), roles: 4, elector: GROUP, are_spread };
        let mut many = ManyRoles::new(settings);
        let mut host = Host::in_group().led();
        host.elects(candidate::Event::StandingChanged(Standing::Assigned));
        many.tell(host.now, 0, &mut host.node, candidate::Event::Revoked);
        let is_stop = |action: &NodeAction| matches!(action, NodeAction::Order(Order::Stop { .. }));
        assert_eq!(host.actions().iter().any(is_stop), are_spread);
    }
}

#[test]
fn a_node_knows_the_holder_of_its_role_from_the_records() {
    let mut host = Host::listening(&[]);
    host.answered_with(2);
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    assert_eq!(host.node.holding(), Holding::Unknown, "the log goes on");
    host.reads(by("db3", hello_of_one(0)));
    assert_eq!(host.node.holding(), Holding::Held { by: "db1".into() });
    let release = Body::Release {
        term: 0,
        seen: 0,
        why: Some("spread".into()),
        exit: None,
        late_ms: None,
        group_member: None,
        once: None,
        successor: Some("db3".into()),
    };
    host.reads(by("db1", release));
    assert_eq!(host.node.holding(), Holding::Vacant { successor: Some("db3".into()) });
}

#[test]
fn a_role_is_held_until_the_own_release_is_read() {
    let mut host = Host::leading(&[]);
    assert_eq!(host.node.holding(), Holding::Leading);
    host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
    host.ends(JobStatus::Exited(0));
    host.actions();
    let seq = host.sent.last().and_then(|record| record.seq).unwrap();
    host.elects(candidate::Event::Delivered { seq });
    assert!(matches!(host.status().position, Position::Standby(_)));
    assert_eq!(host.node.holding(), Holding::Ending, "others may not have read it either");
    host.reads_what_it_sent();
    assert_eq!(host.node.holding(), Holding::Vacant { successor: None });
}
