//! A mutant: the edits that break one rule, and the tests that must notice it.

/// A broken rule.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// The rule that it breaks, and how.
    pub(crate) breaks: &'static str,
    pub(crate) edits: &'static [Edit],
    /// The tests that must notice it.
    pub(crate) noticed_by: &'static [Notice],
}

/// A change of one place in the sources of all crates (see [`find`](crate::place::find)).
pub(crate) struct Edit {
    /// The name of the function that the place is in, if other functions have the same text.
    pub(crate) function: Option<&'static str>,
    /// The original text, which must occur once: an expression, or whole statements. If it contains `‹` and `›`, only the part between
    /// them is replaced, and the rest identifies the place. The file does not matter, nor do white space, comments, and a comma before a closing bracket.
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}

/// A test that must notice a mutant.
#[derive(Clone, Copy)]
pub(crate) enum Notice {
    /// The chaos test, within a minute of these faults.
    Chaos(&'static [&'static str]),
    /// The comparison of the journal's fold with the law, on random journals.
    Law,
    /// A test of the library with the embedded broker.
    Library(&'static str),
    /// The search of this world finds a breach: two jobs at once, a job in a topic that was not judged, a release by a guard with unread
    /// orders, a tree that is taken for gone, or a wrong effect of a guard that started late.
    Model(&'static str),
    /// A test of the node fails with this message.
    Node(&'static str, &'static str),
    /// A scenario differs from its text.
    Scenarios,
}

pub(crate) const fn edit(text: &'static str, replacement: &'static str) -> Edit {
    Edit { function: None, text, replacement }
}

/// An edit of a place that only the name of its function tells from others.
pub(crate) const fn edit_in(function: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { function: Some(function), text, replacement }
}
