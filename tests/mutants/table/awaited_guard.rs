//! Mutants about guards that wait for their start: a job starts although its term is over, or a term is lost without need.

use crate::mutant::Notice::Model;
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AwaitedGuardSilent",
        breaks: "A grant that comes while a guard waits to be started is not answered, so the supervisor takes the guard for one that \
                 hangs",
        edits: &[edit("return ‹Some(Answer::Extended { until: grant.until })›;", "None")],
        noticed_by: &[Model("a_guard_that_is_started_late")],
    },
    Mutant {
        name: "AwaitedGuardStartedLate",
        breaks: "R4: a guard that has waited is started after its deadline",
        edits: &[edit("self.is_over = ‹now >= until›;", "false")],
        noticed_by: &[Model("a_guard_that_is_started_late")],
    },
    Mutant {
        name: "AwaitedJobRunsOn",
        breaks: "R6: a job that is stopped while its guard waits is reported as gone, but the guard is still started with it",
        edits: &[
            edit("‹self.is_over = true;› return Some(Answer::Gone);", ""),
            edit("self.is_over |= ‹matches!(order, Order::Over { .. })›;", "false"),
        ],
        noticed_by: &[Model("an_end_before_the_guard_is_started")],
    },
    Mutant {
        name: "AwaitedJobsFirstDeadline",
        breaks: "R4: a guard that has waited starts the job with the deadline that was valid when the job was ordered",
        edits: &[edit("match ‹(orders.take_first()?, grant)›", "(orders.take_first()?, None)")],
        noticed_by: &[Model("a_guard_that_is_started_late")],
    },
];
