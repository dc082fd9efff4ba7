//! The children of this process, listed without opening a file or allocating memory: at a memory limit that guard and job share, either
//! may stall for hundreds of milliseconds or fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::unistd::Pid;

/// The kernel's list of the children of this process's first thread, opened and read in advance, so that reading it again allocates
/// nothing. It includes orphans below a subreaper.
#[derive(Debug)]
pub(super) struct OwnChildren(File);

impl OwnChildren {
    /// Opens the list.
    ///
    /// # Errors
    ///
    /// The kernel has no such lists (`CONFIG_PROC_CHILDREN`), or there is no free descriptor.
    pub(super) fn open() -> io::Result<Self> {
        let own = Pid::this();
        let list = Self(File::open(format!("/proc/{own}/task/{own}/children"))?);
        // The kernel allocates a buffer at the first read.
        list.0.read_at(&mut [0], 0)?;
        Ok(list)
    }

    /// Calls `act` with each child that was not waited for. The order of the list must not change meanwhile, so `act` may not wait for
    /// any of them.
    pub(super) fn for_each(&self, mut act: impl FnMut(Pid)) {
        let mut part = [0; 4096];
        let (mut offset, mut number) = (0, 0);
        // A list that can't be read ends the loop. This does not prove that no process is left; only waiting proves that.
        while let Ok(length @ 1..) = self.0.read_at(&mut part, offset) {
            for byte in &part[..length] {
                match byte {
                    b'0'..=b'9' => number = number * 10 + i32::from(byte - b'0'),
                    _ if number > 0 => act(Pid::from_raw(std::mem::take(&mut number))),
                    _ => {}
                }
            }
            offset += length as u64;
        }
    }
}
