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
/// lent: the caller must be ready to go without.)
#[derive(Debug, Default)]
pub struct Reserve {
    kept: Vec<File>,
    /// How many it is to have, once what was opened in their place is closed.
    due: usize,
}

/// What the start of a guard takes, and what comes from it takes less.
const RESERVED: usize = 8;

/// So many more must be free where the reserve grows: they are for connections that were lost, and are made again.
const LEFT_TO_OTHERS: usize = 8;

impl Reserve {
    /// Takes as many as are needed, where that leaves enough to others.
    pub fn fill(&mut self) {
        let mut left_to_others = Vec::new();
        while self.kept.len() < RESERVED {
            while left_to_others.len() < LEFT_TO_OTHERS {
                let Ok(other) = null() else { return };
                left_to_others.push(other);
            }
            let Ok(one) = null() else { return };
            self.kept.push(one);
            self.due = self.due.max(self.kept.len());
        }
    }

    /// Gives them up, for as long as it takes to open what has to be. To be followed by [`take_back`](Self::take_back).
    pub fn lend(&mut self) {
        self.kept.clear();
    }

    /// Takes back as many as it had before, and can be had.
    pub fn take_back(&mut self) {
        while self.kept.len() < self.due {
            let Ok(one) = null() else { return };
            self.kept.push(one);
        }
        self.fill();
    }

    /// What is missing stays with what was opened in its place. It is not to be taken from others at the limit of open files: the number
    /// of a connection that was lost would be missing where that connection is made again.
    pub fn write_off(&mut self) {
        self.due = self.kept.len();
    }
}

fn null() -> io::Result<File> {
    File::open("/dev/null")
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
