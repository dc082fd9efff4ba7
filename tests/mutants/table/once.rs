//! The mutants of `--once`: each is a way to a second run of a key that has succeeded.

use super::Notice::Model;
use super::{Mutant, edit};

const ONCE: &str = "crates/neli-proto/src/once.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "UnreadFacts",
        breaks: "once: what was recorded before the claim took effect is not read again",
        edits: &[edit(
            ONCE,
            "self.phase = Phase::Reading { read, term, until: now + self.policy.lease / 2 };",
            "let _ = read;
            self.announce(now, term, now + self.policy.lease / 2);",
        )],
        noticed_by: &[Model("a_runner_that_dies")],
    },
    Mutant {
        name: "UnrecordedOutcome",
        breaks: "once: the release neither waits for the outcome's acknowledgement nor tells of it",
        edits: &[
            edit(
                ONCE,
                "self.phase = Phase::Recording { id, fact, again_at: None, stop_by: None };",
                "self.phase = Phase::Recording { id, fact, again_at: None, stop_by: None };
                self.finish();",
            ),
            edit(ONCE, "(is_anothers && *key == self.policy.key)", "(is_anothers && *key != self.policy.key)"),
        ],
        noticed_by: &[Model("a_key_that_is_done")],
    },
];
