//! Mutants of the library, which acts as the guard of the tasks under a lead.

use crate::mutant::Notice::Library;
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "LeaseTakenUpAgain",
        breaks: "R5, in the library: a heartbeat that is read back extends a lease that has ended, because its task has not ended",
        edits: &[edit("if ‹self.phase.borrow().over.is_none()› {", "true")],
        noticed_by: &[Library("leases::a_lease_that_is_over_is_not_taken_up_again")],
    },
    Mutant {
        name: "TasksNotAwaited",
        breaks: "R6, in the library: the guard reports the end of a lead while a task of it still runs",
        edits: &[edit("(phase.ends().is_some() && ‹phase.tasks == 0›)", "true")],
        noticed_by: &[Library("leases::a_task_that_runs_is_awaited")],
    },
    Mutant {
        name: "TasksOutliveStopTimeout",
        breaks: "Builder::stop_timeout: tasks that still run at the stop timeout continue during the callback before the release",
        edits: &[edit("self.over.or(‹self.dropped›)", "None")],
        noticed_by: &[Library("leases::the_callback_runs_under_the_lease_when_tasks_were_dropped")],
    },
    Mutant {
        name: "NothingBeforeRelease",
        breaks: "Builder::before_release: the callback is not called once the lead must end",
        edits: &[edit("self.begin_unless(|phase| ‹phase.over›)", "phase.ends()")],
        noticed_by: &[Library("leases::the_callback_runs_under_the_lease_when_tasks_were_dropped")],
    },
];
