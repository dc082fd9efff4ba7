//! Starts a child, and follows its progress to the exec.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{self, Pid};

use crate::process::child::{Child, Report};
use crate::process::spawn_spec::{ChildKind, SpawnSpec};
use crate::process::system;

/// A child that may not have executed yet.
#[derive(Debug)]
pub(crate) struct PendingChild {
    /// Its number.
    pub(crate) pid: Pid,
    /// The pipe's end. It is closed at the exec; before that a [`Report`] may be read from it.
    report: OwnedFd,
}

/// The progress of a pending child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// It has not executed yet.
    Pending,
    /// It has executed, or was killed before.
    Executed,
    /// It could not execute, and ends.
    Failed(Errno),
    /// The deadline had passed, and it ends.
    Late,
}

impl PendingChild {
    /// The progress; after `Executed` further calls return the same.
    pub(crate) fn progress(&self) -> Progress {
        let mut report = [0; Report::SIZE];
        match unistd::read(&self.report, &mut report) {
            Ok(0) => Progress::Executed,
            Ok(_) => match Report::from_bytes(report) {
                Report::Late => Progress::Late,
                Report::Failed(errno) => Progress::Failed(Errno::from_raw(errno)),
            },
            Err(_) => Progress::Pending,
        }
    }
}

impl AsFd for PendingChild {
    /// Readable when it is no longer pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.report.as_fd()
    }
}

/// Forks a child that executes. Does not wait for the exec (no vfork), because a program on a dead file server must not block the guard.
///
/// # Errors
///
/// There is no free process, memory or descriptor.
pub(crate) fn spawn(spec: &SpawnSpec<'_>) -> io::Result<PendingChild> {
    let (report, reporter) = unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let cgroup = match spec.kind {
        ChildKind::Guard => None,
        ChildKind::Command { cgroup, .. } | ChildKind::Job { cgroup, .. } => cgroup,
    };
    let pid = system::fork(cgroup, Child::prepare(spec, reporter.as_fd()))?;
    if let ChildKind::Command { .. } | ChildKind::Job { .. } = spec.kind {
        // Parent and child both do this, so that the group exists even if the parent runs first. It fails if the child has executed.
        let _ = unistd::setpgid(pid, pid);
    }
    Ok(PendingChild { pid, report })
}
