//! The memory limit of this process with its guard and job, and whether the guard may lock its memory.

use std::fs;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::mman::{self, MlockAllFlags};
use nix::sys::resource::{self, Resource};

use crate::process::cgroup::{self, Hierarchy};
pub(crate) use crate::process::system::give_back_libraries;

/// A limit of a control group's memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The file with the limit.
    pub file: PathBuf,
    /// The limit in bytes for the whole group.
    pub bytes: u64,
    /// Whether the whole group is killed at once at a lack of memory (`memory.oom.group`).
    pub kills_all: bool,
}

/// The lowest limit on this process's group and those above it, as far as they are visible here.
#[must_use]
pub fn limit() -> Option<Limit> {
    let groups = [Hierarchy::V2, Hierarchy::V1("memory")].into_iter().filter_map(cgroup::of_this_process);
    groups.filter_map(|group| lowest_above(&group)).min_by_key(|limit| limit.bytes)
}

/// The lowest limit on this group and those above it. Above the mount point no directory has such a file.
fn lowest_above(group: &Path) -> Option<Limit> {
    group.ancestors().filter_map(of_group).min_by_key(|limit| limit.bytes)
}

fn of_group(group: &Path) -> Option<Limit> {
    /// Without a limit cgroup v1 shows the largest number that it supports.
    const NONE: u64 = 1 << 60;
    let read = |file: &Path| fs::read_to_string(file).ok();
    let limit = |file: PathBuf| {
        // A value that is not a number (`max`) means no limit.
        let bytes: u64 = read(&file)?.trim().parse().ok()?;
        let kills_all = read(&group.join("memory.oom.group")).is_some_and(|text| text.trim() == "1");
        (bytes < NONE).then_some(Limit { file, bytes, kills_all })
    };
    ["memory.max", "memory.limit_in_bytes"].into_iter().find_map(|name| limit(group.join(name)))
}

/// Locks the memory that this process uses, and memory that it will use unless that is limited; returns whether that was allowed.
/// `MCL_ONFAULT` locks only used pages, a tenth of the mapped ones. Memory that is mapped later is locked only without a limit: at a
/// limit its allocation would fail.
pub(crate) fn lock() -> bool {
    let on_fault = MlockAllFlags::MCL_CURRENT | MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let unlimited = resource::getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == libc::RLIM_INFINITY);
    mman::mlockall(if unlimited { on_fault | MlockAllFlags::MCL_FUTURE } else { on_fault }).is_ok()
}

/// Whether memory may be locked: tries it and undoes it. Must be called while this process has not mapped more than a guard has.
#[must_use]
pub fn can_be_locked() -> bool {
    let can = lock();
    if can {
        // This call only tests whether locking is allowed.
        let _ = mman::munlockall();
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The resident size of this library's read-only pages, which hold no data of this process.
    fn resident_of(library: &str) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut resident = 0;
        let (mut is_looked_at, mut rss) = (false, 0);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("Rss:"), Some(size)) => rss = size.parse().unwrap(),
                (Some("Anonymous:"), Some("0")) if is_looked_at => resident += rss,
                (Some(range), Some(rights)) if range.contains('-') => {
                    is_looked_at = !rights.contains('w') && line.contains(library);
                }
                _ => {}
            }
        }
        resident
    }

    #[test]
    #[cfg(feature = "ssl")]
    fn released_pages_of_a_library_are_loaded_again_when_used() {
        use rdkafka::config::ClientConfig;
        use rdkafka::producer::BaseProducer;
        let use_it = || {
            let config = ClientConfig::new().set("security.protocol", "ssl").create::<BaseProducer>();
            config.unwrap();
            resident_of("/libcrypto.so")
        };
        let used = use_it();
        // If the library is linked statically, it is part of the program.
        if used > 0 {
            give_back_libraries();
            let given_back = resident_of("/libcrypto.so");
            assert!(given_back < used / 2, "{given_back} kB of {used} kB");
            assert!(use_it() > given_back);
        }
    }

    #[test]
    fn the_lowest_limit_of_all_groups_above_counts() {
        let mount = tempfile::tempdir().unwrap();
        let below = mount.path().join("below");
        let own = below.join("own");
        fs::create_dir_all(&own).unwrap();
        let write = |group: &Path, name: &str, text: &str| fs::write(group.join(name), text).unwrap();
        assert_eq!(lowest_above(&own), None);
        write(&own, "memory.max", "max\n");
        write(mount.path(), "memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(lowest_above(&own), None);
        write(&own, "memory.max", "200\n");
        write(&below, "memory.max", "100\n");
        write(&below, "memory.oom.group", "1\n");
        let limit = Limit { file: below.join("memory.max"), bytes: 100, kills_all: true };
        assert_eq!(lowest_above(&own), Some(limit));
        write(mount.path(), "memory.limit_in_bytes", "50\n");
        assert_eq!(lowest_above(&own).map(|limit| (limit.bytes, limit.kills_all)), Some((50, false)));
    }
}
