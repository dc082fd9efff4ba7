//! What a child is to be.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::AtomicU64;

use crate::process::attributes::EarlierAttributes;
use crate::process::image::Image;
use crate::process::signal_set::Set;
use crate::process::terminal::ForegroundHandover;

/// What a child is started with.
#[derive(Debug)]
pub(crate) struct SpawnSpec<'a> {
    /// What it executes.
    pub(crate) image: &'a Image,
    /// Environment variables besides the image's: `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// Descriptors that it gets under the same number, though they close at an exec; all others that do are closed.
    pub(crate) descriptors: &'a [RawFd],
    /// The signals that it ignores; all others are at their default.
    pub(crate) ignored: Set,
    /// The rest, which differs from kind to kind.
    pub(crate) kind: Kind<'a>,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// Blocks every signal, and outlives its parent.
    Guard,
    /// As a job, but for what it has open: nothing but `/dev/null` to read from, and one place to write to.
    Command {
        /// It executes only before then, as a job; `None`: whenever it comes to it.
        deadline: Option<&'a AtomicU64>,
        /// What it gets back of its parent's earlier attributes.
        attributes: EarlierAttributes,
        /// The directory of the control group that it is born into; `None` leaves it in its parent's.
        cgroup: Option<BorrowedFd<'a>>,
        /// Its stdout and stderr; `None` is the stderr of its parent.
        output: Option<BorrowedFd<'a>>,
    },
    /// Leads a process group of its own, blocks no signal, and dies with its parent.
    Job {
        /// It executes only before then: nanoseconds of `CLOCK_BOOTTIME`, little-endian.
        deadline: &'a AtomicU64,
        /// What it gets back of its parent's earlier attributes.
        attributes: EarlierAttributes,
        /// The directory of the control group that it is born into; `None` leaves it in its parent's.
        cgroup: Option<BorrowedFd<'a>>,
        /// Whose foreground of the terminal it takes.
        foreground: Option<ForegroundHandover<'a>>,
    },
}
