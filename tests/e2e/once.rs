//! `--once`: the job succeeds once per key, whichever candidate starts it and however a run ends.

use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::cluster::Cluster;
use harness::election::TestElection;
use harness::kafka::{Broker, Wired};
use harness::network::{Flow, LinkConditions};
use harness::wait;
use nix::sys::signal::Signal;

use crate::embedded::Machine;
use crate::guarded::assert_refused;
use crate::{PROGRAM, election, noted_runs};

pub(crate) const KEY: &str = "v1.42";

/// How many runs have begun.
pub(crate) fn runs(election: &TestElection) -> usize {
    noted_runs::lines(election).len()
}

/// A candidate whose job writes a line when it begins, and then runs this script.
pub(crate) fn once(election: &TestElection, script: &str) -> Candidate {
    election.candidate().option("--once", KEY).job(noted_runs::job(election, "$NELI_NAME $NELI_ONCE", script))
}

fn topic_of_facts(election: &TestElection) -> String {
    format!("{}.once", election.topic())
}

pub(crate) fn await_run(election: &TestElection, nth: usize) {
    wait::until_true("a run", || runs(election) == nth);
}

/// Asserts that the candidate exits without a run: with this status, and with one line that names the runner.
fn assert_skipped(run: &mut Running, by: &str, (status, exit): (i32, u64)) {
    assert_eq!(run.status(), status, "{run:?}");
    let skipped = run.await_event("once_skipped");
    assert_eq!((skipped.text("key"), skipped.text("by"), skipped.number("exit")), (KEY, by, exit));
    assert!(!skipped.text("at").is_empty() && skipped.fields["term"].is_u64(), "{skipped:?}");
    // With -q the line of a key that has failed is shown, because it says what to do.
    assert_eq!(skipped.text("level"), if exit == 0 { "info" } else { "warning" });
    assert!(run.events("job_started").is_empty(), "{run:?}");
}

/// Three candidates start at one time, as from crontabs, and one starts late.
#[test]
fn three_starts_run_once() {
    let election = election(Elector::Group);
    let job = election.until_go_file();
    let mut starts: Vec<(&str, Running)> =
        ["a", "b", "c"].map(|name| (name, once(&election, &job).option("--name", name).start())).into();
    await_run(&election, 1);
    let lines = noted_runs::lines(&election);
    let (runner, key) = lines[0].split_once(' ').expect("a name and a key");
    assert_eq!(key, KEY);
    for (_, start) in starts.iter_mut().filter(|(name, _)| *name != runner) {
        start.await_event("standby");
    }
    election.create_go_file();
    for (name, start) in &mut starts {
        if *name == runner {
            assert_eq!(start.status(), 0);
        } else {
            assert_skipped(start, runner, (0, 0));
            assert!(start.events("leading").is_empty(), "the release says that nobody is to lead: {start:?}");
        }
    }
    let mut late = once(&election, "true").option("--done-status", "9").start();
    assert_skipped(&mut late, runner, (9, 0));
    assert!(late.events("claiming").is_empty(), "{late:?}");
    // Another key is independent.
    let mut other = once(&election, "true").option("--once", "v1.43").start();
    assert_eq!(other.status(), 0);
    assert_eq!(runs(&election), 2);
}

/// A failed run is repeated on another machine. Where that is slow, the first one tries again before, with a back-off that doubles each time.
#[test]
fn a_failure_is_tried_again_elsewhere() {
    let election = election(Elector::Log);
    let job = format!("{}; [ $NELI_NAME != a ] || exit 3", election.until_go_file());
    let candidate = |name: &str| once(&election, &job).option("--name", name).option("--retries", "9");
    let mut first = candidate("a").start();
    await_run(&election, 1);
    let mut second = candidate("b").start();
    second.await_event("standby");
    election.create_go_file();
    assert_eq!(first.await_release().text("why"), "failed");
    assert_eq!(second.status(), 0);
    assert_eq!(first.status(), 0);
    assert_eq!(first.await_event("once_skipped").text("by"), "b");
    let attempts = first.events("job_started").len() + 1;
    assert_eq!(runs(&election), attempts, "`b` runs once");
    assert_eq!(second.await_event("job_started").number("attempt"), u64::try_from(attempts).expect("a small number"));
}

#[test]
fn failures_are_counted_across_machines_and_then_everybody_has_the_status() {
    let election = election(Elector::Log);
    let candidate = |name: &str| once(&election, "exit 3").option("--name", name).option("--retries", "1");
    let mut first = candidate("a").start();
    assert_eq!(first.status(), 3);
    assert_eq!(runs(&election), 2, "one candidate alone tries again itself");
    let mut second = candidate("b").start();
    assert_skipped(&mut second, "a", (3, 3));
    let mut third = candidate("c").option("--retries", "2").start();
    assert_eq!(third.status(), 3);
    assert_eq!(runs(&election), 3);
}

/// Whatever ends the run other than the job itself, another candidate runs the key.
#[test]
fn a_runner_that_is_gone_has_not_done_it() {
    for gone in ["supervisor", "machine", "stopped", "fenced"] {
        let election = election(Elector::Log);
        let job = election.until_go_file();
        let candidate = |name: &str| once(&election, &job).lease("4s").option("--name", name);
        let mut first = candidate("a").start();
        await_run(&election, 1);
        let mut second = candidate("b").start();
        second.await_event("standby");
        match gone {
            "supervisor" => first.signal(Signal::SIGKILL),
            // Kills supervisor, guard and job.
            "machine" => drop(first),
            // It sends no beat, so its guard kills the job at the lease's end.
            "fenced" => {
                first.signal(Signal::SIGSTOP);
                await_run(&election, 2);
                first.signal(Signal::SIGCONT);
                first.await_event("fenced");
                election.create_go_file();
                assert_eq!(first.status(), 0, "it stands by again: {first:?}");
                assert_eq!(first.await_event("once_skipped").text("by"), "b");
            }
            _ => {
                first.signal(Signal::SIGTERM);
                assert_eq!(first.status(), 143);
                let _ = first.await_release();
            }
        }
        await_run(&election, 2);
        election.create_go_file();
        assert_eq!(second.status(), 0, "{gone}");
        assert_skipped(&mut candidate("c").start(), "b", (0, 0));
        assert_eq!(runs(&election), 2, "{gone}");
    }
}

/// A job that ends with 0 when it is told to stop has not succeeded: status and line say so, and the next candidate runs it.
#[test]
fn a_stopped_run_that_ends_with_0_is_not_done() {
    let election = election(Elector::Log);
    let mut first = stopped(&election, 0);
    assert_eq!(first.status(), 143);
    assert_not_done(&mut first, "neli-run", "stopped by SIGTERM");
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 3);
}

/// 0 would say that the key is done. A status that is the job's needs the line too, or `-q` would show nothing.
#[test]
fn a_candidate_that_is_stopped_or_ended_before_the_key_is_done_says_so() {
    let election = election(Elector::Log);
    let mut first = stopped(&election, 3);
    assert_eq!(first.status(), 3);
    assert_not_done(&mut first, "job", "stopped by SIGTERM");
    let mut leader = once(&election, "sleep 1000").start();
    leader.await_lead();
    let mut standby = once(&election, "true").start();
    standby.await_event("standby");
    let answer = election.ask("end", &["--force"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    for ended in [&mut leader, &mut standby] {
        assert_eq!(ended.status(), 75);
        assert_not_done(ended, "neli-run", "the election was ended");
    }
    assert_eq!(once(&election, "true").start().status(), 0, "nothing was recorded as done");
}

/// A candidate that was told to stop while its job ran, which ends with this status then.
fn stopped(election: &TestElection, status: u8) -> Running {
    let runs_file = noted_runs::file(election);
    let trapped = format!("trap 'exit {status}' TERM; echo trapped >> {}; sleep 1000 & wait", runs_file.display());
    let candidate = once(election, &trapped).start();
    await_run(election, 2);
    candidate.signal(Signal::SIGTERM);
    candidate
}

fn assert_not_done(candidate: &mut Running, from: &str, what: &str) {
    let exiting = candidate.await_event("exiting");
    assert_eq!((exiting.text("level"), exiting.text("from")), ("warning", from));
    assert_eq!(exiting.text("why"), format!("{what} before the key was known to be done (--once, --window)"));
}

#[test]
fn facts_of_a_key_outlive_the_journal() {
    let election = election(Elector::Log);
    assert_eq!(once(&election, "true").option("--name", "a").start().status(), 0);
    let kafka = harness::kafka::Kafka::shared();
    assert_eq!(kafka.topic_setting(&topic_of_facts(&election), "cleanup.policy"), "compact,delete");
    assert_eq!(kafka.topic_setting(&topic_of_facts(&election), "retention.ms"), "7776000000");
    for (setting, value) in
        [("segment.ms", "3600000"), ("min.compaction.lag.ms", "3600000"), ("min.cleanable.dirty.ratio", "0.1")]
    {
        assert_eq!(kafka.topic_setting(&topic_of_facts(&election), setting), value);
    }
    kafka.delete_topic(&election.topic());
    assert_skipped(&mut once(&election, "true").start(), "a", (0, 0));
    assert_eq!(runs(&election), 1);
}

/// The topic of facts is as safe as the journal, also if a journal that was made by hand has less replicas than there could be.
#[test]
fn the_topic_of_facts_has_the_replicas_of_the_journal() {
    let cluster = Cluster::shared();
    let kafka = cluster.kafka();
    for (of_journal, least) in [(3, "2"), (2, "1")] {
        let election = TestElection::new(PROGRAM, &kafka, Elector::Log);
        if of_journal < 3 {
            kafka.create_replicated_topic(&election.topic(), 2, &[]);
        }
        let mut run = once(&election, "true").start();
        assert_eq!(run.status(), 0);
        // On a busy machine Kafka may make the topic after the request for it has timed out: then no one has created it, as far as is known.
        let metadata = kafka.metadata();
        let of_facts = metadata.topics().iter().find(|topic| topic.name() == topic_of_facts(&election));
        let replicas = of_facts.map(|topic| topic.partitions()[0].replicas().len());
        assert_eq!(replicas, Some(of_journal), "{:?}", run.events("topic_created"));
        assert_eq!(kafka.topic_setting(&topic_of_facts(&election), "min.insync.replicas"), least);
    }
}

/// The option sets for how long a key is known, by the clock of the brokers: until then nothing runs, and after that the key runs again.
#[test]
fn a_key_is_known_for_as_long_as_the_option_says() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let broker = Broker::with_a_clock();
    let kafka = broker.kafka();
    let election = TestElection::new(PROGRAM, &kafka, Elector::Log);
    let candidate = |name: &str| once(&election, "true").option("--once-retention", "2d").option("--name", name);
    assert_eq!(candidate("a").start().status(), 0);
    assert_eq!(kafka.topic_setting(&topic_of_facts(&election), "retention.ms"), "172800000");
    // The journal's records tell of the run as well, and are kept for a day.
    let forget_journal = || {
        kafka.delete_topic(&election.topic());
    };
    broker.pass(47 * HOUR);
    forget_journal();
    assert_skipped(&mut candidate("b").start(), "a", (0, 0));
    broker.pass(49 * HOUR);
    forget_journal();
    wait::until_true("facts that are deleted", || {
        harness::journal::read(&kafka, &topic_of_facts(&election)).is_empty()
    });
    let mut again = candidate("c").start();
    assert_eq!(again.status(), 0);
    assert!(again.events("warning").is_empty(), "what was forgotten in time is no trouble: {again:?}");
    assert_eq!(runs(&election), 2);
    assert_skipped(&mut candidate("d").start(), "c", (0, 0));
}

/// A topic of facts that exists keeps its settings: one warning says that a key will be forgotten too early.
#[test]
fn a_topic_that_forgets_keys_too_early_is_warned_of() {
    let kafka = harness::kafka::Kafka::shared();
    let election = election(Elector::Log);
    let name = topic_of_facts(&election);
    kafka.create_topic(&name, &[("cleanup.policy", "compact,delete"), ("retention.ms", "86400000")]);
    let too_early =
        "retention.ms=86400000: a key is forgotten, and runs again, earlier than --once-retention says (172800000)";
    let mut longer = once(&election, "true").option("--once-retention", "2d").start();
    assert_eq!(longer.status(), 0);
    assert_eq!(longer.warnings_with(too_early).len(), 1, "{longer:?}");
    let mut shorter = once(&election, "true").option("--once", "v1.43").option("--once-retention", "1d").start();
    assert_eq!(shorter.status(), 0);
    assert!(shorter.warnings_with("earlier than --once-retention says").is_empty(), "{shorter:?}");
    assert_eq!(kafka.topic_setting(&name, "retention.ms"), "86400000");
}

/// The topic of facts was deleted: it is created again, and this is logged.
#[test]
fn a_topic_of_facts_that_was_deleted_is_made_anew_with_a_warning() {
    let election = election(Elector::Log);
    let mut first = once(&election, "true").start();
    assert_eq!(first.status(), 0);
    let created = first.events("topic_created");
    assert!(created.iter().any(|event| event.text("topic") == topic_of_facts(&election)), "{created:?}");
    let lost = "the topic of facts was missing and is created again";
    assert!(first.warnings_with(lost).is_empty(), "{first:?}");
    let kafka = harness::kafka::Kafka::shared();
    kafka.delete_topic(&topic_of_facts(&election));
    let mut run = once(&election, "true").option("--once", "v1.43").start();
    assert_eq!(run.status(), 0);
    assert_eq!(run.warnings_with(lost).len(), 1, "{run:?}");
}

/// The topic of facts is deleted while the job runs: the runner creates it again to record the outcome.
#[test]
fn a_topic_of_facts_that_is_deleted_during_the_run_is_made_anew_for_the_outcome() {
    let election = election(Elector::Log);
    let job = election.until_go_file();
    let mut runner = once(&election, &job).option("--name", "a").lease("5s").start();
    await_run(&election, 1);
    harness::kafka::Kafka::shared().delete_topic(&topic_of_facts(&election));
    election.create_go_file();
    assert_eq!(runner.status(), 0, "{runner:?}");
    assert_eq!(runner.warnings_with("the topic of facts was missing and is created again").len(), 1, "{runner:?}");
    assert_skipped(&mut once(&election, "true").start(), "a", (0, 0));
}

/// An account that may not create topics gets the missing topic's name, and an unsuitable topic of facts is refused with the reason.
#[test]
fn a_topic_of_facts_that_is_missing_or_wrong_is_refused() {
    let kafka = harness::kafka::Kafka::shared();
    let election = election(Elector::Log);
    kafka.create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let name = topic_of_facts(&election);
    let run = once(&election, "true").flag("--no-create-topic").start();
    assert_refused(run, &[&format!("topic \"{name}\": it does not exist")]);
    kafka.create_topic(&name, &[("cleanup.policy", "delete")]);
    let run = once(&election, "true").start();
    assert_refused(run, &[&name, "cleanup.policy=delete: must be compact or compact,delete"]);
    assert_eq!(runs(&election), 0);
}

/// A fact that can't be decoded: nothing runs, and the log says why.
#[test]
fn facts_that_can_not_be_read_are_no_reason_to_run() {
    let kafka = harness::kafka::Kafka::shared();
    let election = election(Elector::Log);
    let name = topic_of_facts(&election);
    kafka.create_topic(&name, &[("cleanup.policy", "compact")]);
    let key = format!("{}/{KEY}", election.key());
    let pen = harness::journal::Pen::new(kafka, &name, &[]);
    pen.write(&key, &[b"of another program"]);
    let mut run = once(&election, "true").lease("4s").option("--on-loss", "exit").start();
    assert_eq!(run.await_release().text("why"), "facts-unavailable");
    assert_eq!(run.status(), 80);
    assert_eq!(run.warnings_with("a record of the key is in no form that this version knows").len(), 1, "{run:?}");
    assert_eq!(runs(&election), 0);
    // A tombstone for the fact lets the key run.
    pen.write_tombstone(&key);
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 1);
}

/// Kafka stores no fact between the job's end and the acknowledgement: the lead is kept, so no other candidate runs the job.
#[test]
fn an_outcome_that_can_not_be_recorded_is_waited_for() {
    let kafka = harness::kafka::Kafka::shared();
    let election = election(Elector::Log);
    let name = topic_of_facts(&election);
    kafka.create_topic(&name, &[("cleanup.policy", "compact")]);
    let job = election.until_go_file();
    let mut runner = once(&election, &job).option("--name", "a").lease("5s").start();
    await_run(&election, 1);
    let mut second = once(&election, &job).option("--name", "b").lease("5s").start();
    second.await_event("standby");
    // No record is that short, so none is accepted.
    kafka.set_topic(&name, &[("cleanup.policy", "compact"), ("max.message.bytes", "1")]);
    election.create_go_file();
    wait::until_true("a warning", || !runner.warnings_with("the run's outcome is not recorded yet").is_empty());
    assert!(runner.events("released").is_empty(), "{runner:?}");
    kafka.set_topic(&name, &[("cleanup.policy", "compact")]);
    assert_eq!(runner.status(), 0);
    assert_skipped(&mut second, "a", (0, 0));
    assert_skipped(&mut once(&election, "true").start(), "a", (0, 0));
    assert_eq!(runs(&election), 1);
}

/// The link is down from before the job's end until all that was sent is given up, and another candidate's run fails meanwhile. The success
/// is recorded before its candidate says that it is known, and is the same for all.
#[test]
fn an_outcome_that_was_not_recorded_within_the_lease_is_recorded_after_it() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut runner = once(&election, &election.until_go_file()).option("--name", "a").lease("3s").start();
    await_run(&election, 1);
    let brokers = wired.direct().address().to_owned();
    let mut second = once(&election, "exit 3").option("--brokers", brokers).option("--name", "b").lease("3s").start();
    second.await_event("standby");
    wired.wire().set(LinkConditions { there: Flow::Lost, back: Flow::Lost, ..LinkConditions::default() });
    election.create_go_file();
    // Neither the outcome nor the release, which has it too, is under way any more.
    assert_eq!(runner.await_release().fields["delivered"], false);
    assert_eq!(second.status(), 3, "{second:?}");
    wired.wire().set(LinkConditions::default());
    assert_eq!(runner.status(), 0, "{runner:?}");
    let answer = election.ask("status", &["--once", KEY]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_skipped(&mut once(&election, "true").start(), "a", (0, 0));
    assert_eq!(runs(&election), 2);
}

/// A standby waited during a run that fails, and no retries are left: it exits with the recorded status.
#[test]
fn a_standby_goes_with_the_status_of_the_run_that_failed() {
    let election = election(Elector::Log);
    let job = format!("{}; exit 3", election.until_go_file());
    let mut runner = once(&election, &job).option("--name", "a").start();
    await_run(&election, 1);
    let mut second = once(&election, &job).option("--name", "b").start();
    second.await_event("standby");
    election.create_go_file();
    assert_eq!(runner.status(), 3);
    // If its first reading of the facts has ended just before the outcome was recorded, it claims, and reads them again before it would run.
    assert_skipped(&mut second, "a", (3, 3));
    assert_eq!(runs(&election), 1);
}

/// A trial on one machine: the embedded broker holds the topic of facts as well.
#[test]
fn a_key_is_done_once_without_kafka() {
    let machine = Machine::new();
    let candidate = |name: &str| machine.candidate().option("--once", KEY).option("--name", name).job(["true"]);
    let mut keeper = machine.candidate().option("--group", "keeper").start();
    keeper.await_lead();
    assert_eq!(candidate("a").start().status(), 0);
    assert_skipped(&mut candidate("b").start(), "a", (0, 0));
    keeper.signal(Signal::SIGTERM);
    keeper.status();
}
