//! Sends signals to processes by descriptors (pidfds).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;

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

/// Whether the process of a pidfd has ended, if the descriptor tells: it does not while a tracer keeps one of the process's other threads.
#[must_use]
pub(crate) fn tells_end(process: BorrowedFd<'_>) -> bool {
    poll(&mut [PollFd::new(process, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|ended| ended > 0)
}

/// Sends a signal to the process of a pidfd.
///
/// # Errors
///
/// `ESRCH` if it is gone; `EPERM` if it belongs to another user.
pub fn signal_pidfd(process: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    send(process, signal, 0)
}

/// Sends a signal to the process group whose leader is or was the process of a pidfd.
///
/// # Errors
///
/// `ESRCH` if there is no such group; `EPERM` if all its processes belong to other users; `EINVAL` before Linux 6.9.
pub fn signal_pidfd_group(leader: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    send(leader, signal, TO_THE_GROUP)
}

fn send(process: BorrowedFd<'_>, signal: c_int, flags: c_uint) -> io::Result<()> {
    // SAFETY: with a null siginfo the kernel uses that of kill(2), and reads no memory of ours.
    let answer = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, ptr::null::<libc::siginfo_t>(), flags)
    };
    Ok(Errno::result(answer).map(drop)?)
}
