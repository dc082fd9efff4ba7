//! The open descriptors. The job gets those that this process inherited, and no others.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::{io, mem};

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd;

/// The descriptors that are open in this process. At the start of `main`, before anything is opened, these are the inherited ones.
///
/// # Errors
///
/// `/proc` can't be read.
pub(crate) fn open() -> io::Result<Vec<RawFd>> {
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

/// Closes every descriptor except those in `keep`.
///
/// It is meant for a process that was just executed or is about to execute: no other code in it may own the closed descriptors.
///
/// # Errors
///
/// `/proc` can't be read; then nothing is closed.
pub(crate) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    for number in open()? {
        if !keep.contains(&number) {
            // On Linux close(2) closes the descriptor even if it returns an error.
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

/// Descriptors that are kept open for a moment in which no other is free. (Another thread may take a descriptor that was lent, so the
/// caller must be able to work without it.)
///
/// At the limit of open files the reserve does not grow again by numbers that another thread took meanwhile, or that a lost connection had.
/// Such a number is needed when the connection is opened again, and without connections this process can't lead.
#[derive(Debug)]
pub struct Reserve {
    held: Vec<File>,
    /// The desired size.
    size: usize,
    /// The size when the descriptors were lent.
    lent: usize,
}

/// The descriptors that the start of a guard needs; reading from it needs fewer.
pub const OF_GUARD: usize = 8;

/// The additional descriptors of a Kafka client that starts while the one that it replaces still exists.
pub const OF_CLIENT: usize = 7;

/// The reserve grows only if this many more descriptors are free.
const LEFT_TO_OTHERS: usize = 8;

impl Reserve {
    /// A reserve of this size.
    pub(crate) fn of(size: usize) -> Self {
        let mut reserve = Self { held: Vec::new(), size, lent: 0 };
        reserve.fill();
        reserve
    }

    /// Opens the missing ones, if that leaves enough for others.
    fn fill(&mut self) {
        let missing = self.size.saturating_sub(self.held.len());
        if missing > 0 {
            let left_to_others: Vec<File> = (0..LEFT_TO_OTHERS).map_while(|_| null().ok()).collect();
            if left_to_others.len() == LEFT_TO_OTHERS {
                self.take(missing);
            }
        }
    }

    /// Closes the descriptors for as long as this takes.
    pub(crate) fn lent<T>(&mut self, opens: impl FnOnce() -> T) -> T {
        self.lend();
        let opened = opens();
        self.take_back();
        opened
    }

    /// Closes the descriptors while other files are opened. Must be followed by [`take_back`](Self::take_back).
    pub(crate) fn lend(&mut self) {
        self.lent = self.lent.max(self.held.len());
        self.held.clear();
    }

    /// Reopens as many as were lent, as far as possible.
    pub(crate) fn take_back(&mut self) {
        let lent = mem::take(&mut self.lent);
        self.take(lent);
        self.fill();
    }

    /// Reopens as many as were just closed by others, if they had been opened while the reserve was lent.
    pub(crate) fn regain(&mut self, closed: usize) {
        self.take(closed.min(self.size.saturating_sub(self.held.len())));
    }

    fn take(&mut self, number: usize) {
        self.held.extend((0..number).map_while(|_| null().ok()));
    }
}

fn null() -> io::Result<File> {
    File::open("/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_descriptors_are_listed_without_that_of_the_listing() {
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
