//! Files in memory that processes of this program share: the arguments of a process, in a sealed file; and the releases of the guards of one dead
//! supervisor, a queue to which each guard appends and whose content one of them delivers.
//!
//! Arguments in a command line could be read by other users. A sealed file also distinguishes a hidden mode of this program from a typed command: a
//! shell can't open one.
//!
//! Separate processes with their own Kafka clients would keep a machine with hundreds of roles busy for seconds, during which those roles
//! would have no leader. So the guard that gets the queue's lock becomes the program that delivers all appended requests
//! ([`release`](crate::release)), and the others exit.
//!
//! No request is lost: a guard first appends and then tries to get the lock; the deliverer first gives up the lock and then checks for new
//! requests. The one that comes last sees the other one's step. If the deliverer is killed, the other guards' terms end with their leases,
//! as after any lost release.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use nix::fcntl::{self, FcntlArg, FdFlag, Flock, FlockArg, OFlag, SealFlag};
use nix::libc;
use nix::sys::memfd::{self, MFdFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::process::system;

/// The seals of a sealed file: it can't be changed any more.
const OF_SEALED: SealFlag =
    SealFlag::F_SEAL_SEAL.union(SealFlag::F_SEAL_SHRINK).union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_WRITE);

/// The seals of a queue: it can't be shortened, and no other file has exactly these seals.
const OF_QUEUE: SealFlag = SealFlag::F_SEAL_SEAL.union(SealFlag::F_SEAL_SHRINK);

/// Writes `content`, as JSON, into a file that is sealed. The descriptor closes at an exec unless it is kept open.
///
/// # Errors
///
/// No memory, no descriptor to spare, or a kernel before 3.17.
pub(crate) fn write_sealed(content: &impl Serialize) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd::memfd_create(c"neli-run", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    // As a whole: written token by token, JSON would take a system call for each.
    file.write_all(&serde_json::to_vec(content)?)?;
    file.rewind()?;
    fcntl::fcntl(&file, FcntlArg::F_ADD_SEALS(OF_SEALED))?;
    Ok(file.into())
}

/// Reads the sealed file with this descriptor number to its end, and closes it.
///
/// # Errors
///
/// `InvalidInput` if it is not sealed, or its content can't be decoded.
pub(crate) fn read_sealed<T: DeserializeOwned>(number: RawFd) -> io::Result<T> {
    let file = system::adopt(number)?;
    if !is_sealed(file.as_raw_fd()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(serde_json::from_reader(BufReader::new(File::from(file)))?)
}

/// The number of a sealed file, if this argument is one. If it is, this program has started itself.
pub fn sealed(argument: &OsStr) -> Option<RawFd> {
    argument.to_str()?.parse().ok().filter(|number| is_sealed(*number))
}

fn is_sealed(number: RawFd) -> bool {
    system::seals_of(number).is_ok_and(|present| SealFlag::from_bits_retain(present).contains(OF_SEALED))
}

/// The size of the number at the file's beginning: the offset of the first request that was not delivered yet.
const HEADER: u64 = 8;

/// An empty queue for a process that appends to it: after the header, one line of JSON per request, and blank lines. Writes append to its end. Its
/// descriptor is close-on-exec by default.
///
/// # Errors
///
/// There is no memory or no free descriptor, or the kernel is older than 3.17.
pub fn release_queue() -> io::Result<File> {
    release_queue_with(MFdFlags::empty())
}

fn release_queue_with(flags: MFdFlags) -> io::Result<File> {
    let flags = flags | MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut queue = File::from(memfd::memfd_create(c"neli-releases", flags)?);
    queue.write_all(&HEADER.to_le_bytes())?;
    fcntl::fcntl(&queue, FcntlArg::F_ADD_SEALS(OF_QUEUE))?;
    fcntl::fcntl(&queue, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(queue)
}

/// Appends a request to the queue. Returns `Some` if no other process delivers it; then the caller must deliver it.
pub(crate) fn append(mut queue: File, request: &impl Serialize) -> io::Result<Option<Deliverer>> {
    // A write that failed may have left an incomplete line before this one.
    let line = [b"\n", serde_json::to_vec(request)?.as_slice(), b"\n"].concat();
    // A single write keeps the line in one piece.
    queue.write_all(&line)?;
    // The file is opened again, because a lock belongs to an open file description, and all guards share this one.
    let path = format!("/proc/self/fd/{}", queue.as_raw_fd());
    Ok(Deliverer::of(File::options().read(true).write(true).open(path)?))
}

/// The queue in the process that holds its lock.
#[derive(Debug)]
pub struct Deliverer {
    requests: Flock<File>,
    /// The offset of the next request to read.
    offset: u64,
}

impl Deliverer {
    fn of(requests: File) -> Option<Self> {
        let requests = Flock::lock(requests, FlockArg::LockExclusiveNonblock).ok()?;
        let mut delivered = [0; size_of::<u64>()];
        requests.read_exact_at(&mut delivered, 0).ok()?;
        Some(Self { requests, offset: u64::from_le_bytes(delivered) })
    }

    /// The queue with the descriptor in this argument. `None` if it is not that of a queue (a user has typed it), or if another process
    /// delivers it.
    pub fn named_by(queue: &OsStr) -> Option<Self> {
        let number = queue.to_str()?.parse().ok()?;
        // With `vm.memfd_noexec` (since Linux 6.3) the kernel adds a seal.
        let added_by_kernel = SealFlag::from_bits_retain(libc::F_SEAL_EXEC);
        let seals = SealFlag::from_bits_retain(system::seals_of(number).ok()?);
        if seals - added_by_kernel == OF_QUEUE { Self::of(system::adopt(number).ok()?.into()) } else { None }
    }

    /// Keeps the descriptor open at an exec, and returns its number. The executed program then has the lock.
    pub(crate) fn hand_on(self) -> io::Result<RawFd> {
        let Self { requests, .. } = self;
        fcntl::fcntl(&*requests, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let number = requests.as_raw_fd();
        mem::forget(requests);
        Ok(number)
    }

    /// The requests that were appended since the last call. Lines that can't be decoded are skipped.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> io::Result<Vec<T>> {
        let text = complete_lines(&self.requests, self.offset)?;
        self.offset += text.len() as u64;
        Ok(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Gives up the lock. Must be called when all requests that were read are settled. Returns `Some` if more were appended meanwhile and
    /// no other process has the lock.
    ///
    /// # Errors
    ///
    /// The file can't be written, or the lock can't be given up.
    pub(crate) fn finish(self) -> io::Result<Option<Self>> {
        let Self { requests, offset } = self;
        requests.write_all_at(&offset.to_le_bytes(), 0)?;
        let requests = requests.unlock().map_err(|(_, errno)| errno)?;
        // A process that is still writing its line tries to get the lock afterwards.
        let has_more = !complete_lines(&requests, offset)?.is_empty();
        Ok(if has_more { Self::of(requests) } else { None })
    }
}

/// The bytes from this offset to the end of the last complete line.
fn complete_lines(requests: &File, offset: u64) -> io::Result<Vec<u8>> {
    let length = requests.metadata()?.len().saturating_sub(offset);
    let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
    requests.read_exact_at(&mut text, offset)?;
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    /// The queue in another process that has inherited it.
    fn inherited(queue: &File) -> File {
        queue.try_clone().unwrap()
    }

    fn read(deliverer: &mut Deliverer) -> Vec<u32> {
        deliverer.read().unwrap()
    }

    #[test]
    fn the_first_process_delivers_the_requests_of_all() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        assert!(append(inherited(&queue), &2).unwrap().is_none());
        assert_eq!(read(&mut deliverer), [1, 2]);
        assert!(append(inherited(&queue), &3).unwrap().is_none());
        assert_eq!(read(&mut deliverer), [3]);
        assert!(read(&mut deliverer).is_empty());
        assert!(deliverer.finish().unwrap().is_none());
    }

    #[test]
    fn entries_appended_before_the_lock_is_released_are_delivered() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [1]);
        assert!(append(inherited(&queue), &2).unwrap().is_none());
        let mut deliverer = deliverer.finish().unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [2]);
        assert!(deliverer.finish().unwrap().is_none());
    }

    #[test]
    fn a_later_releaser_delivers_nothing_twice() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [1]);
        assert!(deliverer.finish().unwrap().is_none());
        let mut deliverer = append(inherited(&queue), &2).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [2]);
    }

    #[test]
    fn after_the_end_of_a_process_that_has_not_delivered_the_next_one_delivers() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [1]);
        drop(deliverer);
        let mut deliverer = append(inherited(&queue), &2).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [1, 2]);
    }

    #[test]
    fn a_request_that_is_being_written_is_read_when_it_is_complete() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        (&queue).write_all(b"2").unwrap();
        assert_eq!(read(&mut deliverer), [1]);
        (&queue).write_all(b"3\n").unwrap();
        assert_eq!(read(&mut deliverer), [23]);
    }

    /// At a memory limit, or if the guard is killed, a write may end in the middle of a line.
    #[test]
    fn an_incomplete_request_does_not_spoil_the_next_one_and_is_not_waited_for() {
        let queue = release_queue().unwrap();
        let mut deliverer = append(inherited(&queue), &1).unwrap().unwrap();
        (&queue).write_all(b"[2, ").unwrap();
        assert_eq!(read(&mut deliverer), [1]);
        assert!(deliverer.finish().unwrap().is_none());
        let mut deliverer = append(inherited(&queue), &3).unwrap().unwrap();
        assert_eq!(read(&mut deliverer), [3]);
        assert!(deliverer.finish().unwrap().is_none());
    }

    /// With `vm.memfd_noexec` the kernel seals each file in memory against becoming executable.
    #[test]
    fn a_queue_that_the_kernel_has_sealed_further_is_recognized() {
        let no_exec = MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL);
        let Ok(queue) = release_queue_with(no_exec) else {
            return harness::not_tested("only Linux 6.3 or later has this seal");
        };
        let number = append(queue, &7).unwrap().unwrap().hand_on().unwrap();
        let mut deliverer = Deliverer::named_by(OsStr::new(&number.to_string())).unwrap();
        assert_eq!(read(&mut deliverer), [7]);
    }

    #[test]
    fn an_inherited_queue_is_recognized_and_other_descriptors_are_not() {
        let queue = release_queue().unwrap();
        let number = append(inherited(&queue), &7).unwrap().unwrap().hand_on().unwrap();
        assert!(Deliverer::named_by(OsStr::new("0")).is_none());
        assert!(Deliverer::named_by(OsStr::new("requests")).is_none());
        let mut deliverer = Deliverer::named_by(OsStr::new(&number.to_string())).unwrap();
        assert_eq!(read(&mut deliverer), [7]);
    }

    #[test]
    fn written_values_are_read_back() {
        let number = write_sealed(&["a", "b"]).unwrap().into_raw_fd();
        assert_eq!(read_sealed::<Vec<String>>(number).unwrap(), ["a", "b"]);
    }

    #[test]
    fn an_argument_is_checked_for_the_number_of_a_sealed_file() {
        let (sealed, other) = (write_sealed(&"a").unwrap(), File::open("/dev/zero").unwrap());
        let is_named_by = |argument: &str| super::sealed(OsStr::new(argument)).is_some();
        assert!(is_named_by(&sealed.as_raw_fd().to_string()));
        assert!(!is_named_by(&other.as_raw_fd().to_string()));
        assert!(!is_named_by("1000000") && !is_named_by("-1") && !is_named_by("") && !is_named_by("text"));
    }

    #[test]
    fn a_file_that_is_not_sealed_is_refused() {
        let number = File::open("/dev/zero").unwrap().into_raw_fd();
        assert_eq!(read_sealed::<Vec<String>>(number).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
