//! Small worlds, each with what its wrong rules need to be caught, and no more. Each is searched with every one of them,
//! which must give two jobs at once, and with the right rules, which must not.

use std::time::Duration;

use neli_proto::health::HealthPolicy;
use neli_proto::hooks::Hook;

use crate::setup::{A, B, C, CandidateSetup, Faults, Setup, Who};
use crate::step::Step;

const NONE: Faults = Faults::none();

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: CandidateSetup = CandidateSetup::lease(60_000);
const SHORT: CandidateSetup = CandidateSetup::lease(300);

/// R2: what is read at a start was received when listening began.
pub(crate) fn a_start_beside_a_leader() -> Setup {
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
pub(crate) fn two_starts_at_once() -> Setup {
    Setup {
        faults: Faults { begins: 2, doubles: 1, delays: 1, ..NONE },
        claims_are_acknowledged: true,
        limit: millis(90),
        ..Setup::named("two starts at once")
    }
}

/// R2: the holder's lease is waited for, not one's own.
pub(crate) fn a_leader_with_a_longer_lease() -> Setup {
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
pub(crate) fn a_beat_that_is_lost() -> Setup {
    Setup {
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.pass(90);
        },
        faults: Faults { lags: 1, losses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Lag(B)),
        limit: millis(340),
        ..Setup::named("a beat that is lost")
    }
}

/// R0: the claim takes effect before the topic is judged, or never is; nothing runs before both, or for longer than the lease.
pub(crate) fn a_topic_that_is_judged_late() -> Setup {
    Setup {
        judged_late: true,
        faults: Faults { begins: 2, stops: 1, ..NONE },
        may: |_, step| step != Step::Stop(B),
        limit: millis(200),
        ..Setup::named("a topic that is judged late")
    }
}

/// R3, R5: a claim that comes back a lease after its sending is not taken up.
pub(crate) fn a_claim_that_comes_back_late() -> Setup {
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
pub(crate) fn a_reader_that_lags() -> Setup {
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
pub(crate) fn a_head_cut_by_size() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        size_retention: true,
        before: |world| {
            world.begin(A);
            world.pass(5_000);
        },
        faults: Faults { begins: 1, cuts: 1, others: 1, pauses: 1, ..NONE },
        may: |world, step| {
            let is_early = matches!(step, Step::Begin(_) | Step::Pause(_)) && world.cuts_left() > 0;
            !is_early && step != Step::Pause(B)
        },
        limit: Duration::from_secs(63),
        ..Setup::named("a head cut by size")
    }
}

/// R2: in an undecided view the longest lease that was heard is waited for, too.
pub(crate) fn a_late_beat_in_an_undecided_view() -> Setup {
    Setup {
        candidates: vec![LONG, LONG, SHORT],
        size_retention: true,
        before: |world| {
            world.suffer(Step::Begin(C));
            world.suffer(Step::Answer(C));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Die(C));
            world.begin(A);
            world.pass(21_000);
            // c's claim came too late; b can't know, and a has not read it when it beats next.
            world.suffer(Step::Cut);
            world.suffer(Step::Lag(A));
            world.suffer(Step::AppendLate(0));
            world.begin(B);
        },
        faults: Faults { losses: 2, ..NONE },
        limit: Duration::from_secs(63),
        ..Setup::named("a late beat in an undecided view")
    }
}

/// L4: a reading that begins in the middle knows nothing yet.
pub(crate) fn a_start_in_the_middle() -> Setup {
    Setup {
        span: 1,
        gaps_are_markers: true,
        before: |world| {
            world.begin(A);
            world.pass(150);
        },
        faults: Faults { begins: 1, markers: 1, others: 1, nonsense: 1, ..NONE },
        limit: millis(200),
        ..Setup::named("a start in the middle")
    }
}

/// L4: a beat says that its term was current when it was written, not when it arrived.
pub(crate) fn a_late_beat_at_the_end() -> Setup {
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
            world.suffer(Step::Die(A));
            world.pass(500);
        },
        faults: Faults { begins: 1, others: 1, slow_answers: 1, ..NONE },
        may: |_, step| step != Step::Begin(A),
        limit: millis(700),
        ..Setup::named("a late beat at the end")
    }
}

/// L4: a claim that reaches back behind the window may be effective all the same.
pub(crate) fn a_claim_that_cannot_be_judged() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 3,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.pass(50);
            // a knows of it when it beats, c does not when it claims.
            world.suffer(Step::Lag(C));
            world.suffer(Step::Other);
            world.pass(49);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(A));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Die(A));
            world.pass(250);
            world.suffer(Step::AppendLate(0));
            world.suffer(Step::ReadLate(C));
            world.suffer(Step::ReadLate(C));
            world.settle();
        },
        faults: Faults { begins: 1, others: 1, slow_answers: 1, ..NONE },
        limit: millis(700),
        ..Setup::named("a claim that cannot be judged")
    }
}

/// L4: what is missing and may have been deleted takes the decision with it. b has a question answered early, and reads
/// late; by then c leads, and its claim is deleted.
pub(crate) fn a_deleted_claim() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT.after(50), LONG],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Ask(B));
            world.suffer(Step::Pause(B));
            world.begin(C);
            world.suffer(Step::Die(A));
            world.pass(124_000);
        },
        faults: Faults { compactions: 1, questions: 1, ..NONE },
        // Of all that is old, c's claim.
        may: |_, step| !matches!(step, Step::Ask(A | C) | Step::Compact(..=1 | 3..)),
        limit: millis(500),
        ..Setup::named("a deleted claim")
    }
}

/// L4: behind a missing offset only what was written with knowledge of it decides.
pub(crate) fn a_deleted_claim_and_a_late_beat() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::Pause(B));
            world.begin(C);
            world.pass(99);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(A));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Die(A));
            world.pass(212);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(C));
            world.suffer(Step::Append(1));
            world.suffer(Step::AppendLate(0));
            world.pass(124_000);
        },
        faults: Faults { compactions: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Compact(..=1 | 3..)),
        limit: millis(700),
        ..Setup::named("a deleted claim and a late beat")
    }
}

/// R6: whoever has read that its term is over writes nothing more about it.
pub(crate) fn a_leader_that_was_superseded() -> Setup {
    Setup {
        slow_pipe: true,
        candidates: vec![SHORT, SHORT, LONG],
        span: 1,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.suffer(Step::Pause(A));
            world.pass(400);
        },
        faults: Faults { begins: 1, slow_answers: 1, ..NONE },
        limit: millis(500),
        ..Setup::named("a leader that was superseded")
    }
}

/// R6: a daemon that the job left is running work.
pub(crate) fn a_daemon_that_is_left() -> Setup {
    Setup {
        jobs_have_children: true,
        slow_pipe: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { exits: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a daemon that is left")
    }
}

/// R6: a health command, or a hook, is a part of the tree.
pub(crate) fn a_command_beside_the_job() -> Setup {
    Setup {
        jobs_have_commands: true,
        slow_pipe: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { exits: 1, guard_deaths: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::KillGuard(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a command beside the job")
    }
}

/// R6: whoever dies, nothing is released before what the job started is gone.
pub(crate) fn deaths() -> Setup {
    Setup {
        jobs_have_children: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { crashes: 1, deaths: 1, guard_deaths: 1, losses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::Die(B) | Step::KillGuard(B)),
        limit: millis(330),
        ..Setup::named("deaths")
    }
}

/// R6: what the dead had ordered is read before anything is released for them: they may have released it themselves.
pub(crate) fn orders_of_the_dead() -> Setup {
    Setup {
        slow_pipe: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { crashes: 1, guard_pauses: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::PauseGuard(B) | Step::Stop(B)),
        limit: millis(110),
        ..Setup::named("orders of the dead")
    }
}

/// R6: nothing is released before the guard has said that nothing runs.
pub(crate) fn a_stop_behind_the_spawn() -> Setup {
    Setup {
        slow_pipe: true,
        before: |world| world.begin(B),
        candidates: vec![SHORT, SHORT.after(50)],
        faults: Faults { begins: 1, guard_pauses: 1, stops: 1, ..NONE },
        limit: millis(80),
        may: |_, step| !matches!(step, Step::PauseGuard(B) | Step::Stop(B)),
        ..Setup::named("a stop behind the spawn")
    }
}

/// R6: between two runs nothing is left, and after a stop there is no next one.
pub(crate) fn a_stop_between_two_runs() -> Setup {
    Setup {
        candidates: vec![SHORT.restarting(20), SHORT],
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { exits: 1, resigns: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Resign(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a stop between two runs")
    }
}

/// R4: the lead is kept between two runs, and no longer than the lease; the guard starts the next one, or does not.
pub(crate) fn a_restart_that_is_held_up() -> Setup {
    Setup {
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        candidates: vec![SHORT.restarting(20), SHORT.after(50)],
        faults: Faults { exits: 1, pauses: 1, ..NONE },
        limit: millis(420),
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Pause(B)),
        ..Setup::named("a restart that is held up")
    }
}

/// R7: whoever is suspended has released before, and leads again under a term of its own.
pub(crate) fn a_suspension() -> Setup {
    Setup {
        jobs_have_children: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { suspensions: 1, ..NONE },
        limit: millis(330),
        may: |_, step| step != Step::Suspend(B),
        ..Setup::named("a suspension")
    }
}

/// Assumption 3: guard and supervisor may each sleep, die or hang, and the other makes good for it.
pub(crate) fn sleepers() -> Setup {
    Setup {
        jobs_have_children: true,
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { guard_pauses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::PauseGuard(B)),
        limit: millis(420),
        ..Setup::named("sleepers")
    }
}

/// R4: who checks the lease and who starts the job is one and the same.
pub(crate) fn a_start_that_is_held_up() -> Setup {
    Setup {
        before: |world| world.begin(B),
        candidates: vec![SHORT, SHORT.after(50)],
        faults: Faults { begins: 1, guard_pauses: 1, pauses: 1, ..NONE },
        limit: millis(380),
        may: |_, step| !matches!(step, Step::PauseGuard(B) | Step::Pause(B)),
        ..Setup::named("a start that is held up")
    }
}

/// R6: the candidate's own clock says when its lease is over, and not that its job is.
pub(crate) fn a_guard_that_is_late() -> Setup {
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
pub(crate) fn a_release_for_a_superseded_leader() -> Setup {
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
pub(crate) fn a_broker_that_dies() -> Setup {
    Setup {
        candidates: vec![LONG, LONG],
        before: |world| world.begin(A),
        faults: Faults { begins: 1, lags: 1, pauses: 1, remakes: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::Lag(B)),
        limit: Duration::from_secs(62),
        ..Setup::named("a broker that dies")
    }
}

/// L3: the old topic's leader, which has not noticed yet, speaks of a term that has the number of the new one's.
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

/// R3: while nobody tells a leader that its topic is still the one in which it claimed, its lease is not extended.
pub(crate) fn a_remade_topic_that_nobody_names() -> Setup {
    Setup {
        topic_ids: true,
        // The last answer may have come just before, and the last beat a lease later.
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

/// R2: who missed a remake takes the new leader's beats for void, and hears silence.
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

/// Assumption 4: for two minutes nobody deletes anything.
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

/// Two candidates from the start, and a little of everything that Kafka and machines do.
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

/// A reader that begins in the middle and reads further back, beside a leader that may go.
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

/// Guard and supervisor, each stopped or dead while the other is not, one after the other.
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

/// A leader whose health command fails: it stands down, and the other leads, while hooks run.
pub(crate) fn an_unhealthy_job() -> Setup {
    Setup {
        health: Some(often_looked_after()),
        hooks: &[Hook::Standby],
        before: |world| {
            world.begin(A);
            world.begin(B);
        },
        faults: Faults { illnesses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::HealthEnds(B) | Step::HealthFails(B)),
        limit: millis(160),
        ..Setup::named("an unhealthy job")
    }
}

const ALL_HOOKS: &[Hook] = &[Hook::Fence, Hook::Lead, Hook::Standby];

fn often_looked_after() -> HealthPolicy {
    HealthPolicy { interval: millis(70), timeout: millis(40), failures: 1, start: Duration::ZERO }
}

/// Everything at once, for the walks: nobody could search it.
pub(crate) fn everything(leases: [u64; 3]) -> Setup {
    let lease = |who: Who| CandidateSetup::lease(leases[who]);
    Setup {
        candidates: vec![lease(0), lease(1).restarting(40), lease(2).restarting(700).exiting()],
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
