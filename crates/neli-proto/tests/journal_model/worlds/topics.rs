//! Topics that are deleted, created again or cut.

use super::{LONG, NONE, SHORT, millis};
use crate::setup::{A, B, C, Faults, Setup};
use crate::step::Step;

/// `--embedded`: the empty log of a new broker is a vacancy, since the broker serves only when neither a candidate of the one before it is
/// left nor a guard.
pub(crate) fn a_broker_that_dies() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        before: |world| world.begin(A),
        faults: Faults { begins: 1, broker_ends: 1, crashes: 1, guard_deaths: 1, lags: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Lag(B) | Step::Crash(B) | Step::KillGuard(B)),
        limit: millis(500),
        ..Setup::named("a broker that dies")
    }
}

/// L3: the old topic's leader, which has not noticed the new topic yet, beats in a term with the number of the new leader's.
pub(crate) fn a_topic_that_is_remade() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG.after(20)],
        topic_ids: true,
        remade_for: millis(150),
        before: |world| {
            world.begin(A);
            world.pass(50);
            world.suffer(Step::RemakeUnnoticed);
            world.begin(B);
            world.begin(C);
        },
        faults: Faults { lags: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Lag(A | C) | Step::Stop(B | C)),
        limit: millis(250),
        ..Setup::named("a topic that is remade")
    }
}

/// R5: a former leader whose lease ended meanwhile begins again at R1, in a topic whose offsets are below the term that it held.
pub(crate) fn a_topic_that_is_remade_after_a_fence() -> Setup {
    Setup {
        others: 9,
        before: |world| {
            world.begin(A);
            world.pass(50);
            world.suffer(Step::Pause(A));
            world.pass(310);
            world.suffer(Step::RemakeUnnoticed);
            world.suffer(Step::Resume(A));
            world.begin(B);
        },
        faults: Faults { stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Stop(A)),
        limit: millis(700),
        ..Setup::named("a topic that is remade after a fence")
    }
}

/// R3: while no broker confirms to a leader that its topic is the one in which it claimed, its lease is not extended.
pub(crate) fn a_remade_topic_whose_id_no_broker_tells() -> Setup {
    Setup {
        topic_ids: true,
        // The last confirmation may have come just before the new topic, and the last beat a lease later.
        remade_for: millis(600),
        before: |world| {
            world.begin(A);
            world.pass(50);
            world.suffer(Step::RemakeUnnoticed);
            world.begin(B);
        },
        faults: Faults { losses: 1, mutes: 1, ..NONE },
        may: |_, step| step != Step::Mute(B),
        limit: millis(750),
        ..Setup::named("a remade topic that nobody names")
    }
}

/// R2: a candidate that missed a remake judges the new leader's beats as void, and concludes that there is silence.
pub(crate) fn a_standby_that_missed_a_remake() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        topic_ids: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.pass(50);
            world.suffer(Step::Die(A));
            world.suffer(Step::RemakeUnnoticed);
            world.begin(C);
        },
        faults: Faults { lags: 1, mutes: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Lag(B) | Step::Mute(C)),
        limit: millis(500),
        ..Setup::named("a standby that missed a remake")
    }
}

/// Assumption 4: for two minutes no record is deleted.
pub(crate) fn a_young_record_deleted() -> Setup {
    Setup {
        candidates: vec![LONG, SHORT.after(50)],
        before: |world| world.begin(B),
        faults: Faults { begins: 1, compactions: 1, lags: 1, questions: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Ask(A) | Step::Lag(A)),
        limit: millis(120),
        ..Setup::named("a young record deleted")
    }
}
