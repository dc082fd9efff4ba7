//! The log never blocks and never mixes lines; the job continues if its lines are not read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::wait;
use harness::witness::Event;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd;
use serde_json::Value;

use crate::election;

/// Sets stderr of the candidate and its descendants to `path`.
const ERRORS_TO: [&str; 4] = ["sh", "-c", r#"path=$1; shift; exec "$@" 2>"$path""#, "sh"];

fn start_with_errors_to(candidate: &Candidate, path: &Path) -> Running {
    let path = path.to_str().expect("UTF-8");
    candidate.start_behind(&[&ERRORS_TO[..], &[path]].concat())
}

/// A candidate that logs many more lines than the buffer can contain.
fn chatterbox(election: &TestElection) -> Candidate {
    election.candidate().option("--heartbeat-interval", "500ms").flag("-v").property("debug", "all")
}

/// A named pipe whose other end only the test has open.
struct Fifo {
    path: PathBuf,
    end: File,
}

impl Fifo {
    fn new(election: &TestElection) -> Self {
        let path = election.directory().join("fifo");
        unistd::mkfifo(&path, Mode::S_IRWXU).expect("a named pipe");
        // It is opened for both directions, so that opening does not block.
        let end = File::options().read(true).write(true).open(&path).expect("the file can be opened");
        Self { path, end }
    }

    /// Fills it, so that a write of one byte would block.
    fn filled(election: &TestElection) -> Self {
        let mut fifo = Self::new(election);
        fcntl(&fifo.end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("the descriptor's flags can be set");
        while fifo.end.write(&[b'\n'; 512]).is_ok() {}
        while fifo.end.write(b"\n").is_ok() {}
        fifo
    }
}

/// Waits for a job by its witness, since the log can't be read; returns its term.
fn await_term(election: &TestElection) -> u64 {
    wait::until("a job that runs", || {
        let beat = election.testimony().lines.into_iter().find(|line| line.event == Event::Beat);
        beat.and_then(|line| line.epoch)
    })
}

/// Asserts that the lease is renewed repeatedly and that the job continues.
fn assert_it_leads_on(election: &TestElection, term: u64) {
    let deadlines =
        || election.testimony().of(term).map(|line| line.deadline).collect::<std::collections::BTreeSet<_>>().len();
    let before = deadlines();
    // These are more beats than fit into a lease.
    wait::until_true("a lease that is renewed", || deadlines() >= before + 12);
    let testimony = election.testimony();
    assert!(testimony.lines.iter().all(|line| line.epoch == Some(term)), "it never led anew");
    assert_eq!(testimony.signals().count(), 0);
}

/// Asserts that a stop ends it as usual, without a delay by a log that is not read.
fn assert_it_ends_well(election: &TestElection, mut leader: Running) {
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    election.close([leader]);
}

/// The lines of a log, each of which must be whole.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("garbled: {line}"))).collect()
}

/// A pipe that is full before the first line: the number of dropped lines is logged where they are missing.
#[test]
fn a_full_pipe_blocks_nothing_and_dropped_lines_are_counted() {
    let election = election(Elector::Log);
    let mut fifo = Fifo::filled(&election);
    let leader = start_with_errors_to(&chatterbox(&election), &fifo.path);
    let term = await_term(&election);
    assert_it_leads_on(&election, term);

    // From here on the pipe is read.
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    wait::until_true("a word about what is missing", || {
        let length = fifo.end.read(&mut bytes).unwrap_or_default();
        text.push_str(std::str::from_utf8(&bytes[..length]).expect("UTF-8"));
        text.contains(r#""dropped":"#) && text.ends_with('\n')
    });
    let lines = lines(text.trim_start());
    let missing = lines.iter().position(|line| line["dropped"].is_u64()).expect("it was found");
    assert_eq!(lines[missing]["event"], "warning");
    // Half of the buffer is reserved for librdkafka's lines, and the writer holds one more line.
    assert!(missing >= 500, "{missing}");
    for event in ["started", "leading", "job_started"] {
        assert!(lines.iter().any(|line| line["event"] == event), "{event} is kept");
    }
    // The pipe is full again, and must not delay the end.
    assert_it_ends_well(&election, leader);
}

/// A pipe whose reader has ended: SIGPIPE ends no process.
#[test]
fn a_closed_pipe_ends_no_process() {
    let election = election(Elector::Log);
    let fifo = Fifo::new(&election);
    let leader = start_with_errors_to(&chatterbox(&election), &fifo.path);
    let term = await_term(&election);
    drop(fifo.end);
    assert_it_leads_on(&election, term);
    assert_it_ends_well(&election, leader);
}

#[test]
fn a_full_disk_ends_no_lead() {
    let full = Path::new("/dev/full");
    let election = election(Elector::Log);
    let leader = start_with_errors_to(&chatterbox(&election), full);
    let term = await_term(&election);
    assert_it_leads_on(&election, term);
    assert_it_ends_well(&election, leader);

    let election = self::election(Elector::Log);
    let leader = chatterbox(&election).option("--log-file", full).start();
    let term = await_term(&election);
    assert_it_leads_on(&election, term);
    let said = "neli-run: --log-file /dev/full: can't be written: no space left on device; up to 1000 lines wait for room, and are lost if neli-run \
                ends before";
    wait::until_true("the reason on stderr", || leader.strange_lines().iter().any(|line| line == said));
    assert_it_ends_well(&election, leader);
}

/// As after a rename by logrotate, if the user may not create files there.
#[test]
fn a_log_whose_file_can_not_be_created_again_says_so() {
    let election = election(Elector::Log);
    let [directory, moved] = ["logs", "moved"].map(|name| election.directory().join(name));
    fs::create_dir(&directory).expect("a directory");
    let file = directory.join("log");
    let leader = chatterbox(&election).option("--log-file", &file).start();
    await_term(&election);
    fs::rename(&directory, moved).expect("a directory");
    let said = format!(
        "neli-run: --log-file {}: it was renamed or removed, and can't be created again: no such file or directory; the log goes on in the old \
         file until there is a new one (logrotate: create)",
        file.display()
    );
    wait::until_true("the reason on stderr", || leader.strange_lines().contains(&said));
    fs::create_dir(&directory).expect("a directory");
    wait::until_true("a new log", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    assert_eq!(leader.strange_lines().iter().filter(|line| **line == said).count(), 1);
    assert_it_ends_well(&election, leader);
}

/// A disk that is full in the middle of a line and has room again later: at most that line is cut, and it is written again.
#[test]
fn a_disk_that_is_full_for_a_while_cuts_one_line_at_most() {
    let election = election(Elector::Log);
    let file = election.directory().join("log");
    // A limit on the file's size acts like a full disk, and needs no rights.
    let mut leader = chatterbox(&election).option("--log-file", &file).start_behind(&["prlimit", "--fsize=100000:"]);
    let size = || fs::metadata(&file).map_or(0, |found| found.len());
    wait::until_true("a full file", || size() == 100_000);
    // This test is about a cut line. If the limit is between two lines, no line is cut.
    let pid = leader.process().pid.to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:"]).status();
    assert!(raised.expect("prlimit is part of util-linux").success());
    wait::until_true("a log that goes on", || size() > 110_000);
    await_term(&election);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);

    let text = fs::read_to_string(&file).expect("a log");
    let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    let all: Vec<&str> = text.lines().collect();
    let cut: Vec<usize> = (0..all.len()).filter(|index| !is_whole(all[*index])).collect();
    assert!(cut.len() <= 1, "{cut:?}");
    for index in cut {
        assert!(all[index + 1].starts_with(all[index]), "what was cut is said again: {}", all[index]);
    }
}

/// systemd's journal takes a line's priority from its prefix; any other stderr gets the line without a prefix.
#[test]
fn systemds_journal_gets_the_priority_of_each_line() {
    let election = election(Elector::Log);
    let file = election.directory().join("errors");
    let run_with = |journal: &str, format: &str, option: (&str, &str)| {
        let script = format!(r#"exec 2>"$1"; shift; export JOURNAL_STREAM={journal}; exec "$@""#);
        let file = file.to_str().expect("UTF-8");
        let candidate = election.candidate().option("--log-format", format).option(option.0, option.1);
        let status = candidate.job(["sh", "-c", "exit 3"]).start_behind(&["sh", "-c", &script, "sh", file]).status();
        (fs::read_to_string(file).expect("a log"), status)
    };
    let run = |journal: &str, option: (&str, &str)| run_with(journal, "text", option);
    let own = r#"$(stat -Lc %d:%i "$0")"#.replace("$0", &file.display().to_string());
    let (text, status) = run(&own, ("--name", "first"));
    assert_eq!(status, 3);
    let has_line =
        |beginning: &str, words: &str| text.lines().any(|line| line.starts_with(beginning) && line.contains(words));
    assert!(has_line("<6>20", " info: leading, term "), "{text}");
    assert!(has_line("<4>20", " warning: the job exited with status 3 "), "{text}");
    assert!(text.lines().all(|line| line.starts_with('<')), "{text}");
    let (json, _) = run_with(&own, "json", ("--name", "first"));
    assert!(json.lines().all(|line| line.starts_with('<')) && json.contains("\n<4>{\"ts\":"), "{json}");
    let (text, _) = run(&own, ("--lease", "1"));
    assert!(text.starts_with("<3>neli-run: --lease 1: ") && text.lines().count() == 1, "{text}");
    let (text, _) = run("1:2", ("--name", "first"));
    assert!(text.starts_with("20") && !text.contains("<4>"), "{text}");
}

/// A terminal whose output is suspended by Ctrl-S.
#[test]
fn a_stopped_terminal_blocks_nothing() {
    let election = election(Elector::Log);
    let terminal = openpty(None, None).expect("a terminal");
    let path = unistd::ttyname(&terminal.slave).expect("it has a name");
    let mut keyboard: File = terminal.master.into();
    keyboard.write_all(&[0x13]).expect("Ctrl-S");
    let leader = start_with_errors_to(&chatterbox(&election), &path);
    let term = await_term(&election);
    assert_it_leads_on(&election, term);
    keyboard.write_all(&[0x11]).expect("Ctrl-Q");
    fcntl(&keyboard, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("the descriptor's flags can be set");
    let mut screen = String::new();
    let mut bytes = [0; 4_096];
    wait::until_true("what was kept, on the screen", || {
        let length = keyboard.read(&mut bytes).unwrap_or_default();
        screen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        screen.contains(r#""event":"leading""#)
    });
    // The output is not resumed until the end.
    assert_it_ends_well(&election, leader);
    drop::<OwnedFd>(terminal.slave);
}

/// Several candidates append to one file: each line is whole, and names its writer.
#[test]
fn each_line_in_one_file_for_several_is_whole_and_names_its_writer() {
    let election = election(Elector::Log);
    let file = election.directory().join("log");
    let candidate = |name: &str| {
        let candidate = election.candidate().option("--name", name).option("--log-file", &file);
        candidate.flag("-v").property("debug", "all").start()
    };
    let mut candidates: Vec<Running> = ["one", "two", "three"].map(candidate).into_iter().collect();
    let text = || fs::read_to_string(&file).unwrap_or_default();
    for _ in 0..3 {
        let said = |name: &str, event: &str| {
            let (name, event) = (format!(r#""name":"{name}""#), format!(r#""event":"{event}""#));
            text().lines().any(|line| line.contains(&name) && line.contains(&event))
        };
        let names = ["one", "two", "three"];
        let index = wait::until("a leader", || {
            names.iter().position(|name| said(name, "job_started") && !said(name, "exiting"))
        });
        candidates[index].signal(Signal::SIGTERM);
        candidates[index].status();
    }
    let lines = lines(&text());
    for event in ["started", "leading", "exiting"] {
        let names: std::collections::BTreeSet<_> =
            lines.iter().filter(|line| line["event"] == event).filter_map(|line| line["name"].as_str()).collect();
        assert_eq!(names.len(), 3, "{event}");
    }
    election.close(candidates);
}

/// The job and the parent share the three descriptors, so `neli-run` must not change their file status flags.
#[test]
fn the_three_descriptors_are_left_as_they_were() {
    const O_NONBLOCK: u32 = 0o4000;
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    leader.await_lead();
    let family = [leader.process().pid, leader.guard().pid, leader.await_job().pid];
    for pid in family {
        for number in 0..=2 {
            let shown = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).expect("open");
            let flags = shown.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags").trim();
            assert_eq!(u32::from_str_radix(flags, 8).expect("octal") & O_NONBLOCK, 0, "{number} of {pid}");
        }
    }
    election.close([leader]);
}

/// `-q` logs only events that need attention, `-v` logs details for finding a fault.
#[test]
fn quiet_logs_what_needs_attention_and_verbose_logs_details() {
    let election = election(Elector::Log);
    let mut quiet = election.candidate().flag("-q").variable("NELI_RUN_NONSENSE", "1").job(["true"]).start();
    assert_eq!(quiet.status(), 0);
    assert!(quiet.events("started").is_empty() && !quiet.events("warning").is_empty(), "{quiet:?}");
    let mut verbose = election.candidate().flag("-v").property("debug", "broker").job(["true"]).start();
    assert_eq!(verbose.status(), 0);
    assert!(!verbose.events("started").is_empty() && !verbose.events("librdkafka").is_empty(), "{verbose:?}");
}
