//! What a dead guard has left: its supervisor, a subreaper as well, inherits the tree and kills it.
//!
//! Only once the guard was waited for: the kernel closes a process's socket before it hands the children on.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::libc::SIGKILL;
use nix::unistd::Pid;

use crate::driver::process;
use crate::driver::tree::Tree;
use crate::logic::time::Time;

/// From one SIGKILL to the next, while something is still there: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// A tree that is being killed by whoever inherited it.
#[derive(Debug)]
pub struct Orphans {
    tree: Tree,
    /// The main process, whose number may be a stranger's by now.
    main: Option<OwnedFd>,
    stuck_at: Option<Time>,
    again_at: Time,
    pause: Duration,
}

/// What is left of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Something, and it is not time yet to say that it can't be killed.
    Something,
    /// These, a lease after the first SIGKILL. Said once.
    Stuck(Vec<Pid>),
}

impl Orphans {
    /// Whatever descends from this process; to be called stuck when it is there for `lease`.
    #[must_use]
    pub fn new(now: Time, main: Option<OwnedFd>, lease: Duration) -> Self {
        let tree = Tree::below(Pid::this()).urgent();
        Self { tree, main, stuck_at: Some(now + lease), again_at: now, pause: FIRST_PAUSE }
    }

    /// Children of ours that are no part of it, with all below them: each of them was not waited for.
    pub fn spare(&mut self, spared: Vec<Pid>) {
        self.tree.spare(spared);
    }

    /// SIGKILL to all that is left. To be called again at [`again_at`](Self::again_at), and whenever a child has ended.
    pub fn kill(&mut self, now: Time) {
        if let Some(main) = &self.main {
            // It may have ended.
            let _ = process::signal_pidfd(main.as_fd(), SIGKILL);
        }
        self.tree.kill();
        if now >= self.again_at {
            self.again_at = now + self.pause;
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
    }

    /// What is left of it, once all that has ended was waited for.
    pub fn left(&mut self, now: Time) -> Left {
        if self.tree.is_gone() {
            return Left::Nothing;
        }
        match self.stuck_at {
            Some(at) if now >= at => {
                self.stuck_at = None;
                Left::Stuck(self.tree.members())
            }
            _ => Left::Something,
        }
    }

    /// When to kill again.
    #[must_use]
    pub const fn again_at(&self) -> Time {
        self.again_at
    }
}
