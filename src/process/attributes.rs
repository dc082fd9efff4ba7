//! The attributes that `neli-run` or the guard changes for itself, and that the job must not have; and those that only the job has: its mark.

use std::{fs, io};

use neli_kafka::random_bytes;
use nix::fcntl::{self, OFlag};
use nix::sys::resource::{self, Resource};
use nix::sys::stat::Mode;
use nix::unistd;
use serde::{Deserialize, Serialize};

use crate::process::limits;
use crate::process::priority::Scheduling;

/// The earlier values of a parent's attributes, for a child; `None` leaves the parent's present value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlierAttributes {
    pub(crate) scheduling: Option<Scheduling>,
    /// The soft limit of open files.
    pub(crate) open_files: Option<u64>,
    /// The score by which the kernel chooses processes to kill at a lack of memory.
    pub(crate) oom_score: Option<OomScore>,
    /// The mark, which its parent does not have.
    pub(crate) mark: Option<Mark>,
}

impl EarlierAttributes {
    /// Sets them for this process. May be called between fork and exec: it allocates nothing.
    ///
    /// # Errors
    ///
    /// The scheduling can't be changed. Lowering it is always allowed.
    pub(crate) fn restore(self) -> io::Result<()> {
        if let Some(oom_score) = self.oom_score {
            oom_score.restore();
        }
        // A lower limit is always allowed.
        let _ = self.open_files.map(limits::lower_open_files);
        // Without it only the walk through the tree finds the processes.
        let _ = self.mark.map(Mark::put_on_this_process);
        self.scheduling.map_or(Ok(()), Scheduling::restore)
    }
}

/// The value of a process that the kernel never kills for this reason.
const EXEMPT: &str = "-1000";

/// The score by which the kernel chooses processes to kill at a lack of memory: a value of `/proc/PID/oom_score_adj`, as the kernel shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OomScore {
    text: [u8; Self::LONGEST],
    length: usize,
}

impl OomScore {
    /// The length of `-1000` with a newline.
    const LONGEST: usize = 6;

    /// Exempts this process and its later children from being killed at a lack of memory, if that is allowed (`CAP_SYS_RESOURCE`).
    /// Returns the earlier value, for children that must not be exempt.
    pub(crate) fn exempt_this_process() -> Option<Self> {
        let earlier = Self::of(&fs::read_to_string("/proc/self/oom_score_adj").ok()?)?;
        fs::write("/proc/self/oom_score_adj", EXEMPT).is_ok().then_some(earlier)
    }

    fn of(shown: &str) -> Option<Self> {
        let mut text = [0; Self::LONGEST];
        text.get_mut(..shown.len())?.copy_from_slice(shown.as_bytes());
        Some(Self { text, length: shown.len() })
    }

    /// Sets this value for this process. May be called between fork and exec: it allocates nothing.
    pub(crate) fn restore(self) {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        // If there is no /proc any more, the value stays unchanged, and the process continues.
        if let Ok(file) = fcntl::open(c"/proc/self/oom_score_adj", flags, Mode::empty()) {
            let _ = unistd::write(file, &self.text[..self.length]);
        }
    }
}

/// The highest mark: 32-bit kernels take the highest numbers for no limit.
const HIGHEST: u64 = usize::MAX as u64 / 2;

/// Below this limit there is no mark, because another process might have the same number.
const LEAST: u64 = 1 << 28;

/// The mark of a job's processes: a number that each of them inherits from the one that has forked it, and that no other process has.
///
/// The tree loses a process whose parent ends in another PID namespace (`nsenter --pid`, `podman exec`): the kernel gives it to the first
/// process of that namespace, and not to the guard. The mark still shows whose it is.
///
/// It is the hard limit of file locks (`RLIMIT_LOCKS`), which Linux has not enforced since 2.4.25. Unlike a variable of the environment it is
/// kept at each exec, no daemon gets it from a client that asks for a program's start, it can be read of any process, and without privileges
/// it can only be lowered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mark(pub(crate) u64);

impl Mark {
    /// A mark that no process has. `None` if the limit is too low, or there is no randomness.
    #[must_use]
    pub fn new() -> Option<Self> {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).ok()?;
        let range = limit.min(HIGHEST) / 2;
        let random = u64::from_le_bytes(random_bytes().ok()?);
        (range >= LEAST).then(|| Self(range + random % range))
    }

    /// Gives it to this process, and so to all processes that it starts from now on. May be called between fork and exec: it makes one
    /// system call.
    ///
    /// # Errors
    ///
    /// A sandbox refuses it; a lower limit is always allowed.
    pub(crate) fn put_on_this_process(self) -> io::Result<()> {
        Ok(resource::setrlimit(Resource::RLIMIT_LOCKS, self.0, self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_kernel_is_kept_unchanged() {
        for shown in ["0\n", "-1000\n", "1000\n"] {
            let score = OomScore::of(shown).unwrap();
            assert_eq!(&score.text[..score.length], shown.as_bytes());
        }
        assert!(OomScore::of("-10000\n").is_none());
    }

    #[test]
    fn two_marks_differ_and_are_limits_that_this_process_may_set() {
        let (_, limit) = resource::getrlimit(Resource::RLIMIT_LOCKS).unwrap();
        let [first, second] = [(); 2].map(|()| Mark::new().unwrap());
        assert_ne!(first, second);
        assert!([first, second].iter().all(|mark| mark.0 < limit));
    }
}
