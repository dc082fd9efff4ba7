//! The children that a thread waits for: its own, and orphans that the kernel gives it. The test needs a separate process: this test
//! program, executed again for [`role_of_a_reaper`] alone.

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use neli_run::process::procfs;
use neli_run::process::reap::reap;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

const ROLE: &str = "NELI_TEST_REAPER";

/// Another thread's child ends first and is left to that thread, like librdkafka's `kinit`.
#[test]
fn role_of_a_reaper() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let (pid_sender, pid_receiver) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let other = thread::spawn(move || {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        // It has ended and was not waited for.
        waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        pid_sender.send(pid).unwrap();
        may_go.recv().unwrap();
        child.wait().map(|status| status.code())
    });
    let others = pid_receiver.recv().unwrap();
    let mut child = Command::new("true").spawn().unwrap();
    let own = Pid::from_raw(child.id().cast_signed());
    waitid(Id::Pid(own), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    assert!(procfs::children_of_other_threads().contains(&others));
    let reaped = reap(64, |_| {});
    let pids: Vec<Pid> = reaped.changes.iter().map(|(pid, _)| *pid).collect();
    assert_eq!(pids, [own]);
    assert_eq!(reaped.changes[0].1.code(), Some(0));
    assert!(!reaped.children_left);
    assert!(child.wait().is_err(), "it was waited for");
    go.send(()).unwrap();
    assert_eq!(other.join().unwrap().unwrap(), Some(7), "who started it is told how it ended");
}

/// Starts children that end at once, and waits until each has ended.
#[expect(clippy::zombie_processes, reason = "what is tested waits for them")]
fn start_zombies(count: usize) {
    for _ in 0..count {
        let child = Command::new("true").spawn().unwrap();
        waitid(Id::Pid(Pid::from_raw(child.id().cast_signed())), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    }
}

#[test]
fn role_of_a_reaper_of_many() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    start_zombies(200);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let reaped = reap(64, |_| {});
        assert_eq!((reaped.changes.len(), reaped.children_left, reaped.may_be_more), (64, true, true));
        seen.extend(reaped.changes.iter().map(|(pid, _)| *pid));
    }
    let reaped = reap(64, |_| {});
    assert_eq!((reaped.changes.len(), reaped.children_left, reaped.may_be_more), (8, false, false));
    seen.extend(reaped.changes.iter().map(|(pid, _)| *pid));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 200, "each once");
}

#[test]
fn the_number_of_children_that_are_waited_for_at_once_is_limited() {
    play("reaping::role_of_a_reaper_of_many");
}

#[test]
fn children_of_another_thread_are_left_to_it() {
    play("reaping::role_of_a_reaper");
}

/// Executes this test program again, only for that test.
fn play(role: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--nocapture"])
        .env(ROLE, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
