//! Signals to `neli-run`: every one that can be blocked is blocked before any thread exists, and read as a message.
//!
//! Other modules decide the meaning of each signal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::libc::SIGCHLD;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::process::signal_set::HIGHEST;
pub use crate::process::system::ignored_at_start;
use crate::process::system::{self, Disposition};

/// The signals of a terminal and of its end. If they were ignored at the start (`nohup`, a shell's `&`), they stay ignored.
const LEFT_IGNORED: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];

/// Resets SIGCHLD to its default if it was ignored at the start. Otherwise the kernel would discard the status of children.
///
/// # Errors
///
/// None is known.
pub(crate) fn keep_status_of_children() -> io::Result<()> {
    system::set_disposition(SIGCHLD, Disposition::Default)
}

/// Discards all pending signals, and resets all of them to their defaults.
pub(crate) fn discard_pending() {
    for signal in 1..=HIGHEST {
        // It fails for SIGKILL, SIGSTOP and the C library's own signals, which are never pending.
        let _ = system::set_disposition(signal, Disposition::Ignored);
        let _ = system::set_disposition(signal, Disposition::Default);
    }
}

/// Tries [`Signals::take`], and takes the signals back.
///
/// # Errors
///
/// The kernel refuses the mask or the descriptor.
pub fn try_take() -> io::Result<()> {
    let before = SigSet::thread_get_mask()?;
    let taken = Signals::take();
    before.thread_set_mask()?;
    taken.map(drop)
}

/// All signals to this process, as messages.
#[derive(Debug)]
pub struct Signals {
    queue: SignalFd,
}

/// A received signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedSignal {
    /// Its number.
    pub signal: i32,
    /// The pid of its sender; 0 if the kernel sent it, or a process outside this pid namespace.
    pub sender: i32,
    /// `si_code`: the source of the signal. A positive value means the kernel.
    pub code: i32,
}

impl Signals {
    /// Blocks every signal in this thread and in threads that it starts, and opens the queue from which they are read.
    ///
    /// To be called once, before any thread exists. SIGHUP, SIGINT, SIGQUIT and SIGTSTP that were ignored at the start are not blocked,
    /// because a blocked signal is queued even if it is ignored. The status of children is kept (`keep_status_of_children`).
    ///
    /// # Errors
    ///
    /// The kernel refuses the mask or the descriptor.
    pub fn take() -> io::Result<Self> {
        let ignored = ignored_at_start();
        let mut taken = SigSet::all();
        for signal in LEFT_IGNORED {
            if ignored.contains(signal as i32) {
                taken.remove(signal);
            }
        }
        keep_status_of_children()?;
        taken.thread_set_mask()?;
        let queue = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { queue })
    }

    /// The next signal; `None` if no more have come.
    ///
    /// # Errors
    ///
    /// The queue can't be read.
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
