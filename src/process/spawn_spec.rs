//! The parameters of a child.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::AtomicU64;

use crate::process::attributes::EarlierAttributes;
use crate::process::image::Image;
use crate::process::signal_set::Set;
use crate::process::terminal::ForegroundHandover;

/// The parameters of a child.
#[derive(Debug)]
pub(crate) struct SpawnSpec<'a> {
    /// The program that it executes.
    pub(crate) image: &'a Image,
    /// Additional environment variables: `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// Descriptors that it inherits under the same number, although they are close-on-exec. All other close-on-exec ones are closed.
    pub(crate) descriptors: &'a [RawFd],
    /// The signals that it ignores; all others have their default action.
    pub(crate) ignored: Set,
    /// The parameters that depend on the kind.
    pub(crate) kind: ChildKind<'a>,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChildKind<'a> {
    /// A guard: blocks every signal, and outlives its parent.
    Guard,
    /// A command that runs beside the job: like a job, but with `/dev/null` as stdin, one output, and no other descriptor.
    Command {
        /// It executes only before this deadline, like a job; `None` means at any time.
        deadline: Option<&'a AtomicU64>,
        /// The earlier values of its parent's attributes, which it gets back.
        attributes: EarlierAttributes,
        /// The directory of the control group in which it is created; `None` means its parent's group.
        cgroup: Option<BorrowedFd<'a>>,
        /// Its stdout and stderr; `None` means its parent's stderr.
        output: Option<BorrowedFd<'a>>,
    },
    /// A job: creates a process group, blocks no signal, and dies with its parent.
    Job {
        /// It executes only before this time: nanoseconds of `CLOCK_BOOTTIME`, little-endian.
        deadline: &'a AtomicU64,
        /// The earlier values of its parent's attributes, which it gets back.
        attributes: EarlierAttributes,
        /// The directory of the control group in which it is created; `None` means its parent's group.
        cgroup: Option<BorrowedFd<'a>>,
        /// The foreground of the terminal, if it is handed over.
        foreground: Option<ForegroundHandover<'a>>,
    },
}
