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

/// From the first SIGKILL to the first look for what was not known. A look opens files, and may stall for as long as the
/// job is at its memory limit; so those that are known get the time to die, and to give their memory back.
const LOOK_AFTER: Duration = Duration::from_millis(2);

/// A tree that was sent SIGKILL.
#[derive(Debug)]
pub(super) struct Killing {
    /// When what is still there is said to be stuck, unless it was.
    stuck_at: Option<Time>,
    again_at: Time,
    /// `None` before the first SIGKILL; then from this one to the next.
    pause: Option<Duration>,
}

impl Killing {
    /// Begins at `now`; what is still there after `patience` is stuck.
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { stuck_at: Some(now + patience), again_at: now, pause: None }
    }

    /// SIGKILL to all that is left: to the control group, to what is known, and at last to what a look finds. To be called
    /// again at [`again_at`](Self::again_at) at the latest, and whenever a child has ended.
    pub(super) fn kill(&mut self, now: Time, tree: &Tree) {
        let Some(pause) = self.pause else {
            tree.kill_cgroup();
            tree.kill_known();
            (self.again_at, self.pause) = (clock::now() + LOOK_AFTER, Some(FIRST_PAUSE));
            return;
        };
        tree.kill_known();
        if now < self.again_at {
            return;
        }
        tree.kill_cgroup();
        let has_seen_all = tree.kill_found();
        let end = clock::now();
        // In a large tree a look takes longer than the pause, and the processors are needed for dying: at most every other
        // moment is spent looking.
        self.again_at = end + pause.max(end.since(now));
        self.pause = Some(if has_seen_all { LAST_PAUSE.min(pause * 2) } else { pause });
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
