//! A job with real-time scheduling: its guard has a higher priority. (`benches/lateness.rs` measures how late the last process of a job
//! is gone.)

use std::os::fd::AsFd;
use std::time::Duration;

use harness::program;
use neli::program::clock;
use neli_run::guard::Answer;

use crate::fixture::{GuardFixture, LinePipe, PROGRAM, await_readable, exclusive, guard_config, script, spawn};

/// A job that uses all processors. The kernel kills each process after three seconds of processor time, so that a failed test ends.
const JOB: &str = "ulimit -t 3; for i in 1 2 3; do (while :; do :; done) & done; while :; do :; done";

#[test]
fn a_real_time_job_is_killed_in_time() {
    if !nix::unistd::geteuid().is_root() {
        return harness::not_tested("only root may schedule in real time");
    }
    let _exclusive = exclusive();
    let pipe = LinePipe::new();
    let guard = pipe.directory.path().join("guard");
    program::write(&guard, &format!("#!/bin/sh\nexec chrt --fifo 10 {PROGRAM} \"$@\"\n"));
    let guard_config = guard_config(script(JOB), &pipe.path());
    let fixture = GuardFixture::guarded_by(&guard, &guard_config, pipe);
    for term in 0..2 {
        let until = clock::now() + Duration::from_millis(400);
        fixture.send(&spawn(term, until));
        assert_eq!(fixture.receive(), Answer::Accepted { until });
        let (Answer::Started { .. }, Some(main)) = fixture.receive_with_descriptor() else {
            panic!("it was not started in time")
        };
        await_readable(main.as_fd(), "the main process's end");
        while !matches!(fixture.receive(), Answer::Fenced { .. }) {}
        // No other process, and not even this test, runs before the whole job is gone. So a lower limit would measure the test.
        let late = clock::now().since(until);
        assert!(late < Duration::from_secs(1), "late by {late:?}");
    }
}
