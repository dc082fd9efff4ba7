//! Signals to `neli-run`: every one that can be blocked is blocked before any thread exists, and read as a message.
//!
//! What each of them means is not decided here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::libc::SIGCHLD;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::process::signal_set::{HIGHEST, Set};
use crate::process::system::{self, Disposition};

/// The signals of a terminal and of its end. Ignored at the start (`nohup`, a shell's `&`), they stay ignored.
const LEFT_IGNORED: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];

/// The signals that were ignored when this process started, before Rust's runtime ignored SIGPIPE.
#[must_use]
pub fn ignored_at_start() -> Set {
    system::ignored_at_start()
}

/// Throws away every signal that waits, and sets all of them back to their default.
pub(crate) fn discard_pending() {
    for signal in 1..=HIGHEST {
        // They fail for SIGKILL, SIGSTOP and the C library's own, which never wait.
        let _ = system::set_disposition(signal, Disposition::Ignored);
        let _ = system::set_disposition(signal, Disposition::Default);
    }
}

/// All signals to this process, as messages.
#[derive(Debug)]
pub struct Signals {
    queue: SignalFd,
}

/// One signal that came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedSignal {
    /// Its number.
    pub signal: i32,
    /// The pid of its sender; 0 when the kernel sent it, or a process outside this pid namespace.
    pub sender: i32,
    /// `si_code`: how the signal was sent; above 0 it came from the kernel.
    pub code: i32,
}

impl Signals {
    /// Blocks every signal in this thread and in those that it will start, and opens the queue in which they are read.
    ///
    /// To be called once, before any thread exists. HUP, INT, QUIT and TSTP that were ignored at the start are left
    /// alone: a blocked signal is queued even when it is ignored. SIGCHLD that was ignored is set back to its default:
    /// otherwise the kernel would throw away how children ended.
    ///
    /// # Errors
    ///
    /// When the kernel refuses the mask or the descriptor.
    pub fn take() -> io::Result<Self> {
        let ignored = ignored_at_start();
        let mut taken = SigSet::all();
        for signal in LEFT_IGNORED {
            if ignored.contains(signal as i32) {
                taken.remove(signal);
            }
        }
        system::set_disposition(SIGCHLD, Disposition::Default)?;
        taken.thread_set_mask()?;
        let queue = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { queue })
    }

    /// The next signal; `None` when no more have come.
    ///
    /// # Errors
    ///
    /// When the queue can't be read.
    pub fn read(&self) -> io::Result<Option<ReceivedSignal>> {
        let Some(info) = self.queue.read_signal()? else { return Ok(None) };
        Ok(Some(ReceivedSignal {
            signal: info.ssi_signo.try_into().unwrap_or(0),
            sender: info.ssi_pid.try_into().unwrap_or(0),
            code: info.ssi_code,
        }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.as_fd().as_raw_fd()
    }
}
