//! Jobs whose processes try to escape: the guard finds and kills each of them by walking the tree, and in a second run by a control group.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use harness::process::Process;
use harness::{program, wait};
use neli_kafka::clock;
use neli_proto::job::JobStatus;
use neli_run::guard::{Answer, Order};
use neli_run::process::cgroup::Cgroup;
use nix::libc::{SIGTERM, SYS_prctl, SYS_wait4, SYS_waitid, c_long};
use nix::unistd::Pid;

use crate::fixture::{
    ENDED, GuardFixture, LinePipe, PROGRAM, await_readable, exclusive, far_deadline, guard_config, has_ended,
    left_behind, near_deadline, process_of, script, tell_reader,
};
use crate::groups::made;
use crate::memory::PrivateMemory;

/// A guard without a control group, and one with, if it can be created.
fn fixtures(text: &str) -> Vec<(GuardFixture, Option<Cgroup>)> {
    let grouped = made().map(|group| {
        let number = group.as_fd().as_raw_fd();
        (GuardFixture::configured(script(text), |guard_config| guard_config.cgroup = Some(number)), Some(group))
    });
    [Some((GuardFixture::running(text), None)), grouped].into_iter().flatten().collect()
}

/// At most 2,047 processes: each forks two, for eleven generations, and all are busy with that.
#[test]
fn a_fork_bomb_is_gone_in_the_middle_of_it() {
    let bomb = r#"
        b() { [ "$1" -gt 0 ] || exec sleep 600; b $(($1 - 1)) & b $(($1 - 1)) & wait; }
        echo started > "$PIPE"
        b 10"#;
    let _exclusive = exclusive();
    for (mut fixture, _group) in fixtures(bomb) {
        for _ in 0..3 {
            fixture.start(0, far_deadline());
            assert_eq!(fixture.pipe.next_line(), "started");
            fixture.kill_job();
        }
    }
}

#[test]
fn a_fork_bomb_is_gone_after_it_has_started_all() {
    let bomb = r#"
        b() { if [ "$1" -eq 0 ]; then echo > "$PIPE"; exec setsid sleep 600; fi; b $(($1 - 1)) & b $(($1 - 1)) & wait; }
        b 10"#;
    let _exclusive = exclusive();
    for (mut fixture, _group) in fixtures(bomb) {
        fixture.start(0, far_deadline());
        for _ in 0..1024 {
            fixture.pipe.next_line();
        }
        fixture.kill_job();
        let guard = Process::find(fixture.handle().pid().as_raw()).unwrap();
        let memory = PrivateMemory::of(guard);
        assert!(memory.dirty < 544, "{memory:?}");
    }
}

#[test]
fn a_stopped_process_gets_the_signal_and_is_continued() {
    let text = r#"
        perl -e 'sub say { open(W, ">", $ENV{PIPE}); print W "$_[0]\n"; close W }
                 $SIG{TERM} = sub { say("asked"); exit };
                 say($$); kill "STOP", $$; sleep 600' &
        wait; wait"#;
    for (mut fixture, _group) in fixtures(text) {
        fixture.start(0, far_deadline());
        // If it got the signal before it has stopped itself, it would stop after that and stay stopped.
        let process = Process::find(fixture.pipe.next_line().parse().unwrap()).unwrap();
        wait::until_true("a stopped process", || process.is_stopped());
        fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
        assert_eq!(fixture.pipe.next_line(), "asked");
        assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGTERM), .. }));
        assert_eq!(fixture.receive(), Answer::Gone);
    }
}

#[test]
fn a_stopped_process_is_killed() {
    let text = r#"
        trap '' TERM CONT
        report='echo $$ > "$PIPE"; kill -STOP $$; sleep 600'
        sh -c "$report" & setsid sh -c "$report" & (setsid sh -c "$report" &)
        echo $$ > "$PIPE"; kill -STOP $$; sleep 600"#;
    for (mut fixture, _group) in fixtures(text) {
        fixture.start(0, far_deadline());
        let pids: Vec<i32> = (0..4).map(|_| fixture.pipe.next_line().parse().unwrap()).collect();
        for pid in &pids {
            let process = Process::find(*pid).unwrap();
            wait::until_true("a stopped process", || process.is_stopped());
        }
        assert!(matches!(fixture.receive(), Answer::Stopped { .. }));
        fixture.kill_job();
    }
}

#[test]
fn a_job_that_execs_is_the_same_job() {
    let text =
        r#"sleep 600 & exec sh -c 'exec perl -e '\''open(W, ">", $ENV{PIPE}); print W "$$\n"; close W; sleep 600'\'"#;
    for (mut fixture, _group) in fixtures(text) {
        let (main, _) = fixture.start(0, far_deadline());
        assert_eq!(fixture.pipe.next_line(), main.to_string());
        fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
        assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGTERM), .. }));
        assert_eq!(fixture.receive(), Answer::Gone);
        assert_eq!(fixture.processes_of_jobs(), []);
    }
}

/// The kernel reports a process's end to its tracer first, and before that the parent can't wait for the process. But it is dead.
#[test]
fn a_child_that_another_process_traces_is_killed_and_counts_as_gone() {
    let text = r#"sh -c 'echo $$ > "$PIPE"; exec sleep 600' & wait"#;
    for (mut fixture, _group) in fixtures(text) {
        for term in 0..2 {
            fixture.start(term, far_deadline());
            let pid = fixture.pipe.next_line().parse().unwrap();
            let (child, process) = (Process::find(pid).unwrap(), process_of(pid));
            let hold = child.hold();
            fixture.send(&Order::Kill);
            assert_eq!(fixture.receive(), Answer::Killed);
            fixture.receive_main_killed();
            assert_eq!(fixture.receive(), Answer::Gone);
            assert!(has_ended(&process));
            drop(hold);
        }
    }
}

/// Its tracer does not wait for it, so the kernel reports the end of the main process to no other.
#[test]
fn the_end_of_a_main_process_that_another_process_traces_is_noticed() {
    for (text, status) in
        [("read a < $PIPE; exit 7", JobStatus::Exited(7)), ("read a < $PIPE; kill -9 $$", JobStatus::Signaled(9))]
    {
        for (fixture, _group) in fixtures(text) {
            let (main, _) = fixture.start(0, far_deadline());
            let tracer = Process::find(main.as_raw()).unwrap().trace();
            tell_reader(&fixture.pipe.path());
            assert_eq!(fixture.receive(), Answer::Exited { status, ended_at: ENDED, left: false, foreground: false });
            assert_eq!(fixture.receive(), Answer::Gone);
            // While the dead process is still there, the next run ends as usual.
            fixture.start(1, far_deadline());
            fixture.kill_job();
            drop(tracer);
        }
    }
}

/// A sandbox that denies wait4 and waitid. The kernel shows nevertheless that processes have ended.
#[test]
fn a_guard_that_may_not_wait_notices_the_ends_and_ends_itself() {
    for denied in [&[SYS_wait4][..], &[SYS_waitid], &[SYS_wait4, SYS_waitid]] {
        let pipe = LinePipe::new();
        let text = r#"setsid sleep 600 & read a < "$PIPE"; exit 7"#;
        let program = deny(pipe.directory.path(), denied);
        let mut fixture = GuardFixture::guarded_by(&program, &guard_config(script(text), &pipe.path()), pipe);
        fixture.start(0, far_deadline());
        tell_reader(&fixture.pipe.path());
        let answer = fixture.receive();
        assert_eq!(
            answer,
            Answer::Exited { status: JobStatus::Exited(7), ended_at: ENDED, left: true, foreground: false }
        );
        fixture.send(&Order::Kill);
        assert_eq!(fixture.receive(), Answer::Killed);
        assert_eq!(fixture.receive(), Answer::Gone);
        assert_eq!(fixture.processes_of_jobs(), []);
        fixture.send(&Order::Released { term: 0 });
        fixture.close();
        fixture.await_end();
    }
}

/// A program that executes `neli-run` after it has denied itself these system calls.
fn deny(directory: &Path, calls: &[c_long]) -> PathBuf {
    let path = directory.join("sandboxed");
    let calls: Vec<String> = calls.iter().map(c_long::to_string).collect();
    // A filter in classic BPF: load the call's number; for each call that is denied, return EPERM; otherwise allow.
    let text = format!(
        r#"#!/usr/bin/perl
        my $filter = pack("SCCL", 0x20, 0, 0, 0);
        for my $call ({}) {{ $filter .= pack("SCCL", 0x15, 0, 1, $call) . pack("SCCL", 0x06, 0, 0, 0x00050001); }}
        $filter .= pack("SCCL", 0x06, 0, 0, 0x7fff0000);
        my $program = pack("Sx6P", length($filter) / 8, $filter);
        syscall({SYS_prctl}, 38, 1, 0, 0, 0) == 0 && syscall({SYS_prctl}, 22, 2, $program) == 0 or die "seccomp: $!";
        exec {{ "{PROGRAM}" }} "neli-run", @ARGV;"#,
        calls.join(", ")
    );
    program::write(&path, &text);
    path
}

/// A process that got the stop signal with the job's group does not get it again when the main process has ended: many programs end at
/// once on a second signal.
#[test]
fn remaining_processes_get_the_stop_signal_once() {
    let text = r#"
        handler='sub say { open(W, ">", $ENV{PIPE}); print W "$_[0]
"; close W }
                $SIG{TERM} = sub { say($ARGV[0]) }; $SIG{USR1} = sub { say("$ARGV[0] ends"); exit };
                say("ready"); sleep 600 while 1'
        perl -e "$handler" group & setsid perl -e "$handler" session &
        wait; wait"#;
    for (mut fixture, _group) in fixtures(text) {
        fixture.start(0, far_deadline());
        assert_eq!([fixture.pipe.next_line(), fixture.pipe.next_line()], ["ready", "ready"]);
        let stop = |signal| Order::Stop { signal: Some(signal), kill_at: far_deadline() };
        fixture.send(&stop(SIGTERM));
        assert_eq!(fixture.pipe.next_line(), "group");
        assert!(matches!(fixture.receive(), Answer::Exited { status: JobStatus::Signaled(SIGTERM), left: true, .. }));
        fixture.send(&stop(SIGTERM));
        assert_eq!(fixture.pipe.next_line(), "session");
        assert_eq!(left_behind(fixture.receive()), (vec!["perl".to_owned()], false));
        let left = fixture.processes_of_jobs();
        assert_eq!(left.len(), 2);
        // Each earlier signal would have been reported by now.
        for process in left {
            process.signal(nix::sys::signal::Signal::SIGUSR1);
        }
        let mut lines = [fixture.pipe.next_line(), fixture.pipe.next_line()];
        lines.sort();
        assert_eq!(lines, ["group ends", "session ends"]);
        assert_eq!(fixture.receive(), Answer::Gone);
    }
}

/// The processes that the main process leaves get the stop signal one by one, in any session or group, stopped or not, and are then killed.
#[test]
fn remaining_processes_get_the_signal_one_by_one_and_are_killed_in_the_end() {
    let text = r#"
        handler='sub say { open(W, ">", $ENV{PIPE}); print W "$_[0]\n"; close W }
                $SIG{TERM} = sub { say("asked"); exit }; say("ready"); kill "STOP", $$ if @ARGV; sleep 600'
        perl -e "$handler" & setsid perl -e "$handler" & (setsid perl -e "$handler" stopped &)
        setsid sh -c 'trap "" TERM; echo $$ > "$PIPE"; while :; do sleep 600; done' &
        read word < "$PIPE.go"; exit 4"#;
    for (mut fixture, _group) in fixtures(text) {
        let go = fixture.pipe.path().with_extension("go");
        nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fixture.start(0, far_deadline());
        let lines: Vec<String> = (0..4).map(|_| fixture.pipe.next_line()).collect();
        let ignoring = lines.iter().find_map(|line| line.parse().ok()).unwrap();
        let sleeps = |process: &Process| process.name().as_deref() == Some("sleep");
        wait::until_true("what it starts after it has said so", || fixture.processes_of_jobs().iter().any(sleeps));
        tell_reader(&go);
        assert_eq!(
            fixture.receive(),
            Answer::Exited { status: JobStatus::Exited(4), ended_at: ENDED, left: true, foreground: false }
        );
        fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
        for _ in 0..3 {
            assert_eq!(fixture.pipe.next_line(), "asked");
        }
        assert_eq!(
            left_behind(fixture.receive()),
            (["perl", "perl", "perl", "sh", "sleep"].map(str::to_owned).to_vec(), false)
        );
        assert!(Process::find(ignoring).is_some());
        assert!(fixture.has_no_answer());
        let process = process_of(ignoring);
        // Without a stop signal the process is killed.
        fixture.send(&Order::Stop { signal: None, kill_at: clock::now() });
        assert_eq!(fixture.receive(), Answer::Killed);
        let (names, killed) = left_behind(fixture.receive());
        assert!(killed && names.contains(&"sh".to_owned()), "{names:?}");
        assert_eq!(fixture.receive(), Answer::Gone);
        await_readable(process.as_fd(), "its end");
        assert_eq!(fixture.processes_of_jobs(), []);
    }
}

/// The memory in KiB of this process's private mappings that belong to no file: stacks and the heap (`Rss` in `/proc/PID/smaps`).
fn anonymous_memory(pid: Pid) -> u64 {
    let mappings = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut is_anonymous = false;
    let resident = mappings.lines().filter_map(|line| {
        if let Some((_, mapping)) = line.split_once(" rw-p ") {
            is_anonymous = mapping.starts_with("00000000 00:00 0 ");
        }
        let amount = line.strip_prefix("Rss:")?.strip_suffix("kB")?.trim();
        std::mem::take(&mut is_anonymous).then(|| amount.parse::<u64>().unwrap())
    });
    resident.sum()
}

/// The page faults of a thread so far.
fn page_faults(thread: &Path) -> u64 {
    let stat = fs::read_to_string(thread.join("stat")).unwrap();
    // `minflt`, the tenth field: the second one ends with the parenthesis.
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(7).unwrap().parse().unwrap()
}

/// The threads of a process except for the first, each with its name.
fn other_threads(pid: Pid) -> Vec<(String, PathBuf)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap().path());
    let others = threads.filter(|thread| *thread != Path::new(&format!("/proc/{pid}/task/{pid}")));
    others.map(|thread| (fs::read_to_string(thread.join("comm")).unwrap().trim().to_owned(), thread)).collect()
}

/// The flags of the mapping with the stack of a thread, in the letters of `/proc/PID/smaps`. It waits until the thread is blocked in a system call.
fn flags_of_stack(thread: &Path) -> String {
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    // The last number but one is the stack's address. There is none while the thread runs.
    let address = wait::until("a thread that waits", || {
        hexadecimal(fs::read_to_string(thread.join("syscall")).unwrap().split_whitespace().nth_back(1)?).ok()
    });
    let begins_stack = |line: &&str| {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(start, end)| Some(hexadecimal(start).ok()?..hexadecimal(end).ok()?));
        range.is_some_and(|range| range.contains(&address))
    };
    let mappings = fs::read_to_string(thread.join("smaps")).unwrap();
    let mut of_stack = mappings.lines().skip_while(|line| !begins_stack(line));
    of_stack.find_map(|line| line.strip_prefix("VmFlags:")).unwrap().to_owned()
}

/// A page that a child shares is copied at the next write, which needs memory. A thread in real time would keep a processor until it gets that.
#[test]
fn no_thread_of_the_guard_but_the_first_shares_its_stack_with_children() {
    for (fixture, _group) in fixtures("exec sleep 600") {
        fixture.start(0, far_deadline());
        let threads = other_threads(fixture.handle().pid());
        assert!(!threads.is_empty());
        for (name, thread) in threads {
            let flags = flags_of_stack(&thread);
            assert!(flags.split_whitespace().any(|flag| flag == "dc"), "{name}:{flags}");
        }
        fixture.kill_job();
    }
}

/// A guard may stall for seconds where the kernel waits for memory. Its second thread does nothing that needs any.
#[test]
fn a_guard_whose_first_thread_stalls_kills_the_job_at_the_deadline() {
    let text = r#"setsid sh -c '(echo $$; sh -c "echo \$\$; exec sleep 600" & wait) > "$PIPE"' & wait"#;
    for (mut fixture, _group) in fixtures(text) {
        let guard = fixture.handle().pid();
        let (mut faults, mut memory) = (None, None);
        for term in 0..3 {
            let until = near_deadline();
            fixture.start(term, until);
            let processes: Vec<OwnedFd> = (0..2).map(|_| fixture.pipe.next_process()).collect();
            let hold = Process::find(guard.as_raw()).unwrap().hold();
            let before = *memory.get_or_insert_with(|| anonymous_memory(guard));
            for process in &processes {
                await_readable(process.as_fd(), "the end of a process");
            }
            wait::until_true("the end of the job's main process", || fixture.processes_of_jobs().is_empty());
            assert!(clock::now() >= until);
            if term == 0 {
                assert_eq!(anonymous_memory(guard), before, "the kernel may wait for a new page as well");
            }
            // Its code is mapped at the first kill. A page of data that it shared with a child would have to be copied.
            let kills = |(name, _): &(String, PathBuf)| name != "neli-watch";
            let threads = other_threads(guard).into_iter().filter(kills);
            let now: Vec<(String, u64)> = threads.map(|(name, thread)| (name, page_faults(&thread))).collect();
            assert_eq!(*faults.get_or_insert_with(|| now.clone()), now, "term {term}");
            drop(hold);
            fixture.receive_main_killed();
            assert!(fixture.receive_fenced(term).is_some());
        }
        // No round of the thread kills the next run.
        fixture.start(3, far_deadline());
        fixture.kill_job();
    }
}
