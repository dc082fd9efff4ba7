//! A job at a memory limit that it shares with the guard: opening a file or allocating memory may block or fail in the guard.

use std::fs;
use std::iter;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::not_tested;
use harness::process::Process;
use neli_kafka::clock;
use neli_run::guard::{Answer, Order};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::fixture::{GuardFixture, exclusive, grant, script};
use crate::groups::made;

/// The job's memory limit in bytes.
const LIMIT: u64 = 100 << 20;

/// The time from an extension of the lease to the guard's deadline: long enough for the job to reach its limit many times.
const LEASE: Duration = Duration::from_secs(1);

/// The time between two extensions.
const BEAT: Duration = Duration::from_millis(200);

/// How many processes are started before the lease is no longer extended. That takes 0.5 s on two idle processors, and has no limit on busy
/// ones.
const RESPAWNS: usize = 40;

/// A time limit far above the time that they take on any machine.
const BOUND: Duration = Duration::from_secs(300);

/// How often each case is repeated.
const ROUNDS: usize = 3;

/// A process that is alive this long after the deadline is late: the kill margin of a guard without real-time scheduling. The lateness is
/// measured from the deadline until the guard has waited for the last process: 4 to 8 ms for a guard with it, on two idle processors, and up
/// to 25 ms on busy ones. A guard that stalled took up to two seconds.
const LATE: Duration = Duration::from_millis(300);

/// Eight shells in their own sessions: each keeps starting a process that allocates until it is killed.
const LEAKS: &str = r#"
    leak='my @held; push @held, "x" x 1048576 while 1'
    exec 2> /dev/null
    for i in 1 2 3 4 5 6 7 8; do setsid sh -c "while :; do echo again > \"\$PIPE\"; perl -e '$leak'; done" & done
    while :; do sleep 600; done"#;

/// A control group with a memory limit (cgroup v1 or v2).
struct Memory(PathBuf);

impl Memory {
    /// A group with `LIMIT` as its hard limit, or, only with cgroup v2, as the limit above which it is throttled.
    fn limited_by(file: &str) -> Option<Self> {
        let directory = parent_with(file)?.join(format!("neli-test.{}.{file}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let group = Self(directory);
        fs::write(group.0.join(file), LIMIT.to_string()).ok()?;
        Some(group)
    }

    fn hold(&self, pid: Pid) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        harness::wait::until_true("an empty memory group", || fs::remove_dir(&self.0).is_ok());
    }
}

/// The group of this process whose child groups have a file with this name.
fn parent_with(file: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (mount, path) = if file.starts_with("memory.limit") {
        (Path::new("/sys/fs/cgroup/memory"), groups.lines().find_map(|line| line.split_once(":memory:"))?.1)
    } else {
        (Path::new("/sys/fs/cgroup"), groups.lines().find_map(|line| line.split_once("0::"))?.1)
    };
    let parent = mount.join(path.trim_start_matches('/'));
    let has_it = parent.join(file).exists()
        || fs::read_to_string(parent.join("cgroup.subtree_control"))
            .is_ok_and(|controllers| controllers.contains("memory"));
    has_it.then_some(parent)
}

/// How long after the guard's deadline the last process of a leaking job is gone. `None` if the kernel killed the guard for memory, which
/// may happen if the guard could not exempt itself. Then the supervisor would kill the remaining processes, and this function does it here.
fn lateness(memory: &Memory, cgroup: Option<i32>) -> Option<Duration> {
    let mut fixture = GuardFixture::configured(script(LEAKS), |guard_config| guard_config.cgroup = cgroup);
    memory.hold(fixture.handle().pid());
    fixture.start(0, clock::now() + LEASE);
    if !await_respawns(&mut fixture) {
        kill_rest(&fixture);
        return None;
    }
    let mut deadline = None;
    let late = loop {
        let Some(answer) = fixture.receive_if_alive() else {
            kill_rest(&fixture);
            return None;
        };
        match answer {
            Answer::Extended { until } => deadline = Some(until),
            Answer::Fenced { end, .. } => break end.unwrap().gone_at.since(deadline.expect("an extended lease")),
            Answer::Exited { .. } => {}
            Answer::Accepted { .. }
            | Answer::CommandEnded { .. }
            | Answer::CommandsLeft
            | Answer::Gone
            | Answer::NoRun { .. }
            | Answer::Ready
            | Answer::Killed
            | Answer::LeftBehind { .. }
            | Answer::NotStarted { .. }
            | Answer::Started { .. }
            | Answer::StartedUnseen { .. }
            | Answer::StillKilling
            | Answer::Stopped { .. }
            | Answer::Stuck { .. } => panic!("no end by the deadline"),
        }
    };
    assert_eq!(Process::with_variable("PIPE", &fixture.pipe.path()), []);
    Some(late)
}

/// Waits until the job has started many processes, and extends its lease meanwhile. Returns false if the guard has ended.
fn await_respawns(fixture: &mut GuardFixture) -> bool {
    let begun = clock::now();
    let (mut beat_at, mut respawns) = (begun, 0);
    while respawns < RESPAWNS {
        let now = clock::now();
        assert!(now.since(begun) < BOUND, "{respawns} processes were started");
        if now >= beat_at {
            if fixture.handle().send(&Order::Lease(grant(0, now + LEASE))).is_err() {
                return false;
            }
            beat_at = now + BEAT;
        }
        respawns += usize::from(fixture.pipe.next_line_before(beat_at).is_some());
    }
    true
}

fn kill_rest(fixture: &GuardFixture) {
    harness::wait::until_true("the end of the job", || {
        let left = Process::with_variable("PIPE", &fixture.pipe.path());
        for process in &left {
            process.signal(Signal::SIGKILL);
        }
        left.is_empty()
    });
}

fn assert_in_time(file: &str) {
    let Some(memory) = Memory::limited_by(file) else {
        return not_tested(&format!("no control group with a {file} can be made here"));
    };
    let _exclusive = exclusive();
    let group = made();
    let number = group.as_ref().map(|group| group.as_fd().as_raw_fd());
    for cgroup in [None, number].into_iter().take(1 + usize::from(number.is_some())) {
        let late: Vec<Duration> = iter::repeat_with(|| lateness(&memory, cgroup)).flatten().take(ROUNDS).collect();
        let how = if cgroup.is_some() { "with a group" } else { "without a group" };
        assert!(late.iter().all(|late| *late < LATE), "{file}, {how}: {late:?}");
    }
}

#[test]
fn a_job_at_its_memory_limit_is_gone_in_time() {
    for file in ["memory.limit_in_bytes", "memory.max"] {
        if parent_with(file).is_some() {
            assert_in_time(file);
        }
    }
}

/// Above `memory.high` the kernel kills no process, but delays each allocation.
#[test]
fn a_job_that_is_throttled_for_its_memory_is_gone_in_time() {
    assert_in_time("memory.high");
}
