//! A secret appears only in the place where it was given: in no other process's command line or environment, in no log, in no error.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::accounts::{Account, PASSWORD};
use harness::candidate::{Elector, Running};
use harness::election::Answer;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::embedded::Machine;
use crate::guarded::Guarded;
use crate::{PROGRAM, bare};

/// Whether these bytes contain the secret.
fn hold_it(bytes: &[u8]) -> bool {
    bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes())
}

/// The data about a process that all users may read, and those that only its owner may read; empty if the process is gone.
fn shown(process: Process, part: &str) -> Vec<u8> {
    fs::read(Path::new("/proc").join(process.pid.to_string()).join(part)).unwrap_or_default()
}

fn assert_hidden(processes: impl IntoIterator<Item = Process>) {
    for process in processes {
        for part in ["cmdline", "environ"] {
            let shown = shown(process, part);
            assert!(!hold_it(&shown), "{part} of {process:?}: {}", String::from_utf8_lossy(&shown));
        }
    }
}

fn assert_shown_to_nobody(run: &Running) {
    assert!(!hold_it(format!("{run:?}").as_bytes()), "the secret was logged");
}

/// The operator's login, one property per line.
fn lines() -> String {
    let lines = Account::Operator.properties().into_iter().map(|(key, value)| format!("{key}={value}\n"));
    lines.collect::<Vec<_>>().concat()
}

/// Creates a file with this content and mode.
fn file(directory: &Path, content: &str, mode: u32) -> PathBuf {
    let file = directory.join("properties");
    fs::write(&file, content).expect("the directory is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("the file's mode can be set");
    file
}

/// This includes every kind of process: health command, hooks, a job with a child, librdkafka at its most verbose level, and a guard
/// that releases the term after the supervisor's death.
#[test]
fn a_secret_from_a_file_is_in_no_other_place() {
    let guarded = Guarded::new(Elector::Group);
    let properties = file(guarded.election.directory(), &(lines() + "debug=all\n"), 0o600);
    let candidate = guarded.candidate(Elector::Group, &[]).option("--properties", &properties).flag("-v");
    let beside = candidate.clone().option("--health-cmd", "sleep 600").option("--health-interval", "1ms");
    let beside = beside.option("--health-timeout", "10m").option("--on-lead", "sleep 600");
    let mut run = beside.job(guarded.election.witness().with("--child").command()).start();
    let term = run.await_lead();
    guarded.election.await_witness(term);
    let supervisor = run.process();
    let sleeps = |process: &Process| process.name().as_deref() == Some("sleep");
    wait::until_true("a health command and a hook", || {
        supervisor.descendants().iter().filter(|process| sleeps(process)).count() >= 2
    });
    let family = supervisor.descendants();
    assert!(family.len() >= 5, "guard, job, its child, health command, hook: {family:?}");
    assert_hidden(family);
    assert_hidden([supervisor]);

    let guard = run.guard();
    run.signal(Signal::SIGKILL);
    while guard.lives() {
        assert_hidden([guard]);
    }
    let verdicts = guarded.election.verdicts();
    assert!(verdicts.iter().any(|verdict| verdict["record"]["why"] == "supervisor-died"));
    run.status();
    run.await_silence();
    assert_shown_to_nobody(&run);
    let spoken_of = |run: &Running| format!("{run:?}").contains("sasl.password");
    assert!(spoken_of(&run), "librdkafka says what it was configured with, and redacts it");

    let mut run = candidate.option("--log-format", "text").job(["true"]).start();
    assert_eq!(run.status(), 0);
    assert!(spoken_of(&run));
    assert_shown_to_nobody(&run);
}

/// A secret from the environment is removed from the environment of all child processes.
#[test]
fn a_secret_from_the_environment_is_removed_from_that_of_all_children() {
    let guarded = Guarded::new(Elector::Log);
    let candidate = guarded.candidate(Elector::Log, &[]).variable("NELI_RUN_PROPERTY", lines());
    let mut run = candidate.job(["sh", "-c", "env -0; sleep 600"]).start();
    run.await_lead();
    run.await_job();
    let family = || run.process().descendants();
    // The process is found by its name, because the third process may be `env`, whose output is read below.
    let sleeps = |process: &Process| process.name().as_deref() == Some("sleep");
    wait::until_true("the job has shown its environment and sleeps", || family().iter().any(sleeps));
    assert!(family().len() >= 3, "guard, shell, sleep");
    assert_hidden(family());
    assert!(hold_it(&shown(run.process(), "environ")), "else there is nothing to hide");
    run.signal(Signal::SIGTERM);
    run.status();
    let environment = run.output();
    assert!(environment.starts_with(b"NELI") || environment.windows(5).any(|window| window == b"\0NELI"));
    assert!(!hold_it(&environment));
    assert!(!environment.windows(17).any(|window| window == b"NELI_RUN_PROPERTY"));
    assert_shown_to_nobody(&run);
}

/// The embedded broker outlives the candidate that started it, and gets no secret that it does not need.
#[test]
fn the_embedded_broker_gets_no_secret_that_it_does_not_need() {
    let machine = Machine::new();
    let mut run = machine.candidate().variable("NELI_RUN_PROPERTY", format!("sasl.password={PASSWORD}")).start();
    run.await_lead();
    let broker = machine.broker().expect("a broker");
    assert_hidden(run.process().descendants().into_iter().chain([broker]));
    run.signal(Signal::SIGTERM);
    run.status();
    assert_shown_to_nobody(&run);
}

/// A wrong property gets one line, which does not contain its value.
#[test]
fn a_refused_property_is_reported_without_its_value() {
    let directory = harness::install::scratch();
    let at_all = ["--group", "g", "--brokers", "127.0.0.1:1"];
    let judge = |arguments: &[&str], variable: Option<&[u8]>| {
        let mut run = Command::new(PROGRAM);
        run.args(at_all).args(arguments).args(["--", "true"]);
        if let Some(lines) = variable {
            run.env("NELI_RUN_PROPERTY", std::ffi::OsStr::from_bytes(lines));
        }
        let Answer { text, errors, status } = Answer::of(run);
        assert_eq!((text.as_str(), status), ("", 125), "{errors}");
        assert!(!errors.is_empty() && !hold_it(errors.as_bytes()), "{errors}");
        errors
    };
    let wrong = [
        // These have no value, or no name.
        "correct horse",
        "sasl.password:correct horse",
        "=correct horse",
        // This name is misspelt.
        "sasl.pasword=correct horse",
        "sasl.password.=correct horse",
        // This is a property of Kafka's Java client.
        "sasl.jaas.config=PlainLoginModule required password=\"correct horse\";",
        "ssl.truststore.password=correct horse",
        // These are a value of the wrong kind or out of range, a property that this build lacks, and one that the user may not set.
        "socket.keepalive.enable=correct horse",
        "socket.timeout.ms=correct horse",
        "security.protocol=correct horse",
        "sasl.mechanisms=correct horse",
        "compression.codec=correct horse",
        "bootstrap.servers=correct horse",
        "plugin.library.paths=correct horse",
        "sasl.oauthbearer.method=correct horse",
    ];
    for property in wrong {
        assert_eq!(judge(&["--property", property], None).lines().count(), 1);
        assert_eq!(judge(&[], Some(property.as_bytes())).lines().count(), 1);
        let file = file(directory.path(), &format!("# ours\n{property}\n"), 0o600);
        let shown = judge(&["--properties", file.to_str().expect("UTF-8")], None);
        assert!(shown.contains("line 2") && shown.lines().count() == 1, "{shown}");
    }
    judge(&[], Some(b"sasl.password=correct horse\xff"));
    judge(&["--propery", "sasl.password=correct horse"], None);
    judge(&["--propery=sasl.password=correct horse"], None);
    judge(&["--sasl.password=correct horse"], None);
    judge(&["-Xsasl.password=a", "-psasl.password=correct horse"], None);
    judge(&["--properties", "sasl.password=correct horse"], None);
}

/// If other users may read the file of a secret, one warning says so, with the right mode.
#[test]
fn a_file_of_a_secret_that_others_may_read_is_warned_of() {
    for mode in [0o604, 0o644] {
        let directory = harness::install::scratch();
        let path = file(directory.path(), &lines(), mode);
        let run = bare().option("--group", "g").option("--brokers", "127.0.0.1:1").option("--properties", &path);
        let mut run = run.job(["true"]).start();
        run.await_event("broker_down");
        run.signal(Signal::SIGTERM);
        assert_eq!(run.status(), 143);
        let about = |message: &&str| message.contains("secret");
        let warnings = run.events("warning");
        let warnings: Vec<&str> = warnings.iter().map(|event| event.text("message")).filter(about).collect();
        let [warning] = warnings[..] else { panic!("{warnings:?}") };
        for word in [path.to_str().expect("UTF-8"), "every user of this machine", &format!("{mode:04o}"), "chmod o-r"] {
            assert!(warning.contains(word), "{word} is not in {warning}");
        }
        assert_shown_to_nobody(&run);
    }
}
