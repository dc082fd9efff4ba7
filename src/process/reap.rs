//! Waits for children: reports the change of each, and whether any is left.
//!
//! (nix's `waitpid` fails and loses the child if a real-time signal killed it.)

use std::ffi::c_int;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{LazyLock, Mutex, MutexGuard};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

use crate::process::spin_watch::watched_wait;
use crate::process::system::Shared;
use crate::process::{locked, system};

/// The result of [`reap`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reaped {
    /// The children that have ended, whose pids may be reused, and those that a signal has stopped, in the order of the kernel's reports.
    pub changes: Vec<(Pid, ExitStatus)>,
    /// Whether this thread has children that have not ended. If a subreaper whose other threads start no processes has none, no descendant
    /// is left: every living process has a living parent, and gets the subreaper as its parent when that one ends.
    pub children_left: bool,
    /// Whether the number was reached: then more children may have ended, and they count as left.
    pub may_be_more: bool,
    /// Whether this process may not wait for its children, because a sandbox forbids it: then those that have ended count as left too.
    pub is_refused: bool,
}

static WAITED_FOR: LazyLock<Shared<Mutex<Option<Pid>>>> = LazyLock::new(|| Shared::new(Mutex::new(None)));

/// While the result is held, the pid of no child is reused, except for the one in it.
pub(crate) fn keep_children() -> MutexGuard<'static, Option<Pid>> {
    locked(&**WAITED_FOR)
}

/// Waits for a child that has ended or stopped. The lock is free meanwhile: the call may spin, and its thread be an ordinary one, while
/// another one must kill at its deadline.
fn wait_for(pid: Pid, wait: impl FnOnce() -> nix::Result<Option<c_int>>) -> nix::Result<Option<c_int>> {
    *keep_children() = Some(pid);
    let waited = watched_wait(wait);
    *keep_children() = None;
    waited
}

/// Waits for every child of this thread that has ended or stopped, up to so many, and does not block. In the first thread of a
/// process these are the children that the thread has started, and the orphans that the kernel gives to the process (as a subreaper or
/// process 1). Children of another thread are left to that thread: librdkafka runs `kinit` by system(3), and would take a ticket as
/// refused if its status were lost.
///
/// `before` is called for each child that has ended, before it is waited for: until then no other process can get its pid.
#[must_use]
pub fn reap(most: usize, mut before: impl FnMut(Pid)) -> Reaped {
    // __WALL: also children that end without SIGCHLD. __WNOTHREAD: not those of other threads.
    const NOW: c_int = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    let mut reaped = Reaped::default();
    for _ in 0..most {
        let (pid, code) = match system::find_waitable_child(NOW | libc::WEXITED | libc::WSTOPPED) {
            Ok(Some(found)) => found,
            Ok(None) => return Reaped { children_left: true, ..reaped },
            Err(Errno::ECHILD) => return reaped,
            Err(_) => return Reaped { children_left: true, is_refused: true, ..reaped },
        };
        if code != libc::CLD_STOPPED {
            before(pid);
        }
        match wait_for(pid, || system::wait_for(pid, NOW | libc::WUNTRACED)) {
            Ok(Some(status)) => reaped.changes.push((pid, ExitStatus::from_raw(status))),
            // It was stopped and has continued since.
            Ok(None) => {}
            // The same child would be found again and again.
            Err(_) => return Reaped { children_left: true, is_refused: true, ..reaped },
        }
    }
    Reaped { children_left: true, may_be_more: true, ..reaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_child_is_waited_for_the_others_can_be_killed() {
        let waited_for = Pid::from_raw(7);
        let seen = wait_for(waited_for, || Ok(WAITED_FOR.try_lock().ok().and_then(|pid| *pid).map(Pid::as_raw)));
        assert_eq!((seen, *keep_children()), (Ok(Some(7)), None));
    }
}
