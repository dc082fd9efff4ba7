//! A child between fork and exec. The parent may have threads, and a lock that one of them held at the fork (the allocator's, for example)
//! is never released here. So [`Child::run`] and its callees only make async-signal-safe calls, allocate nothing, and never panic. Memory
//! is allocated before the fork.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::Ordering;

use neli_kafka::clock;
use nix::fcntl::{self, OFlag};
use nix::libc::{self, STDIN_FILENO};
use nix::sys::prctl;
use nix::sys::signal::{self, SigSet, SigmaskHow, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{self, Pid};

use crate::process::signal_set::{HIGHEST, Set};
use crate::process::spawn_spec::{ChildKind, SpawnSpec};
use crate::process::system::{self, Disposition, InChild, StringArray};
use crate::process::terminal::ForegroundHandover;

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

/// The child's data between fork and exec, prepared before the fork.
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
