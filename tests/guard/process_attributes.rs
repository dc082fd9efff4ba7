//! Attributes that a process inherits (limits, priority, scheduling and so on): the job has those that `neli-run` had at its start, and not
//! those of the guard.

use std::fs;
use std::path::Path;

use harness::process::may_schedule_in_real_time;
use harness::program;
use nix::unistd::Pid;

use crate::fixture::{GuardFixture, LinePipe, PROGRAM, far_deadline, guard_config, script};

/// Writes its pid and its timer slack, which only root may read of another process, and keeps running.
const REPORT: &str = r#"read slack < /proc/self/timerslack_ns; echo "$$ $slack" > "$PIPE"; exec sleep 600"#;

/// Pid and timer slack from the next line of [`REPORT`].
fn reporter(pipe: &mut LinePipe) -> (Pid, String) {
    let line = pipe.next_line();
    let (pid, slack) = line.split_once(' ').unwrap();
    (Pid::from_raw(pid.parse().unwrap()), slack.to_owned())
}

/// All attributes that a process inherits, and that its parent might have changed.
fn attributes(pid: Pid) -> Vec<(&'static str, String)> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let status = read("status");
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(&format!("{name}:")));
        line.unwrap_or_default().to_owned()
    };
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let limits = read("limits");
    // The number of file locks is the mark of the job's processes.
    let limits = limits.lines().filter(|line| !line.starts_with("Max file locks "));
    vec![
        ("limits", limits.collect::<Vec<_>>().join("\n")),
        ("OOM score adjustment", read("oom_score_adj")),
        ("what a core dump holds", read("coredump_filter")),
        ("priority, nice", fields[15..17].join(" ")),
        ("real-time priority, policy", fields[37..39].join(" ")),
        ("processors", line("Cpus_allowed")),
        ("memory nodes", line("Mems_allowed")),
        ("umask", line("Umask")),
        ("capabilities", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(line).join(" ")),
        ("no new privileges", line("NoNewPrivs")),
        ("locked memory", line("VmLck")),
        ("directory", fs::read_link(format!("/proc/{pid}/cwd")).unwrap().display().to_string()),
        ("session", fields[3].to_owned()),
        ("namespaces", fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap().display().to_string()),
    ]
}

/// Compares the job of a guard that was started by these commands with a child of the same commands.
#[track_caller]
fn assert_handed_on(changes: &str) {
    let pipe = LinePipe::new();
    let guard = pipe.directory.path().join("guard");
    // The shell is first the parent of the process that reports the attributes, and then executes the guard.
    let text =
        format!("#!/bin/sh\n{changes}\nPIPE={} sh -c '{REPORT}' &\nexec {PROGRAM} \"$@\"\n", pipe.path().display());
    program::write(&guard, &text);
    let guard_config = guard_config(script(REPORT), &pipe.path());
    let mut fixture = GuardFixture::guarded_by(&guard, &guard_config, pipe);
    let (before, slack_before) = reporter(&mut fixture.pipe);
    let (job, _) = fixture.start(0, far_deadline());
    let (reported, slack) = reporter(&mut fixture.pipe);
    assert_eq!(reported, job);
    assert_eq!(slack, slack_before, "behind {changes:?}");
    let expected = attributes(before);
    let found = attributes(job);
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected, "behind {changes:?}");
    }
    assert!(Path::new(&format!("/proc/{job}")).exists());
}

#[test]
fn the_job_gets_the_defaults() {
    assert_handed_on("");
}

#[test]
fn limits_are_handed_on() {
    assert_handed_on("ulimit -n 64 -c 0 -s 4096; umask 027");
    assert_handed_on("ulimit -l 64");
}

#[test]
fn the_job_gets_the_original_priorities() {
    assert_handed_on("renice -n 5 $$ > /dev/null; echo 500 > /proc/$$/oom_score_adj");
    assert_handed_on("chrt --batch --pid 0 $$; echo 77777 > /proc/$$/timerslack_ns");
    assert_handed_on("chrt --idle --pid 0 $$; taskset --pid 1 $$ > /dev/null");
}

/// The capability's bit in `/proc/PID/status`.
const CAP_SYS_RESOURCE: u64 = 1 << 24;

/// At a memory limit that guard and job share, the kernel kills the largest process that is not exempt. The test of the job's attributes
/// shows that the job is not exempt.
#[test]
fn a_guard_is_not_killed_for_memory() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.start(0, far_deadline());
    let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", fixture.handle().pid())).unwrap();
    let (score, status) = (read("oom_score_adj"), read("status"));
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    if u64::from_str_radix(capabilities.trim(), 16).unwrap() & CAP_SYS_RESOURCE == 0 {
        return harness::not_tested(
            "this process has no CAP_SYS_RESOURCE, and may exempt none from being killed for memory",
        );
    }
    assert_eq!(score, "-1000\n");
}

#[test]
fn the_job_gets_real_time_scheduling() {
    if !may_schedule_in_real_time() {
        return harness::not_tested("this process may not schedule in real time");
    }
    assert_handed_on("chrt --rr --pid 5 $$");
    assert_handed_on("chrt --fifo --pid 1 $$");
}
