//! Commands that run beside the job: how their end is reported, and that none of them escapes or delays the job's end.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use neli_kafka::clock;
use neli_proto::job::{CommandEnd, JobStatus};
use neli_proto::time::Time;
use neli_run::guard::{Answer, CommandKind, Order};
use nix::fcntl::OFlag;
use nix::libc::{SIGKILL, SIGTERM};
use nix::unistd::pipe2;

use crate::fixture::{
    ENDED, GuardFixture, await_readable, far_deadline, has_ended, left_behind, near_deadline, script,
};

/// A job that runs until it is killed.
const JOB: &str = "exec sleep 600";

/// Writes its pid, and runs until it is killed.
const REPORT_PID: &str = r#"echo $$ > "$PIPE"; exec sleep 600"#;

/// Runs until [`release`] was called.
const UNTIL_RELEASED: &str = r#"until [ -e "$PIPE.go" ]; do sleep 0.01; done"#;

fn release(fixture: &GuardFixture) {
    File::create(fixture.pipe.directory.path().join("pipe.go")).unwrap();
}

fn with_health(job: &str, line: &str) -> GuardFixture {
    GuardFixture::configured(script(job), |guard_config| guard_config.health = Some(line.into()))
}

fn check(kill_at: Time) -> Order {
    Order::Command { kind: CommandKind::Health, id: 7, kill_at }
}

fn ended(end: CommandEnd) -> Answer {
    Answer::CommandEnded { kind: CommandKind::Health, id: 7, end }
}

/// Runs the command to its end; returns how it ended, and its output.
fn run(fixture: &GuardFixture) -> (Answer, String) {
    let (output, input) = pipe2(OFlag::O_CLOEXEC).unwrap();
    fixture.handle().send_with(&check(far_deadline()), Some(input)).unwrap();
    let mut text = String::new();
    File::from(output).read_to_string(&mut text).unwrap();
    (fixture.receive(), text)
}

fn await_end(process: &OwnedFd) {
    await_readable(process.as_fd(), "the end of a process");
}

#[test]
fn its_status_or_signal_is_reported_and_it_can_run_again() {
    let fixture = with_health(JOB, r#"if [ -z "$1" ]; then echo one; echo two >&2; exit 3; fi"#);
    fixture.start(0, far_deadline());
    for _ in 0..3 {
        assert_eq!(run(&fixture), (ended(CommandEnd::Exited(3)), "one\ntwo\n".to_owned()));
    }
    let fixture = with_health(JOB, "kill -35 $$");
    fixture.start(0, far_deadline());
    assert_eq!(run(&fixture).0, ended(CommandEnd::Signaled(35)));
}

#[test]
fn it_has_the_jobs_environment_without_the_lease_and_no_other_descriptor() {
    let fixture = GuardFixture::configured(script(JOB), |guard_config| {
        guard_config.health = Some("env; echo; cat; ls /proc/self/fd".into());
        guard_config.environment.push(("NELI_EVENT".into(), "of a hook around this one".into()));
        guard_config.environment.push(("PLAIN".into(), "kept".into()));
    });
    fixture.start(42, far_deadline());
    let (end, text) = run(&fixture);
    assert_eq!(end, ended(CommandEnd::Exited(0)));
    let (environment, descriptors) = text.split_once("\n\n").unwrap();
    let lines: Vec<&str> = environment.lines().collect();
    for line in ["NELI_EVENT=health", "NELI_WHY=", "NELI_EPOCH=42", "NELI_ATTEMPT=1", "PLAIN=kept"] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    assert!(!environment.contains("NELI_LEASE_FD") && !environment.contains("around this one"), "{lines:?}");
    // 3 is the directory that `ls` reads; stdin is /dev/null, so `cat` reads nothing.
    assert_eq!(descriptors.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
}

#[test]
fn the_hook_is_another_command() {
    let mut fixture = GuardFixture::configured(script(JOB), |guard_config| {
        guard_config.on_lead = Some(r#"echo "$NELI_EVENT" > "$PIPE"; exit 4"#.into());
    });
    fixture.start(0, far_deadline());
    fixture.send(&Order::Command { kind: CommandKind::Lead, id: 9, kill_at: far_deadline() });
    assert_eq!(fixture.pipe.next_line(), "lead");
    assert_eq!(fixture.receive(), Answer::CommandEnded { kind: CommandKind::Lead, id: 9, end: CommandEnd::Exited(4) });
}

#[test]
fn a_command_over_its_timeout_is_killed_with_its_group_but_not_the_job() {
    let mut fixture = with_health(JOB, &format!("trap '' TERM; sh -c '{REPORT_PID}' & {REPORT_PID}"));
    let (_, job) = fixture.start(0, far_deadline());
    let kill_at = near_deadline();
    fixture.send(&check(kill_at));
    let processes = [fixture.pipe.next_process(), fixture.pipe.next_process()];
    assert_eq!(fixture.receive(), ended(CommandEnd::TimedOut));
    assert!(clock::now() >= kill_at);
    processes.iter().for_each(await_end);
    assert!(!has_ended(&job));
    fixture.send(&Order::Kill);
    assert_eq!(fixture.receive(), Answer::Killed);
    assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGKILL), left: false, .. }));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn processes_left_in_a_commands_group_end_with_it() {
    // The command ends once the other process has written its pid.
    let line = format!("sh -c '{REPORT_PID}' & {UNTIL_RELEASED}");
    let mut fixture = with_health(JOB, &line);
    fixture.start(0, far_deadline());
    fixture.send(&check(far_deadline()));
    let left = fixture.pipe.next_process();
    release(&fixture);
    assert_eq!(fixture.receive(), ended(CommandEnd::Exited(0)));
    await_end(&left);
}

#[test]
fn a_command_does_not_delay_the_end_of_its_job() {
    let mut fixture = with_health(&format!("{UNTIL_RELEASED}; exit 5"), REPORT_PID);
    fixture.start(0, far_deadline());
    fixture.send(&check(far_deadline()));
    let command = fixture.pipe.next_process();
    release(&fixture);
    assert_eq!(
        fixture.receive(),
        Answer::Exited { status: JobStatus::Exited(5), ended_at: ENDED, left: false, foreground: false }
    );
    assert_eq!(fixture.receive(), Answer::CommandsLeft);
    assert_eq!(fixture.receive(), ended(CommandEnd::Abandoned));
    assert_eq!(fixture.receive(), Answer::Gone);
    assert!(has_ended(&command));
}

#[test]
fn leftovers_of_the_job_are_distinguished_from_a_command() {
    let job = format!("setsid sh -c '{REPORT_PID}' & {UNTIL_RELEASED}");
    let mut fixture = with_health(&job, REPORT_PID);
    fixture.start(0, far_deadline());
    let left = fixture.pipe.next_process();
    fixture.send(&check(far_deadline()));
    let command = fixture.pipe.next_process();
    release(&fixture);
    assert_eq!(
        fixture.receive(),
        Answer::Exited { status: JobStatus::Exited(0), ended_at: ENDED, left: true, foreground: false }
    );
    assert_eq!(fixture.receive(), ended(CommandEnd::Abandoned));
    await_end(&command);
    assert!(!has_ended(&left), "it was not asked yet");
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert!(!left_behind(fixture.receive()).1);
    assert_eq!(fixture.receive(), Answer::Gone);
    assert!(has_ended(&left));
}

#[test]
fn a_command_that_leaves_its_group_is_gone_before_the_job() {
    // The command ends once the other process has left its group.
    let line = format!("trap '' TERM; setsid sh -c '{REPORT_PID}' & {UNTIL_RELEASED}");
    let mut fixture = with_health("sleep 600", &line);
    fixture.start(0, far_deadline());
    fixture.send(&check(far_deadline()));
    let daemon = fixture.pipe.next_process();
    release(&fixture);
    assert_eq!(fixture.receive(), ended(CommandEnd::Exited(0)));
    assert!(!has_ended(&daemon));
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(
        fixture.receive(),
        Answer::Exited { status: JobStatus::Signaled(SIGTERM), ended_at: ENDED, left: true, foreground: false }
    );
    fixture.send(&Order::Kill);
    assert_eq!(fixture.receive(), Answer::Killed);
    assert_eq!(fixture.receive(), Answer::Gone);
    assert!(has_ended(&daemon));
}

#[test]
fn the_deadline_ends_it_with_the_job() {
    let mut fixture = with_health(JOB, &format!("trap '' TERM; setsid sh -c '{REPORT_PID}' & {REPORT_PID}"));
    fixture.start(3, near_deadline());
    fixture.send(&check(far_deadline()));
    let processes = [fixture.pipe.next_process(), fixture.pipe.next_process()];
    let mut answers = vec![fixture.receive(), fixture.receive()];
    answers.sort_by_key(|answer| matches!(answer, Answer::CommandEnded { .. }));
    assert!(matches!(answers[0], Answer::Exited { status: JobStatus::Signaled(SIGKILL), .. }), "{answers:?}");
    assert_eq!(answers[1], ended(CommandEnd::Abandoned));
    assert!(fixture.receive_fenced(3).is_some());
    assert!(processes.iter().all(has_ended));
}

#[test]
fn without_a_job_no_command_is_started() {
    let fixture = with_health("exit 0", r#"echo ran > "$PIPE""#);
    fixture.send(&check(far_deadline()));
    assert_eq!(fixture.receive(), ended(CommandEnd::Abandoned));
    fixture.start(0, far_deadline());
    assert!(matches!(fixture.receive(), Answer::Exited { .. }));
    assert_eq!(fixture.receive(), Answer::Gone);
    fixture.send(&check(far_deadline()));
    assert_eq!(fixture.receive(), ended(CommandEnd::Abandoned));
    // A configuration without a health command.
    let fixture = GuardFixture::running(JOB);
    fixture.start(0, far_deadline());
    fixture.send(&check(far_deadline()));
    assert_eq!(fixture.receive(), ended(CommandEnd::Abandoned));
}

#[test]
fn when_the_guard_dies_its_commands_die() {
    let mut fixture = with_health(JOB, REPORT_PID);
    let (_, job) = fixture.start(0, far_deadline());
    fixture.send(&check(far_deadline()));
    let command = fixture.pipe.next_process();
    fixture.handle().signal(SIGKILL).unwrap();
    await_end(&command);
    await_end(&job);
}
