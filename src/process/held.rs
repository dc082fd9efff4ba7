//! A process by its number, which may be reused after its end, and by a pidfd, which always refers to this process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::unistd::Pid;

use crate::process::system;

/// A process that is held by a pidfd, or a child that was not waited for.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    pub(crate) pid: Pid,
    /// `None` if the kernel has no pidfds, or for lack of a descriptor.
    pub(crate) pidfd: Option<OwnedFd>,
}

impl HeldProcess {
    /// The process that has this number now, with a pidfd if possible.
    pub(crate) fn open(pid: Pid) -> Self {
        Self { pid, pidfd: system::open_pidfd(pid).ok() }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// `ESRCH` if it is gone; `EPERM` if it belongs to another user.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        match &self.pidfd {
            Some(pidfd) => system::signal_pidfd(pidfd.as_fd(), signal),
            None => system::signal(self.pid, signal),
        }
    }

    /// Whether it has ended, if its pidfd tells: it does not while a tracer keeps one of the process's other threads.
    pub(crate) fn tells_end(&self) -> bool {
        self.pidfd.as_ref().is_some_and(|pidfd| system::is_readable(pidfd.as_fd()))
    }
}
