//! The spread of roles in simulated time: processes join, leave, restart and die, read their journals with individual delays, and lose
//! hellos. Each process leads a fair share within a minute of every change, and no more roles move than necessary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bars;
mod changes;
mod deaths;
mod group;
mod left_roles;
mod limits;
mod process;
mod rules;
mod turns;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use neli_proto::precedence::HELLO_HOLDS;
use neli_proto::timings::Elector;
use process::Own;
use world::{Delays, GROUP, GROUP_WITHOUT_PATIENCE, LOG, SHORT_DELAYS, World};

const MINUTE: Duration = Duration::from_secs(60);

/// A machine's death is noticed when its lease has ended.
const SILENCE: Duration = Duration::from_secs(21);

/// Whether these numbers of roles are fair.
fn is_fair(held: &[usize], roles: usize) -> bool {
    let (least, most) = (roles / held.len(), roles.div_ceil(held.len()));
    held.iter().sum::<usize>() == roles && held.iter().all(|held| (least..=most).contains(held))
}

/// The smallest number of moves after which the shares are fair.
fn least_moves(held: &[usize], roles: usize) -> usize {
    let (each, rest) = (roles / held.len(), roles % held.len());
    let mut held = held.to_vec();
    held.sort_unstable_by(|one, other| other.cmp(one));
    held.iter().enumerate().map(|(place, held)| held.saturating_sub(each + usize::from(place < rest))).sum()
}

/// The number of processes with each number of roles, for failure messages.
fn histogram(held: &[usize]) -> BTreeMap<usize, usize> {
    held.iter().fold(BTreeMap::new(), |mut counts, held| {
        *counts.entry(*held).or_default() += 1;
        counts
    })
}

/// A change of the processes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Dies {
        with_machine: bool,
    },
    Joins,
    Leaves,
    /// The leader of a role is asked to resign.
    Resigns,
    Restarts,
}

/// Makes one change, and checks the state a minute later.
fn change(world: &mut World, roles: usize, change: Change, victim: usize) {
    let (hand_overs, wins) = (world.hand_overs, world.wins);
    let before: Vec<_> = world.leaders().to_vec();
    let member = world.processes[victim].as_ref().unwrap().member.clone();
    let mut orphans = before.iter().filter(|leader| leader.as_ref() == Some(&member)).count();
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
            orphans = 0;
        }
        Change::Leaves => world.leave(victim),
        Change::Resigns => {
            if let Some(role) = before.iter().position(|leader| leader.as_ref() == Some(&member)) {
                world.resign(role);
                (least, orphans) = (1, 1);
            }
        }
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
    assert!(
        moved <= least,
        "{:?}, {change:?}: {moved} roles were handed over, and {least} would do: {:?}",
        world.elector,
        histogram(&held)
    );
    // Each process keeps its roles, except for those that are handed over. Each role gets a new leader once.
    assert!(world.wins - wins <= orphans + moved, "{change:?}: {} claims for {orphans} and {moved}", world.wins - wins);
    let before = (world.hand_overs, world.wins);
    world.run_for(MINUTE * 3);
    assert_eq!((world.hand_overs, world.wins), before, "nothing moves when nothing changes");
    assert_eq!(world.handed_to_the_dead, 0, "{change:?}");
}

fn pick(world: &mut World, count: usize) -> usize {
    let share = world.up_to(Duration::from_secs(count as u64)).as_secs();
    usize::try_from(share).unwrap()
}

fn there(world: &World) -> Vec<usize> {
    (0..world.processes.len()).filter(|&process| world.processes[process].is_some()).collect()
}

/// Twelve random changes among up to five processes.
fn a_life(seed: u64, elector: Elector, delays: Delays) {
    let mut sizes = World::new(seed, elector, 1, delays);
    let roles = 1 + pick(&mut sizes, 20);
    let mut world = World::new(seed, elector, roles, delays);
    world.join(None);
    world.run_for(MINUTE);
    assert_eq!(world.held(), [roles]);
    for _ in 0..12 {
        let there = there(&world);
        let victim = there[pick(&mut world, there.len())];
        let next = match pick(&mut world, 6) {
            0 if there.len() > 1 => Change::Dies { with_machine: true },
            1 if there.len() > 1 => Change::Dies { with_machine: false },
            2 if there.len() > 1 => Change::Leaves,
            3 if there.len() > 1 => Change::Restarts,
            4 => Change::Resigns,
            _ if there.len() < 5 => Change::Joins,
            _ => Change::Restarts,
        };
        change(&mut world, roles, next, victim);
    }
}

#[test]
fn shares_are_fair_within_a_minute_of_each_change() {
    for seed in 0..200 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            a_life(seed, elector, SHORT_DELAYS);
        }
    }
}

#[test]
fn late_and_lost_hellos_cost_no_more_than_their_interval() {
    let delays = Delays {
        latency: Duration::from_millis(50),
        stop: Duration::from_millis(500),
        hellos_lost: 30,
        hello_latency: Duration::from_secs(1),
    };
    for seed in 0..200 {
        a_life(seed, LOG, delays);
        a_life(seed, GROUP, delays);
    }
}

/// Changes come faster than the shares can be balanced. A minute after the last one the shares are fair.
fn a_storm(seed: u64, elector: Elector, with_deaths: bool) {
    let mut world = World::new(seed, elector, 6, SHORT_DELAYS);
    for _ in 0..4 {
        world.join(None);
    }
    for _ in 0..20 {
        let pause = world.up_to(Duration::from_secs(5));
        world.run_for(pause);
        let there = there(&world);
        let victim = there[pick(&mut world, there.len())];
        match pick(&mut world, 8) {
            0 | 1 if there.len() > 1 && with_deaths => {
                let with_machine = pick(&mut world, 2) == 0;
                world.die(victim, with_machine);
            }
            2 if there.len() > 1 => world.leave(victim),
            3..5 if there.len() < 5 => drop(world.join(None)),
            _ => {
                let role = pick(&mut world, 6);
                world.resign(role);
            }
        }
    }
    // The death of a process that led no role is noticed only when its last hello has expired.
    world.run_for(MINUTE + if with_deaths { HELLO_HOLDS } else { Duration::ZERO });
    let held = world.held();
    assert!(is_fair(&held, 6), "seed {seed}, {elector:?}, {with_deaths}: {held:?}");
}

#[test]
fn after_a_storm_shares_are_fair_within_a_minute() {
    for seed in 0..100 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            a_storm(seed, elector, false);
            a_storm(seed, elector, true);
        }
    }
}

/// Jobs end one after the other with `--restart no`: their processes leave these roles, and stand for the others.
fn a_life_of_jobs_that_end(seed: u64, elector: Elector) {
    let mut sizes = World::new(seed, elector, 1, SHORT_DELAYS);
    let roles = 1 + pick(&mut sizes, 10);
    let mut world = World::new(seed, elector, roles, SHORT_DELAYS);
    for _ in 0..3 {
        world.join(None);
    }
    for _ in 0..12 {
        world.run_for(MINUTE * 2);
        let stands_for = |process: usize, role: usize| {
            let state = world.processes[process].as_ref().map(|it| &it.role_states[role]);
            state.is_some_and(|state| state.own != Own::Done)
        };
        for role in 0..roles {
            let is_led = world.leaders()[role].is_some();
            let is_stood_for = (0..world.processes.len()).any(|process| stands_for(process, role));
            assert_eq!(is_led, is_stood_for, "seed {seed}, {elector:?}: role {role}");
        }
        let hand_overs = world.hand_overs;
        world.run_for(MINUTE * 10);
        assert_eq!(world.hand_overs, hand_overs, "seed {seed}, {elector:?}: nothing moves when nothing changes");
        let role = pick(&mut world, roles);
        world.end_job(role);
        if pick(&mut world, 6) == 0 {
            world.join(None);
        }
    }
}

#[test]
fn roles_are_handed_only_to_those_that_stand_for_them_and_come_to_rest() {
    for seed in 0..60 {
        for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
            a_life_of_jobs_that_end(seed, elector);
        }
    }
}

/// The next change does not wait until the roles are spread.
#[test]
fn a_rolling_restart_ends_fair() {
    for (seed, elector) in (0..20).flat_map(|seed| [(seed, LOG), (seed, GROUP)]) {
        let mut world = World::new(seed, elector, 20, SHORT_DELAYS);
        let mut running: Vec<usize> = (0..4).map(|_| world.join(None)).collect();
        world.run_for(MINUTE);
        for process in &mut running {
            world.leave(*process);
            world.run_for(Duration::from_secs(2));
            *process = world.join(None);
        }
        world.run_for(MINUTE);
        assert_eq!(world.held(), [5, 5, 5, 5]);
        // Each leader's roles go to others, and each new process gets a share of the roles that all hold at that time.
        assert!(world.hand_overs <= 4 * 5 + 15, "{}", world.hand_overs);
    }
}

/// A rolling restart with a longer list of roles. A process does not know who leads the roles that only the others have.
#[test]
fn while_roles_are_added_nothing_moves_without_end() {
    for (seed, elector) in (0..60).flat_map(|seed| [(seed, LOG), (seed, GROUP)]) {
        let roles = if seed % 2 == 0 { 6 } else { 11 };
        let mut world = World::new(seed, elector, roles, SHORT_DELAYS);
        let mut running: Vec<usize> = (0..3).map(|_| world.join_with_list(4)).collect();
        world.run_for(MINUTE);
        for process in &mut running {
            world.leave(*process);
            world.run_for(Duration::from_secs(2));
            *process = world.join(None);
            world.run_for(MINUTE);
            assert!(world.leaders().iter().all(Option::is_some), "seed {seed}");
            let hand_overs = world.hand_overs;
            world.run_for(MINUTE * 15);
            assert_eq!(world.hand_overs, hand_overs, "seed {seed}: {:?}", world.held());
        }
        assert!(is_fair(&world.held(), roles), "seed {seed}: {:?}", world.held());
    }
}

#[test]
fn no_candidate_exceeds_its_limit() {
    for (seed, elector) in (0..20).flat_map(|seed| [(seed, LOG), (seed, GROUP)]) {
        let mut world = World::new(seed, elector, 9, SHORT_DELAYS);
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

/// A role that is handed to a process which does not take it goes to another, and is not handed over repeatedly. The group does not notice that
/// the process takes nothing.
#[test]
fn a_candidate_that_takes_nothing_is_soon_excluded() {
    for elector in [LOG, GROUP, GROUP_WITHOUT_PATIENCE] {
        takes_nothing(elector);
    }
}

fn takes_nothing(elector: Elector) {
    let mut world = World::new(7, elector, 12, SHORT_DELAYS);
    world.join(None);
    world.join(None);
    world.run_for(MINUTE);
    let broken = world.join(None);
    world.processes[broken].as_mut().unwrap().is_broken = true;
    let before = world.hand_overs;
    world.run_for(MINUTE * 30);
    let tries = world.hand_overs - before;
    assert!((1..=14).contains(&tries), "{tries} in half an hour");
    assert_eq!(world.held().iter().sum::<usize>(), 12);
    world.processes[broken].as_mut().unwrap().is_broken = false;
    world.run_for(MINUTE * 65);
    assert_eq!(world.held(), [4, 4, 4], "it is tried again in the end");
}

#[test]
fn a_thousand_roles_on_three_candidates() {
    const ROLES: usize = 1_000;
    let mut world = World::new(1, LOG, ROLES, SHORT_DELAYS);
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
