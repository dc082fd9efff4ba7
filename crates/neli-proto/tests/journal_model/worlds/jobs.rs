//! Worlds about when a job may run, and when its term is released: R4, R6, R7.

use neli_proto::hooks::Hook;

use super::{LONG, NONE, SHORT, both_begin, millis, often_looked_after};
use crate::setup::{A, B, C, Faults, Setup};
use crate::step::Step;

/// R6: a leader that has read the end of its term writes no more records about it.
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

/// R6: a daemon that the job left behind is part of the job.
pub(crate) fn a_daemon_that_is_left() -> Setup {
    Setup {
        jobs_have_children: true,
        slow_pipe: true,
        before: both_begin,
        faults: Faults { exits: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a daemon that is left")
    }
}

/// R6: a daemon is part of the job, even if its parent is no process of the job.
pub(crate) fn a_daemon_that_is_elsewhere() -> Setup {
    Setup { name: "a daemon that is elsewhere", children_are_elsewhere: true, ..a_daemon_that_is_left() }
}

/// R6: a health command or a hook belongs to the tree.
pub(crate) fn a_command_beside_the_job() -> Setup {
    Setup {
        jobs_have_commands: true,
        slow_pipe: true,
        before: both_begin,
        faults: Faults { exits: 1, guard_deaths: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::KillGuard(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a command beside the job")
    }
}

/// R6: whichever process dies, no term is released before all processes that the job started have ended.
pub(crate) fn deaths() -> Setup {
    Setup {
        jobs_have_children: true,
        before: both_begin,
        faults: Faults { crashes: 1, deaths: 1, guard_deaths: 1, losses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::Die(B) | Step::KillGuard(B)),
        limit: millis(330),
        ..Setup::named("deaths")
    }
}

/// R6: a dead supervisor's orders are read before the guard releases for it, because the supervisor may have released already.
pub(crate) fn orders_of_the_dead() -> Setup {
    Setup {
        slow_pipe: true,
        before: both_begin,
        faults: Faults { crashes: 1, guard_pauses: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::PauseGuard(B) | Step::Stop(B)),
        limit: millis(110),
        ..Setup::named("orders of the dead")
    }
}

/// R6: no term is released before the guard has reported that no process runs.
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

/// R6: between two runs no process is left, and after a stop there is no next run.
pub(crate) fn a_stop_between_two_runs() -> Setup {
    Setup {
        candidates: vec![SHORT.restarting(20), SHORT],
        before: both_begin,
        faults: Faults { exits: 1, resigns: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Resign(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a stop between two runs")
    }
}

/// R6: if the guard reads a stop late, its answer is about the previous run, while the next run may be alive.
pub(crate) fn an_answer_about_the_run_before() -> Setup {
    Setup {
        slow_pipe: true,
        before: |world| {
            world.begin(A);
            world.suffer(Step::MainEnds(A));
            world.suffer(Step::Suspend(A));
        },
        faults: Faults { begins: 1, guard_pauses: 1, ..NONE },
        limit: millis(60),
        ..Setup::named("an answer about the run before")
    }
}

/// R6: a candidate that is stopped before its job started has released the term, and starts no job after that.
pub(crate) fn a_stop_before_the_first_run() -> Setup {
    Setup {
        candidates: vec![SHORT.settling(20), SHORT.after(50)],
        before: both_begin,
        faults: Faults { crashes: 1, pauses: 1, resigns: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::Pause(B) | Step::Resign(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a stop before the first run")
    }
}

/// R2: the candidate that a leader names when it resigns is stopped, before or after it claims.
pub(crate) fn a_resign_for_one_that_is_stopped() -> Setup {
    Setup {
        successor: Some("b2"),
        before: |world| {
            both_begin(world);
            world.suffer(Step::Resign(A));
        },
        faults: Faults { pauses: 1, ..NONE },
        may: |_, step| step != Step::Pause(A),
        limit: millis(620),
        ..Setup::named("a resign for one that is stopped")
    }
}

/// R2: a leader that resigns names itself, so that the others wait for nobody. Whether it dies or not, none claims too early.
pub(crate) fn a_resign_for_the_leader_itself() -> Setup {
    Setup {
        successor: Some("a1"),
        before: both_begin,
        faults: Faults { crashes: 1, resigns: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::Resign(B)),
        limit: millis(700),
        ..Setup::named("a resign for the leader itself")
    }
}

/// R4: a guard that starts late does not start a job whose deadline has passed by then. Otherwise it uses the deadline of that time.
pub(crate) fn a_guard_that_is_started_late() -> Setup {
    Setup {
        candidates: vec![SHORT.settling(20), SHORT.after(50)],
        guards_start_late: true,
        before: both_begin,
        faults: Faults { losses: 1, pauses: 1, ..NONE },
        may: |_, step| step != Step::Pause(B),
        limit: millis(420),
        ..Setup::named("a guard that is started late")
    }
}

/// R6: a term that ends before its guard is started is released, and its job is never started.
pub(crate) fn an_end_before_the_guard_is_started() -> Setup {
    Setup {
        candidates: vec![SHORT.settling(20), SHORT],
        guards_start_late: true,
        slow_pipe: true,
        before: both_begin,
        faults: Faults { crashes: 1, resigns: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::Resign(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("an end before the guard is started")
    }
}

/// R4: between two runs the lead is kept, but not longer than the lease; the guard decides whether the next run starts.
pub(crate) fn a_restart_that_is_held_up() -> Setup {
    Setup {
        before: both_begin,
        candidates: vec![SHORT.restarting(20), SHORT.after(50)],
        faults: Faults { exits: 1, pauses: 1, ..NONE },
        limit: millis(420),
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Pause(B)),
        ..Setup::named("a restart that is held up")
    }
}

/// R7: a suspended candidate has released its term before the suspension, and leads again in a new term.
pub(crate) fn a_suspension() -> Setup {
    Setup {
        jobs_have_children: true,
        before: both_begin,
        faults: Faults { suspensions: 1, ..NONE },
        limit: millis(330),
        may: |_, step| step != Step::Suspend(B),
        ..Setup::named("a suspension")
    }
}

/// Assumption 3: guard or supervisor may be stopped, die or hang, and the other one takes over its task.
pub(crate) fn sleepers() -> Setup {
    Setup {
        jobs_have_children: true,
        before: both_begin,
        faults: Faults { guard_pauses: 1, pauses: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Pause(B) | Step::PauseGuard(B)),
        limit: millis(420),
        ..Setup::named("sleepers")
    }
}

/// R4: the process that checks the lease must be the one that starts the job.
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

/// R6: the candidate's own clock shows that its lease has ended, but not that its job has.
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

/// R6: the guard's release contains the supervisor's state at the time when the term was current.
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

/// L4, R6: a job has outlived its lease, and its leader reports that after another candidate's claim. The release must not show a reader that
/// begins behind the claim that the leader's term is current.
pub(crate) fn a_late_end_of_a_superseded_leader() -> Setup {
    Setup {
        candidates: vec![SHORT, LONG],
        span: 1,
        jobs_have_children: true,
        guard_late: millis(31),
        before: |world| {
            both_begin(world);
            world.suffer(Step::Pause(A));
            world.pass(312);
        },
        limit: millis(100),
        ..Setup::named("a late end of a superseded leader")
    }
}

/// A leader whose health command fails stands down, and the other candidate leads while hooks run.
pub(crate) fn an_unhealthy_job() -> Setup {
    Setup {
        health: Some(often_looked_after()),
        hooks: &[Hook::Standby],
        before: both_begin,
        faults: Faults { failed_health_checks: 1, ..NONE },
        may: |_, step| !matches!(step, Step::HealthEnds(B) | Step::HealthFails(B)),
        limit: millis(160),
        ..Setup::named("an unhealthy job")
    }
}
