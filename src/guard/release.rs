//! How the guard becomes the program that releases a term in a dead supervisor's place.
//!
//! It executes in place, and does not fork before: a machine without a process to spare can't hold it up, and nothing
//! of the guard is left.

use std::convert::Infallible;
use std::env;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;

use neli::program::sealed_memfd;
use neli_proto::guard::Grant;
use nix::fcntl::{self, FcntlArg, FdFlag};
use nix::unistd;

use crate::guard::message::{GuardConfig, ReleaseRequest};
use crate::process::descriptors;
use crate::process::signals;

/// Executes `<releaser> release <descriptor>`, with nothing of what was inherited. Returns only when that fails.
///
/// Every signal stays blocked, as in the guard: a service manager that sends SIGTERM to all of a dead supervisor's control
/// group must not end this too. It lives for a lease at most. Signals that wait are discarded, in case one is unblocked
/// after all: the kernel itself sends SIGHUP to a guard that was stopped when its supervisor died.
pub(super) fn execute(guard_config: &GuardConfig, grant: Grant) -> io::Result<Infallible> {
    env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    unistd::dup2_stdout(&null)?;
    unistd::dup2_stderr(&null)?;
    // It may have one of the three numbers itself; any other is closed here.
    let _ = null.into_raw_fd();
    descriptors::close_all_but(&[0, 1, 2])?;

    let release_request = sealed_memfd::write(&ReleaseRequest {
        member: guard_config.member.clone(),
        term: grant.term,
        seen: grant.seen,
        seq: grant.next_seq,
        release: guard_config.release.clone(),
    })?;
    fcntl::fcntl(&release_request, FcntlArg::F_SETFD(FdFlag::empty()))?;
    signals::discard_pending();

    let program = CString::new(guard_config.releaser.as_os_str().as_bytes())?;
    let number = CString::new(release_request.as_raw_fd().to_string())?;
    Ok(unistd::execv(&program, &[c"neli-run", c"release", number.as_c_str()])?)
}
