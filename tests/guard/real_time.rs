//! A job with real-time scheduling: its guard has a higher priority. (`benches/lateness.rs` measures how late the last process of a job
//! is gone.)

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use harness::process::may_schedule_in_real_time;
use harness::{program, wait};
use neli_kafka::clock;
use neli_run::guard::Answer;
use nix::libc::SCHED_FIFO;
use nix::sys::signal::{Signal, kill};

use crate::fixture::{
    GuardFixture, LinePipe, PROGRAM, await_readable, exclusive, far_deadline, guard_config, script, spawn,
};
use crate::groups::{made, path_of};
use crate::starts::policy;

/// A job that uses all processors. The kernel kills each process after three seconds of processor time, so that a failed test ends.
const JOB: &str = "ulimit -t 3; for i in 1 2 3; do (while :; do :; done) & done; while :; do :; done";

#[test]
fn a_real_time_job_is_killed_in_time() {
    if !may_schedule_in_real_time() {
        return harness::not_tested("this process may not schedule in real time");
    }
    let _exclusive = exclusive();
    let pipe = LinePipe::new();
    let guard = pipe.directory.path().join("guard");
    program::write(&guard, &format!("#!/bin/sh\nexec chrt --fifo 10 {PROGRAM} \"$@\"\n"));
    let guard_config = guard_config(script(JOB), &pipe.path());
    let fixture = GuardFixture::guarded_by(&guard, &guard_config, pipe);
    let mut ran = 0;
    for term in 0..10 {
        let until = clock::now() + Duration::from_millis(400);
        fixture.send(&spawn(term, until));
        // On a machine that stalls the deadline may pass before the order is read, or before the start.
        let answer = fixture.receive();
        if matches!(answer, Answer::Fenced { .. }) {
            continue;
        }
        assert_eq!(answer, Answer::Accepted { until });
        loop {
            let (answer, main) = fixture.receive_with_descriptor();
            if let (Answer::Started { .. }, Some(main)) = (&answer, main) {
                await_readable(main.as_fd(), "the main process's end");
                ran += 1;
            }
            if matches!(answer, Answer::Fenced { .. }) {
                break;
            }
        }
        // No other process, and not even this test, runs before the whole job is gone. So a lower limit would measure the test.
        let late = clock::now().since(until);
        assert!(late < Duration::from_secs(1), "late by {late:?}");
        if ran == 2 {
            return;
        }
    }
    panic!("it was not started in time");
}

/// In the environment of a job that is this test program.
const ROLE: &str = "NELI_TEST_MANY_THREADS";
const THREADS: usize = 20;

#[test]
fn role_of_a_job_of_many_threads() {
    if env::var_os(ROLE).is_some() {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(thread::park);
            }
        });
    }
}

/// The last thread of a process reports its end before the kernel drops that thread's entries of `/proc`. A guard in real time that
/// displaces it then, and waits for the process, would spin until the kernel takes the processor from all real-time threads: 0.95 s.
#[test]
fn a_real_time_guard_sees_the_end_of_a_job_of_many_threads_at_once() {
    const ROUNDS: i64 = 20;
    if !may_schedule_in_real_time() {
        return harness::not_tested("this process may not schedule in real time");
    }
    let _exclusive = exclusive();
    let role = [OsString::from(format!("{ROLE}=1")), env::current_exe().unwrap().into()];
    let name = ["real_time::role_of_a_job_of_many_threads", "--exact"].map(OsString::from);
    let command = [OsString::from("env")].into_iter().chain(role).chain(name).collect();
    let pipe = LinePipe::new();
    let guard = pipe.directory.path().join("guard");
    // On one processor the guard displaces the thread that wakes it. On several it often does, and another processor may help that thread.
    program::write(&guard, &format!("#!/bin/sh\nexec taskset --cpu-list 0 {PROGRAM} \"$@\"\n"));
    let fixture = GuardFixture::guarded_by(&guard, &guard_config(command, &pipe.path()), pipe);
    let mut slow = Vec::new();
    for term in 0..ROUNDS {
        let (pid, _main) = fixture.start(term, far_deadline());
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().map(|thread| thread.path());
        wait::until_true("its threads", || threads().count() > THREADS);
        // Now the kernel has entries of each thread to drop. Guards read such entries too, and so do `top` and monitors.
        threads().for_each(|thread| drop(fs::read(thread.join("stat")).unwrap()));
        let begun = clock::now();
        kill(pid, Signal::SIGKILL).unwrap();
        fixture.receive_main_killed();
        slow.push(clock::now().since(begun));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
    slow.retain(|taken| *taken > Duration::from_millis(500));
    // A busy machine may delay one.
    assert!(slow.len() < 2, "{slow:?}");
}

/// The page on which a thread works when an event wakes it may be one that must be copied first. A frozen control group keeps the child from its exec.
#[test]
fn a_real_time_guard_that_waits_is_watched_while_a_child_shares_its_pages() {
    if !may_schedule_in_real_time() {
        return harness::not_tested("this process may not schedule in real time");
    }
    let Some(group) = made() else { return };
    let freeze = |is_frozen: &str| fs::write(path_of(&group).join("cgroup.freeze"), is_frozen).unwrap();
    let fixture = GuardFixture::configured(script("exec sleep 600"), |guard_config| {
        guard_config.cgroup = Some(group.as_fd().as_raw_fd());
    });
    let guard = fixture.handle().pid();
    let is_real_time = || policy(guard) == u32::try_from(SCHED_FIFO).unwrap();
    wait::until_true("a guard in real time", is_real_time);
    freeze("1");
    fixture.send(&spawn(0, far_deadline()));
    assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
    let children = || fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap();
    wait::until_true("a guard that has forked", || !children().is_empty());
    wait::until_true("an ordinary guard for a moment", || !is_real_time());
    freeze("0");
    fixture.receive_started();
    wait::until_true("its own scheduling", is_real_time);
    fixture.kill_job();
}
