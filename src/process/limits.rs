//! The limits of this process: whether it can have the threads, files and memory that it needs, before it joins an election; and those of its
//! control group on processor time and memory, which its guard and job share.
//!
//! librdkafka starts threads later, and waits for ever or aborts if it can't. Once a quota of processor time is used up, neither guard nor job
//! runs until the next period, so the guard may be late. The control group is read once, at the start.

use std::convert::Infallible;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Result, ensure};
use nix::libc::{self, RLIM_INFINITY};
use nix::sys::mman::{self, MlockAllFlags};
use nix::sys::resource::{self, Resource};

use crate::process::{cgroup, signals, system};

/// The open files of a candidate with one broker (43 measured), and some more.
const OPEN_FILES: u64 = 64;

/// How many inherited descriptors are among them.
const INHERITED: usize = 16;

/// The open files of a process with many roles, besides those of the roles that it leads: with connections to a dozen brokers.
const OPEN_FILES_BESIDE_ROLES: u64 = 128;

/// The open files of each role that it leads: eight, and two of a health command.
const OPEN_FILES_OF_ROLE: u64 = 10;

/// The address space that some thirty threads reserve, each with stack and heap (1.2 GB measured with 18).
const ADDRESS_SPACE: u64 = 2 << 30;

/// The threads of a candidate (18 measured with one broker), and some more.
const THREADS: usize = 24;

/// Raises the soft limit of open files to the hard one, for the guards of many roles. Returns the soft limit before, which the job must get
/// back: programs that use `select`, or close every descriptor that is allowed, expect a low one.
#[must_use]
pub(crate) fn raise_open_files() -> Option<u64> {
    let (soft, hard) = resource::getrlimit(Resource::RLIMIT_NOFILE).ok().filter(|(soft, hard)| soft < hard)?;
    // A soft limit up to the hard one is always allowed.
    resource::setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok().then_some(soft)
}

/// Lowers the soft limit of open files, which [`raise_open_files`] has raised in a parent. May be called between fork and exec: it makes
/// two system calls.
///
/// # Errors
///
/// The kernel refuses it; a lower limit is always allowed.
pub(crate) fn lower_open_files(soft: u64) -> io::Result<()> {
    let (_, hard) = resource::getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(resource::setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?)
}

/// The number of open files that this number of inherited descriptors adds to those of a candidate.
pub(crate) fn open_files_of_inherited(inherited: usize) -> u64 {
    inherited.saturating_sub(INHERITED) as u64
}

/// Checks that enough files may be open, including `more`.
///
/// # Errors
///
/// There are too few.
pub(crate) fn open_files(more: u64) -> Result<()> {
    at_least(OPEN_FILES + more, Resource::RLIMIT_NOFILE, "open files", "ulimit -n")
}

/// The number of open files that this process may allow itself, and how many roles this process can lead with that, if it has this many `more` open files.
pub(crate) fn roles_with_open_files(more: u64) -> Option<(u64, u32)> {
    let (_, limit) = resource::getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let left = limit.saturating_sub(OPEN_FILES_BESIDE_ROLES + more);
    Some((limit, u32::try_from(left / OPEN_FILES_OF_ROLE).unwrap_or(u32::MAX).max(1)))
}

/// The number of open files with which this process can lead so many roles, if it has this many `more` open files.
pub(crate) fn open_files_of_roles(roles: u32, more: u64) -> u64 {
    OPEN_FILES_BESIDE_ROLES + more + OPEN_FILES_OF_ROLE * u64::from(roles)
}

/// Checks that enough address space may be used.
///
/// # Errors
///
/// There is too little.
pub(crate) fn address_space() -> Result<()> {
    at_least(ADDRESS_SPACE, Resource::RLIMIT_AS, "bytes of address space", "ulimit -v counts KiB")
}

/// Checks that enough threads can be started. Call it before there are any.
///
/// # Errors
///
/// They can't be started.
pub(crate) fn threads() -> Result<()> {
    try_threads().map_err(|error| {
        let what = format!("{THREADS} threads can't be made ({})", blamed(&error));
        anyhow::Error::new(error).context(what)
    })
}

fn at_least(needed: u64, resource: Resource, what: &'static str, setting: &'static str) -> Result<()> {
    let Ok((soft, hard)) = resource::getrlimit(resource) else { return Ok(()) };
    let limit = if resource == Resource::RLIMIT_NOFILE { hard } else { soft };
    ensure!(limit >= needed, "{limit} {what} are too few ({setting}): neli-run needs at least {needed}");
    Ok(())
}

/// What may keep a thread from being started.
fn blamed(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EAGAIN) | None => "ulimit -u, or pids.max of the control group",
        Some(libc::ENOMEM) => "memory",
        Some(_) => "a sandbox may refuse clone3",
    }
}

/// Starts one thread.
///
/// # Errors
///
/// A limit is reached, or a sandbox refuses it.
pub(crate) fn try_thread() -> io::Result<()> {
    small_thread("neli-trial").spawn(|| ()).map(|started| drop(started.join()))
}

/// Starts as many threads as may be needed at once, in a child that ends with them: the C library would keep the stacks of threads that have ended,
/// 0.6 MB. (No counter shows whether there is room: a container does not show the groups above its own.)
fn try_threads() -> io::Result<()> {
    // If SIGCHLD is ignored, the child's status is lost.
    signals::keep_status_of_children()?;
    let child = system::fork(|| {
        let started = (0..THREADS).try_for_each(|_| small_thread("neli-trial").spawn(park_for_ever).map(drop));
        system::exit(started.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EAGAIN), |()| 0))
    })?;
    // A sandbox may refuse to wait for children, which says nothing of threads.
    let Ok(status) = system::wait_for(child, 0) else { return Ok(()) };
    let status = ExitStatus::from_raw(status.unwrap_or_default());
    let errno = errno_of_trial(status);
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// The errno by which the child that tries to start threads has ended.
fn errno_of_trial(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(errno), _) => errno,
        // A sandbox may kill who makes a call that it refuses.
        (None, Some(libc::SIGSYS)) => libc::EPERM,
        (None, _) => libc::ENOMEM,
    }
}

/// A thread of this name with a [small stack](STACK).
pub(crate) fn small_thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK)
}

fn park_for_ever() -> Infallible {
    loop {
        thread::park();
    }
}

/// The limits on this process's group and on those above it, as far as they are visible here, in the hierarchy of cgroup v2 and in that of v1
/// with this controller.
fn of_visible_groups<L>(controller: &str, of_group: fn(&Path) -> Option<L>) -> Vec<L> {
    let groups = [None, Some(controller)].into_iter().filter_map(cgroup::of_this_process);
    groups.flat_map(|group| on_and_above(&group, of_group)).collect()
}

/// Those on this group and those above it. Above the mount point no directory has such a file.
fn on_and_above<L>(group: &Path, of_group: fn(&Path) -> Option<L>) -> Vec<L> {
    group.ancestors().filter_map(of_group).collect()
}

/// The quota of processor time with the longest period for this process with its guard and job: its file (`cpu.max` of cgroup v2,
/// `cpu.cfs_quota_us` of v1), and the period.
pub(crate) fn longest_quota() -> Option<(PathBuf, Duration)> {
    longest(of_visible_groups("cpu", quota_of_group))
}

fn longest(quotas: Vec<(PathBuf, Duration)>) -> Option<(PathBuf, Duration)> {
    quotas.into_iter().max_by_key(|(_, period)| *period)
}

fn quota_of_group(group: &Path) -> Option<(PathBuf, Duration)> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let (file, text) = match read("cpu.max") {
        Some(text) => ("cpu.max", text),
        None => ("cpu.cfs_quota_us", read("cpu.cfs_quota_us")? + " " + &read("cpu.cfs_period_us")?),
    };
    let mut fields = text.split_ascii_whitespace();
    // A time that is not a number (`max`), or a negative one, means no quota.
    let _: u64 = fields.next()?.parse().ok()?;
    let period = Duration::from_micros(fields.next()?.parse().ok()?);
    Some((group.join(file), period))
}

/// A limit of a control group's memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemoryLimit {
    /// The file with the limit.
    pub file: PathBuf,
    /// The limit in bytes for the whole group.
    pub bytes: u64,
    /// Whether the whole group is killed at once at a lack of memory (`memory.oom.group`).
    pub kills_all: bool,
}

/// The lowest limit of memory.
pub(crate) fn memory() -> Option<MemoryLimit> {
    lowest(of_visible_groups("memory", memory_of_group))
}

fn lowest(limits: Vec<MemoryLimit>) -> Option<MemoryLimit> {
    limits.into_iter().min_by_key(|limit| limit.bytes)
}

fn memory_of_group(group: &Path) -> Option<MemoryLimit> {
    /// Without a limit cgroup v1 shows the largest number that it supports.
    const NONE: u64 = 1 << 60;
    let read = |file: &Path| fs::read_to_string(file).ok();
    let limit = |file: PathBuf| {
        // A value that is not a number (`max`) means no limit.
        let bytes: u64 = read(&file)?.trim().parse().ok()?;
        let kills_all = read(&group.join("memory.oom.group")).is_some_and(|text| text.trim() == "1");
        (bytes < NONE).then_some(MemoryLimit { file, bytes, kills_all })
    };
    ["memory.max", "memory.limit_in_bytes"].into_iter().find_map(|name| limit(group.join(name)))
}

/// Locks the memory that this process uses, and memory that it will use unless that is limited; returns whether that was allowed.
/// `MCL_ONFAULT` locks only used pages, a tenth of the mapped ones. Memory that is mapped later is locked only without a limit: at a
/// limit its allocation would fail.
pub(crate) fn lock_memory() -> bool {
    let on_fault = MlockAllFlags::MCL_CURRENT | MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let unlimited = resource::getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    mman::mlockall(if unlimited { on_fault | MlockAllFlags::MCL_FUTURE } else { on_fault }).is_ok()
}

/// The stack of a thread that must need no more memory once it has started. The data that each thread has of its own takes 16 KiB of it. What is not
/// used takes no memory.
const STACK: usize = 64 * 1024;

/// Writes to the next 16 KiB of such a stack, of which the thread uses less. A page that is used for the first time is charged like any other memory: at
/// a limit that the job keeps reaching, that took two seconds.
#[inline(never)]
pub(crate) fn use_stack() {
    black_box(&mut [0_u8; 16 * 1024]);
}

/// Whether memory may be locked: tries it and undoes it. Must be called while this process has not mapped more than a guard has.
pub(crate) fn can_memory_be_locked() -> bool {
    let can = lock_memory();
    if can {
        // This call only tests whether locking is allowed.
        let _ = mman::munlockall();
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_runs_tests_has_the_needed_limits() {
        open_files(0).unwrap();
        address_space().unwrap();
        threads().unwrap();
    }

    #[test]
    fn a_limit_that_is_too_low_is_named_with_its_bound() {
        let message = at_least(u64::MAX, Resource::RLIMIT_NOFILE, "open files", "ulimit -n").unwrap_err().to_string();
        assert!(message.ends_with(" open files are too few (ulimit -n): neli-run needs at least 18446744073709551615"));
    }

    #[test]
    fn a_trial_that_is_aborted_lacks_memory_and_only_a_filter_s_signal_is_a_refusal() {
        let blamed_for = |signal| blamed(&io::Error::from_raw_os_error(errno_of_trial(ExitStatus::from_raw(signal))));
        assert_eq!([libc::SIGKILL, libc::SIGABRT].map(blamed_for), ["memory"; 2]);
        assert_eq!(blamed_for(libc::SIGSYS), "a sandbox may refuse clone3");
    }

    /// Nested groups with these files; returns the lowest one.
    fn groups(files: &[&[(&str, &str)]]) -> (tempfile::TempDir, PathBuf) {
        let mount = tempfile::tempdir().unwrap();
        let mut group = mount.path().to_owned();
        for (depth, files) in files.iter().enumerate() {
            if depth > 0 {
                group.push("below");
                fs::create_dir(&group).unwrap();
            }
            for (name, text) in *files {
                fs::write(group.join(name), text).unwrap();
            }
        }
        (mount, group)
    }

    fn found(files: &[&[(&str, &str)]]) -> Option<(PathBuf, Duration)> {
        let (mount, group) = groups(files);
        let (file, period) = longest(on_and_above(&group, quota_of_group))?;
        Some((file.strip_prefix(mount.path()).unwrap().to_owned(), period))
    }

    fn quota(file: &str, period_ms: u64) -> (PathBuf, Duration) {
        (file.into(), Duration::from_millis(period_ms))
    }

    #[test]
    fn one_of_any_group_above_counts() {
        let none = [("cpu.max", "max 100000\n")].as_slice();
        assert_eq!(found(&[&[], none, none]), None);
        let half = [("cpu.max", "50000 100000\n")].as_slice();
        assert_eq!(found(&[&[], half, none]), Some(quota("below/cpu.max", 100)));
        // A container's own group is the root of its view.
        assert_eq!(found(&[half]), Some(quota("cpu.max", 100)));
        let slow = [("cpu.max", "900000 1000000\n")].as_slice();
        assert_eq!(found(&[slow, half]), Some(quota("cpu.max", 1_000)), "the longest period");
    }

    #[test]
    fn one_of_the_old_hierarchy_counts() {
        let none = [("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")].as_slice();
        let fifth = [("cpu.cfs_quota_us", "20000\n"), ("cpu.cfs_period_us", "100000\n")].as_slice();
        assert_eq!(found(&[none, none]), None);
        assert_eq!(found(&[fifth, none]), Some(quota("cpu.cfs_quota_us", 100)));
    }

    #[test]
    fn an_invalid_value_gives_none() {
        assert_eq!(found(&[&[("cpu.max", "")], &[("cpu.max", "nonsense")], &[("cpu.cfs_quota_us", "1000")]]), None);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_above_counts() {
        let mount = tempfile::tempdir().unwrap();
        let below = mount.path().join("below");
        let own = below.join("own");
        fs::create_dir_all(&own).unwrap();
        let write = |group: &Path, name: &str, text: &str| fs::write(group.join(name), text).unwrap();
        assert_eq!(lowest(on_and_above(&own, memory_of_group)), None);
        write(&own, "memory.max", "max\n");
        write(mount.path(), "memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(lowest(on_and_above(&own, memory_of_group)), None);
        write(&own, "memory.max", "200\n");
        write(&below, "memory.max", "100\n");
        write(&below, "memory.oom.group", "1\n");
        let limit = MemoryLimit { file: below.join("memory.max"), bytes: 100, kills_all: true };
        assert_eq!(lowest(on_and_above(&own, memory_of_group)), Some(limit));
        write(mount.path(), "memory.limit_in_bytes", "50\n");
        assert_eq!(
            lowest(on_and_above(&own, memory_of_group)).map(|limit| (limit.bytes, limit.kills_all)),
            Some((50, false))
        );
    }
}
