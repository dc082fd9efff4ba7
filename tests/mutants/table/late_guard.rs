//! Mutants about guards that are started late: one is killed although it was not started, or gets a term that is over or has another deadline.

use crate::mutant::Notice::{Model, Scenarios};
use crate::mutant::{Mutant, edit_in};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AbsentGuardWatched",
        breaks: "A run is ordered of a guard that was not started, and it is killed for its silence",
        edits: &[edit_in("begin_term", "if ‹self.next_guard.presence == Presence::There›", "true")],
        noticed_by: &[Model("a_guard_that_is_started_late")],
    },
    Mutant {
        name: "LateGuardOfEndedTerm",
        breaks: "R6: a term that ended while its guard waited is given to that guard, which releases it again",
        edits: &[edit_in("guard_started", "self.grant.filter(|_| ‹self.job != Job::None›)", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LateGuardPastDeadline",
        breaks: "R4: a guard that is started after its deadline is ordered to run the job",
        edits: &[edit_in("guard_started", "if ‹now >= grant.until›", "false")],
        noticed_by: &[Model("a_guard_that_is_started_late"), Scenarios],
    },
    Mutant {
        name: "LateGuardsFirstDeadline",
        breaks: "A guard that is started late gets the deadline with which the term began",
        edits: &[edit_in(
            "extend",
            "else if ‹self.next_guard.presence != Presence::There›",
            "self.next_guard_due().is_some()",
        )],
        noticed_by: &[Model("a_guard_that_is_started_late"), Scenarios],
    },
];
