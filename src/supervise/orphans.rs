//! The processes that a dead guard has left: its supervisor, which is a subreaper too, inherits the tree and kills it.
//!
//! It begins while the guard hangs or dies. So each round looks below this process, where the job's processes are before the guard's death
//! (as those of its child) and after it: whoever traces a dead guard keeps this process from waiting for it, and not from inheriting them.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::guard::{Killing, SeenEnd};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::libc::SIGKILL;
use nix::unistd::Pid;

use crate::process::attributes::Mark;
use crate::process::cgroup::Cgroup;
use crate::process::system;
use crate::process::tree::Tree;

/// The number of descriptors that it holds: for the main process, and for the list of this process's children.
pub(crate) const DESCRIPTORS: usize = 2;

/// The tree of a guard that is dead or hangs, which the supervisor kills.
#[derive(Debug)]
pub(crate) struct Orphans {
    tree: Tree,
    main: Option<Rc<MainProcess>>,
    killing: Killing,
    /// The guard, until it has died.
    guard: Option<Pid>,
}

/// The result of a check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Left {
    /// No process is left.
    Nothing,
    /// Some processes are left, and it is too early to report them as stuck.
    Something,
    /// These processes are left a lease after the first SIGKILL. This is reported once.
    Stuck {
        /// Those that can be seen, besides their guard.
        pids: Vec<Pid>,
        /// Whether all could be looked at, if their guard is left too.
        with_guard: Option<bool>,
    },
}

impl Orphans {
    /// All processes that descend from this process or are in the job's control group. They count as stuck if they are still alive after
    /// `lease`. So does their guard, if it is not known to be dead.
    #[must_use]
    pub(crate) fn new(
        guard: Option<Pid>,
        now: Time,
        main: Option<Rc<MainProcess>>,
        cgroup: Option<Rc<Cgroup>>,
        lease: Duration,
    ) -> Self {
        let tree = Tree::below(Pid::this()).prioritizing_killed().born_into(cgroup).killing_cgroup_in_background();
        Self::in_tree(tree, guard, now, main, lease)
    }

    fn in_tree(tree: Tree, guard: Option<Pid>, now: Time, main: Option<Rc<MainProcess>>, lease: Duration) -> Self {
        Self { tree, main, killing: Killing::with_every_method(now, lease), guard }
    }

    /// Sets the mark of the job's processes.
    #[must_use]
    pub(crate) fn marked_with(mut self, mark: Option<Mark>) -> Self {
        self.tree = self.tree.marked_with(mark);
        self
    }

    /// Sets when a process of the job was last seen alive, if one was.
    #[must_use]
    pub(crate) fn last_seen_alive(mut self, at: Option<Time>) -> Self {
        self.killing.seen_alive(at);
        self
    }

    /// The end of the processes, none of which is left at `now`.
    pub(crate) fn end(&self, now: Time) -> SeenEnd {
        self.killing.end(now)
    }

    /// Excludes children of this process that don't belong to the job, with their descendants. None of them was waited for.
    pub(crate) fn spare(&mut self, spared: Vec<Pid>) {
        self.tree.exclude(spared);
    }

    /// Sends SIGKILL to all remaining processes. Must be called again at [`again_at`](Self::again_at), and whenever a child has ended.
    pub(crate) fn kill(&mut self, now: Time) {
        if let Some(main) = &self.main {
            // While its guard hangs, it is no child of this process.
            let is_alive = !system::tells_end(main.pidfd.as_fd());
            main.kill();
            if is_alive && !self.tree.is_traced(main.pid) {
                self.killing.seen_alive(Some(now));
            }
        }
        let methods = self.killing.round(now);
        let round = self.tree.kill(methods);
        self.killing.performed(clock::now(), round);
    }

    /// The remaining processes, once all children that have ended were waited for, as far as that is possible.
    pub(crate) fn left(&mut self, now: Time) -> Left {
        if self.guard.is_none() && self.tree.is_gone() {
            return Left::Nothing;
        }
        if !self.killing.is_stuck(now) {
            return Left::Something;
        }
        let mut pids = self.tree.members();
        pids.retain(|pid| Some(*pid) != self.guard);
        Left::Stuck { pids, with_guard: self.guard.map(|_| self.tree.has_seen_all()) }
    }

    /// Whether the guard is not known to be dead. Then nothing shows yet that no process is left.
    #[must_use]
    pub(crate) const fn have_guard(&self) -> bool {
        self.guard.is_some()
    }

    /// Whether none is left that does not descend from this process.
    #[must_use]
    pub(crate) fn are_not_elsewhere(&self) -> bool {
        self.tree.is_nothing_elsewhere()
    }

    /// When to kill again.
    #[must_use]
    pub(crate) const fn again_at(&self) -> Time {
        self.killing.again_at()
    }
}

/// The main process, which leads a process group.
#[derive(Debug)]
pub(crate) struct MainProcess {
    /// Its pid, which may be reused after its end.
    pub(crate) pid: Pid,
    /// Its pidfd, which refers to this process even if the pid is reused.
    pub(crate) pidfd: OwnedFd,
}

impl MainProcess {
    /// Sends SIGKILL to it and to its process group, which for most jobs is the whole tree. This never blocks. It comes before the control
    /// group and the search in `/proc`, which may block for the same reason that prevents the guard from killing.
    pub(crate) fn kill(&self) {
        let killed = system::signal_pidfd(self.pidfd.as_fd(), SIGKILL);
        let group = system::signal_pidfd_group(self.pidfd.as_fd(), SIGKILL);
        // Before Linux 6.9 only the pid identifies the group; it can't be reused while the process was not waited for.
        if group.is_err_and(|error| error.raw_os_error() == Some(Errno::EINVAL as i32)) && killed.is_ok() {
            let _ = system::signal_group(self.pid, SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::process::cgroup::tests::StalledGroup;
    use crate::process::procfs;

    /// The kernel's write for any control group blocks, and for the same reason the guard does not kill. The supervisor must not block,
    /// because it has leases to enforce.
    #[test]
    fn a_kill_does_not_wait_for_a_blocked_control_group() {
        let stalled = StalledGroup::new();
        let mut guard = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(guard.id()).unwrap());
        thread::scope(|scope| {
            let (sender, performed) = mpsc::channel();
            let stalled = &stalled;
            scope.spawn(move || {
                let cgroup = Some(Rc::new(stalled.open()));
                let tree = Tree::below(pid).born_into(cgroup).killing_cgroup_in_background();
                let mut orphans = Orphans::in_tree(tree, Some(pid), clock::now(), None, Duration::from_secs(60));
                orphans.kill(clock::now());
                sender.send(()).unwrap();
            });
            let is_performed = performed.recv_timeout(Duration::from_secs(10)).is_ok();
            assert!(stalled.is_killed_now());
            assert!(is_performed, "it has waited for the control group");
        });
        drop(guard.stdin.take());
        guard.wait().unwrap();
    }

    #[test]
    fn processes_that_had_ended_before_the_kill_were_not_seen_alive() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'echo $$; exit' & sh -c 'echo $$; exec sleep 600' & exec sleep 600"]);
        let mut root = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(root.stdout.take().unwrap()).lines();
        let pids = [(); 2].map(|()| Pid::from_raw(lines.next().unwrap().unwrap().parse().unwrap()));
        let tree = Tree::below(Pid::from_raw(root.id().cast_signed()));
        let mut orphans = Orphans::in_tree(tree, None, clock::now(), None, Duration::ZERO);
        harness::wait::until_true("the end of one", || pids.iter().any(|pid| procfs::has_ended(*pid)));
        let begun = clock::now();
        orphans.kill(begun);
        let lived_at = orphans.end(clock::now()).lived_at;
        assert!(lived_at >= Some(begun), "{lived_at:?}");
        // The root waits for neither.
        harness::wait::until_true("the end of both", || pids.iter().all(|pid| procfs::has_ended(*pid)));
        orphans.kill(orphans.again_at());
        let end = orphans.end(clock::now());
        assert_eq!(end.lived_at, lived_at);
        root.kill().unwrap();
        root.wait().unwrap();
    }

    #[test]
    fn a_guard_that_does_not_end_is_not_named_as_a_process_of_its_job() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'echo $$; sleep 600 & echo $!; wait' & wait"]);
        // The shell reports on stderr that its child was killed.
        command.stderr(Stdio::null());
        let mut root = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(root.stdout.take().unwrap()).lines();
        let [guard, of_job] = [(); 2].map(|()| Pid::from_raw(lines.next().unwrap().unwrap().parse().unwrap()));
        let tree = Tree::below(Pid::from_raw(root.id().cast_signed()));
        let mut orphans = Orphans::in_tree(tree, Some(guard), clock::now(), None, Duration::ZERO);
        assert_eq!(orphans.left(clock::now()), Left::Stuck { pids: vec![of_job], with_guard: Some(true) });
        orphans.kill(clock::now());
        root.wait().unwrap();
    }

    #[test]
    fn its_group_is_killed_with_it() {
        // The end of the pipe shows that the child is gone too.
        let mut leader = Command::new("/bin/sh")
            .args(["-c", "sleep 1000 & wait"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        let main = MainProcess { pid, pidfd: system::open_pidfd(pid).unwrap() };
        main.kill();
        let mut rest = Vec::new();
        leader.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        leader.wait().unwrap();
        main.kill();
    }
}
