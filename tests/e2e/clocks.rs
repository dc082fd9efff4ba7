//! Clocks: a suspended machine, a wall clock that is set, a different boot time. The machine's own clock is not changed: a preloaded
//! library changes it for single processes.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::{Answer, TestElection};
use harness::install;
use harness::journal::Pen;
use harness::kafka::{Kafka, Wired};
use harness::network::LinkConditions;
use harness::not_tested;
use harness::process::may_schedule_in_real_time;
use harness::wait;
use nix::libc::O_NONBLOCK;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Uid, mkfifo};

use crate::{AS_USER, PROGRAM, election};

/// Waits until the term's deadline has moved by more than five seconds: more than the lease of most of these tests.
fn await_renewals(election: &TestElection, term: u64) {
    let deadline = || election.testimony().of(term).next_back().map_or(0, |line| line.deadline);
    let before = deadline();
    wait::until_true("a lease that is renewed", || deadline() > before + 5_500_000_000);
}

/// All processes of a leader stop for longer than its lease, as on a machine that is suspended: when they continue, the job is killed.
/// (For some milliseconds both jobs may run; only the fencing token protects then.)
#[test]
fn after_a_suspension_the_job_is_killed() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--daemon");
    let mut sleeper = election.candidate().lease("3s").job(job.command()).start();
    let term = sleeper.await_lead();
    wait::until_true("a daemon", || election.testimony().of(term).any(|line| line.role == "daemon"));
    // A busy machine takes no lead of ten seconds away.
    let mut other = election.candidate().lease("10s").start();
    other.await_event("standby");
    // The supervisor is stopped first, since it would continue its guard.
    let tree = election.testimony().alive(Some(term));
    let all: Vec<_> = [sleeper.process(), sleeper.guard()].into_iter().chain(tree).collect();
    for process in &all {
        process.signal(Signal::SIGSTOP);
    }
    let next = other.await_lead();
    election.await_witness(next);
    for process in all.iter().rev() {
        process.signal(Signal::SIGCONT);
    }
    election.await_gone(term);
    sleeper.await_event("fenced");
    await_renewals(&election, next);
    assert_eq!(other.events("leading").len(), 1);
    for candidate in [&mut sleeper, &mut other] {
        candidate.signal(Signal::SIGTERM);
        candidate.status();
    }
    assert!(election.testimony().alive(None).is_empty());
}

/// A wall clock that is set by an hour, forward or back, changes only the times in the log.
#[test]
fn a_step_of_the_wall_clock_changes_nothing() {
    let election = election(Elector::Group);
    let (candidate, set_clock) = with_clock(&election, election.candidate().lease("5s"));
    let mut leader = candidate.start();
    let term = leader.await_lead();
    election.await_witness(term);
    for seconds in ["3600", "-3600", "0"] {
        set_clock(seconds);
        await_renewals(&election, term);
    }
    assert!(leader.events("fence_warning").is_empty() && leader.events("fenced").is_empty(), "{leader:?}");
    set_clock("360000000");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    // A shift of eleven years proves that the process read the preloaded clock.
    let year = |text: &str| text[..4].parse::<u32>().expect("a year");
    let [started, ended] = ["started", "exiting"].map(|name| year(leader.await_event(name).text("ts")));
    assert!(ended >= started + 11, "{started} {ended}");
    election.close([leader]);
}

/// The candidate, with a wall clock that the returned function sets by so many seconds.
fn with_clock(election: &TestElection, candidate: Candidate) -> (Candidate, impl Fn(&str)) {
    let step = election.directory().join("step");
    fs::write(&step, "0").expect("our own directory");
    let candidate = candidate.variable("LD_PRELOAD", install::stepped_clock()).variable("STEPPED_CLOCK", &step);
    (candidate, move |seconds: &str| fs::write(&step, seconds).expect("our own directory"))
}

/// At a boot with a wrong hardware clock, the clock is set back while the candidate waits for its network. No wait of librdkafka lasts longer for it.
#[test]
fn a_clock_that_is_set_back_before_the_first_connection_delays_nothing() {
    let lead = |elector, once| {
        let wired = Wired::take();
        let election = TestElection::new(PROGRAM, wired.kafka(), elector);
        wired.wire().set(LinkConditions { refuses: true, ..LinkConditions::default() });
        let (candidate, set_clock) = with_clock(&election, election.candidate().lease("5s"));
        let candidate = if once { candidate.option("--once", "key") } else { candidate };
        let mut run = candidate.start();
        run.await_event("broker_down");
        set_clock("-86400");
        // All that it waits for at that moment is over.
        wait::pause(Duration::from_secs(2));
        wired.wire().set(LinkConditions::default());
        election.await_witness(run.await_lead());
        election.close([run]);
    };
    thread::scope(|scope| {
        for elector in [Elector::Group, Elector::Log] {
            for once in [true, false] {
                scope.spawn(move || lead(elector, once));
            }
        }
    });
}

/// An operator's machine with a fast clock must listen before it reports a living leader as silent, whether a record's time is by the broker's
/// clock or by its writer's.
#[test]
fn with_a_fast_clock_a_living_leader_does_not_count_as_silent() {
    for timestamp_type in ["CreateTime", "LogAppendTime"] {
        let election = election(Elector::Log);
        Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", timestamp_type)]);
        let mut leader = election.candidate().lease("8s").start();
        election.await_witness(leader.await_lead());
        for command in ["status", "list"] {
            let answer = ask_by_clock(&election, "3600", &[command, "--json"]);
            assert_eq!((answer.json()["state"].as_str(), answer.status), (Some("led"), 0), "{answer:?}");
        }
        let answer = ask_by_clock(&election, "3600", &["history", "--json", "--since", "10m"]);
        let term = answer.json();
        assert_eq!((term["end"].as_str(), term["to"].is_null()), (Some("leads"), true), "{answer:?}");
        let led_ms = term["led_ms"].as_u64().expect("its claim was read");
        assert!(led_ms < 600_000, "by the leader's clock: {answer:?}");
        if timestamp_type == "LogAppendTime" {
            let answer = ask_by_clock(&election, "3600", &["doctor"]);
            assert!(answer.text.contains("this machine's clock is 60m ahead of the broker's"), "{answer:?}");
        }
        let late = r#"{"v":1,"kind":"release","member":"x","name":"x","seq":9,"term":0,"seen":0,"late_ms":70}"#;
        Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[late.as_bytes()]);
        let answer = ask_by_clock(&election, "3600", &["history", "--check", "--since", "10m"]);
        assert_eq!(answer.status, 1, "what was written just now is looked at: {answer:?}");
        election.close([leader]);
    }
}

/// The answer of a subcommand on a machine whose clock is this many seconds ahead.
fn ask_by_clock(election: &TestElection, seconds: &str, words: &[&str]) -> Answer {
    let step = election.directory().join("step");
    fs::write(&step, seconds).expect("our own directory");
    let mut command = Command::new(PROGRAM);
    command.args(words).args(["--group", &election.group, "--brokers", Kafka::shared().address()]);
    command.env("LD_PRELOAD", install::stepped_clock()).env("STEPPED_CLOCK", &step);
    Answer::of(command)
}

/// An operator's machine with a slow clock takes the time from the newest record, and says that it lies in the future.
#[test]
fn with_a_slow_clock_the_newest_record_shows_the_time() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().lease("3s").start();
    election.await_witness(leader.await_lead());
    wait::pause(Duration::from_millis(1_200));
    leader.signal(Signal::SIGTERM);
    leader.status();
    let hello = r#"{"v":1,"kind":"hello","member":"x","name":"x","seq":1}"#;
    wait::pause(Duration::from_millis(1_200));
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&format!("{}/hello", election.key()), &[hello.as_bytes()]);
    let warning = "neli-run: warning: the newest record's timestamp lies ";
    for command in ["status", "list", "history"] {
        let answer = ask_by_clock(&election, "-3600", &[command]);
        assert!(answer.errors.starts_with(warning) && answer.errors.lines().count() == 1, "{command}: {answer:?}");
        let is_too_short = answer.text.contains(" 0ms ago: a signal") || answer.text.contains("0ms, and on");
        assert!(!is_too_short && answer.text.contains("a signal to neli-run"), "{command}: {answer:?}");
    }
}

/// In a container with a time namespace `CLOCK_BOOTTIME` starts at another time. The deadline must be right there too.
#[test]
fn in_a_time_namespace_the_deadlines_are_right() {
    let mut unshare = vec!["unshare", "--time", "--boottime", "1000000", "--fork", "--kill-child"];
    if !Uid::effective().is_root() {
        unshare.extend(AS_USER);
    }
    unshare.push("--");
    if !Command::new(unshare[0]).args(&unshare[1..]).arg("true").output().is_ok_and(|tried| tried.status.success()) {
        return not_tested("this machine gives no time namespace (Linux 5.6 does, to root at least)");
    }
    let election = election(Elector::Log);
    let job = election.witness().set("--end-ms", 2500).set("--status", 3);
    let mut run = election.candidate().lease("5s").job(job.command()).start_behind(&unshare);
    assert_eq!(run.status(), 3);
    let testimony = election.testimony();
    for line in &testimony.lines {
        assert!(line.at > 1_000_000_000_000_000, "the namespace's clock: {line:?}");
        assert!(line.deadline > line.at && line.deadline < line.at + 5_000_000_000, "{line:?}");
    }
    assert!(run.events("fence_warning").is_empty());
}

/// A stderr that is not read delays neither the lease nor the kill at its end.
#[test]
fn a_full_stderr_delays_nothing() {
    let election = election(Elector::Log);
    let full = election.directory().join("full");
    mkfifo(&full, Mode::S_IRWXU).expect("our own directory");
    let mut pipe = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(&full).expect("our own pipe");
    while pipe.write(&[b'\n'; 4096]).is_ok() {}
    let onto = format!(r#"exec "$@" 2<>{}"#, full.display());
    let wild = election.witness().with("--ignore-stop").with("--session").with("--daemon");
    let run = election.candidate().lease("3s").flag("-v").job(wild.command()).start_behind(&["sh", "-c", &onto, "sh"]);
    let term = wait::until("a job", || election.testimony().lines.first().and_then(|line| line.epoch));
    wait::until_true("a daemon", || election.testimony().of(term).any(|line| line.role == "daemon"));
    await_renewals(&election, term);
    run.signal(Signal::SIGSTOP);
    election.await_gone(term);
    let testimony = election.testimony();
    // Without that right the guard has no real-time priority and must wait for a processor, and so must the process that is killed.
    let margin = if may_schedule_in_real_time() { 20_000_000 } else { 500_000_000 };
    let late = testimony.of(term).filter(|line| line.deadline > 0 && line.at > line.deadline + margin).count();
    assert_eq!(late, 0, "beats after the lease's end");
    run.signal(Signal::SIGCONT);
    election.close([run]);
}

/// A dead leader's records lie an hour ahead of this machine's clock, which does not tell their age: nobody says that it leads.
#[test]
fn a_leader_that_is_not_heard_after_a_record_of_the_future_is_unknown() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "CreateTime")]);
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":60000}"#;
    Pen::new(Kafka::shared(), &election.topic(), &[]).write_ahead(&election.key(), &[claim], 3_600);
    let why =
        "the last heartbeat of web lies in the future by this machine's clock, and none has come since it was read";
    for words in [&["status"][..], &["assert", "--epoch", "0"], &["resign"]] {
        let answer = election.ask(words[0], &words[1..]);
        assert!(answer.text.contains(why) || answer.errors.contains(why), "{words:?}: {answer:?}");
        assert_eq!(answer.status, 4, "{words:?}: {answer:?}");
    }
    let answer = election.ask("list", &[]);
    assert!(answer.text.contains(why), "{answer:?}");
    // Of another group nothing is in doubt, although `list` reads both topics.
    let other = self::election(Elector::Log);
    other.candidate().job(["true"]).start().status();
    let answer = other.ask("list", &[]);
    assert_eq!((&*answer.errors, answer.status), ("", 0), "{answer:?}");
}
