//! The job's environment, and the reports of its end.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use harness::process::may_schedule_in_real_time;
use harness::{program, wait};
use neli_proto::job::JobStatus;
use neli_run::guard::{Answer, Grant, GuardConfig, GuardHandle, Order, Step, Target};
use neli_run::process::signals::SignalSet;
use nix::errno::Errno;
use nix::libc::{EACCES, ENOENT, EPERM, SIGHUP, SIGPIPE, SIGSTOP, SIGTERM, SIGUSR1};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getpgid};

use crate::fixture::{
    ENDED, GuardFixture, PROGRAM, descriptors, far_deadline, grant, inheritable, script, spawn, status,
};

fn command(arguments: &[&str]) -> Vec<OsString> {
    arguments.iter().map(OsString::from).collect()
}

fn exited(code: u8) -> Answer {
    Answer::Exited { status: JobStatus::Exited(code), ended_at: ENDED, left: false, foreground: false }
}

fn killed_by(signal: i32) -> Answer {
    Answer::Exited { status: JobStatus::Signaled(signal), ended_at: ENDED, left: false, foreground: false }
}

/// Receives the answers until the end of the run; returns how it ended.
fn end_of_run(fixture: &GuardFixture, attempt: u32) -> Answer {
    let until = far_deadline();
    fixture.send(&Order::Spawn { grant: grant(0, until), run: attempt.into(), attempt, window: None });
    assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
    assert!(matches!(fixture.receive(), Answer::Started { .. }));
    let end = fixture.receive();
    assert_eq!(fixture.receive(), Answer::Gone);
    end
}

#[test]
fn its_first_answer_says_that_it_is_set_up() {
    let fixture = GuardFixture::running("exit 0");
    assert_eq!(fixture.receive_any(), Answer::Ready);
}

#[test]
fn every_exit_status_is_reported() {
    let fixture = GuardFixture::running("exit $NELI_ATTEMPT");
    for code in 0..=255 {
        assert_eq!(end_of_run(&fixture, code.into()), exited(code));
    }
}

#[test]
fn every_signal_that_kills_is_reported() {
    let fixture = GuardFixture::running("kill -$NELI_ATTEMPT $$");
    for signal in [1, 2, 3, 9, 13, 15, 34, 64] {
        assert_eq!(end_of_run(&fixture, signal.try_into().unwrap()), killed_by(signal));
    }
}

#[test]
fn a_command_that_does_not_exist_is_not_started() {
    for name in ["no-such-command-anywhere", "/no/such/command", ""] {
        let fixture = GuardFixture::with(command(&[name]));
        fixture.send(&spawn(0, far_deadline()));
        assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
        assert_eq!(fixture.receive(), Answer::NotStarted { errno: ENOENT, at: Step::Exec });
    }
}

#[test]
fn a_command_without_permission_is_not_started_and_can_be_started_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job");
    program::write(&path, "#!/bin/sh\nexit 3\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let fixture = GuardFixture::configured(command(&["job"]), |guard_config| {
        guard_config.environment[0].1 = OsString::from(format!("{}:/usr/bin", directory.path().display()));
    });
    fixture.send(&spawn(0, far_deadline()));
    assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
    assert_eq!(fixture.receive(), Answer::NotStarted { errno: EACCES, at: Step::Exec });

    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(end_of_run(&fixture, 2), exited(3));
}

#[test]
fn a_script_without_a_shebang_is_run_by_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job");
    program::write(&path, "exit $1\n");
    let fixture = GuardFixture::with(vec![path.into(), "7".into()]);
    assert_eq!(end_of_run(&fixture, 1), exited(7));
}

#[test]
fn arguments_and_environment_are_passed_on_unchanged() {
    let odd = OsString::from_vec(vec![b'a', 0xff, b'\n', b'=']);
    let fixture = GuardFixture::configured(vec!["sleep".into(), "--".into(), "600".into()], |guard_config| {
        guard_config.environment =
            vec![("PATH".into(), "/usr/bin:/bin".into()), ("ODD".into(), odd.clone()), ("EMPTY".into(), "".into())];
    });
    let until = far_deadline();
    fixture.send(&Order::Spawn { grant: grant(42, until), run: 3, attempt: 3, window: None });
    assert_eq!(fixture.receive(), Answer::Accepted { until });
    let pid = fixture.receive_started();
    assert_eq!(fs::read(format!("/proc/{pid}/cmdline")).unwrap(), b"sleep\0--\x00600\0");
    assert_eq!(
        fs::read(format!("/proc/{pid}/environ")).unwrap(),
        b"PATH=/usr/bin:/bin\0ODD=a\xff\n=\0EMPTY=\0NELI_EPOCH=42\0NELI_ATTEMPT=3\0NELI_LEASE_FD=10\0"
    );
}

#[test]
fn an_argument_need_not_be_utf8() {
    let odd = OsString::from_vec(vec![b'x', 0xfe, 0xff]);
    let mut arguments = script("test \"$1\" = \"$(printf 'x\\376\\377')\"");
    arguments.extend(["sh".into(), odd]);
    assert_eq!(end_of_run(&GuardFixture::with(arguments), 1), exited(0));
}

#[test]
fn the_job_has_the_inherited_descriptors_and_its_lease_and_no_other() {
    let file = OwnedFd::from(File::open("/dev/zero").unwrap());
    let stray = OwnedFd::from(File::open("/dev/zero").unwrap());
    let (number, _) = (inheritable(&file), inheritable(&stray));
    let fixture = GuardFixture::configured(script("kill -STOP $$"), |guard_config| {
        guard_config.inherited = vec![0, 1, 2, number];
    });
    let (pid, _) = fixture.start(0, far_deadline());
    // The job is stopped, because a program that is being loaded opens files for a moment.
    assert_eq!(fixture.receive(), Answer::Stopped { signal: SIGSTOP });
    let lease = if number == 10 { 11 } else { 10 };
    let mut expected = vec![0, 1, 2, number, lease];
    expected.sort_unstable();
    assert_eq!(descriptors(pid), expected);
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap().to_str(), Some("/dev/zero"));
}

#[test]
fn signals_are_as_they_were_at_the_start_and_the_group_is_the_jobs_own() {
    let fixture = GuardFixture::configured(command(&["sleep", "600"]), |guard_config| {
        guard_config.ignored = SignalSet::EMPTY.with(SIGHUP).with(SIGPIPE);
    });
    let (pid, _) = fixture.start(0, far_deadline());
    let ignored = u64::from_str_radix(&status(pid, "SigIgn"), 16).unwrap();
    // 32 and 33 are reserved by the C library and can't be changed.
    assert_eq!(ignored & !(0b11 << 31), (1 << (SIGHUP - 1)) | (1 << (SIGPIPE - 1)));
    assert_eq!(status(pid, "SigBlk"), "0000000000000000");
    assert_eq!(status(pid, "SigPnd"), "0000000000000000");
    assert_eq!(getpgid(Some(pid)).unwrap(), pid);
    assert_eq!(status(pid, "PPid"), fixture.handle().pid().to_string());
}

#[test]
fn the_guard_blocks_signals_and_leads_a_group_of_its_own() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    fixture.start(0, far_deadline());
    let guard = fixture.handle().pid();
    // All except SIGKILL, SIGSTOP, and the two that the C library reserves.
    assert_eq!(status(guard, "SigBlk"), "fffffffe7ffbfeff");
    assert_eq!(status(guard, "Name"), "neli-guard");
    assert_eq!(getpgid(Some(guard)).unwrap(), guard);
}

/// The guard has its first thread, one that kills if that one stalls, and, with real-time scheduling, one that watches the first. Both have a
/// higher priority.
#[test]
fn the_guard_has_threads_with_a_higher_priority() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    fixture.start(0, far_deadline());
    let tasks = format!("/proc/{}/task", fixture.handle().pid());
    let priorities = || {
        let threads = fs::read_dir(&tasks).unwrap().map(|task| task.unwrap().path().join("stat"));
        let mut priorities: Vec<u32> = threads.map(|stat| field(&fs::read_to_string(stat).unwrap(), 40)).collect();
        priorities.sort_unstable();
        priorities
    };
    let expected: &[u32] = if may_schedule_in_real_time() { &[2, 3, 3] } else { &[0, 0] };
    // On a busy machine the first one's start lasts, and then it is an ordinary thread for moments.
    wait::until_true("their priorities", || priorities() == expected);
}

/// The scheduling policy of a process.
pub(crate) fn policy(pid: Pid) -> u32 {
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap(), 41)
}

/// A field of a line of `/proc/PID/stat`, by its number in `proc_pid_stat(5)`, which must be 3 or more.
fn field(stat: &str, number: usize) -> u32 {
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_ascii_whitespace().nth(number - 3).unwrap().parse().unwrap()
}

#[test]
fn the_job_has_the_scheduling_of_its_supervisor_and_not_that_of_the_guard() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    let (pid, _) = fixture.start(0, far_deadline());
    assert_eq!(policy(pid), policy(nix::unistd::getpid()));
    if may_schedule_in_real_time() {
        // On a busy machine the start lasts, and then the guard is an ordinary process for moments.
        wait::until_true("SCHED_FIFO", || policy(fixture.handle().pid()) == 1);
    }
}

/// Term and deadline in a lease file.
fn lease(bytes: &[u8]) -> (i64, u64) {
    assert_eq!(bytes.len(), 16);
    (i64::from_le_bytes(bytes[..8].try_into().unwrap()), u64::from_le_bytes(bytes[8..].try_into().unwrap()))
}

#[test]
fn the_lease_descriptor_contains_the_term_and_the_deadline_and_cannot_be_written() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    let until = far_deadline();
    let (pid, _) = fixture.start(42, until);
    let path = format!("/proc/{pid}/fd/10");
    let read = || lease(&fs::read(&path).unwrap());
    assert_eq!(read(), (42, until.as_nanos()));

    let later = far_deadline();
    fixture.send(&Order::Lease(Grant { seen: 50, next_seq: 2, ..grant(42, later) }));
    assert_eq!(fixture.receive(), Answer::Extended { until: later });
    assert_eq!(read(), (42, later.as_nanos()));

    let mut file = File::options().write(true).open(&path).unwrap();
    assert_eq!(file.write(b"x").unwrap_err().raw_os_error(), Some(EPERM));
    assert_eq!(file.set_len(0).unwrap_err().raw_os_error(), Some(EPERM));
}

#[test]
fn the_lease_continues_through_a_restart_and_is_zero_after_the_term() {
    let mut fixture = GuardFixture::running(
        r#"cp /proc/self/fd/10 "$PIPE.$NELI_ATTEMPT"; echo done > "$PIPE"; read wait < "$PIPE.never""#,
    );
    let path = fixture.pipe.path();
    nix::unistd::mkfifo(&path.with_extension("never"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let until = far_deadline();
    let mut held = Vec::new();
    for attempt in [1, 2] {
        fixture.send(&Order::Spawn { grant: grant(7, until), run: attempt.into(), attempt, window: None });
        assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
        let pid = fixture.receive_started();
        assert_eq!(fixture.pipe.next_line(), "done");
        held.push(File::open(format!("/proc/{pid}/fd/10")).unwrap());
        let copy = fs::read(path.with_extension(attempt.to_string())).unwrap();
        assert_eq!(lease(&copy), (7, until.as_nanos()));
        fixture.send(&Order::Kill);
        assert_eq!(fixture.receive(), Answer::Killed);
        assert_eq!(fixture.receive(), killed_by(9));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
    let content = |file: &File| {
        let mut bytes = [0; 16];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, 0).unwrap();
        lease(&bytes)
    };
    assert_eq!(held.iter().map(content).collect::<Vec<_>>(), [(7, until.as_nanos()); 2]);
    fixture.send(&Order::Over { term: 7 });
    fixture.send(&Order::Lease(grant(7, far_deadline())));
    assert_eq!(fixture.receive_fenced(7), None);
    assert_eq!(held.iter().map(content).collect::<Vec<_>>(), [(7, 0); 2]);
}

#[test]
fn signals_are_passed_on_to_the_main_process_or_its_group() {
    let mut fixture = GuardFixture::running(
        r#"trap 'echo main > "$PIPE"' USR1
           (trap 'echo child > "$PIPE"' USR1; echo ready > "$PIPE"; while :; do sleep 600 & wait $!; done) &
           while :; do wait; done"#,
    );
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    fixture.send(&Order::Signal { signal: SIGUSR1, to: Target::Main });
    assert_eq!(fixture.pipe.next_line(), "main");
    fixture.send(&Order::Signal { signal: SIGUSR1, to: Target::Group });
    let mut both = [fixture.pipe.next_line(), fixture.pipe.next_line()];
    both.sort();
    assert_eq!(both, ["child", "main"]);
}

#[test]
fn a_signal_right_after_a_spawn_comes_after_the_exec() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    for attempt in 1..=20 {
        fixture.send(&Order::Spawn { grant: grant(0, far_deadline()), run: attempt.into(), attempt, window: None });
        fixture.send(&Order::Signal { signal: SIGTERM, to: Target::Main });
        assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
        assert!(matches!(fixture.receive(), Answer::Started { .. }));
        assert_eq!(fixture.receive(), killed_by(SIGTERM));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
}

#[test]
fn a_job_that_stops_itself_is_reported_and_can_be_ended() {
    let fixture = GuardFixture::running("kill -STOP $$; exit 5");
    fixture.start(0, far_deadline());
    assert_eq!(fixture.receive(), Answer::Stopped { signal: SIGSTOP });
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(fixture.receive(), killed_by(SIGTERM));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn one_job_at_a_time() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    let (pid, _) = fixture.start(0, far_deadline());
    fixture.send(&spawn(0, far_deadline()));
    fixture.send(&spawn(1, far_deadline()));
    let until = far_deadline();
    fixture.send(&Order::Lease(grant(0, until)));
    assert_eq!(fixture.receive(), Answer::Extended { until });
    assert!(fixture.has_no_answer());
    assert_eq!(status(pid, "PPid"), fixture.handle().pid().to_string());
}

#[test]
fn a_message_that_does_not_parse_is_ignored() {
    let fixture = GuardFixture::with(command(&["sleep", "600"]));
    for nonsense in [
        b"not json".as_slice(),
        b"{}",
        b"{\"order\":\"spawn\"}",
        b"{\"order\":\"spawn\",\"term\":-9223372036854775808,\"seen\":0,\"next_seq\":0,\"until\":-1,\"run\":1,\"attempt\":1}",
        &[0xff; 5000],
    ] {
        nix::unistd::write(fixture.handle(), nonsense).unwrap();
    }
    fixture.send(&Order::Kill);
    fixture.send(&Order::Over { term: 9 });
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    fixture.send(&Order::Signal { signal: 4711, to: Target::Group });
    fixture.start(0, far_deadline());
    fixture.send(&Order::Signal { signal: 4711, to: Target::Group });
    fixture.send(&Order::Kill);
    assert_eq!(fixture.receive(), Answer::Killed);
    assert_eq!(fixture.receive(), killed_by(9));
    assert_eq!(fixture.receive(), Answer::Gone);
}

/// The supervisor learns why only by its status.
#[test]
fn a_guard_that_can_not_be_set_up_ends_with_the_errno() {
    let guard_config = GuardConfig { release_queue: RawFd::MAX, ..GuardConfig::default() };
    let guard = GuardHandle::start(Path::new(PROGRAM), &guard_config).unwrap();
    let pid = guard.pid();
    drop(guard);
    assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, Errno::EBADF as i32)));
}
