//! The job's environment, the processes that it leaves, and its exit status.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use harness::candidate::Elector;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{bare, election};

#[test]
fn its_status_is_ours() {
    // Some statuses, each in an election of its own; `restart::each_exit_status_and_each_signal_of_a_run_is_logged` covers all statuses in
    // one election.
    let statuses = [0, 1, 2, 7, 75, 80, 81, 82, 83, 84, 85, 125, 126, 127, 128, 143, 254, 255];
    let exits = statuses.map(|status| (format!("exit {status}"), status));
    let kills = [1, 2, 3, 6, 9, 10, 11, 13, 15, 31, 34, 64].map(|signal| {
        // The shell that runs the tests may ignore some signals.
        (format!("ulimit -c 0; kill -{signal} $$; sleep 1000"), 128 + signal)
    });
    let cases: Vec<(String, i32)> = exits.into_iter().chain(kills).collect();
    std::thread::scope(|scope| {
        for some in cases.chunks(8) {
            scope.spawn(move || {
                for (text, status) in some {
                    let election = election(Elector::Log);
                    let job = election.candidate().job(["sh", "-c", text]);
                    let mut run = job.start_behind(&["env", "--default-signal"]);
                    assert_eq!(run.status(), *status, "{text}");
                    let exited = run.await_event("job_exited");
                    assert_eq!(exited.number("status"), u64::try_from(*status).expect("not negative"));
                    assert_eq!(run.await_event("exiting").text("from"), "job");
                }
            });
        }
    });
}

#[test]
fn a_command_that_cannot_run_is_reported_before_the_election_is_joined() {
    let election = election(Elector::Log);
    let plain = election.directory().join("not-executable");
    fs::write(&plain, "#!/bin/sh\n").expect("the file can be written");
    let directory = election.directory().as_os_str();
    for (word, status) in [
        ("no-such-command-anywhere".as_ref(), 127),
        ("/no/such/path".as_ref(), 127),
        (plain.as_os_str(), 126),
        (directory, 126),
    ] {
        let mut run = election.candidate().job([word]).start();
        assert_eq!(run.status(), status, "{word:?}");
        assert!(run.events("standby").is_empty());
        // These errors come before there is a log, so they are one line on stderr.
        let lines = run.strange_lines();
        assert!(matches!(&lines[..], [line] if line.contains(&*word.to_string_lossy())), "{run:?}");
    }
}

#[test]
fn it_gets_its_arguments_unchanged() {
    let election = election(Elector::Log);
    let words = ["a b", "", "*", "$HOME", "--lease", "ä\n"];
    let print = ["sh", "-c", r#"printf '<%s>' "$@""#, "sh"];
    let mut run = election.candidate().job(print.iter().chain(&words)).start();
    assert_eq!(run.status(), 0);
    assert_eq!(String::from_utf8(run.output()).expect("UTF-8"), words.map(|word| format!("<{word}>")).concat());
}

#[test]
fn stdin_and_stdout_are_its_own() {
    let election = election(Elector::Log);
    let input: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut run = election.candidate().input(&input).job(["cat"]).start();
    assert_eq!(run.status(), 0);
    assert!(run.output() == input, "what came out is what went in");
}

/// `x=$(neli-run ...)` returns when the job ends, in all cases: no other process keeps stdout open.
#[test]
fn the_end_of_stdout_does_not_wait_for_us() {
    let election = election(Elector::Log);
    let mut run = election.candidate().start();
    run.await_lead();
    run.await_job();
    run.signal(Signal::SIGKILL);
    assert_eq!(run.output(), b"");
    run.await_silence();
}

#[test]
fn its_stderr_is_ours() {
    let election = election(Elector::Log);
    let mut run = election.candidate().job(["sh", "-c", "echo from the job >&2"]).start();
    assert_eq!(run.status(), 0);
    assert_eq!(run.strange_lines(), ["from the job"]);
}

#[test]
fn a_log_file_leaves_stderr_to_it() {
    let election = election(Elector::Log);
    let file = election.directory().join("log");
    fs::write(&file, "before\n").expect("the file can be written");
    let mut run = election.candidate().option("--log-file", &file).job(["sh", "-c", "echo from the job >&2"]).start();
    assert_eq!(run.status(), 0);
    assert_eq!(run.strange_lines(), ["from the job"]);
    assert!(run.events("leading").is_empty());
    let log = fs::read_to_string(&file).expect("a log");
    assert!(log.starts_with("before\n"), "it is appended to");
    assert!(log.contains(r#""event":"leading""#), "{log}");
}

#[test]
fn its_environment_is_ours_with_some_additions() {
    let election = election(Elector::Log);
    let mut run = election
        .candidate()
        .variable("PLAIN", "kept")
        .variable("NOTIFY_SOCKET", "/nowhere")
        .variable("WATCHDOG_USEC", "1")
        .variable("WATCHDOG_PID", "1")
        .variable("NELI_RUN_STOP_TIMEOUT", "7s")
        .variable("NELI_RUN_TOPIC", election.topic())
        .variable("NELI_RUN_GROUP", "overridden")
        .variable("NELI_ROLES", "of an outer one")
        .variable("NELI_PROPERTIES", "of an outer one")
        .variable("NELI_WHY", "of an outer one")
        .variable("NELI_WINDOW_START", "of an outer one")
        .option("--name", "the name")
        .job(["env", "-0"])
        .start();
    assert_eq!(run.status(), 0);
    let output = String::from_utf8(run.output()).expect("UTF-8");
    let got: BTreeMap<&str, &str> = output.split_terminator('\0').filter_map(|pair| pair.split_once('=')).collect();

    let term = run.await_lead().to_string();
    let pid = run.process().pid.to_string();
    let expected = [
        ("PLAIN", "kept"),
        ("NELI_GROUP", election.group.as_str()),
        ("NELI_TOPIC", &election.topic()),
        ("NELI_PARTITION", "0"),
        ("NELI_ROLE", "0"),
        ("NELI_NAME", "the name"),
        ("NELI_EPOCH", &term),
        ("NELI_ATTEMPT", "1"),
        ("NELI_STOP_TIMEOUT_MS", "7000"),
        ("NELI_RUN_PID", &pid),
        ("NELI_RUN_TOPIC", &election.topic()),
        ("NELI_BROKERS", Kafka::shared().address()),
    ];
    for (name, value) in expected {
        assert_eq!(got.get(name), Some(&value), "{name}");
    }
    assert!(!got["NELI_MEMBER_ID"].is_empty());
    assert!(got["NELI_LEASE_FD"].parse::<i32>().expect("a number") >= 10);
    let own = ["NELI_RUN_STOP_TIMEOUT", "NELI_RUN_GROUP", "NELI_ROLES", "NELI_PROPERTIES", "NELI_EMBEDDED"];
    let of_other_runs = ["NELI_WHY", "NELI_WINDOW_START"];
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"].into_iter().chain(own).chain(of_other_runs) {
        assert!(!got.contains_key(name), "{name}");
    }
    let path = std::env::var("PATH").expect("there is one");
    assert_eq!(got.get("PATH"), Some(&path.as_str()));
}

/// The job has the descriptors that `neli-run` inherited. Of the program's own descriptors it has only the lease descriptor.
#[test]
fn its_descriptors_are_ours_and_the_lease() {
    let election = election(Elector::Log);
    // Some libraries leak descriptors into this test process, so bash closes those that it inherited. `ls` itself opens the directory as 3.
    let prefix = r#"
        for path in /proc/$$/fd/*; do
            number=${path##*/}
            [ "$number" -le 2 ] || eval "exec $number>&-"
        done
        exec 7</dev/null 10</dev/null
        exec "$@"
    "#;
    let job = ["ls", "/proc/self/fd"];
    let mut run = election.candidate().job(job).start_behind(&["bash", "-c", prefix, "bash"]);
    assert_eq!(run.status(), 0);
    let output = String::from_utf8(run.output()).expect("UTF-8");
    let numbers: BTreeSet<&str> = output.lines().collect();
    assert_eq!(numbers, BTreeSet::from(["0", "1", "2", "3", "7", "10", "11"]));
}

/// The lease descriptor contains the term's deadline, which is later than every beat and is moved by each renewal.
#[test]
fn its_lease_descriptor_contains_a_future_deadline() {
    let election = election(Elector::Log);
    let mut run = election.candidate().lease("5s").option("--heartbeat-interval", "100ms").start();
    let term = run.await_lead();
    let deadlines = || election.testimony().of(term).map(|line| line.deadline).collect::<BTreeSet<_>>();
    wait::until_true("a deadline that moves", || deadlines().len() > 5);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    for line in election.testimony().lines {
        assert!(line.deadline > line.at, "a job runs before its deadline: {line:?}");
        assert!(line.deadline < line.at + 5_000_000_000, "a lease is no longer than it is: {line:?}");
    }
}

/// Ignored signals stay ignored, SIGPIPE too; all others have their default action, and none is blocked.
#[test]
fn its_signals_are_as_ours_at_the_start() {
    const USR1_AND_PIPE: u64 = 1 << (10 - 1) | 1 << (13 - 1);
    // These are two signals that the C library reserves: it ignores them in children that it spawns, and handles them when a thread is
    // created.
    const THE_C_LIBRARYS: u64 = 1 << (32 - 1) | 1 << (33 - 1);
    let election = election(Elector::Log);
    let job = ["grep", "^Sig[BI]", "/proc/self/status"];
    let sets = |output: Vec<u8>| -> Vec<u64> {
        let text = String::from_utf8(output).expect("UTF-8");
        let sets = text.split_whitespace().skip(1).step_by(2);
        sets.map(|set| u64::from_str_radix(set, 16).expect("a set") & !THE_C_LIBRARYS).collect()
    };
    // These signals are ignored by the shell of the test run.
    let plain = Command::new(job[0]).args(&job[1..]).output().expect("every Linux has grep");
    let [_, ignored] = sets(plain.stdout)[..] else { panic!("two sets of signals") };
    let with = |prefix: &[&str]| {
        let mut run = election.candidate().job(job).start_behind(prefix);
        assert_eq!(run.status(), 0);
        sets(run.output())
    };
    assert_eq!(with(&[]), [0, ignored]);
    let ignoring = ["env", "--ignore-signal=USR1", "--ignore-signal=PIPE", "--block-signal=USR2"];
    assert_eq!(with(&ignoring), [0, ignored | USR1_AND_PIPE]);
}

#[test]
fn it_has_a_process_group_of_its_own_in_our_session() {
    let election = election(Elector::Log);
    let mut run = election.candidate().job(["sh", "-c", "ps -o pid=,pgid= -p $$"]).start();
    assert_eq!(run.status(), 0);
    let output = String::from_utf8(run.output()).expect("UTF-8");
    let ids: Vec<&str> = output.split_whitespace().collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn its_directory_is_ours() {
    let election = election(Elector::Log);
    let mut run = election.candidate().directory(election.directory()).job(["pwd"]).start();
    assert_eq!(run.status(), 0);
    assert_eq!(
        String::from_utf8(run.output()).expect("UTF-8").trim_end(),
        election.directory().to_str().expect("UTF-8")
    );
}

/// A stop ends the whole tree, including processes that tried to escape, before the release.
#[test]
fn a_stop_leaves_nothing_of_a_wild_tree() {
    let election = election(Elector::Log);
    let kinds = ["--ignore-stop", "--child", "--group", "--session", "--daemon", "--runner"];
    let job = kinds.into_iter().fold(election.witness(), harness::witness::Witness::with);
    let mut run = election.candidate().job(job.command()).option("--stop-timeout", "300ms").start();
    let term = run.await_lead();
    wait::until_true("a wild tree", || {
        let testimony = election.testimony();
        ["session", "daemon", "runner"].iter().all(|role| testimony.of(term).any(|line| line.role == *role))
    });
    run.signal(Signal::SIGTERM);
    run.await_release();
    election.assert_gone(term);
    assert_eq!(run.status(), 137);
    election.close([run]);
}

/// A daemon that the job left behind still does work: it gets the stop signal, then SIGKILL, and only then is the term released. The exit
/// status is that of the main process.
#[test]
fn processes_that_a_command_leaves_are_ended_too() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--daemon").set("--end-ms", 300).set("--status", 5);
    let mut run = election.candidate().job(job.command()).option("--stop-timeout", "500ms").start();
    let term = run.await_lead();
    run.await_release();
    election.assert_gone(term);
    assert_eq!(run.status(), 5);
    let testimony = election.testimony();
    let last = |role: &str| testimony.of(term).rfind(|line| line.role == role).expect("the job has written a line").at;
    assert!(last("daemon") > last("main") + 300_000_000, "it had its stop timeout");
    let message: Vec<String> = run.events("warning").iter().map(|event| event.text("message").to_owned()).collect();
    let daemon = |words: &str| message.iter().any(|message| message.contains(words) && message.contains(" (witness)"));
    assert!(
        daemon("asked to stop, SIGKILL in 500ms at the latest: ") && daemon("still there, so killed: "),
        "{message:?}"
    );
    election.close([run]);
}

/// The guard has ended before the supervisor, which has waited for it. So the process that adopts the supervisor's children does not have
/// to wait for it.
#[test]
fn its_guard_is_waited_for() {
    for stop in [true, false] {
        let election = election(Elector::Log);
        let job = if stop { vec!["sleep", "600"] } else { vec!["true"] };
        let mut run = election.candidate().job(job).start();
        let guard = run.guard();
        if stop {
            run.await_event("job_started");
            run.signal(Signal::SIGTERM);
        }
        assert_eq!(run.status(), if stop { 143 } else { 0 });
        assert!(!std::path::Path::new(&format!("/proc/{}", guard.pid)).exists());
    }
}

/// The job ends before the group has answered the join. The member can't leave then, and the exit does not wait for that.
#[test]
fn the_group_does_not_delay_the_end_of_a_short_job() {
    let election = election(Elector::Group);
    let from_release_to_end = || {
        let mut run = election.another().candidate().option("--topic", election.topic()).job(["true"]).start();
        run.await_lead();
        let released = run.await_release().at;
        let exiting = run.await_event("exiting").at;
        assert_eq!(run.status(), 0);
        assert!(run.events("assigned").is_empty(), "an empty group's first assignment takes 3 s");
        exiting - released
    };
    // A busy machine may be slow sometimes. A useless attempt to leave would take half a second each time.
    let mut took: Vec<u64> = (0..5).map(|_| from_release_to_end()).collect();
    took.sort_unstable();
    assert!(took[2] < 100_000_000, "{took:?} ns");
}

#[test]
fn the_command_line_is_checked_without_kafka() {
    let mut run = bare().option("--group", "g").job(["true"]).start();
    assert_eq!(run.status(), 125);
    let message = format!("{run:?}");
    assert!(message.contains("--brokers") && message.contains("--embedded"), "both ways are said: {message}");
}

/// Descriptors 0, 1 and 2 that are closed at the start are not reused: neither `neli-run` nor the job gets another file with these numbers.
#[test]
fn closed_standard_streams_are_not_reused() {
    let election = election(Elector::Log);
    let message = election.directory().join("told");
    // This covers the job, the guard and the supervisor. (A redirection would belong to the shell itself for a moment.)
    let script = format!(
        r#"for pid in $$ $PPID $NELI_RUN_PID; do
               for number in 0 1 2; do all="$all$(readlink /proc/$pid/fd/$number)
"; done
           done
           printf %s "$all" > {}"#,
        message.display()
    );
    for (closed, open) in [("<&- >&-", &[2][..]), ("<&- >&- 2>&-", &[]), ("2>&-", &[0, 1])] {
        let close = format!(r#"exec "$@" {closed}"#);
        let mut run = election.candidate().job(["sh", "-c", &script]).start_behind(&["sh", "-c", &close, "sh"]);
        assert_eq!(run.status(), 0);
        let text = fs::read_to_string(&message).expect("the job has told");
        let streams: Vec<&str> = text.lines().collect();
        assert_eq!(streams.len(), 9, "{text}");
        for (index, stream) in streams.iter().enumerate() {
            let is_ours = open.contains(&(index % 3)) && (stream.starts_with("pipe:") || *stream == "/dev/null");
            assert!(is_ours || *stream == "/dev/null", "{closed}: {index} is {stream}");
        }
    }
}
