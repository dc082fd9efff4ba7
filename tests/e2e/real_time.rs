//! A `neli-run` that is started with real-time scheduling: supervisor and guard have higher priorities than the job.

use std::fs;

use harness::candidate::Elector;
use harness::process::{Process, may_schedule_in_real_time};
use harness::{not_tested, wait};
use nix::sys::signal::Signal;

use crate::election;

/// Scheduling policy and priority of a process: 1 is `SCHED_FIFO`, 0 the ordinary policy.
fn scheduling(process: Process) -> (u32, u32) {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).expect("it lives");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let number = |index| fields.split_ascii_whitespace().nth(index).and_then(|field| field.parse().ok());
    (number(38).expect("the policy"), number(37).expect("the priority"))
}

/// Started with real-time scheduling: the job has the given priority, supervisor and guard have higher ones, and so has a second guard.
#[test]
fn a_job_in_real_time_has_its_guard_and_supervisor_above_it() {
    if !may_schedule_in_real_time() {
        return not_tested("this process may not schedule in real time");
    }
    let election = election(Elector::Log);
    let mut run = election.candidate().option("--on-standby", "exec sleep 9").start_behind(&["chrt", "--fifo", "10"]);
    let term = run.await_lead();
    election.await_witness(term);
    for round in 0..2 {
        let job = run.await_job();
        assert_eq!(scheduling(job), (1, 10), "round {round}");
        // On a busy machine a step of theirs lasts, and then they are ordinary processes for moments.
        for process in [run.process(), run.guard()] {
            wait::until_true("a priority above the job's", || scheduling(process) == (1, 11));
        }
        if round == 0 {
            run.guard().signal(Signal::SIGKILL);
            run.await_event("guard_lost");
            let next = election.await_witness_after(term);
            wait::until_true("its job", || run.events("job_started").iter().any(|event| event.number("term") == next));
        }
    }
    let threads = fs::read_dir(format!("/proc/{}/task", run.process().pid)).expect("it lives").flatten();
    for thread in threads {
        let thread = thread.file_name().to_string_lossy().parse().expect("a number");
        // One thread watches the main thread, with a higher priority.
        let is_above = || Process::find(thread).is_none_or(|thread| [(1, 11), (1, 12)].contains(&scheduling(thread)));
        wait::until_true("a priority above the job's", is_above);
    }
    election.close([run]);
}

/// There is no priority above the highest, and not every user may use the next higher one.
#[test]
fn a_priority_that_the_guard_can_not_be_above_is_refused() {
    if !may_schedule_in_real_time() {
        return not_tested("this process may not schedule in real time");
    }
    let election = election(Elector::Log);
    let bounded = ["chrt", "--fifo", "10", "setpriv", "--bounding-set=-sys_nice", "--"];
    for (behind, said) in [(&["chrt", "--fifo", "99"] as &[&str], "chrt -f 98"), (&bounded, "ulimit -r 11")] {
        let mut run = election.candidate().start_behind(behind);
        assert_eq!(run.status(), 125);
        let lines = run.strange_lines().join("\n");
        assert!(lines.contains(said), "{lines}");
    }
}
