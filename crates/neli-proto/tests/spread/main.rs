//! The spread in counted time: processes that join, leave, restart and die, that read their journals with delays of their own and lose
//! hellos. Everybody holds a fair share within a minute of each change, and no more roles move than that takes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod process;
mod rules;
mod world;

use std::time::Duration;

use world::{FAIR_WEATHER, Weather, World, histogram};

const MINUTE: Duration = Duration::from_secs(60);

/// What has died with its machine is known to have once its lease is over.
const SILENCE: Duration = Duration::from_secs(21);

/// How many of `roles` each is to hold.
fn is_fair(held: &[usize], roles: usize) -> bool {
    let (least, most) = (roles / held.len(), roles.div_ceil(held.len()));
    held.iter().sum::<usize>() == roles && held.iter().all(|held| (least..=most).contains(held))
}

/// The fewest roles that must move so that everybody holds a fair share.
fn least_moves(held: &[usize], roles: usize) -> usize {
    let (each, rest) = (roles / held.len(), roles % held.len());
    let mut held = held.to_vec();
    held.sort_unstable_by(|one, other| other.cmp(one));
    held.iter().enumerate().map(|(place, held)| held.saturating_sub(each + usize::from(place < rest))).sum()
}

/// What happens to the processes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Dies { with_machine: bool },
    Joins,
    Leaves,
    Restarts,
}

/// Does one change, and looks whether a minute later everything is as it should be.
fn change(world: &mut World, roles: usize, change: Change, victim: usize) {
    let (hand_overs, wins) = (world.hand_overs, world.wins);
    let before: Vec<_> = world.leaders().to_vec();
    let member = world.processes[victim].as_ref().unwrap().member.clone();
    let mut least = 0;
    match change {
        Change::Dies { with_machine } => {
            world.die(victim, with_machine);
            if with_machine {
                world.run_for(SILENCE);
            }
        }
        Change::Joins => {
            world.join(None);
            least = least_moves(&world.held(), roles);
        }
        Change::Leaves => world.leave(victim),
        Change::Restarts => {
            world.leave(victim);
            world.run_for(Duration::from_secs(5));
            world.join(None);
            least = least_moves(&world.held(), roles);
        }
    }
    world.run_for(MINUTE);
    let held = world.held();
    assert!(is_fair(&held, roles), "{change:?}: {:?}", histogram(&held));
    let moved = world.hand_overs - hand_overs;
    assert!(moved <= least, "{change:?}: {moved} roles were handed over, and {least} would do: {:?}", histogram(&held));
    // Whoever stays keeps what it has, but for what is handed over; each role is led anew once.
    let orphans = before.iter().filter(|leader| leader.as_ref() == Some(&member)).count();
    let orphans = if matches!(change, Change::Joins) { 0 } else { orphans };
    assert!(world.wins - wins <= orphans + moved, "{change:?}: {} claims for {orphans} and {moved}", world.wins - wins);
    let (hand_overs, wins) = (world.hand_overs, world.wins);
    world.run_for(MINUTE * 3);
    assert_eq!((world.hand_overs, world.wins), (hand_overs, wins), "nothing moves when nothing changes");
}

fn pick(world: &mut World, count: usize) -> usize {
    let share = world.up_to(Duration::from_secs(count as u64)).as_secs();
    usize::try_from(share).unwrap()
}

fn there(world: &World) -> Vec<usize> {
    (0..world.processes.len()).filter(|&process| world.processes[process].is_some()).collect()
}

/// Twelve changes at random among up to five processes.
fn a_life(seed: u64, weather: Weather) {
    let mut sizes = World::new(seed, 1, weather);
    let roles = 1 + pick(&mut sizes, 20);
    let mut world = World::new(seed, roles, weather);
    world.join(None);
    world.run_for(MINUTE);
    assert_eq!(world.held(), [roles]);
    for _ in 0..12 {
        let there = there(&world);
        let victim = there[pick(&mut world, there.len())];
        let next = match pick(&mut world, 5) {
            0 if there.len() > 1 => Change::Dies { with_machine: true },
            1 if there.len() > 1 => Change::Dies { with_machine: false },
            2 if there.len() > 1 => Change::Leaves,
            3 if there.len() > 1 => Change::Restarts,
            _ if there.len() < 5 => Change::Joins,
            _ => Change::Restarts,
        };
        change(&mut world, roles, next, victim);
    }
}

#[test]
fn shares_are_fair_within_a_minute_of_each_change() {
    for seed in 0..200 {
        a_life(seed, FAIR_WEATHER);
    }
}

#[test]
fn late_and_lost_hellos_cost_no_more_than_their_interval() {
    let weather = Weather {
        latency: Duration::from_millis(50),
        stop: Duration::from_millis(500),
        hellos_lost: 30,
        hello_latency: Duration::from_secs(1),
    };
    for seed in 0..200 {
        a_life(seed, weather);
    }
}

/// Nobody waits until the roles are spread again.
#[test]
fn a_rolling_restart_ends_fair() {
    for seed in 0..20 {
        let mut world = World::new(seed, 20, FAIR_WEATHER);
        let mut running: Vec<usize> = (0..4).map(|_| world.join(None)).collect();
        world.run_for(MINUTE);
        for process in &mut running {
            world.leave(*process);
            world.run_for(Duration::from_secs(2));
            *process = world.join(None);
        }
        world.run_for(MINUTE);
        assert_eq!(world.held(), [5, 5, 5, 5]);
        // Each leader's roles go to others, and each that comes is given a share of what all hold then.
        assert!(world.hand_overs <= 4 * 5 + 15, "{}", world.hand_overs);
    }
}

#[test]
fn nobody_holds_more_than_it_may() {
    for seed in 0..20 {
        let mut world = World::new(seed, 9, FAIR_WEATHER);
        for _ in 0..3 {
            world.join(Some(2));
            world.run_for(MINUTE);
        }
        assert_eq!(world.held(), [2, 2, 2], "three roles are led by nobody");
        let last = world.join(None);
        world.run_for(MINUTE);
        assert_eq!((world.held(), world.hand_overs), (vec![2, 2, 2, 3], 0), "those are taken, and no others moved");
        world.join(Some(1));
        world.run_for(MINUTE);
        assert_eq!((world.held(), world.hand_overs), (vec![2, 2, 2, 2, 1], 1));
        world.leave(last);
        world.run_for(MINUTE);
        assert_eq!(world.held(), [2, 2, 2, 1]);
    }
}

/// What is handed to somebody who does not take it goes to another, and is not handed over again and again.
#[test]
fn whoever_takes_nothing_is_soon_given_nothing() {
    let mut world = World::new(7, 12, FAIR_WEATHER);
    world.join(None);
    world.join(None);
    world.run_for(MINUTE);
    let broken = world.join(None);
    world.processes[broken].as_mut().unwrap().is_broken = true;
    let before = world.hand_overs;
    world.run_for(MINUTE * 30);
    let tries = world.hand_overs - before;
    assert!((1..=10).contains(&tries), "{tries} in half an hour");
    assert_eq!(world.held().iter().sum::<usize>(), 12);
    world.processes[broken].as_mut().unwrap().is_broken = false;
    world.run_for(MINUTE * 65);
    assert_eq!(world.held(), [4, 4, 4], "it is tried again in the end");
}

#[test]
fn a_thousand_roles_on_three_candidates() {
    const ROLES: usize = 1_000;
    let mut world = World::new(1, ROLES, FAIR_WEATHER);
    world.join(None);
    world.run_for(MINUTE);
    for next in [
        Change::Joins,
        Change::Joins,
        Change::Dies { with_machine: true },
        Change::Joins,
        Change::Dies { with_machine: false },
        Change::Joins,
        Change::Leaves,
        Change::Joins,
        Change::Restarts,
        Change::Restarts,
        Change::Restarts,
    ] {
        let victim = there(&world)[0];
        change(&mut world, ROLES, next, victim);
    }
}
