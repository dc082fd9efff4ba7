//! Starts a child: the program that it executes, its progress to the exec, and the child until then. All memory is allocated in advance, because
//! nothing may be allocated between fork and exec. (No library starts a process between a check of the lease and the exec, in a control group.)

use std::ffi::{CString, OsStr, OsString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
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
use crate::process::signals::SignalSet;
use crate::process::spin_watch;
use crate::process::system::{self, HIGHEST_SIGNAL, StringArray};

/// A child that may not have executed yet.
#[derive(Debug)]
pub(crate) struct PendingChild {
    /// Its number.
    pub(crate) pid: Pid,
    /// The pipe's end. It is closed at the exec; before that an errno may be read from it.
    report: OwnedFd,
}

/// The report of a child that did not execute because its deadline had passed: no exec fails with it.
pub(crate) const LATE: Errno = Errno::ETIME;

impl PendingChild {
    /// Whether it may not have executed yet, and shares the pages of this process.
    pub(crate) fn is_pending(&self) -> bool {
        !system::is_readable(self.report.as_fd())
    }

    /// Whether it has executed (or was killed before), or why it could not and ends; `None` while it is pending.
    pub(crate) fn executed(&self) -> Option<Result<(), Errno>> {
        let mut report = [0; size_of::<c_int>()];
        match unistd::read(&self.report, &mut report) {
            Ok(0) => Some(Ok(())),
            // It is less than the atomic size of a pipe, so it comes whole.
            Ok(_) => Some(Err(Errno::from_raw(c_int::from_ne_bytes(report)))),
            Err(_) => None,
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
    let child = Child::prepare(spec, reporter.as_fd());
    let fork = || system::fork_to_execute(spec.cgroup, || child.run());
    let pid = match spec.attributes.scheduling {
        Some(scheduling) => spin_watch::fork_with(scheduling, fork),
        None => fork(),
    }?;
    if !matches!(spec.kind, ChildKind::Guard) {
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
    pub(crate) ignored: SignalSet,
    /// The earlier values of its parent's attributes, which it gets back.
    pub(crate) attributes: EarlierAttributes,
    /// The directory of the control group in which it is created; `None` means its parent's group.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// It executes only before this time: nanoseconds of `CLOCK_BOOTTIME`, little-endian. `None` means at any time.
    pub(crate) deadline: Option<&'a AtomicU64>,
    /// What it is.
    pub(crate) kind: ChildKind<'a>,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChildKind<'a> {
    /// A guard: blocks every signal, and outlives its parent.
    Guard,
    /// A command that runs beside the job: like a job, but with `/dev/null` as stdin, this as stdout and stderr (`None` means its parent's
    /// stderr), and no other descriptor.
    Command(Option<BorrowedFd<'a>>),
    /// A job: creates a process group, blocks no signal, and dies with its parent. If the foreground is handed over, it takes that of this
    /// terminal, if this group has it.
    Job(Option<(BorrowedFd<'a>, Pid)>),
}

/// A child between fork and exec: its data, prepared before the fork. The parent may have threads, and a lock that one of them held at the fork
/// (the allocator's, for example) is never released here. So [`Child::run`] and its callees only make async-signal-safe calls, allocate
/// nothing, and never panic.
#[derive(Debug)]
struct Child<'a> {
    spec: &'a SpawnSpec<'a>,
    arguments: StringArray<'a>,
    /// The arguments of a shell that runs the program as a script; the second is the script.
    shell: StringArray<'a>,
    environment: StringArray<'a>,
    reporter: BorrowedFd<'a>,
    parent: Pid,
}

impl<'a> Child<'a> {
    /// Prepares the child's data; the child writes its report to `reporter`.
    fn prepare(spec: &'a SpawnSpec<'a>, reporter: BorrowedFd<'a>) -> Self {
        let image = spec.image;
        let arguments = || image.arguments.iter().map(CString::as_c_str);
        let environment = image.environment.iter().chain(spec.environment);
        Self {
            spec,
            arguments: arguments().collect(),
            shell: [c"/bin/sh", c""].into_iter().chain(arguments().skip(1)).collect(),
            environment: environment.map(CString::as_c_str).collect(),
            reporter,
            parent: unistd::getpid(),
        }
    }

    /// The child's code. It returns if it could not execute.
    fn run(mut self) {
        let SpawnSpec { descriptors, ignored, attributes, kind, .. } = *self.spec;
        if !matches!(kind, ChildKind::Guard) {
            self.join_group(if let ChildKind::Job(foreground) = kind { foreground } else { None });
            // The child continues even if that is refused.
            let _ = attributes.restore();
        }
        for signal in 1..=HIGHEST_SIGNAL {
            // It fails for SIGKILL, SIGSTOP and the C library's own signals.
            let _ = system::set_ignored(signal, ignored.contains(signal));
        }
        if let ChildKind::Command(output) = kind {
            redirect(output);
        }
        for number in descriptors {
            system::keep_across_exec(*number);
        }
        let blocked = if let ChildKind::Guard = kind { SigSet::all() } else { SigSet::empty() };
        let _ = signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&blocked), None);
        let report = if self.is_late() { LATE as c_int } else { self.execute() };
        let _ = unistd::write(self.reporter, &report.to_ne_bytes());
        if let ChildKind::Guard = kind {
            // As a guard that can't be set up: not all supervisors wait for the report.
            system::exit(report);
        }
    }

    /// Makes the child die with its parent. Then creates a process group, and takes the foreground if it is handed over.
    fn join_group(&self, foreground: Option<(BorrowedFd<'_>, Pid)>) {
        let _ = prctl::set_pdeathsig(Signal::SIGKILL);
        if unistd::getppid() != self.parent {
            // The parent died before the setting took effect.
            system::exit(0);
        }
        let _ = unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
        // This comes before the exec, so that the program never reads in the background. SIGTTOU is still blocked.
        if let Some((terminal, from)) = foreground
            && unistd::tcgetpgrp(terminal) == Ok(from)
        {
            let _ = unistd::tcsetpgrp(terminal, unistd::getpid());
        }
    }

    fn is_late(&self) -> bool {
        // clock_gettime(2) is async-signal-safe.
        self.spec
            .deadline
            .is_some_and(|deadline| clock::now().as_nanos() >= u64::from_le(deadline.load(Ordering::Acquire)))
    }

    /// Like `execvp`: returns the errno if nothing could be executed.
    fn execute(&mut self) -> c_int {
        let mut denied = false;
        let mut error = libc::ENOENT;
        for path in &self.spec.image.paths {
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

/// The search path if the environment has no PATH: glibc's `_CS_PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program, its arguments and its environment.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The possible files of the program, in the order in which `execvp` would try them.
    pub(crate) paths: Vec<CString>,
    /// Its arguments, including the zeroth.
    pub(crate) arguments: Vec<CString>,
    /// Its environment: `NAME=value`.
    pub(crate) environment: Vec<CString>,
}

impl Image {
    /// `command` as `execvp` finds it, with the PATH of `environment` (not of this process).
    ///
    /// # Errors
    ///
    /// There is no command, or a string contains a NUL (`InvalidInput`).
    pub(crate) fn found_by_path(command: &[OsString], environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let name = command.first().ok_or(io::ErrorKind::InvalidInput)?;
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        Self::at(candidates(name, path), command.iter().cloned(), environment.iter().cloned())
    }

    /// `line` as a command line of the shell.
    ///
    /// # Errors
    ///
    /// A string contains a NUL (`InvalidInput`).
    pub(crate) fn of_shell(line: &OsStr, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let command = ["/bin/sh".into(), "-c".into(), line.to_owned()];
        Self::found_by_path(&command, environment)
    }

    /// The program at the first of `paths` that can be executed, with this environment.
    ///
    /// # Errors
    ///
    /// A string contains a NUL (`InvalidInput`).
    pub(crate) fn at(
        paths: impl IntoIterator<Item = PathBuf>,
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        Ok(Self {
            paths: c_strings(paths.into_iter().map(PathBuf::into_os_string))?,
            arguments: c_strings(arguments)?,
            environment: c_strings(environment.into_iter().map(|(name, value)| assignment(name, &value)))?,
        })
    }
}

/// The files that `execvp` tries for `name`: the path itself if it contains a slash, otherwise one per directory of the PATH, where an
/// empty entry is the working directory.
pub(crate) fn candidates(name: &OsStr, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let path = if is_searched(name) { path.unwrap_or(OsStr::new(DEFAULT_PATH)) } else { OsStr::new("") };
    let directories = path.as_bytes().split(|byte| *byte == b':').filter(move |_| !name.is_empty());
    directories.map(move |directory| Path::new(OsStr::from_bytes(directory)).join(name))
}

/// Whether the PATH is searched for a program of this name.
pub(crate) fn is_searched(name: &OsStr) -> bool {
    !name.as_bytes().contains(&b'/')
}

fn assignment(mut name: OsString, value: &OsStr) -> OsString {
    name.push("=");
    name.push(value);
    name
}

fn c_strings(texts: impl IntoIterator<Item = OsString>) -> io::Result<Vec<CString>> {
    texts.into_iter().map(|text| Ok(CString::new(text.into_vec())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &str, path: Option<&str>) -> Vec<String> {
        let paths = candidates(OsStr::new(name), path.map(OsStr::new));
        paths.map(|path| path.into_os_string().into_string().unwrap()).collect()
    }

    #[test]
    fn a_name_with_a_slash_is_a_path() {
        assert_eq!(tried("./job", Some("/bin")), ["./job"]);
        assert_eq!(tried("/opt/job", None), ["/opt/job"]);
    }

    #[test]
    fn a_name_is_tried_in_each_directory_of_the_path() {
        assert_eq!(tried("job", Some("/usr/bin:/bin")), ["/usr/bin/job", "/bin/job"]);
        assert_eq!(tried("job", None), ["/bin/job", "/usr/bin/job"]);
    }

    #[test]
    fn an_empty_entry_of_the_path_is_the_working_directory() {
        assert_eq!(tried("job", Some(":/bin:")), ["job", "/bin/job", "job"]);
        assert_eq!(tried("job", Some("")), ["job"]);
    }

    #[test]
    fn an_empty_name_has_no_path() {
        assert!(tried("", Some("/bin")).is_empty());
    }

    #[test]
    fn a_nul_within_is_refused() {
        let command = [OsString::from("job"), OsString::from("a\0b")];
        assert_eq!(Image::found_by_path(&command, &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Image::found_by_path(&[], &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
