//! Control groups that simulate a machine: a candidate's processes die together in one, and have its limits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::wait;

/// A control group whose processes are killed in one step, and the groups of other hierarchies that limit them. All are removed when this
/// is dropped.
#[derive(Debug)]
pub struct Machine {
    directory: PathBuf,
    /// Groups in other hierarchies (cgroup v1): memory, processor.
    others: Vec<PathBuf>,
}

/// The place of a controller: in the hierarchy of cgroup v2, or in a separate one (v1).
enum Controller {
    Unified,
    Own(PathBuf),
}

impl Machine {
    /// A group with this name below our own control group; `None` if there is no cgroup v2, or no group may be created.
    #[must_use]
    pub fn make(name: &str) -> Option<Self> {
        let directory = below_ours("cgroup2", None)?.join(name);
        fs::create_dir(&directory).ok()?;
        let made = Self { directory, others: Vec::new() };
        made.directory.join("cgroup.kill").exists().then_some(made)
    }

    /// Limits the memory of all processes in the group together. With the controller of cgroup v2 they are throttled from two thirds of the
    /// limit on (`memory.high`).
    ///
    /// # Errors
    ///
    /// There is no memory controller, or this process may not use it.
    pub fn limit_memory(&mut self, bytes: u64) -> io::Result<()> {
        match self.controller("memory")? {
            Controller::Own(directory) => fs::write(directory.join("memory.limit_in_bytes"), bytes.to_string()),
            Controller::Unified => {
                fs::write(self.directory.join("memory.high"), (bytes / 3 * 2).to_string())?;
                fs::write(self.directory.join("memory.max"), bytes.to_string())
            }
        }
    }

    /// Limits the processor time of all processes in the group together to this share of one processor, in periods of 100 ms.
    ///
    /// # Errors
    ///
    /// There is no processor controller, or this process may not use it.
    pub fn limit_processor(&mut self, share: f64) -> io::Result<()> {
        const PERIOD_US: f64 = 100_000.0;
        let quota = format!("{:.0}", PERIOD_US * share);
        match self.controller("cpu")? {
            Controller::Own(directory) => {
                fs::write(directory.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
                fs::write(directory.join("cpu.cfs_quota_us"), quota)
            }
            Controller::Unified => fs::write(self.directory.join("cpu.max"), format!("{quota} {PERIOD_US}")),
        }
    }

    /// The group with this name under a controller; with cgroup v2 it is the same group.
    fn controller(&mut self, name: &str) -> io::Result<Controller> {
        let own_name = self.directory.file_name().expect("the directory has a name").to_owned();
        if let Some(parent) = below_ours("cgroup", Some(name)) {
            let directory = parent.join(own_name);
            fs::create_dir(&directory)?;
            self.others.push(directory.clone());
            return Ok(Controller::Own(directory));
        }
        let parent = self.directory.parent().expect("the group is below ours");
        fs::write(parent.join("cgroup.subtree_control"), format!("+{name}"))?;
        Ok(Controller::Unified)
    }

    /// A command prefix that enters all the groups and then executes the rest of its arguments.
    #[must_use]
    pub fn enter(&self) -> Vec<String> {
        let entering = r#"until [ "$1" = -- ]; do echo $$ >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@""#;
        let groups = [&self.directory].into_iter().chain(&self.others).map(|group| group.display().to_string());
        ["sh", "-c", entering, "sh"].map(str::to_owned).into_iter().chain(groups).chain(["--".to_owned()]).collect()
    }

    /// Kills every process in the group in one step, as a power cut would.
    pub fn die(&self) {
        // It fails if the group is gone; then there is no process to kill.
        let _ = fs::write(self.directory.join("cgroup.kill"), "1");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.die();
        for group in self.others.iter().chain([&self.directory]) {
            // A killed process takes a moment to disappear. A group that stays after that does no harm.
            let _ = wait::poll_for(Duration::from_secs(1), || {
                remove(group);
                (!group.exists()).then_some(())
            });
        }
    }
}

/// This process's own control group, in the hierarchy with this type of file system and this controller.
fn below_ours(kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let root = mounts.find_map(|fields| {
        let [_, place, its_kind, options, ..] = fields[..] else { return None };
        let has_it = controller.is_none_or(|name| options.split(',').any(|option| option == name));
        (its_kind == kind && has_it).then(|| PathBuf::from(place))
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let ours = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = match controller {
            None => controllers.is_empty(),
            Some(name) => controllers.split(',').any(|found| found == name),
        };
        is_it.then(|| path.trim_start_matches('/').to_owned())
    })?;
    Some(root.join(ours))
}

/// Removes a group and the groups below it; a group that has processes stays.
fn remove(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for below in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&below.path());
    }
    let _ = fs::remove_dir(directory);
}
