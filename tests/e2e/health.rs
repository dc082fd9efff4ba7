//! Health commands: an unhealthy job is handed over to another machine, and a healthy one is not affected.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use harness::candidate::{Candidate, Elector, Event};
use harness::election::TestElection;
use harness::process::Process;
use harness::wait;
use nix::libc::O_NONBLOCK;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::election;

/// A candidate with a health command at short intervals.
fn looked_after(election: &TestElection, command: &str) -> Candidate {
    election
        .candidate()
        .option("--health-cmd", command)
        .option("--health-interval", "50ms")
        .option("--health-timeout", "1m")
}

/// The number of runs of a health command, each of which writes a line.
fn count(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn counted(election: &TestElection) -> PathBuf {
    election.directory().join("counted")
}

/// An unhealthy job is stopped in order, the term is released, and the other candidate leads. The first candidate stands by and lets
/// others claim before it.
#[test]
fn an_unhealthy_job_is_handed_over() {
    let election = election(Elector::Group);
    let unhealthy = election.directory().join("unhealthy");
    let command = format!("echo asked; test ! -e {} || {{ echo 'no answer' >&2; exit 7; }}", unhealthy.display());
    let mut first = looked_after(&election, &command).option("--health-failures", "2").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().start();
    second.await_event("standby");

    File::create(&unhealthy).expect("the file can be created");
    let unhealthy = first.await_event("unhealthy");
    let message = "the health command exited with status 7 (1 of 2 in a row): no answer";
    assert!(first.events("warning").iter().any(|warning| warning.text("message") == message), "{first:?}");
    assert_eq!((unhealthy.number("term"), unhealthy.number("failures")), (term, 2));
    assert_eq!((unhealthy.text("reason"), unhealthy.text("line")), ("exited with status 7", "no answer"));
    assert_eq!(first.await_event("stopping").text("why"), "unhealthy");
    assert_eq!(first.await_release().text("why"), "unhealthy");
    election.assert_gone(term);
    let next = second.await_lead();
    assert!(next > term);
    election.await_witness(next);
    first.await_event("standby");
    let said = first.strange_lines();
    assert!(said.len() > 2 && said[0] == "asked" && said[said.len() - 2..] == ["asked", "no answer"], "{said:?}");
    election.close([first, second]);
}

/// A health command's output goes to stderr, also if the log goes to a file.
#[test]
fn the_output_of_a_command_goes_to_stderr() {
    let election = election(Elector::Log);
    let log = election.directory().join("log");
    let mut run = looked_after(&election, "echo one; printf two >&2; exit 1").option("--health-failures", "1");
    run = run.option("--log-file", &log).option("--on-loss", "exit");
    let mut run = run.start();
    assert_eq!(run.status(), 80);
    assert_eq!(run.strange_lines(), ["one", "two"]);
    assert!(fs::read_to_string(log).expect("a log").contains(r#""line":"two""#));
}

/// A stderr that is not read delays neither the health command, which may write much, nor the lease.
#[test]
fn a_full_stderr_makes_no_job_unhealthy() {
    let election = election(Elector::Log);
    let (counted, log, full) =
        (counted(&election), election.directory().join("log"), election.directory().join("full"));
    mkfifo(&full, Mode::S_IRWXU).expect("our own directory");
    let mut pipe = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(&full).expect("our own pipe");
    while pipe.write(&[b'\n'; 4096]).is_ok() {}
    let onto = format!(r#"exec "$@" 2<>{}"#, full.display());
    // This is more output than two pipes can contain.
    let command = format!("head -c 200000 /dev/zero | tr '\\0' x; yes | head -n 2000; echo >> {}", counted.display());
    let run = looked_after(&election, &command).option("--log-file", &log).option("--health-failures", "1");
    let mut run = run.start_behind(&["sh", "-c", &onto, "sh"]);
    wait::until_true("health commands that end", || count(&counted) > 3);
    assert_eq!(run.ended(), None);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    let said = fs::read_to_string(log).expect("a log");
    assert!(said.contains("released") && !said.contains("health command") && !said.contains("fenc"), "{said}");
    election.close([]);
}

/// With no other candidate, the same one runs the job again after the back-off.
#[test]
fn a_candidate_alone_tries_again() {
    let election = election(Elector::Log);
    let mut alone = looked_after(&election, "exit 1").lease("2s").option("--health-failures", "1").start();
    let term = alone.await_lead();
    alone.await_event("unhealthy");
    assert!(alone.await_lead() > term);
    election.close([alone]);
}

#[test]
fn with_on_loss_exit_an_unhealthy_job_ends_the_candidate() {
    let election = election(Elector::Log);
    let mut run =
        looked_after(&election, "kill -9 $$").option("--health-failures", "1").option("--on-loss", "exit").start();
    assert_eq!(run.await_event("unhealthy").text("reason"), "was ended by SIGKILL");
    assert_eq!(run.status(), 80);
    election.close([run]);
}

/// The failures are never consecutive, so the job is never stopped.
#[test]
fn a_flapping_health_check_ends_no_lead() {
    let election = election(Elector::Log);
    let counted = counted(&election);
    let command = format!("echo >> {0}; exit $(($(wc -l < {0}) % 2))", counted.display());
    let mut run = looked_after(&election, &command).option("--health-failures", "2").start();
    let term = run.await_lead();
    wait::until_true("several health commands", || count(&counted) > 20);
    let warned = |warning: &&Event| warning.text("message").contains("health command");
    assert!(run.events("warning").iter().filter(warned).count() >= 9, "{run:?}");
    assert!(run.events("unhealthy").is_empty());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.await_release().number("term"), term);
    election.close([run]);
}

/// A health command that times out is killed with its process group and counts as a failure; the job is not affected.
#[test]
fn a_health_command_that_takes_too_long_has_failed() {
    let election = election(Elector::Log);
    // There is one file per term, because another command may run as soon as this candidate leads again.
    let tells = |term: &str| election.directory().join(format!("pids.{term}"));
    let command =
        format!("sleep 600 & {{ echo $!; echo $$; }} > {}; echo waiting; wait", tells("$NELI_EPOCH").display());
    // This is long enough for a shell to start on a busy machine. The limit is one failure, because a second command would also count if
    // the first one takes an interval to die.
    let run = looked_after(&election, &command).option("--health-timeout", "2s").option("--health-failures", "1");
    let mut run = run.start();
    let term = run.await_lead();
    election.await_witness(term);
    let unhealthy = run.await_event("unhealthy");
    assert_eq!(unhealthy.text("reason"), "took too long and was killed");
    assert_eq!(unhealthy.text("line"), "waiting");
    run.await_release();
    election.assert_gone(term);
    let pids = fs::read_to_string(tells(&term.to_string())).expect("the health command ran");
    assert_eq!(pids.lines().count(), 2, "{pids}");
    for pid in pids.lines() {
        let left = Process::find(pid.parse().expect("a pid"));
        assert!(left.and_then(Process::name).is_none_or(|name| name != "sleep" && name != "sh"), "{pid} is left");
    }
    election.close([run]);
}

/// A job with a long warm-up is not handed over; after its first success, failures count.
#[test]
fn a_job_that_warms_up_is_not_handed_over() {
    let election = election(Elector::Log);
    let (warm, counted) = (election.directory().join("warm"), counted(&election));
    let command = format!("echo >> {}; test -e {}", counted.display(), warm.display());
    let candidate = looked_after(&election, &command).option("--health-failures", "1").option("--health-start", "1h");
    let mut first = candidate.start();
    let term = first.await_lead();
    let mut second = candidate.start();
    second.await_event("standby");
    wait::until_true("several health commands", || count(&counted) > 10);
    assert!(first.events("unhealthy").is_empty() && second.events("leading").is_empty());

    File::create(&warm).expect("the file can be created");
    let so_far = count(&counted);
    wait::until_true("a health command that began since", || count(&counted) > so_far + 1);
    fs::remove_file(&warm).expect("the file can be removed");
    first.await_event("unhealthy");
    assert!(second.await_lead() > term);
    election.close([first, second]);
}

/// The end of the job ends the lead, even while a health command runs.
#[test]
fn a_health_command_does_not_delay_the_end_of_its_job() {
    let election = election(Elector::Log);
    let asked = election.directory().join("asked");
    let job = format!("{}; exit 5", election.until_go_file());
    let command = format!("echo $$ > {}; exec sleep 600", asked.display());
    let run = looked_after(&election, &command).option("--health-timeout", "1h").job(["sh", "-c", &job]);
    let mut run = run.start();
    let pid = wait::until("a health command", || fs::read_to_string(&asked).ok()?.trim().parse().ok());
    let command = Process::find(pid).expect("the health command sleeps until it is killed");
    election.create_go_file();
    run.await_release();
    assert!(!command.lives(), "the health command outlived the lead");
    assert_eq!(run.status(), 5);
    assert!(!format!("{run:?}").contains("health command") && run.events("unhealthy").is_empty(), "{run:?}");
}

/// A process that escapes from a health command belongs to the job's tree: it is gone before the release, and before another candidate
/// leads if the supervisor is killed.
#[test]
fn processes_that_leave_a_health_command_are_gone_before_the_release() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let election = election(Elector::Log);
        let daemon = election.witness().with("--ignore-stop").with("--daemon").command();
        let words: Vec<_> = daemon.iter().map(|word| word.to_string_lossy()).collect();
        let once = election.directory().join("once");
        // The command ends once the other process has left its group.
        let away = format!("until grep -q daemon {}; do sleep 0.01; done", words[1]);
        let command = format!("test -e {0} || {{ touch {0}; setsid {1} & {away}; }}", once.display(), words.join(" "));
        let mut run = looked_after(&election, &command).option("--stop-timeout", "300ms").start();
        let term = run.await_lead();
        wait::until_true("a daemon", || election.testimony().of(term).any(|line| line.role == "daemon"));
        run.signal(signal);
        if signal == Signal::SIGTERM {
            assert_eq!(run.await_release().text("why"), "stopped");
            election.assert_gone(term);
        }
        election.await_gone(term);
        let mut next = election.candidate().start();
        assert!(next.await_lead() > term);
        election.close([next]);
    }
}
