//! Waiting for children: what happened to each, and whether any are left.
//!
//! (nix's `waitpid` fails, and loses the child, where a real-time signal killed it.)

use std::ffi::c_int;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

use crate::process::system;

/// What happened to a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Change {
    /// The child. When it has ended its number is free for another.
    pub pid: Pid,
    /// What happened.
    pub status: WaitStatus,
}

/// What may happen to a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitStatus {
    /// It ended with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// This signal stopped it.
    Stopped(i32),
}

impl WaitStatus {
    /// The result of `waitpid`; `None` for any other state.
    pub(crate) fn of(status: c_int) -> Option<Self> {
        if libc::WIFEXITED(status) {
            Some(Self::Exited(libc::WEXITSTATUS(status)))
        } else if libc::WIFSIGNALED(status) {
            Some(Self::Killed(libc::WTERMSIG(status)))
        } else if libc::WIFSTOPPED(status) {
            Some(Self::Stopped(libc::WSTOPSIG(status)))
        } else {
            None
        }
    }
}

/// What [`reap`] found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reaped {
    /// In the order in which the kernel gave it.
    pub changes: Vec<Change>,
    /// Whether there are children of this thread that have not ended. To a subreaper whose other threads start
    /// nothing, none means that nothing is left that descends from it: whatever lives has a living parent, and loses it to the
    /// subreaper.
    pub children_left: bool,
    /// Whether it has stopped at [`MOST_AT_ONCE`]: there may be more, and they are among those left.
    pub may_be_more: bool,
}

/// So many are waited for at once: with thousands that have ended, a caller that keeps a deadline looks at it between.
pub const MOST_AT_ONCE: usize = 64;

/// Waits for every child of this thread that has ended or stopped, up to [`MOST_AT_ONCE`], and for none that has not. Called by the first thread of a
/// process these are the children that it has started, and what the kernel hands on to the process (as to a subreaper, or to
/// process 1), which comes to the first thread. What another thread has started is that thread's own to wait for: librdkafka
/// runs `kinit` by system(3), and would take a ticket for refused whose status we had taken away.
///
/// `before` is called with each child that has ended before it is waited for: until then no other process can get its number.
#[must_use]
pub fn reap(mut before: impl FnMut(Pid)) -> Reaped {
    // __WALL: children that end without SIGCHLD count too. __WNOTHREAD: those of other threads do not.
    const NOW: c_int = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    let mut reaped = Reaped::default();
    for _ in 0..MOST_AT_ONCE {
        let (pid, code) = match system::find_waitable_child(NOW | libc::WEXITED | libc::WSTOPPED) {
            Ok(Some(found)) => found,
            other => {
                reaped.children_left = other != Err(Errno::ECHILD);
                return reaped;
            }
        };
        if code != libc::CLD_STOPPED {
            before(pid);
        }
        // None when it was stopped, and has gone on since.
        if let Ok(Some(status)) = system::wait_for(pid, NOW | libc::WUNTRACED) {
            reaped.changes.extend(WaitStatus::of(status).map(|status| Change { pid, status }));
        }
    }
    Reaped { children_left: true, may_be_more: true, ..reaped }
}

/// The same for all of them, however many there are.
#[must_use]
pub fn reap_all(mut before: impl FnMut(Pid)) -> Reaped {
    let mut all = Reaped::default();
    loop {
        let mut reaped = reap(&mut before);
        all.changes.append(&mut reaped.changes);
        if !reaped.may_be_more {
            return Reaped { changes: all.changes, ..reaped };
        }
    }
}

/// Waits for one child, of whichever thread; whether it has ended, or is none of this process's.
#[must_use]
pub fn reap_one(pid: Pid) -> bool {
    system::wait_for(pid, libc::WNOHANG) != Ok(None)
}
