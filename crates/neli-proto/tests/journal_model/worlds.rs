//! Small worlds, each with only the faults that are needed to notice its wrong rules. Each is searched with every wrong rule, which
//! must lead to two jobs at the same time, and with the right rules, which must not.

use std::time::Duration;

use neli_proto::health::HealthPolicy;
use neli_proto::hooks::Hook;

use crate::setup::{A, B, CandidateSetup, Faults};
use crate::world::World;

pub(crate) use claims::*;
pub(crate) use jobs::*;
pub(crate) use keys::*;
pub(crate) use large::*;
pub(crate) use overlaps::*;
pub(crate) use topics::*;

mod claims;
mod jobs;
mod keys;
mod large;
mod overlaps;
mod topics;

const NONE: Faults = Faults::none();

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: CandidateSetup = CandidateSetup::lease(60_000);
const SHORT: CandidateSetup = CandidateSetup::lease(300);

const ALL_HOOKS: &[Hook] = &[Hook::Exit, Hook::Fence, Hook::Lead, Hook::Standby];

fn often_looked_after() -> HealthPolicy {
    HealthPolicy { interval: millis(70), timeout: millis(40), failures: 1, start: Duration::ZERO }
}

/// Begins the two candidates of most worlds.
fn both_begin(world: &mut World) {
    world.begin(A);
    world.begin(B);
}
