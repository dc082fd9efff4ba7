//! Signals as numbers, and sets of them.

use serde::{Deserialize, Serialize};

/// The highest signal number of Linux, the real-time ones included.
pub const HIGHEST: i32 = 64;

/// A set of signal numbers, 1 to [`HIGHEST`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Set(u64);

impl Set {
    /// No signal at all.
    pub const EMPTY: Self = Self(0);

    /// The set whose signal `n` is bit `n - 1`, as in `/proc/PID/status`.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The set as bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `signal` is in the set.
    #[must_use]
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
    if signal >= 1 && signal <= HIGHEST { 1 << (signal - 1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use nix::libc::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTSTP};

    use super::*;

    #[test]
    fn a_set_contains_its_signals_and_no_other_number() {
        let set = Set::EMPTY.with(SIGHUP).with(HIGHEST);
        assert!(set.contains(SIGHUP) && set.contains(HIGHEST));
        for other in [-1, 0, SIGINT, SIGQUIT, SIGKILL, SIGSTOP, SIGTSTP, HIGHEST + 1, i32::MAX] {
            assert!(!set.contains(other), "{other}");
        }
        assert_eq!(set.with(0).with(65).with(-7), set);
    }

    #[test]
    fn a_set_is_one_number_in_json() {
        let set = Set::EMPTY.with(1).with(64);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, "9223372036854775809");
        assert_eq!(serde_json::from_str::<Set>(&text).unwrap(), set);
    }
}
