//! The mutants of the watch over the guard's answers: a guard that hangs is not killed in time.

use crate::mutant::Notice::Scenarios;
use crate::mutant::{Mutant, edit};

const WATCH: &str = "crates/neli-proto/src/supervisor/watch.rs";

pub(super) const MUTANTS: &[Mutant] = &[
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
