//! The job of one election with its guard: its environment, the guard's process and socket, and the means to kill the job if its guard can't.
//!
//! The processes that a dead guard has left come to its supervisor, which is a subreaper too, and kills them. It begins while the guard hangs or dies.
//! So each round looks below this process, where the job's processes are before the guard's death (as those of its child) and after it: whoever
//! traces a dead guard keeps this process from waiting for it, and not from inheriting them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use neli_kafka::{ElectionId, clock};
use neli_proto::guard::Killing;
use neli_proto::record::MemberId;
use neli_proto::supervisor::Event;
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::libc::SIGKILL;
use nix::unistd::Pid;
use tokio::io::Interest;

use crate::config::{Config, Once, VARIABLE_PREFIX, job_variables};
use crate::guard::{GuardConfig, GuardHandle, Order, PROGRAM};
use crate::process::cgroup::Cgroup;
use crate::process::held::HeldProcess;
use crate::process::ready::Ready;
use crate::process::tree::Tree;
use crate::process::{procfs, system};
use crate::report::notify;
use crate::supervise::orphan_thread::{OrphanThread, Watch};

/// [`GuardHandle::start`] or [`GuardHandle::begin`].
pub(super) type StartGuard = fn(&Path, &GuardConfig) -> io::Result<GuardHandle>;

/// Answers to read, and room for orders.
const OF_SOCKET: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// The job of one election, which its guard runs.
pub(super) struct GuardedJob {
    /// The configuration for each of its guards.
    pub(super) config: GuardConfig,
    pub(super) guard: GuardHandle,
    pub(super) ready: Ready,
    /// Whether the guard's socket is closed. Then SIGCHLD will report the guard's end.
    pub(super) is_silent: bool,
    /// Whether the guard was killed by this process because its socket was closed, and did not end by itself.
    pub(super) is_killed_alive: bool,
    /// Whether the guard has died, and the node does not know it yet.
    pub(super) is_death_unreported: bool,
    /// The job's main process, according to the descriptor in the guard's answer.
    pub(super) main: Option<HeldProcess>,
    /// The processes that a dead guard left, or one that hangs or dies, until all are gone.
    pub(super) orphans: Option<Orphans>,
    /// When a process of the job was last seen alive, while its guard was being killed.
    lived_at: Option<Time>,
    /// The job's control group, if one could be created.
    pub(super) cgroup: Option<Arc<Cgroup>>,
    orphan_thread: Arc<OrphanThread>,
    /// Until nothing is left of a dead guard's job.
    watch: Option<Watch>,
}

impl GuardedJob {
    /// Starts a guard for a role's job. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, memory or process.
    pub(super) fn with_guard(
        mut config: GuardConfig,
        cgroups: &mut Option<(PathBuf, Time)>,
        orphan_thread: Arc<OrphanThread>,
        start: StartGuard,
    ) -> io::Result<Self> {
        let cgroup = Cgroup::make(cgroups).ok().map(Arc::new);
        config.cgroup = cgroup.as_ref().map(|cgroup| cgroup.as_fd().as_raw_fd());
        let guard = start(Path::new(PROGRAM), &config)?;
        let ready = Ready::with(&guard, OF_SOCKET)?;
        let mut job = Self {
            config,
            guard,
            ready,
            is_silent: false,
            is_killed_alive: false,
            is_death_unreported: false,
            main: None,
            orphans: None,
            lived_at: None,
            cgroup,
            orphan_thread,
            watch: None,
        };
        job.watch_guard();
        Ok(job)
    }

    /// Tells the guard to end, which has nothing to guard.
    pub(super) fn close_guard(&mut self) {
        self.watch = None;
        self.guard.close();
    }

    /// Nothing is left to kill of a guard that is dead and has left no process.
    pub(super) fn stop_watching_if_over(&mut self) {
        self.watch.take_if(|_| self.guard.is_dead && self.orphans.is_none());
    }

    fn watch_guard(&mut self) {
        self.watch = self.orphan_thread.watch(self.guard.pid(), self.config.attributes.mark, self.cgroup.clone());
    }

    /// Whether the guard has nothing to guard, to release or to perform, and has left no process behind.
    pub(super) fn is_idle(&self) -> bool {
        let guard = &self.guard;
        !self.is_silent && !guard.owes_release() && !guard.has_backlog() && self.orphans.is_none()
    }

    /// Sends an order, with the descriptor of a command's output if it has one, or queues it if the guard's socket is full. If the guard does not
    /// read any more, the supervisor notices the missing answers.
    pub(super) fn send(&self, order: &Order, output: Option<OwnedFd>) {
        let _ = self.guard.send_with(order, output);
    }

    /// Starts another guard in place of this one, which ends when its socket is closed.
    pub(super) fn start_guard(&mut self, start: StartGuard) -> io::Result<()> {
        // No process of the previous run is left.
        self.cgroup.iter().for_each(|cgroup| cgroup.cancel_kill());
        self.watch = None;
        let guard = start(Path::new(PROGRAM), &self.config)?;
        (self.ready, self.guard) = (Ready::with(&guard, OF_SOCKET)?, guard);
        (self.is_silent, self.is_killed_alive, self.is_death_unreported) = (false, false, false);
        self.watch_guard();
        Ok(())
    }

    /// Notes that the guard has ended, and how, if it was waited for.
    pub(super) fn note_guards_death(&mut self, end: Option<ExitStatus>) {
        self.guard.note_death(end);
        self.is_death_unreported = true;
    }

    /// Notes the guard's death if it is being killed and has ended. Its tracer may keep it, and then no SIGCHLD reports the death.
    pub(super) fn notice_guards_death(&mut self) {
        if self.kills_guard() && !self.guard.is_dead && self.guard.has_ended() {
            self.note_guards_death(None);
        }
    }

    /// Kills a guard that does not answer or has closed its socket, and all processes of its job that are found. The guard may take long to
    /// die (in state D, frozen), and its job must not live on for that time. Returns false if the guard's death is known, so that nothing was
    /// killed.
    pub(super) fn kill_guard(&mut self) -> bool {
        if self.guard.is_dead {
            return false;
        }
        // It may have ended already.
        let _ = self.guard.signal(SIGKILL);
        if !self.kills_guard() {
            self.orphans = Some(self.orphans(Some(self.guard.pid())));
        }
        true
    }

    /// Handles the guard's death: determines again which processes of its job are left, and the guard itself no longer counts as stuck.
    pub(super) fn guard_is_dead(&mut self) {
        let now = clock::now();
        let with_guard = self.orphans.take_if(|orphans| orphans.guard.is_some());
        self.lived_at = with_guard.and_then(|orphans| orphans.killing.end(now).lived_at);
    }

    /// Takes over the processes of a dead guard's job: this process is a subreaper, and must kill them.
    pub(super) fn inherit_orphans(&mut self) {
        let mut orphans = self.orphans(None);
        orphans.killing.seen_alive(self.lived_at.take());
        self.orphans = Some(orphans);
    }

    /// Whether a guard that is not known to be dead is being killed.
    fn kills_guard(&self) -> bool {
        self.orphans.as_ref().is_some_and(|orphans| orphans.guard.is_some())
    }

    /// All processes that descend from this process, are in the job's control group, or have its mark. They count as stuck if they are still
    /// alive after a lease. So does their guard, if it is not known to be dead.
    fn orphans(&self, guard: Option<Pid>) -> Orphans {
        let mut tree = Tree::below(Pid::this(), self.cgroup.clone(), self.config.attributes.mark);
        tree.prioritize_killed();
        Orphans { tree, killing: Killing::with_every_method(clock::now(), self.config.lease), guard }
    }
}

/// The environment of every run of the job, without the variables that differ between runs.
pub(super) fn environment(
    config: &Config,
    election: &ElectionId,
    member: &MemberId,
    inherited: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let roles = config.roles.map(|_| (job_variables::ROLES, config.elections.typed()));
    let kafka = match &config.client.bootstrap {
        Some(brokers) => (job_variables::BROKERS, brokers.clone()),
        None => (job_variables::EMBEDDED, "1".to_owned()),
    };
    let own = [
        (job_variables::GROUP, election.group.clone()),
        (job_variables::TOPIC, election.topic.clone()),
        kafka,
        ("NELI_PARTITION", election.partition.to_string()),
        (job_variables::ROLE, election.label()),
        ("NELI_NAME", config.name.clone()),
        ("NELI_MEMBER_ID", member.to_string()),
        ("NELI_STOP_TIMEOUT_MS", config.job.stop.timeout.as_millis().to_string()),
        ("NELI_RUN_PID", std::process::id().to_string()),
    ];
    let own = own.into_iter().chain(roles).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let file = config.properties_file.as_ref().map(|file| (job_variables::PROPERTIES.into(), file.into()));
    let clock = procfs::time_namespace().map(|namespace| (job_variables::TIME_NAMESPACE.into(), namespace));
    let own: Vec<(OsString, OsString)> = own.chain(file).chain(clock).collect();
    let handed_on = inherited.filter(|(name, _)| {
        is_handed_on(name, &config.handed_on)
            && !own.iter().any(|(own, _)| own == name)
            && !job_variables::OF_RUN.iter().chain(&job_variables::OF_SOME_JOBS).any(|own| name == own)
    });
    // The window is passed to the guard with each run, so only a key is set here.
    let key = config.once.as_ref().and_then(Once::key);
    let once = key.map(|key| (job_variables::ONCE.into(), key.into()));
    let handed_on: Vec<(OsString, OsString)> = handed_on.collect();
    handed_on.into_iter().chain(own).chain(once).collect()
}

/// Whether the job gets this variable; `of_options` are those of the options' that it gets.
fn is_handed_on(name: &OsStr, of_options: &[OsString]) -> bool {
    if name.as_bytes().starts_with(VARIABLE_PREFIX.as_bytes()) {
        of_options.iter().any(|of_option| of_option == name)
    } else {
        !notify::is_own(name)
    }
}

/// The number of descriptors that it holds: for the main process, and for the list of this process's children.
pub(super) const ORPHANS_DESCRIPTORS: usize = 2;

/// The tree of a guard that is dead or hangs, which the supervisor kills.
#[derive(Debug)]
pub(super) struct Orphans {
    pub(super) tree: Tree,
    pub(super) killing: Killing,
    /// The guard, until it has died. While it lives, nothing shows that no process is left.
    pub(super) guard: Option<Pid>,
}

impl Orphans {
    /// Sends SIGKILL to all remaining processes, of which `main` is the main process. Must be called again at [`Killing::again_at`], and whenever a child
    /// has ended.
    pub(super) fn kill(&mut self, now: Time, main: Option<&HeldProcess>) {
        if let Some(main) = main {
            // While its guard hangs, it is no child of this process.
            let is_alive = !main.tells_end();
            kill_with_group(main);
            if is_alive && !self.tree.procfs.is_traced(main.pid) {
                self.killing.seen_alive(Some(now));
            }
        }
        let methods = self.killing.round(now);
        // In the background, since this process has other leases to extend.
        let round = self.tree.kill(methods, Cgroup::kill_in_background);
        self.killing.performed(clock::now(), round, false);
    }

    /// The event about processes that are left a lease after the first SIGKILL, once.
    pub(super) fn stuck(&mut self, now: Time) -> Option<Event> {
        if !self.killing.is_stuck(now) {
            return None;
        }
        let members = self.tree.members().into_iter().filter(|pid| Some(*pid) != self.guard);
        let pids = members.filter_map(|pid| u32::try_from(pid.as_raw()).ok()).collect();
        Some(match self.guard {
            Some(_) => Event::GuardStuck { pids, are_all: self.tree.procfs.has_seen_all() },
            None => Event::OrphansStuck { pids },
        })
    }
}

/// Sends SIGKILL to the main process and to its process group, which for most jobs is the whole tree. This never blocks. It comes before the control
/// group and the search in `/proc`, which may block for the same reason that prevents the guard from killing.
fn kill_with_group(main: &HeldProcess) {
    let killed = main.signal(SIGKILL);
    let group = main.pidfd.as_ref().map(|pidfd| system::signal_pidfd_group(pidfd.as_fd(), SIGKILL));
    // Before Linux 6.9 only the pid identifies the group; it can't be reused while the process was not waited for.
    let is_refused = |error: io::Error| error.raw_os_error() == Some(Errno::EINVAL as i32);
    if group.is_none_or(|group| group.is_err_and(is_refused)) && killed.is_ok() {
        let _ = system::signal_group(main.pid, SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::cgroup::tests::StalledGroup;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    fn orphans_in(tree: Tree, guard: Option<Pid>, lease: Duration) -> Orphans {
        Orphans { tree, killing: Killing::with_every_method(clock::now(), lease), guard }
    }

    #[test]
    fn own_variables_and_systemds_are_not_passed_to_the_job() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "NELI_RUN_PROPERTY", "NELI_RUN_LEASE"] {
            assert!(!is_handed_on(OsStr::new(name), &["NELI_RUN_GROUP".into()]), "{name}");
        }
        for name in ["PATH", "NELI_RUN_GROUP", "MY_WATCHDOG_USEC"] {
            assert!(is_handed_on(OsStr::new(name), &["NELI_RUN_GROUP".into()]), "{name}");
        }
        assert!(is_handed_on(OsStr::from_bytes(b"\xff\xfe"), &[]));
    }

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
                let tree = Tree::below(pid, Some(Arc::new(stalled.open())), None);
                let mut orphans = orphans_in(tree, Some(pid), Duration::from_secs(60));
                orphans.kill(clock::now(), None);
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
        let tree = Tree::below(Pid::from_raw(root.id().cast_signed()), None, None);
        let mut orphans = orphans_in(tree, None, Duration::ZERO);
        harness::wait::until_true("the end of one", || pids.iter().any(|pid| procfs::has_ended(*pid)));
        let begun = clock::now();
        orphans.kill(begun, None);
        let lived_at = orphans.killing.end(clock::now()).lived_at;
        assert!(lived_at >= Some(begun), "{lived_at:?}");
        // The root waits for neither.
        harness::wait::until_true("the end of both", || pids.iter().all(|pid| procfs::has_ended(*pid)));
        orphans.kill(orphans.killing.again_at(), None);
        let end = orphans.killing.end(clock::now());
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
        let tree = Tree::below(Pid::from_raw(root.id().cast_signed()), None, None);
        let mut orphans = orphans_in(tree, Some(guard), Duration::ZERO);
        let pids = vec![u32::try_from(of_job.as_raw()).unwrap()];
        assert_eq!(orphans.stuck(clock::now()), Some(Event::GuardStuck { pids, are_all: true }));
        orphans.kill(clock::now(), None);
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
        let main = HeldProcess::open(pid);
        kill_with_group(&main);
        let mut rest = Vec::new();
        leader.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        leader.wait().unwrap();
        kill_with_group(&main);
    }
}
