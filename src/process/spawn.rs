//! Starts a child, and follows its progress to the exec; and the child until then.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use neli_kafka::clock;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::libc::{self, STDIN_FILENO};
use nix::sys::prctl;
use nix::sys::signal::{self, SigSet, SigmaskHow, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{self, Pid};

use crate::process::attributes::EarlierAttributes;
use crate::process::image::Image;
use crate::process::signal_set::{HIGHEST, Set};
use crate::process::system::{self, Disposition, InChild, StringArray};
use crate::process::terminal::ForegroundHandover;

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

/// The parameters of a child.
#[derive(Debug)]
pub(crate) struct SpawnSpec<'a> {
    /// The program that it executes.
    pub(crate) image: &'a Image,
    /// Additional environment variables: `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// Descriptors that it inherits under the same number, although they are close-on-exec. All other close-on-exec ones are closed.
    pub(crate) descriptors: &'a [RawFd],
    /// The signals that it ignores; all others have their default action.
    pub(crate) ignored: Set,
    /// The parameters that depend on the kind.
    pub(crate) kind: ChildKind<'a>,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChildKind<'a> {
    /// A guard: blocks every signal, and outlives its parent.
    Guard,
    /// A command that runs beside the job: like a job, but with `/dev/null` as stdin, one output, and no other descriptor.
    Command {
        /// It executes only before this deadline, like a job; `None` means at any time.
        deadline: Option<&'a AtomicU64>,
        /// The earlier values of its parent's attributes, which it gets back.
        attributes: EarlierAttributes,
        /// The directory of the control group in which it is created; `None` means its parent's group.
        cgroup: Option<BorrowedFd<'a>>,
        /// Its stdout and stderr; `None` means its parent's stderr.
        output: Option<BorrowedFd<'a>>,
    },
    /// A job: creates a process group, blocks no signal, and dies with its parent.
    Job {
        /// It executes only before this time: nanoseconds of `CLOCK_BOOTTIME`, little-endian.
        deadline: &'a AtomicU64,
        /// The earlier values of its parent's attributes, which it gets back.
        attributes: EarlierAttributes,
        /// The directory of the control group in which it is created; `None` means its parent's group.
        cgroup: Option<BorrowedFd<'a>>,
        /// The foreground of the terminal, if it is handed over.
        foreground: Option<ForegroundHandover<'a>>,
    },
}

/// The exit status if the child could not execute; a shell uses it for a command that was not found.
const NOT_EXECUTED: c_int = 127;

/// The report of a child that did not execute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Report {
    /// Execution failed with this errno.
    Failed(c_int),
    /// The deadline had passed.
    Late,
}

impl Report {
    /// The size of a report in bytes: less than the atomic size of a pipe.
    pub(crate) const SIZE: usize = size_of::<c_int>();

    /// [`Late`](Self::Late) is encoded as 0, which is not an errno.
    const LATE: c_int = 0;

    pub(crate) fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        match c_int::from_ne_bytes(bytes) {
            Self::LATE => Self::Late,
            errno => Self::Failed(errno),
        }
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        match self {
            Self::Failed(errno) => errno,
            Self::Late => Self::LATE,
        }
        .to_ne_bytes()
    }
}

/// A child between fork and exec: its data, prepared before the fork. The parent may have threads, and a lock that one of them held at the fork
/// (the allocator's, for example) is never released here. So [`Child::run`] and its callees only make async-signal-safe calls, allocate
/// nothing, and never panic.
#[derive(Debug)]
pub(crate) struct Child<'a> {
    paths: &'a [CString],
    arguments: StringArray<'a>,
    /// The arguments of a shell that runs the program as a script; the second is the script.
    shell: StringArray<'a>,
    environment: StringArray<'a>,
    descriptors: &'a [RawFd],
    reporter: BorrowedFd<'a>,
    parent: Pid,
    ignored: Set,
    kind: ChildKind<'a>,
}

impl InChild for Child<'_> {
    /// The child's code until it executes.
    fn run(mut self) -> ! {
        let foreground = if let ChildKind::Job { foreground, .. } = self.kind { foreground } else { None };
        if let ChildKind::Command { attributes, .. } | ChildKind::Job { attributes, .. } = self.kind {
            self.join_group(foreground);
            // The child continues even if that is refused.
            let _ = attributes.restore();
        }
        for signal in 1..=HIGHEST {
            let disposition = if self.ignored.contains(signal) { Disposition::Ignored } else { Disposition::Default };
            // It fails for SIGKILL, SIGSTOP and the C library's own signals.
            let _ = system::set_disposition(signal, disposition);
        }
        if let ChildKind::Command { output, .. } = self.kind {
            redirect(output);
        }
        for number in self.descriptors {
            system::keep_across_exec(*number);
        }
        let blocked = if let ChildKind::Guard = self.kind { SigSet::all() } else { SigSet::empty() };
        let _ = signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&blocked), None);
        let report = if self.is_late() { Report::Late } else { Report::Failed(self.execute()) };
        let _ = unistd::write(self.reporter, &report.to_bytes());
        system::exit(NOT_EXECUTED)
    }
}

impl<'a> Child<'a> {
    /// Prepares the child's data; the child writes its [`Report`] to `reporter`.
    pub(crate) fn prepare(spec: &SpawnSpec<'a>, reporter: BorrowedFd<'a>) -> Self {
        let image = spec.image;
        let arguments = || image.arguments.iter().map(CString::as_c_str);
        let environment = image.environment.iter().chain(spec.environment);
        Self {
            paths: &image.paths,
            arguments: arguments().collect(),
            shell: [c"/bin/sh", c""].into_iter().chain(arguments().skip(1)).collect(),
            environment: environment.map(CString::as_c_str).collect(),
            descriptors: spec.descriptors,
            reporter,
            parent: unistd::getpid(),
            ignored: spec.ignored,
            kind: spec.kind,
        }
    }

    /// Makes the child die with its parent. Then creates a process group, and takes the foreground if it is handed over.
    fn join_group(&self, foreground: Option<ForegroundHandover<'_>>) {
        let _ = prctl::set_pdeathsig(Signal::SIGKILL);
        if unistd::getppid() != self.parent {
            // The parent died before the setting took effect.
            system::exit(0);
        }
        let _ = unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
        // This comes before the exec, so that the program never reads in the background. SIGTTOU is still blocked.
        if let Some(ForegroundHandover { terminal, from }) = foreground
            && unistd::tcgetpgrp(terminal) == Ok(from)
        {
            let _ = unistd::tcsetpgrp(terminal, unistd::getpid());
        }
    }

    fn is_late(&self) -> bool {
        let deadline = match self.kind {
            ChildKind::Command { deadline: Some(deadline), .. } | ChildKind::Job { deadline, .. } => deadline,
            ChildKind::Command { deadline: None, .. } | ChildKind::Guard => return false,
        };
        // clock_gettime(2) is async-signal-safe.
        clock::now().as_nanos() >= u64::from_le(deadline.load(Ordering::Acquire))
    }

    /// Like `execvp`: returns the errno if nothing could be executed.
    fn execute(&mut self) -> c_int {
        let mut denied = false;
        let mut error = libc::ENOENT;
        for path in self.paths {
            error = system::execute(path, &self.arguments, &self.environment);
            if error == libc::ENOEXEC {
                self.shell.replace(1, path);
                error = system::execute(c"/bin/sh", &self.shell, &self.environment);
            }
            match error {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                _ => return error,
            }
        }
        if denied { libc::EACCES } else { error }
    }
}

/// Sets stdin to `/dev/null`, stdout and stderr to `output`, and closes all other descriptors.
fn redirect(output: Option<BorrowedFd<'_>>) {
    let stderr = io::stderr();
    let output = output.unwrap_or(stderr.as_fd());
    let _ = unistd::close(STDIN_FILENO);
    // The file gets the number that was just closed, and stays open.
    let _ = fcntl::open(c"/dev/null", OFlag::O_RDONLY, Mode::empty()).map(IntoRawFd::into_raw_fd);
    let _ = unistd::dup2_stdout(output);
    let _ = unistd::dup2_stderr(output);
    // Before Linux 5.11 the child inherits the descriptors that `neli-run` inherited, as the job does.
    system::close_at_exec_from(3);
}
