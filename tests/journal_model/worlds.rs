//! Small worlds, each with what its wrong rules need to be caught, and no more. Each is searched with every one of them,
//! which must give two jobs at once, and with the right rules, which must not.

use std::time::Duration;

use crate::flaw::Flaw;
use crate::flaws::{Broken, WorldFlaw};
use crate::setup::{A, B, C, CandidateSetup, Faults, Setup};
use crate::world::Step;

const NONE: Faults = Faults::none();

/// A world, and the wrong rules that it catches.
pub(crate) struct Case {
    pub(crate) setup: fn() -> Setup,
    pub(crate) caught: &'static [Broken],
}

pub(crate) const CASES: &[Case] = &[
    Case { setup: a_start_beside_a_leader, caught: &[logic(Flaw::SilenceFromBeforeListening)] },
    Case {
        setup: two_starts_at_once,
        caught: &[logic(Flaw::EveryClaimEffective), logic(Flaw::AcknowledgedClaimTaken)],
    },
    Case { setup: a_leader_with_a_longer_lease, caught: &[logic(Flaw::OwnLeaseOfSilence)] },
    Case { setup: a_beat_that_is_lost, caught: &[logic(Flaw::LeaseFromReceipt), logic(Flaw::EchoByKind)] },
    Case { setup: a_claim_that_comes_back_late, caught: &[logic(Flaw::LateClaimTaken)] },
    Case { setup: a_reader_that_lags, caught: &[logic(Flaw::ClaimAheadOfReading), logic(Flaw::BeatsDoNotVoid)] },
    Case {
        setup: a_head_cut_by_size,
        caught: &[logic(Flaw::EmptinessUnderSizeRetention), logic(Flaw::UndecidedHurries)],
    },
    Case { setup: a_late_beat_in_an_undecided_view, caught: &[logic(Flaw::UndecidedForgetsLeases)] },
    Case { setup: a_start_in_the_middle, caught: &[logic(Flaw::StartDecided)] },
    Case { setup: a_late_beat_at_the_end, caught: &[logic(Flaw::SeenIgnored)] },
    Case { setup: a_claim_that_cannot_be_judged, caught: &[logic(Flaw::UnjudgedIsVoid)] },
    Case {
        setup: a_deleted_claim,
        caught: &[logic(Flaw::GapIgnored), logic(Flaw::AnswersHoldForEver), logic(Flaw::AnswersDatedByArrival)],
    },
    Case { setup: a_deleted_claim_and_a_late_beat, caught: &[logic(Flaw::WindowKept)] },
    Case { setup: a_leader_that_was_superseded, caught: &[logic(Flaw::BeatOfAnEndedTerm)] },
    Case {
        setup: a_job_with_a_daemon,
        caught: &[
            logic(Flaw::MainEndTakenForAll),
            world(WorldFlaw::GuardReleasesFirst),
            world(WorldFlaw::ReleaseAtGuardsEnd),
        ],
    },
    Case { setup: a_stop_behind_the_spawn, caught: &[logic(Flaw::StopBehindSpawnTakenForDone)] },
    Case { setup: sleepers, caught: &[world(WorldFlaw::BothAsleep), world(WorldFlaw::GuardUnwatched)] },
    Case { setup: a_start_that_is_held_up, caught: &[world(WorldFlaw::SupervisorSpawns)] },
    Case { setup: a_guard_that_is_late, caught: &[world(WorldFlaw::FenceTakenForDone)] },
    Case { setup: a_release_for_a_superseded_leader, caught: &[world(WorldFlaw::GuardSeesTooMuch)] },
    Case { setup: a_broker_that_dies, caught: &[world(WorldFlaw::NewLogTrusted)] },
    Case { setup: a_young_record_deleted, caught: &[world(WorldFlaw::YoungRecordsDeleted)] },
];

const fn logic(flaw: Flaw) -> Broken {
    Broken::Logic(flaw)
}

const fn world(flaw: WorldFlaw) -> Broken {
    Broken::World(flaw)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: CandidateSetup = CandidateSetup::lease(60_000);
const SHORT: CandidateSetup = CandidateSetup::lease(300);

/// R2: what is read at a start was received when listening began.
fn a_start_beside_a_leader() -> Setup {
    Setup {
        before: |world| {
            world.begin(A);
            world.pass(150);
        },
        faults: Faults { begins: 1, pauses: 1, ..NONE },
        may: |_, step| step != Step::Pause(B),
        limit: millis(480),
        ..Setup::named("a start beside a leader")
    }
}

/// L1: of two claims that know nothing of each other the first wins.
fn two_starts_at_once() -> Setup {
    Setup {
        faults: Faults { begins: 2, doubles: 1, delays: 1, ..NONE },
        limit: millis(90),
        ..Setup::named("two starts at once")
    }
}

/// R2: the holder's lease is waited for, not one's own.
fn a_leader_with_a_longer_lease() -> Setup {
    Setup {
        candidates: vec![CandidateSetup::lease(1_200), SHORT],
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { pauses: 1, ..NONE },
        limit: millis(1_700),
        ..Setup::named("a leader with a longer lease")
    }
}

/// R3: the lease runs from the sending of the very record that came back.
fn a_beat_that_is_lost() -> Setup {
    Setup {
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.pass(90);
        },
        faults: Faults { lags: 1, losses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Lag(B)),
        limit: millis(500),
        ..Setup::named("a beat that is lost")
    }
}

/// R3, R5: a claim that comes back a lease after its sending is not taken up.
fn a_claim_that_comes_back_late() -> Setup {
    Setup {
        before: |world| world.begin(B),
        candidates: vec![SHORT, SHORT.after(50)],
        faults: Faults { begins: 1, pauses: 1, ..NONE },
        may: |_, step| step != Step::Pause(B),
        limit: millis(500),
        ..Setup::named("a claim that comes back late")
    }
}

/// R2: a claim says what its writer has judged; L1: and whatever slipped in voids it.
fn a_reader_that_lags() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT.after(50)],
        before: |world| {
            world.begin(B);
            world.begin(A);
        },
        faults: Faults { lags: 1, questions: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Lag(A) | Step::Ask(A)),
        limit: millis(500),
        ..Setup::named("a reader that lags")
    }
}

/// R0, L4: where a leader's records may be cut, an empty log is no vacancy.
fn a_head_cut_by_size() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        size_retention: true,
        before: |world| world.begin(A),
        faults: Faults { begins: 1, cuts: 1, others: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B)),
        limit: Duration::from_secs(65),
        ..Setup::named("a head cut by size")
    }
}

/// R2: in an undecided view the longest lease that was heard is waited for, too.
fn a_late_beat_in_an_undecided_view() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        size_retention: true,
        before: |world| {
            world.begin(A);
            // Until a's next beat, a reads nothing: what it says then reaches back behind what b knows.
            world.pass(19_000);
            world.suffer(Step::Other);
            world.suffer(Step::Lag(A));
            world.suffer(Step::Cut);
            world.begin(B);
        },
        faults: Faults { delays: 1, losses: 2, ..NONE },
        limit: Duration::from_secs(63),
        ..Setup::named("a late beat in an undecided view")
    }
}

/// L4: a reading that begins in the middle knows nothing yet.
fn a_start_in_the_middle() -> Setup {
    Setup {
        span: 1,
        before: |world| {
            world.begin(A);
            world.pass(150);
        },
        faults: Faults { begins: 1, others: 1, nonsense: 1, slow_answers: 1, ..NONE },
        limit: millis(400),
        ..Setup::named("a start in the middle")
    }
}

/// L4: a beat says that its term was current when it was written, not when it arrived.
fn a_late_beat_at_the_end() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.pass(99);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(A));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Pause(A));
            world.pass(500);
        },
        faults: Faults { begins: 1, others: 1, slow_answers: 1, ..NONE },
        limit: millis(1_000),
        ..Setup::named("a late beat at the end")
    }
}

/// L4: a claim that reaches back behind the window may be effective all the same.
fn a_claim_that_cannot_be_judged() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.pass(99);
            world.suffer(Step::Tick);
        },
        faults: Faults { begins: 1, delays: 2, lags: 1, others: 1, pauses: 1, slow_answers: 1, ..NONE },
        // c does not read what b's reading begins behind; a reads it, beats, and is stopped.
        may: |world, step| match step {
            Step::Pause(who) => who == A,
            Step::Lag(who) => who == C,
            Step::Begin(_) | Step::Capture(_) => world.leads(C),
            Step::Other => !world.leads(C),
            _ => true,
        },
        limit: millis(800),
        ..Setup::named("a claim that cannot be judged")
    }
}

/// L4: what is missing and may have been deleted takes the decision with it. b has a question answered early, and reads
/// late; by then c leads, and its claim is deleted.
fn a_deleted_claim() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT.after(50), LONG],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Ask(B));
            world.suffer(Step::Lag(B));
            world.begin(C);
            world.suffer(Step::Die(A));
            world.pass(124_000);
        },
        faults: Faults { compactions: 1, questions: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Ask(C)),
        limit: millis(1_000),
        ..Setup::named("a deleted claim")
    }
}

/// L4: behind a missing offset only what was written with knowledge of it decides.
fn a_deleted_claim_and_a_late_beat() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Lag(B));
            world.begin(C);
            world.pass(99);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(A));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Die(A));
            world.pass(124_000);
        },
        faults: Faults { compactions: 1, ..NONE },
        limit: millis(1_000),
        ..Setup::named("a deleted claim and a late beat")
    }
}

/// R6: whoever has read that its term is over writes nothing more about it.
fn a_leader_that_was_superseded() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.suffer(Step::Pause(A));
            world.pass(400);
        },
        faults: Faults { begins: 1, slow_answers: 1, ..NONE },
        limit: millis(800),
        ..Setup::named("a leader that was superseded")
    }
}

/// R6: a daemon that the job left is running work, whoever dies.
fn a_job_with_a_daemon() -> Setup {
    Setup {
        jobs_have_children: true,
        slow_pipe: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { crashes: 1, exits: 1, guard_deaths: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::KillGuard(B)),
        limit: millis(320),
        ..Setup::named("a job with a daemon")
    }
}

/// R6: nothing is released before the guard has said that nothing runs.
fn a_stop_behind_the_spawn() -> Setup {
    Setup {
        slow_pipe: true,
        before: |world| world.begin(B),
        candidates: vec![SHORT, SHORT.after(50)],
        faults: Faults { begins: 1, guard_pauses: 1, stops: 1, ..NONE },
        limit: millis(360),
        may: |_, step| !matches!(step, Step::PauseGuard(B) | Step::Stop(B)),
        ..Setup::named("a stop behind the spawn")
    }
}

/// Assumption 3: guard and supervisor may each sleep, die or hang, and the other makes good for it.
fn sleepers() -> Setup {
    Setup {
        jobs_have_children: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { crashes: 1, guard_deaths: 1, guard_pauses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::KillGuard(B) | Step::Pause(B) | Step::PauseGuard(B)),
        limit: millis(450),
        ..Setup::named("sleepers")
    }
}

/// R4: who checks the lease and who starts the job is one and the same.
fn a_start_that_is_held_up() -> Setup {
    Setup {
        before: |world| world.begin(B),
        candidates: vec![SHORT, SHORT.after(50)],
        faults: Faults { begins: 1, guard_pauses: 1, pauses: 1, ..NONE },
        limit: millis(450),
        may: |_, step| !matches!(step, Step::PauseGuard(B) | Step::Pause(B)),
        ..Setup::named("a start that is held up")
    }
}

/// R6: the candidate's own clock says when its lease is over, and not that its job is.
fn a_guard_that_is_late() -> Setup {
    Setup {
        slow_pipe: true,
        guard_late: millis(19),
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.pass(90);
        },
        faults: Faults { losses: 3, ..NONE },
        limit: millis(450),
        ..Setup::named("a guard that is late")
    }
}

/// R6: what the guard would release with is what the supervisor knew when the term was current.
fn a_release_for_a_superseded_leader() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.suffer(Step::Pause(A));
            world.pass(400);
        },
        faults: Faults { begins: 1, crashes: 1, slow_answers: 1, ..NONE },
        limit: millis(500),
        ..Setup::named("a release for a superseded leader")
    }
}

/// Vacant: with `--embedded` an empty log is believed only when the broker before it ended in order.
fn a_broker_that_dies() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        before: |world| world.begin(A),
        faults: Faults { begins: 1, lags: 1, pauses: 1, remakes: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Lag(B)),
        limit: Duration::from_secs(62),
        ..Setup::named("a broker that dies")
    }
}

/// Assumption 4: for two minutes nobody deletes anything.
fn a_young_record_deleted() -> Setup {
    Setup {
        candidates: vec![LONG, SHORT.after(50)],
        before: |world| world.begin(B),
        faults: Faults { begins: 1, compactions: 1, lags: 1, questions: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Ask(A) | Step::Lag(A)),
        limit: millis(400),
        ..Setup::named("a young record deleted")
    }
}
