//! Signals to `neli-run`: every one that can be blocked is blocked before any thread exists, and read as a message; and sets of signals.
//!
//! Other modules decide the meaning of each signal. (signal-hook keeps only five of a burst of one real-time signal: its issue 122.)

use std::io;

use nix::libc::SIGCHLD;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::{Deserialize, Serialize};

use crate::process::system::{self, HIGHEST_SIGNAL};

/// The signals of a terminal and of its end. If they were ignored at the start (`nohup`, a shell's `&`), they stay ignored.
const LEFT_IGNORED: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];

/// Resets SIGCHLD to its default if it was ignored at the start. Otherwise the kernel would discard the status of children.
///
/// # Errors
///
/// None is known.
pub(crate) fn keep_status_of_children() -> io::Result<()> {
    system::set_ignored(SIGCHLD, false)
}

/// Discards all pending signals, and resets all of them to their defaults.
pub(crate) fn discard_pending() {
    for signal in 1..=HIGHEST_SIGNAL {
        // It fails for SIGKILL, SIGSTOP and the C library's own signals, which are never pending.
        let _ = system::set_ignored(signal, true);
        let _ = system::set_ignored(signal, false);
    }
}

/// Tries [`take`], and takes the signals back.
///
/// # Errors
///
/// The kernel refuses the mask or the descriptor.
pub(crate) fn try_take() -> io::Result<()> {
    let before = SigSet::thread_get_mask()?;
    let taken = take();
    before.thread_set_mask()?;
    taken.map(drop)
}

/// Blocks every signal in this thread and in threads that it starts, and opens the queue from which they are read.
///
/// To be called once, before any thread exists. SIGHUP, SIGINT, SIGQUIT and SIGTSTP that were ignored at the start are not blocked,
/// because a blocked signal is queued even if it is ignored. The status of children is kept (`keep_status_of_children`).
///
/// # Errors
///
/// The kernel refuses the mask or the descriptor.
pub fn take() -> io::Result<SignalFd> {
    let ignored = ignored_at_start();
    let mut taken = SigSet::all();
    for signal in LEFT_IGNORED {
        if ignored.contains(signal as i32) {
            taken.remove(signal);
        }
    }
    keep_status_of_children()?;
    taken.thread_set_mask()?;
    Ok(SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// The signals that were ignored when this process started, before Rust's runtime ignored SIGPIPE.
pub fn ignored_at_start() -> SignalSet {
    SignalSet(system::ignored_at_start())
}

/// A set of signal numbers, the real-time ones included. Signal `n` is bit `n - 1`, as in `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct SignalSet(u64);

impl SignalSet {
    /// No signal at all.
    pub const EMPTY: Self = Self(0);

    /// Whether `signal` is in the set.
    pub const fn contains(self, signal: i32) -> bool {
        self.0 & bit(signal) != 0
    }

    /// The set and `signal`.
    #[must_use]
    pub const fn with(self, signal: i32) -> Self {
        Self(self.0 | bit(signal))
    }
}

/// The bit of a signal; 0 for a number that is no signal.
const fn bit(signal: i32) -> u64 {
    if signal >= 1 && signal <= HIGHEST_SIGNAL { 1 << (signal - 1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTSTP};

    #[test]
    fn a_set_contains_its_signals_and_no_other_number() {
        let set = SignalSet::EMPTY.with(SIGHUP).with(HIGHEST_SIGNAL);
        assert!(set.contains(SIGHUP) && set.contains(HIGHEST_SIGNAL));
        for other in [-1, 0, SIGINT, SIGQUIT, SIGKILL, SIGSTOP, SIGTSTP, HIGHEST_SIGNAL + 1, i32::MAX] {
            assert!(!set.contains(other), "{other}");
        }
        assert_eq!(set.with(0).with(65).with(-7), set);
    }

    #[test]
    fn a_set_is_one_number_in_json() {
        let set = SignalSet::EMPTY.with(1).with(64);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, "9223372036854775809");
        assert_eq!(serde_json::from_str::<SignalSet>(&text).unwrap(), set);
    }
}
