//! How a guard becomes the program that delivers the releases of a dead supervisor's guards.
//!
//! It executes in place, and does not fork before: a machine without a process to spare can't hold it up, and nothing
//! of the guard is left.

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

/// Executes `<releaser> release <queue's descriptors>`, with nothing else of what was inherited. Returns only when that fails.
///
/// Every signal stays blocked, as in the guard: a service manager that sends SIGTERM to all of a dead supervisor's control
/// group must not end this too. It lives for a lease at most. Signals that wait are discarded, in case one is unblocked
/// after all: the kernel itself sends SIGHUP to a guard that was stopped when its supervisor died.
pub(super) fn execute(releaser: &Path, deliverer: Deliverer) -> io::Result<Infallible> {
    env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    unistd::dup2_stdout(&null)?;
    unistd::dup2_stderr(&null)?;
    // It may have one of the three numbers itself; any other is closed here.
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
