//! What is handed to an executed program: a sealed file in memory, since arguments are for all to see.
//!
//! It also tells a hidden mode of this program from words that a person typed: a shell can open no such file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsRawFd, RawFd};

use neli::sealed_memfd::seals;
use nix::fcntl::SealFlag;
use serde::de::DeserializeOwned;

use crate::process::system;

/// Reads what was written down, and closes the descriptor with this number.
pub(crate) fn read<T: DeserializeOwned>(number: RawFd) -> io::Result<T> {
    let paper = system::adopt(number)?;
    if !is_sealed(paper.as_raw_fd()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(serde_json::from_reader(BufReader::new(File::from(paper)))?)
}

/// Whether the descriptor whose number this argument is holds such a file: then this program was started by itself.
#[must_use]
pub fn is_in(argument: &OsStr) -> bool {
    argument.to_str().and_then(|number| number.parse().ok()).is_some_and(is_sealed)
}

fn is_sealed(number: RawFd) -> bool {
    system::seals_of(number).is_ok_and(|present| SealFlag::from_bits_retain(present).contains(seals()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use neli::sealed_memfd::write;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let number = write(&["a", "b"]).unwrap().into_raw_fd();
        assert_eq!(read::<Vec<String>>(number).unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_number_is_told_to_be_one_only_when_it_is() {
        let (paper, other) = (write(&"a").unwrap(), File::open("/dev/zero").unwrap());
        let is_in = |argument: &str| is_in(OsStr::new(argument));
        assert!(is_in(&paper.as_raw_fd().to_string()));
        assert!(!is_in(&other.as_raw_fd().to_string()));
        assert!(!is_in("1000000") && !is_in("-1") && !is_in("") && !is_in("word"));
    }

    #[test]
    fn what_is_no_sealed_file_is_refused() {
        let number = File::open("/dev/zero").unwrap().into_raw_fd();
        assert_eq!(read::<Vec<String>>(number).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
