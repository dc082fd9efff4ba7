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

/// A change in one file (see [`Change`](crate::schemata::Change) for `text`).
pub(crate) struct Edit {
    pub(crate) file: &'static str,
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

/// An edit of one file.
pub(crate) const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}
