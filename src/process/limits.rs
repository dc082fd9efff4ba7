//! The limits that this process was started with: whether what it needs can be had, before anything is joined.
//!
//! librdkafka makes threads as it goes, and where it can't it waits for ever or aborts.

use std::io;
use std::sync::Mutex;
use std::thread;

use nix::sys::resource::{self, Resource};

/// What a candidate with one broker has open, 43 measured, and some more.
const OPEN_FILES: u64 = 64;

/// What some thirty threads reserve, each its stack and its heap (1.2 GB measured with 18).
const ADDRESS_SPACE: u64 = 2 << 30;

/// The threads of a candidate, 18 measured with one broker, and some more.
const THREADS: usize = 24;

/// What is needed can be had; or one line that says which limit is too low.
///
/// # Errors
///
/// That line.
pub fn validate() -> Result<(), String> {
    at_least(OPEN_FILES, Resource::RLIMIT_NOFILE, "open files", "ulimit -n")?;
    at_least(ADDRESS_SPACE, Resource::RLIMIT_AS, "bytes of address space", "ulimit -v counts KiB")?;
    let cannot =
        |error| format!("{THREADS} threads can't be made (ulimit -u, or pids.max of the control group): {error}");
    rehearse().map_err(cannot)
}

fn at_least(needed: u64, resource: Resource, what: &str, how: &str) -> Result<(), String> {
    let Ok((limit, _)) = resource::getrlimit(resource) else { return Ok(()) };
    if limit >= needed {
        return Ok(());
    }
    Err(format!("{limit} {what} are too few ({how}): neli-run needs at least {needed}"))
}

/// All threads that may be needed, at once, and gone again. (What a user's other processes leave can't be asked for.)
fn rehearse() -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        let pass = || drop(gate.lock());
        let made: io::Result<Vec<_>> =
            (0..THREADS).map(|_| thread::Builder::new().stack_size(1 << 16).spawn_scoped(scope, pass)).collect();
        drop(closed);
        made.map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_there_where_tests_run() {
        assert_eq!(validate(), Ok(()));
    }

    #[test]
    fn a_limit_that_is_too_low_is_named_with_its_bound() {
        let told = at_least(u64::MAX, Resource::RLIMIT_NOFILE, "open files", "ulimit -n").unwrap_err();
        assert!(told.ends_with(" open files are too few (ulimit -n): neli-run needs at least 18446744073709551615"));
    }
}
