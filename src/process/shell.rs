//! A command line, run by `/bin/sh -c` as a child of this process: a health command or a hook.
//!
//! It has its own process group, which is killed as a whole, and no input; it dies with this process.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use neli_proto::job::CommandEnd;
use nix::libc::SIGKILL;
use nix::unistd::Pid;

use crate::process::attributes::EarlierAttributes;
use crate::process::image::Image;
use crate::process::priority::Scheduling;
use crate::process::reap::WaitStatus;
use crate::process::signal_set::Set;
use crate::process::spawn::{ChildKind, PendingChild, Progress, SpawnSpec, spawn};
use crate::process::system;
use crate::text::reason;

/// A command line that was started.
#[derive(Debug)]
pub struct ShellCommand(PendingChild);

/// The parameters of the start, besides the image.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShellOptions<'a> {
    /// The directory of the control group in which it is created; `None` means that of this process.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// The command executes only before this time: nanoseconds of `CLOCK_BOOTTIME`, little-endian.
    pub(crate) deadline: Option<&'a AtomicU64>,
    /// Additional environment variables: `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// The signals that it ignores.
    pub(crate) ignored: Set,
    /// Its stdout and stderr; `None` means this process's stderr.
    pub(crate) output: Option<BorrowedFd<'a>>,
    /// The earlier values of this process's attributes, which it gets back.
    pub(crate) attributes: EarlierAttributes,
}

impl ShellCommand {
    /// Starts `line` with this environment and the variables of the event; its output goes to this process's stderr.
    /// Without a given scheduling or limit of open files it inherits that of this process.
    ///
    /// # Errors
    ///
    /// There is no process, memory or descriptor left, or one of the strings contains a NUL.
    pub fn start(
        line: &OsStr,
        environment: &[(OsString, OsString)],
        ignored: Set,
        scheduling: Option<Scheduling>,
        open_files: Option<u64>,
    ) -> io::Result<Self> {
        let image = Image::of_shell(line, environment)?;
        let attributes = EarlierAttributes { scheduling, open_files, oom_score: None, mark: None };
        Self::start_in(&image, ShellOptions { ignored, attributes, ..ShellOptions::default() })
    }

    pub(crate) fn start_in(image: &Image, options: ShellOptions<'_>) -> io::Result<Self> {
        let ShellOptions { cgroup, deadline, environment, ignored, output, attributes } = options;
        let kind = ChildKind::Command { deadline, attributes, cgroup, output };
        spawn(&SpawnSpec { image, environment, descriptors: &[], ignored, kind }).map(Self)
    }

    /// The pid of the shell and of its group.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.0.pid
    }

    /// Sends SIGKILL to its group. Only allowed while it was not waited for.
    pub fn kill(&self) {
        // Processes that have left the group are not killed. Waiting shows the command's own end.
        let _ = system::signal_group(self.pid(), SIGKILL);
    }

    /// How it ended, according to the wait status; `None` if the status is not an end.
    #[must_use]
    pub fn end(&self, status: WaitStatus) -> Option<CommandEnd> {
        Some(match (self.0.progress(), status) {
            (_, WaitStatus::Stopped(_)) => return None,
            (Progress::Failed(errno), _) => not_started(errno.into()),
            (Progress::Late, _) => CommandEnd::Abandoned,
            (_, WaitStatus::Exited(code)) => CommandEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            (_, WaitStatus::Killed(signal)) => CommandEnd::Signaled(signal),
        })
    }
}

/// The end of a command that could not be started.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives")]
pub fn not_started(error: io::Error) -> CommandEnd {
    CommandEnd::NotStarted(reason(&error).into())
}
