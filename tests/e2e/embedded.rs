//! `--embedded`: a trial on one machine, without Kafka.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::process::Process;
use harness::{install, wait};
use nix::sys::signal::Signal;

use crate::doctor::Found;
use crate::guarded::assert_refused;
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

    /// What `neli-run broker` says where it must not run.
    fn refused_broker(&self) -> String {
        let mut broker = Command::new(PROGRAM);
        // One that does not refuse ends too.
        let output = broker
            .args(["broker", "--idle-timeout", "10ms"])
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(125));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The broker's process, found by its environment.
    pub(crate) fn broker(&self) -> Option<Process> {
        Process::with_variable("XDG_RUNTIME_DIR", self.runtime.path()).into_iter().find(|process| is_broker(*process))
    }
}

/// Whether a process is the broker, and not a candidate, guard or job.
fn is_broker(process: Process) -> bool {
    let words = fs::read(Path::new("/proc").join(process.pid.to_string()).join("cmdline")).unwrap_or_default();
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

/// `doctor` says so too.
#[test]
fn a_directory_that_others_may_read_is_refused() {
    let machine = Machine::new();
    let directory = machine.runtime.path().join("neli-run");
    fs::create_dir(&directory).expect("the directory is empty");
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("its owner may");
    let why = "neli-run: not a directory of this user's alone (mode 0700)";
    let mut run = machine.candidate().start();
    assert_eq!(run.status(), 125);
    assert!(run.strange_lines().concat().contains(why), "{run:?}");
    let runtime = format!("XDG_RUNTIME_DIR={}", machine.runtime.path().display());
    let found = Found::behind(&["env", &runtime], &["--embedded"]);
    found.assert_finding("brokers", "fail", &["--embedded: ", why]);
}

/// A candidate that reaches the broker by its address holds no lock that a later broker would find. So it is refused before it claims, and the
/// commands that run no job are not.
#[test]
fn a_candidate_is_refused_at_the_brokers_address() {
    let machine = Machine::new();
    let mut first = machine.candidate().start();
    let term = first.await_lead();
    machine.election.await_witness(term);
    let warning = first.warnings_with("--embedded").remove(0);
    let address = warning.split("at ").nth(1).and_then(|rest| rest.split(',').next()).expect("an address");
    let by_address = |group: &str| {
        bare().option("--brokers", address).option("--group", group).option("--elect", "log").job(["true"])
    };
    // Of the other one there is no topic, and this broker makes none for it.
    for group in [machine.election.group.as_str(), "another"] {
        assert_refused(by_address(group).start(), &[address, "a broker of --embedded", "in place of --brokers"]);
    }
    let found = Found::of(&["--brokers", address, "--group", &machine.election.group]);
    found.assert_finding("brokers", "fail", &["a broker of --embedded"]);
    let mut status = Command::new(PROGRAM);
    status.args(["status", "--brokers", address, "--group", &machine.election.group]);
    assert!(status.output().expect("it runs").status.success());
    // One that says `--embedded` may be refused for other reasons, also in the words of the options.
    let refused = machine.candidate().option("--topic", "missing").flag("--no-create-topic").start();
    assert_refused(refused, &["it does not exist; create it, or drop --no-create-topic"]);
    first.signal(Signal::SIGINT);
    assert_eq!(first.status(), 0);
}

/// A broker that is killed takes the journal with it. Its candidates end, each with one line, and the next one leads at once.
#[test]
fn candidates_end_with_their_broker_and_the_next_one_leads_at_once() {
    let machine = Machine::new();
    let mut first = machine.candidate().start();
    let term = first.await_lead();
    machine.election.await_witness(term);
    let mut second = machine.candidate().start();
    second.await_event("standby");
    machine.broker().expect("a broker").signal(Signal::SIGKILL);
    for candidate in [&mut first, &mut second] {
        assert_eq!(candidate.status(), 125);
        let errors = candidate.events("error");
        assert_eq!(errors.len(), 1, "{errors:?}");
        let why = errors[0].text("message");
        assert!(
            why.starts_with("the embedded broker has ended") && why.contains("start the candidates again"),
            "{why}"
        );
    }
    machine.election.assert_gone(term);
    assert_eq!(first.count("released"), 0, "there is no journal that could hold a release");
    // Terms begin again, so this job is not a witness.
    let mut third = machine.candidate().job(["true"]).start();
    assert_eq!(third.status(), 0);
}

/// With a key, the fact of a run can't be recorded any more. That is not waited for.
#[test]
fn a_candidate_with_a_key_ends_with_its_broker_too() {
    let machine = Machine::new();
    let mut run = machine.candidate().option("--once", "key").lease("1m").start();
    let term = run.await_lead();
    machine.election.await_witness(term);
    machine.broker().expect("a broker").signal(Signal::SIGKILL);
    assert_eq!(run.status(), 125);
    machine.election.assert_gone(term);
}

/// Candidate and broker are killed together, while the guard hangs and can't kill the job. No new broker begins while the guard lives:
/// neither one that is started by hand nor one that a candidate would start.
#[test]
fn no_broker_begins_while_a_guard_of_the_one_before_it_is_left() {
    let machine = Machine::new();
    let mut run = machine.candidate().lease("1m").start();
    let term = run.await_lead();
    machine.election.await_witness(term);
    let guard = run.guard();
    let hold = guard.hold();
    machine.broker().expect("a broker").signal(Signal::SIGKILL);
    run.signal(Signal::SIGKILL);
    let process = format!("process {}, ", guard.pid);
    wait::until_true("only the guard is left", || machine.refused_broker().contains(&process));
    let mut next = machine.candidate().job(["true"]).start();
    assert_eq!(next.status(), 125);
    let why = next.strange_lines().concat();
    assert!(why.contains("--embedded: the last broker has ended") && why.contains(&process), "{why}");
    let doctor =
        Command::new(PROGRAM).args(["doctor", "--embedded"]).env("XDG_RUNTIME_DIR", machine.runtime.path()).output();
    let found = String::from_utf8(doctor.expect("it runs").stdout).expect("it is text");
    assert!(found.split_whitespace().collect::<Vec<_>>().join(" ").contains(&process), "{found}");
    drop(hold);
    machine.election.await_gone(term);
    let mut next = machine.candidate().job(["true"]).start();
    assert_eq!(next.status(), 0);
    machine.election.assert_never_two();
}

/// The same with a candidate that is stopped when the broker is killed.
#[test]
fn no_broker_begins_while_a_candidate_of_the_one_before_it_is_left() {
    let machine = Machine::new();
    let mut run = machine.candidate().lease("1m").start();
    let term = run.await_lead();
    machine.election.await_witness(term);
    run.signal(Signal::SIGSTOP);
    machine.broker().expect("a broker").signal(Signal::SIGKILL);
    let candidate = format!("process {}, ", run.process().pid);
    let guard = format!("process {}, ", run.guard().pid);
    // The broker lives for a moment after its SIGKILL, and counts until then.
    wait::until_true("a candidate is left", || {
        let refused = machine.refused_broker();
        refused.contains(&candidate) || refused.contains(&guard)
    });
    run.signal(Signal::SIGCONT);
    assert_eq!(run.status(), 125);
    machine.election.assert_gone(term);
    let mut next = machine.candidate().job(["true"]).start();
    assert_eq!(next.status(), 0);
    machine.election.assert_never_two();
}

/// A guard that is killed leaves a job to its candidate, which kills it. The broker that the candidate has started is no part of that job.
#[test]
fn the_broker_outlives_a_guard_that_dies() {
    let machine = Machine::new();
    let mut run = machine.candidate().start();
    let term = run.await_lead();
    machine.election.await_witness(term);
    let broker = machine.broker().expect("a broker");
    run.guard().signal(Signal::SIGKILL);
    machine.election.await_gone(term);
    run.await_event("released");
    assert!(broker.lives());
    run.signal(Signal::SIGTERM);
    run.status();
    machine.election.assert_never_two();
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
    // One that was started too, and found the broker of another, may still be ending.
    wait::until_true("one broker", || {
        let processes = Process::with_variable("XDG_RUNTIME_DIR", machine.runtime.path());
        processes.into_iter().filter(|process| is_broker(*process)).count() == 1
    });
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
