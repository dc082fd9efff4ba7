//! Long random walks through a world with all faults, in addition to the bounded search.

use std::rc::Rc;

use crate::setup::Setup;
use crate::step::Step;
use crate::world::World;

/// A splitmix64 generator: the same seed gives the same walk.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.throw() % sides.max(1) as u64).unwrap_or(0)
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}

/// Takes this many random steps, most of which are not faults. A walk that ends in a breach is printed.
///
/// # Panics
///
/// If there is a breach.
pub(crate) fn walk(setup: Setup, seed: u64, length: usize) {
    let setup = Rc::new(setup);
    let taken = go(&mut World::new(&setup, false), seed, length);
    if taken < length {
        let mut world = World::new(&setup, true);
        go(&mut world, seed, length);
        let trace = world.trace.take().unwrap_or_default();
        let last = trace.len().saturating_sub(300);
        panic!(
            "seed {seed}: {:?} after {taken} steps; the last of them:\n{}",
            world.breach(),
            trace[last..].join("\n")
        );
    }
}

fn go(world: &mut World, seed: u64, length: usize) -> usize {
    let mut dice = Dice(seed);
    let mut steps = Vec::new();
    for taken in 0..length {
        if world.breach().is_some() {
            return taken;
        }
        world.renew();
        world.enabled(&mut steps);
        // If machines died at every opportunity, no other event would happen.
        if !dice.one_in(20) {
            steps.retain(|step| !step.is_an_end());
        }
        let calm: Vec<Step> = steps.iter().copied().filter(|step| step.is_prompt() || *step == Step::Tick).collect();
        let wild = calm.is_empty() || dice.one_in(12);
        let from = if wild { &steps } else { &calm };
        if from.is_empty() {
            return length;
        }
        let step = from[dice.below(from.len())];
        if step == Step::Tick
            && dice.one_in(3)
            && let Some(idle) = world.idle()
        {
            world.wait(idle / 2);
        } else {
            world.take(step);
        }
    }
    length
}
