//! What of a tree can be killed without opening a file or allocating memory: at the memory limit that guard and job
//! share, either may stall for hundreds of milliseconds, or fail.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::libc::SIGKILL;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;

use crate::process::system;

/// How many processes are held at most. Each costs a descriptor; so never more than a quarter of those that are allowed.
const MOST: u64 = 256;

/// Processes that were seen in a tree. Who once descended from the job always will, so that a descriptor of the process
/// is all that is needed to kill it later.
#[derive(Debug, Default)]
pub(crate) struct Known {
    held: Vec<(Pid, OwnedFd)>,
}

impl Known {
    /// Holds one more; false when no more are held.
    pub(crate) fn hold(&mut self, pid: Pid, process: OwnedFd) -> bool {
        let allowed = resource::getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft / 4);
        let room = usize::try_from(MOST.min(allowed)).unwrap_or_default();
        if self.held.len() < room {
            self.held.push((pid, process));
        }
        self.held.len() < room
    }

    /// Whether the process with this number is held.
    pub(crate) fn holds(&self, pid: Pid) -> bool {
        self.held.iter().any(|(held, _)| *held == pid)
    }

    /// Lets go of those that have ended: their numbers may be others' by now.
    pub(crate) fn forget_the_ended(&mut self) {
        let mut ends: Vec<PollFd<'_>> =
            self.held.iter().map(|(_, process)| PollFd::new(process.as_fd(), PollFlags::POLLIN)).collect();
        if !poll(&mut ends, PollTimeout::ZERO).is_ok_and(|ended| ended > 0) {
            return;
        }
        let ended: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or_default()).collect();
        let mut ended = ended.into_iter();
        self.held.retain(|_| !ended.next().unwrap_or_default());
    }

    /// SIGKILL to each; `then` is told of each that was sent it.
    pub(crate) fn kill(&self, then: impl Fn(Pid)) {
        for (pid, process) in &self.held {
            if system::signal_pidfd(process.as_fd(), SIGKILL).is_ok() {
                then(*pid);
            }
        }
    }
}

/// The kernel's list of the children of this process's first thread, opened and read beforehand, so that to read it again
/// allocates nothing. To a subreaper's list comes whoever has lost his parent.
#[derive(Debug)]
pub(crate) struct OwnChildren(File);

impl OwnChildren {
    /// Opens the list.
    ///
    /// # Errors
    ///
    /// When the kernel has no such lists (`CONFIG_PROC_CHILDREN`), or there is no descriptor to spare.
    pub(crate) fn open() -> io::Result<Self> {
        let own = Pid::this();
        let list = Self(File::open(format!("/proc/{own}/task/{own}/children"))?);
        // The kernel allocates its buffer at the first read.
        list.0.read_at(&mut [0], 0)?;
        Ok(list)
    }

    /// Calls `act` with each child that was not waited for. The list must not change its order meanwhile: nobody is waited
    /// for in `act`.
    pub(crate) fn for_each(&self, mut act: impl FnMut(Pid)) {
        let mut part = [0; 4096];
        let (mut offset, mut number) = (0, 0);
        // A list that can't be read is looked at again: whether something is left is proved by waiting, not by this.
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

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    fn number_of(child: &Child) -> Pid {
        Pid::from_raw(child.id().cast_signed())
    }

    #[test]
    fn what_is_held_is_killed_and_what_has_ended_is_let_go() {
        let mut children = [sleeper(), sleeper()];
        let mut known = Known::default();
        for child in &children {
            assert!(known.hold(number_of(child), system::open_pidfd(number_of(child)).unwrap()));
        }
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        known.forget_the_ended();
        assert_eq!(children.each_ref().map(|child| known.holds(number_of(child))), [false, true]);
        known.kill(|_| {});
        assert!(!children[1].wait().unwrap().success());
    }
}
