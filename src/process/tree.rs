//! All descendants of a process, even if they use `setsid`, a double fork or a process group of their own.
//!
//! The process must be a subreaper. Then orphans of its tree become its children, so that a walk down from it finds all of them. A process
//! that changed its uid is found, but this process may lack the right to kill it. Processes that other daemons started on behalf of the
//! tree don't belong to it.
//!
//! Processes of a job that are no descendants of the root any more are found by the job's [`Mark`]. They are searched for in addition to a walk,
//! which alone can prove that no process is left in this PID namespace.
//!
//! (Libraries kill a process or a control group. Here no process may be left, and no memory be allocated at a deadline.)

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use neli_kafka::clock;
use neli_proto::guard::{Named, has_tree_ended};
use neli_proto::time::Time;
use nix::unistd::Pid;

use crate::process::attributes::{Mark, Scheduling};
use crate::process::cgroup::Cgroup;
use crate::process::procfs::{Process, Procfs};

mod kill;

pub(crate) use kill::{KnownProcesses, in_rounds};

/// The descendants of a process, except for some of its children.
#[derive(Debug)]
pub struct Tree {
    root: Pid,
    /// It shows whether all processes could be looked at for the last list of members.
    pub(crate) procfs: Procfs,
    /// The control group in which it is created.
    pub(crate) cgroup: Option<Arc<Cgroup>>,
    /// What all its processes have inherited, except for the root.
    mark: Option<Mark>,
    known: KnownProcesses,
}

impl Tree {
    /// The descendants of `root`, which must be this process or one that does not end meanwhile, with the processes in the control group in
    /// which they are created, and those with the mark that they inherit.
    pub(crate) fn below(root: Pid, cgroup: Option<Arc<Cgroup>>, mark: Option<Mark>) -> Self {
        let mut tree = Self { cgroup, mark, ..Self::in_procfs(Procfs::mounted(), root) };
        if root == Pid::this() {
            tree.known.children = OwnChildren::open().ok().map(Arc::new);
        }
        tree
    }

    fn in_procfs(procfs: Procfs, root: Pid) -> Self {
        Self { root, procfs, cgroup: None, mark: None, known: KnownProcesses::none() }
    }

    /// From now on exactly these processes and their descendants are excluded.
    pub(crate) fn exclude(&mut self, excluded: Vec<Pid>) {
        self.known.excluded = excluded;
    }

    /// Gives processes a higher priority after SIGKILL, if that is allowed. A process has to run before it dies, and on a busy machine it
    /// would otherwise wait for longer than a kill margin.
    pub(crate) fn prioritize_killed(&mut self) {
        self.known.scheduling = Some(Scheduling::for_killed());
    }

    /// Begins a new tree below the same root: forgets what is known of the earlier one.
    pub(crate) fn begin_anew(&mut self) {
        self.known.learnt_mut().clear();
        self.known.take_seen_living();
    }

    /// The processes that another thread can kill of it.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub(crate) fn known(&self) -> io::Result<KnownProcesses> {
        // One open file has one lock, which a thread that stalls would keep.
        Ok(KnownProcesses { children: Some(Arc::new(OwnChildren::open()?)), ..self.known.clone() })
    }

    /// The living processes, parents before their children, and the other processes in the control group or with the mark. Processes that
    /// have ended but were not waited for don't count.
    pub(crate) fn members(&self) -> Vec<Pid> {
        self.members_by(None)
    }

    fn members_by(&self, end: Option<Time>) -> Vec<Pid> {
        let mut members: Vec<Pid> = self.descendants_by(end).into_iter().map(|process| process.pid).collect();
        let mut found: HashSet<Pid> = members.iter().copied().collect();
        let grouped = self.cgroup.as_ref().map(|cgroup| cgroup.members()).unwrap_or_default();
        let lives = |pid: &Pid| self.procfs.process(*pid).is_some_and(|process| process.lives);
        members.extend(grouped.into_iter().filter(lives).chain(self.marked()).filter(|pid| found.insert(*pid)));
        members
    }

    /// The root's children that are not excluded, each with whether it lives; `None` if a read has failed, so that they may not be all.
    fn included_children(&self) -> Option<Vec<(Pid, bool)>> {
        self.procfs.start_scan();
        let mut children = self.procfs.shown_children(self.root);
        if let Some(root) = self.procfs.process(self.root) {
            children.extend(self.procfs.hidden_children(&root, &self.procfs.listed_children(&root)));
        }
        let included = children.into_iter().filter(|child| !self.known.excluded.contains(&child.pid));
        let seen = included.map(|child| (child.pid, child.lives)).collect();
        self.procfs.has_seen_all().then_some(seen)
    }

    /// The processes that are found before `end`. [`Procfs::has_seen_all`] shows whether they are all.
    fn descendants_by(&self, end: Option<Time>) -> Vec<Process> {
        let mut found = Vec::new();
        self.walk(|_| end.is_some_and(|end| clock::now() >= end), |member, _| found.push(*member));
        found
    }

    /// Calls `visit` with each living process that is found, parents before their children, and with the root and all processes that were
    /// found so far. `visit` may kill a process: its children are found nevertheless, because they were listed before.
    ///
    /// `is_over` gets the number of processes whose children were listed, and ends the walk when it returns true.
    fn walk(&self, is_over: impl Fn(usize) -> bool, mut visit: impl FnMut(&Process, &HashSet<Pid>)) {
        self.procfs.start_scan();
        let mut seen = HashSet::from([self.root]);
        let mut unseen: VecDeque<Process> = self.procfs.process(self.root).into_iter().collect();
        let mut listed = 0;
        while let Some(parent) = unseen.pop_front() {
            if is_over(listed) {
                self.procfs.note_missed();
            } else if parent.lives {
                listed += 1;
                let children = self.procfs.children(&parent).into_iter();
                unseen.extend(
                    children.filter(|child| !self.known.excluded.contains(&child.pid) && seen.insert(child.pid)),
                );
            }
            if parent.lives && parent.pid != self.root {
                visit(&parent, &seen);
            }
        }
    }

    /// Whether no process is left, as far as this process can prove it. It must be `root`, be a subreaper, and wait for no child meanwhile.
    ///
    /// A walk is no proof: a process may get another parent during the walk, and be seen below neither. But the topmost living process is
    /// always a child of the root, even after its end, until it is waited for. So if a check finds no child, no process is left. Children
    /// that have ended and that another process traces can't be waited for: [`has_tree_ended`] needs a second look then. (The kernel's lists
    /// of children may miss some while others are waited for. Only our own list is read, because `/proc` may hide processes.)
    ///
    /// A read that fails, for example at a memory limit, proves nothing: then the tree does not count as gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_all_below(&[]) && self.is_nothing_elsewhere()
    }

    /// Whether no process is left except for these children of the root, none of which was waited for, and their descendants.
    pub(crate) fn is_all_below(&self, children: &[Pid]) -> bool {
        let others = || {
            let included = self.included_children()?.into_iter();
            Some(included.filter(|(child, _)| !children.contains(child)).collect::<Vec<_>>())
        };
        others().is_some_and(|first| {
            first.is_empty()
                || (first.iter().all(|(_, lives)| !lives)
                    && others().is_some_and(|second| has_tree_ended(&first, &second)))
        })
    }

    /// The members; of the descendants those that are found before `end`.
    pub(crate) fn named_members(&self, end: Time) -> Vec<Named> {
        self.members_by(Some(end)).into_iter().map(|pid| self.procfs.named(pid)).collect()
    }

    /// The living processes with the job's mark, descendants or not, except for the root.
    fn marked(&self) -> Vec<Pid> {
        let Some(mark) = self.mark else { return Vec::new() };
        let others = self.procfs.pids().into_iter().filter(|pid| *pid != self.root);
        let marked = others.filter(|pid| self.procfs.has_mark(*pid, mark));
        marked.filter(|pid| self.procfs.process(*pid).is_some_and(|process| process.lives)).collect()
    }

    /// Whether no process of the job is left that is no descendant of the root: in the control group, [learnt](Self::learn) while it was a
    /// descendant, or with the job's mark. This alone proves nothing. A read that fails counts as a process.
    pub(crate) fn is_nothing_elsewhere(&self) -> bool {
        self.procfs.start_scan();
        let is_cgroup_empty = self.cgroup.as_ref().is_none_or(|cgroup| !cgroup.is_populated());
        let learnt: Vec<Pid> =
            self.known.learnt().iter().filter(|held| !held.tells_end()).map(|held| held.pid).collect();
        // A process that a tracer keeps may be dead although its descriptor does not tell. None of them was waited for, so no pid is reused.
        let is_dead = |pid| self.procfs.process(pid).is_some_and(|process| !process.lives);
        is_cgroup_empty && learnt.into_iter().all(is_dead) && self.marked().is_empty() && self.procfs.has_seen_all()
    }
}

/// The kernel's list of the children of this process's first thread, in which they are found without opening a file or allocating memory: at a
/// memory limit that guard and job share, either may stall for hundreds of milliseconds or fail. It is opened and read in advance, so that reading it again allocates
/// nothing. It includes orphans below a subreaper.
#[derive(Debug)]
pub(crate) struct OwnChildren(File);

impl OwnChildren {
    /// Opens the list.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub(crate) fn open() -> io::Result<Self> {
        let own = Pid::this();
        let list = Self(File::open(format!("/proc/{own}/task/{own}/children"))?);
        // The kernel allocates a buffer at the first read.
        list.0.read_at(&mut [0], 0)?;
        Ok(list)
    }

    /// Calls `act` with each child that was not waited for. If one of them is waited for meanwhile, the list gets shorter, and another one may be
    /// missed.
    pub(crate) fn for_each(&self, mut act: impl FnMut(Pid)) {
        let mut part = [0; 4096];
        let (mut offset, mut number) = (0, 0);
        // A list that can't be read ends the loop. This does not prove that no process is left; only waiting proves that.
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
    use std::fs;
    use std::path::Path;
    use std::process::{Child, Command};

    use harness::wait;
    use neli_proto::guard::KillMethod;

    use super::*;
    use crate::process::procfs::tests::proc_with;

    fn tree_in(mount: &Path, root: i32, excluded: &[i32]) -> Tree {
        let root = Pid::from_raw(root);
        let mut tree = Tree::in_procfs(Procfs::new(mount.to_owned()), root);
        tree.exclude(excluded.iter().copied().map(Pid::from_raw).collect());
        tree
    }

    fn members_of(root: i32, excluded: &[i32], processes: &[(i32, i32, char, u32)]) -> Vec<i32> {
        let proc = proc_with(processes);
        let tree = tree_in(proc.path(), root, excluded);
        let mut members: Vec<i32> = tree.members().into_iter().map(Pid::as_raw).collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn members_are_found_at_any_depth_and_other_processes_are_not() {
        let processes = [
            (1, 0, 'S', 1),
            (5, 1, 'S', 1),
            (6, 5, 'R', 1),
            (7, 6, 'T', 1),
            (8, 7, 'D', 3),
            (9, 1, 'S', 1),
            (10, 9, 'S', 1),
        ];
        assert_eq!(members_of(5, &[], &processes), [6, 7, 8]);
    }

    #[test]
    fn an_excluded_process_is_excluded_with_its_descendants() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1), (8, 5, 'S', 1)];
        assert_eq!(members_of(5, &[6], &processes), [8]);
    }

    /// The kernel has given their children to the root, while another process traces them.
    #[test]
    fn the_ended_are_no_members_but_the_children_that_they_left_are() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'Z', 1), (7, 5, 'S', 1), (8, 7, 'S', 1), (9, 5, 'X', 1)];
        assert_eq!(members_of(5, &[], &processes), [7, 8]);
    }

    #[test]
    fn an_ended_child_may_hide_a_process_that_got_another_parent_meanwhile() {
        // 7 was a child of 6 when 6 was listed, and 6 has ended since. So a look at the children of 5 has not shown it.
        let seen = |process, lives| (Pid::from_raw(process), lives);
        assert!(!has_tree_ended(&[seen(6, false)], &[seen(6, false), seen(7, true)]));
        assert!(has_tree_ended(&[seen(6, false)], &[seen(6, false)]));
    }

    #[test]
    fn only_the_living_count_as_left_and_not_those_that_can_not_be_waited_for() {
        let gone = |processes: &[(i32, i32, char, u32)]| {
            let proc = proc_with(processes);
            tree_in(proc.path(), 5, &[9]).is_gone()
        };
        assert!(gone(&[(5, 1, 'S', 1), (9, 5, 'S', 1), (10, 9, 'S', 1)]));
        assert!(gone(&[(5, 1, 'S', 1), (6, 5, 'Z', 1), (9, 5, 'S', 1)]));
        assert!(!gone(&[(5, 1, 'S', 1), (6, 5, 'Z', 1), (7, 5, 'S', 1)]));
    }

    #[test]
    fn a_walk_that_is_ended_early_visits_the_found_processes_and_is_incomplete() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 5, 'S', 1), (8, 7, 'S', 1)];
        let proc = proc_with(&processes);
        let tree = tree_in(proc.path(), 5, &[]);
        let visited_by = |limit: usize| {
            let mut visited = Vec::new();
            tree.walk(|listed| listed >= limit, |member, _| visited.push(member.pid.as_raw()));
            visited.sort_unstable();
            (visited, tree.procfs.has_seen_all())
        };
        assert_eq!(visited_by(0), (vec![], false));
        assert_eq!(visited_by(1), (vec![6, 7], false));
        assert_eq!(visited_by(4), (vec![6, 7, 8], true));
    }

    #[test]
    fn a_process_that_a_visit_kills_does_not_hide_its_children() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1)];
        let proc = proc_with(&processes);
        let tree = tree_in(proc.path(), 5, &[]);
        let mut visited = Vec::new();
        tree.walk(
            |_| false,
            |member, _| {
                visited.push(member.pid.as_raw());
                fs::remove_dir_all(proc.path().join(member.pid.to_string())).unwrap();
            },
        );
        assert_eq!(visited, [6, 7]);
    }

    /// A directory can be opened like a file, but not read. Reading a file fails in the same way if there is no memory for its content.
    #[test]
    fn a_read_that_fails_is_no_empty_tree() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1)];
        let unreadable = |file: &str| {
            let proc = proc_with(&processes);
            let file = proc.path().join(file);
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            let tree = tree_in(proc.path(), 5, &[]);
            assert!(!tree.is_gone(), "{}", file.display());
            let found: Vec<i32> = tree.descendants_by(None).iter().map(|member| member.pid.as_raw()).collect();
            assert!(!tree.procfs.has_seen_all(), "{}", file.display());
            found
        };
        assert_eq!(unreadable("5/stat"), [0; 0]);
        assert_eq!(unreadable("5/task/5/children"), [0; 0]);
        assert_eq!(unreadable("6/task/6/children"), [6]);
        // Its parent's list shows it nevertheless.
        assert_eq!(unreadable("6/stat"), [6, 7]);
        assert_eq!(unreadable("7/stat"), [6, 7]);
    }

    #[test]
    fn a_process_shown_only_by_its_parent_is_found_with_its_children() {
        let proc = proc_with(&[(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1), (8, 7, 'S', 1)]);
        for hidden in [6, 7] {
            fs::remove_dir_all(proc.path().join(hidden.to_string())).unwrap();
            let tree = tree_in(proc.path(), 5, &[]);
            let mut members: Vec<i32> = tree.members().into_iter().map(Pid::as_raw).collect();
            members.sort_unstable();
            // Of two hidden processes in a chain, the second is visible only after the first has ended.
            assert_eq!(members, if hidden == 6 { vec![6, 7, 8] } else { vec![6] });
            assert!(!tree.is_gone());
            assert_eq!(tree.members().first(), Some(&Pid::from_raw(6)));
        }
    }

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
        let tree = Tree::below(root_pid, None, Some(mark));
        wait::until_true("its mark", || tree.procfs.has_mark(pid, mark));
        assert_eq!((tree.marked(), tree.members()), (vec![pid], vec![pid]));
        assert!(!tree.procfs.has_mark(stranger_pid, mark) && !tree.is_nothing_elsewhere());
        assert!(Tree::below(root_pid, None, Mark::new()).is_nothing_elsewhere());
        tree.kill(&[KillMethod::Found], |_| ());
        assert!(!marked.wait().unwrap().success());
        assert!(tree.is_nothing_elsewhere());
        assert_eq!(stranger.try_wait().unwrap(), None);
        [root, stranger].into_iter().for_each(end);
    }

    /// It has got another parent since, and removed its mark.
    #[test]
    fn a_process_that_was_learnt_is_not_gone_before_it_has_ended() {
        let (root, root_pid) = sleeper(Command::new("sh").args(["-c", "sleep 600 & wait"]));
        let mut tree = Tree::below(root_pid, None, None);
        wait::until_true("a child", || !tree.members().is_empty());
        tree.learn(clock::now() + std::time::Duration::from_secs(60));
        end(root);
        assert_eq!(tree.members(), []);
        assert!(!tree.is_nothing_elsewhere());
        tree.kill(&[KillMethod::Known], |_| ());
        wait::until_true("its end", || tree.is_nothing_elsewhere());
    }

    #[test]
    fn a_process_that_has_ended_is_no_longer_learnt() {
        let [(first, first_pid), (second, second_pid)] = [(); 2].map(|()| sleeper(Command::new("sleep").arg("600")));
        let mut tree = Tree::below(Pid::this(), None, None);
        // Listed children need not be learnt.
        tree.known.children = None;
        let mut are_learnt = || {
            tree.learn(clock::now() + std::time::Duration::from_secs(60));
            [first_pid, second_pid].map(|pid| tree.known.learnt().iter().any(|held| held.pid == pid))
        };
        assert_eq!(are_learnt(), [true, true]);
        end(first);
        assert_eq!(are_learnt(), [false, true]);
        end(second);
    }
}
