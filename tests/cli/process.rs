//! Refusals because of the process's environment: a command that can't be executed, a limit that is too low.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::{WHOLE, one_line, output_of, run};

#[test]
fn a_command_that_cannot_be_run_is_reported_before_anything_is_joined() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("job");
    std::fs::write(&file, "#!/no/such/shell\n").unwrap();
    let job = file.to_str().unwrap();
    let refused = |command: &str, status: i32, why: &str| {
        let words: &[&str] = if command.is_empty() { &[""] } else { &command.split(' ').collect::<Vec<_>>() };
        let output = run(&[&["-g", "g", "-b", "a:1", "--"], words].concat());
        assert_eq!(one_line(&output), format!("neli-run: {why}"));
        assert_eq!(output.status.code(), Some(status));
    };
    refused("no-such-command", 127, "no-such-command: not found in PATH");
    refused("--lease 5s true", 127, "--lease: not found; options of neli-run come before --");
    refused("cd /tmp", 127, "cd: not found; for a shell line use: -- sh -c '..'");
    refused("./no-such-command", 127, "./no-such-command: not found");
    refused("", 127, "'': not found");
    refused("/etc", 126, "/etc: can't be run: it is a directory");
    refused(job, 126, &format!("{job}: can't be run: permission denied"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    refused(job, 127, &format!("{job}: its interpreter, /no/such/shell, is not found"));
}

#[test]
fn a_command_that_is_not_found_is_quoted_as_written() {
    let refused = |command: &[&str], why: &str| {
        let output = run(&[&["-g", "g", "-b", "a:1", "--"], command].concat());
        assert_eq!(one_line(&output), format!("neli-run: {why}"));
        assert_eq!(output.status.code(), Some(127));
    };
    refused(&["echo hi"], "'echo hi': not found; for a shell line use: -- sh -c '..'");
    refused(&["FOO=hunter2", "env"], "FOO=..: not found; for a shell line use: -- sh -c '..'");
}

/// `doctor` reports all problems in one run, one line each. A start reports only the first one.
#[test]
fn doctor_reports_all_failures() {
    let words = ["doctor", "-b", "127.0.0.1:1", "-g", "g", "--timeout", "300ms", "--", "no-such-command"];
    let output = run(&words);
    let limited = run_behind("ulimit -n 32", &words);
    assert!(
        String::from_utf8_lossy(&limited.stdout).contains("\n--    brokers        Kafka was not checked: "),
        "{limited:?}"
    );
    for (output, first) in [(output, "brokers        127.0.0.1:1"), (limited, LIMIT)] {
        let text = String::from_utf8(output.stdout).unwrap();
        let mut failures: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FAIL  ")).collect();
        failures.sort_unstable_by_key(|failure| failure.starts_with("command"));
        assert!(failures.len() == 2 && failures[0].starts_with(first), "{text}");
        assert_eq!(failures[1], "command        no-such-command: not found in PATH");
        let has_fix = |failure: &&str| text.contains(&format!("FAIL  {failure}\n{:21}fix: ", ""));
        assert!(failures.iter().all(has_fix), "{text}");
        assert!(
            first != LIMIT || text.contains("\n                     fix: ulimit -n 1024; LimitNOFILE=1024\n"),
            "{text}"
        );
        assert_eq!((output.status.code(), output.stderr), (Some(1), Vec::new()));
    }
}

const LIMIT: &str = "open-files     32 open files are too few (ulimit -n): neli-run needs at least 64";

/// Without a broker, the number of partitions is unknown.
#[test]
fn doctor_prints_how_to_create_a_topic() {
    let output = run(&["doctor", "--print-topic", "-g", "g", "-b", "127.0.0.1:1", "--timeout", "300ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let begin = "kafka-topics.sh --bootstrap-server 127.0.0.1:1 --create --topic g.neli --partitions 1 --replication-factor 3 --config ";
    assert!(text.starts_with(begin) && text.ends_with(" --config min.insync.replicas=2\n"), "{text}");
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.starts_with("neli-run: warning: the number of brokers is unknown (127.0.0.1:1"), "{warning}");
    assert_eq!(output.status.code(), Some(0));
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

#[test]
fn inherited_descriptors_count_for_the_limit_of_open_files() {
    let inherits = r#"for number in $(seq 20 55); do eval "exec $number<&0"; done"#;
    let limit = format!(r#"exec bash -c '{inherits}; ulimit -n 64; exec "$@"' bash "$@""#);
    assert_limited(&limit, "64 open files are too few (ulimit -n): neli-run needs at least ");
}

/// The limit counts a user's processes, and does not apply to root, so the test needs a user without other processes.
#[test]
fn a_limit_of_the_user_that_is_too_low_is_named() {
    let stranger = if nix::unistd::geteuid().is_root() {
        "setpriv --reuid=65534 --regid=65534 --clear-groups"
    } else {
        // In a user namespace the count starts at 0, from Linux 5.14 on.
        "unshare --user --map-current-user"
    };
    let is_possible = Command::new("sh").args(["-c", &format!("exec {stranger} true")]).output();
    if !is_possible.is_ok_and(|tried| tried.status.success()) {
        return harness::not_tested("ulimit -u: this machine gives no user namespace; root needs none");
    }
    for processes in [1, 4, 20] {
        let limit = format!(r#"exec {stranger} prlimit --nproc={processes} -- "$@""#);
        assert_refused_behind(&limit, 86, "24 threads can't be made (ulimit -u, or pids.max of the control group)");
    }
}

/// Runs a command line behind a shell's `ulimit`.
pub(crate) fn run_behind(limit: &str, words: &[&str]) -> Output {
    let script = format!(r#"{limit}; exec "$@""#);
    let mut limited = Command::new("sh");
    limited.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_neli-run")]).args(words);
    output_of(limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn assert_limited(limit: &str, expected: &str) {
    assert_refused_behind(limit, 125, expected);
}

fn assert_refused_behind(limit: &str, status: i32, expected: &str) {
    let output = run_behind(limit, WHOLE);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{limit}: {message}");
    assert!(
        message.starts_with("neli-run: ") && message.contains(expected) && message.lines().count() == 1,
        "{limit}: {message}"
    );
}
