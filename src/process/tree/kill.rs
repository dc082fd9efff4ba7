//! Sends signals to a tree. Each process is checked again before it gets one, because its pid may have been reused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::guard::{KillMethod, KillRound, Named};
use neli_proto::time::Time;
use nix::libc::{ESRCH, SIGKILL};
use nix::sys::resource::{self, Resource};
use nix::unistd::Pid;

use super::{OwnChildren, Tree};
use crate::process::attributes::Scheduling;
use crate::process::cgroup::Cgroup;
use crate::process::held::HeldProcess;
use crate::process::procfs::Process;
use crate::process::system::Shared;
use crate::process::{locked, system};

/// The first and the longest pause between two rounds of a thread that kills what is known.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(64);

/// How often a kill looks for new processes before it returns to the caller.
const LOOKS: usize = 16;

/// The longest time of a kill before the caller can continue. All processes that were found by then were sent SIGKILL.
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// The children of at least this number of processes are listed: if a job uses every processor, the time may be over before the first
/// check.
const LEAST_LISTED: usize = 64;

/// The most processes that are learnt. Each needs a descriptor, so at most a quarter of the allowed ones are used.
const MOST_LEARNT: usize = 256;

impl Tree {
    /// Sends SIGKILL to the processes that are left, by the methods that [`Killing`](neli_proto::guard::Killing) names, in this order.
    /// `kill_cgroup` does so for a control group.
    pub(crate) fn kill(&self, methods: &[KillMethod], kill_cgroup: fn(&Arc<Cgroup>)) -> KillRound {
        let mut round = KillRound { has_seen_all: true, ..KillRound::default() };
        let mut seen = None;
        for method in methods {
            match method {
                KillMethod::Look => seen = self.known.living(),
                KillMethod::Known => self.known.kill_all_but(None),
                KillMethod::Cgroup => self.cgroup.iter().for_each(kill_cgroup),
                KillMethod::Found => round = self.kill_found(),
            }
        }
        // This opens a file, so it comes after the kill. One that is traced may have ended.
        let seen =
            [seen, self.known.take_seen_living()].into_iter().flatten().filter(|(_, pid)| !self.procfs.is_traced(*pid));
        KillRound { lived_at: round.lived_at.max(seen.map(|(at, _)| at).max()), ..round }
    }

    /// Sends `signals`, in this order, to each living process, except for those of this process group, as far as that is possible before
    /// `end`. Returns the processes that got them.
    pub(crate) fn signal_all_but(&self, group: Option<Pid>, signals: &[i32], end: Time) -> Vec<Named> {
        let members = self.descendants_by(Some(end));
        let parents = self.with_root(&members);
        let others = members.into_iter().filter(|member| group.is_none() || member.group != group);
        // Its name is read first, because it may end at once.
        let named = others.take_while(|_| clock::now() < end).map(|member| (self.procfs.named(member.pid), member));
        let send = |held: &HeldProcess| signals.iter().all(|signal| held.signal(*signal).is_ok());
        named
            .filter_map(|(named, member)| self.held(&member, &parents).is_some_and(|it| send(&it)).then_some(named))
            .collect()
    }

    /// Opens pidfds of the processes below the root's children that are found before `end`, so that they can be killed later without
    /// reading `/proc`.
    pub(crate) fn learn(&mut self, end: Time) {
        // Their pids may be reused.
        self.known.learnt_mut().retain(|held| !held.tells_end());
        let allowed = resource::getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft / 4);
        let room = usize::try_from(allowed).map_or(MOST_LEARNT, |allowed| allowed.min(MOST_LEARNT));
        let members = self.descendants_by(Some(end));
        let parents = self.with_root(&members);
        for member in members {
            // The root's children can be listed at any time, so they need no pidfd.
            let is_listed = self.known.children.is_some() && member.parent == self.root;
            if is_listed || self.known.learnt().iter().any(|held| held.pid == member.pid) {
                continue;
            }
            let pidfd = match system::open_pidfd(member.pid) {
                Ok(pidfd) => pidfd,
                // It has ended since it was found.
                Err(error) if error.raw_os_error() == Some(ESRCH) => continue,
                // There is no free descriptor, or the kernel has no pidfds.
                Err(_) => return,
            };
            // Its pid may have been reused.
            if self.is_still(&member, &parents, true) {
                let mut learnt = self.known.learnt_mut();
                if learnt.len() >= room {
                    return;
                }
                learnt.push(HeldProcess { pid: member.pid, pidfd: Some(pidfd) });
            }
        }
    }

    /// Sends SIGKILL to each living process as soon as it is found, parents before their children, until a check finds only processes that
    /// were sent it, or the time is over.
    ///
    /// A process that was sent SIGKILL starts no other, not even in the middle of a fork (which SIGSTOP would permit). So a new process at
    /// the next check comes from a process that was not seen, and a forking tree can't be faster than the kill. The next call finds
    /// processes that escaped nevertheless.
    fn kill_found(&self) -> KillRound {
        let begun = clock::now();
        let end = begun + LONGEST_LOOK;
        let (mut killed, mut one_lives) = (HashSet::new(), false);
        for _ in 0..LOOKS {
            let before = killed.len();
            let is_over = |listed| listed >= LEAST_LISTED && clock::now() >= end;
            self.walk(is_over, |member, known| {
                if !killed.insert(member.pid) {
                    return;
                }
                if let Some(held) = self.held(member, known) {
                    one_lives = one_lives || !held.tells_end();
                    if held.signal(SIGKILL).is_ok() {
                        self.prioritize(member);
                    }
                }
            });
            one_lives |= self.kill_marked(&mut killed);
            if killed.len() == before || clock::now() >= end {
                break;
            }
        }
        let has_seen_all = self.procfs.has_seen_all();
        one_lives =
            one_lives || (killed.is_empty() && self.cgroup.as_ref().is_some_and(|cgroup| cgroup.is_populated()));
        let none_lives = has_seen_all && killed.is_empty() && !one_lives;
        let [lived_at, none_lived_at] = [one_lives, none_lives].map(|is_so| is_so.then_some(begun));
        KillRound { has_seen_all, lived_at, none_lived_at }
    }

    /// Sends SIGKILL to the marked processes that are not among the `killed`, and adds them. Returns whether one of them was alive.
    fn kill_marked(&self, killed: &mut HashSet<Pid>) -> bool {
        let mut one_lives = false;
        for pid in self.marked() {
            // A process of the job that ends meanwhile may leave its pid to a stranger. So the process is held, and its mark read again.
            // Without pidfds a risk of some microseconds remains.
            let held = HeldProcess::open(pid);
            if !self.mark.is_some_and(|mark| self.procfs.has_mark(pid, mark)) || !killed.insert(pid) {
                continue;
            }
            one_lives = one_lives || !held.tells_end();
            if held.signal(SIGKILL).is_ok()
                && let Some(scheduling) = self.known.scheduling
            {
                // Of the first thread, whose id is the process's.
                let _ = scheduling.set_for(pid);
            }
        }
        one_lives
    }

    fn with_root(&self, members: &[Process]) -> HashSet<Pid> {
        members.iter().map(|member| member.pid).chain([self.root]).collect()
    }

    /// Lets each thread of a process that was sent SIGKILL run at once. It can't run the program's code any more.
    fn prioritize(&self, member: &Process) {
        let Some(scheduling) = self.known.scheduling else { return };
        for thread in self.procfs.threads(member) {
            // The thread may be gone. Its id could be reused within these microseconds only if the machine had no other id left.
            let _ = scheduling.set_for(thread);
        }
    }

    /// A member, if it still is one. Its id may belong to another process by now, so the process is first held by a pidfd, and then checked
    /// again. (If the kernel has no pidfds, a risk of some microseconds remains.) A child of this process keeps its id until it is waited
    /// for, which is not done meanwhile.
    fn held(&self, member: &Process, parents: &HashSet<Pid>) -> Option<HeldProcess> {
        let pid = member.pid;
        if member.parent == Pid::this() {
            return Some(HeldProcess { pid, pidfd: None });
        }
        Some(HeldProcess::open(pid)).filter(|held| self.is_still(member, parents, held.pidfd.is_some()))
    }

    /// Whether it is still a member, according to its parent: a child of one of `parents`.
    fn is_still(&self, member: &Process, parents: &HashSet<Pid>, is_held: bool) -> bool {
        match self.procfs.process(member.pid) {
            Some(process) => parents.contains(&process.parent),
            None if member.is_hidden && is_held => self.procfs.lists(member),
            None => false,
        }
    }
}

/// Calls `round` again and again, with pauses, until it returns false.
#[expect(clippy::disallowed_methods, reason = "it sleeps between two rounds, and nothing waits for it")]
pub(crate) fn in_rounds(mut round: impl FnMut() -> bool) {
    let mut pause = FIRST_PAUSE;
    while round() {
        thread::sleep(pause);
        pause = LAST_PAUSE.min(pause * 2);
    }
}

/// When a process was seen alive, and which one.
type SeenLiving = Mutex<Option<(Time, Pid)>>;

/// The processes of a tree that can be killed without opening a file or allocating memory, which at a memory limit that guard and job share
/// may stall or fail: those that were [learnt](Tree::learn), and the children of this process if it is the root, whose pids must not be
/// reused meanwhile ([`keep_children`](crate::process::reap::keep_children)).
///
/// When a parent has died, its children become the root's, and the next kill finds them.
#[derive(Clone, Debug)]
pub(crate) struct KnownProcesses {
    pub(super) children: Option<Arc<OwnChildren>>,
    /// These children are none of the tree's.
    pub(super) excluded: Vec<Pid>,
    /// A descendant of the job always stays one, so a pidfd is sufficient to kill it later. One thread adds and removes them, and needs no memory while
    /// it does, since another one may have to kill them.
    pub(super) learnt: Arc<Shared<RwLock<Vec<HeldProcess>>>>,
    /// When a thread that kills them has last seen one alive, and which one, until the next kill of the tree takes it: there may be none
    /// left for that kill to see.
    pub(super) seen_living: Arc<Shared<SeenLiving>>,
    /// What they get after SIGKILL.
    pub(super) scheduling: Option<Scheduling>,
}

impl KnownProcesses {
    /// None yet.
    pub(super) fn none() -> Self {
        Self {
            children: None,
            excluded: Vec::new(),
            learnt: Arc::new(Shared::new(RwLock::new(Vec::with_capacity(MOST_LEARNT)))),
            seen_living: Arc::new(Shared::new(Mutex::default())),
            scheduling: None,
        }
    }

    pub(super) fn learnt(&self) -> RwLockReadGuard<'_, Vec<HeldProcess>> {
        self.learnt.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn learnt_mut(&self) -> RwLockWriteGuard<'_, Vec<HeldProcess>> {
        self.learnt.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that is alive now, if any is. If it is traced, it may have ended.
    fn living(&self) -> Option<(Time, Pid)> {
        let now = clock::now();
        let mut living = self.learnt().iter().find(|held| !held.tells_end()).map(|held| held.pid);
        self.for_each_child(|child| {
            if living.is_none() && !system::has_ended(child) {
                living = Some(child);
            }
        });
        living.map(|pid| (now, pid))
    }

    /// Notes one that is alive now, if any is.
    pub(crate) fn note_living(&self) {
        if let Some(living) = self.living() {
            *locked(&self.seen_living) = Some(living);
        }
    }

    pub(super) fn take_seen_living(&self) -> Option<(Time, Pid)> {
        locked(&self.seen_living).take()
    }

    /// Sends SIGKILL to each, except for a child that another thread waits for.
    pub(crate) fn kill_all_but(&self, waited_for: Option<Pid>) {
        let prioritize = |pid| drop(self.scheduling.map(|scheduling| scheduling.set_for(pid)));
        for held in self.learnt().iter().filter(|held| held.signal(SIGKILL).is_ok()) {
            prioritize(held.pid);
        }
        self.for_each_child(|child| {
            if Some(child) != waited_for && system::signal(child, SIGKILL).is_ok() {
                prioritize(child);
            }
        });
    }

    /// Calls `act` with each child of this process that is one of the tree's.
    pub(crate) fn for_each_child(&self, mut act: impl FnMut(Pid)) {
        if let Some(children) = &self.children {
            children.for_each(|child| {
                if !self.excluded.contains(&child) {
                    act(child);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use neli_kafka::clock;
    use neli_proto::guard::Killing;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;
    use crate::process::cgroup::tests::StalledGroup;
    use crate::process::procfs::{Procfs, tests::proc_with};

    /// A tree's root, which must be waited for, and a process below it in its own session.
    fn family() -> (Child, OwnedFd) {
        let command = "setsid sleep 600 & echo $!; wait";
        let mut root = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(root.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let below = system::open_pidfd(Pid::from_raw(line.trim().parse().unwrap())).unwrap();
        (root, below)
    }

    fn tree_of(root: &Child, cgroup: Option<Arc<Cgroup>>) -> Tree {
        Tree::below(Pid::from_raw(root.id().cast_signed()), cgroup, None)
    }

    fn kill_once(tree: &Tree) {
        let now = clock::now();
        let round = Killing::with_every_method(now, Duration::from_secs(60)).round(now);
        tree.kill(round, |_| ());
    }

    fn dies(process: &OwnedFd) -> bool {
        let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut end, PollTimeout::from(10_000_u16)) == Ok(1)
    }

    #[test]
    fn a_tree_without_learnt_processes_is_found_at_the_first_check() {
        let (mut root, below) = family();
        kill_once(&tree_of(&root, None));
        assert!(dies(&below), "it was sent SIGKILL");
        assert!(root.wait().unwrap().success(), "the root is no part of the tree");
    }

    #[test]
    fn a_process_that_ends_meanwhile_does_not_keep_the_others_from_being_learnt() {
        let [mut ended, mut living] = [(); 2].map(|()| Command::new("sleep").arg("600").spawn().unwrap());
        ended.kill().unwrap();
        ended.wait().unwrap();
        let [first, second] = [&ended, &living].map(|child| child.id().cast_signed());
        let proc = proc_with(&[(5, 1, 'S', 1), (first, 5, 'S', 1), (second, 5, 'S', 1)]);
        let root = Pid::from_raw(5);
        let mut tree = Tree::in_procfs(Procfs::new(proc.path().to_owned()), root);
        tree.learn(clock::now() + Duration::from_secs(60));
        tree.kill(&[KillMethod::Known], |_| ());
        let is_killed =
            living.try_wait().unwrap().is_some() || dies(&system::open_pidfd(Pid::from_raw(second)).unwrap());
        living.kill().unwrap();
        living.wait().unwrap();
        assert!(is_killed);
    }

    #[test]
    fn known_processes_are_killed_while_the_control_group_blocks() {
        let (mut root, below) = family();
        let stalled = StalledGroup::new();
        thread::scope(|scope| {
            let killing = scope.spawn(|| {
                let mut tree = tree_of(&root, Some(Arc::new(stalled.open())));
                tree.learn(clock::now() + Duration::from_secs(60));
                let now = clock::now();
                let mut killing = Killing::new(now, Duration::from_secs(60));
                for _ in 0..2 {
                    let now = killing.again_at();
                    let round = tree.kill(killing.round(now), |cgroup| cgroup.kill());
                    killing.performed(now, round, false);
                }
            });
            let is_first = dies(&below) && !killing.is_finished();
            assert!(stalled.is_killed_now());
            assert!(is_first, "it was sent SIGKILL while the control group was waited for");
        });
        assert!(root.wait().unwrap().success());
    }
}
