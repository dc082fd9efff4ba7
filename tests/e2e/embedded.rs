//! `--embedded`: a trial on one machine, without Kafka.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::process::Process;
use harness::{install, wait};
use nix::sys::signal::Signal;

use crate::{PROGRAM, bare};

/// A directory in place of the user's runtime directory. Candidates find each other's broker only through it.
pub(crate) struct Machine {
    runtime: tempfile::TempDir,
    election: TestElection,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { runtime: install::scratch(), election: TestElection::unreachable(PROGRAM) }
    }

    pub(crate) fn candidate(&self) -> Candidate {
        self.candidate_of(Elector::Log)
    }

    fn candidate_of(&self, elector: Elector) -> Candidate {
        let elector = if elector == Elector::Log { "log" } else { "group" };
        let candidate = bare().flag("--embedded").option("--group", &self.election.group).option("--elect", elector);
        candidate.variable("XDG_RUNTIME_DIR", self.runtime.path()).job(self.election.witness().command())
    }

    /// The broker's process. It is no child of a candidate, so it is found by its environment.
    pub(crate) fn broker(&self) -> Option<Process> {
        Process::with_variable("XDG_RUNTIME_DIR", self.runtime.path()).into_iter().find(|process| is_broker(*process))
    }
}

/// Whether a process is the broker, and not a candidate, guard or job.
fn is_broker(process: Process) -> bool {
    let words = std::fs::read(Path::new("/proc").join(process.pid.to_string()).join("cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1).is_some_and(|word| word == b"broker")
}

impl Drop for Machine {
    fn drop(&mut self) {
        for process in Process::with_variable("XDG_RUNTIME_DIR", self.runtime.path()) {
            process.signal(Signal::SIGKILL);
        }
    }
}

/// The first candidate starts a broker and the second one finds it; the job moves from one to the other, and the broker ends with the
/// last candidate.
#[test]
fn two_candidates_share_one_broker_that_ends_with_the_last() {
    let machine = Machine::new();
    let mut first = machine.candidate().start();
    let term = first.await_lead();
    machine.election.await_witness(term);
    let mut second = machine.candidate().start();
    second.await_event("standby");
    for candidate in [&first, &second] {
        // Without root there is another warning, about setuid programs.
        let mut warnings = candidate.events("warning");
        warnings.retain(|event| event.text("message").starts_with("--embedded"));
        assert_eq!(warnings.len(), 1, "one line says that this is for one machine only: {warnings:?}");
    }
    let broker = machine.broker().expect("a broker");

    first.signal(Signal::SIGINT);
    let next = second.await_lead();
    machine.election.await_witness(next);
    assert_eq!(first.status(), 0);
    second.signal(Signal::SIGINT);
    assert_eq!(second.status(), 0);
    assert!(broker.lives(), "the next candidate may come");
    wait::until_true("a broker that ends with the last candidate", || !broker.lives());
    machine.election.assert_never_two();

    // The broker ended in order, so the next one's empty journal is vacant. (Terms begin again, so this job is not a witness.)
    let mut third = machine.candidate().job(["true"]).start();
    assert_eq!(third.status(), 0);
}

/// A broker that was killed has lost its journal: the empty journal of the next one does not prove a vacancy.
#[test]
fn after_a_broker_s_death_candidates_wait_for_silence() {
    let machine = Machine::new();
    let mut first = machine.candidate().lease("1s").start();
    let term = first.await_lead();
    machine.election.await_witness(term);
    machine.broker().expect("a broker").signal(Signal::SIGKILL);
    first.await_event("fenced");
    machine.election.await_gone(term);

    let mut second = machine.candidate().lease("1s").start();
    let message = second.await_event("warning");
    second.await_event("standby");
    let message = [vec![message], second.events("warning")].concat();
    let why = message.iter().map(|event| event.text("message")).find(|text| text.contains("nobody leads until"));
    let why = why.unwrap_or_else(|| panic!("nothing says how long it waits: {message:?}"));
    assert!(why.starts_with("the embedded broker before this one was killed"), "{why}");
    assert!(second.await_event_within("leading", Duration::from_secs(5)).is_none(), "60 s of silence are not over");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.status(), 143);
    machine.election.assert_never_two();

    // Candidates that start later wait until the same time. Those that start after that time do not wait.
    let elsewhere = |name: &str| machine.candidate().option("--group", name).job(["true"]).start();
    first.await_event("standby");
    let mut late = elsewhere("late");
    let wait = late.await_event_within("claiming", Duration::from_secs(59));
    assert!(wait.is_some(), "61 s after its start the broker is as good as one that followed an orderly end");
    assert_eq!(late.status(), 0);
    let mut later = elsewhere("later");
    assert!(later.await_event_within("claiming", Duration::from_secs(30)).is_some());
    assert_eq!(later.status(), 0);
    machine.election.close([first]);
}

/// A guard that dies just after the broker leaves a job that must be killed. The new broker, which the main loop does not know yet, is not
/// part of that job.
#[test]
fn a_new_broker_outlives_a_guard_that_dies_meanwhile() {
    let machine = Machine::new();
    let mut run = machine.candidate().start();
    let term = run.await_lead();
    machine.election.await_witness(term);
    let (guard, old) = (run.guard(), machine.broker().expect("a broker"));
    old.signal(Signal::SIGKILL);
    let new = wait::until("another broker", || machine.broker().filter(|broker| *broker != old));
    // If the main loop was faster, there is a new guard already, and the case is not tested.
    guard.signal(Signal::SIGKILL);
    run.await_event("standby");
    assert!(new.lives());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
}

/// librdkafka's mock broker waits for a member whose process died before the answer to its join, and makes the other members wait for a
/// session. A client that reconnects meanwhile and joins again makes an assertion of the mock fail, which ends it.
#[test]
fn a_member_that_dies_while_it_joins_does_not_end_the_broker() {
    let machine = Machine::new();
    let mut first = machine.candidate_of(Elector::Group).start();
    let term = first.await_lead();
    machine.election.await_witness(term);
    let broker = machine.broker().expect("a broker");
    first.signal(Signal::SIGKILL);
    let mut second = machine.candidate_of(Elector::Group).start();
    let next = second.await_lead();
    machine.election.await_witness(next);
    second.await_event("assigned");
    assert!(broker.lives());
    second.signal(Signal::SIGTERM);
    assert_eq!(second.status(), 0);
}

/// Many candidates that start at once start only one broker.
#[test]
fn many_at_once_find_one_broker() {
    let machine = Machine::new();
    let mut candidates: Vec<_> = (0..5).map(|_| machine.candidate().start()).collect();
    let (leader, term) = crate::await_leader(&mut candidates);
    machine.election.await_witness(term);
    for (index, candidate) in candidates.iter_mut().enumerate() {
        if index != leader {
            candidate.await_event("standby");
        }
    }
    let brokers = Process::with_variable("XDG_RUNTIME_DIR", machine.runtime.path());
    assert_eq!(brokers.into_iter().filter(|process| is_broker(*process)).count(), 1);
    machine.election.close(candidates);
}

/// `x=$(neli-run --embedded ...)` returns when the job ends: the broker lives on, but has no end of the shell's pipe.
#[test]
fn a_shell_that_takes_the_output_does_not_wait_for_the_broker() {
    let machine = Machine::new();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"x=$("$1" --embedded --group "$2" --elect log -- echo word 2>/dev/null); echo "got $x""#,
        "sh",
    ]);
    shell.args([PROGRAM, &machine.election.group]).env("XDG_RUNTIME_DIR", machine.runtime.path());
    let output = shell.output().expect("every Linux has a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "got word\n");
    assert!(machine.broker().is_some_and(Process::lives), "for ten seconds yet");
}
