//! SIGKILL to a tree, again and again until nothing is left of it: the guard's work, and that of a supervisor which has
//! inherited a dead guard's tree.

use std::time::Duration;

use neli_proto::time::Time;
use nix::unistd::Pid;

use crate::driver::clock;
use crate::driver::tree::Tree;

/// From one SIGKILL to the next, while something is still there: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// From the first SIGKILL to the first look for what was not known, where the tree was learnt. A look opens files, and may stall
/// for as long as the job is at its memory limit; so those that are known get the time to die, and to give their memory back.
const LOOK_AFTER: Duration = Duration::from_millis(2);

/// A tree that was sent SIGKILL.
#[derive(Debug)]
pub(super) struct Killing {
    /// When what is still there is said to be stuck, unless it was.
    stuck_at: Option<Time>,
    again_at: Time,
    /// `None` before the first SIGKILL; then from this one to the next.
    pause: Option<Duration>,
}

impl Killing {
    /// Begins at `now`; what is still there after `patience` is stuck.
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { stuck_at: Some(now + patience), again_at: now, pause: None }
    }

    /// SIGKILL to all that is left: to what is known, which never waits for anybody; to the control group, for which the kernel
    /// waits while somebody makes or removes another one (up to 29 ms were measured); and at last to what a look finds. To be called
    /// again at [`again_at`](Self::again_at) at the latest, and whenever a child has ended.
    pub(super) fn kill(&mut self, now: Time, tree: &Tree) {
        let pause = if let Some(pause) = self.pause {
            tree.kill_known();
            if now < self.again_at {
                return;
            }
            tree.kill_cgroup();
            pause
        } else {
            tree.kill_known();
            tree.kill_cgroup();
            if tree.is_learnt() {
                (self.again_at, self.pause) = (clock::now() + LOOK_AFTER, Some(FIRST_PAUSE));
                return;
            }
            // Nobody knows what there is: it would run on until a later look.
            FIRST_PAUSE
        };
        let has_seen_all = tree.kill_found();
        let end = clock::now();
        // In a large tree a look takes longer than the pause, and the processors are needed for dying: at most every other
        // moment is spent looking.
        self.again_at = end + pause.max(end.since(now));
        self.pause = Some(if has_seen_all { LAST_PAUSE.min(pause * 2) } else { pause });
    }

    /// When to kill again.
    pub(super) const fn again_at(&self) -> Time {
        self.again_at
    }

    /// What can't be killed, once it is time to say so; said once.
    pub(super) fn stuck(&mut self, now: Time, tree: &Tree) -> Option<Vec<Pid>> {
        self.stuck_at.take_if(|at| now >= *at).map(|_| tree.remains())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::{Child, Command, Stdio};
    use std::rc::Rc;
    use std::thread;

    use nix::libc::O_NONBLOCK;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::driver::cgroup::Cgroup;
    use crate::driver::process;

    /// A tree's root, which is to be waited for, and a process in a session of its own below it.
    fn family() -> (Child, OwnedFd) {
        let command = "setsid sleep 600 & echo $!; wait";
        let mut root = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        BufReader::new(root.stdout.take().unwrap()).read_line(&mut told).unwrap();
        let below = process::open_pidfd(Pid::from_raw(told.trim().parse().unwrap())).unwrap();
        (root, below)
    }

    fn tree_of(root: &Child) -> Tree {
        Tree::below(Pid::from_raw(root.id().cast_signed()))
    }

    fn kill_once(tree: &Tree) {
        let now = clock::now();
        Killing::new(now, Duration::from_secs(60)).kill(now, tree);
    }

    fn dies(process: &OwnedFd) -> bool {
        let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut end, PollTimeout::from(10_000_u16)) == Ok(1)
    }

    #[test]
    fn what_nobody_has_learnt_is_found_by_the_first_call() {
        let (mut root, below) = family();
        kill_once(&tree_of(&root));
        assert!(dies(&below), "it was sent SIGKILL");
        assert!(root.wait().unwrap().success(), "the root is no part of the tree");
    }

    /// A control group of which the kernel says nothing for as long as it likes: a pipe that is full.
    #[test]
    fn what_is_known_is_killed_before_the_kernel_has_time_for_the_control_group() {
        let (mut root, below) = family();
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
        thread::scope(|scope| {
            let killing = scope.spawn(|| {
                let group = Cgroup::over(File::open(directory.path()).unwrap().into()).unwrap();
                let mut tree = tree_of(&root).born_into(Some(Rc::new(group)));
                tree.learn(clock::now() + Duration::from_secs(60));
                kill_once(&tree);
            });
            let is_first = dies(&below) && !killing.is_finished();
            while pipe.read(&mut [0; 4096]).is_ok() {}
            assert!(is_first, "it was sent SIGKILL while the control group was waited for");
        });
        assert!(root.wait().unwrap().success());
    }
}
