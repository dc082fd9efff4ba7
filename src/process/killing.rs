//! SIGKILL to a tree, by the means that [`Killing`](neli_proto::guard::Killing) names.

use neli_proto::guard::Means;

use crate::process::tree::Tree;

/// SIGKILL to what is left of the tree, by these means in this order. Whether no look has failed to see something.
pub(crate) fn kill(means: &[Means], tree: &Tree) -> bool {
    let mut has_seen_all = true;
    for means in means {
        match means {
            Means::Known => tree.kill_known(),
            Means::Cgroup => tree.kill_cgroup(),
            Means::Found => has_seen_all = tree.kill_found(),
        }
    }
    has_seen_all
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
    use std::time::Duration;

    use neli_proto::guard::Killing;
    use nix::libc::O_NONBLOCK;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::stat::Mode;
    use nix::unistd::{Pid, mkfifo};

    use super::*;
    use crate::process::cgroup::Cgroup;
    use crate::process::system;
    use neli::clock;

    /// A tree's root, which is to be waited for, and a process in a session of its own below it.
    fn family() -> (Child, OwnedFd) {
        let command = "setsid sleep 600 & echo $!; wait";
        let mut root = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        BufReader::new(root.stdout.take().unwrap()).read_line(&mut told).unwrap();
        let below = system::open_pidfd(Pid::from_raw(told.trim().parse().unwrap())).unwrap();
        (root, below)
    }

    fn tree_of(root: &Child) -> Tree {
        Tree::below(Pid::from_raw(root.id().cast_signed()))
    }

    fn kill_once(tree: &Tree) {
        let now = clock::now();
        let round = Killing::by_all_means(now, Duration::from_secs(60)).round(now);
        kill(round, tree);
    }

    fn dies(process: &OwnedFd) -> bool {
        let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut end, PollTimeout::from(10_000_u16)) == Ok(1)
    }

    #[test]
    fn who_knows_nothing_of_a_tree_finds_it_at_the_first_call() {
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
                let now = clock::now();
                let mut killing = Killing::new(now, Duration::from_secs(60));
                for _ in 0..2 {
                    let now = killing.again_at();
                    let has_seen_all = kill(killing.round(now), &tree);
                    killing.performed(now, has_seen_all);
                }
            });
            let is_first = dies(&below) && !killing.is_finished();
            while pipe.read(&mut [0; 4096]).is_ok() {}
            assert!(is_first, "it was sent SIGKILL while the control group was waited for");
        });
        assert!(root.wait().unwrap().success());
    }
}
