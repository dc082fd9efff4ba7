//! A process with many roles, from its first reading on: when it may claim, and beside which other processes it refuses to stand by.

use neli_proto::guard::Target;
use neli_proto::hello::Hello;
use neli_proto::many_roles::{Action, ManyRoles};
use neli_proto::node::{Action as NodeAction, Event};
use neli_proto::precedence::Assignment;
use neli_proto::spread::Holding;
use neli_proto::supervisor::Foreground;
use neli_proto::time::Time;
use neli_proto::timings::Elector;

use super::*;
use crate::records::hello as hello_of_one;

/// What a role's node hears of a hello.
pub(super) fn heard(hello: &Hello, role: u32) -> Event {
    Event::Election(candidate::Event::HelloReceived(Box::new(hello.clone().about(role))))
}

pub(super) const LONG: Duration = Duration::from_secs(120);
pub(super) const GROUP: Elector = Elector::Group(Some(Duration::from_millis(500)));

pub(super) fn hello(member: &str, typed: &str, partitions: Option<u32>) -> Hello {
    Hello { roles: Some(typed.into()), partitions, ..Hello::new(member.into(), Some(member.into())) }
}

fn many(elector: Elector) -> ManyRoles {
    ManyRoles::new(hello("me", "4", None), 4, elector, true)
}

/// The actions until there are no more.
pub(super) fn wanted(many: &mut ManyRoles) -> Vec<Action> {
    std::iter::from_fn(|| many.poll_action()).collect()
}

/// Lets time pass until there are no more actions, or for a long time.
pub(super) fn let_time_pass(many: &mut ManyRoles, from: Time) -> Vec<Action> {
    let_time_pass_beside(many, from, &[])
}

/// The same beside others, which answer with these hellos.
pub(super) fn let_time_pass_beside(many: &mut ManyRoles, from: Time, others: &[&Hello]) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut offset = 1_000;
    while let Some(due) = many.poll_timeout().filter(|due| *due < from + LONG) {
        many.handle_timeout(due);
        let mut wanted_actions = wanted(many);
        while let Some(answer) = others.iter().find(|other| wanted_actions.iter().any(|action| asks(action, other))) {
            offset += 1;
            many.received(due, offset, &answer.to_bytes());
            actions.append(&mut wanted_actions);
            wanted_actions = wanted(many);
        }
        actions.append(&mut wanted_actions);
        assert_ne!(many.poll_timeout(), Some(due), "it would be called again for ever");
    }
    actions
}

fn asks(action: &Action, other: &Hello) -> bool {
    matches!(action, Action::Hello(hello) if hello.asks.as_ref() == Some(&other.member))
}

pub(super) fn is_claimed(action: &Action) -> bool {
    matches!(action, Action::Delay { extra: Some(_), .. })
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
pub(super) fn standing(elector: Elector) -> (ManyRoles, Time) {
    let (mut many, now) = introduced(elector);
    let actions = let_time_pass(&mut many, now);
    assert!(actions.iter().any(is_claimed));
    (many, now + LONG)
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
    let other = Hello { joined: Some(3), ..hello("other", "4", Some(3)) };
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
    let other = Hello { joined: Some(3), ..hello("other", "4", Some(3)) };
    assert!(many.received(answered, 13, &other.to_bytes()).is_some());
    actions.extend(wanted(&mut many));
    let claims = actions.iter().any(is_claimed);
    assert!(!claims, "claims a role before its first hello was answered");
}

#[test]
fn a_group_with_another_number_of_partitions_than_roles_is_not_used() {
    assert!(introduced(GROUP).0.uses_group(), "a partition for each role");
    let mut many = many(GROUP);
    many.listens(Time::from_nanos(1), 0, 0, 5);
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

/// A candidate may be the first to notice it, by the topic's id.
#[test]
fn a_topic_that_was_made_anew_is_a_cut_of_partition_0() {
    let (mut many, now) = introduced(Elector::Log);
    let mut host = Host::listening(&[]);
    let now = now.max(host.now);
    for low in [1, 2] {
        assert!(many.last_hello().is_some());
        let identity = TopicIdentity::Id { high: 0, low };
        many.tell(now, 0, &mut host.node, candidate::Event::TopicIdentified { asked: now, identity });
    }
    assert_eq!(many.last_hello(), None, "its hello is no longer in the log");
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
    let other = Hello { joined: Some(20), ..hello("other", "4", Some(4)) };
    many.received(now, 20, &other.to_bytes());
    many.observe(now, 3, Holding::Vacant { successor: None });
    let wanted_actions = wanted(&mut many);
    assert!(matches!(wanted_actions[..], [Action::Delay { role: 3, extra: Some(_) }]), "{wanted_actions:?}");
    let is_hand_over = |action: &Action| matches!(action, Action::HandOver { .. });
    let mut handed_over_after = None;
    while let Some(due) = many.poll_timeout().filter(|due| handed_over_after.is_none() && *due < now + LONG) {
        many.handle_timeout(due);
        let mut actions = wanted(&mut many);
        if actions.iter().any(|action| asks(action, &other)) {
            many.received(due, 21, &other.to_bytes());
            actions = wanted(&mut many);
        }
        handed_over_after = actions.iter().any(is_hand_over).then(|| due.since(now));
    }
    assert_eq!(handed_over_after, Some(Duration::from_secs(1)), "by then everybody knows who is there");
}

/// The number of roles decides which process gives one up.
#[test]
fn a_role_that_the_group_gives_to_another_is_kept() {
    for is_one_of_many in [false, true] {
        let mut host = Host::in_group();
        host.node = if is_one_of_many { host.node.one_of_many() } else { host.node };
        let mut host = host.led();
        host.elects(candidate::Event::AssignmentChanged(Assignment::Own));
        host.elects(candidate::Event::Revoked);
        let is_stop = |action: &NodeAction| matches!(action, NodeAction::Order(Order::Stop { .. }));
        assert_eq!(host.actions().iter().any(is_stop), !is_one_of_many);
    }
}

/// The process does not stop for one role, so nobody would continue that one.
#[test]
fn a_job_that_stops_itself_suspends_a_process_with_one_role_alone() {
    const TSTP: i32 = 20;
    for is_one_of_many in [false, true] {
        let mut host = Host::leading(&[]);
        host.node = if is_one_of_many { host.node.one_of_many() } else { host.node };
        let (signal, foreground, continuable) = (TSTP, Foreground::Elsewhere, true);
        host.job(supervisor::Event::JobStopped { signal, foreground, continuable });
        let actions = host.actions();
        let goes_on = Order::Signal { signal: TSTP_ENDS, to: Target::Group };
        assert_eq!(actions.contains(&NodeAction::Order(goes_on)), is_one_of_many, "{actions:?}");
        let is_stop = |action: &NodeAction| matches!(action, NodeAction::Order(Order::Stop { .. }));
        assert_eq!(actions.iter().any(is_stop), !is_one_of_many, "{actions:?}");
    }
}

#[test]
fn a_node_knows_the_holder_of_its_role_from_the_records() {
    let mut host = Host::listening(&[]);
    host.answered_with(2);
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    assert_eq!(host.node.holding(), Holding::Unknown, "the log goes on");
    host.reads(hello_of_one("db3", 0));
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

/// A process that starts may read another's hello, which is in partition 0, before that one's earlier releases of the role.
#[test]
fn an_earlier_release_hides_no_process_that_has_said_hello_since() {
    for (why, is_known) in [("resigned", true), ("spread", true), ("stopped", false), ("supervisor-died", false)] {
        let mut host = Host::listening(&[]);
        host.node = host.node.one_of_many();
        host.happens(heard(&hello("db1", "4", Some(2)), 1));
        host.answered_with(2);
        host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
        let (term, seen, why_said) = (0, 0, Some(why.into()));
        let (exit, late_ms, group_member, once, successor) = (None, None, None, None, None);
        host.reads(by(
            "db1",
            Body::Release { term, seen, why: why_said, exit, late_ms, group_member, once, successor },
        ));
        assert_eq!(host.status().standbys.len(), usize::from(is_known), "{why}");
    }
}

/// Others would hand it the role, and nobody would lead it until they knew better.
#[test]
fn a_process_whose_job_can_not_be_killed_stands_for_the_role_no_more() {
    let mut host = Host::leading(&[]);
    host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
    assert_eq!(host.node.holding(), Holding::Ending);
    host.answers(Answer::Stuck { pids: vec![7] });
    assert_eq!((exits(&host.actions()), host.node.holding()), (vec![Ending::Stuck], Holding::Done));
}

#[test]
fn a_role_is_held_until_the_own_release_is_read() {
    let mut host = Host::leading(&[]);
    assert_eq!(host.node.holding(), Holding::Leading);
    host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
    host.ends(JobStatus::Exited(0));
    host.actions();
    let seq = host.sent.last().and_then(|written| written.record()?.seq).unwrap();
    host.elects(candidate::Event::Delivered { seq });
    assert!(matches!(host.status().position, Position::Standby(_)));
    assert_eq!(host.node.holding(), Holding::Ending, "others may not have read it either");
    host.reads_what_it_sent();
    assert_eq!(host.node.holding(), Holding::Vacant { successor: None });
}
