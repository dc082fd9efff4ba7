//! Whether a tree of processes has ended, according to looks at the children of its root, which inherits the children of each process that
//! ends.
//!
//! Waiting for children also shows that. But a process that another one traces has ended long before its parent can wait for it, and some
//! sandboxes forbid waiting.

use alloc::collections::BTreeSet;

/// A child of the tree's root, as a look has shown it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SeenChild<P> {
    /// The process. It was not waited for, so its pid is not reused.
    pub process: P,
    /// Whether it had not ended when it was looked at.
    pub lives: bool,
}

/// Whether no process of the tree lives, according to two complete looks at the root's children, the second of which begins after the end of
/// the first. The root waits for none of them meanwhile.
///
/// One look is no proof: a process may end after the children were listed, and its own children are then the root's and were seen below
/// neither. But a process that has ended has no children and starts none. So if each child in the second look had ended in the first one,
/// there was none that could leave another one to the root since.
pub fn has_tree_ended<P: Copy + Ord>(first: &[SeenChild<P>], second: &[SeenChild<P>]) -> bool {
    let ended: BTreeSet<P> = first.iter().filter(|child| !child.lives).map(|child| child.process).collect();
    first.iter().all(|child| !child.lives) && second.iter().all(|child| ended.contains(&child.process))
}
