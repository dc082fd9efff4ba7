//! What a dead guard has left: its supervisor, a subreaper as well, inherits the tree and kills it.
//!
//! Only once the guard was waited for: the kernel closes a process's socket before its children get another parent. What a guard
//! that hangs still has is killed as well; that nothing of it is left is not known before the guard has died.

use std::rc::Rc;
use std::time::Duration;

use neli::program::clock;
use neli_proto::guard::Killing;
use neli_proto::time::Time;
use nix::unistd::Pid;

use crate::process::cgroup::Cgroup;
use crate::process::tree::Tree;
use crate::supervise::main_process::MainProcess;

/// How many descriptors they hold: their main process's, and the list of this process's children.
pub(crate) const DESCRIPTORS: usize = 2;

/// A dead guard's tree, which is being killed by the supervisor that inherited it.
#[derive(Debug)]
pub(crate) struct Orphans {
    tree: Tree,
    main: Option<MainProcess>,
    killing: Killing,
    /// The guard, while it has not died.
    guard: Option<Pid>,
}

/// What is left of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// Something, and it is not time yet to report that it can't be killed.
    Something,
    /// These, a lease after the first SIGKILL. Said once.
    Stuck(Vec<Pid>),
}

impl Orphans {
    /// Everything that descends from this process or is in the job's control group; it counts as stuck if it is still
    /// there after `lease`.
    #[must_use]
    pub(crate) fn new(now: Time, main: Option<MainProcess>, cgroup: Option<Rc<Cgroup>>, lease: Duration) -> Self {
        let tree = Tree::below(Pid::this()).prioritizing_killed().born_into(cgroup);
        Self { tree, main, killing: Killing::with_every_method(now, lease), guard: None }
    }

    /// Whatever descends from a guard that hangs and was not waited for, or is in the job's control group; the guard is
    /// called stuck when it is not dead after `lease`.
    #[must_use]
    pub(crate) fn of_hung_guard(
        guard: Pid,
        now: Time,
        main: Option<MainProcess>,
        cgroup: Option<Rc<Cgroup>>,
        lease: Duration,
    ) -> Self {
        let tree = Tree::below(guard).prioritizing_killed().born_into(cgroup);
        Self { tree, main, killing: Killing::with_every_method(now, lease), guard: Some(guard) }
    }

    /// Children of ours that are no part of it, with all below them: each of them was not waited for.
    pub(crate) fn spare(&mut self, spared: Vec<Pid>) {
        self.tree.exclude(spared);
    }

    /// SIGKILL to all that is left. To be called again at [`again_at`](Self::again_at), and whenever a child has ended.
    pub(crate) fn kill(&mut self, now: Time) {
        if let Some(main) = &self.main {
            main.kill();
        }
        let methods = self.killing.round(now);
        let has_seen_all = self.tree.kill(methods);
        self.killing.performed(clock::now(), has_seen_all);
    }

    /// What is left of it, once all that has ended was waited for.
    pub(crate) fn left(&mut self, now: Time) -> Left {
        if self.guard.is_none() && self.tree.is_gone() {
            return Left::Nothing;
        }
        if self.killing.is_stuck(now) {
            Left::Stuck(self.guard.into_iter().chain(self.tree.remains()).collect())
        } else {
            Left::Something
        }
    }

    /// Whether their guard has not died: they are its children, and not ours to wait for.
    #[must_use]
    pub(crate) const fn have_guard(&self) -> bool {
        self.guard.is_some()
    }

    /// Whether the job's control group is empty, if it has one.
    #[must_use]
    pub(crate) fn are_not_in_cgroup(&self) -> bool {
        self.tree.is_cgroup_empty()
    }

    /// When to kill again.
    #[must_use]
    pub(crate) const fn again_at(&self) -> Time {
        self.killing.again_at()
    }
}
