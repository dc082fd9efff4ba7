//! `--restart`: the job is run again in the same term.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::{Kafka, Wired};
use harness::wait;
use nix::sys::signal::Signal;

use crate::{PROGRAM, election};

/// A candidate whose job is a shell script.
fn script(election: &TestElection, restart: &str, delay: &str, text: &str) -> Candidate {
    election.candidate().option("--restart", restart).option("--restart-delay", delay).job(["sh", "-c", text])
}

/// A job that ends at once and is started again at once. Its changes cause at most ten beats a second in addition to the regular ones.
#[test]
fn a_restart_loop_does_not_flood_the_journal() {
    let election = election(Elector::Log);
    let job = election.candidate().job(["true"]).option("--restart", "always").option("--restart-delay", "0");
    let mut run = job.option("--restart-limit", "none").option("--heartbeat-interval", "1s").start();
    let term = run.await_lead();
    wait::until_true("many runs", || run.events("job_started").len() > 300);
    run.signal(Signal::SIGTERM);
    run.status();
    let (led, released) = (run.events("leading")[0].at, run.await_release().at);
    let seconds = Duration::from_nanos(released - led).as_secs_f64();
    let verdicts = election.verdicts();
    let beats =
        verdicts.iter().filter(|line| line["record"]["kind"] == "beat" && line["record"]["term"] == term).count();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let beats = beats as f64;
    // The test reads log lines slightly after the events.
    assert!(beats <= seconds * 11.0 + 3.0, "{beats} beats in {seconds} s");
}

/// All statuses of a failure, and every signal that ends a process.
#[test]
fn each_exit_status_and_each_signal_of_a_run_is_logged() {
    let election = election(Elector::Log);
    // Signals that do not end a process, and two that the C library reserves and has its children ignore.
    let others = [17, 18, 19, 20, 21, 22, 23, 28, 32, 33];
    let signals: Vec<u64> = (1..=64).filter(|signal| !others.contains(signal)).collect();
    let text = "[ $NELI_ATTEMPT -gt 255 ] || exit $NELI_ATTEMPT
        ulimit -c 0
        shift $((NELI_ATTEMPT - 256))
        [ $# -gt 0 ] || exec sleep 1000
        kill -$1 $$
        sleep 1000";
    let job = ["sh", "-c", text, "sh"].map(str::to_owned).into_iter().chain(signals.iter().map(u64::to_string));
    let candidate = election.candidate().job(job).option("--restart", "always").option("--restart-delay", "0");
    // The shell that runs the tests may ignore some signals.
    let mut run = candidate.option("--restart-limit", "none").start_behind(&["env", "--default-signal"]);

    let ends = (1..=255).map(|status| (status, None)).chain(signals.iter().map(|signal| (128 + signal, Some(*signal))));
    for (status, signal) in ends {
        let exited = run.await_event("job_exited");
        assert_eq!((exited.number("status"), exited.fields["signal"].as_u64()), (status, signal));
    }
    assert_eq!(run.await_event("leading").number("term"), run.await_event("job_started").number("term"));
    assert_eq!(run.events("leading").len(), 1);
    wait::until_true("a run that stays", || run.events("job_started").len() > 255 + signals.len());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    election.close([run]);
}

/// The lead is kept over failures, each of which doubles the delay; the first exit with 0 ends it.
#[test]
fn failures_keep_the_lead_and_a_success_ends_it() {
    let election = election(Elector::Group);
    let directory = tempfile::tempdir().expect("a directory");
    let go = directory.path().join("go");
    let text = format!(
        "until [ -e {} ]; do sleep 0.01; done; echo $NELI_ATTEMPT; [ $NELI_ATTEMPT = 4 ] || exit $NELI_ATTEMPT",
        go.display()
    );
    let mut first = script(&election, "on-failure", "100ms", &text).start();
    let term = first.await_lead();
    let mut second = election.candidate().start();
    second.await_event("standby");
    fs::write(go, "").expect("the directory is ours");
    assert_eq!(first.status(), 0);
    assert_eq!(String::from_utf8(first.output()).expect("UTF-8"), "1\n2\n3\n4\n");
    let delays: Vec<u64> = first.events("restarting").iter().map(|event| event.number("delay_ms")).collect();
    assert_eq!(delays, [100, 200, 400]);
    let (started, exited) = (first.events("job_started"), first.events("job_exited"));
    let attempts: Vec<u64> = started.iter().map(|event| event.number("attempt")).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert!(started.iter().all(|event| event.number("term") == term));
    assert_eq!(exited.iter().map(|event| event.number("status")).collect::<Vec<_>>(), [1, 2, 3, 0]);
    assert_eq!(first.await_release().text("why"), "exited");
    assert!(second.await_lead() > term);

    // The state in the beats, which other candidates can read.
    let beats = election.verdicts().into_iter().map(|line| line["record"].clone());
    let states: Vec<(String, u64)> = beats
        .filter(|record| record["kind"] == "beat" && record["term"] == term)
        .map(|beat| {
            (beat["state"].as_str().unwrap_or_default().to_owned(), beat["attempt"].as_u64().unwrap_or_default())
        })
        .collect();
    for attempt in 1..=3 {
        assert!(states.contains(&("restarting".to_owned(), attempt)), "{states:?}");
    }
    election.close([second]);
}

/// After too many failures on this machine, another machine tries.
#[test]
fn after_too_many_failures_another_machine_leads() {
    let election = election(Elector::Log);
    let mut first = script(&election, "on-failure", "10ms", "exit 3").option("--restart-limit", "2/5m").start();
    let term = first.await_lead();
    let mut second = election.candidate().start();
    assert_eq!(first.status(), 84);
    assert_eq!(first.events("job_exited").len(), 3);
    assert_eq!(first.await_release().text("why"), "restart-limit");
    assert_eq!(first.await_event("exiting").text("from"), "neli-run");
    let next = second.await_lead();
    assert!(next > term);
    election.await_witness(next);
    let release = election.verdicts().into_iter().find(|line| line["record"]["kind"] == "release").expect("a release");
    assert_eq!((&release["record"]["why"], &release["record"]["exit"]), (&"restart-limit".into(), &3.into()));
    election.close([second]);
}

/// With `--restart-limit none` and successes the restarts never end.
#[test]
fn without_a_limit_the_restarts_never_end() {
    let election = election(Elector::Log);
    for (limit, status) in [("none", 1), ("0/1m", 0)] {
        let text = format!("exit {status}");
        let mut run = script(&election, "always", "0", &text).option("--restart-limit", limit).start();
        wait::until_true("many runs", || run.events("job_started").len() > 30);
        run.signal(Signal::SIGKILL);
        run.status();
    }
}

/// A stop, an `end` and a loss between two runs take effect at once. The exit status is that of the last run.
#[test]
fn a_stop_an_end_or_a_loss_between_two_runs_takes_effect_at_once() {
    for what in ["end", "resign", "stop", "quit"] {
        let election = election(Elector::Log);
        let mut run = script(&election, "always", "10m", "exit 7").option("--on-loss", "exit").start();
        let term = run.await_lead();
        run.await_event("restarting");
        let request = |what: &str, term: &str| {
            let text = format!(r#"{{"v":1,"kind":"request","what":"{what}","term":{term},"by":"me","reason":"why"}}"#);
            Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[text.as_bytes()]);
        };
        let (why, status) = match what {
            "end" => {
                request("end", "null");
                ("ended", 0)
            }
            "resign" => {
                request("resign", &term.to_string());
                ("resigned", 80)
            }
            "stop" => {
                run.signal(Signal::SIGTERM);
                ("stopped", 7)
            }
            _ => {
                run.signal(Signal::SIGQUIT);
                ("stopped", 7)
            }
        };
        assert_eq!(run.status(), status, "{what}");
        let released = run.await_release();
        assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), (why, Some(true)));
        assert_eq!(run.events("job_started").len(), 1, "{what}");
        assert!(run.events("stopping").is_empty(), "no job ran, so none was stopped");
    }
}

/// Kafka stops between two runs: the lease ends, and the term with it. No run starts after the lease's end.
#[test]
fn no_run_starts_after_a_lease_that_ends_between_two_runs() {
    let wired = Wired::take();
    for (on_loss, delay) in [("exit", "10m"), ("standby", "2s")] {
        let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
        let candidate = script(&election, "always", delay, "exit 7").lease("3s").option("--on-loss", on_loss);
        let mut run = candidate.option("--fence-warning", "0").start();
        let term = run.await_lead();
        run.await_event("restarting");
        wired.freeze();
        let fenced = run.await_event("fenced");
        assert_eq!((fenced.number("term"), fenced.text("why")), (term, "fenced"));
        if on_loss == "exit" {
            assert_eq!(run.status(), 80);
            wired.thaw();
            continue;
        }
        wired.thaw();
        let again = wait::until("a run under a later term", || {
            run.events("job_started").into_iter().find(|event| event.number("term") > term)
        });
        assert_eq!(again.number("attempt"), 1);
        run.signal(Signal::SIGKILL);
        run.status();
    }
}

/// The next run waits for the end of the old tree, and then for the delay.
#[test]
fn the_next_run_waits_for_the_end_of_the_old_tree() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--daemon").set("--end-ms", 100).set("--status", 1);
    let candidate =
        election.candidate().job(job.command()).option("--restart", "on-failure").option("--restart-delay", "0");
    let mut run = candidate.option("--stop-timeout", "300ms").option("--restart-limit", "2/5m").start();
    let term = run.await_lead();
    assert_eq!(run.status(), 84);
    election.assert_gone(term);

    // The first and last line of each run's processes. The line of a main process begins a run.
    let testimony = election.testimony();
    let starts: Vec<u64> = testimony.starts().map(|line| line.at).collect();
    assert_eq!(starts.len(), 3);
    let mut spans: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    for line in testimony.of(term) {
        spans.entry(line.pid).or_insert((line.at, line.at)).1 = line.at;
    }
    for next in &starts[1..] {
        let across: Vec<_> = spans.values().filter(|(first, last)| first < next && last >= next).collect();
        assert!(across.is_empty(), "alive when the next run began: {across:?}");
    }
    election.close([run]);
}

/// If the command was deleted while the candidate stood by, the run fails with the exit status of a failed exec. It is tried again like any
/// other failed run.
#[test]
fn a_command_that_was_deleted_is_a_failed_run() {
    use std::os::unix::fs::PermissionsExt;
    let election = election(Elector::Log);
    let command = election.directory().join("job");
    let write = |mode| {
        // It is renamed into place, because a file that is open for writing can't be executed.
        let draft = election.directory().join("draft");
        harness::program::write(&draft, "#!/bin/sh\nexit 0\n");
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).expect("the file's mode can be set");
        fs::rename(&draft, &command).expect("renamed");
    };
    for (mode, status) in [(None, 127), (Some(0o644), 126)] {
        write(0o755);
        let mut leader = election.candidate().start();
        leader.await_lead();
        let mut once = election.candidate().job([&command]).start();
        once.await_event("standby");
        match mode {
            None => fs::remove_file(&command).expect("the file can be removed"),
            Some(mode) => write(mode),
        }
        leader.signal(Signal::SIGTERM);
        assert_eq!(once.status(), status);
        let error = once.await_event("error");
        assert!(error.text("message").contains("job"), "{error:?}");
        let exiting = once.await_event("exiting");
        assert_eq!((exiting.number("status"), exiting.text("from")), (u64::try_from(status).expect("positive"), "job"));
        assert_eq!(once.await_release().text("why"), "exited");
        election.close([leader]);
    }

    // The command is restored between two attempts.
    write(0o755);
    let mut leader = election.candidate().start();
    leader.await_lead();
    let mut patient = election.candidate().job([&command]).option("--restart", "on-failure");
    patient = patient.option("--restart-delay", "200ms").option("--restart-limit", "none");
    let mut patient = patient.start();
    patient.await_event("standby");
    fs::remove_file(&command).expect("the file can be removed");
    leader.signal(Signal::SIGTERM);
    patient.await_event("restarting");
    write(0o755);
    assert_eq!(patient.status(), 0);
    election.close([leader]);
}

/// A supervisor that dies between two runs: its guard releases the term long before the lease's end.
#[test]
fn the_term_of_a_supervisor_that_dies_between_two_runs_is_released() {
    let election = election(Elector::Log);
    let mut first = script(&election, "always", "10m", "exit 7").lease("50s").start();
    let term = first.await_lead();
    first.await_event("restarting");
    let mut second = election.candidate().lease("50s").start();
    second.await_event("standby");
    first.signal(Signal::SIGKILL);
    let leading = second
        .await_event_within("leading", Duration::from_secs(15))
        .expect("the guard writes the release of the killed supervisor");
    assert!(leading.number("term") > term);
    election.close([second]);
}
