//! The destination of the lines: stderr, or a file that is appended to and reopened when it is renamed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::config::Log;
use crate::text::reason;

/// The destination of the lines.
#[derive(Debug)]
pub(super) struct Sink {
    descriptor: OwnedFd,
    /// The file's path and identity when it was opened, if it may be renamed.
    file: Option<(PathBuf, Identity)>,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Sink {
    /// The destination: stderr, or the file of `--log-file`.
    ///
    /// # Errors
    ///
    /// The file can't be opened for appending.
    pub(super) fn open(log: &Log) -> Result<Self> {
        let Some(path) = &log.file else { return Self::stderr() };
        Self::append_to(path).map_err(|error| {
            let reason = if error.raw_os_error() == Some(Errno::ENXIO as i32) {
                "it is a named pipe that nobody reads, or a socket".to_owned()
            } else {
                reason(&error)
            };
            anyhow!("{}: can't be opened: {reason}", log.file_shown)
        })
    }

    /// The destination stderr.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub(super) fn stderr() -> Result<Self> {
        let descriptor = io::stderr().as_fd().try_clone_to_owned();
        descriptor.map(Self::from).context("stderr")
    }

    fn append_to(path: &Path) -> io::Result<Self> {
        // A named pipe without a reader must not block the start, and a terminal must not become the controlling one.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file: File = OpenOptions::new().append(true).create(true).custom_flags(flags.bits()).open(path)?;
        let metadata = file.metadata()?;
        let identity = metadata.is_file().then(|| Identity { device: metadata.dev(), inode: metadata.ino() });
        Ok(Self { descriptor: file.into(), file: identity.map(|identity| (path.to_owned(), identity)) })
    }

    /// Opens a new file if the present one was renamed or removed (`logrotate`).
    pub(super) fn follow(&mut self) {
        let Some((path, identity)) = &self.file else { return };
        let found = fs::metadata(path).map(|found| Identity { device: found.dev(), inode: found.ino() });
        if found.is_ok_and(|found| found == *identity) {
            return;
        }
        // Until a new file can be opened, the old one still accepts lines.
        if let Ok(anew) = Self::append_to(path) {
            *self = anew;
        }
    }
}

impl From<OwnedFd> for Sink {
    fn from(descriptor: OwnedFd) -> Self {
        Self { descriptor, file: None }
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Whether stderr is systemd's journal: `$JOURNAL_STREAM` contains its device and inode, which differ if stderr was redirected since.
#[must_use]
pub fn is_stderr_the_journal() -> bool {
    let Some(named) = env::var_os("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let identity = stderr.and_then(|file| file.metadata()).map(|file| format!("{}:{}", file.dev(), file.ino()));
    identity.is_ok_and(|identity| named == *identity)
}
