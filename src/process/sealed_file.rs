//! The arguments of an executed program in a file in memory that can't be changed any more. They are not in its command line, because other
//! users can read that.
//!
//! Such a file also distinguishes a hidden mode of this program from a typed command: a shell can't open one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use neli_proto::record::Offset;
use neli_proto::time::Time;
use nix::fcntl::{self, FcntlArg, SealFlag};
use nix::sys::memfd::{self, MFdFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::process::system;

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
fn seals() -> SealFlag {
    SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE
}

/// Reads the file with this descriptor number to its end, and closes it.
///
/// # Errors
///
/// `InvalidInput` if it is not sealed, or its content can't be decoded.
pub(crate) fn read<T: DeserializeOwned>(number: RawFd) -> io::Result<T> {
    let file = system::adopt(number)?;
    if !is_sealed(file.as_raw_fd()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(serde_json::from_reader(BufReader::new(File::from(file)))?)
}

/// Term and deadline in the lease descriptor with this number (`NELI_LEASE_FD`); `None` if it is another file. The descriptor is closed.
#[must_use]
pub fn lease(number: RawFd) -> Option<(Offset, Time)> {
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

/// Whether this argument is the number of such a file. If it is, this program has started itself.
#[must_use]
pub fn is_named_by(argument: &OsStr) -> bool {
    argument.to_str().and_then(|number| number.parse().ok()).is_some_and(is_sealed)
}

fn is_sealed(number: RawFd) -> bool {
    system::seals_of(number).is_ok_and(|present| SealFlag::from_bits_retain(present).contains(seals()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let number = write(&["a", "b"]).unwrap().into_raw_fd();
        assert_eq!(read::<Vec<String>>(number).unwrap(), ["a", "b"]);
    }

    #[test]
    fn an_argument_is_checked_for_the_number_of_a_sealed_file() {
        let (sealed, other) = (write(&"a").unwrap(), File::open("/dev/zero").unwrap());
        let is_named_by = |argument: &str| is_named_by(OsStr::new(argument));
        assert!(is_named_by(&sealed.as_raw_fd().to_string()));
        assert!(!is_named_by(&other.as_raw_fd().to_string()));
        assert!(!is_named_by("1000000") && !is_named_by("-1") && !is_named_by("") && !is_named_by("text"));
    }

    #[test]
    fn a_file_that_is_not_sealed_is_refused() {
        let number = File::open("/dev/zero").unwrap().into_raw_fd();
        assert_eq!(read::<Vec<String>>(number).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
