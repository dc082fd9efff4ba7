//! The limits that this process was started with: whether what it needs can be had, before anything is joined.
//!
//! librdkafka makes threads as it goes, and where it can't it waits for ever or aborts.

use std::ffi::c_int;
use std::io;
use std::sync::Mutex;
use std::thread;

use nix::sys::resource::{self, Resource};

use crate::process::{room_for_threads, system};

/// What a candidate with one broker has open, 43 measured, and some more.
const OPEN_FILES: u64 = 64;

/// What some thirty threads reserve, each its stack and its heap (1.2 GB measured with 18).
const ADDRESS_SPACE: u64 = 2 << 30;

/// The threads of a candidate, 18 measured with one broker, and some more.
const THREADS: usize = 24;

/// A limit that is too low. Each is reported in one line.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// A limit that the kernel shows.
    #[error("{limit} {what} are too few ({setting}): neli-run needs at least {needed}")]
    TooLow {
        /// What it is.
        limit: u64,
        /// Of what.
        what: &'static str,
        /// How it is set.
        setting: &'static str,
        /// What it must be at least.
        needed: u64,
    },
    /// One of those on threads, which were tried.
    #[error("{THREADS} threads can't be made (ulimit -u, or pids.max of the control group): {0}", THREADS = THREADS)]
    Threads(#[source] io::Error),
}

/// How many heaps glibc's threads share. It would give each of the first sixteen its own on two processors, and set it up before the thread's
/// first step; these threads allocate little, and hardly ever at once.
const HEAPS: c_int = 2;

/// Has the threads of this process share heaps. To be called before there are threads.
pub fn share_heaps() {
    system::share_heaps(HEAPS);
}

/// Whether the required resources are available, with this many open files in addition.
///
/// # Errors
///
/// The limit that is too low.
pub fn validate(more_files: u64) -> Result<(), LimitError> {
    open_files(more_files)?;
    address_space()?;
    threads()
}

/// Whether enough files may be open, these among them.
///
/// # Errors
///
/// Too few.
pub fn open_files(more: u64) -> Result<(), LimitError> {
    at_least(OPEN_FILES + more, Resource::RLIMIT_NOFILE, "open files", "ulimit -n")
}

/// Whether enough of the address space may be used.
///
/// # Errors
///
/// Too little.
pub fn address_space() -> Result<(), LimitError> {
    at_least(ADDRESS_SPACE, Resource::RLIMIT_AS, "bytes of address space", "ulimit -v counts KiB")
}

/// Whether enough threads can be made; tried if the limits don't show it.
///
/// # Errors
///
/// They can't.
pub fn threads() -> Result<(), LimitError> {
    if room_for_threads::is_certain(THREADS as u64) {
        return Ok(());
    }
    try_threads().map_err(LimitError::Threads)
}

fn at_least(needed: u64, resource: Resource, what: &'static str, setting: &'static str) -> Result<(), LimitError> {
    let Ok((limit, _)) = resource::getrlimit(resource) else { return Ok(()) };
    if limit >= needed { Ok(()) } else { Err(LimitError::TooLow { limit, what, setting, needed }) }
}

/// Starts all threads that may be needed, at once, and ends them. (What a user's other processes leave of the user's limit can't be
/// asked for.)
fn try_threads() -> io::Result<()> {
    let barrier = Mutex::new(());
    thread::scope(|scope| {
        let held = barrier.lock();
        let wait = || drop(barrier.lock());
        let made: io::Result<Vec<_>> =
            (0..THREADS).map(|_| thread::Builder::new().stack_size(1 << 16).spawn_scoped(scope, wait)).collect();
        drop(held);
        made.map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_runs_tests_has_the_needed_limits() {
        validate(0).unwrap();
    }

    #[test]
    fn a_limit_that_is_too_low_is_named_with_its_bound() {
        let message = at_least(u64::MAX, Resource::RLIMIT_NOFILE, "open files", "ulimit -n").unwrap_err().to_string();
        assert!(message.ends_with(" open files are too few (ulimit -n): neli-run needs at least 18446744073709551615"));
    }
}
