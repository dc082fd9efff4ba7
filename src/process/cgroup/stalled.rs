//! For tests: a control group for which the kernel's write blocks.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::O_NONBLOCK;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::Cgroup;

/// A directory that looks like a control group; its `cgroup.kill` is a full pipe, so that a write to it blocks.
pub(crate) struct StalledGroup {
    directory: TempDir,
    pipe: File,
}

impl StalledGroup {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cgroup.kill");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        File::create(directory.path().join("cgroup.events")).unwrap();
        let mut pipe = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(&path).unwrap();
        let full = loop {
            if let Err(error) = pipe.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        Self { directory, pipe }
    }

    pub(crate) fn open(&self) -> Cgroup {
        Cgroup::open(File::open(self.directory.path()).unwrap().into()).unwrap()
    }

    /// Lets the writes continue. Returns whether one of them kills the group.
    pub(crate) fn is_killed_now(&self) -> bool {
        let mut bytes = [0; 4096];
        let mut readable = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        while poll(&mut readable, PollTimeout::from(10_000_u16)) == Ok(1) {
            let length = (&self.pipe).read(&mut bytes).unwrap();
            if bytes[..length].contains(&b'1') {
                return true;
            }
        }
        false
    }

    /// Whether the data in the pipe kills the group.
    pub(crate) fn was_killed(&self) -> bool {
        let mut bytes = vec![0; 1 << 20];
        let length = (&self.pipe).read(&mut bytes).unwrap();
        bytes[..length].contains(&b'1')
    }
}
