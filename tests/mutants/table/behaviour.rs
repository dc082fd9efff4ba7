//! The mutants that have the wrong candidate lead, or a job start at the wrong time: one job at a time all the same.

use super::Notice::Scenarios;
use super::{Mutant, STOPPING, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "SettleNotAwaited",
        breaks: "--settle: the first run of a lead does not wait",
        edits: &[edit(STOPPING, "Job::Restarting { at: ‹now + settle›,", "now")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SettleUnknownToGuard",
        breaks: "--settle: the guard learns of the term only with its first run, and releases nothing for a supervisor that dies before",
        edits: &[edit(STOPPING, "‹self.extended(now, grant);› } pub(super) fn extended", "")],
        noticed_by: &[Scenarios],
    },
];
