//! Process 1 of a container: it reaps orphans, passes signals on, and exits with the job's status. The tests need a PID namespace. If the
//! kernel does not allow one, they print that they did not run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use harness::candidate::{Candidate, Elector, Running};
use harness::not_tested;
use harness::process::Process;
use harness::terminal::{Ctrl, Log, Shell, Terminal, script};
use harness::wait;
use harness::witness::Event;
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::{AS_USER, election};

/// A command prefix for a PID namespace with its own `/proc`, which ends with the program that created it. Without root it is created
/// within a user namespace, in which the user keeps the same name.
fn container() -> Vec<&'static str> {
    let mut words = vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !Uid::effective().is_root() {
        words.extend(AS_USER);
    }
    words
}

/// Whether the kernel allows PID namespaces.
pub(super) fn is_possible() -> bool {
    let container = container();
    let tried = Command::new(container[0]).args(&container[1..]).arg("true").output();
    match tried.expect("unshare is part of util-linux: apt-get install util-linux") {
        output if output.status.success() => true,
        output => {
            let why = String::from_utf8_lossy(&output.stderr);
            not_tested(&format!("process 1: this machine gives no PID namespace ({}); root may", why.trim()));
            false
        }
    }
}

/// A `neli-run` that is process 1 of a container, seen from outside.
pub(super) struct Container {
    pub(super) running: Running,
    pub(super) first: Process,
}

impl Container {
    pub(super) fn start(candidate: &Candidate) -> Self {
        let running = candidate.start_behind(&container());
        let first = wait::until("process 1", || {
            let children = running.process().children().into_iter();
            children.into_iter().find(|child| child.name().as_deref() == Some("neli-run"))
        });
        Self { running, first }
    }

    /// Starts a process in the container that does not belong to the job, as `docker exec` would. It leaves a child to process 1.
    fn leave_a_child(&self) {
        let pid = self.first.pid.to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &pid, "--pid"]);
        if !Uid::effective().is_root() {
            enter.args(["--user", "--preserve-credentials"]);
        }
        let left = enter.args(["--", "sh", "-c", "sleep 1000 &"]).status();
        assert!(left.expect("nsenter is part of util-linux").success());
        let sleeper = wait::until("a child that was left to process 1", || {
            self.first.children().into_iter().find(|child| child.name().as_deref() == Some("sleep"))
        });
        sleeper.signal(Signal::SIGKILL);
        // The zombie is gone too, because process 1 has waited for it.
        let entry = PathBuf::from(format!("/proc/{}", sleeper.pid));
        wait::until_true("nobody", || !entry.exists());
    }
}

#[test]
fn it_reaps_orphans_that_it_adopts() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let mut leader = Container::start(&election.candidate());
    let term = leader.running.await_lead();
    election.await_witness(term);
    let mut standby = Container::start(&election.candidate());
    standby.running.await_event("standby");
    for container in [&leader, &standby] {
        container.leave_a_child();
    }
    leader.first.signal(Signal::SIGTERM);
    assert_eq!(leader.running.status(), 0);
    standby.running.await_lead();
    standby.leave_a_child();
    standby.first.signal(Signal::SIGTERM);
    assert_eq!(standby.running.status(), 0);
    election.close([]);
}

/// `docker stop` of an image with STOPSIGNAL SIGQUIT: the signal ends the job, which is run again.
#[test]
fn a_signal_that_may_be_the_container_s_stop_is_explained() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let candidate = election.candidate().option("--restart", "always").option("--restart-delay", "0");
    let mut container = Container::start(&candidate);
    let term = container.running.await_lead();
    election.await_witness(term);
    container.running.await_event("job_started");
    container.first.signal(Signal::SIGQUIT);
    container.running.await_event("restarting");
    let hint = wait::until("a hint", || container.running.warnings_with("--stop-signal QUIT").pop());
    assert!(hint.starts_with("the job has ended after SIGQUIT, which process 1 of this container got"), "{hint}");
    container.first.signal(Signal::SIGTERM);
    container.running.status();
    election.close([]);
}

/// The kernel drops signals without a handler at process 1. Those that `neli-run` handles arrive, and SIGTSTP has no effect.
#[test]
fn signals_that_neli_run_handles_reach_the_job_and_sigtstp_has_no_effect() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let witness = election.witness().with("--ignore-stop");
    let mut container =
        Container::start(&election.candidate().job(witness.command()).option("--stop-timeout", "200ms"));
    let term = container.running.await_lead();
    election.await_witness(term);
    container.running.await_event("job_started");
    for (signal, number) in
        [(Signal::SIGHUP, 1), (Signal::SIGUSR1, 10), (Signal::SIGUSR2, 12), (Signal::SIGQUIT, 3), (Signal::SIGALRM, 14)]
    {
        container.first.signal(signal);
        let is_signaled = || election.testimony().signals().any(|line| line.event == Event::Signal(number));
        wait::until_true(&format!("{signal} at the job"), is_signaled);
    }
    // Pending signals are delivered in the order of their numbers.
    container.first.signal(Signal::SIGTSTP);
    container.first.signal(Signal::SIGWINCH);
    wait::until_true("WINCH at the job", || election.testimony().signals().any(|line| line.event == Event::Signal(28)));
    assert!(container.running.events("stopping").is_empty());
    container.first.signal(Signal::SIGINT);
    assert_eq!(container.running.status(), 137);
    assert_eq!(container.running.await_release().text("why"), "stopped");
    election.close([]);
}

#[test]
fn standing_by_each_stop_has_its_status() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    leader.await_lead();
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGQUIT, 131)] {
        let mut standby = Container::start(&election.candidate());
        standby.running.await_event("standby");
        standby.first.signal(signal);
        assert_eq!(standby.running.status(), status, "{signal}");
    }
    election.close([leader]);
}

/// Its first child tries whether there is room for its threads.
#[test]
fn a_stop_during_the_start_is_not_lost() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    for _ in 0..5 {
        let mut container = Container::start(&election.candidate());
        let children = format!("/proc/{0}/task/{0}/children", container.first.pid);
        wait::until_true("a child", || fs::read_to_string(&children).is_ok_and(|children| !children.is_empty()));
        container.first.signal(Signal::SIGTERM);
        assert_eq!(container.running.status(), 143);
    }
    election.close([]);
}

#[test]
fn the_status_is_the_jobs() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    for (job, status) in [("exit 7", 7), ("kill -9 $$", 137), ("(sleep 1000 &); exit 3", 3)] {
        let mut running = election.candidate().job(["sh", "-c", job]).start_behind(&container());
        assert_eq!(running.status(), status, "{job}");
    }
    election.close([]);
}

/// The kernel kills all processes in a PID namespace with its process 1. So the guard can't release the term, and another candidate leads
/// after the lease.
#[test]
fn its_death_ends_all_processes_and_another_leads_after_the_lease() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let mut container =
        Container::start(&election.candidate().lease("3s").job(election.witness().with("--daemon").command()));
    let term = container.running.await_lead();
    election.await_witness(term);
    let family = container.first.descendants();
    let mut other = election.candidate().lease("3s").start();
    other.await_event("standby");
    container.first.signal(Signal::SIGKILL);
    wait::until_true("nobody in the container", || family.iter().all(|process| !process.lives()));
    assert!(other.await_lead() > term);
    election.close([other]);
}

/// Its guard dies: process 1 kills what the guard left, releases the term, and stands by.
#[test]
fn it_survives_its_guard_and_releases_the_term() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let mut container = Container::start(&election.candidate());
    let term = container.running.await_lead();
    election.await_witness(term);
    let guard = wait::until("a guard", || {
        container.first.children().into_iter().find(|child| child.name().as_deref() == Some("neli-guard"))
    });
    guard.signal(Signal::SIGKILL);
    assert_eq!(container.running.await_release().text("why"), "guard-died");
    let next = container.running.await_lead();
    election.await_witness(next);
    container.first.signal(Signal::SIGTERM);
    assert_eq!(container.running.status(), 0);
    election.close([]);
}

/// Ctrl-C at a container's terminal: process 1 survives the signal that it sends to its own group, and its exit status is still that of the
/// signal.
#[test]
fn it_survives_ctrl_c_and_exits_with_the_status_of_the_signal() {
    if !is_possible() {
        return;
    }
    if !Uid::effective().is_root() {
        return not_tested("Ctrl-C at process 1: a terminal is taken from another session by root alone");
    }
    let election = election(Elector::Log);
    let directory = election.directory();
    let job = ["sh", "-c", "echo waits; exec sleep 1000"];
    script(&directory.join("lead"), &election.candidate().option("--log-file", directory.join("log")).job(job).words());
    let mut terminal = Terminal::new(Shell::Bash, directory);
    // The terminal becomes that of the container's session, which process 1 leads.
    let container = container().join(" ");
    terminal.type_line(&format!(r#"{container} setsid --ctty ./lead; echo "status <$?>""#));
    terminal.await_text("waits");
    terminal.press(Ctrl::C);
    terminal.await_text("status <130>");
    let mut log = Log::new(&directory.join("log"));
    assert_eq!(log.await_event("released").text("why"), "stopped");
    assert_eq!(log.await_event("exiting").number("status"), 130);
}

/// With the `/proc` of another PID namespace, our pids belong to other processes there. That is refused before the candidate joins the
/// group.
#[test]
fn another_namespaces_proc_is_refused() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let container: Vec<&str> = container().into_iter().filter(|word| *word != "--mount-proc").collect();
    let mut running = election.candidate().start_behind(&container);
    assert_eq!(running.status(), 125);
    let lines = running.strange_lines();
    assert!(matches!(&lines[..], [line] if line.contains("/proc") && line.contains("--mount-proc")), "{lines:?}");
    assert!(fs::exists("/proc/1").expect("/proc"), "ours is untouched");
}

/// Without `--fork` only the children of the program are in the namespace, and none can be started after the end of the first.
#[test]
fn a_namespace_for_the_children_alone_is_refused() {
    if !is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let is_left_out = |word: &&str| ["--fork", "--kill-child", "--mount-proc"].contains(word);
    let container: Vec<&str> = container().into_iter().filter(|word| !is_left_out(word)).collect();
    let mut running = election.candidate().start_behind(&container);
    assert_eq!(running.status(), 125);
    let lines = running.strange_lines();
    assert!(matches!(&lines[..], [line] if line.contains("unshare --pid needs --fork")), "{lines:?}");
}
