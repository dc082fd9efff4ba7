//! The end of a job: a stop signal, a kill, or a fence; no process of it escapes.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use harness::process::Process;
use neli_kafka::clock;
use neli_proto::guard::SeenEnd;
use neli_proto::job::JobStatus;
use neli_run::guard::{Answer, Order};
use nix::libc::{SIGCONT, SIGKILL, SIGTERM};

use crate::fixture::{
    ENDED, GuardFixture, KILL_MARGIN, await_readable, far_deadline, grant, has_ended, left_behind, near_deadline,
    spawn, status, tell_reader,
};

/// Starts processes that try in every way to escape, and writes the pid of each.
const RUNAWAYS: &str = r#"
    trap '' TERM HUP
    report='echo $$ > "$PIPE"; exec sleep 600'
    sh -c "$report" &
    setsid sh -c "$report" &
    setsid sh -c "setsid sh -c '$report' & exit" &
    (setsid sh -c "$report" &) &
    echo $$ > "$PIPE"
    while :; do sleep 600; done"#;

fn runaways(fixture: &mut GuardFixture) -> Vec<OwnedFd> {
    (0..5).map(|_| fixture.pipe.next_process()).collect()
}

/// A named pipe, `$PIPE.go`, from which the job reads what [`tell_reader`] writes.
fn pipe_to_read(fixture: &GuardFixture) -> PathBuf {
    let path = fixture.pipe.path().with_extension("go");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path
}

fn killed_by(signal: i32, left: bool) -> Answer {
    Answer::Exited { status: JobStatus::Signaled(signal), ended_at: ENDED, left, foreground: false }
}

fn all_ended(processes: &[OwnedFd]) -> bool {
    processes.iter().all(has_ended)
}

/// Receives the answers to a fence of term 3; returns the end of its job.
fn receive_fenced(fixture: &GuardFixture) -> SeenEnd {
    fixture.receive_main_killed();
    fixture.receive_fenced(3).unwrap()
}

#[test]
fn a_job_that_is_asked_to_stop_stops() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.start(0, far_deadline());
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(fixture.receive(), killed_by(SIGTERM, false));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn a_stop_right_after_a_spawn_ends_the_job() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.send(&spawn(0, far_deadline()));
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert!(matches!(fixture.receive(), Answer::Accepted { .. }));
    assert!(matches!(fixture.receive(), Answer::Started { .. }));
    assert_eq!(fixture.receive(), killed_by(SIGTERM, false));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn a_job_that_ignores_the_stop_signal_is_killed_at_the_stop_timeout() {
    let mut fixture = GuardFixture::running(RUNAWAYS);
    fixture.start(0, far_deadline());
    let processes = runaways(&mut fixture);
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: near_deadline() });
    assert_eq!(fixture.receive(), Answer::Killed);
    fixture.receive_job_killed();
    assert!(all_ended(&processes));
}

#[test]
fn without_a_stop_signal_nothing_is_sent_before_sigkill() {
    let mut fixture =
        GuardFixture::running(r#"trap 'echo asked > "$PIPE"' TERM; echo ready > "$PIPE"; while :; do sleep 600; done"#);
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    fixture.send(&Order::Stop { signal: None, kill_at: clock::now() });
    assert_eq!(fixture.receive(), Answer::Killed);
    fixture.receive_job_killed();
}

#[test]
fn at_the_deadline_all_of_the_tree_is_gone() {
    let mut fixture = GuardFixture::running(RUNAWAYS);
    let until = near_deadline();
    fixture.start(3, until);
    let processes = runaways(&mut fixture);
    assert!(clock::now() < until, "too slow a machine for this test");
    assert!(!processes.iter().any(has_ended));
    let end = receive_fenced(&fixture);
    assert!((until..clock::now()).contains(&end.gone_at));
    assert!(all_ended(&processes));
}

#[test]
fn a_term_that_was_fenced_starts_no_job_any_more() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.start(3, near_deadline());
    receive_fenced(&fixture);
    for order in [spawn(3, far_deadline()), Order::Lease(grant(3, far_deadline())), spawn(2, far_deadline())] {
        fixture.send(&order);
        assert!(matches!(fixture.receive(), Answer::Fenced { .. }), "{order:?}");
    }
    fixture.start(4, far_deadline());
}

#[test]
fn a_lease_without_a_job_is_fenced_too() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    let until = near_deadline();
    fixture.send(&Order::Lease(grant(3, until)));
    assert_eq!(fixture.receive(), Answer::Extended { until });
    assert_eq!(fixture.receive_fenced(3), None);
    assert!(clock::now() >= until);
}

#[test]
fn a_spawn_that_comes_too_late_starts_no_job() {
    let fixture = GuardFixture::running("echo started > $PIPE");
    fixture.send(&spawn(3, clock::now()));
    assert_eq!(fixture.receive_fenced(3), None);
    assert!(fixture.has_no_answer());
}

#[test]
fn an_extended_lease_outlives_its_first_deadline() {
    let mut fixture = GuardFixture::running("read word < $PIPE.go; echo alive > $PIPE; exec sleep 600");
    let go = pipe_to_read(&fixture);
    let first = near_deadline();
    fixture.start(3, first);
    let until = far_deadline();
    fixture.send(&Order::Lease(grant(3, until)));
    assert_eq!(fixture.receive(), Answer::Extended { until });
    // An earlier deadline has no effect.
    fixture.send(&Order::Lease(grant(3, first)));
    assert_eq!(fixture.receive(), Answer::Extended { until });
    harness::wait::until_true("the first deadline", || clock::now() > first);
    tell_reader(&go);
    assert_eq!(fixture.pipe.next_line(), "alive");
    assert!(fixture.has_no_answer());
}

#[test]
fn a_daemon_left_behind_counts_as_running_and_is_asked_to_stop() {
    let mut fixture = GuardFixture::running(
        r#"setsid perl -e 'sub say { open(W, ">", $ENV{PIPE}); print W "$_[0]\n"; close W }
                           $SIG{TERM} = sub { say("asked"); exit };
                           say("ready"); sleep 600' &
           read word < "$PIPE.go"; exit 4"#,
    );
    let go = pipe_to_read(&fixture);
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    tell_reader(&go);
    assert_eq!(
        fixture.receive(),
        Answer::Exited { status: JobStatus::Exited(4), ended_at: ENDED, left: true, foreground: false }
    );
    assert!(fixture.has_no_answer());
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(fixture.pipe.next_line(), "asked");
    assert_eq!(left_behind(fixture.receive()), (vec!["perl".to_owned()], false));
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn a_job_that_kills_its_own_group_does_not_kill_the_guard() {
    let fixture = GuardFixture::running("kill -KILL 0; sleep 600");
    for _ in 0..3 {
        fixture.start(0, far_deadline());
        assert_eq!(fixture.receive(), killed_by(SIGKILL, false));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
}

#[test]
fn a_job_in_another_group_is_reached() {
    let mut fixture = GuardFixture::running(
        r#"exec perl -e 'setpgrp(0, getppid()) or die; open(W, ">", $ENV{PIPE}); print W "moved\n"; close W; sleep 600'"#,
    );
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "moved");
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(fixture.receive(), killed_by(SIGTERM, false));
    assert_eq!(fixture.receive(), Answer::Gone);
}

/// The signal to its old group succeeds, and does not reach it.
#[test]
fn a_job_in_another_group_is_reached_although_a_child_is_left_in_its_own() {
    let mut fixture = GuardFixture::running(
        r#"exec perl -e '$SIG{TERM} = "IGNORE"; unless (fork) { sleep 600; exit } $SIG{TERM} = "DEFAULT";
           setpgrp(0, getppid()) or die; open(P, ">", $ENV{PIPE}); print P "moved\n"; close P; sleep 600'"#,
    );
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "moved");
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    assert_eq!(fixture.receive(), killed_by(SIGTERM, true));
    fixture.send(&Order::Kill);
    assert_eq!(fixture.receive(), Answer::Killed);
    assert_eq!(fixture.receive(), Answer::Gone);
}

#[test]
fn a_tree_that_keeps_forking_is_killed() {
    let mut fixture = GuardFixture::running(
        r#"echo $$ > "$PIPE"
           for lane in 1 2 3 4; do
               setsid sh -c 'for n in $(seq 100); do setsid sleep 600 & done; wait' &
           done
           wait"#,
    );
    let (_, main) = fixture.start(0, far_deadline());
    fixture.pipe.next_line();
    fixture.kill_job();
    assert!(has_ended(&main));
}

#[test]
fn a_chain_of_processes_that_each_start_another_and_end_is_killed() {
    let mut fixture = GuardFixture::running(
        r#"link='n=$1; [ $n -gt 0 ] || exit; setsid sh -c "$link" sh $((n - 1)) & exit'
           export link
           echo $$ > "$PIPE"
           sh -c "$link" sh 5000 & wait; sleep 600"#,
    );
    fixture.start(0, far_deadline());
    fixture.pipe.next_line();
    fixture.kill_job();
}

#[test]
fn five_hundred_processes_are_all_killed() {
    let mut fixture = GuardFixture::running(
        r#"for n in $(seq 250); do sleep 600 & setsid sleep 600 & done; echo ready > "$PIPE"; wait"#,
    );
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    fixture.kill_job();
}

/// The guard waits for some of the children in one turn, and no further signal announces the rest.
#[test]
fn two_hundred_that_ended_while_the_guard_was_stopped_are_all_waited_for() {
    let mut fixture = GuardFixture::running(r#"for n in $(seq 200); do sleep 600 & done; echo ready > "$PIPE"; wait"#);
    let (job, _) = fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    let guard = fixture.handle().pid();
    nix::sys::signal::kill(guard, nix::sys::signal::SIGSTOP).unwrap();
    nix::sys::signal::killpg(job, nix::sys::signal::SIGKILL).unwrap();
    harness::wait::until_true("all to have ended", || {
        let listed = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap();
        let children: Vec<i32> = listed.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        let has_ended = |pid: &i32| status(nix::unistd::Pid::from_raw(*pid), "State").starts_with('Z');
        children.len() > 200 && children.iter().all(has_ended)
    });
    nix::sys::signal::kill(guard, nix::sys::signal::SIGCONT).unwrap();
    fixture.receive_job_killed();
}

#[test]
fn the_end_of_the_socket_is_the_end_of_the_tree_and_no_release() {
    let mut fixture = GuardFixture::running(RUNAWAYS);
    let (_, main) = fixture.start(3, far_deadline());
    let mut processes = runaways(&mut fixture);
    processes.push(main);
    let guard = fixture.handle().pid();
    fixture.close();
    for process in &processes {
        await_readable(process.as_fd(), "the end of the tree");
    }
    // The guard waits for the death of its supervisor, which is this process.
    assert!(!fixture.guard_has_ended());
    nix::sys::signal::kill(guard, nix::sys::signal::SIGKILL).unwrap();
    nix::sys::wait::waitpid(guard, None).unwrap();
}

#[test]
fn a_guard_without_a_job_ends_with_its_socket() {
    let mut fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.start(3, far_deadline());
    fixture.kill_job();
    fixture.send(&Order::Over { term: 3 });
    fixture.send(&Order::Released { term: 3 });
    let guard = fixture.handle().pid();
    fixture.close();
    fixture.await_end();
    nix::sys::wait::waitpid(guard, None).unwrap();
}

#[test]
fn when_the_guard_is_killed_the_main_process_dies_with_it() {
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    let (_, main) = fixture.start(3, far_deadline());
    fixture.handle().signal(SIGKILL).unwrap();
    await_readable(main.as_fd(), "the end of the job");
    // The job dies with the guard's first thread; the guard's socket is closed with the last.
    await_readable(fixture.handle().as_fd(), "the end of the socket");
    assert!(fixture.handle().receive().unwrap().is_none());
}

#[test]
fn a_guard_that_was_stopped_until_after_the_deadline_fences_when_it_continues() {
    let mut fixture = GuardFixture::running("read word < $PIPE.go; echo late > $PIPE; exec sleep 600");
    let go = pipe_to_read(&fixture);
    let until = near_deadline();
    fixture.start(3, until);
    nix::sys::signal::kill(fixture.handle().pid(), nix::sys::signal::SIGSTOP).unwrap();
    harness::wait::until_true("the lease's end", || clock::now() > until + KILL_MARGIN);
    tell_reader(&go);
    // The job outlives the deadline, because it is the supervisor's task to kill a guard that does not answer.
    assert_eq!(fixture.pipe.next_line(), "late");
    fixture.send(&Order::Lease(grant(3, far_deadline())));
    fixture.handle().signal(SIGCONT).unwrap();
    assert!(receive_fenced(&fixture).overrun(until + KILL_MARGIN).is_some());
}

/// The second thread may go on first, and kill what is left: then the first one sees no process alive.
#[test]
fn a_job_outlived_the_lease_if_only_the_second_thread_of_a_stopped_guard_saw_it_alive() {
    let mut fixture = GuardFixture::running("echo $$ > $PIPE; exec sleep 600");
    let until = near_deadline();
    fixture.start(3, until);
    let job = fixture.pipe.next_process();
    let hold = Process::find(fixture.handle().pid().as_raw()).unwrap().hold();
    nix::sys::signal::kill(fixture.handle().pid(), nix::sys::signal::SIGSTOP).unwrap();
    harness::wait::until_true("the lease's end", || clock::now() > until + KILL_MARGIN);
    fixture.handle().signal(SIGCONT).unwrap();
    await_readable(job.as_fd(), "the job's end");
    drop(hold);
    assert!(receive_fenced(&fixture).overrun(until + KILL_MARGIN).is_some());
}

/// A chain of sessions, each of which has started the next one: each death gives the guard another child. It takes long to wait for all, and
/// nothing but that they were seen alive would show that they have outlived the lease.
#[test]
fn processes_that_ended_in_time_have_not_outlived_the_lease_however_late_their_ends_are_noticed() {
    let mut fixture = GuardFixture::running(
        r#"link='[ $1 -gt 0 ] || { echo ready > "$PIPE"; exec sleep 600; }; setsid sh -c "$link" sh $(($1 - 1)) & wait'
           export link
           sh -c "$link" sh 200 & exec sleep 600"#,
    );
    let mut until = near_deadline();
    fixture.start(3, until);
    while fixture.pipe.next_line_before(until - Duration::from_secs(1)).is_none() {
        fixture.renew(3, &mut until);
    }
    nix::sys::signal::kill(fixture.handle().pid(), nix::sys::signal::SIGSTOP).unwrap();
    harness::wait::until_true("all to have ended", || {
        let alive = fixture.processes_of_jobs();
        for process in &alive {
            process.signal(nix::sys::signal::SIGKILL);
        }
        alive.is_empty()
    });
    harness::wait::until_true("the lease's end", || clock::now() > until + KILL_MARGIN);
    fixture.handle().signal(SIGCONT).unwrap();
    assert!(receive_fenced(&fixture).overrun(until + KILL_MARGIN).is_none());
}
