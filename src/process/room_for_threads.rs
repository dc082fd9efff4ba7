//! Finds out by the kernel's counters whether more threads can certainly be started. Starting them as a test takes as long as the rest of
//! the start up to the first connection.

use std::fs;
use std::path::Path;

use nix::libc::RLIM_INFINITY;
use nix::sys::resource::{self, Resource};

use crate::process::cgroup::{self, Hierarchy};

/// Whether `needed` more threads are within every limit. The answer is no if a limit can't be read, or if all threads of the machine
/// together with these would exceed a limit that counts only the user's. Then the caller starts threads as a test.
#[must_use]
pub(super) fn is_certain(needed: u64) -> bool {
    threads_of_all().is_some_and(|threads| {
        let all = threads + needed;
        let below = |file| number(Path::new(file)).is_some_and(|limit| all <= limit);
        let of_user =
            resource::getrlimit(Resource::RLIMIT_NPROC).is_ok_and(|(limit, _)| limit == RLIM_INFINITY || all <= limit);
        of_user && below("/proc/sys/kernel/threads-max") && below("/proc/sys/kernel/pid_max")
    }) && [Hierarchy::V2, Hierarchy::V1("pids")]
        .into_iter()
        .filter_map(cgroup::of_this_process)
        .all(|group| is_room_in(&group, needed))
}

/// The number of threads of the machine, including other PID namespaces.
fn threads_of_all() -> Option<u64> {
    of_load(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// Parses `0.20 0.18 0.12 1/345 12719`.
fn of_load(load: &str) -> Option<u64> {
    load.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Whether a group and each group above it has room, except the root of the hierarchy, which has no limit. (The first group of a container
/// has one above it that is not visible.)
fn is_room_in(group: &Path, needed: u64) -> bool {
    for group in group.ancestors().take_while(|group| group.join("cgroup.procs").exists()) {
        let Ok(limit) = fs::read_to_string(group.join("pids.max")) else {
            // A group without the controller lacks this file too. Only the root has no type.
            if group.join("cgroup.type").exists() {
                continue;
            }
            return true;
        };
        let has_room = || Some(number(&group.join("pids.current"))? + needed <= limit.trim().parse().ok()?);
        if limit.trim() != "max" && has_room() != Some(true) {
            return false;
        }
    }
    false
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is room for 24 threads in the lowest of these nested groups, which have these files.
    fn is_room(groups: &[&[(&str, &str)]]) -> bool {
        let mount = tempfile::tempdir().unwrap();
        let mut group = mount.path().to_owned();
        for (depth, files) in groups.iter().enumerate() {
            if depth > 0 {
                group.push("below");
                fs::create_dir(&group).unwrap();
            }
            fs::write(group.join("cgroup.procs"), "").unwrap();
            for (name, text) in *files {
                fs::write(group.join(name), text).unwrap();
            }
        }
        is_room_in(&group, 24)
    }

    #[test]
    fn every_group_above_has_to_have_room() {
        let unlimited = [("cgroup.type", "domain\n"), ("pids.max", "max\n"), ("pids.current", "4000\n")].as_slice();
        let wide = [("cgroup.type", "domain\n"), ("pids.max", "100\n"), ("pids.current", "76\n")].as_slice();
        let narrow = [("cgroup.type", "domain\n"), ("pids.max", "100\n"), ("pids.current", "77\n")].as_slice();
        assert!(is_room(&[&[], unlimited, wide]));
        assert!(!is_room(&[&[], unlimited, narrow]));
        assert!(!is_room(&[&[], narrow, wide]));
    }

    #[test]
    fn a_group_without_the_controller_has_no_limit() {
        let without = [("cgroup.type", "domain\n")].as_slice();
        assert!(is_room(&[&[], without, without]));
    }

    #[test]
    fn the_first_group_of_a_container_is_not_the_root() {
        let unlimited = [("cgroup.type", "domain\n"), ("pids.max", "max\n"), ("pids.current", "4\n")].as_slice();
        assert!(!is_room(&[unlimited]));
        assert!(!is_room(&[unlimited, unlimited]));
    }

    #[test]
    fn a_limit_that_can_not_be_read_counts_as_a_limit() {
        let unreadable = [("cgroup.type", "domain\n"), ("pids.max", "many\n"), ("pids.current", "4\n")].as_slice();
        assert!(!is_room(&[&[], unreadable]));
        let unknown = [("cgroup.type", "domain\n"), ("pids.max", "100\n")].as_slice();
        assert!(!is_room(&[&[], unknown]));
    }

    #[test]
    fn the_machines_threads_are_counted() {
        assert_eq!(of_load("0.20 0.18 0.12 1/345 12719\n"), Some(345));
        assert_eq!(of_load("0.20 0.18\n"), None);
        assert!(threads_of_all().unwrap() > 1);
    }
}
