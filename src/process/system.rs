//! The raw system calls, each behind a safe function. Their purpose is explained in the modules that use them.
//!
//! All unsafe code of this crate is here and below, and nothing else is here.
#![expect(unsafe_code, reason = "the one module that makes raw system calls")]

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::process::child::Child;
use crate::process::signals::{self, Set};

pub(crate) mod libraries;
mod pidfd;

pub use pidfd::{open_pidfd, signal_pidfd, signal_pidfd_group};

/// The signals that were ignored when this process started, as the bits of a [`Set`].
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);

/// Runs before Rust's runtime, which ignores SIGPIPE before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = note_ignored_signals;

extern "C" fn note_ignored_signals() {
    let mut ignored = Set::EMPTY;
    for signal in 1..=signals::HIGHEST {
        // SAFETY: a zeroed sigaction is a valid one, and with a null action sigaction(2) only writes to `present`.
        // A number that it refuses leaves the zeroes, which are SIG_DFL.
        let handler = unsafe {
            let mut present: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut present);
            present.sa_sigaction
        };
        if handler == libc::SIG_IGN {
            ignored = ignored.with(signal);
        }
    }
    IGNORED_AT_START.store(ignored.bits(), Ordering::Relaxed);
}

/// See [`signals::ignored_at_start`].
pub(crate) fn ignored_at_start() -> Set {
    Set::from_bits(IGNORED_AT_START.load(Ordering::Relaxed))
}

/// Makes glibc's threads share this many heaps; it would give each of the first threads (eight a processor) a heap of
/// its own. For processes whose threads allocate little: a heap costs time at the start, and memory.
pub(crate) fn share_heaps(count: c_int) {
    // SAFETY: mallopt only sets a number, and is called before there are threads. A refusal leaves what was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, count);
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = count;
}

/// What a signal does to a process that does not handle it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Disposition {
    /// What the kernel does with it.
    Default,
    /// Nothing, and what waits is thrown away.
    Ignored,
}

/// Sets what a signal does.
///
/// # Errors
///
/// `EINVAL` when it is no signal, or one whose disposition is fixed.
pub(crate) fn set_disposition(signal: c_int, disposition: Disposition) -> io::Result<()> {
    let handler = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignored => libc::SIG_IGN,
    };
    // SAFETY: neither runs any of our code. Async-signal-safe: nothing but the call.
    if unsafe { libc::signal(signal, handler) } == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ends this process with `status`, and without what libraries do at an exit: OpenSSL frees then what librdkafka's threads
/// still use, which crashes them now and then (SIGSEGV: the status was 139 instead of 125).
pub fn exit_at_once(status: u8) -> ! {
    // A failed write was reported where it was made.
    let _ = io::stdout().flush();
    exit(i32::from(status))
}

/// Ends this process, and does nothing else.
pub(crate) fn exit(status: c_int) -> ! {
    // SAFETY: it takes an integer, and does not return. Async-signal-safe: nothing but the call.
    unsafe { libc::_exit(status) }
}

/// Takes over a descriptor that this process was handed by its number, and keeps it from its children.
///
/// # Errors
///
/// When no such descriptor is open.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) with a number that is not open returns an error and does nothing else.
    Errno::result(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the number came from outside (an argument, a message), so nothing else here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Has the descriptor with this number stay open at an exec. Nothing happens where none is open.
pub(crate) fn keep_across_exec(number: RawFd) {
    // SAFETY: it changes a property of a number; one that is not open is an error. Async-signal-safe: nothing but the call.
    unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
}

/// Has every descriptor from this number on close at an exec. Nothing happens before Linux 5.11.
pub(crate) fn close_at_exec_from(lowest: c_uint) {
    // SAFETY: takes integers, and closes nothing yet. Async-signal-safe: nothing but the call.
    unsafe { libc::syscall(libc::SYS_close_range, lowest, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
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

/// How many columns the terminal has that this descriptor is open on; none where it is open on something else.
pub(crate) fn columns(terminal: BorrowedFd<'_>) -> Option<usize> {
    window_size(terminal).map(|size| size.ws_col.into()).filter(|columns| *columns > 0)
}

/// The same of its rows.
pub(crate) fn rows(terminal: BorrowedFd<'_>) -> Option<usize> {
    window_size(terminal).map(|size| size.ws_row.into()).filter(|rows| *rows > 0)
}

fn window_size(terminal: BorrowedFd<'_>) -> Option<libc::winsize> {
    // SAFETY: a zeroed winsize is a valid one, and the call only writes to it.
    unsafe {
        let mut size: libc::winsize = mem::zeroed();
        Errno::result(libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size)).ok()?;
        Some(size)
    }
}

/// Sends a signal to one process. Only for a child that was not waited for, or where the kernel has no pidfd: the
/// number may be another's by then.
///
/// # Errors
///
/// `ESRCH` when it is gone; `EPERM` when it is another user's; `EINVAL` for what is no process (0, -1, init).
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
/// `ESRCH` when there is no such group; `EPERM` when all of it is other users'; `EINVAL` for what is no group (0, 1).
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

/// Policy and priority of this thread's scheduling. (musl knows these calls by number alone.)
pub(crate) fn scheduler() -> io::Result<(c_int, c_int)> {
    let mut priority = 0;
    // SAFETY: a sched_param is one integer, which is ours to write to.
    let policy = unsafe {
        Errno::result(libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority))?;
        Errno::result(libc::syscall(libc::SYS_sched_getscheduler, 0))?
    };
    Ok((c_int::try_from(policy).map_err(io::Error::other)?, priority))
}

/// Sets a thread's scheduling; 0 is the one that calls.
pub(crate) fn set_scheduler(thread: Pid, policy: c_int, priority: c_int) -> io::Result<()> {
    // SAFETY: a sched_param is one integer, which is only read. Async-signal-safe: nothing but the call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread.as_raw(), policy, &raw const priority) };
    Ok(Errno::result(answer).map(drop)?)
}

/// The next child that `waitid` finds with these flags, and its `si_code`; it is left to be waited for. `None` when there are
/// children, and nothing has happened to any.
pub(crate) fn find_waitable_child(flags: c_int) -> nix::Result<Option<(Pid, c_int)>> {
    // SAFETY: a zeroed siginfo is a valid one, and ours to write to. When nothing is found the number stays 0.
    let (pid, code) = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        Errno::result(libc::waitid(libc::P_ALL, 0, &raw mut info, flags | libc::WNOWAIT))?;
        (info.si_pid(), info.si_code)
    };
    Ok((pid > 0).then_some((Pid::from_raw(pid), code)))
}

/// Waits for a child with `waitpid`'s flags; its status, and `None` when nothing has happened to it.
pub(crate) fn wait_for(pid: Pid, flags: c_int) -> nix::Result<Option<c_int>> {
    let mut status = 0;
    // SAFETY: `status` is ours to write to.
    let waited = Errno::result(unsafe { libc::waitpid(pid.as_raw(), &raw mut status, flags) })?;
    Ok((waited > 0).then_some(status))
}

/// Two 64-bit words of memory that other processes see.
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
        // SAFETY: the mapping is `self`'s own, from which nothing is borrowed any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::SIZE) };
    }
}

/// Forks, and has the child [run](Child::run). It is born into `cgroup`, or where that can't be, as where there is none: what
/// must not be lost is the job.
///
/// (To be put there by a write to `cgroup.procs` takes some milliseconds; to be born there, none: both measured.)
pub(crate) fn fork(cgroup: Option<BorrowedFd<'_>>, child: Child<'_>) -> io::Result<Pid> {
    // SAFETY: the child only calls `run`, which only makes calls that are allowed in the child of a process with
    // threads. The C library does not know of a child that was created in a control group, and is not asked there for
    // the thread's id.
    let answer = unsafe {
        let cloned = cgroup.and_then(|cgroup| clone_into(cgroup).ok());
        cloned.unwrap_or_else(|| libc::fork())
    };
    match Errno::result(answer)? {
        0 => child.run(),
        pid => Ok(Pid::from_raw(pid)),
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

/// As fork(2), into a control group.
///
/// # Safety
///
/// Until it executes, the child only makes async-signal-safe calls, and none that asks the C library for its own
/// thread's id.
unsafe fn clone_into(cgroup: BorrowedFd<'_>) -> io::Result<c_int> {
    /// The C library's crate has this constant as a type too small to hold it.
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
/// this process may put none there; `Interrupted` when the child was killed.
pub(crate) fn try_birth_in(cgroup: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the child makes one call that is async-signal-safe, and does not come back.
    let child = unsafe {
        match clone_into(cgroup)? {
            0 => exit(0),
            child => Pid::from_raw(child),
        }
    };
    // 0 is an exit with status 0.
    if wait_for(child, 0)? == Some(0) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

/// A null-terminated array of C strings, as execve(2) takes it.
#[derive(Debug)]
pub(crate) struct StringArray<'a> {
    pointers: Vec<*const c_char>,
    strings: PhantomData<&'a CStr>,
}

impl<'a> StringArray<'a> {
    /// Puts another string in this place, if there is one there. It takes no memory.
    pub(crate) fn replace(&mut self, index: usize, string: &'a CStr) {
        if let Some(pointer) = self.pointers.get_mut(index).filter(|pointer| !pointer.is_null()) {
            *pointer = string.as_ptr();
        }
    }
}

impl<'a> FromIterator<&'a CStr> for StringArray<'a> {
    fn from_iter<I: IntoIterator<Item = &'a CStr>>(strings: I) -> Self {
        let pointers = strings.into_iter().map(CStr::as_ptr).chain([ptr::null()]).collect();
        Self { pointers, strings: PhantomData }
    }
}

/// Executes a program in place of this one; the errno when that fails.
pub(crate) fn execute(path: &CStr, arguments: &StringArray<'_>, environment: &StringArray<'_>) -> c_int {
    // SAFETY: `path` ends with a NUL, as each string of the arrays does, which live as long as these, and end with a null.
    // Async-signal-safe: nothing but the call.
    unsafe {
        libc::execve(path.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr());
    }
    Errno::last_raw()
}

/// Whether a file has an extended attribute of this name.
pub(crate) fn has_attribute(file: BorrowedFd<'_>, name: &CStr) -> bool {
    // SAFETY: `name` ends with a NUL; with a size of 0 nothing is written.
    unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), ptr::null_mut(), 0) >= 0 }
}
