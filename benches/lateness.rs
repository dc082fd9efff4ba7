//! How long after the guard's deadline the last process of a job is gone, on a machine whose processors are all busy; mainly for a guard
//! without real-time scheduling, whose kill margin was chosen by this measurement. It needs no Kafka.
//!
//! `chrt -f 50 cargo bench --bench lateness`: the bench itself needs real-time scheduling, because otherwise it would be late itself. No
//! other program may use the machine.

#![expect(clippy::expect_used, reason = "a program that gives up when it can't measure")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use harness::figures::{Figures, Row};
use neli_kafka::clock;
use neli_run::guard::{Answer, Grant, GuardConfig, GuardHandle, Order};
use neli_run::process::attributes::{EarlierAttributes, Mark};
use neli_run::process::memory_files::release_queue;
use nix::poll::{PollFd, PollFlags, poll};

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// A limit for each wait, far above the times that are measured.
const LIMIT_MS: u16 = 60_000;

/// Gives up real-time scheduling, and then the right to it, even if the bench has it.
const ORDINARY: &str = "chrt --other --pid 0 $$";
const DROP_RIGHT: &str = "exec setpriv --bounding-set=-sys_nice";

/// Measures how late the guard is. Groups with a quota are created in `/sys/fs/cgroup/cpu`, if that is possible.
#[derive(Parser)]
struct Arguments {
    /// The number of runs of each job.
    #[arg(short, default_value_t = 20)]
    n: i64,
    /// One JSON object per row, printed as soon as it is measured.
    #[arg(long)]
    json: bool,
    /// The argument that cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let Arguments { n, json, .. } = Arguments::parse();
    let mut figures = Figures::new(json);
    let mut measure = |what: &str, commands: &str, busy: u32| figures.tell("", measured(what, commands, busy, n));
    measure("real-time job", "exec chrt --fifo 10", 4);
    measure("real-time guard", "exec chrt --other 0", 8);
    for busy in [2, 4, 8, 16, 64] {
        measure("ordinary guard", &format!("{ORDINARY}; {DROP_RIGHT}"), busy);
    }
    for (quota_us, busy) in [(100_000, 8), (50_000, 2), (50_000, 8), (20_000, 8), (50_000, 64)] {
        let Some(group) = Quota::of(quota_us) else { continue };
        // A process with real-time scheduling may not enter the group.
        let enter = format!("{ORDINARY}; echo $$ > {}/cgroup.procs || exit; {DROP_RIGHT}", group.0.display());
        measure(&format!("quota of {} %", quota_us / 1_000), &enter, busy);
    }
    figures.finish();
}

/// The time from the deadline to the end of a job of this many busy processes, whose guard was started by these shell commands: for its
/// main process and for all processes.
fn measured(what: &str, commands: &str, busy: u32, n: i64) -> Vec<Row> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("guard");
    fs::write(&program, format!("#!/bin/sh\n{commands} {PROGRAM} \"$@\"\n")).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("a script");
    let job = format!("for i in $(seq 2 {busy}); do (while :; do :; done) & done; while :; do :; done");
    let queue = release_queue().expect("a file in memory");
    let guard = GuardHandle::start(&program, &guard_config(&job, &queue)).expect("a guard");
    let (mut to_main, mut to_all) = (Vec::new(), Vec::new());
    for term in 0..n {
        // The deadline must not be at the same point of each period of a quota.
        let until = clock::now() + Duration::from_millis(400 + 37 * u64::try_from(term % 3).unwrap_or_default());
        let grant = Grant { term, seen: term, next_seq: 1, until };
        guard.send(&Order::Spawn { grant, run: 1, attempt: 1, window: None }).expect("a guard");
        let main = loop {
            let (answer, descriptor) = next_answer(&guard);
            if let Answer::Started { .. } = answer {
                break descriptor.expect("a pidfd");
            }
        };
        await_readable(&main);
        to_main.push((until.as_nanos(), clock::now().as_nanos()));
        while !matches!(next_answer(&guard).0, Answer::Fenced { .. }) {}
        to_all.push((until.as_nanos(), clock::now().as_nanos()));
        guard.send(&Order::Released { term }).expect("a guard");
    }
    let row = |whose: &str, times| Row::between(format!("{what}, {busy} busy: deadline to {whose} gone"), times);
    vec![row("main", to_main), row("tree", to_all)]
}

fn guard_config(job: &str, release_queue: &File) -> GuardConfig {
    GuardConfig {
        attributes: EarlierAttributes { mark: Mark::new(), ..EarlierAttributes::default() },
        command: ["/bin/sh", "-c", job].map(Into::into).into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        inherited: vec![0, 1, 2],
        kill_margin: Duration::from_millis(20),
        lease: Duration::from_secs(5),
        releaser: "/bin/false".into(),
        release_queue: release_queue.as_raw_fd(),
        ..GuardConfig::default()
    }
}

fn next_answer(guard: &GuardHandle) -> (Answer, Option<OwnedFd>) {
    loop {
        match guard.receive() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => await_readable(guard),
            other => {
                let received = other.expect("an answer").expect("the guard lives");
                return received;
            }
        }
    }
}

fn await_readable(source: &impl AsFd) {
    let ready = poll(&mut [PollFd::new(source.as_fd(), PollFlags::POLLIN)], LIMIT_MS).expect("a descriptor");
    assert_eq!(ready, 1, "neither an answer of the guard nor the end of the job within {LIMIT_MS} ms");
}

/// A control group (v1) with a quota of processor time; removed at the end.
struct Quota(PathBuf);

impl Quota {
    /// A quota of this many microseconds in each period of 100 ms; `None` if no such group can be created.
    fn of(quota_us: u64) -> Option<Self> {
        let group = Path::new("/sys/fs/cgroup/cpu").join(format!("lateness-{}", clock::now().as_nanos()));
        fs::create_dir(&group).ok()?;
        let made = Self(group);
        fs::write(made.0.join("cpu.cfs_quota_us"), quota_us.to_string()).ok()?;
        Some(made)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The guard ends slightly later than its socket.
        harness::wait::until_true("an empty control group", || fs::remove_dir(&self.0).is_ok());
    }
}
