//! Which descriptors are open: what was inherited is handed on to the job, and nothing else.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd;

/// The descriptors that are open in this process. At the start of `main`, before anything is opened, they are those
/// that it has inherited.
///
/// # Errors
///
/// When `/proc` can't be read.
pub fn open() -> io::Result<Vec<RawFd>> {
    let mut listing =
        Dir::open("/proc/self/fd", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let own = listing.as_raw_fd();
    let mut numbers = Vec::new();
    for entry in listing.iter() {
        let entry = entry?;
        let number: Option<RawFd> = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        numbers.extend(number.filter(|number| *number != own));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Closes every descriptor but those to `keep`.
///
/// For a process that has just been executed, or is about to execute: no other part of it may own what is closed.
///
/// # Errors
///
/// When `/proc` can't be read; then nothing is closed.
pub(crate) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    for number in open()? {
        if !keep.contains(&number) {
            // Linux has let go of the descriptor whatever close says.
            let _ = unistd::close(number);
        }
    }
    Ok(())
}

/// The number of the job's lease descriptor: the lowest from 10 on that was not `inherited`. (A script can redirect 0
/// to 9 by hand.)
pub(crate) fn lowest_free(inherited: &[RawFd]) -> RawFd {
    (10..RawFd::MAX).find(|number| !inherited.contains(number)).unwrap_or(RawFd::MAX)
}

/// Descriptors that are kept open for the moment in which there is no other to be had. (Another thread may take one that was
/// given up: the caller must be ready to go without.)
#[derive(Debug, Default)]
pub struct Reserve(Vec<File>);

/// What the start of a guard takes, and what comes from it takes less.
const RESERVED: usize = 8;

impl Reserve {
    /// Takes as many as are needed, and as can be had.
    pub fn fill(&mut self) {
        while self.0.len() < RESERVED {
            let Ok(one) = File::open("/dev/null") else { return };
            self.0.push(one);
        }
    }

    /// Gives them up.
    pub fn give_up(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_listed_without_the_listing_itself() {
        let file = File::open("/dev/null").unwrap();
        let numbers = open().unwrap();
        assert!(numbers.contains(&file.as_raw_fd()));
        assert!(numbers.is_sorted());
    }

    #[test]
    fn the_lease_descriptor_takes_the_lowest_number_from_ten_on() {
        assert_eq!(lowest_free(&[]), 10);
        assert_eq!(lowest_free(&[0, 1, 2, 10, 11, 13]), 12);
    }
}
