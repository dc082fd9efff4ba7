//! `--once`, `--window` and `--schedule`: two runs of a key or window never succeed, except if a machine dies or loses its lease
//! between the job's end and the acknowledgement of the fact.

use neli_proto::schedule::CatchUp;

use super::{NONE, SHORT, both_begin, millis};
use crate::setup::{A, B, C, Faults, Occasion, Setup};
use crate::step::Step;

/// A run succeeds while another candidate stands by. The other does not run the job again, even if the records are late.
pub(crate) fn a_key_that_is_done() -> Setup {
    Setup {
        once: Some(Occasion::Key),
        before: both_begin,
        faults: Faults { exits: 1, fact_delays: 1, stops: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B) | Step::Stop(B)),
        limit: millis(60),
        ..Setup::named("a key that is done")
    }
}

/// A runner is stopped, and its lease ends, between its job's end and the acknowledgement of the outcome.
pub(crate) fn a_runner_that_is_stopped() -> Setup {
    Setup {
        once: Some(Occasion::Key),
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::MainEnds(A));
        },
        faults: Faults { fact_delays: 1, pauses: 1, ..NONE },
        may: |_, step| step != Step::Pause(B),
        limit: millis(370),
        most_states: 500_000,
        ..Setup::named("a runner that is stopped")
    }
}

/// A runner dies before or after it has recorded its outcome, and another candidate follows.
pub(crate) fn a_runner_that_dies() -> Setup {
    Setup {
        once: Some(Occasion::Key),
        before: both_begin,
        faults: Faults { exits: 1, fact_delays: 1, crashes: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::MainEnds(B)),
        limit: millis(60),
        ..Setup::named("a runner that dies")
    }
}

/// A run has succeeded, and the next leader asks a broker for the facts that leads their topic no longer, and lacks the success.
pub(crate) fn a_broker_without_the_last_fact() -> Setup {
    Setup {
        once: Some(Occasion::Key),
        before: both_begin,
        faults: Faults { exits: 1, crashes: 1, old_facts: 2, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::MainEnds(B) | Step::ReadOldFacts(A)),
        limit: millis(60),
        ..Setup::named("a broker without the last fact")
    }
}

/// The same with a schedule.
pub(crate) fn a_broker_without_the_last_fact_of_a_schedule() -> Setup {
    Setup {
        once: Some(Occasion::Schedule(5, CatchUp::Last)),
        name: "a broker without the last fact of a schedule",
        ..a_broker_without_the_last_fact()
    }
}

/// The clock of one of two candidates is late by a window. When the newer window's run has succeeded, the older one's does not begin.
pub(crate) fn a_window_that_is_over() -> Setup {
    Setup {
        once: Some(Occasion::Windows([5, 4, 4])),
        before: both_begin,
        faults: Faults { exits: 1, fact_delays: 1, ..NONE },
        may: |_, step| !matches!(step, Step::MainEnds(B)),
        limit: millis(60),
        ..Setup::named("a window that is over")
    }
}

/// A schedule's leader has run a window and dies: the next leader does not run that window again.
pub(crate) fn a_schedule_whose_leader_dies() -> Setup {
    Setup {
        once: Some(Occasion::Schedule(5, CatchUp::Last)),
        before: both_begin,
        faults: Faults { exits: 1, fact_delays: 1, crashes: 1, ..NONE },
        may: |_, step| !matches!(step, Step::Crash(B) | Step::MainEnds(B)),
        limit: millis(60),
        ..Setup::named("a schedule whose leader dies")
    }
}

/// The same with `--catch-up none`, while the clock stays in one window: the window is not run at all.
pub(crate) fn a_schedule_that_catches_nothing_up() -> Setup {
    Setup {
        once: Some(Occasion::Schedule(5, CatchUp::None)),
        name: "a schedule that catches nothing up",
        ..a_schedule_whose_leader_dies()
    }
}

/// A run has succeeded, and an operator forgets the key. A candidate that begins after that runs the job, and then none does, although
/// the record of the first run reaches the topic a second time, late.
pub(crate) fn a_key_that_is_forgotten() -> Setup {
    Setup {
        once: Some(Occasion::Key),
        candidates: vec![SHORT; 3],
        before: |world| {
            world.begin(A);
            world.suffer(Step::MainEnds(A));
            world.settle();
            world.send_last_fact_again();
        },
        faults: Faults { begins: 2, exits: 1, forgets: 1, ..NONE },
        may: |world, step| {
            !matches!(step, Step::MainEnds(A | C))
                && (step != Step::Begin(B) || world.forgets_left() == 0)
                && (step != Step::Begin(C) || world.exits_left() == 0)
        },
        limit: millis(30),
        ..Setup::named("a key that is forgotten")
    }
}

/// The same after the journal was created again since the key was forgotten: its terms begin again, below that of the first run.
pub(crate) fn a_key_that_is_forgotten_before_its_journal_is_remade() -> Setup {
    Setup {
        before: |world| {
            world.begin(A);
            world.suffer(Step::MainEnds(A));
            world.settle();
            world.send_last_fact_again();
            world.suffer(Step::Forget);
            world.settle();
            world.suffer(Step::RemakeUnnoticed);
        },
        faults: Faults { begins: 2, exits: 1, ..NONE },
        name: "a key that is forgotten before its journal is remade",
        ..a_key_that_is_forgotten()
    }
}

/// Each run fails. Only one retry is left for both machines together, and it has begun. After a failure a candidate claims again two
/// leases later.
pub(crate) fn retries_of_two_machines() -> Setup {
    Setup {
        once: Some(Occasion::Retries(1)),
        before: |world| {
            world.begin(A);
            world.begin(B);
            world.suffer(Step::MainEnds(A));
            world.pass(100);
        },
        faults: Faults { exits: 1, ..NONE },
        limit: millis(800),
        ..Setup::named("retries of two machines")
    }
}
