//! `--overlap`: at most two jobs run. The later one's claim names the earlier one's term, whose job ends with its lease or before.

use super::{NONE, SHORT, both_begin, millis};
use crate::setup::{A, B, C, CandidateSetup, Faults, Setup};
use crate::step::Step;

const OVERLAPPING: CandidateSetup = SHORT.overlapping(100);

/// A leader is stopped, and another claims while its job runs. Whichever process is stopped or late, two jobs run for no longer than
/// allowed.
pub(crate) fn a_leader_that_yields() -> Setup {
    Setup {
        candidates: vec![OVERLAPPING; 2],
        before: both_begin,
        faults: Faults { pauses: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Stop(B)),
        limit: millis(340),
        ..Setup::named("a leader that yields")
    }
}

/// The leader that was asked to stop dies, or its guard does, while the other's job runs.
pub(crate) fn a_death_beside_another_job() -> Setup {
    Setup {
        candidates: vec![OVERLAPPING; 2],
        jobs_have_children: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Resign(A));
        },
        faults: Faults { crashes: 1, guard_deaths: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::KillGuard(B)),
        limit: millis(250),
        ..Setup::named("a death beside another job")
    }
}

/// Two leaders in a row are asked to stop, and the first one's supervisor is stopped by then: three jobs never run.
pub(crate) fn two_hand_overs_in_a_row() -> Setup {
    Setup {
        candidates: vec![OVERLAPPING; 3],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.begin(C);
            world.suffer(Step::Stop(A));
            world.suffer(Step::Pause(A));
            world.settle();
        },
        faults: Faults { stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Resume(A) | Step::Stop(A | C)),
        limit: millis(330),
        ..Setup::named("two hand-overs in a row")
    }
}

/// The job that overlaps another ends at once. Then there is no leader, and the earlier job may be alive.
pub(crate) fn a_vacancy_beside_an_overlapped_job() -> Setup {
    Setup {
        candidates: vec![OVERLAPPING; 3],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.begin(C);
            world.suffer(Step::Stop(A));
            world.suffer(Step::Pause(A));
            world.settle();
        },
        faults: Faults { exits: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(A | C) | Step::Resume(A)),
        limit: millis(330),
        ..Setup::named("a vacancy beside an overlapped job")
    }
}

/// A candidate that begins while two jobs run, and reads only the last record.
pub(crate) fn a_start_beside_two_jobs() -> Setup {
    Setup {
        candidates: vec![OVERLAPPING; 3],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Stop(A));
            world.suffer(Step::Pause(A));
            world.settle();
        },
        faults: Faults { begins: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Begin(A | B) | Step::Resume(A) | Step::Stop(A | C)),
        limit: millis(330),
        ..Setup::named("a start beside two jobs")
    }
}
