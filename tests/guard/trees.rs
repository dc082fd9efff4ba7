//! Trees that try to live on: each is killed as the walk finds it, and once more with a control group.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};

use harness::process::Process;
use neli_run::guard::{Answer, Order};
use neli_run::process::cgroup::Cgroup;
use nix::libc::{SIGKILL, SIGTERM};

use crate::groups::made;
use crate::post::{PROGRAM, Post, alone, await_readable, far, has_ended, left_behind, process_of, script};

/// A post without a group, and one with, where it can be made.
fn posts(text: &str) -> Vec<(Post, Option<Cgroup>)> {
    let grouped = made().map(|group| {
        let number = group.as_fd().as_raw_fd();
        (Post::configured(script(text), |guard_config| guard_config.cgroup = Some(number)), Some(group))
    });
    [Some((Post::running(text), None)), grouped].into_iter().flatten().collect()
}

/// The processes that have the post's environment, whatever their parents.
fn alive(post: &Post) -> Vec<Process> {
    Process::with_variable("WORDS", &post.words.path())
}

fn kill_and_hear(post: &Post) {
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    let Answer::Exited { signal: Some(SIGKILL), .. } = post.hear() else { panic!() };
    assert_eq!(post.hear(), Answer::Gone);
    assert_eq!(alive(post), []);
}

/// 2,047 processes at most: each makes two, eleven generations long, and all of them are busy doing so.
#[test]
fn a_fork_bomb_is_gone_in_the_middle_of_it() {
    let bomb = r#"
        b() { [ "$1" -gt 0 ] || exec sleep 600; b $(($1 - 1)) & b $(($1 - 1)) & wait; }
        echo lit > "$WORDS"
        b 10"#;
    let _alone = alone();
    for (mut post, _group) in posts(bomb) {
        for _ in 0..3 {
            post.start(0, far());
            assert_eq!(post.words.next(), "lit");
            kill_and_hear(&post);
        }
    }
}

/// KiB of private memory in files that are mapped to be read alone: what the dynamic linker wrote before it protected them.
fn linked_tables(process: Process) -> u64 {
    let mut reads_alone = false;
    let mut tables = 0;
    for line in fs::read_to_string(format!("/proc/{}/smaps", process.pid)).unwrap().lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["Private_Dirty:", kib, ..] if reads_alone => tables += kib.parse::<u64>().unwrap(),
            [range, rights, ..] if !range.ends_with(':') => reads_alone = rights == "r--p" && words.len() > 5,
            _ => {}
        }
    }
    tables
}

#[test]
fn a_fork_bomb_is_gone_when_it_has_gone_off() {
    let bomb = r#"
        b() { if [ "$1" -eq 0 ]; then echo > "$WORDS"; exec setsid sleep 600; fi; b $(($1 - 1)) & b $(($1 - 1)) & wait; }
        b 10"#;
    let _alone = alone();
    for (mut post, _group) in posts(bomb) {
        post.start(0, far());
        for _ in 0..1024 {
            post.words.next();
        }
        kill_and_hear(&post);
        let guard = Process::find(post.guard().pid().as_raw()).unwrap();
        // What is clean is the program's file, which a supervisor beside it shares; one that was built just now is not clean yet.
        File::open(PROGRAM).unwrap().sync_all().unwrap();
        let whole = guard.kib("smaps_rollup", "Private_Dirty:").unwrap();
        // Tables of pointers that the dynamic linker has filled in, of this program and of OpenSSL, depend on the build, and not
        // on what the guard does: some 900 KiB without optimization.
        let tables = linked_tables(guard);
        let own = whole - tables;
        assert!(own < 544, "{own} KiB of private memory besides {tables} KiB of tables");
    }
}

#[test]
fn what_is_stopped_is_asked_and_goes_on_to_answer() {
    let text = r#"
        perl -e 'sub say { open(W, ">", $ENV{WORDS}); print W "$_[0]\n"; close W }
                 $SIG{TERM} = sub { say("asked"); exit };
                 say("ready"); kill "STOP", $$; sleep 600' &
        wait; wait"#;
    for (mut post, _group) in posts(text) {
        post.start(0, far());
        assert_eq!(post.words.next(), "ready");
        post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
        assert_eq!(post.words.next(), "asked");
        assert!(matches!(post.hear(), Answer::Exited { signal: Some(SIGTERM), .. }));
        assert_eq!(post.hear(), Answer::Gone);
    }
}

#[test]
fn what_is_stopped_is_killed() {
    let text = r#"
        trap '' TERM CONT
        tell='echo $$ > "$WORDS"; kill -STOP $$; sleep 600'
        sh -c "$tell" & setsid sh -c "$tell" & (setsid sh -c "$tell" &)
        echo $$ > "$WORDS"; kill -STOP $$; sleep 600"#;
    for (mut post, _group) in posts(text) {
        post.start(0, far());
        let pids: Vec<i32> = (0..4).map(|_| post.words.next().parse().unwrap()).collect();
        for pid in &pids {
            let process = Process::find(*pid).unwrap();
            harness::wait::until_true("a stopped process", || process.is_stopped());
        }
        assert!(matches!(post.hear(), Answer::Stopped { .. }));
        kill_and_hear(&post);
    }
}

#[test]
fn a_job_that_execs_is_the_same_job() {
    let text =
        r#"sleep 600 & exec sh -c 'exec perl -e '\''open(W, ">", $ENV{WORDS}); print W "$$\n"; close W; sleep 600'\'"#;
    for (mut post, _group) in posts(text) {
        let (main, _) = post.start(0, far());
        assert_eq!(post.words.next(), main.to_string());
        post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
        assert!(matches!(post.hear(), Answer::Exited { signal: Some(SIGTERM), .. }));
        assert_eq!(post.hear(), Answer::Gone);
        assert_eq!(alive(&post), []);
    }
}

/// Whoever traces a process is told of its end first, and keeps it from its parent: nothing is gone until then.
#[test]
fn a_child_that_a_stranger_traces_is_killed_and_not_taken_for_gone() {
    let text = r#"sh -c 'echo $$ > "$WORDS"; exec sleep 600' & wait"#;
    for (mut post, _group) in posts(text) {
        post.start(0, far());
        let pid = post.words.next().parse().unwrap();
        let (child, process) = (Process::find(pid).unwrap(), process_of(pid));
        let hold = child.hold();
        post.send(&Order::Kill);
        assert_eq!(post.hear(), Answer::Killed);
        let Answer::Exited { signal: Some(SIGKILL), left: true, .. } = post.hear() else { panic!() };
        harness::wait::until_true("a traced process that is dead", || !child.lives());
        assert!(post.is_silent());
        drop(hold);
        assert_eq!(post.hear(), Answer::Gone);
        assert!(has_ended(&process));
    }
}

#[test]
fn a_child_that_a_stranger_traces_for_long_is_named() {
    let text = r#"sh -c 'echo $$ > "$WORDS"; exec sleep 600' & wait"#;
    let mut post =
        Post::configured(script(text), |guard_config| guard_config.lease = std::time::Duration::from_millis(300));
    post.start(0, far());
    let pid = post.words.next().parse().unwrap();
    let hold = Process::find(pid).unwrap().hold();
    post.send(&Order::Kill);
    assert_eq!(post.hear(), Answer::Killed);
    let Answer::Exited { signal: Some(SIGKILL), .. } = post.hear() else { panic!() };
    assert_eq!(post.hear(), Answer::Stuck { pids: vec![pid] });
    drop(hold);
    assert_eq!(post.hear(), Answer::Gone);
}

/// Who was asked as one of the job's group is not asked again when the main process has ended: to many a program a second
/// signal means to end at once.
#[test]
fn what_is_left_behind_is_asked_once() {
    let text = r#"
        gentle='sub say { open(W, ">", $ENV{WORDS}); print W "$_[0]
"; close W }
                $SIG{TERM} = sub { say($ARGV[0]) }; $SIG{USR1} = sub { say("$ARGV[0] ends"); exit };
                say("ready"); sleep 600 while 1'
        perl -e "$gentle" group & setsid perl -e "$gentle" session &
        wait; wait"#;
    for (mut post, _group) in posts(text) {
        post.start(0, far());
        assert_eq!([post.words.next(), post.words.next()], ["ready", "ready"]);
        let stop = |signal| Order::Stop { signal: Some(signal), kill_at: far() };
        post.send(&stop(SIGTERM));
        assert_eq!(post.words.next(), "group");
        assert!(matches!(post.hear(), Answer::Exited { signal: Some(SIGTERM), left: true, .. }));
        post.send(&stop(SIGTERM));
        assert_eq!(post.words.next(), "session");
        assert_eq!(left_behind(post.hear()), (vec!["perl".to_owned()], false));
        let left = alive(&post);
        assert_eq!(left.len(), 2);
        // Whatever came before has been said by now.
        for process in left {
            process.signal(nix::sys::signal::Signal::SIGUSR1);
        }
        let mut words = [post.words.next(), post.words.next()];
        words.sort();
        assert_eq!(words, ["group ends", "session ends"]);
        assert_eq!(post.hear(), Answer::Gone);
    }
}

/// What the main process leaves is asked one by one, wherever it is, stopped or not, and then killed.
#[test]
fn what_is_left_behind_is_asked_one_by_one_and_killed_in_the_end() {
    let text = r#"
        gentle='sub say { open(W, ">", $ENV{WORDS}); print W "$_[0]\n"; close W }
                $SIG{TERM} = sub { say("asked"); exit }; say("ready"); kill "STOP", $$ if @ARGV; sleep 600'
        perl -e "$gentle" & setsid perl -e "$gentle" & (setsid perl -e "$gentle" stopped &)
        setsid sh -c 'trap "" TERM; echo $$ > "$WORDS"; while :; do sleep 600; done' &
        read word < "$WORDS.go"; exit 4"#;
    for (mut post, _group) in posts(text) {
        let go = post.words.path().with_extension("go");
        nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
        post.start(0, far());
        let words: Vec<String> = (0..4).map(|_| post.words.next()).collect();
        let stubborn = words.iter().find_map(|word| word.parse().ok()).unwrap();
        let sleeps = |process: &Process| process.name().as_deref() == Some("sleep");
        harness::wait::until_true("what it starts after it has said so", || alive(&post).iter().any(sleeps));
        fs::write(go, "go\n").unwrap();
        assert_eq!(post.hear(), Answer::Exited { code: Some(4), signal: None, left: true, foreground: false });
        post.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far() });
        for _ in 0..3 {
            assert_eq!(post.words.next(), "asked");
        }
        assert_eq!(
            left_behind(post.hear()),
            (["perl", "perl", "perl", "sh", "sleep"].map(str::to_owned).to_vec(), false)
        );
        assert!(Process::find(stubborn).is_some());
        assert!(post.is_silent());
        let process = process_of(stubborn);
        // With nothing to be asked: it is killed.
        post.send(&Order::Stop { signal: None, kill_at: neli::clock::now() });
        assert_eq!(post.hear(), Answer::Killed);
        let (names, killed) = left_behind(post.hear());
        assert!(killed && names.contains(&"sh".to_owned()), "{names:?}");
        assert_eq!(post.hear(), Answer::Gone);
        await_readable(process.as_fd(), "its end");
        assert_eq!(alive(&post), []);
    }
}
