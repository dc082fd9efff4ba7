//! Signals to a tree: each process is looked at again before it is sent one, since its number may be another process's by now.

use std::collections::HashSet;
use std::os::fd::AsFd;

use neli_proto::guard::{KillMethod, Named};
use neli_proto::time::Time;
use nix::libc::SIGKILL;
use nix::unistd::Pid;

use super::Tree;
use crate::process::procfs::Process;
use crate::process::scheduling::Scheduling;
use crate::process::system;

/// How often at most a kill looks again for what was not there the last time, before the caller has its turn again.
const LOOKS: usize = 16;

impl Tree {
    /// SIGKILL to what is left of it, by the means that [`Killing`](neli_proto::guard::Killing) names, in this order. Whether
    /// no look has failed to see something.
    pub fn kill(&self, methods: &[KillMethod]) -> bool {
        let mut has_seen_all = true;
        for method in methods {
            match method {
                KillMethod::Known => self.kill_learnt(),
                KillMethod::Cgroup => self.kill_cgroup(),
                KillMethod::Found => has_seen_all = self.kill_found(),
            }
        }
        has_seen_all
    }

    /// Sends `signals`, in this order, to each process that lives, but for those of this process group. Gives those that were
    /// sent them.
    pub fn signal_all_but(&self, group: Option<Pid>, signals: &[i32]) -> Vec<Named> {
        let members = self.descendants();
        let parents = self.with_root(&members);
        let others = members.into_iter().filter(|member| group.is_none() || member.group != group);
        // Named first: it may end at once.
        let named = others.map(|member| (self.procfs.named(member.pid), member));
        named.filter_map(|(named, member)| self.send(&member, signals, &parents).then_some(named)).collect()
    }

    /// Takes note of the processes below the root's children, as far as they are found before `end`: so that
    /// `kill_learnt` can kill them later without a look.
    pub fn learn(&mut self, end: Time) {
        self.learnt.remove_ended();
        let members = self.descendants_by(Some(end));
        let parents = self.with_root(&members);
        for member in members {
            // The root's children can be listed at any time.
            let is_listed = self.own_children.is_some() && member.parent == self.root;
            if is_listed || self.learnt.contains(member.pid) {
                continue;
            }
            let Ok(pidfd) = system::open_pidfd(member.pid) else { return };
            // Its number may be another process's by now.
            if self.is_still(&member, &parents, true) && !self.learnt.insert(member.pid, pidfd) {
                return;
            }
        }
    }

    /// SIGKILL to what can be killed without opening a file or allocating memory: what was [learnt](Self::learn), and the
    /// root's children, if the root is this process. At the memory limit that guard and job share, whatever is opened
    /// or allocated may stall or fail.
    ///
    /// When a parent has died its children are the root's, and the next call finds them.
    fn kill_learnt(&self) {
        self.learnt.kill(|pid| self.prioritize_main_thread(pid));
        if let Some(children) = &self.own_children {
            children.for_each(|child| {
                // Nobody waits for it meanwhile, so that its number is its own.
                if !self.excluded.contains(&child) && system::signal(child, SIGKILL).is_ok() {
                    self.prioritize_main_thread(child);
                }
            });
        }
    }

    /// SIGKILL to all that is in the control group, whatever user's it is by now.
    ///
    /// The kernel may have this wait while another process changes some control group; to send a signal never waits.
    fn kill_cgroup(&self) {
        self.cgroup.iter().for_each(|cgroup| cgroup.kill());
    }

    /// SIGKILL to each living process, parents before their children, until a look finds none that was not sent it.
    /// Returns whether the looks saw everything, that is, no read failed.
    ///
    /// A process that was sent SIGKILL starts no other, not even in the middle of a fork (which SIGSTOP would let
    /// through): so what is new at the next look comes from a process that was not seen, and a forking tree can't
    /// outrun it. The next call finds what escaped nevertheless.
    fn kill_found(&self) -> bool {
        let mut killed = HashSet::new();
        for _ in 0..LOOKS {
            let members = self.descendants();
            let has_seen_all = self.procfs.has_seen_all();
            let parents = self.with_root(&members);
            let fresh: Vec<Process> = members.into_iter().filter(|member| killed.insert(member.pid)).collect();
            if fresh.is_empty() {
                return has_seen_all;
            }
            let dying: Vec<Process> =
                fresh.into_iter().filter(|member| self.send(member, &[SIGKILL], &parents)).collect();
            if let Some(scheduling) = self.killed_scheduling {
                for member in &dying {
                    self.prioritize(member, scheduling);
                }
            }
        }
        true
    }

    fn with_root(&self, members: &[Process]) -> HashSet<Pid> {
        members.iter().map(|member| member.pid).chain([self.root]).collect()
    }

    /// Lets each thread of a process that was sent SIGKILL run at once. It never gets to run the program again.
    fn prioritize(&self, member: &Process, scheduling: Scheduling) {
        for thread in self.procfs.threads(member) {
            // It may be gone already. That its number is another's by now, within some microseconds, takes a machine
            // that has no other number to give.
            let _ = scheduling.set_for(thread);
        }
    }

    /// The same for its first thread alone, whose number is the process's.
    fn prioritize_main_thread(&self, pid: Pid) {
        if let Some(scheduling) = self.killed_scheduling {
            let _ = scheduling.set_for(pid);
        }
    }

    /// Sends `signals` to a member, if it still is one. Its id may be another process's by now: so the process is
    /// held by a pidfd first, and then checked again. (If the kernel has no pidfds, some microseconds remain.) A
    /// child of this process keeps its id until it is waited for, which is not done meanwhile.
    ///
    /// Returns whether it was sent them. It may end at any time, and may be another user's: the next look shows what
    /// is left.
    fn send(&self, member: &Process, signals: &[i32], parents: &HashSet<Pid>) -> bool {
        let pid = member.pid;
        if member.parent == Pid::this() {
            return signals.iter().all(|signal| system::signal(pid, *signal).is_ok());
        }
        let held = system::open_pidfd(pid);
        self.is_still(member, parents, held.is_ok())
            && signals.iter().all(|signal| {
                match &held {
                    Ok(held) => system::signal_pidfd(held.as_fd(), *signal),
                    Err(_) => system::signal(pid, *signal),
                }
                .is_ok()
            })
    }

    /// Whether it is a member now by its parent: a child of one of `parents`.
    fn is_still(&self, member: &Process, parents: &HashSet<Pid>, is_held: bool) -> bool {
        match self.procfs.process(member.pid) {
            Some(process) => parents.contains(&process.parent),
            None if member.is_hidden && is_held => self.procfs.lists(member),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::{Child, Command, Stdio};
    use std::rc::Rc;
    use std::thread;
    use std::time::Duration;

    use neli::program::clock;
    use neli_proto::guard::Killing;
    use nix::libc::O_NONBLOCK;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::process::cgroup::Cgroup;

    /// A tree's root, which is to be waited for, and a process in a session of its own below it.
    fn family() -> (Child, OwnedFd) {
        let command = "setsid sleep 600 & echo $!; wait";
        let mut root = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(root.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let below = system::open_pidfd(Pid::from_raw(line.trim().parse().unwrap())).unwrap();
        (root, below)
    }

    fn tree_of(root: &Child) -> Tree {
        Tree::below(Pid::from_raw(root.id().cast_signed()))
    }

    fn kill_once(tree: &Tree) {
        let now = clock::now();
        let round = Killing::with_every_method(now, Duration::from_secs(60)).round(now);
        tree.kill(round);
    }

    fn dies(process: &OwnedFd) -> bool {
        let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut end, PollTimeout::from(10_000_u16)) == Ok(1)
    }

    #[test]
    fn a_tree_of_which_nothing_was_learnt_is_found_at_the_first_round() {
        let (mut root, below) = family();
        kill_once(&tree_of(&root));
        assert!(dies(&below), "it was sent SIGKILL");
        assert!(root.wait().unwrap().success(), "the root is no part of the tree");
    }

    /// A control group whose kernel file blocks: a pipe that is full.
    #[test]
    fn known_processes_are_killed_while_the_control_group_blocks() {
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
                let group = Cgroup::open(File::open(directory.path()).unwrap().into()).unwrap();
                let mut tree = tree_of(&root).born_into(Some(Rc::new(group)));
                tree.learn(clock::now() + Duration::from_secs(60));
                let now = clock::now();
                let mut killing = Killing::new(now, Duration::from_secs(60));
                for _ in 0..2 {
                    let now = killing.again_at();
                    let has_seen_all = tree.kill(killing.round(now));
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
