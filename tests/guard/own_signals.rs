//! The signals of `neli-run` itself: those that were ignored at its start, and those that it reads. The test needs a separate process:
//! this test program, executed again by a shell that ignores signals, for [`role_of_a_listener`] alone.

use std::process::Command;

use neli_run::process::signals::{self, ignored_at_start};
use nix::libc::{SIGCHLD, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
use nix::sys::signal::{Signal, raise};

const ROLE: &str = "NELI_TEST_LISTENER";

/// Prints the signals that it was started with, if an environment variable asks for it.
#[test]
fn role_of_a_listener() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let ignored: Vec<i32> = (1..=31).filter(|signal| ignored_at_start().contains(*signal)).collect();
    println!("\nignored {ignored:?}");
    let signals = signals::take().unwrap();
    for signal in [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGCHLD] {
        raise(signal).unwrap();
    }
    while let Some(received) = signals.read_signal().unwrap() {
        println!("read {} {}", received.ssi_signo, received.ssi_pid == std::process::id());
    }
}

#[test]
fn signals_ignored_at_the_start_are_reported_and_hup_stays_ignored() {
    let output = Command::new("/bin/sh")
        .args(["-c", r#"trap '' PIPE USR1 HUP; exec "$@""#, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "own_signals::role_of_a_listener", "--nocapture"])
        .env(ROLE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("ignored ") || line.starts_with("read ")).collect();
    // Standard signals are delivered in the order of their numbers; SIGHUP is not delivered at all.
    assert_eq!(
        lines,
        [
            format!("ignored [{SIGHUP}, {SIGUSR1}, {SIGPIPE}]"),
            format!("read {SIGUSR1} true"),
            format!("read {SIGUSR2} true"),
            format!("read {SIGCHLD} true"),
        ]
    );
}
