//! The mutants of what keeps a guard from killing in time, and of the watch over its answers: a guard that hangs is not killed in time.

use crate::mutant::Notice::{Model, Scenarios};
use crate::mutant::{Mutant, edit};

const ANSWERS: &str = "crates/neli-proto/src/supervisor/answers.rs";
const OBEYING: &str = "crates/neli-proto/src/guard/obeying.rs";
const WATCH: &str = "crates/neli-proto/src/supervisor/watch.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AnotherRunsEndTaken",
        breaks: "R6: the guard's word that a run is over is taken for one about the present run, whichever it names",
        edits: &[edit(ANSWERS, "if may_be_alive && ‹is_present› {", "true")],
        noticed_by: &[Model("an_answer_about_the_run_before"), Scenarios],
    },
    Mutant {
        name: "AnyAnswerEndsTheWatch",
        breaks: "A guard that has answered one of several orders, and then hangs, is not taken for dead before its deadline",
        edits: &[edit(
            WATCH,
            "self.question.take_if(|question| ‹question.awaited <= AwaitedAnswer::Deadline(until)›);",
            "true",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ForkBeforeTheDeadline",
        breaks: "R4: a guard starts a command just before the deadline, and the kill has to wait for the fork",
        edits: &[edit(OBEYING, "else if ‹self.has_time_to_fork(now)› {", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LostEndAwaited",
        breaks: "R7: a guard without a run does not answer a stop, and an end whose report was lost is awaited for ever",
        edits: &[edit(OBEYING, "self.actions.extend(‹answer.map(Action::Answer)›);", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OldAnswerForTheEnd",
        breaks: "A guard that answers an order of before, and hangs before it kills, has until that order's deadline",
        edits: &[edit(
            WATCH,
            "if ‹self.question.is_some_and(|question| question.awaited == AwaitedAnswer::End)› {",
            "false",
        )],
        noticed_by: &[Scenarios],
    },
];
