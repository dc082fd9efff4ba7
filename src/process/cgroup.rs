//! A control group for the job alone (cgroup v2), if one can be created. It is below that of `neli-run`, so that every limit still applies
//! to the job.
//!
//! Its purpose is `cgroup.kill`, which ends every process in it in one step, even if the process has changed its user: so it also ends a
//! setuid program under an unprivileged `neli-run`. An empty group does not prove that no process is left, because a process may be moved
//! out of it. So the tree is walked as well ([`crate::process::tree`]).
//!
//! The group itself contains no process. Each run is created in a group of its own below it, which is created in advance: the kernel kills
//! processes that are created in a group that was killed before, unless the parent group was killed as often (seen on Linux 6.18; the
//! counter came with 6.14, and with the stable kernels of that year).
//!
//! Supervisor and guard hold a lock on its directory while either of them lives. A group whose lock is free was left by a supervisor and a
//! guard that were killed. The next `neli-run` kills the processes in it, and removes it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use neli_kafka::{clock, random_bytes};
use neli_proto::time::Time;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::prctl;
use nix::unistd::{self, Pid};

use crate::process::system;

/// The consequence of having no group for the job, unless the job can be [killed without one](kills_without_one).
pub const WITHOUT_ONE: &str = "without CAP_KILL, which root has unless its container has dropped it, and without a control group for the job \
                               (systemd: Delegate=yes), a process of the job that takes another user's id as its real one (sudo, gosu) \
                               can't be killed, and would run on after the lease's end; a process of the job that enters another PID \
                               namespace (nsenter) and changes its limit of file locks is not found at all; without either, keep the job \
                               its user: without CAP_SETUID, and with NoNewPrivileges=yes, in Kubernetes allowPrivilegeEscalation: false, \
                               elsewhere setpriv --no-new-privs";

/// Why a job without a group can be killed nevertheless: nothing in it has an id that this process may not kill. `None` if that may happen.
pub fn kills_without_one() -> Option<&'static str> {
    // capabilities(7).
    const CAP_KILL: u32 = 5;
    const CAP_SETUID: u32 = 7;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let has = |set: &str, capability: u32| {
        let set = status.lines().find_map(|line| line.strip_prefix(set))?;
        Some(u64::from_str_radix(set.trim(), 16).ok()? >> capability & 1 == 1)
    };
    if has("CapEff:", CAP_KILL)? {
        return Some("with CAP_KILL");
    }
    // The kernel gives nobody below this process a setuid program's id.
    let keeps_ids = prctl::get_no_new_privs().is_ok_and(|is_set| is_set) && !has("CapPrm:", CAP_SETUID)?;
    keeps_ids.then_some("with no_new_privs")
}

/// The prefix of all our groups' names.
const PREFIX: &str = "neli-run.";

/// How often leftovers are searched while groups are created one after the other.
const LOOK_FOR_LEFTOVERS: Duration = Duration::from_secs(10);

/// Extended attributes with which systemd marks the groups that it delegates.
const DELEGATED: [&std::ffi::CStr; 2] = [c"user.delegate", c"trusted.delegate"];

/// A control group for the job alone.
#[derive(Debug)]
pub struct Cgroup {
    /// Held by the process that created it and will remove it.
    lock: Option<Flock<File>>,
    directory: OwnedFd,
    /// The file is opened in advance, since at a deadline there may be no free descriptor.
    events: File,
    /// Its `cgroup.kill`, opened in advance as well.
    kill: File,
    /// Whether the thread was asked to kill it, and has not begun.
    is_kill_requested: AtomicBool,
}

impl Cgroup {
    /// Creates a group below that of this process. The findings are `known` for those that follow soon, because with hundreds of roles there are many
    /// groups to search, and each test forks a copy of this process: the group below which one was created, and when leftovers were last searched there.
    ///
    /// # Errors
    ///
    /// There is no cgroup v2, or no group may be created. The caller works without one.
    pub fn make(known: &mut Option<(PathBuf, Time)>) -> io::Result<Self> {
        let parent = of_this_process(None).ok_or(io::ErrorKind::NotFound)?;
        let now = clock::now();
        if known.as_ref().is_some_and(|(known, at)| *known == parent && now < *at + LOOK_FOR_LEFTOVERS) {
            return Self::made_in(&parent);
        }
        if !may_be_divided(&parent) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        remove_leftovers(&parent);
        let made = Self::made_in(&parent)?;
        system::try_birth_in(made.as_fd())?;
        *known = Some((parent, now));
        Ok(made)
    }

    fn made_in(parent: &Path) -> io::Result<Self> {
        // Before the group is locked, another process may take it for a leftover and remove it.
        Self::try_made_in(parent).or_else(|_| Self::try_made_in(parent))
    }

    fn try_made_in(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("{PREFIX}{}.{:08x}", unistd::getpid(), u32::from_ne_bytes(random_bytes()?)));
        fs::create_dir(&path)?;
        Self::locked_at(&path).inspect_err(|_| drop(fs::remove_dir(&path)))
    }

    fn locked_at(path: &Path) -> io::Result<Self> {
        let directory = File::open(path)?;
        let lock = locked(directory.try_clone()?)?;
        let mut made = Self::open(directory.into())?;
        made.lock = Some(lock);
        Ok(made)
    }

    /// The group with this directory, which another process has created.
    ///
    /// # Errors
    ///
    /// The group no longer exists.
    pub(crate) fn open(directory: OwnedFd) -> io::Result<Self> {
        let path = path_of(directory.as_fd())?;
        let kill = File::options().write(true).open(path.join("cgroup.kill"))?;
        let events = File::open(path.join("cgroup.events"))?;
        let made = Self { lock: None, events, kill, is_kill_requested: AtomicBool::new(false), directory };
        // The kernel allocates a buffer at the first read, which must not happen at a deadline.
        let _ = made.is_populated();
        Ok(made)
    }

    /// Creates a group below it for one run, and returns its directory; groups of earlier runs, which have ended, are removed.
    ///
    /// # Errors
    ///
    /// No group can be created: then the run works without one.
    pub(crate) fn make_for_run(&self, number: u64) -> io::Result<OwnedFd> {
        let (path, own) = (path_of(self.directory.as_fd())?, format!("run.{}.", unistd::getpid()));
        let is_own =
            |group: &PathBuf| group.file_name().is_some_and(|name| name.as_bytes().starts_with(own.as_bytes()));
        // Later another guard may have made one that is empty still.
        for ended in groups_in(&path).into_iter().filter(|group| number == 1 || is_own(group)) {
            remove(&ended);
        }
        let path = path.join(format!("{own}{number}"));
        fs::create_dir(&path)?;
        Ok(File::open(&path)?.into())
    }

    /// Sends SIGKILL to every process in it or below it, also to those of another user. Waits for as long as the kernel needs: it blocks the
    /// writer while another process changes a control group, and sending a signal never blocks.
    pub fn kill(&self) {
        // It fails if the group was removed, which is possible only if it was empty.
        let _ = (&self.kill).write_all(b"1");
    }

    /// Asks a thread to [kill](Self::kill), unless a request is pending already. Without a thread it kills here.
    ///
    /// One thread is enough for all groups, because all writes wait for the same lock in the kernel.
    pub(crate) fn kill_in_background(self: &Arc<Self>) {
        static WRITER: OnceLock<Option<Sender<Arc<Cgroup>>>> = OnceLock::new();
        let Some(writer) = WRITER.get_or_init(|| start().ok()) else { return self.kill() };
        if !self.is_kill_requested.swap(true, Ordering::Relaxed) {
            // The thread lasts as long as the process.
            let _ = writer.send(Arc::clone(self));
        }
    }

    /// Cancels a write of the thread that has not begun: the next process in the group belongs to another run. A write that has begun waits for
    /// the same lock as the creation of the next run.
    pub(crate) fn cancel_kill(&self) {
        self.is_kill_requested.store(false, Ordering::Relaxed);
    }

    /// Whether a process is in it or below it. Processes that have ended but were not waited for don't count. Returns true if it can't be
    /// read.
    pub fn is_populated(&self) -> bool {
        let mut text = [0; 128];
        match self.events.read_at(&mut text, 0) {
            Ok(length) => text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 1"),
            // It was removed, so it was empty.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => false,
            Err(_) => true,
        }
    }

    /// The processes in it or below it.
    pub fn members(&self) -> Vec<Pid> {
        path_of(self.directory.as_fd()).map(|path| members_below(&path)).unwrap_or_default()
    }

    /// Removes it with the groups that a job may have created below it. A populated group is left alone.
    pub(crate) fn remove(&self) {
        if let Ok(path) = path_of(self.directory.as_fd())
            && !remove(&path)
        {
            // The guard may just have created a group for a run that never starts.
            remove(&path);
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if self.lock.is_some() {
            self.remove();
        }
    }
}

impl AsFd for Cgroup {
    /// Its directory.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Locks the directory. The lock is shared by all processes that inherit the descriptor, and ends with the last of them.
fn locked(directory: File) -> io::Result<Flock<File>> {
    Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

fn path_of(directory: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// The directory of this process's group in the hierarchy of cgroup v1 with this controller; without one, in that of cgroup v2.
pub(crate) fn of_this_process(controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    found(&mounts, &groups, controller)
}

/// The directory of the group in `groups` (`/proc/PID/cgroup`), below one of `mounts` (`/proc/PID/mountinfo`). On a machine with both
/// versions, the entry of cgroup v2 has no name.
fn found(mounts: &str, groups: &str, controller: Option<&str>) -> Option<PathBuf> {
    let lists = |list: &str, controller: &str| list.split(',').any(|listed| listed == controller);
    let group = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match controller {
            Some(controller) => lists(controllers, controller),
            None => line.starts_with("0::"),
        };
        is_it.then_some(group)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, options) = (file_system.next()?, file_system.nth(1).unwrap_or_default());
        let is_it = match controller {
            Some(controller) => kind == "cgroup" && lists(options, controller),
            None => kind == "cgroup2",
        };
        let is_plain = !at.contains('\\') && !group.contains("/..");
        if !is_it || !is_plain {
            return None;
        }
        // Perhaps only a part of the hierarchy is mounted here.
        Some(Path::new(at).join(Path::new(group).strip_prefix(root).ok()?))
    })
}

/// Whether this process may create a group here. With systemd, only systemd creates groups, unless a group was delegated. Root needs no
/// group for the job, so it keeps to that rule; other users can create groups only where they have the rights.
fn may_be_divided(group: &Path) -> bool {
    let systemd_runs = Path::new("/run/systemd/system").exists();
    // With `DelegateSubgroup=` a service is one level below the delegated group.
    let delegated = || [Some(group), group.parent()].into_iter().flatten().any(is_delegated);
    !systemd_runs || !unistd::geteuid().is_root() || delegated()
}

fn is_delegated(group: &Path) -> bool {
    File::open(group).is_ok_and(|group| DELEGATED.iter().any(|name| system::has_attribute(group.as_fd(), name)))
}

/// Kills and removes groups that earlier pairs of supervisor and guard have left, if both were killed.
fn remove_leftovers(parent: &Path) {
    for path in groups_in(parent) {
        let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        let free = || locked(File::open(&path)?);
        if is_ours && let Ok(_lock) = free() {
            // The job has outlived its lease, because there is no guard any more that could kill it.
            let _ = fs::write(path.join("cgroup.kill"), "1");
            remove(&path);
        }
    }
}

/// Removes an empty group and the empty groups below it; returns whether it is gone.
fn remove(path: &Path) -> bool {
    for below in groups_in(path) {
        remove(&below);
    }
    fs::remove_dir(path).is_ok()
}

fn groups_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn members_below(path: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    // 0 is the pid of a process in another pid namespace.
    let own = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).map(Pid::from_raw);
    own.chain(groups_in(path).iter().flat_map(|below| members_below(below))).collect()
}

/// The thread's stack is small, because it only calls write(2).
const STACK: usize = 1 << 16;

fn start() -> io::Result<Sender<Arc<Cgroup>>> {
    let (sender, requests) = mpsc::channel::<Arc<Cgroup>>();
    thread::Builder::new().name("neli-cgroup".to_owned()).stack_size(STACK).spawn(move || {
        for cgroup in requests {
            // A request from now on needs another write, because a process may have joined the group meanwhile.
            if cgroup.is_kill_requested.swap(false, Ordering::Relaxed) {
                cgroup.kill();
            }
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::OpenOptionsExt;

    use nix::libc::O_NONBLOCK;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use tempfile::TempDir;

    use super::*;

    /// A directory that looks like a control group; its `cgroup.kill` is a full pipe, so that a write to it blocks.
    pub(crate) struct StalledGroup {
        directory: TempDir,
        pipe: File,
    }

    impl StalledGroup {
        pub(crate) fn new() -> Self {
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
            Self { directory, pipe }
        }

        pub(crate) fn open(&self) -> Cgroup {
            Cgroup::open(File::open(self.directory.path()).unwrap().into()).unwrap()
        }

        /// Lets the writes continue. Returns whether one of them kills the group.
        pub(crate) fn is_killed_now(&self) -> bool {
            let mut bytes = [0; 4096];
            let mut readable = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            while poll(&mut readable, PollTimeout::from(10_000_u16)) == Ok(1) {
                let length = (&self.pipe).read(&mut bytes).unwrap();
                if bytes[..length].contains(&b'1') {
                    return true;
                }
            }
            false
        }

        /// Whether the data in the pipe kills the group.
        pub(crate) fn was_killed(&self) -> bool {
            let mut bytes = vec![0; 1 << 20];
            let length = (&self.pipe).read(&mut bytes).unwrap();
            bytes[..length].contains(&b'1')
        }
    }
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                          35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                          41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    fn found_at(mounts: &str, groups: &str) -> Option<String> {
        found(mounts, groups, None).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_group_is_found_beside_the_old_hierarchies() {
        let groups = "9:name=systemd:/\n4:memory:/elsewhere\n0::/system.slice/job.service\n";
        assert_eq!(found_at(HYBRID, groups).as_deref(), Some("/sys/fs/cgroup/unified/system.slice/job.service"));
        assert_eq!(found_at(HYBRID, "0::/\n").as_deref(), Some("/sys/fs/cgroup/unified/"));
    }

    #[test]
    fn the_group_is_found_where_only_a_part_is_mounted() {
        let mounts = "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(found_at(mounts, "0::/docker/abc/below\n").as_deref(), Some("/sys/fs/cgroup/below"));
        assert_eq!(found_at(mounts, "0::/docker/abcd\n"), None);
    }

    #[test]
    fn a_group_of_an_old_hierarchy_is_found_by_its_controller() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let groups = "3:cpuset:/\n2:cpu,cpuacct:/kubepods/pod7\n0::/\n";
        let found_at = |controller| found(mounts, groups, Some(controller));
        assert_eq!(found_at("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct/kubepods/pod7".into()));
        assert_eq!(found_at("cpuset"), Some("/sys/fs/cgroup/cpuset/".into()));
        assert_eq!(found_at("memory"), None);
    }

    #[test]
    fn a_group_that_cannot_be_read_is_not_taken_for_empty() {
        let directory = tempfile::tempdir().unwrap();
        let file = |content: &str| {
            let path = directory.path().join(content.len().to_string());
            fs::write(&path, content).unwrap();
            File::open(path).unwrap()
        };
        let unreadable = File::open(directory.path()).unwrap();
        for (events, is_populated) in
            [(file("populated 1\nfrozen 0\n"), true), (file("populated 0\n"), false), (unreadable, true)]
        {
            let kill = File::open("/dev/null").unwrap();
            let directory = File::open(directory.path()).unwrap().into();
            let is_kill_requested = AtomicBool::new(false);
            let group = Cgroup { lock: None, directory, events, kill, is_kill_requested };
            assert_eq!(group.is_populated(), is_populated);
        }
    }

    #[test]
    fn without_a_hierarchy_no_group_is_found() {
        for (mounts, groups) in [
            (HYBRID, "9:name=systemd:/\n"),
            (HYBRID, ""),
            ("", "0::/\n"),
            ("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n"),
            // The group is above the root of the namespace, so our own group can't be seen from here.
            (HYBRID, "0::/../outside\n"),
            ("41 31 0:38 / /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/\n"),
            ("nonsense - cgroup2\n", "0::/\n"),
        ] {
            assert_eq!(found_at(mounts, groups), None, "{mounts} {groups}");
        }
    }

    #[test]
    fn a_write_that_was_cancelled_before_it_began_is_not_made() {
        let stalled: [_; 3] = std::array::from_fn(|_| StalledGroup::new());
        let [first, cancelled, last] = &stalled;
        let groups = stalled.each_ref().map(|stalled| Arc::new(stalled.open()));
        groups.iter().for_each(Cgroup::kill_in_background);
        groups[1].cancel_kill();
        assert!(first.is_killed_now() && last.is_killed_now());
        assert!(!cancelled.was_killed());
    }
}
