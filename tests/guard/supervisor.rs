//! The guard of a supervisor that is stopped or dies. The supervisor is a separate process: this test program, executed again for
//! [`role_of_a_supervisor`] alone, which reads orders from stdin and writes answers to stdout.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use harness::not_tested;
use harness::process::Process;
use harness::program;
use neli_kafka::clock;
use neli_proto::job::JobStatus;
use neli_proto::record::Record;
use neli_run::guard::{Answer, GuardConfig, GuardHandle, Order};
use neli_run::release::ReleaseConfig;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixture::{
    LinePipe, await_readable, far_deadline, grant, guard_config, has_ended, near_deadline, process_of, release_queue,
    script, spawn,
};
use crate::starts::policy;

const ROLE: &str = "NELI_TEST_SUPERVISOR";

/// Runs the supervisor with the requested number of guards, if an environment variable asks for it. Each order goes to all guards.
#[test]
fn role_of_a_supervisor() {
    let Ok(count) = std::env::var(ROLE) else { return };
    let mut lines = io::stdin().lock();
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let mut guard_config: GuardConfig = serde_json::from_str(&line).unwrap();
    guard_config.release_queue = release_queue().as_raw_fd();
    let start = |_| GuardHandle::start(Path::new(env!("CARGO_BIN_EXE_neli-run")), &guard_config).unwrap();
    let guards: Vec<GuardHandle> = (0..count.parse().unwrap()).map(start).collect();
    // Libtest has printed an incomplete line.
    println!();
    for guard in &guards {
        println!("guard {}", guard.pid());
    }
    let stdin = io::stdin();
    loop {
        let descriptors = guards.iter().map(AsFd::as_fd).chain([stdin.as_fd()]);
        let mut sources: Vec<_> = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        poll(&mut sources, PollTimeout::NONE).unwrap();
        let ready: Vec<bool> = sources.iter().map(|source| source.any().unwrap()).collect();
        for (guard, _) in guards.iter().zip(&ready).filter(|(_, answers)| **answers) {
            let answer = guard.receive().unwrap().expect("the guard has ended").0;
            println!("answer {}", serde_json::to_string(&answer).unwrap());
        }
        if ready.last() == Some(&true) {
            line.clear();
            if lines.read_line(&mut line).unwrap() == 0 {
                return;
            }
            let order = serde_json::from_str(&line).unwrap();
            for guard in &guards {
                guard.send(&order).unwrap();
            }
        }
    }
}

/// A supervisor that can be killed.
struct Supervisor {
    pipe: LinePipe,
    process: Child,
    output: BufReader<ChildStdout>,
    guard: Pid,
}

impl Supervisor {
    fn of(text: &str) -> Self {
        Self::configured(text, |_| {})
    }

    fn configured(text: &str, adjust: impl FnOnce(&mut GuardConfig)) -> Self {
        Self::of_guards(1, text, adjust)
    }

    fn of_guards(count: u32, text: &str, adjust: impl FnOnce(&mut GuardConfig)) -> Self {
        let pipe = LinePipe::new();
        let mut guard_config = guard_config(script(text), &pipe.path());
        guard_config.releaser = releaser(pipe.directory.path());
        adjust(&mut guard_config);
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "supervisor::role_of_a_supervisor", "--nocapture"])
            .env(ROLE, count.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The kernel sends SIGHUP to a group that has a stopped process and loses its last connection to the session: to all of the tests.
            .process_group(0)
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut supervisor = Self { pipe, process, output, guard: Pid::from_raw(0) };
        supervisor.say(&serde_json::to_string(&guard_config).unwrap());
        supervisor.guard = Pid::from_raw(supervisor.next("guard ").parse().unwrap());
        supervisor
    }

    fn say(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn send(&mut self, order: &Order) {
        self.say(&serde_json::to_string(order).unwrap());
    }

    /// The rest of the next line that begins with `start`.
    fn next(&mut self, start: &str) -> String {
        loop {
            if self.output.buffer().is_empty() {
                await_readable(self.output.get_ref().as_fd(), "the supervisor");
            }
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the supervisor has ended");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim_end().to_owned();
            }
        }
    }

    fn receive(&mut self) -> Answer {
        loop {
            let answer = serde_json::from_str(&self.next("answer ")).unwrap();
            // The number of the second answer depends on how fast the processes die.
            if !matches!(answer, Answer::Ready | Answer::StillKilling) {
                return answer;
            }
        }
    }

    fn start(&mut self, order: &Order) {
        self.send(order);
        assert!(matches!(self.receive(), Answer::Accepted { .. }));
        assert!(matches!(self.receive(), Answer::Started { .. }));
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A script in place of `neli-run release <descriptor>`, which writes its arguments and attributes.
fn releaser(directory: &Path) -> PathBuf {
    let path = directory.join("releaser");
    let text = r#"#!/bin/sh
        directory=${0%/*}
        { echo "$1"; pwd; cut -d " " -f 41 "/proc/$$/stat"; tail -c +10 "/proc/$$/fd/$2"; echo; ls -l "/proc/$$/fd"; } > "$directory/release.part"
        mv "$directory/release.part" "$directory/release"
        echo released > "$directory/pipe""#;
    program::write(&path, text);
    path
}

const TREE: &str = r#"setsid sleep 600 & echo $! > "$PIPE"; sleep 600"#;

#[test]
fn when_the_supervisor_dies_the_tree_is_killed_and_the_term_released() {
    let mut supervisor = Supervisor::of(TREE);
    supervisor.start(&spawn(42, far_deadline()));
    let left = supervisor.pipe.next_process();
    let mut later = grant(42, far_deadline());
    (later.seen, later.next_seq) = (57, 9);
    supervisor.send(&Order::Lease(later));
    assert!(matches!(supervisor.receive(), Answer::Extended { .. }));

    supervisor.signal(Signal::SIGKILL);
    assert_eq!(supervisor.pipe.next_line(), "released");
    await_readable(left.as_fd(), "the end of the tree");
    let report = fs::read_to_string(supervisor.pipe.directory.path().join("release")).unwrap();
    let mut lines = report.lines();
    assert_eq!(lines.next(), Some("release"));
    assert_eq!(lines.next(), Some("/"));
    assert_eq!(lines.next(), Some(policy(nix::unistd::getpid()).to_string().as_str()));
    let (config, release): (ReleaseConfig, Record) = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!((config.member.as_str(), config.bootstrap.as_str()), ("m-1", "localhost:1"));
    assert_eq!(release, Record::release_for_dead(Some("m-1".into()), "n", 42, 57, 9, None));
    let open: Vec<&str> = lines.filter(|line| line.contains("->")).collect();
    // The script itself redirects its stdout, and 10 or 255 is the script, which its shell reads.
    let strangers = open.iter().filter(|line| {
        !["/dev/null", "memfd:neli-releases", "release.part", "/releaser"].iter().any(|known| line.contains(known))
    });
    assert_eq!(strangers.count(), 0, "{open:#?}");
}

/// Otherwise hundreds of roles would need hundreds of processes, each with its own Kafka client.
#[test]
fn one_process_delivers_the_releases_of_all_guards_of_a_supervisor() {
    let mut supervisor = Supervisor::of_guards(2, "sleep 600", |guard_config| {
        let text = r#"#!/bin/sh
            echo "$$" >> "${0%/*}/delivering"
            until [ "$(grep -ac supervisor-died "/proc/$$/fd/$2")" = 2 ]; do :; done
            echo released > "${0%/*}/pipe""#;
        fs::write(&guard_config.releaser, text).unwrap();
    });
    let guards = [supervisor.guard, Pid::from_raw(supervisor.next("guard ").parse().unwrap())];
    let processes = guards.map(|guard| process_of(guard.as_raw()));
    supervisor.send(&spawn(42, far_deadline()));
    let mut started = 0;
    while started < 2 {
        started += usize::from(matches!(supervisor.receive(), Answer::Started { .. }));
    }

    supervisor.signal(Signal::SIGKILL);
    assert_eq!(supervisor.pipe.next_line(), "released");
    for process in &processes {
        await_readable(process.as_fd(), "the end of both");
    }
    let delivering = fs::read_to_string(supervisor.pipe.directory.path().join("delivering")).unwrap();
    let delivering: Vec<i32> = delivering.lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        matches!(delivering.as_slice(), [one] if guards.contains(&Pid::from_raw(*one))),
        "{delivering:?} of {guards:?}"
    );
}

#[test]
fn a_released_term_is_not_released_again() {
    let mut supervisor = Supervisor::of(TREE);
    supervisor.start(&spawn(42, far_deadline()));
    let left = supervisor.pipe.next_process();
    let guard = process_of(supervisor.guard.as_raw());
    supervisor.send(&Order::Released { term: 42 });
    assert!(matches!(supervisor.receive(), Answer::Exited { .. }));
    assert_eq!(supervisor.receive(), Answer::Gone);
    await_readable(left.as_fd(), "the end of the tree");
    supervisor.signal(Signal::SIGKILL);
    await_readable(guard.as_fd(), "the guard's end");
    assert!(!supervisor.pipe.directory.path().join("release").exists());
}

/// Processes that were reported as stuck are killed again and again, and their term is never released, even if they end later.
#[test]
fn a_term_with_a_stuck_process_is_never_released() {
    let mut supervisor = Supervisor::configured(TREE, |guard_config| guard_config.lease = Duration::from_millis(300));
    supervisor.start(&spawn(42, far_deadline()));
    let left: i32 = supervisor.pipe.next_line().parse().unwrap();
    let process = process_of(left);
    let guard = process_of(supervisor.guard.as_raw());
    let Some(frozen) = Process::find(left).unwrap().freeze() else {
        return not_tested("no freezer of the old control groups here");
    };
    supervisor.send(&Order::Kill);
    assert_eq!(supervisor.receive(), Answer::Killed);
    assert!(matches!(supervisor.receive(), Answer::Exited { left: true, .. }));
    assert_eq!(supervisor.receive(), Answer::Stuck { pids: vec![left] });
    supervisor.signal(Signal::SIGKILL);
    supervisor.process.wait().unwrap();
    assert!(!has_ended(&guard), "it watches what is left");
    drop(frozen);
    await_readable(process.as_fd(), "the end of the tree");
    await_readable(guard.as_fd(), "the guard's end");
    assert!(!supervisor.pipe.directory.path().join("release").exists());
}

#[test]
fn the_last_orders_of_a_dead_supervisor_are_read() {
    let mut supervisor = Supervisor::of("exit 0");
    supervisor.start(&spawn(42, far_deadline()));
    assert!(matches!(supervisor.receive(), Answer::Exited { .. }));
    assert_eq!(supervisor.receive(), Answer::Gone);
    let guard = process_of(supervisor.guard.as_raw());
    // The guard is stopped while the supervisor sends its last orders and dies, with an answer unread.
    kill(supervisor.guard, Signal::SIGSTOP).unwrap();
    supervisor.send(&Order::Over { term: 42 });
    supervisor.send(&Order::Released { term: 42 });
    drop(supervisor.process.stdin.take());
    supervisor.process.wait().unwrap();
    kill(supervisor.guard, Signal::SIGCONT).unwrap();
    await_readable(guard.as_fd(), "the guard's end");
    assert!(!supervisor.pipe.directory.path().join("release").exists());
}

#[test]
fn a_supervisor_that_dies_right_after_a_spawn_leaves_no_job() {
    let mut supervisor = Supervisor::of(r#"echo "$$" > "$PIPE"; sleep 600"#);
    kill(supervisor.guard, Signal::SIGSTOP).unwrap();
    supervisor.send(&spawn(42, far_deadline()));
    drop(supervisor.process.stdin.take());
    supervisor.process.wait().unwrap();
    kill(supervisor.guard, Signal::SIGCONT).unwrap();
    // No pid was written before it.
    assert_eq!(supervisor.pipe.next_line(), "released");
}

#[test]
fn a_stopped_supervisor_does_not_delay_the_fence_and_gets_the_report_later() {
    let mut supervisor = Supervisor::of(TREE);
    let until = near_deadline();
    supervisor.start(&spawn(42, until));
    let left = supervisor.pipe.next_process();
    supervisor.signal(Signal::SIGSTOP);
    await_readable(left.as_fd(), "the end of the tree");
    assert!(clock::now() >= until);
    supervisor.signal(Signal::SIGCONT);
    assert!(matches!(supervisor.receive(), Answer::Exited { status: JobStatus::Signaled(9), .. }));
    let answer = supervisor.receive();
    let Answer::Fenced { term: 42, end: Some(end) } = answer else { panic!("{answer:?}") };
    assert!((until..clock::now()).contains(&end.gone_at));
}
