//! What runs beside the job: how its end is told, and that it neither gets away nor holds the job's end up.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use neli::clock;
use neli_proto::command::CommandEnd;
use neli_proto::time::Time;
use neli_run::guard::{Answer, CommandKind, Order};
use nix::fcntl::OFlag;
use nix::libc::{SIGKILL, SIGTERM};
use nix::unistd::pipe2;

use crate::post::{Post, await_readable, far, has_ended, left_behind, script, soon};

/// A job that runs until it is ended.
const JOB: &str = "exec sleep 600";

/// Tells its pid, and runs until it is ended.
const TELL: &str = r#"echo $$ > "$WORDS"; exec sleep 600"#;

/// Goes on once [`let_go`] was called.
const UNTIL_LET_GO: &str = r#"until [ -e "$WORDS.go" ]; do sleep 0.01; done"#;

fn let_go(post: &Post) {
    File::create(post.words.directory.path().join("words.go")).unwrap();
}

fn with_health(job: &str, line: &str) -> Post {
    Post::configured(script(job), |guard_config| guard_config.health = Some(line.into()))
}

fn check(kill_at: Time) -> Order {
    Order::Command { kind: CommandKind::Health, id: 7, kill_at }
}

fn ended(end: CommandEnd) -> Answer {
    Answer::CommandEnded { kind: CommandKind::Health, id: 7, end }
}

/// Runs the command to its end; how it ended, and what it said.
fn run(post: &Post) -> (Answer, String) {
    let (output, input) = pipe2(OFlag::O_CLOEXEC).unwrap();
    post.guard().send_with(&check(far()), Some(input)).unwrap();
    let mut text = String::new();
    File::from(output).read_to_string(&mut text).unwrap();
    (post.hear(), text)
}

fn await_end(process: &OwnedFd) {
    await_readable(process.as_fd(), "the end of a process");
}

#[test]
fn its_status_or_signal_is_told_and_it_may_run_again() {
    let post = with_health(JOB, r#"if [ -z "$1" ]; then echo one; echo two >&2; exit 3; fi"#);
    post.start(0, far());
    for _ in 0..3 {
        assert_eq!(run(&post), (ended(CommandEnd::Exited(3)), "one\ntwo\n".to_owned()));
    }
    let post = with_health(JOB, "kill -35 $$");
    post.start(0, far());
    assert_eq!(run(&post).0, ended(CommandEnd::Signaled(35)));
}

#[test]
fn it_has_the_jobs_environment_less_the_lease_and_nothing_else_open() {
    let post = Post::configured(script(JOB), |guard_config| {
        guard_config.health = Some("env; echo; cat; ls /proc/self/fd".into());
        guard_config.environment.push(("NELI_EVENT".into(), "of a hook around this one".into()));
        guard_config.environment.push(("PLAIN".into(), "kept".into()));
    });
    post.start(42, far());
    let (end, text) = run(&post);
    assert_eq!(end, ended(CommandEnd::Exited(0)));
    let (environment, descriptors) = text.split_once("\n\n").unwrap();
    let lines: Vec<&str> = environment.lines().collect();
    for line in ["NELI_EVENT=health", "NELI_WHY=", "NELI_EPOCH=42", "NELI_ATTEMPT=1", "PLAIN=kept"] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    assert!(!environment.contains("NELI_LEASE_FD") && !environment.contains("around this one"), "{lines:?}");
    // 3 is the directory that `ls` reads; of /dev/null `cat` gets nothing.
    assert_eq!(descriptors.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
}

#[test]
fn the_hook_is_another_command() {
    let mut post = Post::configured(script(JOB), |guard_config| {
        guard_config.on_lead = Some(r#"echo "$NELI_EVENT" > "$WORDS"; exit 4"#.into());
    });
    post.start(0, far());
    post.send(&Order::Command { kind: CommandKind::Lead, id: 9, kill_at: far() });
    assert_eq!(post.words.next(), "lead");
    assert_eq!(post.hear(), Answer::CommandEnded { kind: CommandKind::Lead, id: 9, end: CommandEnd::Exited(4) });
}

#[test]
fn what_takes_too_long_is_killed_with_its_group_and_the_job_is_not() {
    let mut post = with_health(JOB, &format!("trap '' TERM; sh -c '{TELL}' & {TELL}"));
    let (_, job) = post.start(0, far());
    let kill_at = soon();
    post.send(&check(kill_at));
    let processes = [post.words.next_process(), post.words.next_process()];
    assert_eq!(post.hear(), ended(CommandEnd::TimedOut));
    assert!(clock::now() >= kill_at);
    processes.iter().for_each(await_end);
    assert!(!has_ended(&job));
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    assert!(matches!(post.hear(), Answer::Exited { signal: Some(SIGKILL), left: false, .. }));
    assert_eq!(post.hear(), Answer::Gone);
}

#[test]
fn what_it_leaves_in_its_group_is_ended_with_it() {
    // It ends once the other has said who it is.
    let line = format!("sh -c '{TELL}' & {UNTIL_LET_GO}");
    let mut post = with_health(JOB, &line);
    post.start(0, far());
    post.send(&check(far()));
    let left = post.words.next_process();
    let_go(&post);
    assert_eq!(post.hear(), ended(CommandEnd::Exited(0)));
    await_end(&left);
}

#[test]
fn a_job_that_ends_is_not_kept_by_a_command() {
    let mut post = with_health(&format!("{UNTIL_LET_GO}; exit 5"), TELL);
    post.start(0, far());
    post.send(&check(far()));
    let command = post.words.next_process();
    let_go(&post);
    assert_eq!(post.hear(), Answer::Exited { code: Some(5), signal: None, left: false, foreground: false });
    assert_eq!(post.hear(), ended(CommandEnd::Abandoned));
    assert_eq!(post.hear(), Answer::Gone);
    assert!(has_ended(&command));
}

#[test]
fn what_the_job_left_is_told_from_a_command() {
    let job = format!("setsid sh -c '{TELL}' & {UNTIL_LET_GO}");
    let mut post = with_health(&job, TELL);
    post.start(0, far());
    let left = post.words.next_process();
    post.send(&check(far()));
    let command = post.words.next_process();
    let_go(&post);
    assert_eq!(post.hear(), Answer::Exited { code: Some(0), signal: None, left: true, foreground: false });
    assert_eq!(post.hear(), ended(CommandEnd::Abandoned));
    await_end(&command);
    assert!(!has_ended(&left), "it was not asked yet");
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert!(!left_behind(post.hear()).1);
    assert_eq!(post.hear(), Answer::Gone);
    assert!(has_ended(&left));
}

#[test]
fn a_command_that_gets_away_is_gone_before_the_job_is() {
    // It ends once the other has got away from its group.
    let line = format!("trap '' TERM; setsid sh -c '{TELL}' & {UNTIL_LET_GO}");
    let mut post = with_health("sleep 600", &line);
    post.start(0, far());
    post.send(&check(far()));
    let daemon = post.words.next_process();
    let_go(&post);
    assert_eq!(post.hear(), ended(CommandEnd::Exited(0)));
    assert!(!has_ended(&daemon));
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert_eq!(post.hear(), Answer::Exited { code: None, signal: Some(SIGTERM), left: true, foreground: false });
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    assert_eq!(post.hear(), Answer::Gone);
    assert!(has_ended(&daemon));
}

#[test]
fn the_deadline_ends_it_with_the_job() {
    let mut post = with_health(JOB, &format!("trap '' TERM; setsid sh -c '{TELL}' & {TELL}"));
    post.start(3, soon());
    post.send(&check(far()));
    let processes = [post.words.next_process(), post.words.next_process()];
    let mut answers = vec![post.hear(), post.hear()];
    answers.sort_by_key(|answer| matches!(answer, Answer::CommandEnded { .. }));
    assert!(matches!(answers[0], Answer::Exited { signal: Some(SIGKILL), .. }), "{answers:?}");
    assert_eq!(answers[1], ended(CommandEnd::Abandoned));
    assert!(post.hear_fenced(3).is_some());
    assert!(processes.iter().all(has_ended));
}

#[test]
fn without_a_job_none_is_started() {
    let post = with_health("exit 0", r#"echo ran > "$WORDS""#);
    post.send(&check(far()));
    assert_eq!(post.hear(), ended(CommandEnd::Abandoned));
    post.start(0, far());
    assert!(matches!(post.hear(), Answer::Exited { .. }));
    assert_eq!(post.hear(), Answer::Gone);
    post.send(&check(far()));
    assert_eq!(post.hear(), ended(CommandEnd::Abandoned));
    // A configuration without a health command.
    let post = Post::running(JOB);
    post.start(0, far());
    post.send(&check(far()));
    assert_eq!(post.hear(), ended(CommandEnd::Abandoned));
}

#[test]
fn a_dead_guard_takes_its_commands_along() {
    let mut post = with_health(JOB, TELL);
    let (_, job) = post.start(0, far());
    post.send(&check(far()));
    let command = post.words.next_process();
    post.guard().kill().unwrap();
    await_end(&command);
    await_end(&job);
}
