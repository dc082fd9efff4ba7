//! How a job is ended: asked, forced, fenced; and that nothing of it gets away.

use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use neli::clock;
use neli_proto::time::Time;
use neli_run::guard::{Answer, Order};
use nix::libc::{SIGKILL, SIGTERM};

use crate::post::{Post, await_readable, far, grant, has_ended, left_behind, soon, spawn};

/// Starts what tries everything to get away, and tells the pid of each.
const RUNAWAYS: &str = r#"
    trap '' TERM HUP
    tell='echo $$ > "$WORDS"; exec sleep 600'
    sh -c "$tell" &
    setsid sh -c "$tell" &
    setsid sh -c "setsid sh -c '$tell' & exit" &
    (setsid sh -c "$tell" &) &
    echo $$ > "$WORDS"
    while :; do sleep 600; done"#;

fn runaways(post: &mut Post) -> Vec<OwnedFd> {
    (0..5).map(|_| post.words.next_process()).collect()
}

fn killed_by(signal: i32, left: bool) -> Answer {
    Answer::Exited { code: None, signal: Some(signal), left, foreground: false }
}

fn all_ended(processes: &[OwnedFd]) -> bool {
    processes.iter().all(has_ended)
}

/// Hears the end of a job that was killed.
fn hear_killed(post: &Post, last: &Answer) {
    let Answer::Exited { code: None, signal: Some(SIGKILL), .. } = post.hear() else { panic!() };
    assert_eq!(post.hear(), *last);
}

/// The same at the deadline of term 3; tells when nothing was left.
fn hear_fenced(post: &Post) -> Time {
    let Answer::Exited { code: None, signal: Some(SIGKILL), .. } = post.hear() else { panic!() };
    post.hear_fenced(3).unwrap()
}

#[test]
fn a_job_that_is_asked_to_stop_stops() {
    let post = Post::with(vec!["sleep".into(), "600".into()]);
    post.start(0, far());
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert_eq!(post.hear(), killed_by(SIGTERM, false));
    assert_eq!(post.hear(), Answer::Gone);
}

#[test]
fn a_stop_on_the_heels_of_a_spawn_is_a_barrier() {
    let post = Post::with(vec!["sleep".into(), "600".into()]);
    post.send(&spawn(0, far()));
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert!(matches!(post.hear(), Answer::Accepted { .. }));
    assert!(matches!(post.hear(), Answer::Started { .. }));
    assert_eq!(post.hear(), killed_by(SIGTERM, false));
    assert_eq!(post.hear(), Answer::Gone);
}

#[test]
fn what_ignores_the_stop_signal_is_killed_at_the_stop_timeout() {
    let mut post = Post::running(RUNAWAYS);
    post.start(0, far());
    let processes = runaways(&mut post);
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: soon() });
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
    assert!(all_ended(&processes));
}

#[test]
fn without_a_stop_signal_nothing_is_sent_before_sigkill() {
    let mut post =
        Post::running(r#"trap 'echo asked > "$WORDS"' TERM; echo ready > "$WORDS"; while :; do sleep 600; done"#);
    post.start(0, far());
    assert_eq!(post.words.next(), "ready");
    post.send(&Order::Stop { signal: None, kill_at: clock::now() });
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
}

#[test]
fn at_the_deadline_all_of_the_tree_is_gone() {
    let mut post = Post::running(RUNAWAYS);
    let until = clock::now() + std::time::Duration::from_secs(1);
    post.start(3, until);
    let processes = runaways(&mut post);
    assert!(clock::now() < until, "too slow a machine for this test");
    assert!(!processes.iter().any(has_ended));
    let gone_at = hear_fenced(&post);
    assert!((until..clock::now()).contains(&gone_at));
    assert!(all_ended(&processes));
}

#[test]
fn a_term_that_was_fenced_runs_nothing_any_more() {
    let post = Post::with(vec!["sleep".into(), "600".into()]);
    post.start(3, soon());
    hear_fenced(&post);
    for order in [spawn(3, far()), Order::Lease(grant(3, far())), spawn(2, far())] {
        post.send(&order);
        assert!(matches!(post.hear(), Answer::Fenced { .. }), "{order:?}");
    }
    post.start(4, far());
}

#[test]
fn a_lease_without_a_job_is_fenced_too() {
    let post = Post::with(vec!["sleep".into(), "600".into()]);
    let until = soon();
    post.send(&Order::Lease(grant(3, until)));
    assert_eq!(post.hear(), Answer::Extended { until });
    assert_eq!(post.hear_fenced(3), None);
    assert!(clock::now() >= until);
}

#[test]
fn a_spawn_that_comes_too_late_starts_nothing() {
    let post = Post::running("echo started > $WORDS");
    post.send(&spawn(3, clock::now()));
    assert_eq!(post.hear_fenced(3), None);
    assert!(post.is_silent());
}

#[test]
fn an_extended_lease_outlives_its_first_deadline() {
    let mut post = Post::running("sleep 0.5; echo alive > $WORDS; exec sleep 600");
    let first = soon();
    post.start(3, first);
    let until = far();
    post.send(&Order::Lease(grant(3, until)));
    assert_eq!(post.hear(), Answer::Extended { until });
    // One that says less changes nothing.
    post.send(&Order::Lease(grant(3, first)));
    assert_eq!(post.hear(), Answer::Extended { until });
    assert_eq!(post.words.next(), "alive");
    assert!(clock::now() > first);
    assert!(post.is_silent());
}

#[test]
fn a_daemon_left_behind_counts_as_running_and_is_asked_to_stop() {
    let mut post = Post::running(
        r#"setsid perl -e 'sub say { open(W, ">", $ENV{WORDS}); print W "$_[0]\n"; close W }
                           $SIG{TERM} = sub { say("asked"); exit };
                           say("ready"); sleep 600' &
           read word < "$WORDS.go"; exit 4"#,
    );
    let go = post.words.path().with_extension("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    post.start(0, far());
    assert_eq!(post.words.next(), "ready");
    std::fs::write(go, "go\n").unwrap();
    assert_eq!(post.hear(), Answer::Exited { code: Some(4), signal: None, left: true, foreground: false });
    assert!(post.is_silent());
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert_eq!(post.words.next(), "asked");
    assert_eq!(left_behind(post.hear()), (vec!["perl".to_owned()], false));
    assert_eq!(post.hear(), Answer::Gone);
}

#[test]
fn a_job_that_kills_its_own_group_ends_itself_alone() {
    let post = Post::running("kill -KILL 0; sleep 600");
    for _ in 0..3 {
        post.start(0, far());
        assert_eq!(post.hear(), killed_by(SIGKILL, false));
        assert_eq!(post.hear(), Answer::Gone);
    }
}

#[test]
fn a_job_in_another_group_is_reached() {
    let mut post = Post::running(
        r#"exec perl -e 'setpgrp(0, getppid()) or die; open(W, ">", $ENV{WORDS}); print W "moved\n"; close W; sleep 600'"#,
    );
    post.start(0, far());
    assert_eq!(post.words.next(), "moved");
    post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
    assert_eq!(post.hear(), killed_by(SIGTERM, false));
    assert_eq!(post.hear(), Answer::Gone);
}

#[test]
fn a_tree_that_goes_on_forking_does_not_outrun_the_kill() {
    let mut post = Post::running(
        r#"echo $$ > "$WORDS"
           for lane in 1 2 3 4; do
               setsid sh -c 'for n in $(seq 100); do setsid sleep 600 & done; wait' &
           done
           wait"#,
    );
    let (_, main) = post.start(0, far());
    post.words.next();
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
    assert!(has_ended(&main));
}

#[test]
fn a_chain_of_processes_that_end_as_soon_as_they_have_started_another_is_caught() {
    let mut post = Post::running(
        r#"comet='n=$1; [ $n -gt 0 ] || exit; setsid sh -c "$comet" sh $((n - 1)) & exit'
           export comet
           echo $$ > "$WORDS"
           sh -c "$comet" sh 5000 & wait; sleep 600"#,
    );
    post.start(0, far());
    post.words.next();
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
}

#[test]
fn five_hundred_processes_are_gone_at_once() {
    let mut post =
        Post::running(r#"for n in $(seq 250); do sleep 600 & setsid sleep 600 & done; echo ready > "$WORDS"; wait"#);
    post.start(0, far());
    assert_eq!(post.words.next(), "ready");
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
}

#[test]
fn the_end_of_the_socket_is_the_end_of_the_tree_and_no_release() {
    let mut post = Post::running(RUNAWAYS);
    let (_, main) = post.start(3, far());
    let mut processes = runaways(&mut post);
    processes.push(main);
    let guard = post.guard().pid();
    post.hang_up();
    for process in &processes {
        await_readable(process.as_fd(), "the end of the tree");
    }
    // It waits for the supervisor's death, and that is us.
    assert!(!post.guard_has_ended());
    nix::sys::signal::kill(guard, nix::sys::signal::SIGKILL).unwrap();
    nix::sys::wait::waitpid(guard, None).unwrap();
}

#[test]
fn a_guard_that_holds_nothing_ends_with_its_socket() {
    let mut post = Post::with(vec!["sleep".into(), "600".into()]);
    post.start(3, far());
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    hear_killed(&post, &Answer::Gone);
    post.send(&Order::Over { term: 3 });
    post.send(&Order::Released { term: 3 });
    let guard = post.guard().pid();
    post.hang_up();
    post.await_end();
    nix::sys::wait::waitpid(guard, None).unwrap();
}

#[test]
fn when_the_guard_is_killed_the_main_process_dies_with_it() {
    let post = Post::with(vec!["sleep".into(), "600".into()]);
    let (_, main) = post.start(3, far());
    post.guard().kill().unwrap();
    await_readable(main.as_fd(), "the end of the job");
    assert!(post.guard().receive().unwrap().is_none());
}

#[test]
fn a_guard_that_was_stopped_beyond_the_deadline_fences_as_soon_as_it_goes_on() {
    let mut post = Post::running("sleep 0.5; echo late > $WORDS; exec sleep 600");
    post.start(3, soon());
    nix::sys::signal::kill(post.guard().pid(), nix::sys::signal::SIGSTOP).unwrap();
    // The job outlives the deadline: this is what the supervisor is there for.
    assert_eq!(post.words.next(), "late");
    post.send(&Order::Lease(grant(3, far())));
    post.guard().cont().unwrap();
    hear_fenced(&post);
}
