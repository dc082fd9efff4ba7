//! The job's control group: its processes, the kill, and the cleanup. If no group can be created, the tests print that they did not run.

use std::fs::{self, File, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use harness::wait::{self, PATIENCE};
use harness::{not_tested, program};
use neli_kafka::clock;
use neli_proto::job::JobStatus;
use neli_run::guard::{Answer, GuardHandle, Order};
use neli_run::process::cgroup::Cgroup;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::{SIGKILL, SIGTERM};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Gid, Pid, Uid, chown};

use crate::fixture::{
    ENDED, GuardFixture, LinePipe, PROGRAM, await_readable, far_deadline, guard_config, has_ended, left_behind,
    process_of, script, status,
};

/// The user `nobody` on every Linux.
const NOBODY: u32 = 65534;

pub(crate) fn made() -> Option<Cgroup> {
    Cgroup::make(&mut None).inspect_err(|error| not_tested(&format!("no control group can be made here: {error}"))).ok()
}

pub(crate) fn path_of(group: &Cgroup) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", group.as_fd().as_raw_fd())).unwrap()
}

fn fixture_in(group: &Cgroup, text: &str) -> GuardFixture {
    GuardFixture::configured(script(text), |guard_config| guard_config.cgroup = Some(group.as_fd().as_raw_fd()))
}

/// The cgroup v2 group of a process.
fn group_of(pid: Pid) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("0::")).unwrap().to_owned()
}

fn receive_killed(fixture: &GuardFixture) {
    assert_eq!(fixture.receive(), Answer::Killed);
    assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGKILL), .. }));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn the_job_is_born_into_it_and_the_guard_is_not() {
    let Some(group) = made() else { return };
    let mut fixture = fixture_in(&group, r#"sh -c 'echo $$ > "$PIPE"; sleep 600' & wait"#);
    let (main, _) = fixture.start(0, far_deadline());
    let child = Pid::from_raw(fixture.pipe.next_line().parse().unwrap());
    let name = path_of(&group).file_name().unwrap().to_str().unwrap().to_owned();
    for pid in [main, child] {
        assert!(group_of(pid).contains(&format!("/{name}/run.")), "{}", group_of(pid));
    }
    assert_eq!(group_of(fixture.handle().pid()), group_of(Pid::this()));
    assert!(group.is_populated());
}

/// The kernel kills every process that is created in a group that was killed before, so each run has its own group.
#[test]
fn a_run_lives_after_one_that_was_killed() {
    let Some(group) = made() else { return };
    let mut fixture = fixture_in(&group, r#"echo alive > "$PIPE"; while :; do sleep 600; done"#);
    for _ in 0..3 {
        fixture.start(0, far_deadline());
        assert_eq!(fixture.pipe.next_line(), "alive");
        fixture.send(&Order::Kill);
        receive_killed(&fixture);
        assert!(!group.is_populated());
    }
}

#[test]
fn a_run_starts_after_one_whose_group_was_killed_from_outside() {
    let Some(group) = made() else { return };
    let mut fixture = fixture_in(&group, r#"echo alive > "$PIPE"; while :; do sleep 600; done"#);
    for _ in 0..3 {
        fixture.start(0, far_deadline());
        assert_eq!(fixture.pipe.next_line(), "alive");
        group.kill();
        assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGKILL), .. }));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
}

#[test]
fn a_process_that_leaves_it_is_killed_too() {
    let Some(group) = made() else { return };
    let above = path_of(&group).parent().unwrap().join("cgroup.procs");
    let text = format!(r#"echo 0 > {}; setsid sleep 600 & echo $! > "$PIPE"; wait"#, above.display());
    let mut fixture = fixture_in(&group, &text);
    let (main, _) = fixture.start(0, far_deadline());
    let child = fixture.pipe.next_process();
    assert_eq!(group_of(main), group_of(Pid::this()));
    fixture.send(&Order::Kill);
    receive_killed(&fixture);
    assert!(has_ended(&child));
}

/// A process that was moved to the group and is not a descendant of the guard.
fn stranger_in(group: &Path) -> Child {
    let stranger = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), stranger.id().to_string()).unwrap();
    stranger
}

#[test]
fn a_process_that_was_moved_into_it_is_killed_before_the_job_is_gone() {
    let Some(group) = made() else { return };
    let mut fixture = fixture_in(&group, r#"echo $$ > "$PIPE"; exec sleep 600"#);
    let (main, _) = fixture.start(0, far_deadline());
    fixture.pipe.next_line();
    let above = path_of(&group);
    let run = above.join(group_of(main).rsplit('/').next().unwrap());
    let mut stranger = stranger_in(&run);
    let its_process = process_of(stranger.id().cast_signed());
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(
        fixture.receive(),
        Answer::Exited { status: JobStatus::Signaled(SIGTERM), ended_at: ENDED, left: false, foreground: false }
    );
    assert_eq!(left_behind(fixture.receive()), (vec!["sleep".to_owned()], true));
    assert_eq!(fixture.receive(), Answer::Gone);
    assert!(has_ended(&its_process), "it was killed before");
    stranger.wait().unwrap();
}

#[test]
fn it_is_removed_with_its_maker_and_with_the_groups_that_the_job_made_below_it() {
    let Some(group) = made() else { return };
    let path = path_of(&group);
    let text = format!(
        r#"below={}/$(sed -n 's|^0::.*/||p' /proc/self/cgroup)/of-the-job; mkdir -p "$below/and/below"
           echo 0 > "$below/and/below/cgroup.procs"; echo ready > "$PIPE"; exec sleep 600"#,
        path.display()
    );
    let mut fixture = fixture_in(&group, &text);
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    assert!(group.is_populated());
    assert!(!group.members().is_empty());
    fixture.send(&Order::Kill);
    receive_killed(&fixture);
    drop(group);
    assert!(!path.exists());
}

#[test]
fn the_next_supervisor_removes_leftovers_of_a_killed_one_and_its_guard() {
    let Some(group) = made() else { return };
    let parent = path_of(&group).parent().unwrap().to_owned();
    let left = parent.join(format!("neli-run.{}.left", std::process::id()));
    // It is locked until the job is in it, because other guards that start meanwhile remove unused groups.
    let held = wait::poll_for(PATIENCE, || {
        // The directory may exist already, if another guard is about to remove it.
        let _ = fs::create_dir(&left);
        let lock = Flock::lock(File::open(&left).ok()?, FlockArg::LockSharedNonblock).ok()?;
        left.exists().then_some(lock)
    });
    let mut job = stranger_in(&left);
    drop(held.unwrap());
    drop(made());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&job.wait().unwrap()), Some(SIGKILL));
    // The kernel takes a moment to empty the group; the next guard removes it.
    drop(made());
    assert!(!left.exists());
    assert!(path_of(&group).exists(), "one that is held is let alone");
}

/// A guard that runs as `nobody`, and a job that gets root by a setuid program, so that the guard may not signal it.
struct Unprivileged {
    fixture: GuardFixture,
    escaped: Option<Pid>,
}

impl Unprivileged {
    /// A guard with a group in this directory. The guard is moved to the parent group.
    fn in_group(group: Option<&Path>) -> Self {
        let pipe = LinePipe::new();
        let home = pipe.directory.path();
        fs::set_permissions(home, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(pipe.path(), Permissions::from_mode(0o666)).unwrap();
        // The file is a setuid program of root.
        let climb = home.join("climb");
        assert!(
            Command::new("install").args(["-m", "4755", "/usr/bin/setpriv"]).arg(&climb).status().unwrap().success()
        );
        let text = format!(
            r#"{} --reuid=0 --regid=0 --clear-groups sh -c 'echo $$ > "$PIPE"; exec sleep 600' & wait"#,
            climb.display()
        );
        let guard = home.join("guard");
        let enter = group.map(|group| format!("echo $$ > {}/cgroup.procs;", group.parent().unwrap().display()));
        let drop_root = format!("exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {PROGRAM} \"$@\"");
        program::write(&guard, &format!("#!/bin/sh\n{}{drop_root}\n", enter.unwrap_or_default()));

        let directory = group.map(|group| File::open(group).unwrap());
        let mut guard_config = guard_config(script(&text), &pipe.path());
        guard_config.cgroup = directory.as_ref().map(AsRawFd::as_raw_fd);
        guard_config.lease = std::time::Duration::from_millis(300);
        let mut fixture = GuardFixture::guarded_by(&guard, &guard_config, pipe);
        fixture.start(3, far_deadline());
        let escaped = Pid::from_raw(fixture.pipe.next_line().parse().unwrap());
        assert!(status(escaped, "Uid").starts_with("0\t0"), "the directory for temporary files is mounted nosuid");
        Self { fixture, escaped: Some(escaped) }
    }

    fn end_escaped(&mut self) {
        if let Some(escaped) = self.escaped.take() {
            let process = process_of(escaped.as_raw());
            kill(escaped, Signal::SIGKILL).unwrap();
            await_readable(process.as_fd(), "its end");
        }
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        self.end_escaped();
    }
}

fn is_root() -> bool {
    let is_root = Uid::effective().is_root();
    if !is_root {
        not_tested("only root can make a setuid program of root's");
    }
    is_root
}

#[test]
fn without_it_a_process_that_got_root_is_reported_as_stuck_and_the_guard_continues() {
    if !is_root() {
        return;
    }
    let mut unprivileged = Unprivileged::in_group(None);
    let fixture = &unprivileged.fixture;
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: clock::now() });
    let mut answers = Vec::new();
    while !matches!(answers.last(), Some(Answer::Stuck { .. })) {
        answers.push(fixture.receive());
    }
    let escaped = unprivileged.escaped.unwrap();
    assert_eq!(answers.last(), Some(&Answer::Stuck { pids: vec![escaped.as_raw()] }));
    assert!(!answers.contains(&Answer::Gone));
    assert!(fixture.has_no_answer(), "said once");
    unprivileged.end_escaped();
    assert_eq!(unprivileged.fixture.receive(), Answer::Gone);
}

/// A control group that belongs to `nobody`, and a child group, for a guard and its job; removed at the end.
struct Delegated(PathBuf);

impl Delegated {
    fn new() -> Option<Self> {
        let group = made()?;
        let delegated = path_of(&group).with_file_name(format!("test-{}", std::process::id()));
        let below = delegated.join("neli-run.test");
        fs::create_dir_all(&below).unwrap();
        for path in [delegated.clone(), below.clone(), delegated.join("cgroup.procs")] {
            chown(&path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).unwrap();
        }
        for file in ["cgroup.procs", "cgroup.kill"] {
            chown(&below.join(file), Some(Uid::from_raw(NOBODY)), None).unwrap();
        }
        Some(Self(delegated))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for below in fs::read_dir(self.0.join("neli-run.test")).unwrap().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        let _ = fs::remove_dir(self.0.join("neli-run.test"));
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn with_it_a_process_that_got_root_is_killed() {
    if !is_root() {
        return;
    }
    let Some(delegated) = Delegated::new() else { return };
    let mut unprivileged = Unprivileged::in_group(Some(&delegated.0.join("neli-run.test")));
    unprivileged.fixture.send(&Order::Kill);
    let escaped = unprivileged.escaped.take().unwrap();
    receive_killed(&unprivileged.fixture);
    assert!(!Path::new(&format!("/proc/{escaped}")).exists());
    drop(unprivileged);
}

/// Its second thread kills the job where the first one stalls, so it does not do without: another guard is started when there is room.
#[test]
fn a_guard_that_can_not_have_its_second_thread_ends_at_its_start() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("guard");
    let drop_root = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups prlimit --nproc=1");
    program::write(&program, &format!("#!/bin/sh\nexec {drop_root} {PROGRAM} \"$@\"\n"));
    let guard = GuardHandle::start(&program, &guard_config(script("exit 0"), directory.path())).unwrap();
    await_readable(guard.as_fd(), "its end");
    assert!(guard.receive().unwrap().is_none());
    // As the supervisor does, which must learn why nevertheless.
    let _ = guard.signal(SIGKILL);
    assert_eq!(waitpid(guard.pid(), None), Ok(WaitStatus::Exited(guard.pid(), Errno::EAGAIN as i32)));
}
