//! Larger worlds, and worlds for the random walks, which are too large for a search.

use std::time::Duration;

use neli_proto::restart::RestartPolicy;

use super::{ALL_HOOKS, NONE, SHORT, millis, often_looked_after};
use crate::setup::{A, B, CandidateSetup, Faults, Occasion, Setup, Who};
use crate::step::Step;

/// Two candidates from the start, with a few of each fault of Kafka and machines.
pub(crate) fn two_candidates() -> Setup {
    Setup {
        before: |world| world.begin(A),
        faults: Faults { begins: 1, crashes: 1, delays: 1, pauses: 1, ..NONE },
        limit: millis(340),
        most_states: 6_000_000,
        ..Setup::named("two candidates")
    }
}

/// Three candidates from the start.
pub(crate) fn three_candidates() -> Setup {
    Setup {
        candidates: vec![SHORT; 3],
        faults: Faults { begins: 3, delays: 1, doubles: 1, ..NONE },
        limit: millis(120),
        most_states: 6_000_000,
        ..Setup::named("three candidates")
    }
}

/// A reader that begins in the middle and reads further back, while a leader may end.
pub(crate) fn a_reader_in_the_middle() -> Setup {
    Setup {
        span: 1,
        before: |world| {
            world.begin(A);
            world.pass(250);
        },
        faults: Faults { begins: 1, others: 1, slow_answers: 1, stops: 1, ..NONE },
        may: |_, step| step != Step::Stop(B),
        limit: millis(240),
        most_states: 6_000_000,
        ..Setup::named("a reader in the middle")
    }
}

/// Guard and supervisor are stopped or die one after the other, while the other one runs.
pub(crate) fn guard_and_supervisor() -> Setup {
    Setup {
        jobs_have_children: true,
        guard_late: millis(19),
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.pass(90);
        },
        faults: Faults { guard_deaths: 1, guard_pauses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::KillGuard(B) | Step::Pause(B) | Step::PauseGuard(B)),
        limit: millis(330),
        most_states: 6_000_000,
        ..Setup::named("guard and supervisor")
    }
}

/// All faults, with jobs that may overlap.
pub(crate) fn everything_with_overlap(leases: [u64; 3]) -> Setup {
    let mut setup = everything(leases);
    for candidate in &mut setup.candidates {
        candidate.settle = Duration::ZERO;
        *candidate = candidate.overlapping(120);
    }
    Setup { name: "everything with overlap", ..setup }
}

/// All faults, with a job that succeeds once.
pub(crate) fn everything_with_a_key(leases: [u64; 3]) -> Setup {
    let mut setup = everything(leases);
    for candidate in &mut setup.candidates {
        candidate.restart = RestartPolicy::default();
    }
    Setup { name: "everything with a key", once: Some(Occasion::Key), ..setup }
}

/// All faults, with guards that start late.
pub(crate) fn everything_with_late_guards(leases: [u64; 3]) -> Setup {
    Setup { name: "everything with late guards", guards_start_late: true, ..everything(leases) }
}

/// All faults, for the walks.
pub(crate) fn everything(leases: [u64; 3]) -> Setup {
    let lease = |who: Who| CandidateSetup::lease(leases[who]);
    Setup {
        candidates: vec![lease(0), lease(1).restarting(40), lease(2).settling(30).restarting(700).exiting()],
        successor: Some("b2"),
        judged_late: true,
        topic_ids: true,
        span: 4,
        jobs_have_children: true,
        jobs_have_commands: true,
        health: Some(often_looked_after()),
        hooks: ALL_HOOKS,
        guard_late: millis(19),
        faults: Faults::plenty(),
        reborn: true,
        ..Setup::named("everything")
    }
}
