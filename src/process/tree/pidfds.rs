//! Processes that can be killed without opening a file or allocating memory: at a memory limit that guard and job share, either may stall
//! for hundreds of milliseconds or fail.

use std::os::fd::{AsFd, OwnedFd};

use nix::libc::SIGKILL;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;

use crate::process::system;

/// The most processes that are held. Each needs a descriptor, so at most a quarter of the allowed ones are used.
const MOST: u64 = 256;

/// Processes that were seen in a tree. A descendant of the job always stays one, so a pidfd is sufficient to kill it later.
#[derive(Debug, Default)]
pub(super) struct Pidfds {
    held: Vec<(Pid, OwnedFd)>,
}

impl Pidfds {
    /// Adds a process; returns false if there is no room for another.
    pub(super) fn insert(&mut self, pid: Pid, process: OwnedFd) -> bool {
        let allowed = resource::getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft / 4);
        let room = usize::try_from(MOST.min(allowed)).unwrap_or_default();
        if self.held.len() < room {
            self.held.push((pid, process));
        }
        self.held.len() < room
    }

    /// Whether the process with this pid is held.
    pub(super) fn contains(&self, pid: Pid) -> bool {
        self.held.iter().any(|(held, _)| *held == pid)
    }

    /// Closes those that have ended: their pids may be reused.
    pub(super) fn remove_ended(&mut self) {
        let mut ended = self.ended().into_iter();
        self.held.retain(|_| !ended.next().unwrap_or_default());
    }

    /// Those of which their descriptors do not tell that they have ended. None of them was waited for, so no pid is reused.
    pub(super) fn not_ended(&self) -> impl Iterator<Item = Pid> {
        self.held.iter().zip(self.ended()).filter(|(_, ended)| !ended).map(|((pid, _), _)| *pid)
    }

    /// One of them that is alive, if any is. If it is traced, it may have ended.
    pub(super) fn living(&self) -> Option<Pid> {
        self.held.iter().find(|(_, process)| !system::tells_end(process.as_fd())).map(|(pid, _)| *pid)
    }

    /// Whether each has ended.
    fn ended(&self) -> Vec<bool> {
        let mut ends: Vec<PollFd<'_>> =
            self.held.iter().map(|(_, process)| PollFd::new(process.as_fd(), PollFlags::POLLIN)).collect();
        let is_any = poll(&mut ends, PollTimeout::ZERO).is_ok_and(|ended| ended > 0);
        ends.iter().map(|end| is_any && end.any().unwrap_or_default()).collect()
    }

    /// Sends SIGKILL to each, and calls `then` for each that got it.
    pub(super) fn kill(&self, then: impl Fn(Pid)) {
        for (pid, process) in &self.held {
            if system::signal_pidfd(process.as_fd(), SIGKILL).is_ok() {
                then(*pid);
            }
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
    fn held_processes_are_killed_and_ended_ones_removed() {
        let mut children = [sleeper(), sleeper()];
        let mut pidfds = Pidfds::default();
        for child in &children {
            assert!(pidfds.insert(number_of(child), system::open_pidfd(number_of(child)).unwrap()));
        }
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        pidfds.remove_ended();
        assert_eq!(children.each_ref().map(|child| pidfds.contains(number_of(child))), [false, true]);
        pidfds.kill(|_| {});
        assert!(!children[1].wait().unwrap().success());
    }
}
