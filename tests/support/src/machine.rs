//! A machine of its own for a candidate, as far as its death goes: a control group, whose processes die in one step.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group that is removed when it is dropped.
#[derive(Debug)]
pub struct Machine {
    directory: PathBuf,
}

impl Machine {
    /// One of this name, below the control group that we are in; none where there is no cgroup v2, or none may be made.
    #[must_use]
    pub fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts.find_map(|fields| (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned()))?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let ours = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let directory = Path::new(&root).join(ours).join(name);
        fs::create_dir(&directory).ok()?;
        let made = Self { directory };
        made.directory.join("cgroup.kill").exists().then_some(made)
    }

    /// A command that enters it and becomes what follows.
    #[must_use]
    pub fn enter(&self) -> [String; 4] {
        let entering = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;
        ["sh".into(), "-c".into(), entering.into(), self.directory.display().to_string()]
    }

    /// What a power cut does: whatever runs in it is killed, in one step.
    pub fn die(&self) {
        fs::write(self.directory.join("cgroup.kill"), "1").expect("ours");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Removes a group, and those that were left in it; what still has processes stays.
fn remove(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for below in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&below.path());
    }
    let _ = fs::remove_dir(directory);
}
