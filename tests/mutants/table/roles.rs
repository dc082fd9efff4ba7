//! The mutants of many roles in one process: the wrong candidate leads a role, and never two.

use super::Notice::Scenarios;
use super::{MEMBERSHIP, Mutant, RELEASING, edit};

const PRECEDENCE: &str = "crates/neli-proto/src/precedence.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "ForesightOfMany",
        breaks: "Roles: whose turn it is in the group is foreseen, although its members hold other partitions too",
        edits: &[edit(
            MEMBERSHIP,
            "id.len() > LONGEST_GROUP_MEMBER || ‹self.is_one_of_many› {",
            "(self.is_one_of_many && false)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorIgnored",
        breaks: "Spread: whoever reads that a release names another claims as if it named nobody",
        edits: &[edit(PRECEDENCE, "Some(NamedSuccessor::Other) => ‹delay.max(PATIENCE)›,", "delay")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorOfAnotherEnd",
        breaks: "Spread: a release names a successor although what ended the lead is no hand-over",
        edits: &[edit(
            RELEASING,
            "successor: ‹common.successor.clone().filter(|_| self.why == Why::Spread)›,",
            "common.successor.clone()",
        )],
        noticed_by: &[Scenarios],
    },
];
