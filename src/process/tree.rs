//! Everything that descends from a process, whatever it did to get away: `setsid`, a double fork, a group of its own.
//!
//! The process must be a subreaper: then an orphan of its tree becomes its child, so that a walk down from it finds
//! all. What has changed its uid is found, and may be out of reach; what other daemons started on the tree's behalf is
//! not part of it.
//!
//! A `/proc` that is mounted with `hidepid` shows who is not root no process of another user's, nor one of his own whose
//! program he may not read. Their parents list them all the same.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use neli::clock;
use neli_proto::guard::Named;
use neli_proto::time::Time;
use nix::libc::{self, SIGKILL};
use nix::unistd::Pid;

use crate::process::cgroup::Cgroup;
use crate::process::known::{Known, OwnChildren};
use crate::process::scheduling::Scheduling;
use crate::process::system;

/// How often at most a kill looks again for what was not there the last time, before the caller has its turn again.
const LOOKS: usize = 16;

/// Whether `/proc` is that of this PID namespace. In another's the tree would be a stranger's.
#[must_use]
pub fn is_visible() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.to_str() == Some(&Pid::this().to_string()))
}

/// Whether all that descends from a process can be found: by the lists of children, which not every kernel has; else in a
/// `/proc` that shows everybody's processes, as it shows the first of all.
#[must_use]
pub fn is_complete() -> bool {
    Proc::new(PathBuf::from("/proc"), Pid::this()).is_complete()
}

/// The children that threads of this process besides the first have started (librdkafka's `kinit`), as far as the kernel lists
/// them: what it hands on to this process comes to the first.
#[must_use]
pub fn children_of_other_threads() -> Vec<Pid> {
    let own = Pid::this();
    let proc = Proc::new(PathBuf::from("/proc"), own);
    let threads = proc.numbers_in(&proc.mount.join(format!("{own}/task")));
    let others = threads.into_iter().filter(|thread| *thread != own);
    others.flat_map(|thread| proc.listed_children_of(own, thread)).collect()
}

/// What descends from one process, but for some of its children.
#[derive(Debug)]
pub struct Tree {
    root: Pid,
    spared: Vec<Pid>,
    /// What its processes get once they were sent SIGKILL.
    urgent: Option<Scheduling>,
    proc: Proc,
    cgroup: Option<Rc<Cgroup>>,
    /// The list of the root's children, when the root is this process.
    own_children: Option<OwnChildren>,
    known: Known,
}

impl Tree {
    /// Everything below `root`, which must be this process, or one that does not end meanwhile.
    #[must_use]
    pub fn below(root: Pid) -> Self {
        let own_children = if root == Pid::this() { OwnChildren::open().ok() } else { None };
        Self { own_children, ..Self::in_proc(PathBuf::from("/proc"), root) }
    }

    fn in_proc(mount: PathBuf, root: Pid) -> Self {
        let proc = Proc::new(mount, root);
        Self { root, spared: Vec::new(), urgent: None, proc, cgroup: None, own_children: None, known: Known::default() }
    }

    /// The tree without these processes and what is below them.
    #[must_use]
    pub fn sparing(mut self, spared: Vec<Pid>) -> Self {
        self.spared = spared;
        self
    }

    /// From now on these are spared, and no others.
    pub fn spare(&mut self, spared: Vec<Pid>) {
        self.spared = spared;
    }

    /// The tree, whose processes are given the processors first once they were sent SIGKILL, if that is allowed. A process
    /// has to run to die: on a busy machine it would wait its turn, for longer than a kill margin.
    #[must_use]
    pub fn urgent(mut self) -> Self {
        self.urgent = Some(Scheduling::for_killed());
        self
    }

    /// The tree, which is born into this control group. What is in it belongs to the tree, whatever it descends from.
    #[must_use]
    pub fn born_into(mut self, cgroup: Option<Rc<Cgroup>>) -> Self {
        self.cgroup = cgroup;
        self
    }

    /// The control group that it is born into.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_deref()
    }

    /// The processes that live, parents before their children, and what else is in the control group. Those that have
    /// ended and were not waited for are none.
    #[must_use]
    pub fn members(&self) -> Vec<Pid> {
        let mut members: Vec<Pid> = self.descendants().into_iter().map(|process| process.pid).collect();
        let known: HashSet<Pid> = members.iter().copied().collect();
        let grouped = self.cgroup.as_ref().map(|cgroup| cgroup.members()).unwrap_or_default();
        let lives = |pid: &Pid| self.proc.process(*pid).is_some_and(|process| process.lives);
        members.extend(grouped.into_iter().filter(|pid| !known.contains(pid) && lives(pid)));
        members
    }

    /// What keeps the tree from being gone: its members; or, where none lives, the children that have ended and can't be
    /// waited for, since somebody traces them.
    #[must_use]
    pub fn remains(&self) -> Vec<Pid> {
        let members = self.members();
        if members.is_empty() { self.unspared_children().0 } else { members }
    }

    /// The children of the root that are not spared, and whether they are all of them: no read has failed.
    fn unspared_children(&self) -> (Vec<Pid>, bool) {
        self.proc.begin_to_look();
        let mut children = self.proc.shown_children(self.root);
        if let Some(root) = self.proc.process(self.root) {
            children.extend(self.proc.hidden_children(&root, &self.proc.listed_children(&root)));
        }
        let pids = children.into_iter().map(|child| child.pid);
        (pids.filter(|pid| !self.spared.contains(pid)).collect(), self.proc.has_seen_all())
    }

    fn descendants(&self) -> Vec<Process> {
        self.descendants_by(None)
    }

    /// Those that are found before `end`. Whether they are all of them [`Proc::has_seen_all`] tells.
    fn descendants_by(&self, end: Option<Time>) -> Vec<Process> {
        self.proc.begin_to_look();
        let mut found = Vec::new();
        let snapshot = self.proc.snapshot();
        let mut seen = HashSet::from([self.root]);
        let mut unseen: VecDeque<Process> = self.proc.process(self.root).into_iter().collect();
        while let Some(parent) = unseen.pop_front() {
            if end.is_some_and(|end| clock::now() >= end) {
                self.proc.missed.set(true);
                break;
            }
            for child in self.proc.children(&parent, snapshot.as_ref()) {
                if self.spared.contains(&child.pid) || !seen.insert(child.pid) {
                    continue;
                }
                unseen.push_back(child);
                if child.lives {
                    found.push(child);
                }
            }
        }
        found
    }

    /// Whether nothing is left, as far as this process can prove it: it is `root`, a subreaper, and waits for nobody
    /// meanwhile.
    ///
    /// A walk is no proof: a process may be handed to another parent while it is under way, and be seen at neither. But
    /// the topmost of what lives is a child of the root all the time, even when it has ended, until it is waited for; so a
    /// look that finds no child finds nothing because there is nothing. (The lists of children that the kernel offers miss
    /// some when others are waited for meanwhile. Ours alone is asked, for what `/proc` hides.)
    ///
    /// A read that fails, as at a memory limit, proves nothing: then it is not gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_all_below(&[]) && self.is_out_of_cgroup()
    }

    /// Whether nothing of it is left but these children of the root, none of which was waited for, and what is below them.
    #[must_use]
    pub fn is_all_below(&self, children: &[Pid]) -> bool {
        let (unspared, are_all) = self.unspared_children();
        are_all && unspared.iter().all(|child| children.contains(child))
    }

    /// Whether its control group holds nobody, if it has one. It is asked besides, and proves nothing alone.
    #[must_use]
    pub fn is_out_of_cgroup(&self) -> bool {
        !self.cgroup.as_ref().is_some_and(|cgroup| cgroup.is_populated())
    }

    /// Sends `signals`, in this order, to each process that lives, but for those of this process group. Gives those that were
    /// sent them.
    pub fn signal_but(&self, group: Option<Pid>, signals: &[i32]) -> Vec<Named> {
        let members = self.descendants();
        let known = self.known_to(&members);
        let others = members.into_iter().filter(|member| group.is_none() || member.group != group);
        // Named first: it may end at once.
        let named = others.map(|member| (self.proc.named(member.pid), member));
        named.filter_map(|(named, member)| self.send(&member, signals, &known).then_some(named)).collect()
    }

    /// The processes that live, as far as they are found before `end`.
    #[must_use]
    pub fn named_members(&self, end: Time) -> Vec<Named> {
        self.descendants_by(Some(end)).into_iter().map(|member| self.proc.named(member.pid)).collect()
    }

    /// Takes note of the processes below the root's children, as far as they are found before `end`: so that
    /// [`kill_known`](Self::kill_known) can kill them later without a look.
    pub fn learn(&mut self, end: Time) {
        self.known.forget_the_ended();
        let members = self.descendants_by(Some(end));
        let parents = self.known_to(&members);
        for member in members {
            // The root's children can be listed at any time.
            let is_listed = self.own_children.is_some() && member.parent == self.root;
            if is_listed || self.known.holds(member.pid) {
                continue;
            }
            let Ok(held) = system::open_pidfd(member.pid) else { return };
            // Its number may have become a stranger's since it was found.
            if self.is_still(&member, &parents, true) && !self.known.hold(member.pid, held) {
                return;
            }
        }
    }

    /// Another tree begins below the same root: nothing of it is known.
    pub fn begin_anew(&mut self) {
        self.known = Known::default();
    }

    /// SIGKILL to what can be killed without opening a file or allocating memory: what was [learnt](Self::learn), and the
    /// root's children, if the root is this process. At the memory limit that guard and job share, whatever is opened
    /// or allocated may stall or fail.
    ///
    /// When a parent has died its children are the root's, and the next call finds them.
    pub fn kill_known(&self) {
        self.known.kill(|pid| self.hasten_first(pid));
        if let Some(children) = &self.own_children {
            children.for_each(|child| {
                // Nobody waits for it meanwhile, so that its number is its own.
                if !self.spared.contains(&child) && system::signal(child, SIGKILL).is_ok() {
                    self.hasten_first(child);
                }
            });
        }
    }

    /// SIGKILL to all that is in the control group, whoever's it is by now.
    ///
    /// The kernel may keep us waiting for somebody who changes another group; nobody who sends a signal waits.
    pub fn kill_cgroup(&self) {
        self.cgroup.iter().for_each(|cgroup| cgroup.kill());
    }

    /// SIGKILL to each process that lives, parents before their children, until a look finds none that was not sent it.
    /// Whether the looks saw everything: no read has failed.
    ///
    /// A process that was sent SIGKILL starts no other, not even when it is in the middle of a fork (which SIGSTOP
    /// would let through): so what is new at the next look comes from what was not seen, and a tree that goes on
    /// forking does not outrun it. What got away in spite of it, the next call finds.
    pub fn kill_found(&self) -> bool {
        let mut killed = HashSet::new();
        for _ in 0..LOOKS {
            let members = self.descendants();
            let has_seen_all = self.proc.has_seen_all();
            let known = self.known_to(&members);
            let fresh: Vec<Process> = members.into_iter().filter(|member| killed.insert(member.pid)).collect();
            if fresh.is_empty() {
                return has_seen_all;
            }
            let dying: Vec<Process> =
                fresh.into_iter().filter(|member| self.send(member, &[SIGKILL], &known)).collect();
            if let Some(scheduling) = self.urgent {
                for member in &dying {
                    self.hasten(member, scheduling);
                }
            }
        }
        true
    }

    fn known_to(&self, members: &[Process]) -> HashSet<Pid> {
        members.iter().map(|member| member.pid).chain([self.root]).collect()
    }

    /// Lets each thread of a process that was sent SIGKILL run at once. It never gets to run the program again.
    fn hasten(&self, member: &Process, scheduling: Scheduling) {
        for thread in self.proc.threads(member) {
            // It may be gone already. That its number is another's by now, within some microseconds, takes a machine
            // that has no other number to give.
            let _ = scheduling.set_for(thread);
        }
    }

    /// The same for its first thread alone, whose number is the process's.
    fn hasten_first(&self, pid: Pid) {
        if let Some(scheduling) = self.urgent {
            let _ = scheduling.set_for(pid);
        }
    }

    /// Sends `signals` to a member, if it still is one. Its number may have become a stranger's since it was found: so
    /// the process is held first, by a pidfd, and then looked at again. (Where the kernel has no pidfd, some
    /// microseconds are left.) A child of our own keeps its number until we wait for it, which nobody does meanwhile.
    ///
    /// Returns whether it was sent them. It may end at any time, and may be a stranger's: the next look says what is left.
    fn send(&self, member: &Process, signals: &[i32], known: &HashSet<Pid>) -> bool {
        let pid = member.pid;
        if member.parent == Pid::this() {
            return signals.iter().all(|signal| system::signal(pid, *signal).is_ok());
        }
        let held = system::open_pidfd(pid);
        self.is_still(member, known, held.is_ok())
            && signals.iter().all(|signal| {
                match &held {
                    Ok(held) => system::signal_pidfd(held.as_fd(), *signal),
                    Err(_) => system::signal(pid, *signal),
                }
                .is_ok()
            })
    }

    /// Whether it is a member now, as far as its parent tells: a child of one of the `known`.
    fn is_still(&self, member: &Process, known: &HashSet<Pid>, is_held: bool) -> bool {
        match self.proc.process(member.pid) {
            Some(process) => known.contains(&process.parent),
            None if member.is_hidden && is_held => self.proc.lists(member),
            None => false,
        }
    }
}

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Process {
    pid: Pid,
    parent: Pid,
    /// Its process group; not known of one that is hidden.
    group: Option<Pid>,
    /// Those that have ended and can't be seen any more included; 1 while it has none but its first.
    threads: u32,
    lives: bool,
    /// `/proc` does not show it: only its parent does.
    is_hidden: bool,
}

/// All processes, by their parents: what is needed where the kernel does not list children (`CONFIG_PROC_CHILDREN`).
type Snapshot = HashMap<Pid, Vec<Process>>;

/// The processes of the machine.
#[derive(Debug)]
struct Proc {
    mount: PathBuf,
    lists_children: bool,
    /// Whether a read has failed since [`begin_to_look`](Self::begin_to_look), so that something may not have been seen.
    missed: Cell<bool>,
}

impl Proc {
    fn new(mount: PathBuf, root: Pid) -> Self {
        let lists_children = mount.join(format!("{root}/task/{root}/children")).exists();
        Self { mount, lists_children, missed: Cell::new(false) }
    }

    fn begin_to_look(&self) {
        self.missed.set(false);
    }

    fn has_seen_all(&self) -> bool {
        !self.missed.get()
    }

    /// What was read; `None` where there is nothing to be seen, or where the read has failed, which is noted.
    fn noted<T>(&self, read: io::Result<T>) -> Option<T> {
        read.inspect_err(|error| {
            // Who has ended meanwhile is gone, and who is hidden is shown by his parent.
            let is_known =
                matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM));
            if !is_known {
                self.missed.set(true);
            }
        })
        .ok()
    }

    /// The entries of a directory that are numbers.
    fn numbers_in(&self, directory: &Path) -> Vec<Pid> {
        let entries = self.noted(fs::read_dir(directory)).into_iter().flatten();
        let number = |entry: io::Result<fs::DirEntry>| self.noted(entry)?.file_name().to_str()?.parse().ok();
        entries.filter_map(number).map(Pid::from_raw).collect()
    }

    fn is_complete(&self) -> bool {
        self.lists_children || self.process(Pid::from_raw(1)).is_some()
    }

    fn snapshot(&self) -> Option<Snapshot> {
        if self.lists_children {
            return None;
        }
        let mut snapshot = Snapshot::new();
        for pid in self.numbers_in(&self.mount) {
            if let Some(process) = self.process(pid) {
                snapshot.entry(process.parent).or_default().push(process);
            }
        }
        Some(snapshot)
    }

    fn children(&self, parent: &Process, snapshot: Option<&Snapshot>) -> Vec<Process> {
        match snapshot {
            Some(snapshot) => snapshot.get(&parent.pid).cloned().unwrap_or_default(),
            None if parent.is_hidden => self.shown_children(parent.pid),
            None => {
                let listed = self.listed_children(parent);
                let mut children: Vec<Process> = listed.iter().filter_map(|pid| self.process(*pid)).collect();
                if children.len() < listed.len() {
                    children.extend(self.hidden_children(parent, &listed));
                }
                children
            }
        }
    }

    /// The children of `parent` that are hidden from us, of those that it `listed` a moment ago: who has ended since, and
    /// was waited for, is listed no more.
    fn hidden_children(&self, parent: &Process, listed: &[Pid]) -> Vec<Process> {
        let unseen: Vec<Pid> = listed.iter().copied().filter(|pid| self.process(*pid).is_none()).collect();
        if unseen.is_empty() {
            return Vec::new();
        }
        let still_listed = self.listed_children(parent);
        let hidden = unseen.into_iter().filter(|pid| still_listed.contains(pid));
        hidden
            .map(|pid| Process { pid, parent: parent.pid, group: None, threads: 1, lives: true, is_hidden: true })
            .collect()
    }

    /// Whether its parent lists it, as long as that is not hidden itself.
    fn lists(&self, child: &Process) -> bool {
        self.process(child.parent).is_some_and(|parent| self.listed_children(&parent).contains(&child.pid))
    }

    /// The children of `parent` among all that we are shown: where it is hidden itself, it lists none to us.
    fn shown_children(&self, parent: Pid) -> Vec<Process> {
        let shown = self.numbers_in(&self.mount).into_iter().filter_map(|pid| self.process(pid));
        shown.filter(|process| process.parent == parent).collect()
    }

    /// The children of each thread of `parent`.
    fn listed_children(&self, parent: &Process) -> Vec<Pid> {
        self.threads(parent).into_iter().flat_map(|thread| self.listed_children_of(parent.pid, thread)).collect()
    }

    fn listed_children_of(&self, process: Pid, thread: Pid) -> Vec<Pid> {
        let list = self.mount.join(format!("{process}/task/{thread}/children"));
        let list = self.noted(fs::read_to_string(list)).unwrap_or_default();
        list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).map(Pid::from_raw).collect()
    }

    /// The threads of a process. Most have one, whose number is known: among a thousand processes that saves a kill margin.
    fn threads(&self, process: &Process) -> Vec<Pid> {
        if process.threads == 1 {
            vec![process.pid]
        } else {
            self.numbers_in(&self.mount.join(format!("{}/task", process.pid)))
        }
    }

    fn named(&self, pid: Pid) -> Named {
        let name = self.noted(fs::read(self.mount.join(format!("{pid}/comm")))).unwrap_or_default();
        Named { pid: pid.as_raw(), name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned() }
    }

    fn process(&self, pid: Pid) -> Option<Process> {
        let stat = self.noted(fs::read(self.mount.join(format!("{pid}/stat"))))?;
        parsed(pid, &stat)
    }
}

/// Reads a line of `/proc/PID/stat`: the name stands in parentheses, and may hold any byte but NUL, a `)` too.
fn parsed(pid: Pid, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?);
    let group = fields.next()?.parse().ok().map(Pid::from_raw);
    // The third to the 20th field of proc_pid_stat(5), of which three are read.
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    // A process whose first thread has ended shows as a zombie while the other threads run.
    let lives = !matches!(state, "Z" | "X") || threads > 1;
    Some(Process { pid, parent, group, threads, lives, is_hidden: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` with these processes: pid, parent, state, threads.
    fn proc_with(processes: &[(i32, i32, char, u32)], lists_children: bool) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        fs::write(proc.path().join("version"), "not a process").unwrap();
        for (pid, parent, state, threads) in processes {
            let tasks = proc.path().join(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&tasks).unwrap();
            let stat =
                format!("{pid} (a ) b (c) {state} {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0 0\n");
            fs::write(proc.path().join(format!("{pid}/stat")), stat).unwrap();
            if lists_children {
                let children: Vec<String> =
                    processes.iter().filter(|other| other.1 == *pid).map(|other| other.0.to_string()).collect();
                fs::write(tasks.join("children"), children.join(" ")).unwrap();
            }
        }
        proc
    }

    fn members_of(root: i32, spared: &[i32], processes: &[(i32, i32, char, u32)]) -> Vec<i32> {
        let [scanned, listed] = [false, true].map(|lists_children| {
            let proc = proc_with(processes, lists_children);
            let tree = Tree::in_proc(proc.path().to_owned(), Pid::from_raw(root))
                .sparing(spared.iter().copied().map(Pid::from_raw).collect());
            assert_eq!(tree.proc.lists_children, lists_children);
            let mut members: Vec<i32> = tree.members().into_iter().map(Pid::as_raw).collect();
            members.sort_unstable();
            members
        });
        assert_eq!(scanned, listed);
        scanned
    }

    #[test]
    fn members_are_found_at_any_depth_and_strangers_are_not() {
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
    fn what_is_spared_is_spared_with_all_below_it() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1), (8, 5, 'S', 1)];
        assert_eq!(members_of(5, &[6], &processes), [8]);
    }

    #[test]
    fn the_ended_are_no_members_but_their_children_are() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'Z', 1), (7, 6, 'S', 1), (8, 5, 'X', 1)];
        assert_eq!(members_of(5, &[], &processes), [7]);
    }

    #[test]
    fn an_ended_child_may_hide_what_has_been_handed_on_meanwhile() {
        // 7 is the child of 6, which has gone between the two looks: whoever walks down from 5 does not find it.
        let gone = |processes: &[(i32, i32, char, u32)]| {
            let proc = proc_with(processes, false);
            Tree::in_proc(proc.path().to_owned(), Pid::from_raw(5)).sparing(vec![Pid::from_raw(9)]).is_gone()
        };
        assert!(!gone(&[(5, 1, 'S', 1), (6, 5, 'Z', 1), (7, 6, 'S', 1), (9, 5, 'S', 1)]));
        assert!(!gone(&[(5, 1, 'S', 1), (6, 5, 'Z', 1)]));
        assert!(gone(&[(5, 1, 'S', 1), (9, 5, 'S', 1), (10, 9, 'S', 1)]));
    }

    /// A directory can be opened as a file, and not be read: as any file when there is no memory for its content.
    #[test]
    fn a_read_that_fails_is_no_empty_tree() {
        let processes = [(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1)];
        let unreadable = |file: &str, lists_children: bool| {
            let proc = proc_with(&processes, lists_children);
            let file = proc.path().join(file);
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            let tree = Tree::in_proc(proc.path().to_owned(), Pid::from_raw(5));
            assert!(!tree.is_gone(), "{}", file.display());
            let found: Vec<i32> = tree.descendants().iter().map(|member| member.pid.as_raw()).collect();
            assert!(!tree.proc.has_seen_all(), "{}", file.display());
            found
        };
        for file in ["5/stat", "6/stat"] {
            unreadable(file, false);
        }
        assert_eq!(unreadable("5/stat", true), [0; 0]);
        assert_eq!(unreadable("5/task/5/children", true), [0; 0]);
        assert_eq!(unreadable("6/task/6/children", true), [6]);
        // Its parent shows it all the same.
        assert_eq!(unreadable("7/stat", true), [6, 7]);
    }

    #[test]
    fn what_its_parent_alone_shows_is_found_with_what_is_below_it() {
        let proc = proc_with(&[(5, 1, 'S', 1), (6, 5, 'S', 1), (7, 6, 'S', 1), (8, 7, 'S', 1)], true);
        for hidden in [6, 7] {
            fs::remove_dir_all(proc.path().join(hidden.to_string())).unwrap();
            let tree = Tree::in_proc(proc.path().to_owned(), Pid::from_raw(5));
            let mut members: Vec<i32> = tree.members().into_iter().map(Pid::as_raw).collect();
            members.sort_unstable();
            // Of two in a row the second is hidden by the first, until that one has ended.
            assert_eq!(members, if hidden == 6 { vec![6, 7, 8] } else { vec![6] });
            assert!(!tree.is_gone());
            assert_eq!(tree.remains().first(), Some(&Pid::from_raw(6)));
        }
    }

    #[test]
    fn without_lists_of_children_the_first_process_tells_whether_others_are_hidden() {
        let is_complete = |processes: &[(i32, i32, char, u32)], lists_children| {
            let proc = proc_with(processes, lists_children);
            Proc::new(proc.path().to_owned(), Pid::from_raw(5)).is_complete()
        };
        let (all, own) = ([(1, 0, 'S', 1), (5, 1, 'S', 1)], [(5, 1, 'S', 1)]);
        assert!(is_complete(&all, true) && is_complete(&own, true) && is_complete(&all, false));
        assert!(!is_complete(&own, false));
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_lives() {
        assert_eq!(members_of(5, &[], &[(5, 1, 'S', 1), (6, 5, 'Z', 2)]), [6]);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_no_process() {
        let pid = Pid::from_raw(7);
        assert_eq!(parsed(pid, b""), None);
        assert_eq!(parsed(pid, b"7 (a"), None);
        assert_eq!(parsed(pid, b"7 (a) S x 1 1"), None);
        assert_eq!(parsed(pid, b"7 (a) S 1 1 1"), None);
        assert_eq!(parsed(pid, b"7 (a) \xff 1 1 1"), None);
    }
}
