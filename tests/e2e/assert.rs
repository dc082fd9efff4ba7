//! `assert`: whether a job may still act. Inside the job it reads the lease descriptor, elsewhere the journal.

use std::fs;
use std::process::Command;

use harness::candidate::Elector;
use harness::election::{Answer, TestElection};
use harness::kafka::Kafka;
use harness::not_tested;
use harness::schema::Schema;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{PROGRAM, election};

/// The lines that a job's shell prints for these commands. The shell then runs until the test ends it.
fn job(election: &TestElection, script: &str) -> Vec<String> {
    let file = election.directory().join("told");
    let script = format!("{{ {script}; echo end; }} > {} 2>&1; exec sleep 1000", file.display());
    // The job gets these options as environment variables as well.
    let candidate = election.candidate().lease("10s").variable("NELI_RUN_GROUP", &election.group);
    let candidate = candidate.variable("NELI_RUN_BROKERS", Kafka::shared().address());
    let mut run = candidate.job(["bash", "-c", &script]).start();
    run.await_job();
    let is_whole = || fs::read_to_string(&file).is_ok_and(|text| text.ends_with("end\n"));
    wait::until_true("all that the job says", is_whole);
    election.close([run]);
    fs::read_to_string(&file).expect("the file can be read").lines().map(str::to_owned).collect()
}

/// Inside the job Kafka is not asked: the one in the variables does not exist.
#[test]
fn inside_a_job_its_lease_gives_the_answer() {
    let election = election(Elector::Log);
    let script = format!(
        "export NELI_RUN_BROKERS=127.0.0.1:1; {PROGRAM} assert; echo $?; {PROGRAM} assert --min-left 5s; echo $?; \
         {PROGRAM} assert --min-left 11s; echo $?; {PROGRAM} assert --json"
    );
    let printed = job(&election, &script);
    assert_eq!((printed[0].as_str(), printed[1].as_str()), ("0", "0"), "{printed:?}");
    assert!(
        printed[2].starts_with("neli-run: the leader, but not for long enough: ")
            && printed[2].ends_with(", and --min-left is 11s"),
        "{printed:?}"
    );
    assert_eq!(printed[3], "83");
    let object = serde_json::from_str(&printed[4]).expect("JSON");
    Schema::read(include_str!("../../docs/json.md"), "assert").assert_holds(&object);
    assert_eq!((object["by"].as_str(), object["leads"].as_bool()), (Some("lease"), Some(true)), "{object}");
    assert!(object["left_ms"].as_u64().is_some_and(|left| (1..=10_000).contains(&left)), "{object}");
}

/// Some languages close inherited descriptors in their child processes, and the number of the lease descriptor may then belong to another
/// file.
#[test]
fn without_the_lease_s_descriptor_the_journal_gives_the_answer() {
    let election = election(Elector::Log);
    let script = format!(
        "for fd in '' 0 99 x; do NELI_LEASE_FD=$fd {PROGRAM} assert --json; done; \
         eval \"exec $NELI_LEASE_FD</dev/zero\"; {PROGRAM} assert --json"
    );
    for line in &job(&election, &script)[..5] {
        assert!(line.contains(r#""leads":true,"by":"journal""#), "{line}");
    }
}

/// The topic, the brokers and the properties are given on the command line of `neli-run`, and not by variables; the job's own variables
/// contain them.
#[test]
fn inside_a_job_a_subcommand_finds_its_election_by_itself() {
    let election = election(Elector::Log);
    let (topic, file, told) =
        (format!("{}.elsewhere", election.group), election.directory().join("p"), election.directory().join("told"));
    fs::write(&file, "client.id=of-the-file\n").expect("the file can be written");
    let script = format!(
        "exec > {} 2>&1; eval \"exec $NELI_LEASE_FD</dev/zero\"; {PROGRAM} assert --json; {PROGRAM} assert --json --epoch $NELI_EPOCH; \
         {PROGRAM} status --json; echo $NELI_PROPERTIES; NELI_RUN_TOPIC=of-a-shell {PROGRAM} status --json; {PROGRAM} status -g other; \
         echo end; exec sleep 1000",
        told.display()
    );
    let candidate = election.candidate().option("--topic", &topic).option("--properties", &file);
    // The command line takes precedence over a variable. The job does not get a variable that had no effect.
    let candidate = candidate.variable("NELI_RUN_GROUP", "another").variable("NELI_RUN_EMBEDDED", "1");
    let mut run = candidate.job(["bash", "-c", &script]).start();
    let is_whole = || fs::read_to_string(&told).is_ok_and(|text| text.ends_with("end\n"));
    wait::until_true("all that the job says", is_whole);
    let text = fs::read_to_string(&told).expect("the file can be read");
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[..2] {
        assert!(line.contains(r#""leads":true,"by":"journal""#), "{text}");
    }
    assert_eq!(lines[3], file.to_str().expect("UTF-8"), "{text}");
    for line in [lines[2], lines[4]] {
        assert!(line.contains(&format!(r#""group":"{}","role":"0","topic":"{topic}""#, election.group)), "{text}");
        assert!(line.contains(r#""state":"led""#), "{text}");
    }
    assert!(
        lines[5].starts_with("neli-run: topic \"other.neli\" does not exist"),
        "another group, another topic: {text}"
    );
    run.signal(Signal::SIGTERM);
    run.status();
}

/// Options of a command line are not environment variables: the job's children do not have them.
#[test]
fn without_the_descriptor_and_the_variables_the_error_names_the_closed_descriptor() {
    let election = election(Elector::Log);
    let script = format!(
        "unset NELI_GROUP NELI_RUN_GROUP NELI_RUN_BROKERS; eval \"exec $NELI_LEASE_FD</dev/zero\"; {PROGRAM} assert; echo $?"
    );
    let printed = job(&election, &script);
    assert!(
        printed[0].contains("(NELI_LEASE_FD) tells nothing here: a program on the way has closed it"),
        "{printed:?}"
    );
    assert!(printed[0].contains("--group is required") && printed[1] == "125", "{printed:?}");
}

/// `assert` fails in a job of an older term, and in a job that outlived its lease.
#[test]
fn outside_a_job_the_journal_gives_the_answer_for_each_term() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--name", "first").start();
    let old = first.await_lead();
    let mut second = election.candidate().option("--name", "second").start();
    second.await_event("standby");
    let assert = |term: u64| election.ask("assert", &["--epoch", &term.to_string()]);
    assert_eq!(assert(old), Answer { text: String::new(), errors: String::new(), status: 0 });
    first.signal(Signal::SIGTERM);
    let new = second.await_lead();
    let line = format!("neli-run: not the leader: second leads, term {new}\n");
    assert_eq!(assert(old), Answer { text: String::new(), errors: line, status: 83 });
    assert_eq!(assert(new).status, 0);
    let answer = election.ask("assert", &["--epoch", &new.to_string(), "--min-left", "1m"]);
    assert!(answer.errors.ends_with(" of the lease is left, and --min-left is 1m\n"), "{answer:?}");
    second.signal(Signal::SIGTERM);
    second.status();
    let answer = assert(new);
    assert!(answer.errors.starts_with("neli-run: not the leader: no leader: second released term "), "{answer:?}");
    assert_eq!(answer.status, 83);
    election.close([first, second]);
}

#[test]
fn without_a_broker_the_answer_is_unknown() {
    let mut command = Command::new(PROGRAM);
    command.args(["assert", "--group", "g", "--brokers", "127.0.0.1:1", "--epoch", "7", "--timeout", "2s"]);
    let answer = Answer::of(command);
    assert_eq!((answer.text.as_str(), answer.status), ("", 4), "{answer:?}");
    assert!(answer.errors.starts_with("neli-run: can't tell whether term 7 is led: 127.0.0.1:1"), "{answer:?}");
}

/// There the clock of the deadline may be shifted by any time.
#[test]
fn in_another_time_namespace_the_journal_gives_the_answer() {
    const UNSHARE: &str = "unshare --user --map-root-user --time --fork";
    let words: Vec<&str> = UNSHARE.split(' ').chain(["true"]).collect();
    if !Command::new(words[0]).args(&words[1..]).output().is_ok_and(|tried| tried.status.success()) {
        return not_tested("no time namespace can be made here");
    }
    let election = election(Elector::Log);
    // 100,000 s are more than any lease.
    let script = format!(
        "for shift in 0 100000; do {UNSHARE} --boottime $shift {PROGRAM} assert --json; done; \
         {UNSHARE} env -u NELI_RUN_BROKERS -u NELI_BROKERS {PROGRAM} assert; echo $?; {PROGRAM} assert --json"
    );
    let printed = job(&election, &script);
    for line in &printed[..2] {
        assert!(line.contains(r#""leads":true,"by":"journal""#), "{printed:?}");
    }
    assert!(printed[2].contains("this process is in another time namespace than the job"), "{printed:?}");
    assert_eq!(printed[3], "125", "{printed:?}");
    assert!(printed[4].contains(r#""leads":true,"by":"lease""#), "{printed:?}");
}
