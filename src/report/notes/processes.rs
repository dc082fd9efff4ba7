//! The messages about processes that are left of a job.

/// Those that are left a lease after SIGKILL. None is named where none can be seen.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_processes_are_named_if_visible() {
        assert!(of_stuck(&[7]).starts_with("a process of the job can't be killed (pid 7): the term is not released"));
        assert!(of_stuck(&[7, 8]).starts_with("processes of the job can't be killed (pid 7, 8): "));
        let unseen = of_stuck(&[]);
        assert!(unseen.contains("/proc can't be read") && unseen.contains("ulimit -n"), "{unseen}");
    }
}
