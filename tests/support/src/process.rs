//! Other processes, as `/proc` shows them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, Uid};

use crate::wait;

/// Executes the rest of its arguments without the descriptors of this process. librdkafka's pipes aren't close-on-exec: each Kafka client of
/// another test would count against a limit of open files.
pub const WITHOUT_INHERITED: [&str; 4] = [
    "bash",
    "-c",
    r#"for open in /proc/self/fd/*; do number=${open##*/}; [ "$number" -le 2 ] || eval "exec $number>&-"; done; exec "$@""#,
    "bash",
];

/// A process, identified by its pid and start time, so that a later process with the same pid is not confused with it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    started: u64,
}

/// Fields of `/proc/<pid>/stat`.
struct Stat {
    name: String,
    state: char,
    parent: i32,
    started: u64,
}

/// For each thread of a process: its state, and the kernel function in which it waits.
#[must_use]
pub fn waits_of(pid: i32) -> String {
    let of_thread = |thread: i32| {
        let state = Stat::read(thread).map_or('?', |stat| stat.state);
        let read = |file: &str| {
            let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}"));
            text.unwrap_or_else(|error| error.to_string()).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        format!("{state} {} {}", read("wchan"), read("stack"))
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    threads.map(of_thread).collect::<Vec<_>>().join("; ")
}

/// Whether this process may schedule in real time as root may: in a container root often lacks `CAP_SYS_NICE`.
#[must_use]
pub fn may_schedule_in_real_time() -> bool {
    let tried = || Command::new("chrt").args(["--fifo", "99", "true"]).output();
    Uid::effective().is_root() && tried().is_ok_and(|tried| tried.status.success())
}

/// Waits for the end of a child, and returns what it wrote to its pipes. If it has not ended within [`wait::PATIENCE`], it is killed and the
/// test fails with what it wrote, so that a program which unexpectedly runs on does not hang the test.
#[must_use]
pub fn output_of(child: Child) -> Output {
    const AFTER_THE_KILL: Duration = Duration::from_secs(5);
    let pid = child.id();
    let process = Process::child(pid);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = receiver.recv_timeout(wait::PATIENCE) {
        return output.expect("a child's pipes can be read");
    }
    process.signal(Signal::SIGKILL);
    // Its own children may keep the pipes open.
    let output = receiver.recv_timeout(AFTER_THE_KILL);
    panic!("process {pid} has not ended within {:?}, and was killed: {output:?}", wait::PATIENCE);
}

impl Process {
    /// The process with this pid, if there is one; a zombie does not count.
    #[must_use]
    pub fn find(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        stat.lives().then_some(Self { pid, started: stat.started })
    }

    /// A child of this process that was not waited for: the pid is valid even if the child has ended.
    #[must_use]
    pub fn child(pid: u32) -> Self {
        let pid = i32::try_from(pid).expect("a pid");
        let stat = Stat::read(pid).expect("a child stays until it is waited for");
        Self { pid, started: stat.started }
    }

    /// Every process that has this text in its environment.
    #[must_use]
    pub fn with_variable(name: &str, value: &Path) -> Vec<Self> {
        let wanted = format!("{name}={}", value.display());
        let has = |process: &Self| {
            let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
        };
        all().filter(has).collect()
    }

    /// Every process that has this word on its command line.
    #[must_use]
    pub fn with_word(word: &Path) -> Vec<Self> {
        let has = |process: &Self| {
            let words = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|found| found == word.as_os_str().as_encoded_bytes())
        };
        all().filter(has).collect()
    }

    /// Whether it is alive; a zombie is not.
    #[must_use]
    pub fn lives(self) -> bool {
        self.stat().is_some_and(|stat| stat.lives())
    }

    /// Whether it is stopped (SIGSTOP).
    #[must_use]
    pub fn is_stopped(self) -> bool {
        self.stat().is_some_and(|stat| stat.state == 'T')
    }

    /// Its name, as `ps -o comm` shows it.
    #[must_use]
    pub fn name(self) -> Option<String> {
        Some(self.stat()?.name)
    }

    /// Its parent's pid.
    #[must_use]
    pub fn parent(self) -> Option<i32> {
        Some(self.stat()?.parent)
    }

    /// The processor time of its living threads in nanoseconds, from the scheduler's own count (`schedstat`): `stat` counts in ticks of
    /// 10 ms.
    #[must_use]
    pub fn processor_time(self) -> Option<Duration> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.flatten();
        let nanoseconds = threads.filter_map(|thread| {
            let counts = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            counts.split_whitespace().next()?.parse::<u64>().ok()
        });
        Some(Duration::from_nanos(nanoseconds.sum()))
    }

    /// Its children.
    #[must_use]
    pub fn children(self) -> Vec<Self> {
        family(&[self.pid], &everyone())
    }

    /// Its present descendants.
    #[must_use]
    pub fn descendants(self) -> Vec<Self> {
        let everyone = everyone();
        let mut found = Vec::new();
        let mut parents = vec![self.pid];
        while !parents.is_empty() {
            let children = family(&parents, &everyone);
            parents = children.iter().map(|child| child.pid).collect();
            found.extend(children);
        }
        found
    }

    /// Kills them all, as a power cut would: none acts on the end of another. All are stopped first, from the oldest, since a supervisor
    /// continues a guard that is stopped. They are killed from the youngest: the end of a shell continues what is stopped in its session.
    pub fn cut_power(mut processes: Vec<Self>) {
        processes.sort_by_key(|process| (process.started, process.pid));
        for process in &processes {
            process.signal(Signal::SIGSTOP);
        }
        for process in processes.iter().rev() {
            process.signal(Signal::SIGKILL);
        }
    }

    /// Sends it a signal, if it is alive.
    pub fn signal(self, signal: Signal) {
        if !self.lives() {
            return;
        }
        match kill(Pid::from_raw(self.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => panic!("can't send {signal} to {self:?}: {error}"),
        }
    }

    /// The sum of a field of `/proc/<pid>/smaps_rollup` or `status`, in KiB.
    #[must_use]
    pub fn kib(self, file: &str, field: &str) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.pid)).ok()?;
        let line = text.lines().find(|line| line.starts_with(field))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    /// The sum of several of these fields in MB; 0 for a process that is gone.
    #[must_use]
    pub fn megabytes(self, file: &str, fields: &[&str]) -> Option<f64> {
        let kib: u64 = fields.iter().map(|field| self.kib(file, field)).sum::<Option<_>>()?;
        #[expect(clippy::cast_precision_loss, reason = "less than 2^53")]
        let kib = kib as f64;
        Some(kib * 1024.0 / 1e6)
    }

    /// The number of its threads.
    #[must_use]
    pub fn threads(self) -> Option<usize> {
        Some(fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.count())
    }

    /// The targets of its descriptors, as `ls -l /proc/<pid>/fd` shows them.
    #[must_use]
    pub fn descriptors(self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", self.pid)) else { return Vec::new() };
        let target = |path: &Path| Some(fs::read_link(path).ok()?.to_string_lossy().into_owned());
        entries.filter_map(|entry| target(&entry.ok()?.path())).collect()
    }

    /// The number of its established TCP connections.
    #[must_use]
    pub fn connections(self) -> usize {
        let tables = ["tcp", "tcp6"].map(|file| fs::read_to_string(format!("/proc/{}/net/{file}", self.pid)));
        let tables = tables.map(Result::unwrap_or_default).concat();
        let inode = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // State number 01 means "established".
            (fields.get(3) == Some(&"01")).then(|| format!("socket:[{}]", fields[9]))
        };
        let established: HashSet<String> = tables.lines().filter_map(inode).collect();
        self.descriptors().into_iter().filter(|target| established.contains(target)).count()
    }

    /// Stops it by ptrace, as if it hung: its parent is not informed, and SIGCONT does not continue it. SIGKILL kills it, but its parent
    /// is informed only when the returned value is dropped.
    #[must_use]
    pub fn hold(self) -> Hold {
        let hold = self.trace();
        ptrace::interrupt(hold.0).expect("it is traced");
        wait::until_true("a process that is held", || self.stat().is_none_or(|stat| matches!(stat.state, 't' | 'T')));
        hold
    }

    /// Traces it without stopping it. When it ends, its parent is informed only when the returned value is dropped.
    #[must_use]
    pub fn trace(self) -> Hold {
        self.trace_if_alive().expect("it is alive")
    }

    /// The same for a process that may end meanwhile: `None` then.
    #[must_use]
    pub fn trace_if_alive(self) -> Option<Hold> {
        let pid = Pid::from_raw(self.pid);
        match ptrace::seize(pid, ptrace::Options::empty()) {
            Ok(()) => Some(Hold(pid)),
            Err(_) if !self.lives() => None,
            Err(error) => panic!("a descendant may be traced: {error}"),
        }
    }

    /// Freezes it: it gets no processor time, and can't even die. `None` if that is not possible here.
    #[must_use]
    pub fn freeze(self) -> Option<Frozen> {
        let group = Path::new("/sys/fs/cgroup/freezer").join(format!("neli-test.{}", self.pid));
        fs::create_dir(&group).ok()?;
        let frozen = Frozen(group);
        fs::write(frozen.0.join("cgroup.procs"), self.pid.to_string()).ok()?;
        fs::write(frozen.0.join("freezer.state"), "FROZEN").ok()?;
        let state = || fs::read_to_string(frozen.0.join("freezer.state")).unwrap_or_default();
        wait::until_true("a frozen process", || state().trim() == "FROZEN");
        Some(frozen)
    }

    fn stat(self) -> Option<Stat> {
        Stat::read(self.pid).filter(|stat| stat.started == self.started)
    }
}

/// A control group of cgroup v1 that freezes a process until this is dropped.
#[derive(Debug)]
pub struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        fs::write(self.0.join("freezer.state"), "THAWED").expect("our own group");
        wait::until_true("an empty group", || fs::remove_dir(&self.0).is_ok());
    }
}

/// A process that is traced, and perhaps stopped; it continues when this is dropped, which must happen in the thread that traces it.
#[derive(Debug)]
pub struct Hold(Pid);

impl Drop for Hold {
    fn drop(&mut self) {
        // Only a process that is stopped can be let go. If it was killed meanwhile, the kernel informs its parent only after this process,
        // its tracer, has waited for it.
        if ptrace::detach(self.0, None).is_err() {
            let _ = ptrace::interrupt(self.0);
            let _ = waitpid(self.0, Some(WaitPidFlag::__WALL));
            let _ = ptrace::detach(self.0, None);
        }
    }
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain any character, so the fields follow the last closing one.
        let (before, after) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            name,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            started: number(19)?,
        })
    }

    fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// All processes with their parents' pids, read in one pass, since reading /proc is slow on a machine with many processes.
fn everyone() -> Vec<(Process, i32)> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let find = |pid| {
        let stat = Stat::read(pid)?;
        stat.lives().then_some((Process { pid, started: stat.started }, stat.parent))
    };
    pids.filter_map(find).collect()
}

/// The children of these parents among `everyone`.
fn family(parents: &[i32], everyone: &[(Process, i32)]) -> Vec<Process> {
    everyone.iter().filter(|(_, parent)| parents.contains(parent)).map(|(process, _)| *process).collect()
}

/// All processes.
fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    entries.filter_map(|entry| Process::find(entry.ok()?.file_name().to_str()?.parse().ok()?))
}
