//! SIGKILL to a tree, again and again until nothing is left of it: the guard's work, and that of a supervisor which has
//! inherited a dead guard's tree.

use std::time::Duration;

use nix::unistd::Pid;

use crate::driver::clock;
use crate::driver::tree::Tree;
use crate::logic::time::Time;

/// From one SIGKILL to the next, while something is still there: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// A tree that was sent SIGKILL.
#[derive(Debug)]
pub(super) struct Killing {
    /// When what is still there is said to be stuck, unless it was.
    stuck_at: Option<Time>,
    again_at: Time,
    pause: Duration,
}

impl Killing {
    /// Begins at `now`; what is still there after `patience` is stuck.
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { stuck_at: Some(now + patience), again_at: now, pause: FIRST_PAUSE }
    }

    /// SIGKILL to all that is left. To be called again at [`again_at`](Self::again_at) at the latest.
    pub(super) fn kill(&mut self, now: Time, tree: &Tree) {
        tree.kill();
        if now >= self.again_at {
            let end = clock::now();
            // In a large tree a look takes longer than the pause, and the processors are needed for dying: at most every
            // other moment is spent looking.
            self.again_at = end + self.pause.max(end.since(now));
            self.pause = LAST_PAUSE.min(self.pause * 2);
        }
    }

    /// When to kill again.
    pub(super) const fn again_at(&self) -> Time {
        self.again_at
    }

    /// What can't be killed, once it is time to say so; said once.
    pub(super) fn stuck(&mut self, now: Time, tree: &Tree) -> Option<Vec<Pid>> {
        self.stuck_at.take_if(|at| now >= *at).map(|_| tree.remains())
    }
}
