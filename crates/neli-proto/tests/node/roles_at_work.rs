//! A process with many roles that may claim: its handovers, its timeouts and hellos, and the times of its roles' beats.

use std::collections::BTreeSet;

use neli_proto::guard::Order;
use neli_proto::hello::Hello;
use neli_proto::many_roles::{Action, ManyRoles};
use neli_proto::node::{self, Event, Node};
use neli_proto::precedence::{Assignment, HELLO_AFTER_LEAD};
use neli_proto::random::Random;
use neli_proto::record::What;
use neli_proto::role_set::RoleSet;
use neli_proto::spread::Holding;
use neli_proto::supervisor::{OnLoss, Policy};
use neli_proto::time::Time;
use neli_proto::timings::{Elector, Timings};

use super::host::{DURATIONS, HEARTBEAT_INTERVAL};
use super::many_roles::{GROUP, LONG, hello, introduced, let_time_pass, let_time_pass_beside, standing, wanted};
use super::*;

/// A candidate without many roles takes part in one election, which may be none of these. A role that was handed to it would have no
/// leader.
#[test]
fn nothing_is_handed_to_a_candidate_without_many_roles() {
    let of_many = hello("other", "4", Some(4));
    let of_one = Hello { roles: None, partitions: None, ..of_many.clone() };
    for (other, is_given) in [(Hello { joined: Some(13), ..of_many }, true), (of_one, false)] {
        let (mut many, now) = introduced(Elector::Log);
        drop(let_time_pass(&mut many, now));
        let now = now + LONG;
        (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
        drop(many.received(now, 13, &other.to_bytes()));
        let mut actions = wanted(&mut many);
        actions.extend(let_time_pass_beside(&mut many, now, &[&other]));
        let is_handed_over = |action: &Action| matches!(action, Action::HandOver { .. });
        assert_eq!(actions.iter().any(is_handed_over), is_given, "{other:?}");
    }
}

/// The group may have assigned all partitions to this process.
#[test]
fn whatever_the_group_says_the_number_of_roles_decides() {
    for (standing_of_roles, typed) in
        [(Assignment::Own, "4"), (Assignment::Elsewhere, "4"), (Assignment::Unknown, "4"), (Assignment::Own, "5")]
    {
        let (mut many, now) = standing(GROUP);
        for role in 0..4 {
            many.stand(now, role, standing_of_roles);
            many.observe(now, role, Holding::Leading);
        }
        let hello = Hello { joined: Some(13), ..hello("other", typed, Some(4)) };
        drop(many.received(now, 13, &hello.to_bytes()));
        let mut actions = wanted(&mut many);
        actions.extend(let_time_pass_beside(&mut many, now, &[&hello]));
        let handed_over = actions.iter().find_map(|action| {
            let Action::HandOver { role, to } = action else { return None };
            Some((*role, to.clone()))
        });
        assert_eq!(handed_over, Some((3, "other".into())), "{standing_of_roles:?} {typed}");
    }
}

/// A higher number of roles, or new names at the list's end, agree with the ones before. So in a rolling restart that adds roles, the processes of
/// the old list stand beside those of the new one, and for fewer roles.
#[test]
fn a_process_of_a_shorter_list_is_handed_no_role_that_it_does_not_have() {
    let (mut many, now) = introduced(Elector::Log);
    drop(let_time_pass(&mut many, now));
    let now = now + LONG;
    (0..4).for_each(|role| many.observe(now, role, Holding::Leading));
    let other = Hello { joined: Some(13), ..hello("other", "2", Some(4)) };
    drop(many.received(now, 13, &other.to_bytes()));
    let mut actions = wanted(&mut many);
    actions.extend(let_time_pass_beside(&mut many, now, &[&other]));
    let handed_over = actions.iter().find_map(|action| {
        let Action::HandOver { role, to } = action else { return None };
        Some((*role, to.clone()))
    });
    assert_eq!(handed_over, Some((1, "other".into())), "of those that it has, the one that was taken last");
}

/// Beside a process with a longer list, this process does not know who leads the roles that only the other has: they count for the other. Otherwise
/// it would hand a role to the other, which leads more than its share by its own list, and hands one back.
#[test]
fn a_process_of_a_longer_list_is_handed_no_role_for_those_that_only_it_has() {
    for (typed, left, to) in [("4", "", "other"), ("6", "", "third"), ("6", "4-5", "other")] {
        let (mut many, now) = standing(Elector::Log);
        (0..3).for_each(|role| many.observe(now, role, Holding::Leading));
        many.observe(now, 3, Holding::Held { by: "third".into() });
        let third = Hello { joined: Some(9), ..hello("third", "4", Some(4)) };
        drop(many.received(now, 13, &third.to_bytes()));
        let left = RoleSet::parse(left);
        let other = Hello { joined: Some(13), left, ..hello("other", typed, Some(4)) };
        drop(many.received(now, 14, &other.to_bytes()));
        let mut actions = wanted(&mut many);
        actions.extend(let_time_pass_beside(&mut many, now, &[&third, &other]));
        let handed_over = actions
            .iter()
            .find_map(|action| if let Action::HandOver { to, .. } = action { Some(to.clone()) } else { None });
        assert_eq!(handed_over, Some(to.into()), "{typed} {other:?}");
    }
}

/// On one partition, lists of the same names in another order agree on each role's partition. So a number in such a hello is another role's.
#[test]
fn the_roles_that_another_process_has_left_or_does_not_have_are_found_by_their_names() {
    for (own, roles, others, left, expected) in [
        ("a,b,c", 3, "a,b,c,d", "0,3", vec![0]),
        ("a,b,c", 3, "c,b,a", "0", vec![2]),
        ("a,b,c", 3, "x,c", "0", vec![0, 1]),
        ("3", 3, "2,x,0", "0-1", vec![1, 2]),
        ("x,0", 2, "2", "1", vec![0]),
        ("2", 2, "3", "2", vec![]),
        ("3", 3, "5", "1,4", vec![1]),
    ] {
        let (mut many, now) = (ManyRoles::new(hello("me", own, None), roles, Elector::Log, true), Time::from_nanos(1));
        many.topic_judged(now, 0);
        many.listens(now, 0, 10, 1);
        drop(wanted(&mut many));
        let other = Hello { joined: Some(3), left: RoleSet::parse(left), ..hello("other", others, Some(1)) };
        let told = many.received(now, 11, &other.to_bytes()).unwrap();
        let leaves = |role: &usize| told.clone().about(u32::try_from(*role).unwrap()).leaves;
        assert_eq!((0..roles).filter(leaves).collect::<Vec<_>>(), expected, "{own} beside {others} without {left}");
    }
}

/// Passes a random event to the process.
fn happens(many: &mut ManyRoles, now: Time, random: &mut Random) {
    let mut below = |bound: u64| random.up_to(Duration::from_secs(bound)).as_secs().min(bound - 1);
    let role = usize::try_from(below(4)).unwrap();
    let others = ["other1", "other2", "other3"];
    let other = others[usize::try_from(below(3)).unwrap()];
    let offset = i64::try_from(below(30)).unwrap();
    match below(16) {
        0 => many.listens(now, 0, offset, 4),
        1 => many.topic_judged(now, 0),
        2 if below(10) == 0 => many.history_cut(0),
        3 => drop(many.received(now, offset, &hello("me", "4", Some(4)).to_bytes())),
        4..7 => {
            let joined = Some(offset / 2).filter(|_| below(2) == 0);
            let max_roles = Some(1).filter(|_| below(5) == 0);
            let partitions = if below(20) == 0 { 3 } else { 4 };
            let leaves = below(10) == 0;
            let hello = Hello { joined, max_roles, leaves, ..hello(other, "4", Some(partitions)) };
            drop(many.received(now, offset, &hello.to_bytes()));
        }
        7 => many.stand(now, role, Assignment::Own),
        8 => many.stand(now, role, Assignment::Elsewhere),
        9 => many.observe(now, role, Holding::Claiming),
        10..12 => many.observe(now, role, Holding::Leading),
        12 => many.observe(now, role, Holding::Ending),
        13 => many.observe(now, role, Holding::Held { by: other.into() }),
        14 => many.observe(now, role, Holding::Vacant { successor: Some(other.into()).filter(|_| below(2) == 0) }),
        _ => many.observe(now, role, Holding::Vacant { successor: None }),
    }
}

/// With a timeout that is not in the future the process would use all of a CPU.
#[test]
fn the_next_timeout_of_a_process_is_in_the_future() {
    for seed in 0..500 {
        let mut random = Random::from_seed(seed);
        let elector = if seed % 2 == 0 { Elector::Log } else { Elector::Group(None) };
        let (mut many, mut now) = introduced(elector);
        for step in 0..300 {
            // The time is often exactly the timeout.
            now = match many.poll_timeout() {
                Some(due) if random.up_to(Duration::from_secs(2)) > Duration::from_secs(1) => due,
                _ => now + random.up_to(Duration::from_secs(3)),
            };
            many.handle_timeout(now);
            drop(wanted(&mut many));
            assert!(many.poll_timeout().is_none_or(|due| due > now), "seed {seed}, step {step}");
            happens(&mut many, now, &mut random);
            drop(wanted(&mut many));
            many.handle_timeout(now);
            drop(wanted(&mut many));
            assert!(many.poll_timeout().is_none_or(|due| due > now), "seed {seed}, step {step}, after an event");
        }
    }
}

/// The actions within a short time after a role was released for this reason.
fn wanted_after_release(reason: Why) -> Vec<Action> {
    let (mut many, _) = introduced(Elector::Log);
    let mut host = Host::leading(&[]);
    host.pass(Duration::from_secs(1));
    many.handle_timeout(host.now);
    wanted(&mut many);
    let term = host.status().term();
    host.reads(by("ann", Body::Request { what: What::Resign, term, by: None, reason: None, successor: None }));
    host.ends(JobStatus::Exited(0));
    host.actions();
    let mut record = host.sent.pop().and_then(|written| written.record().cloned()).unwrap();
    if let Body::Release { why, .. } = &mut record.body {
        *why = Some(reason.as_str().into());
    }
    let read = candidate::Event::Read { offset: host.end(), record: Some(record), written_ms: None };
    many.tell(host.now, 0, &mut host.node, read);
    assert_eq!(host.node.candidate().released_term(), term);
    wanted(&mut many);
    many.handle_timeout(host.now + HELLO_AFTER_LEAD);
    wanted(&mut many)
}

/// Other processes' nodes assume that a member that releases has left.
#[test]
fn a_candidate_that_stays_after_a_release_says_hello_again() {
    let is_hello = |action: &Action| matches!(action, Action::Hello(_));
    assert!(wanted_after_release(Why::Resigned).iter().any(is_hello));
    assert!(!wanted_after_release(Why::Stopped).iter().any(is_hello), "it goes");
}

/// A leader of one role that began at `began`: its host, and when it claimed.
fn leader(began: Time, is_one_of_many: bool) -> (Host, Time) {
    let node = Node::new(began, Host::settings(began, &[], true), Random::from_seed(1));
    let node = if is_one_of_many { node.one_of_many() } else { node };
    let mut host = Host { node, now: began, log: Vec::new(), sent: Vec::new() }.listened();
    host.answered();
    host.claims();
    let claimed = host.now;
    host.reads_what_it_sent();
    host.started();
    (host, claimed)
}

/// The times of its beats up to `until`. Each beat is read back, and the guard answers.
fn beats(host: &mut Host, until: Time) -> Vec<Time> {
    let mut beats = Vec::new();
    while host.now < until {
        let actions = host.actions();
        beats.extend(actions.iter().filter(|action| sends(action, "beat")).map(|_| host.now));
        for action in actions {
            if let node::Action::Order(Order::Lease(grant)) = action {
                host.answers(Answer::Extended { until: grant.until });
            }
        }
        host.reads_what_it_sent();
        host.now = host.node.poll_timeout().unwrap().max(host.now);
        host.node.handle_timeout(host.now);
    }
    beats
}

/// For each fetch a broker examines all partitions of a reader, so beats that come together cost less.
#[test]
fn the_roles_of_a_process_beat_at_the_same_moments_and_never_later_than_one_alone() {
    let begin = Time::ZERO + Duration::from_secs(1_000);
    let until = begin + HEARTBEAT_INTERVAL * 12;
    let mut moments = BTreeSet::new();
    for number in 0..50 {
        let (mut host, claimed) = leader(begin + Duration::from_micros(20_017) * number, true);
        let beats = beats(&mut host, until);
        let gaps = std::iter::once(claimed).chain(beats.iter().copied()).zip(&beats).map(|(from, to)| to.since(from));
        let longest = gaps.max().unwrap();
        assert!(longest <= HEARTBEAT_INTERVAL, "{longest:?} between two beats: {beats:?}");
        moments.extend(beats.into_iter().filter(|beat| *beat >= until - HEARTBEAT_INTERVAL));
    }
    assert!(moments.len() <= 16, "{} moments in one heartbeat interval: {moments:?}", moments.len());
}

#[test]
fn a_role_alone_beats_an_interval_after_its_last_beat() {
    let begin = Time::ZERO + Duration::from_micros(1_000_020_017);
    let (mut host, _) = leader(begin, false);
    let beats = beats(&mut host, begin + HEARTBEAT_INTERVAL * 5);
    let gaps = beats.iter().zip(&beats[1..]).map(|(from, to)| to.since(*from));
    assert!(gaps.clone().count() >= 4 && gaps.clone().all(|gap| gap == HEARTBEAT_INTERVAL), "{beats:?}");
}

/// A process that left each role which it hands over would lead none of them again when the other process has died.
#[test]
fn with_on_loss_exit_a_process_still_stands_for_a_role_that_it_hands_over() {
    let hand_over = Event::HandOver { to: "other".into() };
    for (event, leaves) in [(hand_over, false), (Event::Election(candidate::Event::Revoked), true)] {
        let mut host = Host::in_group();
        let settings = Host::settings(host.now, &[], true);
        let job = Policy { on_loss: OnLoss::Exit, ..settings.job };
        let timings = Timings::new(DURATIONS, GROUP).unwrap();
        host.node = Node::new(host.now, node::Settings { job, timings, ..settings }, Random::from_seed(1));
        let mut host = host.listened().led();
        host.elects(candidate::Event::AssignmentChanged(Assignment::Own));
        host.happens(event);
        host.ends(JobStatus::Exited(0));
        host.actions();
        host.reads_what_it_sent();
        assert_eq!((exits(&host.actions()).len(), host.node.holding() == Holding::Done), (usize::from(leaves), leaves));
    }
}
