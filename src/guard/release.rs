//! Turns a guard's process into the program that delivers the releases of a dead supervisor's guards.
//!
//! It executes that program in place, without a fork. So a lack of processes can't prevent it, and no part of the guard is left.

use std::convert::Infallible;
use std::env;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::unistd;

use crate::process::descriptors;
use crate::process::release_queue::Deliverer;
use crate::process::signals;

/// Executes `<releaser> release <queue's descriptors>` without any other inherited descriptor. Returns only on failure.
///
/// Every signal stays blocked, as in the guard, because a service manager that sends SIGTERM to the whole control group of a dead
/// supervisor must not end this program. It lives for at most a lease. Pending signals are discarded, in case one is unblocked: the kernel
/// itself sends SIGHUP to a guard that was stopped when its supervisor died.
pub(super) fn execute(releaser: &Path, deliverer: Deliverer) -> io::Result<Infallible> {
    env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    unistd::dup2_stdout(&null)?;
    unistd::dup2_stderr(&null)?;
    // If the file itself has one of the three numbers, it stays open; any other number is closed here.
    let _ = null.into_raw_fd();
    let queue: Vec<_> = deliverer.hand_on()?.into_iter().collect();
    descriptors::close_all_but(&[&[0, 1, 2], queue.as_slice()].concat())?;
    signals::discard_pending();

    let program = CString::new(releaser.as_os_str().as_bytes())?;
    let numbers = queue.iter().map(|number| CString::new(number.to_string()));
    let mut arguments = vec![c"neli-run".to_owned(), c"release".to_owned()];
    arguments.extend(numbers.collect::<Result<Vec<_>, _>>()?);
    Ok(unistd::execv(&program, &arguments)?)
}
