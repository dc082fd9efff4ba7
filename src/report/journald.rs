//! systemd's journal as stderr: it reads a line's priority from a prefix such as `<4>`.

use std::env;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use crate::report::level::Level;

/// Whether stderr is the journal: `$JOURNAL_STREAM` contains its device and inode, which differ if stderr was redirected since.
#[must_use]
pub fn is_stderr() -> bool {
    let Some(named) = env::var_os("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let identity = stderr.and_then(|file| file.metadata()).map(|file| format!("{}:{}", file.dev(), file.ino()));
    identity.is_ok_and(|identity| named == *identity)
}

/// The prefix of a line with this level: syslog's number.
#[must_use]
pub const fn priority(level: Level) -> &'static str {
    match level {
        Level::Debug => "<7>",
        Level::Error => "<3>",
        Level::Info => "<6>",
        Level::Warning => "<4>",
    }
}
