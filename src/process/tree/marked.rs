//! Processes of a job that are no descendants of the tree's root any more, found by the job's [`Mark`](crate::process::attributes::Mark).
//!
//! They are searched for in addition to a walk, which alone can prove that no process is left in this PID namespace.

use std::collections::HashSet;

use nix::libc::SIGKILL;
use nix::unistd::Pid;

use super::Tree;
use super::kill::Target;
use crate::process::system;

impl Tree {
    /// The living processes with the job's mark, descendants or not, except for the root.
    pub(super) fn marked(&self) -> Vec<Pid> {
        let Some(mark) = self.mark else { return Vec::new() };
        let others = self.procfs.pids().into_iter().filter(|pid| *pid != self.root);
        let marked = others.filter(|pid| self.procfs.has_mark(*pid, mark));
        marked.filter(|pid| self.procfs.process(*pid).is_some_and(|process| process.lives)).collect()
    }

    /// Whether no process of the job is left that is no descendant of the root: in the control group, [learnt](Self::learn) while it was a
    /// descendant, or with the job's mark. This alone proves nothing. A read that fails counts as a process.
    #[must_use]
    pub fn is_nothing_elsewhere(&self) -> bool {
        self.procfs.start_scan();
        let is_cgroup_empty = self.cgroup.as_ref().is_none_or(|cgroup| !cgroup.is_populated());
        // A process that a tracer keeps may be dead although its descriptor does not tell.
        let is_dead = |pid| self.procfs.process(pid).is_some_and(|process| !process.lives);
        is_cgroup_empty
            && self.learnt.not_ended().all(is_dead)
            && self.marked().is_empty()
            && self.procfs.has_seen_all()
    }

    /// Sends SIGKILL to the marked processes that are not among the `killed`, and adds them. Returns whether one of them was alive.
    pub(super) fn kill_marked(&self, killed: &mut HashSet<Pid>) -> bool {
        let mut one_lives = false;
        for pid in self.marked() {
            // A process of the job that ends meanwhile may leave its pid to a stranger. So the process is held, and its mark read again.
            // Without pidfds a risk of some microseconds remains.
            let target = Target { pid, pidfd: system::open_pidfd(pid).ok() };
            if !self.mark.is_some_and(|mark| self.procfs.has_mark(pid, mark)) || !killed.insert(pid) {
                continue;
            }
            one_lives = one_lives || target.lives();
            if target.signal(SIGKILL) {
                self.prioritize_main_thread(pid);
            }
        }
        one_lives
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use harness::wait;
    use neli_kafka::clock;
    use neli_proto::guard::KillMethod;

    use super::*;
    use crate::process::attributes::Mark;

    fn sleeper(command: &mut Command) -> (Child, Pid) {
        let child = command.spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        (child, pid)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_marked_process_that_is_no_descendant_is_found_and_killed_and_no_other() {
        let mark = Mark::new().unwrap();
        let (root, root_pid) = sleeper(Command::new("sleep").arg("600"));
        let (mut stranger, stranger_pid) = sleeper(Command::new("sleep").arg("600"));
        let limit = format!("--locks={0}:{0}", mark.0);
        let (mut marked, pid) = sleeper(Command::new("prlimit").args([&limit, "sleep", "600"]));
        let tree = Tree::below(root_pid).marked_with(Some(mark));
        wait::until_true("its mark", || tree.procfs.has_mark(pid, mark));
        assert_eq!((tree.marked(), tree.members()), (vec![pid], vec![pid]));
        assert!(!tree.procfs.has_mark(stranger_pid, mark) && !tree.is_nothing_elsewhere());
        assert!(Tree::below(root_pid).marked_with(Mark::new()).is_nothing_elsewhere());
        tree.kill(&[KillMethod::Found]);
        assert!(!marked.wait().unwrap().success());
        assert!(tree.is_nothing_elsewhere());
        assert_eq!(stranger.try_wait().unwrap(), None);
        [root, stranger].into_iter().for_each(end);
    }

    /// It has got another parent since, and removed its mark.
    #[test]
    fn a_process_that_was_learnt_is_not_gone_before_it_has_ended() {
        let (root, root_pid) = sleeper(Command::new("sh").args(["-c", "sleep 600 & wait"]));
        let mut tree = Tree::below(root_pid);
        wait::until_true("a child", || !tree.members().is_empty());
        tree.learn(clock::now() + std::time::Duration::from_secs(60));
        end(root);
        assert_eq!(tree.members(), []);
        assert!(!tree.is_nothing_elsewhere());
        tree.kill(&[KillMethod::Known]);
        wait::until_true("its end", || tree.is_nothing_elsewhere());
    }
}
