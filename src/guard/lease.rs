//! The lease descriptor (`NELI_LEASE_FD`): one file in memory per term, by which a job can check its lease in nanoseconds before each
//! write: `now < deadline`.
//!
//! 16 bytes, two `u64`, little-endian, each written atomically: at offset 0 the term, at offset 8 the guard's deadline
//! in nanoseconds of `CLOCK_BOOTTIME`, 0 once the term is over. Only the guard can write it, through a mapping made
//! before the seals; a job maps it read-only.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use neli_proto::record::Offset;
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::fcntl::{self, FcntlArg, OFlag, SealFlag};
use nix::sys::memfd::{self, MFdFlags};
use nix::unistd;

use crate::process::system::{self, SharedWords};

const TERM: usize = 0;
const DEADLINE: usize = 1;

/// Reserves the number of the descriptor in the job, for as long as the guard lives: the lowest free one, at least `lowest`.
pub(crate) fn reserve(lowest: RawFd) -> io::Result<OwnedFd> {
    let blank = memfd::memfd_create(c"neli-lease", MFdFlags::MFD_CLOEXEC)?;
    if blank.as_raw_fd() == lowest {
        return Ok(blank);
    }
    system::adopt(fcntl::fcntl(&blank, FcntlArg::F_DUPFD_CLOEXEC(lowest))?)
}

/// The lease of one term, as its job sees it.
#[derive(Debug)]
pub(crate) struct Lease(SharedWords);

impl Lease {
    /// Creates the lease of `term`, which is not granted yet, and puts its descriptor into the [reserved](reserve) `slot`.
    pub(crate) fn new(term: i64, slot: &mut OwnedFd) -> io::Result<Self> {
        let file = memfd::memfd_create(c"neli-lease", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        unistd::ftruncate(&file, i64::try_from(SharedWords::SIZE).map_err(io::Error::other)?)?;
        let words = SharedWords::map(file.as_fd())?;
        words[TERM].store(term.cast_unsigned().to_le(), Ordering::Release);
        seal(&file)?;
        unistd::dup3(&file, slot, OFlag::O_CLOEXEC)?;
        Ok(Self(words))
    }

    /// Sets the deadline: the job may run until `until`.
    pub(crate) fn grant(&self, until: Time) {
        self.deadline().store(until.as_nanos().to_le(), Ordering::Release);
    }

    /// Clears the deadline: the term is over, and no job may run.
    pub(crate) fn end(&self) {
        self.deadline().store(0, Ordering::Release);
    }

    /// The 64-bit word that holds the deadline, little-endian.
    pub(crate) fn deadline(&self) -> &AtomicU64 {
        &self.0[DEADLINE]
    }
}

/// Prevents all changes of the length, and all writes except through the existing mapping. Before Linux 5.1 there is no seal for writes:
/// there a job can write to its own lease, which affects only its own checks.
fn seal(file: &OwnedFd) -> io::Result<()> {
    let shape = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    match fcntl::fcntl(file, FcntlArg::F_ADD_SEALS(shape | SealFlag::F_SEAL_FUTURE_WRITE | SealFlag::F_SEAL_SEAL)) {
        Err(Errno::EINVAL) => fcntl::fcntl(file, FcntlArg::F_ADD_SEALS(shape | SealFlag::F_SEAL_SEAL))?,
        other => other?,
    };
    Ok(())
}

/// Term and deadline in the lease descriptor with this number (`NELI_LEASE_FD`); `None` if it is another file. The descriptor is closed.
pub(crate) fn read(number: RawFd) -> Option<(Offset, Time)> {
    let shape = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    let present = SealFlag::from_bits_retain(system::seals_of(number).ok()?);
    if !present.contains(shape) || present.contains(SealFlag::F_SEAL_WRITE) {
        return None;
    }
    let file = File::from(system::adopt(number).ok()?);
    let word = |at: u64| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at).ok()?;
        Some(u64::from_le_bytes(word))
    };
    if file.metadata().ok()?.len() != 16 {
        return None;
    }
    Some((Offset::try_from(word(0)?).ok()?, Time::from_nanos(word(8)?)))
}
