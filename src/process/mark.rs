//! The mark of a job's processes: a number that each of them inherits from the one that has forked it, and that no other process has.
//!
//! The tree loses a process whose parent ends in another PID namespace (`nsenter --pid`, `podman exec`): the kernel gives it to the first
//! process of that namespace, and not to the guard. The mark still shows whose it is.
//!
//! It is the hard limit of file locks (`RLIMIT_LOCKS`), which Linux has not enforced since 2.4.25. Unlike a variable of the environment it is
//! kept at each exec, no daemon gets it from a client that asks for a program's start, it can be read of any process, and without privileges
//! it can only be lowered.

use std::io;

use nix::sys::resource::{self, Resource};
use serde::{Deserialize, Serialize};

use neli_kafka::random;

/// The highest mark: 32-bit kernels take the highest numbers for no limit.
const HIGHEST: u64 = usize::MAX as u64 / 2;

/// Below this limit there is no mark, because another process might have the same number.
const LEAST: u64 = 1 << 28;

/// A mark.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mark(pub(crate) u64);

impl Mark {
    /// A mark that no process has. `None` if the limit is too low, or there is no randomness.
    #[must_use]
    pub fn new() -> Option<Self> {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).ok()?;
        let range = limit.min(HIGHEST) / 2;
        let random = u64::from_le_bytes(random::bytes().ok()?);
        (range >= LEAST).then(|| Self(range + random % range))
    }

    /// Gives it to this process, and so to all processes that it starts from now on. May be called between fork and exec: it makes one
    /// system call.
    ///
    /// # Errors
    ///
    /// A sandbox refuses it; a lower limit is always allowed.
    pub(crate) fn put_on_this_process(self) -> io::Result<()> {
        Ok(resource::setrlimit(Resource::RLIMIT_LOCKS, self.0, self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_marks_differ_and_are_limits_that_this_process_may_set() {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).unwrap();
        let [first, second] = [(); 2].map(|()| Mark::new().unwrap());
        assert_ne!(first, second);
        assert!([first, second].iter().all(|mark| mark.0 < limit));
    }
}
