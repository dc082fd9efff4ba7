//! The quota of processor time for this process with its guard and job (`cpu.max` of cgroup v2, `cpu.cfs_quota_us` of v1).
//!
//! Once the quota is used up, none of them runs until the next period, so the guard may be late. The quota is read once, at the start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::cgroup::{self, Hierarchy};

/// A quota.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quota {
    /// The file with the quota.
    pub file: PathBuf,
    /// The processor time in each period, on all processors together.
    pub time: Duration,
    /// The length of a period.
    pub period: Duration,
}

/// The quota with the longest period on this process's group and those above it, as far as they are visible here.
#[must_use]
pub fn longest() -> Option<Quota> {
    let groups = [Hierarchy::V2, Hierarchy::V1("cpu")].into_iter().filter_map(cgroup::of_this_process);
    groups.filter_map(|group| longest_above(&group)).max_by_key(|quota| quota.period)
}

/// The longest quota on this group and those above it. Above the mount point no directory has such a file.
fn longest_above(group: &Path) -> Option<Quota> {
    group.ancestors().filter_map(|group| of_v2(group).or_else(|| of_v1(group))).max_by_key(|quota| quota.period)
}

fn of_v2(group: &Path) -> Option<Quota> {
    let file = group.join("cpu.max");
    let text = fs::read_to_string(&file).ok()?;
    let mut fields = text.split_ascii_whitespace();
    // A value that is not a number (`max`) means no quota.
    let (time, period) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Quota { file, time: Duration::from_micros(time), period: Duration::from_micros(period) })
}

fn of_v1(group: &Path) -> Option<Quota> {
    let read = |file: &Path| fs::read_to_string(file).ok()?.trim().parse().ok();
    let file = group.join("cpu.cfs_quota_us");
    // A negative number means no quota.
    let (time, period) = (read(&file)?, read(&group.join("cpu.cfs_period_us"))?);
    Some(Quota { file, time: Duration::from_micros(time), period: Duration::from_micros(period) })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn found(files: &[&[(&str, &str)]]) -> Option<(PathBuf, u64, u64)> {
        let (mount, group) = groups(files);
        let quota = longest_above(&group)?;
        let file = quota.file.strip_prefix(mount.path()).unwrap().to_owned();
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap();
        Some((file, micros(quota.time), micros(quota.period)))
    }

    #[test]
    fn one_of_any_group_above_counts() {
        let none = [("cpu.max", "max 100000\n")].as_slice();
        assert_eq!(found(&[&[], none, none]), None);
        let half = [("cpu.max", "50000 100000\n")].as_slice();
        assert_eq!(found(&[&[], half, none]), Some(("below/cpu.max".into(), 50_000, 100_000)));
        // A container's own group is the root of its view.
        assert_eq!(found(&[half]), Some(("cpu.max".into(), 50_000, 100_000)));
        let slow = [("cpu.max", "900000 1000000\n")].as_slice();
        assert_eq!(found(&[slow, half]), Some(("cpu.max".into(), 900_000, 1_000_000)), "the longest period");
    }

    #[test]
    fn one_of_the_old_hierarchy_counts() {
        let none = [("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")].as_slice();
        let fifth = [("cpu.cfs_quota_us", "20000\n"), ("cpu.cfs_period_us", "100000\n")].as_slice();
        assert_eq!(found(&[none, none]), None);
        assert_eq!(found(&[fifth, none]), Some(("cpu.cfs_quota_us".into(), 20_000, 100_000)));
    }

    #[test]
    fn an_invalid_value_gives_none() {
        assert_eq!(found(&[&[("cpu.max", "")], &[("cpu.max", "nonsense")], &[("cpu.cfs_quota_us", "1000")]]), None);
    }
}
