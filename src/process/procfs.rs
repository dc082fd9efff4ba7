//! Processes as `/proc` shows them.
//!
//! If `/proc` is mounted with `hidepid`, an ordinary user does not see other users' processes, nor own processes whose program is not
//! readable. The lists of children of their parents still contain them.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Result, ensure};
use neli_proto::guard::Named;
use nix::dir::{Dir, Entry};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::Pid;

use crate::process::attributes::Mark;
use crate::process::spin_watch::watched;
use crate::process::system;

const MOUNT: &str = "/proc";

thread_local! {
    static DIRECTORY: RefCell<Option<Dir>> = const { RefCell::new(None) };
}

/// Checks that all descendants of a job can be found.
///
/// # Errors
///
/// The reason why not.
pub(crate) fn validate() -> Result<()> {
    let own = Pid::this();
    // In another PID namespace the same pids are other processes.
    ensure!(
        fs::read_link("/proc/self").is_ok_and(|shown| shown.to_str() == Some(&own.to_string())),
        "/proc is not there, or another PID namespace's: the job's processes could not be found and killed; mount it anew \
         (unshare --mount-proc; mount -t proc proc /proc)"
    );
    let namespaces = Path::new("/proc/self/ns");
    // No further child can be started there after the end of the first.
    ensure!(
        !has_children_elsewhere(namespaces, "pid"),
        "the processes that neli-run starts would be in another PID namespace, which ends with the first of them: unshare --pid needs \
         --fork"
    );
    // Until Linux 6.1 an exec does not enter it. The guard's deadlines are times of this process's CLOCK_BOOTTIME.
    ensure!(
        !has_children_elsewhere(namespaces, "time"),
        "the processes that neli-run starts would be in another time namespace, and the guard would kill the job too late by its clock: unshare \
         --time needs --fork"
    );
    ensure!(
        Path::new(&format!("/proc/{own}/task/{own}/children")).exists(),
        "this kernel lists no children of processes: not all of the job's could be found and killed; it needs CONFIG_PROC_CHILDREN"
    );
    Ok(())
}

/// Whether the children of a process are in another namespace of this kind than the process itself, which is in these.
fn has_children_elsewhere(namespaces: &Path, kind: &str) -> bool {
    let of_children = namespaces.join(format!("{kind}_for_children"));
    // There is no such link for PIDs before Linux 4.12, for time before 5.6. That of a PID namespace without a process can't be read.
    fs::symlink_metadata(&of_children).is_ok()
        && fs::read_link(of_children).ok() != fs::read_link(namespaces.join(kind)).ok()
}

/// Opens `/proc` once for this thread, which can then list all processes when no descriptor is free.
///
/// # Errors
///
/// There is no free descriptor.
pub(crate) fn keep_open() -> io::Result<()> {
    let directory = Dir::open(MOUNT, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    DIRECTORY.set(Some(directory));
    Ok(())
}

/// This process's time namespace, in which `CLOCK_BOOTTIME` may be shifted; `None` before Linux 5.6.
pub(crate) fn time_namespace() -> Option<OsString> {
    fs::read_link("/proc/self/ns/time").ok().map(PathBuf::into_os_string)
}

/// The children of this thread, which is the first.
pub(crate) fn children() -> Vec<Pid> {
    let own = Pid::this();
    Procfs::mounted().listed_children_of(own, own)
}

/// The children that threads other than the first have started (librdkafka's `kinit`), as far as the kernel lists them. The kernel gives
/// orphans to the first thread.
pub fn children_of_other_threads() -> Vec<Pid> {
    let own = Pid::this();
    let proc = Procfs::mounted();
    let threads = proc.numbers_in(&proc.mount.join(format!("{own}/task")));
    let others = threads.into_iter().filter(|thread| *thread != own);
    others.flat_map(|thread| proc.listed_children_of(own, thread)).collect()
}

/// Whether this child, which was not waited for, is shown as one that has ended.
pub(crate) fn has_ended(child: Pid) -> bool {
    Procfs::mounted().process(child).is_some_and(|process| !process.lives)
}

/// Whether this child, which was not waited for, is ending or has ended, for whatever reason; also if that can't be read.
pub(crate) fn is_ending(child: Pid) -> bool {
    /// `PF_EXITING` in the ninth field of `proc_pid_stat(5)`.
    const EXITING: u64 = 4;
    let stat = watched(|| fs::read(format!("/proc/{child}/stat"))).unwrap_or_default();
    let flags = fields(&stat).and_then(|mut fields| fields.nth(6)?.parse().ok());
    flags.is_none_or(|flags: u64| flags & EXITING != 0)
}

/// The status of this child, if it has ended and was not waited for; `None` also if the kernel hides it.
pub(crate) fn status_of_ended(child: Pid) -> Option<ExitStatus> {
    let stat = || watched(|| fs::read(format!("/proc/{child}/stat"))).ok();
    let first = stat()?;
    let process = parsed(child, &first)?;
    let status = match process.threads {
        _ if process.lives => None,
        1 => exit_code(&first),
        // The status is that of the thread that has ended last.
        _ if Procfs::mounted().has_living_thread(child) => None,
        _ => exit_code(&stat()?),
    };
    status.map(ExitStatus::from_raw)
}

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    /// Its process group; unknown for a hidden process.
    pub(crate) group: Option<Pid>,
    /// The number of threads, including those that have ended and can't be seen any more; 1 if it has only the first.
    pub(crate) threads: u32,
    /// Whether it has not ended. A process that has ended and was not waited for does not live: no thread of it runs, and its children have
    /// another parent already. If another process traces it, it may stay for ever.
    pub(crate) lives: bool,
    /// `/proc` does not show it: only its parent's list does.
    pub(crate) is_hidden: bool,
}

/// The processes of the machine.
#[derive(Debug)]
pub(crate) struct Procfs {
    mount: PathBuf,
    /// Whether no read has failed since [`start_scan`](Self::start_scan).
    has_seen_all: Cell<bool>,
}

impl Procfs {
    /// The file system at `/proc`.
    pub(crate) fn mounted() -> Self {
        Self::new(PathBuf::from(MOUNT))
    }

    pub(crate) const fn new(mount: PathBuf) -> Self {
        Self { mount, has_seen_all: Cell::new(true) }
    }

    /// Begins a scan: from now on failed reads are noted.
    pub(crate) fn start_scan(&self) {
        self.has_seen_all.set(true);
    }

    /// Whether no read has failed since [`start_scan`](Self::start_scan).
    pub(crate) fn has_seen_all(&self) -> bool {
        self.has_seen_all.get()
    }

    /// Notes that this scan is incomplete.
    pub(crate) fn note_missed(&self) {
        self.has_seen_all.set(false);
    }

    /// The result of a read; `None` if there is no such entry, or if the read failed, which is noted.
    fn ok_or_note<T>(&self, read: io::Result<T>) -> Option<T> {
        read.inspect_err(|error| {
            // A process that has ended meanwhile is no failure, and a hidden one is listed by its parent.
            let is_no_failure =
                matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM));
            if !is_no_failure {
                self.note_missed();
            }
        })
        .ok()
    }

    /// The entries of a directory whose names are numbers.
    fn numbers_in(&self, directory: &Path) -> Vec<Pid> {
        let number = |entry: io::Result<fs::DirEntry>| self.ok_or_note(entry)?.file_name().to_str()?.parse().ok();
        watched(|| {
            let entries = self.ok_or_note(fs::read_dir(directory)).into_iter().flatten();
            entries.filter_map(number).map(Pid::from_raw).collect()
        })
    }

    /// The pids of all visible processes, from the directory that is [kept open](keep_open).
    pub(crate) fn pids(&self) -> Vec<Pid> {
        let number = |entry: Entry| entry.file_name().to_str().ok()?.parse().ok().map(Pid::from_raw);
        DIRECTORY.with_borrow_mut(|directory| match directory {
            Some(directory) if self.mount == Path::new(MOUNT) => watched(|| {
                // After an error the iterator yields it for ever.
                let entries = directory.iter().map_while(|entry| entry.inspect_err(|_| self.note_missed()).ok());
                entries.filter_map(number).collect()
            }),
            _ => self.numbers_in(&self.mount),
        })
    }

    /// All visible processes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Process> {
        self.pids().into_iter().filter_map(|pid| self.process(pid))
    }

    /// Whether the process with this pid has the mark. It may have ended.
    pub(crate) fn has_mark(&self, pid: Pid, mark: Mark) -> bool {
        match system::limit_of_locks(pid) {
            Ok(limit) => limit == mark.0,
            Err(Errno::ESRCH) => false,
            // It is another user's. The file is readable by all users, but reading it takes twenty times as long.
            Err(_) => {
                let limits = self.ok_or_note(watched(|| fs::read_to_string(self.mount.join(format!("{pid}/limits")))));
                limits.is_some_and(|limits| limit_of_locks_in(&limits) == Some(mark.0))
            }
        }
    }

    /// Whether another process traces this one, which may then have ended although nothing but its state shows it.
    pub(crate) fn is_traced(&self, pid: Pid) -> bool {
        let status = watched(|| fs::read_to_string(self.mount.join(format!("{pid}/status")))).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    }

    /// The children of `parent`.
    pub(crate) fn children(&self, parent: &Process) -> Vec<Process> {
        if parent.is_hidden {
            return self.shown_children(parent.pid);
        }
        let listed = self.listed_children(parent);
        let mut children: Vec<Process> = listed.iter().filter_map(|pid| self.process(*pid)).collect();
        if children.len() < listed.len() {
            children.extend(self.hidden_children(parent, &listed));
        }
        children
    }

    /// The children of `parent` that are hidden from this process, among those that it `listed` a moment ago. Children that have ended
    /// since and were waited for are no longer listed.
    pub(crate) fn hidden_children(&self, parent: &Process, listed: &[Pid]) -> Vec<Process> {
        let unseen: Vec<Pid> = listed.iter().copied().filter(|pid| self.process(*pid).is_none()).collect();
        if unseen.is_empty() {
            return Vec::new();
        }
        let still_listed = self.listed_children(parent);
        let hidden = unseen.into_iter().filter(|pid| still_listed.contains(pid));
        hidden
            .map(|pid| Process { pid, parent: parent.pid, group: None, threads: 1, lives: true, is_hidden: true })
            .collect()
    }

    /// Whether its parent lists it, unless the parent itself is hidden.
    pub(crate) fn lists(&self, child: &Process) -> bool {
        self.process(child.parent).is_some_and(|parent| self.listed_children(&parent).contains(&child.pid))
    }

    /// The children of `parent` among all visible processes: a hidden process does not list its children.
    pub(crate) fn shown_children(&self, parent: Pid) -> Vec<Process> {
        self.processes().filter(|process| process.parent == parent).collect()
    }

    /// The children of each thread of `parent`.
    pub(crate) fn listed_children(&self, parent: &Process) -> Vec<Pid> {
        self.threads(parent).into_iter().flat_map(|thread| self.listed_children_of(parent.pid, thread)).collect()
    }

    fn listed_children_of(&self, process: Pid, thread: Pid) -> Vec<Pid> {
        let list = self.mount.join(format!("{process}/task/{thread}/children"));
        let list = self.ok_or_note(watched(|| fs::read_to_string(list))).unwrap_or_default();
        list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).map(Pid::from_raw).collect()
    }

    /// The threads of a process. Most processes have one thread, whose id is known. With a thousand processes this shortcut saves the time
    /// of a kill margin.
    pub(crate) fn threads(&self, process: &Process) -> Vec<Pid> {
        if process.threads == 1 {
            vec![process.pid]
        } else {
            self.numbers_in(&self.mount.join(format!("{}/task", process.pid)))
        }
    }

    /// The process with its name; the name is empty if the process has ended.
    pub(crate) fn named(&self, pid: Pid) -> Named {
        let name = self.ok_or_note(watched(|| fs::read(self.mount.join(format!("{pid}/comm"))))).unwrap_or_default();
        Named { pid: pid.as_raw(), name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned() }
    }

    /// The process with this pid; `None` if there is none, or it is hidden.
    pub(crate) fn process(&self, pid: Pid) -> Option<Process> {
        let process = self.stat_in(&self.mount.join(pid.to_string()), pid)?;
        // The first thread may end before the others.
        let lives = process.lives || (process.threads > 1 && self.has_living_thread(pid));
        Some(Process { lives, ..process })
    }

    /// The process, or the thread, with this directory.
    fn stat_in(&self, directory: &Path, pid: Pid) -> Option<Process> {
        parsed(pid, &self.ok_or_note(watched(|| fs::read(directory.join("stat"))))?)
    }

    /// Whether a thread of this process lives. A thread that has ended is still shown if another process traces it. A living thread can start
    /// another one and end between two reads, so the threads are listed again after each was seen to have ended.
    fn has_living_thread(&self, process: Pid) -> bool {
        let directory = self.mount.join(format!("{process}/task"));
        let threads = self.numbers_in(&directory);
        let has_ended = |thread: &Pid| {
            self.stat_in(&directory.join(thread.to_string()), *thread).is_some_and(|thread| !thread.lives)
        };
        threads.is_empty() || !threads.iter().all(has_ended) || self.numbers_in(&directory) != threads
    }
}

/// The hard limit in `/proc/PID/limits`, whose columns are name, soft limit, hard limit and unit. `None` if it is none.
fn limit_of_locks_in(limits: &str) -> Option<u64> {
    let columns = limits.lines().find_map(|line| line.strip_prefix("Max file locks "))?;
    columns.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Parses a line of `/proc/PID/stat`, which tells of the first thread alone whether it lives. The name is in parentheses, and may contain any
/// byte except NUL, even `)`.
fn parsed(pid: Pid, stat: &[u8]) -> Option<Process> {
    let mut fields = fields(stat)?;
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?);
    let group = fields.next()?.parse().ok().map(Pid::from_raw);
    // The third to the 20th field of proc_pid_stat(5), three of which are used.
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    let lives = !matches!(state, "Z" | "X");
    Some(Process { pid, parent, group, threads, lives, is_hidden: false })
}

/// The status of a process that has ended. Whoever may not trace it is shown 0, and 0 as the 35th field too, which is 1 otherwise (since
/// Linux 5.16).
fn exit_code(stat: &[u8]) -> Option<i32> {
    let mut fields = fields(stat)?;
    let may_trace = fields.nth(32)? == "1";
    let code = fields.nth(16)?.parse().ok()?;
    (may_trace || code != 0).then_some(code)
}

/// The fields from the third on, which follows the name.
fn fields(stat: &[u8]) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(str::from_utf8(stat.get(name_end + 1..)?).ok()?.split_ascii_whitespace())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use harness::wait;
    use nix::unistd;

    use super::*;

    /// A `/proc` with these processes: pid, parent, state, threads.
    pub(crate) fn proc_with(processes: &[(i32, i32, char, u32)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        fs::write(proc.path().join("version"), "not a process").unwrap();
        for (pid, parent, state, threads) in processes {
            let tasks = proc.path().join(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&tasks).unwrap();
            for directory in [&proc.path().join(pid.to_string()), &tasks] {
                write_stat(directory, (*pid, *parent, *state, *threads));
            }
            let children: Vec<String> =
                processes.iter().filter(|other| other.1 == *pid).map(|other| other.0.to_string()).collect();
            fs::write(tasks.join("children"), children.join(" ")).unwrap();
        }
        proc
    }

    /// Writes the line of a process or thread.
    pub(crate) fn write_stat(directory: &Path, (pid, parent, state, threads): (i32, i32, char, u32)) {
        let stat = format!("{pid} (a ) b (c) {state} {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0 0\n");
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("stat"), stat).unwrap();
    }

    /// As for lack of memory, or by a sandbox's filter.
    #[test]
    fn a_list_of_processes_that_can_not_be_read_ends_and_is_noted() {
        keep_open().unwrap();
        let number = DIRECTORY.with_borrow(|directory| directory.as_ref().unwrap().as_raw_fd());
        let mut directory = system::adopt(number).unwrap();
        unistd::dup2(fs::File::open("/dev/null").unwrap(), &mut directory).unwrap();
        // It is the list's.
        let _ = directory.into_raw_fd();
        let procfs = Procfs::mounted();
        assert_eq!((procfs.pids(), procfs.has_seen_all()), (vec![], false));
    }

    #[test]
    fn a_child_that_is_ending_is_known_from_one_that_is_not() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(!is_ending(pid));
        drop(child.stdin.take());
        wait::until_true("its end", || has_ended(pid));
        assert!(is_ending(pid));
        child.wait().unwrap();
        assert!(is_ending(pid));
    }

    #[test]
    fn children_in_another_namespace_are_noticed() {
        let namespaces = tempfile::tempdir().unwrap();
        let is_elsewhere = |kind| has_children_elsewhere(namespaces.path(), kind);
        let link = |name: &str, namespace: &str| symlink(namespace, namespaces.path().join(name)).unwrap();
        assert!(!is_elsewhere("time"), "a kernel without them");
        for (name, namespace) in [("pid", "pid:[1]"), ("pid_for_children", "pid:[1]"), ("time", "time:[1]")] {
            link(name, namespace);
        }
        link("time_for_children", "time:[2]");
        assert_eq!([is_elsewhere("pid"), is_elsewhere("time")], [false, true]);
    }

    /// A tracer that does not wait keeps each thread that it traces.
    #[test]
    fn a_process_lives_while_one_of_its_threads_does() {
        for (state, lives) in [('S', true), ('Z', false)] {
            let proc = proc_with(&[(6, 5, 'Z', 2)]);
            write_stat(&proc.path().join("6/task/7"), (7, 5, state, 2));
            let procfs = Procfs::new(proc.path().to_owned());
            assert_eq!(procfs.process(Pid::from_raw(6)).unwrap().lives, lives, "{state}");
        }
    }

    #[test]
    fn the_limit_of_file_locks_is_read_from_the_list_of_limits() {
        let limits = |hard: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max file size             7                    7                    bytes     \n\
                 Max file locks            5                    {hard:20} locks     \n"
            )
        };
        assert_eq!(limit_of_locks_in(&limits("4611686018427387905")), Some(4_611_686_018_427_387_905));
        assert_eq!(limit_of_locks_in(&limits("unlimited")), None);
        assert_eq!(limit_of_locks_in(""), None);
    }

    #[test]
    fn a_status_that_is_hidden_is_not_taken_for_0() {
        let line = |wchan: i32, code: i32| {
            let mut fields = vec!["0".to_owned(); 52];
            (fields[1], fields[2]) = ("(a)".into(), "Z".into());
            // proc_pid_stat(5) counts from 1.
            (fields[34], fields[51]) = (wchan.to_string(), code.to_string());
            exit_code(fields.join(" ").as_bytes())
        };
        assert_eq!([line(1, 0), line(1, 9), line(0, 9), line(0, 0)], [Some(0), Some(9), Some(9), None]);
    }

    #[test]
    fn an_invalid_line_is_no_process() {
        let pid = Pid::from_raw(7);
        assert_eq!(parsed(pid, b""), None);
        assert_eq!(parsed(pid, b"7 (a"), None);
        assert_eq!(parsed(pid, b"7 (a) S x 1 1"), None);
        assert_eq!(parsed(pid, b"7 (a) S 1 1 1"), None);
        assert_eq!(parsed(pid, b"7 (a) \xff 1 1 1"), None);
    }
}
