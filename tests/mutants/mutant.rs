//! What a mutant is: the edits that break one rule, and what must notice it.

/// One rule that is broken.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// Which rule, and how.
    pub(crate) breaks: &'static str,
    pub(crate) edits: &'static [Edit],
    /// Each of these must notice it.
    pub(crate) noticed_by: &'static [Notice],
}

/// What is changed in one file (see [`Change`](crate::schemata::Change) for `text`).
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}

/// What must notice a mutant.
#[derive(Clone, Copy)]
pub(crate) enum Notice {
    /// The chaos, within a minute of these faults.
    Chaos(&'static [&'static str]),
    /// The comparison of the fold with the law, by random journals.
    Law,
    /// A test of the library on its embedded broker.
    Library(&'static str),
    /// The search of this world finds two jobs at once, a job in a topic that nobody has judged, a release by a guard that has not
    /// read all orders, or what must never become of a guard that is started late.
    Model(&'static str),
    /// A test of the node fails, and says this.
    Node(&'static str, &'static str),
    /// A scenario goes otherwise.
    Scenarios,
}

/// An edit of one file.
pub(crate) const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}
