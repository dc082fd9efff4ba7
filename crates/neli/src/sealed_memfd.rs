//! A file in memory that can't be changed any more: how an executed program gets arguments that other users must not
//! see.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use nix::fcntl::{self, FcntlArg, SealFlag};
use nix::sys::memfd::{self, MFdFlags};
use serde::Serialize;

/// Writes `content` down, as JSON. The descriptor closes at an exec unless it is kept open.
///
/// # Errors
///
/// No memory, no descriptor to spare, or a kernel before 3.17.
pub fn write(content: &impl Serialize) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd::memfd_create(c"neli-run", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    // As a whole: written token by token, JSON would take a system call for each.
    file.write_all(&serde_json::to_vec(content)?)?;
    file.rewind()?;
    fcntl::fcntl(&file, FcntlArg::F_ADD_SEALS(seals()))?;
    Ok(file.into())
}

/// The seals that such a file has.
#[must_use]
pub fn seals() -> SealFlag {
    SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE
}
