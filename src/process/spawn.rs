//! Starting a child: what it is to be, and how far it has come on its way to its exec.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{self, Pid};

use crate::process::child::{Child, Report};
use crate::process::image::Image;
use crate::process::scheduling::Scheduling;
use crate::process::signals::Set;
use crate::process::system;
use crate::process::terminal::ForegroundHandover;

/// What a child is started with.
#[derive(Debug)]
pub(crate) struct SpawnSpec<'a> {
    /// What it executes.
    pub(crate) image: &'a Image,
    /// Environment variables besides the image's: `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// Descriptors that it gets under the same number, though they close at an exec; all others that do are closed.
    pub(crate) descriptors: &'a [RawFd],
    /// The signals that it ignores; all others are at their default.
    pub(crate) ignored: Set,
    /// The rest, which differs from kind to kind.
    pub(crate) kind: Kind<'a>,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// Blocks every signal, and outlives its parent.
    Guard,
    /// As a job, but for what it has open: nothing but `/dev/null` to read from, and one place to write to.
    Command {
        /// It executes only before then, as a job; `None`: whenever it comes to it.
        deadline: Option<&'a AtomicU64>,
        /// Its scheduling; `None` leaves that of its parent.
        scheduling: Option<Scheduling>,
        /// The directory of the control group that it is born into; `None` leaves it in its parent's.
        cgroup: Option<BorrowedFd<'a>>,
        /// Its stdout and stderr; `None` is the stderr of its parent.
        output: Option<BorrowedFd<'a>>,
    },
    /// Leads a process group of its own, blocks no signal, and dies with its parent.
    Job {
        /// It executes only before then: nanoseconds of `CLOCK_BOOTTIME`, little-endian.
        deadline: &'a AtomicU64,
        /// Its scheduling; `None` leaves that of its parent.
        scheduling: Option<Scheduling>,
        /// The directory of the control group that it is born into; `None` leaves it in its parent's.
        cgroup: Option<BorrowedFd<'a>>,
        /// Whose foreground of the terminal it takes.
        foreground: Option<ForegroundHandover<'a>>,
    },
}

/// A child that may not have executed yet.
#[derive(Debug)]
pub(crate) struct PendingChild {
    /// Its number.
    pub(crate) pid: Pid,
    /// It closes at the exec; what comes out before is a [`Report`].
    report: OwnedFd,
}

/// How far a pending child has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// It has not executed yet.
    Pending,
    /// It has executed, or was killed before it could.
    Executed,
    /// It could not execute, and ends.
    Failed(Errno),
    /// The deadline had come, and it ends.
    Late,
}

impl PendingChild {
    /// The state of the start; after `Executed` further calls return the same.
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

/// Forks, and has the child execute. It never waits for the exec: a program on a dead file server must not hold up
/// the guard, so this is no vfork.
///
/// # Errors
///
/// When there is no process, no memory or no descriptor to spare.
pub(crate) fn spawn(spec: &SpawnSpec<'_>) -> io::Result<PendingChild> {
    let (report, reporter) = unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let cgroup = match spec.kind {
        Kind::Guard => None,
        Kind::Command { cgroup, .. } | Kind::Job { cgroup, .. } => cgroup,
    };
    let pid = system::fork(cgroup, Child::prepare(spec, reporter.as_fd()))?;
    if let Kind::Command { .. } | Kind::Job { .. } = spec.kind {
        // Here too, so that the group exists whichever process is scheduled first. It fails when the child has executed.
        let _ = unistd::setpgid(pid, pid);
    }
    Ok(PendingChild { pid, report })
}
