//! What the process is refused for: a command that can't be run, a limit that is too low.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::{WHOLE, one_line, run};

#[test]
fn a_command_that_cannot_be_run_is_said_before_anything_is_joined() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("job");
    std::fs::write(&file, "#!/no/such/shell\n").unwrap();
    let job = file.to_str().unwrap();
    let refused = |command: &str, status: i32, why: &str| {
        let output = run(&["-g", "g", "-b", "a:1", "--", command]);
        assert_eq!(one_line(&output), format!("neli-run: {why}"));
        assert_eq!(output.status.code(), Some(status));
    };
    refused("no-such-command", 127, "no-such-command: not found in PATH");
    refused("./no-such-command", 127, "./no-such-command: not found");
    refused("", 127, "'': not found");
    refused("/etc", 126, "/etc: can't be run: it is a directory");
    refused(job, 126, &format!("{job}: can't be run: permission denied"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    refused(job, 127, &format!("{job}: its interpreter, /no/such/shell, is not found"));
}

#[test]
fn a_command_that_is_not_found_is_told_how_it_is_written() {
    let refused = |command: &[&str], why: &str| {
        let output = run(&[&["-g", "g", "-b", "a:1", "--"], command].concat());
        assert_eq!(one_line(&output), format!("neli-run: {why}"));
        assert_eq!(output.status.code(), Some(127));
    };
    refused(&["echo hi"], "'echo hi': not found; without the quotes it is: -- echo hi");
    refused(&["FOO=hunter2", "env"], "FOO=..: not found; to set a variable for the job: -- env FOO=.. env");
}

#[test]
fn a_limit_of_the_process_that_is_too_low_is_named() {
    for number in [8, 10, 14, 32, 63] {
        let line = format!("{number} open files are too few (ulimit -n): neli-run needs at least 64");
        assert_limited(&format!("ulimit -n {number}"), &line);
    }
    for kib in [100_000, 450_000, 2_000_000] {
        let line = format!("{} bytes of address space are too few (ulimit -v counts KiB)", kib * 1024_u64);
        assert_limited(&format!("ulimit -v {kib}"), &line);
    }
}

/// Processes are counted a user, and root's not at all: so it takes a user who has no others.
#[test]
fn a_limit_of_the_user_that_is_too_low_is_named() {
    let stranger = if nix::unistd::geteuid().is_root() {
        "setpriv --reuid=65534 --regid=65534 --clear-groups"
    } else {
        // In a user namespace the count begins anew, from Linux 5.14 on.
        "unshare --user --map-current-user"
    };
    let is_possible = Command::new("sh").args(["-c", &format!("exec {stranger} true")]).output();
    if !is_possible.is_ok_and(|tried| tried.status.success()) {
        return harness::not_tested("ulimit -u: this machine gives no user namespace; root needs none");
    }
    for processes in [1, 4, 20] {
        let limit = format!(r#"exec {stranger} prlimit --nproc={processes} -- "$@""#);
        assert_limited(&limit, "24 threads can't be made (ulimit -u, or pids.max of the control group)");
    }
}

/// Runs a whole command line behind a shell's `limit`.
fn limited(limit: &str) -> Output {
    let script = format!(r#"{limit}; exec "$@""#);
    let mut limited = Command::new("sh");
    limited.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_neli-run")]).args(WHOLE);
    limited.stdin(Stdio::null()).output().unwrap()
}

fn assert_limited(limit: &str, expected: &str) {
    let output = limited(limit);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{limit}: {told}");
    assert!(told.starts_with("neli-run: ") && told.contains(expected) && told.lines().count() == 1, "{limit}: {told}");
}
