//! A control group of the job's own (cgroup v2), if one can be made: below that of `neli-run`, so that every limit
//! still holds for the job.
//!
//! Its purpose: `cgroup.kill` ends every process in it in one step, whatever its user is by now; that includes a
//! setuid program under an unprivileged `neli-run`. It is no proof that nothing is left: a process may be moved out
//! of it, so the tree is walked as well ([`crate::process::tree`]).
//!
//! It holds no process itself. Each run is created in a group of its own below it, made in advance: the kernel kills
//! processes created in a group that was killed before, unless the parent group was killed as often (seen on Linux
//! 6.18; the counter came with 6.14, and with the stable kernels of that year).
//!
//! Supervisor and guard hold a lock on its directory as long as either of them lives. A group whose lock is free was
//! left by a supervisor and a guard that were killed: the next `neli-run` ends what is in it, and removes it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neli::program::clock;
use neli_proto::time::Time;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::unistd::{self, Pid};

use crate::process::system;
use neli::program::random;

/// What it means to have none, where neli-run does not run as root.
pub const WITHOUT_ONE: &str = "without root, and without a control group for the job (systemd: Delegate=yes), a setuid program that the \
                               job runs can't be killed, and would run on after the lease's end";

/// How the names of all of ours begin.
const PREFIX: &str = "neli-run.";

/// How often leftovers are looked for while groups are made one after the other.
const LOOK_FOR_LEFTOVERS: Duration = Duration::from_secs(10);

/// Extended attributes with which systemd, where it runs, marks the groups that it leaves to others.
const DELEGATED: [&std::ffi::CStr; 2] = [c"user.delegate", c"trusted.delegate"];

/// A group of the job's own.
#[derive(Debug)]
pub struct Cgroup {
    /// Held by the process that made it, and will remove it.
    lock: Option<Flock<File>>,
    directory: OwnedFd,
    /// Opened beforehand: at a deadline no descriptor may be left.
    events: File,
    kill: File,
}

/// Makes the groups of one process's jobs. What the first one has shown is reused for those that follow it soon: with
/// hundreds of roles there are many groups to look through, and each test creates a copy of this process's memory.
#[derive(Debug, Default)]
pub struct CgroupMaker {
    /// Below which group one was made, and when leftovers were last looked for there, in time since boot.
    known: Option<(PathBuf, Time)>,
}

impl CgroupMaker {
    /// Makes one below the group of this process.
    ///
    /// # Errors
    ///
    /// When there is no cgroup v2, or none may be made. The caller does without.
    pub fn make(&mut self) -> io::Result<Cgroup> {
        let parent = of_this_process(Hierarchy::V2).ok_or(io::ErrorKind::NotFound)?;
        let now = clock::now();
        if self.known.as_ref().is_some_and(|(known, at)| *known == parent && now < *at + LOOK_FOR_LEFTOVERS) {
            return Cgroup::made_in(&parent);
        }
        if !may_be_divided(&parent) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        remove_leftovers(&parent);
        let made = Cgroup::made_in(&parent)?;
        system::try_birth_in(made.as_fd())?;
        self.known = Some((parent, now));
        Ok(made)
    }
}

impl Cgroup {
    /// Makes a single one.
    ///
    /// # Errors
    ///
    /// As for [`CgroupMaker::make`].
    pub fn make() -> io::Result<Self> {
        CgroupMaker::default().make()
    }

    fn made_in(parent: &Path) -> io::Result<Self> {
        // Before it is locked, another may take it for a leftover.
        Self::try_made_in(parent).or_else(|_| Self::try_made_in(parent))
    }

    fn try_made_in(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("{PREFIX}{}.{:08x}", unistd::getpid(), u32::from_ne_bytes(random::bytes()?)));
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

    /// The group whose directory this is: another process has made it.
    ///
    /// # Errors
    ///
    /// When it is none any more.
    pub(crate) fn open(directory: OwnedFd) -> io::Result<Self> {
        let path = path_of(directory.as_fd())?;
        let kill = File::options().write(true).open(path.join("cgroup.kill"))?;
        let made = Self { lock: None, events: File::open(path.join("cgroup.events"))?, kill, directory };
        // The kernel allocates its buffer at the first read: not at a deadline.
        let _ = made.is_populated();
        Ok(made)
    }

    /// Makes a group below it, for one run, and gives its directory; those of earlier runs, which have ended, are removed.
    ///
    /// # Errors
    ///
    /// When none can be made: the run does without.
    pub(crate) fn make_for_run(&self, number: u64) -> io::Result<OwnedFd> {
        let path = path_of(self.directory.as_fd())?;
        for ended in groups_in(&path) {
            remove(&ended);
        }
        let path = path.join(format!("run.{}.{number}", unistd::getpid()));
        fs::create_dir(&path)?;
        Ok(File::open(&path)?.into())
    }

    /// SIGKILL to every process that is in it, or below it.
    pub fn kill(&self) {
        // It fails when the group has been removed, which takes an empty one.
        let _ = (&self.kill).write_all(b"1");
    }

    /// Whether a process is in it or below it. Processes that have ended but were not waited for don't count. If it
    /// can't be read, the answer is yes.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        let mut text = [0; 128];
        match self.events.read_at(&mut text, 0) {
            Ok(length) => text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 1"),
            // It has been removed, which takes an empty one.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => false,
            Err(_) => true,
        }
    }

    /// The processes that are in it, or below it.
    #[must_use]
    pub fn members(&self) -> Vec<Pid> {
        path_of(self.directory.as_fd()).map(|path| members_below(&path)).unwrap_or_default()
    }

    /// Removes it, and what a job may have made below it. Nothing happens to one that is populated.
    pub fn remove(&self) {
        if let Ok(path) = path_of(self.directory.as_fd())
            && !remove(&path)
        {
            // The guard may just have made a group for a run that will never be.
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

/// A lock that is shared with every process that inherits the descriptor, and ends with the last of them.
fn locked(directory: File) -> io::Result<Flock<File>> {
    Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

fn path_of(directory: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A hierarchy of control groups.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hierarchy {
    /// One of cgroup v1: the one with this controller.
    V1(&'static str),
    /// That of cgroup v2.
    V2,
}

/// Where the group of this process is.
pub(crate) fn of_this_process(hierarchy: Hierarchy) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    found(&mounts, &groups, hierarchy)
}

/// The directory of the group that `groups` (`/proc/PID/cgroup`) names, in one of `mounts` (`/proc/PID/mountinfo`): on a
/// machine that has the old hierarchies too, the new one is the one without a name.
fn found(mounts: &str, groups: &str, hierarchy: Hierarchy) -> Option<PathBuf> {
    let lists = |list: &str, controller: &str| list.split(',').any(|listed| listed == controller);
    let group = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match hierarchy {
            Hierarchy::V1(controller) => lists(controllers, controller),
            Hierarchy::V2 => line.starts_with("0::"),
        };
        is_it.then_some(group)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, options) = (file_system.next()?, file_system.nth(1).unwrap_or_default());
        let is_it = match hierarchy {
            Hierarchy::V1(controller) => kind == "cgroup" && lists(options, controller),
            Hierarchy::V2 => kind == "cgroup2",
        };
        let is_plain = !at.contains('\\') && !group.contains("/..");
        if !is_it || !is_plain {
            return None;
        }
        // Only a part of the hierarchy may be mounted here.
        Some(Path::new(at).join(Path::new(group).strip_prefix(root).ok()?))
    })
}

/// Where systemd runs, it alone makes groups below a group, unless that was delegated. Root has no need of a group of the job's
/// own, and so keeps to that; anybody else can make one only in what is his own.
fn may_be_divided(group: &Path) -> bool {
    let systemd_runs = Path::new("/run/systemd/system").exists();
    // `DelegateSubgroup=` puts a service one level below what is delegated.
    let delegated = || [Some(group), group.parent()].into_iter().flatten().any(is_delegated);
    !systemd_runs || !unistd::geteuid().is_root() || delegated()
}

fn is_delegated(group: &Path) -> bool {
    File::open(group).is_ok_and(|group| DELEGATED.iter().any(|name| system::has_attribute(group.as_fd(), name)))
}

/// Ends and removes what pairs of supervisor and guard have left that were both killed.
fn remove_leftovers(parent: &Path) {
    for path in groups_in(parent) {
        let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        let free = || locked(File::open(&path)?);
        if is_ours && let Ok(_lock) = free() {
            // Its job has outlived its right: there is no guard any more to end it.
            let _ = fs::write(path.join("cgroup.kill"), "1");
            remove(&path);
        }
    }
}

/// Removes an empty group, and the empty ones below it; whether it is gone.
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
    // 0 is a process of another pid namespace.
    let own = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).map(Pid::from_raw);
    own.chain(groups_in(path).iter().flat_map(|below| members_below(below))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                          35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                          41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    fn found_at(mounts: &str, groups: &str) -> Option<String> {
        found(mounts, groups, Hierarchy::V2).map(|path| path.to_str().unwrap().to_owned())
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
        let found_at = |controller| found(mounts, groups, Hierarchy::V1(controller));
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
            let (kill, directory) = (file(""), File::open(directory.path()).unwrap().into());
            assert_eq!(Cgroup { lock: None, directory, events, kill }.is_populated(), is_populated);
        }
    }

    #[test]
    fn where_there_is_none_none_is_found() {
        for (mounts, groups) in [
            (HYBRID, "9:name=systemd:/\n"),
            (HYBRID, ""),
            ("", "0::/\n"),
            ("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n"),
            // The root of the namespace is below: what is ours can't be seen from here.
            (HYBRID, "0::/../outside\n"),
            ("41 31 0:38 / /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/\n"),
            ("nonsense - cgroup2\n", "0::/\n"),
        ] {
            assert_eq!(found_at(mounts, groups), None, "{mounts} {groups}");
        }
    }
}
