//! How late the last process of a job is gone, where every processor is busy and the guard has no right to real-time
//! scheduling. `LATENESS_ROUNDS=50 chrt -f 50 cargo test --test guard -- --ignored --nocapture lateness` prints the figures.
//! (The test itself in real time: or it would be late to see who is not.)

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use neli::clock;
use neli_proto::time::Time;
use neli_run::guard::Answer;

use crate::post::{PROGRAM, Post, Words, await_readable, guard_config, script, spawn};

/// Without the right to real-time scheduling, whatever the test itself has.
const ORDINARY: &str = "chrt --other --pid 0 $$; exec setpriv --bounding-set=-sys_nice";

/// A group of the old hierarchy for processors, with a quota; removed at the end.
struct Quota(PathBuf);

impl Quota {
    fn of(quota_us: u64) -> Option<Self> {
        let group = PathBuf::from(format!("/sys/fs/cgroup/cpu/lateness-{}", clock::now().as_nanos()));
        fs::create_dir(&group).ok()?;
        let made = Self(group);
        fs::write(made.0.join("cpu.cfs_quota_us"), quota_us.to_string()).ok()?;
        Some(made)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for _ in 0..1000 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// A post whose guard, and so its job, stands behind these shell commands.
fn post_behind(commands: &str, job: &str) -> Post {
    let words = Words::new();
    let guard = words.directory.path().join("guard");
    let text = format!("#!/bin/sh\n{commands} {PROGRAM} \"$@\"\n");
    fs::write(&guard, text).unwrap();
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o700)).unwrap();
    let guard_config = guard_config(script(job), &words.path());
    Post::guarded_by(&guard, &guard_config, words)
}

/// When the main process and all of the tree are gone, after the deadline; in milliseconds, sorted.
fn measure(commands: &str, job: &str, rounds: u32) -> [Vec<f64>; 2] {
    let post = post_behind(commands, job);
    let mut late = [Vec::new(), Vec::new()];
    for term in 0..rounds {
        // Not in step with the period.
        let until = clock::now() + Duration::from_millis(400) + Duration::from_millis(37) * (term % 3);
        post.send(&spawn(term.into(), until));
        assert_eq!(post.hear(), Answer::Accepted { until });
        let (Answer::Started { .. }, Some(main)) = post.hear_all() else { panic!("it was not started in time") };
        let after = |until: Time| clock::now().since(until).as_secs_f64() * 1e3;
        await_readable(main.as_fd(), "the main process's end");
        late[0].push(after(until));
        while !matches!(post.hear(), Answer::Fenced { .. }) {}
        late[1].push(after(until));
    }
    for late in &mut late {
        late.sort_by(f64::total_cmp);
    }
    late
}

#[expect(clippy::print_stdout, reason = "figures are for whoever asked")]
fn print(what: &str, late: &[Vec<f64>; 2]) {
    for (who, late) in ["main", "tree"].iter().zip(late) {
        let at = |percent: usize| late[(late.len() - 1) * percent / 100];
        println!("{what}: {who}: n={} median {:.1} ms, p90 {:.1}, worst {:.1}", late.len(), at(50), at(90), at(100));
    }
}

/// So many busy processes beside the main one.
fn hogs(number: u32) -> String {
    format!("i=0; while [ $i -lt {number} ]; do (while :; do :; done) & i=$((i + 1)); done; while :; do :; done")
}

/// A job that is real-time itself, and takes every processor: its guard goes before it all the same.
#[test]
fn a_real_time_job_is_killed_in_time() {
    if !nix::unistd::geteuid().is_root() {
        return harness::not_tested("only root may schedule in real time");
    }
    // After three seconds of its processor the kernel ends it, whoever goes first.
    let [main, tree] = measure("exec chrt --fifo 10", &format!("ulimit -t 3; {}", hogs(3)), 2);
    // Here, where nobody else runs before all of it is gone, nothing more can be told apart.
    assert!(main.iter().chain(&tree).all(|late| *late < 1_000.0), "late by {main:?}, {tree:?} ms");
}

#[test]
#[ignore = "figures, of a machine that does nothing else"]
fn figures() {
    let rounds = std::env::var("LATENESS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    if std::env::var_os("LATENESS_REAL_TIME").is_some() {
        print("real-time job, 4 busy", &measure("exec chrt --fifo 10", &hogs(3), rounds));
        print("real-time guard, 8 busy", &measure("exec chrt --other 0", &hogs(7), rounds));
        return;
    }
    for number in [1, 3, 7, 15, 63] {
        print(&format!("no quota, {} busy", number + 1), &measure(ORDINARY, &hogs(number), rounds));
    }
    for (quota, number) in [(100_000, 7), (50_000, 1), (50_000, 7), (20_000, 7), (50_000, 63)] {
        let Some(group) = Quota::of(quota) else { continue };
        let enter = format!("echo $$ > {}/cgroup.procs; {ORDINARY}", group.0.display());
        print(&format!("quota {quota} us of 100 ms, {} busy", number + 1), &measure(&enter, &hogs(number), rounds));
    }
}
