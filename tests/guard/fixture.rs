//! A guard with a job, and the helpers to observe them.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::process::Process;
use neli_kafka::clock;
use neli_proto::guard::SeenEnd;
use neli_proto::job::JobStatus;
use neli_proto::time::Time;
use neli_run::guard::{Answer, Grant, GuardConfig, GuardHandle, Order};
use neli_run::process::attributes::{EarlierAttributes, Mark};
use neli_run::process::memory_files;
use neli_run::process::system;
use neli_run::release::ReleaseConfig;
use nix::libc::{O_NONBLOCK, SIGKILL};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{self, Pid};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// A time limit far above the time that any step takes.
const BOUND_MS: u16 = 30_000;

/// Held by tests that use all processors: killing thousands of processes with a higher priority delays the ends of others.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stands for the time at which a main process has ended, so that answers can be compared.
pub(crate) const ENDED: Time = Time::from_nanos(0);

/// The time from a deadline to the lease's end.
pub(crate) const KILL_MARGIN: Duration = Duration::from_millis(20);

/// A deadline later than any test's end.
pub(crate) fn far_deadline() -> Time {
    clock::now() + Duration::from_secs(600)
}

/// A deadline that a test waits for. What must happen before it does so even if the machine stalls for a second.
pub(crate) fn near_deadline() -> Time {
    clock::now() + Duration::from_secs(2)
}

pub(crate) fn grant(term: i64, until: Time) -> Grant {
    Grant { term, seen: term, next_seq: 1, until }
}

pub(crate) fn spawn(term: i64, until: Time) -> Order {
    Order::Spawn { grant: grant(term, until), run: 1, attempt: 1, window: None }
}

/// A directory with a named pipe to which a job writes lines.
pub(crate) struct LinePipe {
    pub(crate) directory: tempfile::TempDir,
    reader: BufReader<File>,
}

impl LinePipe {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        // It is opened for writing too, so that a reading never ends while jobs start and end.
        let reader = BufReader::new(File::options().read(true).write(true).open(path).unwrap());
        Self { directory, reader }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("pipe")
    }

    /// Reads the next line.
    pub(crate) fn next_line(&mut self) -> String {
        if self.reader.buffer().is_empty() {
            await_readable(self.reader.get_ref().as_fd(), "a line");
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the next line, if it comes before this time.
    pub(crate) fn next_line_before(&mut self, end: Time) -> Option<String> {
        let left_ms = u16::try_from(end.since(clock::now()).as_millis()).unwrap_or(BOUND_MS);
        let is_there = !self.reader.buffer().is_empty() || is_readable(self.reader.get_ref().as_fd(), left_ms);
        is_there.then(|| self.next_line())
    }

    /// Reads the next line, a pid, and opens the process as a pidfd.
    pub(crate) fn next_process(&mut self) -> OwnedFd {
        process_of(self.next_line().parse().unwrap())
    }
}

/// A shell script as a command, with the pipe as `$PIPE`.
pub(crate) fn script(text: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", text].map(OsString::from).into()
}

/// A guard, and the pipe to which its job writes.
pub(crate) struct GuardFixture {
    pub(crate) pipe: LinePipe,
    guard: Option<GuardHandle>,
    guard_process: OwnedFd,
    /// The highest term that the guard got.
    term: Cell<i64>,
}

impl GuardFixture {
    pub(crate) fn with(command: Vec<OsString>) -> Self {
        Self::configured(command, |_| {})
    }

    pub(crate) fn running(text: &str) -> Self {
        Self::with(script(text))
    }

    pub(crate) fn configured(command: Vec<OsString>, adjust: impl FnOnce(&mut GuardConfig)) -> Self {
        let pipe = LinePipe::new();
        let mut guard_config = guard_config(command, &pipe.path());
        adjust(&mut guard_config);
        Self::guarded_by(Path::new(PROGRAM), &guard_config, pipe)
    }

    pub(crate) fn guarded_by(program: &Path, guard_config: &GuardConfig, pipe: LinePipe) -> Self {
        let guard = GuardHandle::start(program, guard_config).unwrap();
        let guard_process = system::open_pidfd(guard.pid()).unwrap();
        Self { pipe, guard: Some(guard), guard_process, term: Cell::new(0) }
    }

    pub(crate) fn handle(&self) -> &GuardHandle {
        self.guard.as_ref().unwrap()
    }

    pub(crate) fn send(&self, order: &Order) {
        if let Order::Lease(grant) | Order::Spawn { grant, .. } = order {
            self.term.set(grant.term.max(self.term.get()));
        }
        self.handle().send(order).unwrap();
    }

    /// The next answer, with the descriptor that came with it.
    pub(crate) fn receive_with_descriptor(&self) -> (Answer, Option<OwnedFd>) {
        self.await_message().expect("the guard has ended")
    }

    /// The next answer; `None` if the guard has ended.
    pub(crate) fn receive_if_alive(&self) -> Option<Answer> {
        self.await_message().map(|(answer, _)| answer)
    }

    /// The next answer, whichever it is.
    pub(crate) fn receive_any(&self) -> Answer {
        loop {
            match self.handle().receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    await_readable(self.handle().as_fd(), "an answer");
                }
                received => return received.unwrap().expect("the guard has ended").0,
            }
        }
    }

    fn await_message(&self) -> Option<(Answer, Option<OwnedFd>)> {
        loop {
            match self.handle().receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    await_readable(self.handle().as_fd(), "an answer");
                }
                // Only one test is about the first; the number of the second depends on how fast the processes die.
                Ok(Some((Answer::Ready | Answer::StillKilling, _))) => {}
                other => {
                    let mut received = other.unwrap();
                    if let Some(Answer::Exited { ended_at, .. }) = received.as_mut().map(|(answer, _)| answer) {
                        assert!(mem::replace(ended_at, ENDED) <= clock::now());
                    }
                    return received;
                }
            }
        }
    }

    pub(crate) fn receive(&self) -> Answer {
        self.receive_with_descriptor().0
    }

    /// Receives the end of a fenced term, and of its job if one was alive.
    pub(crate) fn receive_fenced(&self, fenced: i64) -> Option<SeenEnd> {
        let answer = self.receive();
        let Answer::Fenced { term, end } = answer else { panic!("{answer:?}") };
        assert_eq!(term, fenced);
        end
    }

    /// Receives the start of the job; returns its pid.
    pub(crate) fn receive_started(&self) -> i32 {
        let answer = self.receive();
        let Answer::Started { pid } = answer else { panic!("{answer:?}") };
        pid
    }

    /// Receives the end of a main process that SIGKILL killed; returns whether it left other processes.
    pub(crate) fn receive_main_killed(&self) -> bool {
        let answer = self.receive();
        let Answer::Exited { status: JobStatus::Signaled(SIGKILL), left, .. } = answer else { panic!("{answer:?}") };
        left
    }

    /// Receives the end of a job that SIGKILL killed. Then no process of it is left.
    pub(crate) fn receive_job_killed(&self) {
        self.receive_main_killed();
        assert_eq!(self.receive(), Answer::Gone);
        assert_eq!(self.processes_of_jobs(), []);
    }

    /// Kills the job, and receives its end.
    pub(crate) fn kill_job(&self) {
        self.send(&Order::Kill);
        assert_eq!(self.receive(), Answer::Killed);
        self.receive_job_killed();
    }

    /// The living processes that have the environment of a job of this guard, whatever their parents are.
    pub(crate) fn processes_of_jobs(&self) -> Vec<Process> {
        Process::with_variable("PIPE", &self.pipe.path())
    }

    /// Whether no answer is waiting, except that the guard is still killing.
    pub(crate) fn has_no_answer(&self) -> bool {
        loop {
            match self.handle().receive() {
                Ok(Some((Answer::StillKilling, _))) => {}
                other => return other.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock),
            }
        }
    }

    /// Starts the job; returns its pid and the descriptor that came with the answer.
    pub(crate) fn start(&self, term: i64, until: Time) -> (Pid, OwnedFd) {
        self.send(&spawn(term, until));
        assert_eq!(self.receive(), Answer::Accepted { until });
        let (answer, process) = self.receive_with_descriptor();
        let Answer::Started { pid } = answer else { panic!("{answer:?}") };
        (Pid::from_raw(pid), process.expect("a pidfd"))
    }

    /// Renews the lease of this term if it ends within a second.
    pub(crate) fn renew(&self, term: i64, until: &mut Time) {
        if clock::now() >= *until - Duration::from_secs(1) {
            *until = near_deadline();
            self.send(&Order::Lease(grant(term, *until)));
            assert_eq!(self.receive(), Answer::Extended { until: *until });
        }
    }

    /// Closes the socket.
    pub(crate) fn close(&mut self) {
        self.guard = None;
    }

    /// Waits for the guard's end.
    pub(crate) fn await_end(&self) {
        await_readable(self.guard_process.as_fd(), "the guard's end");
    }

    pub(crate) fn guard_has_ended(&self) -> bool {
        has_ended(&self.guard_process)
    }
}

impl Drop for GuardFixture {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        let pid = guard.pid();
        // Settles every term, so that the guard has none to release. It then ends when the socket is closed.
        for term in 0..=self.term.get() {
            let _ = guard.send(&Order::Released { term });
        }
        drop(guard);
        if is_readable(self.guard_process.as_fd(), BOUND_MS) {
            let _ = waitpid(pid, None);
        }
    }
}

pub(crate) fn guard_config(command: Vec<OsString>, pipe: &Path) -> GuardConfig {
    GuardConfig {
        attributes: EarlierAttributes { mark: Mark::new(), ..EarlierAttributes::default() },
        command,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("PIPE".into(), pipe.into())],
        inherited: vec![0, 1, 2],
        kill_margin: KILL_MARGIN,
        lease: Duration::from_secs(5),
        releaser: "/bin/false".into(),
        release: Some(release_config(&[])),
        release_queue: release_queue().as_raw_fd(),
        ..GuardConfig::default()
    }
}

/// The configuration of a release, with these properties.
pub(crate) fn release_config(properties: &[(&str, &str)]) -> ReleaseConfig {
    let config = serde_json::json!({
        "bootstrap": "localhost:1", "properties": properties, "member": "m-1", "name": "n", "lease_ms": 5_000, "hello": null,
        "election": {"group": "g", "topic": "t", "partition": 0, "role": 0},
    });
    serde_json::from_value(config).unwrap()
}

/// The release queue of this process's guards.
pub(crate) fn release_queue() -> &'static File {
    static QUEUE: LazyLock<File> = LazyLock::new(|| memory_files::release_queue().unwrap());
    &QUEUE
}

pub(crate) fn process_of(pid: i32) -> OwnedFd {
    system::open_pidfd(Pid::from_raw(pid)).unwrap()
}

pub(crate) fn has_ended(process: &OwnedFd) -> bool {
    is_readable(process.as_fd(), 0)
}

pub(crate) fn await_readable(descriptor: BorrowedFd<'_>, what: &str) {
    assert!(is_readable(descriptor, BOUND_MS), "no sign of {what}");
}

fn is_readable(descriptor: BorrowedFd<'_>, timeout_ms: u16) -> bool {
    poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], timeout_ms).unwrap() == 1
}

/// The value of a line of `/proc/PID/status`.
pub(crate) fn status(pid: Pid, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap().trim().to_owned()
}

/// The descriptors of another process.
pub(crate) fn descriptors(pid: Pid) -> Vec<RawFd> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut numbers: Vec<RawFd> =
        entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Writes a line to a named pipe that a job opens to read it. A plain opening would wait for that job, and hang if the job has ended.
pub(crate) fn tell_reader(pipe: &Path) {
    let open = || File::options().write(true).custom_flags(O_NONBLOCK).open(pipe).ok();
    harness::wait::until("a job that reads its pipe", open).write_all(b"go\n").unwrap();
}

/// The number of a descriptor of this process, which is made inheritable.
pub(crate) fn inheritable(descriptor: &OwnedFd) -> RawFd {
    nix::fcntl::fcntl(descriptor, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    descriptor.as_raw_fd()
}

/// The names of the processes that the main process left behind, and whether they are killed.
pub(crate) fn left_behind(answer: Answer) -> (Vec<String>, bool) {
    let Answer::LeftBehind { processes, count, killed } = answer else { panic!("{answer:?}") };
    assert_eq!(count, processes.len());
    let mut names: Vec<String> = processes.into_iter().map(|process| process.name).collect();
    names.sort();
    (names, killed)
}
