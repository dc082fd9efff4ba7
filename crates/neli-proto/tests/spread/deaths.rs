//! Processes that die: no role is handed to one of them, since that would stop a job for nobody.

use std::iter;
use std::time::Duration;

use neli_proto::hello::Hello;
use neli_proto::many_roles::ManyRoles;
use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::record::MemberId;
use neli_proto::spread::{Action, Holding, Spread};
use neli_proto::time::Time;
use neli_proto::timings::Elector;

use crate::rules::{START, actions, handed_over, held_by, leads_all, with_roles};
use crate::world::{GROUP, GROUP_WITHOUT_PATIENCE, LOG, SHORT_DELAYS, World};
use crate::{MINUTE, is_fair, pick, there};

/// A world of twelve roles. Half of the worlds have limits that leave room for all of them.
fn a_world(seed: u64, elector: Elector, processes: usize) -> World {
    let mut world = World::new(seed, elector, 12, SHORT_DELAYS);
    for _ in 0..processes {
        world.join(seed.is_multiple_of(2).then_some(12));
    }
    world.run_for(MINUTE);
    world
}

/// Most processes die at once, and one is started.
fn many_deaths(seed: u64, elector: Elector) {
    let mut world = a_world(seed, elector, 5);
    for victim in 0..3 {
        let with_machine = pick(&mut world, 4) > 0;
        world.die(victim, with_machine);
    }
    let pause = world.up_to(Duration::from_secs(30));
    world.run_for(pause);
    world.join(None);
    world.run_for(MINUTE * 2);
    assert_eq!(world.handed_to_the_dead, 0, "seed {seed}, {elector:?}");
    assert!(is_fair(&world.held(), 12), "seed {seed}, {elector:?}: {:?}", world.held());
}

#[test]
fn nothing_is_handed_to_processes_that_died_at_once() {
    for seed in 0..200 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            many_deaths(seed, elector);
        }
    }
}

/// A process that dies a few seconds after each of its starts.
fn a_crash_loop(seed: u64, elector: Elector) {
    let mut world = a_world(seed, elector, 3);
    let hand_overs = world.hand_overs;
    for _ in 0..11 {
        let process = world.join(None);
        world.processes[process].as_mut().unwrap().name = Some("crashes");
        let life = Duration::from_secs(1) + world.up_to(Duration::from_secs(6));
        world.run_for(life);
        let with_machine = pick(&mut world, 2) == 0;
        world.die(process, with_machine);
        let pause = world.up_to(Duration::from_secs(2));
        world.run_for(pause);
    }
    world.run_for(MINUTE * 2);
    assert_eq!(world.handed_to_the_dead, 0, "seed {seed}, {elector:?}");
    // Without the crashes' common name up to 27 are.
    let moved = world.hand_overs - hand_overs;
    assert!(moved <= 12, "seed {seed}, {elector:?}: {moved} roles were handed over");
    assert_eq!(there(&world).len(), 3);
    assert!(is_fair(&world.held(), 12), "seed {seed}, {elector:?}: {:?}", world.held());
}

#[test]
fn nothing_is_handed_to_a_process_that_dies_again_and_again() {
    for seed in 0..200 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            a_crash_loop(seed, elector);
        }
    }
}

/// The questions until then, without an answer. Nothing is handed over.
fn unanswered(spread: &mut Spread, from: Time, until: Time) -> Vec<(Duration, MemberId)> {
    let (mut now, mut all) = (from, Vec::new());
    loop {
        let done = actions(spread);
        assert!(!done.iter().any(|action| matches!(action, Action::HandOver { .. })), "{done:?}");
        all.extend(iter::from_fn(|| spread.poll_question()).map(|(at, member)| {
            assert_eq!(at, now, "it is asked at once");
            (now.since(from), member)
        }));
        match spread.poll_timeout() {
            Some(due) if due <= until => now = due,
            Some(_) | None => return all,
        }
        spread.handle_timeout(now);
    }
}

fn ask(seconds: u64, member: &str) -> (Duration, MemberId) {
    (Duration::from_secs(seconds), member.into())
}

/// One that does not answer is asked twice. After four seconds its share is for others, and when it is heard again it gets it.
#[test]
fn one_that_does_not_answer_gets_nothing_until_it_is_heard() {
    let mut spread = leads_all(4);
    let later = START + Duration::from_secs(20);
    assert_eq!(unanswered(&mut spread, START, later), [ask(1, "m2"), ask(3, "m2")]);
    spread.hello_received(later, &"m3".into(), None);
    let asked = unanswered(&mut spread, later, later + Duration::from_secs(1));
    assert_eq!(asked.len(), 1, "{asked:?}");
    let answered = later + Duration::from_secs(1);
    spread.hello_received(answered, &"m3".into(), None);
    assert_eq!(handed_over(&mut spread, answered, Duration::ZERO), [(3, "m3".into())], "two for each of two");
    spread.observe(answered, 3, held_by("m3"));
    spread.hello_received(answered, &"m2".into(), None);
    assert_eq!(handed_over(&mut spread, answered, Duration::ZERO), [(2, "m2".into())], "it is there after all");
}

/// A question of another process is as good as an own one.
#[test]
fn one_that_was_asked_by_another_is_not_asked_again() {
    let mut spread = leads_all(4);
    let second = Duration::from_secs(1);
    spread.asked(START + second, &"m2".into());
    assert_eq!(unanswered(&mut spread, START + second, START + second * 10), [ask(2, "m2")]);
}

/// It has beaten since it was chosen. A record from before that proves nothing.
#[test]
fn a_record_of_a_leader_is_as_good_as_an_answer() {
    let mut spread = leads_all(4);
    let chosen = START + Duration::from_secs(1);
    spread.heard(START + Duration::from_millis(999), &"m2".into());
    assert_eq!(unanswered(&mut spread, START, chosen).len(), 1);
    spread.heard(chosen, &"m2".into());
    assert_eq!(handed_over(&mut spread, chosen, Duration::ZERO), [(3, "m2".into())]);
}

/// A process reads the hellos of the dead after their releases: those are in another partition.
#[test]
fn an_old_hello_brings_no_candidate_back() {
    for why in ["supervisor-died", "suspended", "silence"] {
        let mut spread = with_roles(4);
        spread.observe(START, 0, held_by("m2"));
        if why != "silence" {
            spread.released(START, 0, &"m2".into(), why);
        }
        (0..4).for_each(|role| spread.observe(START, role, Holding::Leading));
        drop(actions(&mut spread));
        spread.received_earlier(START, &"m2".into(), None);
        assert_eq!(unanswered(&mut spread, START, START + HELLO_HOLDS), [], "{why}");
    }
}

/// Processes of one name that live for some seconds. From the third on each gets nothing until it has stood for a minute.
#[test]
fn one_that_dies_shortly_after_its_start_again_and_again_must_stand_for_a_minute_first() {
    let mut spread = leads_all(4);
    drop(handed_over(&mut spread, START, Duration::ZERO));
    spread.member_left(START, &"m2".into());
    let mut now = START;
    for (life, waits) in [(0, 1), (1, 1), (2, 60), (3, 60)] {
        let id = MemberId::from(format!("x{life}").as_str());
        spread.note_name(now, &id, Some("x"));
        spread.hello_received(now, &id, None);
        let before = Duration::from_millis(waits * 1_000 - 1);
        assert_eq!(handed_over(&mut spread, now, before), [], "life {life}");
        let hello = now + HELLO_INTERVAL;
        if waits > 30 {
            spread.hello_received(hello, &id, None);
        }
        let then = now + Duration::from_secs(waits);
        spread.handle_timeout(then);
        assert_eq!(handed_over(&mut spread, then, Duration::ZERO), [(3, id.clone())], "life {life}");
        spread.observe(then, 3, Holding::Ending);
        spread.observe(then, 3, Holding::Held { by: id.clone() });
        spread.released(then, 3, &id, "supervisor-died");
        spread.observe(then, 3, Holding::Vacant { successor: None });
        spread.observe(then, 3, Holding::Leading);
        now = then + Duration::from_secs(5);
    }
}

/// The hello of a process with four roles on as many partitions.
fn hello(member: &str, name: &str, pid: u32) -> Hello {
    let roles = Some("4".into());
    Hello {
        roles,
        partitions: Some(4),
        pid: Some(pid),
        joined: Some(0),
        ..Hello::new(member.into(), Some(name.into()))
    }
}

/// Lets time pass beside a process that said this hello and, if it `answers`, says it again when it is asked. Returns when it is handed a role.
fn handed_beside(many: &mut ManyRoles, from: Time, other: &Hello, answers: bool) -> Option<Duration> {
    let mut offset = i64::try_from(from.since(START).as_millis()).unwrap() + 100;
    let mut now = from;
    many.received(now, offset, &other.to_bytes());
    loop {
        while let Some(action) = many.poll_action() {
            if matches!(&action, Action::HandOver { to, .. } if *to == other.member) {
                return Some(now.since(from));
            } else if matches!(&action, Action::Hello(said) if answers && said.asks.as_ref() == Some(&other.member)) {
                offset += 1;
                many.received(now, offset, &other.to_bytes());
            }
        }
        now = many.poll_timeout().filter(|due| *due < from + HELLO_HOLDS)?;
        many.handle_timeout(now);
    }
}

/// Without `--name` each process has its own process id in its name.
#[test]
fn one_that_has_another_process_id_after_each_death_must_stand_for_a_minute_too() {
    for (names, waits) in [(["web:41", "web:42", "web:43"], 60), (["a", "b", "c"], 1), (["web:1", "web:2", "web:3"], 1)]
    {
        let own = Hello { partitions: None, joined: None, ..hello("me", "me:7", 7) };
        let mut many = ManyRoles::new(own, 4, LOG, true);
        many.topic_judged(START, 0);
        many.listens(START, 0, 10, 4);
        drop(many.poll_action());
        many.received(START, 12, &hello("me", "me:7", 7).to_bytes());
        let stands = many.poll_timeout().unwrap();
        many.handle_timeout(stands);
        (0..4).for_each(|role| many.observe(stands, role, Holding::Leading));
        let mut handed = None;
        for ((life, name), pid) in (0..).zip(names).zip(41..) {
            let born = stands + MINUTE * 2 * life;
            handed = handed_beside(&mut many, born, &hello(name, name, pid), life == 2);
            assert!(life == 2 || handed.is_none(), "{name} is handed a role, and does not answer");
        }
        assert_eq!(handed, Some(Duration::from_secs(waits)), "{names:?}");
    }
}
