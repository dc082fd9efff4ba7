//! `--max-roles` and `--elect`: processes with a limit, or with another elector, beside processes without.

use std::time::Duration;

use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::spread::{Holding, Spread};
use neli_proto::timings::Elector;

use crate::rules::{START, handed_over, held_by, with_roles};
use crate::world::{GROUP, GROUP_WITHOUT_PATIENCE, LOG, SHORT_DELAYS, World};
use crate::{MINUTE, SILENCE, pick, there};

/// A process that leads three roles of four, beside a leader of one.
fn leads_three_of_four() -> Spread {
    let mut spread = with_roles(4);
    (0..3).for_each(|role| spread.observe(START, role, Holding::Leading));
    spread.observe(START, 3, held_by("m2"));
    spread
}

/// Its limit is not known yet. Or it has died, and nobody had room for its roles.
#[test]
fn a_leader_that_says_no_hello_gets_no_other_role() {
    let mut spread = leads_three_of_four();
    assert_eq!(handed_over(&mut spread, START, MINUTE), []);
    spread.hello_received(START + MINUTE, &"m2".into(), None);
    assert_eq!(handed_over(&mut spread, START + MINUTE, MINUTE), [(2, "m2".into())]);

    for (before_end, handed) in [(1, vec![(1, "m2".into())]), (0, vec![])] {
        let mut spread = leads_three_of_four();
        spread.observe(START, 2, held_by("m2"));
        spread.hello_received(START, &"m2".into(), None);
        let later = START + HELLO_HOLDS + HELLO_INTERVAL.saturating_sub(Duration::from_secs(before_end));
        assert_eq!(handed_over(&mut spread, START, later.since(START)), []);
        spread.observe(later, 2, Holding::Vacant { successor: None });
        spread.observe(later, 2, Holding::Leading);
        assert_eq!(handed_over(&mut spread, later, Duration::ZERO), handed, "{before_end}");
    }
}

/// Whether as many roles as possible are led, and no process leads two roles fewer than another although it may lead more.
fn is_fair_with_limits(world: &World) -> bool {
    let (held, roles) = (world.held(), world.leaders().len());
    let staying = world.processes.iter().flatten().filter(|process| !process.is_leaving);
    let most: Vec<usize> =
        staying.map(|process| process.max_roles.map_or(roles, |most| most as usize).min(roles)).collect();
    let fewest = held.iter().zip(&most).filter(|(held, most)| held < most).map(|(held, _)| *held).min();
    let is_even = |fewest: usize| held.iter().all(|held| *held < fewest + 2);
    held.iter().sum::<usize>() == most.iter().sum::<usize>().min(roles) && fewest.is_none_or(is_even)
}

/// A limit for two of three processes.
fn a_limit(world: &mut World) -> Option<u32> {
    let most = pick(world, world.leaders().len()) + 1;
    u32::try_from(most).ok().filter(|_| pick(world, 3) > 0)
}

/// Ten random changes among up to five processes. A minute after each change the shares are fair, and then nothing moves.
fn a_life(seed: u64, elector: Elector, join: fn(&mut World)) {
    let mut sizes = World::new(seed, elector, 1, SHORT_DELAYS);
    let roles = 1 + pick(&mut sizes, 12);
    let mut world = World::new(seed, elector, roles, SHORT_DELAYS);
    join(&mut world);
    for _ in 0..10 {
        let there = there(&world);
        let victim = there[pick(&mut world, there.len())];
        match pick(&mut world, 6) {
            0 if there.len() > 1 => {
                world.die(victim, true);
                world.run_for(SILENCE);
            }
            1 if there.len() > 1 => world.die(victim, false),
            2 if there.len() > 1 => world.leave(victim),
            3 if there.len() > 1 => {
                world.leave(victim);
                world.run_for(Duration::from_secs(5));
                join(&mut world);
            }
            4 => {
                let role = pick(&mut world, roles);
                world.resign(role);
            }
            _ if there.len() < 5 => join(&mut world),
            _ => {}
        }
        world.run_for(MINUTE);
        assert!(is_fair_with_limits(&world), "seed {seed}, {elector:?}: {:?}", world.held());
        let hand_overs = world.hand_overs;
        world.run_for(MINUTE * 15);
        assert!(is_fair_with_limits(&world), "seed {seed}, {elector:?}: later {:?}", world.held());
        assert!(world.hand_overs <= hand_overs + 1, "seed {seed}, {elector:?}: nothing moves when nothing changes");
    }
}

#[test]
fn with_limits_shares_are_fair_within_a_minute_of_each_change() {
    let join = |world: &mut World| {
        let most = a_limit(world);
        world.join(most);
    };
    for seed in 0..300 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            a_life(seed, elector, join);
        }
    }
}

/// As in a rolling restart with another `--elect`.
#[test]
fn with_both_electors_shares_are_fair_within_a_minute_of_each_change() {
    let join = |world: &mut World| {
        let elector = if pick(world, 2) == 0 { LOG } else { world.elector };
        world.join_by(elector, None);
    };
    for seed in 0..300 {
        a_life(seed, GROUP, join);
        a_life(seed, GROUP_WITHOUT_PATIENCE, join);
    }
}

/// With the group roles are not where the group has assigned them by then, which is no reason to move them.
#[test]
fn when_the_process_with_a_limit_goes_only_its_roles_move() {
    for seed in 0..60 {
        let mut world = World::new(seed, if seed % 4 < 2 { GROUP } else { LOG }, 9, SHORT_DELAYS);
        for most in [None, None, Some(1)] {
            world.join(most);
        }
        world.run_for(MINUTE);
        let hand_overs = world.hand_overs;
        if seed % 2 == 0 {
            world.leave(2);
        } else {
            world.die(2, false);
        }
        world.run_for(MINUTE * 15);
        assert!(is_fair_with_limits(&world), "seed {seed}: {:?}", world.held());
        assert_eq!(world.hand_overs, hand_overs, "seed {seed}");
    }
}
