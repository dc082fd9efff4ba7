//! Mutants with which the wrong candidate leads, or a job starts at the wrong time; still only one job runs at a time.

use crate::mutant::Notice::{Node, Scenarios};
use crate::mutant::{Mutant, edit};

use super::{MEMBERSHIP, STOPPING};

const ANSWERS: &str = "crates/neli-proto/src/supervisor/answers.rs";
const FAILED_RUNS: &str = "crates/neli-proto/src/failed_runs.rs";
const PREEMPTING: &str = "crates/neli-proto/src/candidate/preempting.rs";
const PRECEDENCE: &str = "crates/neli-proto/src/precedence.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "BackOffIgnored",
        breaks: "Back-off: whoever's runs failed claims as soon as anybody else",
        edits: &[edit(
            PRECEDENCE,
            "let added = self.claim_delay + ‹self.back_off› + self.wait_for_higher(now) + self.spread_delay()?;",
            "Duration::ZERO",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BackOffInTheGroup",
        breaks: "Back-off: whoever backs off stays a member, and the group may choose it",
        edits: &[edit(
            MEMBERSHIP,
            "if ‹self.precedence.is_backing_off() && !self.claims_only_when_assigned()› {",
            "false",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BackOffWithoutEnd",
        breaks: "Back-off: ten minutes of running do not end it",
        edits: &[edit(FAILED_RUNS, "(self.in_a_row > 0).then(|| since + LONG_RUN)", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EqualsPreempted",
        breaks: "--preempt: a leader of the same priority is asked to resign",
        edits: &[edit(
            PREEMPTING,
            "‹(priority < self.precedence.priority())›.then_some",
            "(priority <= self.precedence.priority())",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PreemptionWhileBackingOff",
        breaks: "--preempt: whoever backs off asks a leader to resign, and does not claim then",
        edits: &[edit(PREEMPTING, "‹!self.precedence.is_backing_off()›", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PriorityIgnored",
        breaks: "--priority: whoever knows of a higher one claims all the same",
        edits: &[edit(PRECEDENCE, "self.claim_delay + self.back_off + ‹self.wait_for_higher(now)›", "Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PriorityInTheGroup",
        breaks: "--priority: whoever knows of a higher one stays a member, and the group may choose it",
        edits: &[edit(MEMBERSHIP, "‹!self.precedence.is_outranked(now)›", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SettleNotAwaited",
        breaks: "--settle: the first run of a lead does not wait",
        edits: &[edit(STOPPING, "let settle = ‹self.policy.settle›;", "core::time::Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SettleUnknownToGuard",
        breaks: "--settle: the guard learns of the term only with its first run, and releases nothing for a supervisor that dies before",
        edits: &[edit(STOPPING, "‹self.extended(now, grant);› } pub(super) fn extended", "")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RunWithoutGuardAwaited",
        breaks: "A run that was ordered of a guard that could not be started is awaited, and its term not released",
        edits: &[edit(ANSWERS, "self.tree_end().filter(|_| is_ordered && ‹!self.run.started›)", "false")],
        noticed_by: &[
            Node(
                "no_guard::a_run_that_no_guard_received_has_never_begun",
                "the term of a run that has never begun is kept",
            ),
            Scenarios,
        ],
    },
];
