//! What a process sets up to be a guard: signals and process group, descriptors, priority and memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::unistd::{self, Pid};

use crate::process::descriptors;
use crate::process::memory;
use crate::process::priority;
use crate::process::scheduling::Scheduling;
use crate::process::system;

/// Blocks every signal, leads a process group, and becomes the parent of every orphan below it. It stays in the supervisor's
/// session: the job's terminal is the supervisor's.
pub(super) fn isolate() -> io::Result<()> {
    SigSet::all().thread_set_mask()?;
    unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"neli-guard")?;
    Ok(())
}

/// Takes over a descriptor, under another number than the one that is kept for the lease.
pub(super) fn adopt_beside(number: RawFd, kept: RawFd) -> io::Result<OwnedFd> {
    let descriptor = system::adopt(number)?;
    if number == kept { descriptor.try_clone() } else { Ok(descriptor) }
}

/// Closes every descriptor but those that the supervisor had `inherited` and the guard's `own`: what the supervisor has left open
/// by mistake is not handed on to the job.
pub(super) fn close_others<'a>(inherited: &[RawFd], own: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<()> {
    let own = own.map(|descriptor| descriptor.as_raw_fd());
    let keep: Vec<RawFd> = inherited.iter().copied().chain(own).collect();
    descriptors::close_all_but(&keep)
}

/// Gets a priority above all that is not real-time and above the job, where that is allowed; returns what the job gets back.
/// Without it a machine with every core busy may delay the guard for longer than the kill margin, and a job that is real-time
/// itself may do so for as long as it runs.
///
/// `of_job`: what the job is to have, where the supervisor had that before and has raised its own.
pub(super) fn raise_priority(of_job: Option<Scheduling>) -> Option<Scheduling> {
    let job = of_job.or_else(|| Scheduling::current().ok())?;
    // A limit on real-time running would kill the guard, sooner or later.
    let may = job.is_real_time() || priority::is_running_unlimited();
    (may && job.next_higher()?.set_for(Pid::from_raw(0)).is_ok()).then_some(job)
}

/// A guard that must be read back from a disk is late.
pub(super) fn lock_memory() {
    // It uses none of them, and what it has read is locked.
    memory::give_back_libraries_but_c();
    // It may not be allowed.
    memory::lock();
}
