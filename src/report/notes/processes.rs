//! The messages about processes that are left of a job.

use neli_proto::guard::Named;

use super::warning;
use crate::report::log::Event;

/// The warning about processes that the job's main process has left behind.
pub(crate) fn of_left_behind(processes: &[Named], count: usize, killed: bool) -> Event {
    let named: Vec<String> = processes.iter().map(Named::to_string).collect();
    let others = if count > named.len() { format!(" and {} more", count - named.len()) } else { String::new() };
    let noun = if count == 1 { "process" } else { "processes" };
    let what = if killed { "still there, and killed" } else { "asked to stop" };
    warning(&format!(
        "the job's main process has ended and left {count} {noun} behind, {what}: {}{others}",
        named.join(", ")
    ))
}

/// The error about processes that are still alive a lease after SIGKILL. `pids` is empty if `/proc` can't be read.
pub(super) fn of_stuck(pids: &[u32]) -> String {
    let named: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let what = match pids {
        [] => {
            return "whether a process of the job is left is unknown (/proc can't be read): the term is not released, and ends with its \
                    lease; check that files can be opened (ulimit -n), that there is memory, and which processes of \
                    the job still run"
                .to_owned();
        }
        [_] => "a process",
        _ => "processes",
    };
    format!(
        "{what} of the job can't be killed (pid {}): the term is not released, and ends with its lease; see what holds them \
         (/proc/PID/stack, TracerPid in /proc/PID/status), or restart the machine",
        named.join(", ")
    )
}

/// The error about a guard that was killed, and has not ended a lease later. It is no process of the job; the job's processes are named if
/// any can be seen.
pub(super) fn of_stuck_guard(guard: i32, pids: &[u32], are_all: bool) -> String {
    let named: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let of_job = match pids {
        [] if are_all => {
            "no process of the job is seen any more, but only the guard's end can show that none is left".to_owned()
        }
        [] => "whether a process of the job is left is unknown (/proc can't be read)".to_owned(),
        [_] => format!("a process of the job is left too (pid {})", named.join(", ")),
        _ => format!("processes of the job are left too (pid {})", named.join(", ")),
    };
    format!(
        "the guard (pid {guard}) can't be killed; {of_job}: the term is not released, and ends with its lease; see what holds the guard \
         (/proc/{guard}/stack, TracerPid in /proc/{guard}/status, a frozen control group), or restart the machine"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_does_not_end_is_no_process_of_the_job() {
        let alone = of_stuck_guard(5, &[], true);
        assert!(
            alone.starts_with("the guard (pid 5) can't be killed; no process of the job is seen any more"),
            "{alone}"
        );
        assert!(
            of_stuck_guard(5, &[7], true)
                .contains("; a process of the job is left too (pid 7): the term is not released")
        );
        assert!(of_stuck_guard(5, &[7, 8], true).contains("; processes of the job are left too (pid 7, 8): "));
        assert!(of_stuck_guard(5, &[], false).contains("; whether a process of the job is left is unknown "));
    }

    #[test]
    fn remaining_processes_are_named_if_visible() {
        assert!(of_stuck(&[7]).starts_with("a process of the job can't be killed (pid 7): the term is not released"));
        assert!(of_stuck(&[7, 8]).starts_with("processes of the job can't be killed (pid 7, 8): "));
        let unseen = of_stuck(&[]);
        assert!(unseen.contains("/proc can't be read") && unseen.contains("ulimit -n"), "{unseen}");
    }
}
