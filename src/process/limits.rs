//! Checks the resource limits of this process before it joins an election: can it have the threads, files and memory that it needs?
//!
//! librdkafka starts threads later, and waits for ever or aborts if it can't.

use std::ffi::c_int;
use std::io;
use std::sync::Mutex;
use std::thread;

use nix::libc;
use nix::sys::resource::{self, Resource};

use crate::process::room_for_threads;
use crate::process::system;

/// The open files of a candidate with one broker (43 measured), and some more.
const OPEN_FILES: u64 = 64;

/// How many inherited descriptors are among them.
const INHERITED: usize = 16;

/// The open files of a process with many roles, besides those of the roles that it leads: with connections to a dozen brokers.
const OPEN_FILES_BESIDE_ROLES: u64 = 128;

/// The open files of each role that it leads: eight, and two of a health command.
const OPEN_FILES_OF_ROLE: u64 = 10;

/// The address space that some thirty threads reserve, each with stack and heap (1.2 GB measured with 18).
const ADDRESS_SPACE: u64 = 2 << 30;

/// The threads of a candidate (18 measured with one broker), and some more.
const THREADS: usize = 24;

/// A limit that is too low. Each is reported in one line.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// A limit that the kernel shows.
    #[error("{limit} {what} are too few ({setting}): neli-run needs at least {needed}")]
    TooLow {
        /// The limit.
        limit: u64,
        /// The limited resource.
        what: &'static str,
        /// The setting of the limit.
        setting: &'static str,
        /// The required minimum.
        needed: u64,
    },
    /// A limit on threads, found by trying.
    #[error("{THREADS} threads can't be made ({why}): {0}", THREADS = THREADS, why = blamed(.0))]
    Threads(io::Error),
}

/// The number of heaps that glibc's threads share. By default each of the first sixteen threads on two processors would set up its own
/// heap at its start; these threads allocate little, and rarely at the same time.
const HEAPS: c_int = 2;

/// Makes the threads of this process share heaps. Must be called before there are threads.
pub fn share_heaps() {
    system::share_heaps(HEAPS);
}

/// Raises the soft limit of open files to the hard one, for the guards of many roles. Returns the soft limit before, which the job must get
/// back: programs that use `select`, or close every descriptor that is allowed, expect a low one.
#[must_use]
pub fn raise_open_files() -> Option<u64> {
    let (soft, hard) = resource::getrlimit(Resource::RLIMIT_NOFILE).ok().filter(|(soft, hard)| soft < hard)?;
    // A soft limit up to the hard one is always allowed.
    resource::setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok().then_some(soft)
}

/// Lowers the soft limit of open files, which [`raise_open_files`] has raised in a parent. May be called between fork and exec: it makes
/// two system calls.
///
/// # Errors
///
/// The kernel refuses it; a lower limit is always allowed.
pub fn lower_open_files(soft: u64) -> io::Result<()> {
    let (_, hard) = resource::getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(resource::setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?)
}

/// Checks that the required resources are available, including this many more open files.
///
/// # Errors
///
/// A limit is too low.
pub fn validate(more_files: u64) -> Result<(), LimitError> {
    open_files(more_files)?;
    address_space()?;
    threads()
}

/// The number of open files that this number of inherited descriptors adds to those of a candidate.
#[must_use]
pub fn open_files_of_inherited(inherited: usize) -> u64 {
    inherited.saturating_sub(INHERITED) as u64
}

/// Checks that enough files may be open, including `more`.
///
/// # Errors
///
/// There are too few.
pub fn open_files(more: u64) -> Result<(), LimitError> {
    at_least(OPEN_FILES + more, Resource::RLIMIT_NOFILE, "open files", "ulimit -n")
}

/// The number of open files that this process may allow itself, and how many roles this process can lead with that, if it has this many `more` open files.
#[must_use]
pub fn roles_with_open_files(more: u64) -> Option<(u64, u32)> {
    let (_, limit) = resource::getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let left = limit.saturating_sub(OPEN_FILES_BESIDE_ROLES + more);
    Some((limit, u32::try_from(left / OPEN_FILES_OF_ROLE).unwrap_or(u32::MAX).max(1)))
}

/// The number of open files with which this process can lead so many roles, if it has this many `more` open files.
#[must_use]
pub fn open_files_of_roles(roles: u32, more: u64) -> u64 {
    OPEN_FILES_BESIDE_ROLES + more + OPEN_FILES_OF_ROLE * u64::from(roles)
}

/// Checks that enough address space may be used.
///
/// # Errors
///
/// There is too little.
pub fn address_space() -> Result<(), LimitError> {
    at_least(ADDRESS_SPACE, Resource::RLIMIT_AS, "bytes of address space", "ulimit -v counts KiB")
}

/// Checks that enough threads can be started. It starts them if the limits don't show it.
///
/// # Errors
///
/// They can't be started.
pub fn threads() -> Result<(), LimitError> {
    if room_for_threads::is_certain(THREADS as u64) {
        return Ok(());
    }
    try_threads().map_err(LimitError::Threads)
}

fn at_least(needed: u64, resource: Resource, what: &'static str, setting: &'static str) -> Result<(), LimitError> {
    let Ok((soft, hard)) = resource::getrlimit(resource) else { return Ok(()) };
    let limit = if resource == Resource::RLIMIT_NOFILE { hard } else { soft };
    if limit >= needed { Ok(()) } else { Err(LimitError::TooLow { limit, what, setting, needed }) }
}

/// What may keep a thread from being started.
fn blamed(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EAGAIN) | None => "ulimit -u, or pids.max of the control group",
        Some(_) => "a sandbox may refuse clone3",
    }
}

/// Starts one thread.
///
/// # Errors
///
/// A limit is reached, or a sandbox refuses it.
pub fn try_thread() -> io::Result<()> {
    thread::Builder::new().stack_size(1 << 16).spawn(|| ()).map(|started| drop(started.join()))
}

/// Starts as many threads as may be needed at once, and ends them. (The user's limit also counts the threads of other processes, which
/// can't be read.)
fn try_threads() -> io::Result<()> {
    let mutex = Mutex::new(());
    thread::scope(|scope| {
        let held = mutex.lock();
        let wait = || drop(mutex.lock());
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
