//! Rules that can be broken on purpose, so that the model can show that it would notice.
//!
//! In a build that ships nothing is ever broken: [`broken`] is a constant `false` and the branches behind it vanish.
//! `tests/journal_model.rs` compiles the same logic with a `flaw.rs` of its own, that can.

/// A rule that the model breaks deliberately. Each is a way to two jobs at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Flaw {}

/// Whether this build breaks the rule.
#[must_use]
pub const fn broken(flaw: Flaw) -> bool {
    match flaw {}
}
