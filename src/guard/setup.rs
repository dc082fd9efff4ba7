//! The setup of the guard's process: signals, process group, descriptors, priority and memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::unistd::{self, Pid};

use crate::process::descriptors;
use crate::process::memory;
use crate::process::priority::{self, Scheduling};
use crate::process::system;

/// Blocks every signal, creates a process group, and makes this process the subreaper of all orphans below it. It stays in the supervisor's
/// session, whose terminal the job uses.
pub(super) fn isolate() -> io::Result<()> {
    SigSet::all().thread_set_mask()?;
    unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"neli-guard")?;
    Ok(())
}

/// Takes over a descriptor and moves it if it has the number that is reserved for the lease.
pub(super) fn adopt_beside(number: RawFd, kept: RawFd) -> io::Result<OwnedFd> {
    let descriptor = system::adopt(number)?;
    if number == kept { descriptor.try_clone() } else { Ok(descriptor) }
}

/// Closes every descriptor except those that the supervisor had `inherited` and the guard's `own`: descriptors that the supervisor has
/// left open by mistake must not reach the job.
pub(super) fn close_others<'a>(inherited: &[RawFd], own: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<()> {
    let own = own.map(|descriptor| descriptor.as_raw_fd());
    let keep: Vec<RawFd> = inherited.iter().copied().chain(own).collect();
    descriptors::close_all_but(&keep)
}

/// Raises the priority above all ordinary processes and above the job, if that is allowed; returns the scheduling that the job must get
/// back. Without it, a machine with all cores busy may delay the guard for longer than the kill margin, and a real-time job may delay it
/// for as long as the job runs.
///
/// `of_job`: the scheduling that the supervisor had before it raised its own; the job must get it.
pub(super) fn raise_priority(of_job: Option<Scheduling>) -> Option<Scheduling> {
    let job = of_job.or_else(|| Scheduling::current().ok())?;
    // With a limit on real-time running the kernel would kill the guard sooner or later.
    let may = job.is_real_time() || priority::is_running_unlimited();
    (may && job.next_higher()?.set_for(Pid::from_raw(0)).is_ok()).then_some(job)
}

/// Locks the guard's memory: a guard whose pages must be read from a disk would be late. Errors are ignored.
pub(super) fn lock_memory() {
    // Locking may not be allowed.
    memory::lock();
}
