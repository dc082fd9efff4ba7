//! The score by which the kernel chooses processes to kill at a lack of memory: `/proc/PID/oom_score_adj`.

use std::fs;

use nix::fcntl::{self, OFlag};
use nix::sys::stat::Mode;
use nix::unistd;

/// The value of a process that the kernel never kills for this reason.
const EXEMPT: &str = "-1000";

/// A value of `oom_score_adj`, as the kernel shows it.
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
}
