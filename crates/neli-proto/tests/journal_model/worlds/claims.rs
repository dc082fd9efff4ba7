//! Worlds about claims, and about the effect of claims and beats: L1 to L4, R0, R2, R3.

use std::time::Duration;

use super::{LONG, NONE, SHORT, both_begin, millis};
use crate::setup::{A, B, C, CandidateSetup, Faults, Setup};
use crate::step::Step;

/// R2: records that are read at the start count as received when the reading began.
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

/// L1: of two claims whose writers have not read each other's claim, the first takes effect.
pub(crate) fn two_starts_at_once() -> Setup {
    Setup {
        faults: Faults { begins: 2, doubles: 1, delays: 1, ..NONE },
        claims_are_acknowledged: true,
        limit: millis(90),
        ..Setup::named("two starts at once")
    }
}

/// R2: a candidate waits for the leader's lease, not for its own.
pub(crate) fn a_leader_with_a_longer_lease() -> Setup {
    Setup {
        candidates: vec![CandidateSetup::lease(1_200), SHORT],
        before: both_begin,
        faults: Faults { pauses: 1, ..NONE },
        limit: millis(1_700),
        ..Setup::named("a leader with a longer lease")
    }
}

/// R3: the lease runs from the sending of the record that was read back.
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

/// R0: the topic is judged some time after the log was read, or never. No job runs before the judgement and the effect of the claim, or for
/// longer than the lease.
pub(crate) fn a_topic_that_is_judged_late() -> Setup {
    Setup {
        judged_late: true,
        faults: Faults { begins: 2, stops: 1, ..NONE },
        may: |_, step| step != Step::Stop(B),
        limit: millis(200),
        ..Setup::named("a topic that is judged late")
    }
}

/// R3, R5: a claim that is read back a lease after its sending is not used.
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

/// R2: a claim names the last record that its writer has judged; L1: a record in between voids it.
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

/// R0, L4: if a leader's records may be deleted, an empty log does not prove a vacancy.
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

/// R2: in an undecided view a candidate also waits for the longest lease that was read.
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
            // c's claim came too late. b can't know that, and a has not read it when it sends its next beat.
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

/// L4: after a reading that begins in the middle, the view is undecided.
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

/// L4: before the topic is judged, a transaction's marker counts as missing records. A candidate that begins then reads a late beat of
/// an earlier term, and must not take over from the leader.
pub(crate) fn a_marker_before_the_judgement() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        gaps_are_markers: true,
        judged_late: true,
        before: |world| {
            world.begin(A);
            world.suffer(Step::Judge(A));
            world.begin(C);
            world.suffer(Step::Judge(C));
            world.pass(99);
            world.suffer(Step::Tick);
            world.suffer(Step::Fire(A));
            world.suffer(Step::Delay(0));
            world.suffer(Step::Die(A));
            world.pass(500);
        },
        faults: Faults { begins: 1, markers: 1, ..NONE },
        may: |_, step| step != Step::Begin(A),
        limit: millis(700),
        ..Setup::named("a marker before the judgement")
    }
}

/// L4: a beat shows that its term was current when it was written, not when it arrived.
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

/// L4: a claim that refers to a record before the window may still be effective.
pub(crate) fn a_claim_that_cannot_be_judged() -> Setup {
    Setup {
        candidates: vec![SHORT, SHORT, LONG],
        span: 3,
        before: |world| {
            world.begin(A);
            world.begin(C);
            world.pass(50);
            // a has read it when it beats, but c has not read it when it claims.
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

/// L4: a missing record that may have been deleted makes the view undecided. b gets an early answer and reads late. By then c leads,
/// and its claim is deleted.
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
        // Of all old records only c's claim may be deleted.
        may: |_, step| !matches!(step, Step::Ask(A | C) | Step::Compact(..=1 | 3..)),
        limit: millis(500),
        ..Setup::named("a deleted claim")
    }
}

/// L4: the topic was judged as one that only deletes whole segments, and is compacted nevertheless. c's beats show that its claim was there.
pub(crate) fn a_claim_that_is_compacted() -> Setup {
    Setup { name: "a claim that is compacted", gaps_are_markers: true, ..a_deleted_claim() }
}

/// L4: after a missing offset only a record decides whose writer had read up to that offset.
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
