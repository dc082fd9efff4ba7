//! The raw system calls, each in a safe function. The modules that use them explain their purpose.
//!
//! All unsafe code of this crate is here, and nothing else.

#![expect(unsafe_code, reason = "the one module that makes raw system calls")]

use std::alloc::{self, Layout};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, mem};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The highest signal number of Linux, the real-time ones included.
pub const HIGHEST_SIGNAL: c_int = 64;

/// The signals that were ignored when this process started: signal `n` is bit `n - 1`.
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);

/// A function that runs before Rust's runtime, because the runtime ignores SIGPIPE before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = note_ignored_signals;

extern "C" fn note_ignored_signals() {
    let mut ignored = 0;
    for signal in 1..=HIGHEST_SIGNAL {
        // SAFETY: a zeroed sigaction is a valid one, and with a null action sigaction(2) only writes to `present`.
        // A number that it refuses leaves the zeroes, which are SIG_DFL.
        let handler = unsafe {
            let mut present: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut present);
            present.sa_sigaction
        };
        if handler == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED_AT_START.store(ignored, Ordering::Relaxed);
}

/// The bits of the signals that were ignored when this process started, before Rust's runtime ignored SIGPIPE.
pub(crate) fn ignored_at_start() -> u64 {
    IGNORED_AT_START.load(Ordering::Relaxed)
}

/// Makes glibc's threads share two heaps. Otherwise it would give each of the first threads (eight for each processor) a heap of its own, which
/// costs time at the start, and memory; these threads allocate little, and rarely at the same time. Must be called before there are threads.
pub(crate) fn share_heaps() {
    // SAFETY: mallopt only sets a number, and is called before there are threads. If it refuses, the old value stays.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Returns to the kernel what glibc keeps of freed memory.
pub(crate) fn give_back_heap() {
    // SAFETY: it only unmaps pages that hold no memory of anybody.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Releases the pages of the libraries' files that only the start needed, two megabytes. The loader has read all parts with relocations,
/// mainly in libcrypto, and the kernel counts the pages around them too. Pages that are used again, as for TLS, are loaded at once. The
/// program's own pages are kept: a handover needs them, and they are shared with its guard.
pub(crate) fn give_back_libraries() {
    // Without the list they stay.
    let mappings = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for pages in unwritten_of_libraries(&mappings) {
        let first = ptr::with_exposed_provenance_mut(pages.start);
        // SAFETY: the kernel says that no page was written to, and no page can be: each has the same content when it is loaded again.
        unsafe { libc::madvise(first, pages.len(), libc::MADV_DONTNEED) };
    }
}

/// The read-only mappings of libraries, in the text of `smaps`, of which no page was written to, not even by the loader.
fn unwritten_of_libraries(mappings: &str) -> impl Iterator<Item = Range<usize>> {
    let mut library = None;
    mappings.lines().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let (first, second, last) = (words.next()?, words.next()?, words.next_back());
        if let Some((start, end)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).ok();
            let is_read_only = !second.contains('w') && last.is_some_and(|path| path.contains(".so"));
            library = address(start).zip(address(end)).filter(|_| is_read_only);
        } else if (first, second) == ("Anonymous:", "0") {
            return library.take().map(|(start, end)| start..end);
        }
        None
    })
}

/// Has a signal ignored, and pending ones discarded, or gives it the kernel's default action.
///
/// # Errors
///
/// `EINVAL` if it is not a signal, or one whose action is fixed.
pub(crate) fn set_ignored(signal: c_int, is_ignored: bool) -> io::Result<()> {
    let action = if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither action runs code of ours. Async-signal-safe: there is no other call.
    if unsafe { libc::signal(signal, action) } == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ends this process with `status`, without the exit handlers of libraries. OpenSSL's handler would free memory that librdkafka's threads
/// still use, which sometimes crashes them (SIGSEGV: the status was 139 instead of 125).
pub fn exit_at_once(status: u8) -> ! {
    // If a write has failed, its caller has reported it.
    let _ = io::stdout().flush();
    exit(i32::from(status))
}

/// Ends this process without any other action.
pub(crate) fn exit(status: c_int) -> ! {
    // SAFETY: it takes an integer, and does not return. Async-signal-safe: there is no other call.
    unsafe { libc::_exit(status) }
}

/// Takes over a descriptor that this process got by its number, and makes it close-on-exec.
///
/// # Errors
///
/// No such descriptor is open.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) with a number that is not open returns an error and has no other effect.
    Errno::result(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the number came from another process (an argument, a message), so no other code here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Keeps the descriptor with this number open at an exec. Does nothing if it is not open.
pub(crate) fn keep_across_exec(number: RawFd) {
    // SAFETY: it changes a property of a number; one that is not open is an error. Async-signal-safe: there is no other call.
    unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
}

/// Makes every descriptor from this number on close-on-exec. Does nothing before Linux 5.11.
pub(crate) fn close_at_exec_from(lowest: c_uint) {
    // SAFETY: it takes integers, and closes no descriptor yet. Async-signal-safe: there is no other call.
    unsafe { libc::syscall(libc::SYS_close_range, lowest, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// The seals of a file in memory, by a descriptor number from another process.
///
/// # Errors
///
/// `EBADF` if no such descriptor is open; `EINVAL` if it is not a file in memory that can be sealed.
pub(crate) fn seals_of(number: RawFd) -> io::Result<c_int> {
    // SAFETY: it reads a property of a number; one that is not open is an error.
    Ok(Errno::result(unsafe { libc::fcntl(number, libc::F_GET_SEALS) })?)
}

/// The columns and rows of this terminal, 0 if they are unknown; `None` if the descriptor is not a terminal.
pub(crate) fn window_size(terminal: BorrowedFd<'_>) -> Option<libc::winsize> {
    // SAFETY: a zeroed winsize is a valid one, and the call only writes to it.
    unsafe {
        let mut size: libc::winsize = mem::zeroed();
        Errno::result(libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size)).ok()?;
        Some(size)
    }
}

/// Sends a signal to one process. Use it only for a child that was not waited for, or if the kernel has no pidfds, because the pid may be
/// reused.
///
/// # Errors
///
/// `ESRCH` if it is gone; `EPERM` if it belongs to another user; `EINVAL` for a pid that is no process (0, -1) or init.
pub(crate) fn signal(pid: Pid, signal: c_int) -> io::Result<()> {
    if pid.as_raw() <= 1 {
        return Err(Errno::EINVAL.into());
    }
    // SAFETY: it takes two integers.
    Ok(Errno::result(unsafe { libc::kill(pid.as_raw(), signal) }).map(drop)?)
}

/// Sends a signal to a process group. Only allowed while its leader was not waited for.
///
/// # Errors
///
/// `ESRCH` if there is no such group; `EPERM` if all its processes belong to other users; `EINVAL` for a pid that is no group (0, 1).
pub(crate) fn signal_group(leader: Pid, signal: c_int) -> io::Result<()> {
    if leader.as_raw() <= 1 {
        return Err(Errno::EINVAL.into());
    }
    // SAFETY: it takes two integers.
    Ok(Errno::result(unsafe { libc::kill(-leader.as_raw(), signal) }).map(drop)?)
}

/// A descriptor that is registered with tokio's reactor. Must be called within a runtime.
///
/// # Errors
///
/// The reactor can't watch it.
pub(crate) fn await_descriptor(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open until it is dropped and always returns the same number, and the AsyncFd owns it.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    watched.map_err(io::Error::from)
}

/// Policy and priority of this thread. (musl has these calls only by their numbers.)
pub(crate) fn scheduler() -> io::Result<(c_int, c_int)> {
    let mut priority = 0;
    // SAFETY: a sched_param is one integer, and it is ours, so the call may write to it.
    let policy = unsafe {
        Errno::result(libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority))?;
        Errno::result(libc::syscall(libc::SYS_sched_getscheduler, 0))?
    };
    Ok((c_int::try_from(policy).map_err(io::Error::other)?, priority))
}

/// Sets a thread's scheduling; 0 is the calling one.
pub(crate) fn set_scheduler(thread: Pid, policy: c_int, priority: c_int) -> io::Result<()> {
    // SAFETY: a sched_param is one integer, which is only read. Async-signal-safe: there is no other call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread.as_raw(), policy, &raw const priority) };
    Ok(Errno::result(answer).map(drop)?)
}

/// The next child that `waitid` finds with these flags, with its `si_code`; the child is not waited for. `None` if there are children,
/// but nothing has happened to any.
pub(crate) fn find_waitable_child(flags: c_int) -> nix::Result<Option<(Pid, c_int)>> {
    waitid(libc::P_ALL, 0, flags)
}

/// Whether this child, which was not waited for, has ended; false if another process traces it. This opens no file.
pub(crate) fn has_ended(child: Pid) -> bool {
    waitid(libc::P_PID, child.as_raw().cast_unsigned(), libc::WEXITED | libc::WNOHANG | libc::__WALL) != Ok(None)
}

fn waitid(kind: libc::idtype_t, id: libc::id_t, flags: c_int) -> nix::Result<Option<(Pid, c_int)>> {
    // SAFETY: a zeroed siginfo is a valid one, and it is ours, so the call may write to it. If no child is found, the number stays 0.
    let (pid, code) = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        Errno::result(libc::waitid(kind, id, &raw mut info, flags | libc::WNOWAIT))?;
        (info.si_pid(), info.si_code)
    };
    Ok((pid > 0).then_some((Pid::from_raw(pid), code)))
}

/// Waits for a child with `waitpid`'s flags; returns its status, or `None` if nothing has happened to it.
pub(crate) fn wait_for(pid: Pid, flags: c_int) -> nix::Result<Option<c_int>> {
    let mut status = 0;
    // SAFETY: `status` is ours, so the call may write to it.
    let waited = Errno::result(unsafe { libc::waitpid(pid.as_raw(), &raw mut status, flags) })?;
    Ok((waited > 0).then_some(status))
}

/// The hard limit of file locks of a process.
///
/// # Errors
///
/// `ESRCH` if there is no such process; `EPERM` if it is another user's.
pub(crate) fn limit_of_locks(pid: Pid) -> nix::Result<u64> {
    let mut limit = [0_u64; 2];
    // SAFETY: with null for the new limit the call only writes the two numbers of the present one, soft and hard, and they are ours.
    let answer = unsafe {
        let new = ptr::null::<[u64; 2]>();
        libc::syscall(libc::SYS_prlimit64, pid.as_raw(), libc::RLIMIT_LOCKS, new, &raw mut limit)
    };
    Errno::result(answer)?;
    Ok(limit[1])
}

/// A value in memory that is shared with other processes, among them all children. A fork copies no page of it, so a write never needs memory.
#[derive(Debug)]
pub(crate) struct Shared<T>(NonNull<T>);

/// Two 64-bit words that are shared with the processes that map the same file.
pub(crate) type SharedWords = Shared<[AtomicU64; 2]>;

impl SharedWords {
    /// The required length of the file.
    pub(crate) const SIZE: usize = size_of::<[AtomicU64; 2]>();

    /// Maps the beginning of `file`.
    pub(crate) fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        map_shared(file.as_raw_fd(), 0).map(Self)
    }
}

impl<T> Shared<T> {
    /// Moves the value to a page of its own. Children may not use it.
    pub(crate) fn new(value: T) -> Self {
        let page = map_shared::<T>(-1, libc::MAP_ANONYMOUS);
        let page = page.unwrap_or_else(|_| alloc::handle_alloc_error(Layout::new::<T>()));
        // SAFETY: the mapping is as long as the value, and nothing else uses it; a page is aligned for each type that the program has.
        unsafe { page.write(value) };
        Self(page)
    }
}

/// Maps memory for a `T`: the beginning of a file, or none with `MAP_ANONYMOUS`.
fn map_shared<T>(file: RawFd, kind: c_int) -> io::Result<NonNull<T>> {
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | kind);
    // SAFETY: the kernel chooses the address, so that the mapping replaces no other one.
    let address = unsafe { libc::mmap(ptr::null_mut(), size_of::<T>(), rights, kind, file, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or(io::Error::from(io::ErrorKind::InvalidData))
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is page-aligned, and lasts as long as `self`. This process alone writes to it, but for words that are read atomically.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the value was moved here, or needs no drop; nothing borrows from it any more, and the mapping is `self`'s own.
        unsafe {
            self.0.drop_in_place();
            libc::munmap(self.0.as_ptr().cast(), size_of::<T>());
        }
    }
}

// SAFETY: it owns its value, as a `Box` does.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

/// The exit status if the child could not execute; a shell uses it for a command that was not found.
const NOT_EXECUTED: c_int = 127;

/// Forks a child that runs this code, which exits. If the parent may have threads, the code makes async-signal-safe calls only, allocates nothing and
/// does not panic; and no thread may [keep its stack from children](keep_stack_from_children): the C library's child writes to all of them.
pub(crate) fn fork(child: impl FnOnce()) -> io::Result<Pid> {
    // SAFETY: the child only runs `child`, which only makes calls that are allowed in the child of a process with threads, or the process has none.
    run_in_child(unsafe { libc::fork() }, child)
}

/// Forks a child that runs this code, which executes a program or exits: it makes async-signal-safe calls only, allocates nothing, does not panic, and
/// asks the C library for no thread's id, since that knows nothing of this child. The child is created in `cgroup` if possible, and otherwise in the
/// parent's group, because the job is more important.
///
/// (Moving it by a write to `cgroup.procs` takes some milliseconds, creating it there takes none: both were measured.)
pub(crate) fn fork_to_execute(cgroup: Option<BorrowedFd<'_>>, child: impl FnOnce()) -> io::Result<Pid> {
    // With a signal for its end and no more, clone(2) is fork(2). On IBM Z it takes the stack first.
    let (none, ends_with) = (c_ulong::MIN, c_ulong::from(libc::SIGCHLD.cast_unsigned()));
    let (first, second) = if cfg!(target_arch = "s390x") { (none, ends_with) } else { (ends_with, none) };
    // SAFETY: the child only runs `child`, which only makes calls that are allowed in such a child.
    let answer = unsafe {
        let cloned = cgroup.and_then(|cgroup| clone_into(cgroup).ok());
        cloned.map_or_else(|| libc::syscall(libc::SYS_clone, first, second, none, none, none), Into::into)
    };
    run_in_child(c_int::try_from(answer).map_err(io::Error::other)?, child)
}

/// Runs the code where a fork has answered 0, in the child, which then exits.
fn run_in_child(answer: c_int, child: impl FnOnce()) -> io::Result<Pid> {
    match Errno::result(answer)? {
        0 => {
            child();
            exit(NOT_EXECUTED)
        }
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Keeps the stack of the calling thread out of all children of this process. A fork would share its pages, and each one that the thread writes to
/// before the child has executed would be copied, which needs memory. From now on children are only made by [`fork_to_execute`].
pub(crate) fn keep_stack_from_children() {
    // SAFETY: zeroed attributes are overwritten by those of this thread, and destroyed. The stack is this thread's own, no child uses it, and the call
    // changes nothing in this process.
    unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return;
        }
        let (mut lowest, mut size) = (ptr::null_mut(), 0);
        if libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size) == 0 {
            libc::madvise(lowest, size, libc::MADV_DONTFORK);
        }
        libc::pthread_attr_destroy(&raw mut attributes);
    }
}

/// Like fork(2), but creates the child in a control group.
///
/// # Safety
///
/// Until it executes, the child may only make async-signal-safe calls, and none that asks the C library for its own thread's id.
unsafe fn clone_into(cgroup: BorrowedFd<'_>) -> io::Result<c_int> {
    /// The type of the libc crate's constant is too small for this value.
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // The numbers of clone3(2)'s structure, which the libc crate has for machines of 64 bits alone: the flags, the signal at the exit, the group.
    let mut arguments = [0; 11];
    arguments[0] = CLONE_INTO_CGROUP;
    arguments[4] = u64::from(libc::SIGCHLD.cast_unsigned());
    arguments[10] = u64::from(cgroup.as_raw_fd().cast_unsigned());
    // SAFETY: the arguments are only read. Without a stack of its own and without shared memory, the child continues like that of a fork.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) };
    c_int::try_from(Errno::result(answer)?).map_err(io::Error::other)
}

/// Checks that a child can be created in a control group and run, with a child that only exits.
///
/// # Errors
///
/// `ENOSYS` before Linux 5.3, `EINVAL` before 5.7, either of these or `EPERM` if a sandbox hides the call; `EACCES` if this process may not
/// create one there; `Interrupted` if the child was killed.
pub(crate) fn try_birth_in(cgroup: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the child makes one call, which is async-signal-safe and does not return.
    let child = run_in_child(unsafe { clone_into(cgroup) }?, || exit(0))?;
    // 0 means an exit with status 0.
    if wait_for(child, 0)? == Some(0) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

/// A null-terminated array of C strings for execve(2).
#[derive(Debug)]
pub(crate) struct StringArray<'a> {
    pointers: Vec<*const c_char>,
    strings: PhantomData<&'a CStr>,
}

impl<'a> StringArray<'a> {
    /// Replaces the string at this index, if there is one. It allocates nothing.
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

/// Executes a program in place of this one; returns the errno on failure.
pub(crate) fn execute(path: &CStr, arguments: &StringArray<'_>, environment: &StringArray<'_>) -> c_int {
    // SAFETY: `path` and each string of the arrays end with a NUL. The strings live as long as the arrays, which end with a null pointer.
    // Async-signal-safe: there is no other call.
    unsafe {
        libc::execve(path.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr());
    }
    Errno::last_raw()
}

/// Whether a file has an extended attribute with this name.
pub(crate) fn has_attribute(file: BorrowedFd<'_>, name: &CStr) -> bool {
    // SAFETY: `name` ends with a NUL; with a size of 0 the call writes nothing.
    unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), ptr::null_mut(), 0) >= 0 }
}

/// `PIDFD_SIGNAL_PROCESS_GROUP`, since Linux 6.9.
const TO_THE_GROUP: c_uint = 1 << 2;

/// A descriptor of the process `pid`. It always refers to that process, even if the pid is reused.
///
/// # Errors
///
/// `ESRCH` if there is no such process; `ENOSYS` before Linux 5.3, `EPERM` if a sandbox hides the call.
pub fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers; the descriptor that it returns is new, so no other code owns it.
    unsafe {
        let number = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(number).map_err(io::Error::other)?))
    }
}

/// Whether a read would not block. It opens no file.
pub(crate) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|readable| readable > 0)
}

/// Sends a signal to the process of a pidfd.
///
/// # Errors
///
/// `ESRCH` if it is gone; `EPERM` if it belongs to another user.
pub(crate) fn signal_pidfd(process: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    send(process, signal, 0)
}

/// Sends a signal to the process group whose leader is or was the process of a pidfd.
///
/// # Errors
///
/// `ESRCH` if there is no such group; `EPERM` if all its processes belong to other users; `EINVAL` before Linux 6.9.
pub(crate) fn signal_pidfd_group(leader: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    send(leader, signal, TO_THE_GROUP)
}

fn send(process: BorrowedFd<'_>, signal: c_int, flags: c_uint) -> io::Result<()> {
    // SAFETY: with a null siginfo the kernel uses that of kill(2), and reads no memory of ours.
    let answer = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, ptr::null::<libc::siginfo_t>(), flags)
    };
    Ok(Errno::result(answer).map(drop)?)
}

#[cfg(test)]
mod tests {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd;

    use super::*;

    /// A page that a child shares is copied at the first write to it, and the kernel may wait for the memory.
    #[test]
    fn a_write_to_shared_memory_needs_no_page_while_a_child_has_not_executed() {
        let word = Shared::new(AtomicU64::new(0));
        let child = fork_to_execute(None, unistd::pause).unwrap();
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
        // This copies the stack's pages.
        faults();
        let before = faults();
        word.store(1, Ordering::Relaxed);
        let after = faults();
        kill(child, Signal::SIGKILL).unwrap();
        wait_for(child, 0).unwrap();
        assert_eq!((before, word.load(Ordering::Relaxed)), (after, 1));
    }

    /// The resident size of this library's read-only pages, which hold no data of this process.
    fn resident_of(library: &str) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut resident = 0;
        let (mut is_looked_at, mut rss) = (false, 0);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("Rss:"), Some(size)) => rss = size.parse().unwrap(),
                (Some("Anonymous:"), Some("0")) if is_looked_at => resident += rss,
                (Some(range), Some(rights)) if range.contains('-') => {
                    is_looked_at = !rights.contains('w') && line.contains(library);
                }
                _ => {}
            }
        }
        resident
    }

    #[test]
    #[cfg(feature = "ssl")]
    fn released_pages_of_a_library_are_loaded_again_when_used() {
        use std::{env, process};

        use rdkafka::config::ClientConfig;
        use rdkafka::producer::BaseProducer;
        const ALONE: &str = "NELI_TEST_ALONE";

        // In a process of its own: other tests use the library at the same time, and lock this process's memory.
        if env::var_os(ALONE).is_none() {
            let name = "process::system::tests::released_pages_of_a_library_are_loaded_again_when_used";
            let mut alone = process::Command::new(env::current_exe().unwrap());
            let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        let use_it = || {
            let config = ClientConfig::new().set("security.protocol", "ssl").create::<BaseProducer>();
            config.unwrap();
            resident_of("/libcrypto.so")
        };
        let used = use_it();
        // If the library is linked statically, it is part of the program.
        if used > 0 {
            give_back_libraries();
            let given_back = resident_of("/libcrypto.so");
            assert!(given_back < used / 2, "{given_back} kB of {used} kB");
            assert!(use_it() > given_back);
        }
    }
}
