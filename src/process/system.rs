//! Spawn, signal, reap: what takes raw system calls, behind functions that are safe to call.
//!
//! All unsafe code of the crate is here and in `librdkafka.rs`, and nothing else is here.
#![expect(unsafe_code, reason = "the one file that makes raw system calls")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong};
use std::io::{self, Write};
use std::mem;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use neli::clock;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::{self, Pid};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::process::image::Image;
use crate::process::signals::{self, Set};
use crate::process::terminal::Handover;

/// The signals that were ignored when this process started, as the bits of a [`Set`].
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);

/// Runs before Rust's runtime, which ignores SIGPIPE before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = note_ignored_signals;

extern "C" fn note_ignored_signals() {
    let mut ignored = 0;
    for signal in 1..=signals::HIGHEST {
        // SAFETY: a zeroed sigaction is a valid one, and with a null action sigaction(2) only writes to `present`.
        // A number that it refuses leaves the zeroes, which are SIG_DFL.
        let handler = unsafe {
            let mut present: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut present);
            present.sa_sigaction
        };
        if handler == libc::SIG_IGN {
            ignored |= signals::bit(signal);
        }
    }
    IGNORED_AT_START.store(ignored, Ordering::Relaxed);
}

/// See [`signals::ignored_at_start`].
pub(crate) fn ignored_at_start() -> Set {
    Set::from_bits(IGNORED_AT_START.load(Ordering::Relaxed))
}

/// Sets a signal back to its default.
pub(crate) fn set_default(signal: c_int) -> io::Result<()> {
    // SAFETY: SIG_DFL runs none of our code.
    if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Throws away every signal that waits, and sets all of them back to their default.
pub(crate) fn forget_signals() {
    for signal in 1..=signals::HIGHEST {
        // SAFETY: neither SIG_IGN, which throws away what waits, nor SIG_DFL runs any of our code.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Ends this process with `status`, and without what libraries do at an exit: OpenSSL frees then what librdkafka's threads still use,
/// which crashes them now and then (SIGSEGV: the status was 139 instead of 125).
pub fn exit_at_once(status: u8) -> ! {
    // A write that failed has been told where it was made.
    let _ = io::stdout().flush();
    // SAFETY: it takes an integer, and does not return.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Takes over a descriptor that this process was handed by its number, and keeps it from its children.
///
/// # Errors
///
/// When no such descriptor is open.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) with a number that is not open says so, and does nothing.
    Errno::result(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the number came from outside (an argument, a message), so nothing else here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The seals of a file in memory, by its descriptor's number, which may be anybody's.
///
/// # Errors
///
/// `EBADF` when no such descriptor is open; `EINVAL` when it is no file in memory that can be sealed.
pub(crate) fn seals_of(number: RawFd) -> io::Result<c_int> {
    // SAFETY: it reads a property of a number; one that is not open is an error.
    Ok(Errno::result(unsafe { libc::fcntl(number, libc::F_GET_SEALS) })?)
}

/// A descriptor of the process `pid`. It means that process for ever, whoever gets the number later.
///
/// # Errors
///
/// `ESRCH` when there is no such process; `ENOSYS` before Linux 5.3, `EPERM` where a sandbox hides the call.
pub fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers; the descriptor that it gives is new, so nothing else owns it.
    unsafe {
        let number = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(number).map_err(io::Error::other)?))
    }
}

/// Sends a signal to the process of a pidfd.
///
/// # Errors
///
/// `ESRCH` when it is gone; `EPERM` when it is a stranger's.
pub fn signal_pidfd(process: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    // SAFETY: with a null siginfo the kernel makes up that of kill(2), and reads no memory of ours.
    let answer = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, ptr::null::<libc::siginfo_t>(), 0)
    };
    Ok(Errno::result(answer).map(drop)?)
}

/// Sends a signal to one process. Only for a child that was not waited for, or where the kernel has no pidfd: the
/// number may be another's by then.
///
/// # Errors
///
/// `ESRCH` when it is gone; `EPERM` when it is a stranger's; `EINVAL` for what is no process (0, -1, init).
pub fn signal(pid: Pid, signal: c_int) -> io::Result<()> {
    if pid.as_raw() <= 1 {
        return Err(Errno::EINVAL.into());
    }
    // SAFETY: takes two integers.
    Ok(Errno::result(unsafe { libc::kill(pid.as_raw(), signal) }).map(drop)?)
}

/// Sends a signal to a process group. Only while its leader was not waited for.
///
/// # Errors
///
/// `ESRCH` when there is no such group; `EPERM` when all of it is strangers'; `EINVAL` for what is no group (0, 1).
pub fn signal_group(leader: Pid, signal: c_int) -> io::Result<()> {
    if leader.as_raw() <= 1 {
        return Err(Errno::EINVAL.into());
    }
    // SAFETY: takes two integers.
    Ok(Errno::result(unsafe { libc::kill(-leader.as_raw(), signal) }).map(drop)?)
}

/// A descriptor whose readiness tokio's reactor watches. To be called within a runtime.
///
/// # Errors
///
/// When the reactor can't watch it.
pub fn await_descriptor(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open until it is dropped and always gives the same number, and the AsyncFd owns it.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    watched.map_err(io::Error::from)
}

/// How the kernel shares the processors out to a thread: `SCHED_OTHER`, `SCHED_FIFO`, ... The nice value stands beside it,
/// and is kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[expect(clippy::unsafe_derive_deserialize, reason = "three numbers: the kernel refuses what makes no sense")]
pub struct Scheduling {
    policy: c_int,
    /// 0 but for `SCHED_FIFO` and `SCHED_RR`.
    pub(crate) priority: c_int,
    /// In nanoseconds. The kernel takes it away with real-time scheduling, and gives children none.
    timer_slack: c_ulong,
}

impl Scheduling {
    /// Before everything that is not real-time itself; the higher the `priority`, the more so.
    pub(crate) const fn real_time(priority: c_int) -> Self {
        Self { policy: libc::SCHED_FIFO, priority, timer_slack: 0 }
    }

    /// That of this thread.
    pub(crate) fn present() -> io::Result<Self> {
        let mut priority = 0;
        // SAFETY: a sched_param is one integer, which is ours to write to. (musl knows these calls by number alone.)
        unsafe {
            let policy = Errno::result(libc::syscall(libc::SYS_sched_getscheduler, 0))?;
            Errno::result(libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority))?;
            let timer_slack = Errno::result(libc::prctl(libc::PR_GET_TIMERSLACK))?;
            let timer_slack = c_ulong::try_from(timer_slack).map_err(io::Error::other)?;
            Ok(Self { policy: c_int::try_from(policy).map_err(io::Error::other)?, priority, timer_slack })
        }
    }

    /// Whether it goes before all that is not real-time itself, and children have it too.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(self.policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }

    /// The one that goes before it and before all that is not real-time; `None` where there is none.
    pub(crate) fn above(self) -> Option<Self> {
        /// The highest priority, and what a guard has above an ordinary job: 1 is for what it kills.
        const HIGHEST: c_int = 99;
        const ABOVE_ORDINARY: c_int = 2;
        match self.policy {
            libc::SCHED_FIFO | libc::SCHED_RR => (self.priority < HIGHEST).then(|| Self::real_time(self.priority + 1)),
            libc::SCHED_DEADLINE => None,
            _ => Some(Self::real_time(ABOVE_ORDINARY)),
        }
    }

    /// That of what this process kills: just below its own, so that it goes before everything else that this one goes
    /// before, and never lower than real-time.
    pub(crate) fn of_the_dying() -> Self {
        let own = Self::present().ok().filter(|own| own.is_real_time()).map_or(0, |own| own.priority);
        Self::real_time((own - 1).max(1))
    }

    /// Gives it to a thread; 0 is the one that calls.
    pub(crate) fn give(self, thread: Pid) -> io::Result<()> {
        let Self { policy, priority, .. } = self;
        // SAFETY: a sched_param is one integer, which is only read. Async-signal-safe: nothing but the call.
        let answer =
            unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread.as_raw(), policy, &raw const priority) };
        Ok(Errno::result(answer).map(drop)?)
    }

    /// Gives it to this thread, as it was there when it was [`present`](Self::present).
    pub(crate) fn resume(self) -> io::Result<()> {
        self.give(Pid::from_raw(0))?;
        // SAFETY: takes an integer. Async-signal-safe: nothing but the call.
        Ok(Errno::result(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, self.timer_slack) }).map(drop)?)
    }
}

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

/// What [`reap`] found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reaped {
    /// In the order in which the kernel gave it.
    pub changes: Vec<Change>,
    /// Whether there are children of this thread that have not ended. To a subreaper of one thread, none means that nothing is left that descends
    /// from it: whatever lives has a living parent, and loses it to the subreaper.
    pub children_left: bool,
}

/// Waits for every child of this thread that has ended or stopped, and for none that has not. Called by the first thread of a
/// process these are the children that it has started, and what the kernel hands on to the process (as to a subreaper, or to
/// process 1), which comes to the first thread. What another thread has started is that thread's own to wait for: librdkafka
/// runs `kinit` by system(3), and would take a ticket for refused whose status we had taken away.
#[must_use]
pub fn reap() -> Reaped {
    reap_after(|_| {})
}

/// The same, each child that has ended named to `before` first: until it is waited for its number is nobody else's.
///
/// (nix's `waitpid` throws away a child that a real-time signal killed.)
#[must_use]
pub fn reap_after(mut before: impl FnMut(Pid)) -> Reaped {
    // __WALL: children that end without SIGCHLD count too. __WNOTHREAD: those of other threads do not.
    const NOW: c_int = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    let mut reaped = Reaped::default();
    loop {
        // SAFETY: a zeroed siginfo is a valid one, and ours to write to. What waitid(2) finds is left to be waited for; when
        // it finds nothing the number stays 0.
        let found = unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            let found = NOW | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
            Errno::result(libc::waitid(libc::P_ALL, 0, &raw mut info, found)).map(|_| (info.si_pid(), info.si_code))
        };
        let (pid, code) = match found {
            Ok((pid, code)) if pid > 0 => (Pid::from_raw(pid), code),
            other => {
                reaped.children_left = other != Err(Errno::ECHILD);
                return reaped;
            }
        };
        if code != libc::CLD_STOPPED {
            before(pid);
        }
        let mut status = 0;
        // SAFETY: `status` is ours to write to.
        let waited = unsafe { libc::waitpid(pid.as_raw(), &raw mut status, NOW | libc::WUNTRACED) };
        // Not when it was stopped, and has gone on since.
        if waited > 0 {
            reaped.changes.extend(status_of(status).map(|status| Change { pid, status }));
        }
    }
}

/// Waits for one child, of whichever thread; whether it has ended, or is none of this process's.
#[must_use]
pub fn reap_one(pid: Pid) -> bool {
    let mut status = 0;
    // SAFETY: `status` is ours to write to.
    unsafe { libc::waitpid(pid.as_raw(), &raw mut status, libc::WNOHANG) != 0 }
}

fn status_of(status: c_int) -> Option<WaitStatus> {
    if libc::WIFEXITED(status) {
        Some(WaitStatus::Exited(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        Some(WaitStatus::Killed(libc::WTERMSIG(status)))
    } else if libc::WIFSTOPPED(status) {
        Some(WaitStatus::Stopped(libc::WSTOPSIG(status)))
    } else {
        None
    }
}

/// Two words of memory that other processes see.
#[derive(Debug)]
pub(crate) struct SharedWords(NonNull<[AtomicU64; 2]>);

impl SharedWords {
    /// How long the file must be.
    pub(crate) const SIZE: usize = size_of::<[AtomicU64; 2]>();

    /// Maps the first words of `file`.
    pub(crate) fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so that no other mapping is replaced.
        let address = unsafe { libc::mmap(ptr::null_mut(), Self::SIZE, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast()).map(Self).ok_or(io::Error::from(io::ErrorKind::InvalidData))
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64; 2];

    fn deref(&self) -> &Self::Target {
        // SAFETY: the mapping is page-aligned, lasts as long as `self`, and is only ever read and written atomically.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever borrowed from it is gone.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::SIZE) };
    }
}

/// How a child comes into the world.
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
    /// The rest of its nature.
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
        foreground: Option<Handover>,
    },
}

/// A child that may not have executed yet.
#[derive(Debug)]
pub(crate) struct PendingChild {
    /// Its number.
    pub(crate) pid: Pid,
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

/// In a report, what is no errno: the deadline had come.
const LATE: c_int = 0;

impl PendingChild {
    /// How far it has come; asked again after `Executed`, it says so again.
    pub(crate) fn progress(&self) -> Progress {
        let mut report = [0; size_of::<c_int>()];
        match unistd::read(&self.report, &mut report) {
            Ok(0) => Progress::Executed,
            Ok(_) if c_int::from_ne_bytes(report) == LATE => Progress::Late,
            Ok(_) => Progress::Failed(Errno::from_raw(c_int::from_ne_bytes(report))),
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
pub(crate) fn spawn(spec: &SpawnSpec<'_>) -> io::Result<PendingChild> {
    let (report, reporter) = unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let mut child = Child::prepare(spec, &reporter);
    let cgroup = match spec.kind {
        Kind::Guard => None,
        Kind::Command { cgroup, .. } | Kind::Job { cgroup, .. } => cgroup,
    };
    // SAFETY: the child only calls `run`, which keeps to what is allowed in the child of a process with threads.
    match unsafe { fork(cgroup) }? {
        // SAFETY: this is the child, and everything that `child` points to is borrowed by `spec` or owned by `child`.
        0 => unsafe { child.run() },
        pid => {
            let pid = Pid::from_raw(pid);
            if let Kind::Command { .. } | Kind::Job { .. } = spec.kind {
                // Here too, so that the group exists whoever is scheduled first. It fails when the child has executed.
                let _ = unistd::setpgid(pid, pid);
            }
            Ok(PendingChild { pid, report })
        }
    }
}

/// The child is born into `cgroup`, or where that can't be, as where there is none: what must not be lost is the job.
///
/// (To be put there by a write to `cgroup.procs` takes some milliseconds; to be born there, none: both measured.)
///
/// # Safety
///
/// Until it executes, the child makes async-signal-safe calls alone, and none that asks the C library for its own thread's
/// number.
unsafe fn fork(cgroup: Option<BorrowedFd<'_>>) -> io::Result<c_int> {
    // SAFETY: the contract is that of both calls; the C library is told of the second one's child alone.
    unsafe {
        let born = cgroup.and_then(|cgroup| clone_into(cgroup).ok());
        Ok(Errno::result(born.unwrap_or_else(|| libc::fork()))?)
    }
}

/// The arguments of clone3(2), as far as a fork into a control group needs them.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    unused: [u64; 3],
    exit_signal: u64,
    unused_too: [u64; 5],
    cgroup: u64,
}

/// # Safety
///
/// As for [`fork`].
unsafe fn clone_into(cgroup: BorrowedFd<'_>) -> io::Result<c_int> {
    /// The C library's crate has it as a number too small to hold it.
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let arguments = CloneArguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        cgroup: u64::from(cgroup.as_raw_fd().cast_unsigned()),
        ..CloneArguments::default()
    };
    // SAFETY: the arguments are only read. Without a stack of its own, and without shared memory, the child goes on as that
    // of a fork does.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) };
    c_int::try_from(Errno::result(answer)?).map_err(io::Error::other)
}

/// Whether children can be born into a control group, and live: tried with one that does nothing.
///
/// # Errors
///
/// `ENOSYS` before Linux 5.3, `EINVAL` before 5.7, either or `EPERM` where a sandbox hides the call; `EACCES` where
/// we may put nobody there; `Interrupted` when the child was killed.
pub(crate) fn try_birth_in(cgroup: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the child makes one call that is async-signal-safe, and does not come back.
    let child = unsafe {
        match clone_into(cgroup)? {
            0 => libc::_exit(0),
            child => child,
        }
    };
    let mut status = 0;
    // SAFETY: `status` is ours to write to.
    Errno::result(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    if status_of(status) == Some(WaitStatus::Exited(0)) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

/// Whether a file has an extended attribute of this name.
pub(crate) fn has_attribute(file: BorrowedFd<'_>, name: &CStr) -> bool {
    // SAFETY: `name` ends with a NUL; with a size of 0 nothing is written.
    unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), ptr::null_mut(), 0) >= 0 }
}

/// What the child needs between fork and exec, made before the fork.
struct Child<'a> {
    paths: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    /// The arguments of a shell that runs the program as a script; the second is the script.
    shell: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    descriptors: &'a [RawFd],
    reporter: RawFd,
    parent: Pid,
    ignored: Set,
    kind: Kind<'a>,
}

impl<'a> Child<'a> {
    fn prepare(spec: &SpawnSpec<'a>, reporter: &OwnedFd) -> Self {
        let image = spec.image;
        let script = [c"/bin/sh".as_ptr(), ptr::null()].into_iter();
        Self {
            paths: image.paths.iter().map(|path| path.as_ptr()).collect(),
            arguments: null_terminated(image.arguments.iter()),
            shell: script.chain(null_terminated(image.arguments.iter().skip(1))).collect(),
            environment: null_terminated(image.environment.iter().chain(spec.environment)),
            descriptors: spec.descriptors,
            reporter: reporter.as_raw_fd(),
            parent: unistd::getpid(),
            ignored: spec.ignored,
            kind: spec.kind,
        }
    }

    /// The child's whole life until it executes: async-signal-safe calls alone, no memory taken, nothing that panics.
    ///
    /// # Safety
    ///
    /// To be called once, in the child of a fork, with every pointer of `self` still good.
    unsafe fn run(&mut self) -> ! {
        // SAFETY: plain system calls; the pointers are good by the contract, and each list of them ends with a null.
        unsafe {
            if let Kind::Command { scheduling, .. } | Kind::Job { scheduling, .. } = self.kind {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != self.parent.as_raw() {
                    // It died before it could take us with it.
                    libc::_exit(0);
                }
                libc::setpgid(0, 0);
                // Before it executes, so that it never reads in the background. SIGTTOU is still blocked.
                if let Kind::Job { foreground: Some(Handover { terminal, from }), .. } = self.kind
                    && libc::tcgetpgrp(terminal) == from.as_raw()
                {
                    libc::tcsetpgrp(terminal, libc::getpid());
                }
                if let Some(scheduling) = scheduling {
                    // To give up what is better is always allowed.
                    let _ = scheduling.resume();
                }
            }
            for signal in 1..=signals::HIGHEST {
                libc::signal(signal, if self.ignored.contains(signal) { libc::SIG_IGN } else { libc::SIG_DFL });
            }
            if let Kind::Command { output, .. } = self.kind {
                let output = output.map_or(libc::STDERR_FILENO, |output| output.as_raw_fd());
                libc::close(libc::STDIN_FILENO);
                // It gets the number that was just closed.
                libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
                libc::dup2(output, libc::STDOUT_FILENO);
                libc::dup2(output, libc::STDERR_FILENO);
                // Before Linux 5.11 it has what `neli-run` inherited, as the job has.
                libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            }
            for number in self.descriptors {
                libc::fcntl(*number, libc::F_SETFD, 0);
            }
            let mut mask: libc::sigset_t = mem::zeroed();
            if let Kind::Guard = self.kind {
                libc::sigfillset(&raw mut mask);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
            let report = if self.is_late() { LATE } else { self.execute() };
            libc::write(self.reporter, (&raw const report).cast(), size_of::<c_int>());
            libc::_exit(127)
        }
    }

    fn is_late(&self) -> bool {
        let deadline = match self.kind {
            Kind::Command { deadline: Some(deadline), .. } | Kind::Job { deadline, .. } => deadline,
            Kind::Command { deadline: None, .. } | Kind::Guard => return false,
        };
        // clock_gettime(2) is async-signal-safe.
        clock::now().as_nanos() >= u64::from_le(deadline.load(Ordering::Acquire))
    }

    /// As `execvp`: returns the error when nothing could be executed.
    ///
    /// # Safety
    ///
    /// As for `run`.
    unsafe fn execute(&mut self) -> c_int {
        let mut denied = false;
        let mut error = libc::ENOENT;
        for path in &self.paths {
            // SAFETY: the pointers are good by the contract. `shell` has two elements before the arguments.
            unsafe {
                libc::execve(*path, self.arguments.as_ptr(), self.environment.as_ptr());
                error = *libc::__errno_location();
                if error == libc::ENOEXEC {
                    *self.shell.as_mut_ptr().add(1) = *path;
                    libc::execve(c"/bin/sh".as_ptr(), self.shell.as_ptr(), self.environment.as_ptr());
                    error = *libc::__errno_location();
                }
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

fn null_terminated<'a>(texts: impl Iterator<Item = &'a CString>) -> Vec<*const c_char> {
    texts.map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}
