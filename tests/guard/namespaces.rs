//! A job that leaves a process in a PID namespace that exists beside it. When that process's parent ends, the kernel gives it to the first
//! process of that namespace, and not to the guard.

use std::os::fd::OwnedFd;
use std::time::Duration;

use harness::not_tested;
use harness::pid_namespace::PidNamespace;
use harness::process::Process;
use harness::wait;
use neli_proto::job::JobStatus;
use neli_proto::time::Time;
use neli_run::guard::{Answer, Order};
use nix::libc::{SIGKILL, SIGTERM};

use crate::fixture::{ENDED, GuardFixture, far_deadline, has_ended, left_behind, near_deadline, process_of};

/// A job with a process that is another's child now.
struct Escaped {
    fixture: GuardFixture,
    process: OwnedFd,
    namespace: PidNamespace,
    /// The end of the lease.
    until: Time,
}

impl Escaped {
    /// `prepare` is what the process does first, as a command of the shell.
    fn start(prepare: &str, mut until: Time) -> Option<Self> {
        let Some(namespace) = PidNamespace::new(&[]) else {
            not_tested("no user namespace can be made here");
            return None;
        };
        let enter = namespace.enter();
        let text = format!(
            r#"{enter} sh -c '(setsid sh -c "{prepare}; exec sleep 600") &'
               echo left > "$PIPE"; exec sleep 600"#
        );
        let mut fixture = GuardFixture::running(&text);
        let (main, _) = fixture.start(0, until);
        while fixture.pipe.next_line_before(until - Duration::from_secs(1)).is_none() {
            fixture.renew(0, &mut until);
        }
        let others = || fixture.processes_of_jobs().into_iter().filter(|process| process.pid != main.as_raw());
        let escaped = wait::until("a process that has executed", || {
            fixture.renew(0, &mut until);
            others().find(|process| process.name().as_deref() == Some("sleep"))
        });
        let parent = escaped.parent().and_then(Process::find).and_then(Process::name);
        assert_eq!(parent.as_deref(), Some("sh"), "the first process of the namespace");
        assert_ne!(escaped.parent(), Some(main.as_raw()));
        let process = process_of(escaped.pid);
        Some(Self { fixture, process, namespace, until })
    }
}

#[test]
fn it_is_named_and_killed_before_the_job_is_gone() {
    let Some(Escaped { fixture, process, namespace: _namespace, .. }) = Escaped::start("true", far_deadline()) else {
        return;
    };
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    let exited =
        Answer::Exited { status: JobStatus::Signaled(SIGTERM), ended_at: ENDED, left: false, foreground: false };
    assert_eq!(fixture.receive(), exited);
    assert_eq!(left_behind(fixture.receive()), (vec!["sleep".to_owned()], true));
    assert_eq!(fixture.receive(), Answer::Gone);
    assert!(has_ended(&process));
    assert_eq!(fixture.processes_of_jobs(), []);
}

/// Neither its environment nor its session shows whose process it is.
#[test]
fn without_the_job_s_environment_it_is_killed_all_the_same() {
    let scrub = "exec env -i PIPE=$PIPE sleep 600";
    let Some(Escaped { fixture, process, namespace: _namespace, .. }) = Escaped::start(scrub, far_deadline()) else {
        return;
    };
    fixture.kill_job();
    assert!(has_ended(&process));
}

#[test]
fn it_is_killed_at_the_deadline() {
    let Some(Escaped { fixture, process, namespace: _namespace, until }) = Escaped::start("true", near_deadline())
    else {
        return;
    };
    fixture.receive_main_killed();
    let end = fixture.receive_fenced(0);
    assert!(end.is_some_and(|end| end.gone_at >= until));
    assert!(has_ended(&process));
}

#[test]
fn it_is_killed_when_the_supervisor_s_end_closes() {
    let Some(Escaped { mut fixture, process, namespace: _namespace, .. }) = Escaped::start("true", far_deadline())
    else {
        return;
    };
    fixture.send(&Order::Released { term: 0 });
    fixture.close();
    fixture.await_end();
    assert!(has_ended(&process));
}

/// A stranger in the same namespace, which has neither the mark nor a parent in the job, lives on.
#[test]
fn others_in_that_namespace_are_spared() {
    let Some(escaped) = Escaped::start("true", far_deadline()) else { return };
    let enter = escaped.namespace.enter();
    let words: Vec<&str> = enter.split(' ').chain(["sleep", "600"]).collect();
    let mut stranger = std::process::Command::new(words[0]).args(&words[1..]).spawn().unwrap();
    let of_nsenter = Process::child(stranger.id());
    let below = wait::until("a stranger", || of_nsenter.children().first().copied());
    escaped.fixture.kill_job();
    assert!(has_ended(&escaped.process) && below.lives());
    below.signal(nix::sys::signal::Signal::SIGKILL);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&stranger.wait().unwrap()), Some(SIGKILL));
}
