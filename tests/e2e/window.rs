//! `--window`: the job succeeds once in each window of time, with machines whose clocks differ.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::install;
use harness::wait;
use neli_kafka::clock;
use neli_run::text::to_the_second;

use crate::{election, noted_runs};

/// A day, in seconds.
const DAY: u64 = 24 * 60 * 60;
const HOUR: u64 = 60 * 60;

/// The wall clock of one machine, which the test sets.
pub(crate) struct WallClock {
    step: PathBuf,
}

impl WallClock {
    /// The clock of the machine with this name, at this many seconds after the first midnight.
    pub(crate) fn new(election: &TestElection, name: &str, seconds: u64) -> Self {
        let clock = Self { step: election.directory().join(format!("{name}-clock")) };
        clock.set(seconds);
        clock
    }

    pub(crate) fn set(&self, seconds: u64) {
        let shown = i128::from(midnight(0)) + i128::from(seconds);
        let step = shown - i128::from(clock::wall_ms() / 1_000);
        // The file is replaced in one step, as the kernel sets a clock in one step.
        let next = self.step.with_extension("next");
        fs::write(&next, step.to_string()).expect("our own directory");
        fs::rename(&next, &self.step).expect("our own directory");
    }

    /// A candidate on that machine.
    pub(crate) fn candidate(&self, candidate: Candidate) -> Candidate {
        candidate.variable("LD_PRELOAD", install::stepped_clock()).variable("STEPPED_CLOCK", &self.step)
    }
}

/// The beginning of this day in seconds since 1970; day 0 begins in two days by the real clock.
fn midnight(day: u64) -> u64 {
    static TODAY: OnceLock<u64> = OnceLock::new();
    (TODAY.get_or_init(|| clock::wall_ms() / 1_000 / DAY) + 2 + day) * DAY
}

/// The same as a window's key.
pub(crate) fn key(day: u64) -> String {
    to_the_second(midnight(day) * 1_000)
}

/// The job of the tests of windows: it writes its candidate and window when it begins, and then runs this script.
pub(crate) fn noting_job(election: &TestElection, script: &str) -> [String; 3] {
    noted_runs::job(election, "$NELI_NAME $NELI_WINDOW_START", script)
}

/// The runs so far, each with its candidate and window.
pub(crate) fn runs(election: &TestElection) -> Vec<String> {
    noted_runs::lines(election)
}

/// A candidate on a machine with this name, started as by its crontab; its job writes a line when it begins, and then runs this script.
pub(crate) fn start(election: &TestElection, (name, clock): (&str, &WallClock), script: &str) -> Running {
    crontab(election, (name, clock), script).start()
}

fn crontab(election: &TestElection, (name, clock): (&str, &WallClock), script: &str) -> Candidate {
    let candidate = election.candidate().option("--window", "1d").option("--name", name);
    clock.candidate(candidate.job(noting_job(election, script)))
}

fn assert_skipped(run: &mut Running, by: &str, (key, newer): (&str, Option<&str>)) {
    assert_eq!(run.status(), 0, "{run:?}");
    let skipped = run.await_event("once_skipped");
    assert_eq!((skipped.text("key"), skipped.text("by")), (key, by), "{skipped:?}");
    assert_eq!(skipped.fields.get("newer").and_then(|newer| newer.as_str()), newer, "{skipped:?}");
    assert!(run.events("job_started").is_empty(), "{run:?}");
}

/// Three candidates started at one time by clocks that differ by forty seconds, and again a day later.
#[test]
fn clocks_that_differ_agree_on_the_window() {
    let election = election(Elector::Group);
    let until_go_file = election.until_go_file();
    let machines = [("a", 2 * HOUR - 20), ("b", 2 * HOUR), ("c", 2 * HOUR + 20)];
    let clocks = machines.map(|(name, seconds)| (name, WallClock::new(&election, name, seconds)));
    let mut starts: Vec<Running> =
        clocks.iter().map(|(name, clock)| start(&election, (name, clock), &until_go_file)).collect();
    wait::until_true("a run", || runs(&election).len() == 1);
    election.create_go_file();
    let runner = runs(&election)[0].split(' ').next().expect("a name").to_owned();
    assert_eq!(runs(&election), [format!("{runner} {}", key(0))]);
    for ((name, _), start) in clocks.iter().zip(&mut starts) {
        if *name == runner {
            assert_eq!(start.status(), 0);
        } else {
            assert_skipped(start, &runner, (&key(0), None));
        }
    }
    let [(late, late_clock), (next, next_clock), _] = &clocks;
    next_clock.set(DAY + 2 * HOUR);
    assert_eq!(start(&election, (next, next_clock), "true").status(), 0);
    assert_eq!(runs(&election)[1..], [format!("{next} {}", key(1))]);
    // Its crontab started it a day late, and that window is over.
    assert_skipped(&mut start(&election, (late, late_clock), "true"), next, (&key(0), Some(&key(1))));
    assert_eq!(runs(&election).len(), 2);
}

/// The job learns its window. Here the second one begins two hours after midnight in a time zone that is an hour ahead of UTC.
#[test]
fn the_job_learns_its_window() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", DAY - 20 * 60);
    let says = "echo $NELI_ONCE $NELI_WINDOW_START $NELI_WINDOW_END >&2";
    let run = |window: &str, zone: &str| {
        let candidate = election.candidate().option("--window", window).option("--timezone", zone);
        let mut run = clock.candidate(candidate.job(["sh", "-c", says])).start();
        assert_eq!(run.status(), 0);
        run.strange_lines()
    };
    let of = |from: u64, until: u64| {
        let [from, until] = [from, until].map(|at| to_the_second((midnight(0) + at) * 1_000));
        vec![format!("{from} {from} {until}")]
    };
    assert_eq!(run("1d", "UTC"), of(0, DAY));
    assert_eq!(run("1d/2h", "Etc/GMT-1"), of(HOUR, DAY + HOUR));
    clock.set(DAY + HOUR);
    assert_eq!(run("1d/2h", "Etc/GMT-1"), of(DAY + HOUR, 2 * DAY + HOUR));
}

/// A clock is set back over a window's edge just after the job has run in the new window.
#[test]
fn a_clock_that_is_set_back_runs_nothing_twice() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", DAY + 5);
    let mut run = start(&election, ("a", &clock), "true");
    assert_eq!((run.await_event("job_started").text("window"), run.status()), (key(1).as_str(), 0));
    clock.set(DAY - 60);
    assert_skipped(&mut start(&election, ("a", &clock), "true"), "a", (&key(0), Some(&key(1))));
    clock.set(DAY + 5);
    assert_skipped(&mut start(&election, ("a", &clock), "true"), "a", (&key(1), None));
    clock.set(2 * DAY + 5);
    assert_eq!(start(&election, ("a", &clock), "true").status(), 0);
    assert_eq!(runs(&election), [format!("a {}", key(1)), format!("a {}", key(2))]);
}

/// One machine's clock is ten days ahead. The others do not wait for ten days, and what they run hides nothing from it.
#[test]
fn a_clock_that_is_far_ahead_stops_no_other_machine() {
    let election = election(Elector::Log);
    let ahead = WallClock::new(&election, "ahead", 10 * DAY + HOUR);
    assert_eq!(start(&election, ("ahead", &ahead), "true").status(), 0);
    let right = WallClock::new(&election, "right", HOUR);
    let mut run = start(&election, ("a", &right), "true");
    assert_eq!(run.status(), 0);
    let warnings = run.warnings_with("lies more than a window ahead of this machine's clock");
    assert_eq!(warnings.len(), 1, "{run:?}");
    assert_skipped(&mut start(&election, ("b", &right), "true"), "a", (&key(0), None));
    assert_skipped(&mut start(&election, ("ahead", &ahead), "true"), "ahead", (&key(10), None));
    assert_eq!(runs(&election), [format!("ahead {}", key(10)), format!("a {}", key(0))]);
}

/// Retries are counted per window.
#[test]
fn a_run_that_failed_in_a_window_is_tried_again_in_the_next() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", HOUR);
    let failing = |name| crontab(&election, (name, &clock), "exit 3").option("--retries", "1").start();
    assert_eq!(failing("a").status(), 3);
    assert_eq!(runs(&election).len(), 2);
    let mut second = failing("b");
    assert_eq!(second.status(), 3);
    assert!(second.events("job_started").is_empty(), "{second:?}");
    clock.set(DAY + HOUR);
    assert_eq!(failing("b").status(), 3);
    assert_eq!(runs(&election)[2..], [format!("b {}", key(1)), format!("b {}", key(1))]);
}

/// A key of `--once` that is written like a window's start is another key than that of the window, in both orders.
#[test]
fn a_key_that_is_written_like_a_window_is_not_the_window() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", HOUR);
    let once = |day| {
        let candidate = election.candidate().option("--once", key(day)).option("--name", "once");
        let mut run = clock.candidate(candidate.job(noting_job(&election, "true"))).start();
        assert_eq!(run.status(), 0, "{run:?}");
    };
    once(0);
    assert_eq!(start(&election, ("a", &clock), "true").status(), 0);
    clock.set(DAY + HOUR);
    assert_eq!(start(&election, ("a", &clock), "true").status(), 0);
    once(1);
    // Without `--window` the job gets no window.
    assert_eq!(runs(&election), ["once".into(), format!("a {}", key(0)), format!("a {}", key(1)), "once".into()]);
    once(1);
    assert_skipped(&mut start(&election, ("a", &clock), "true"), "a", (&key(1), None));
    assert_eq!(runs(&election).len(), 4);
}

/// With other windows, or none, the next leader would run the job again. The log of each candidate says so, and doctor.
#[test]
fn candidates_with_other_windows_are_told_of_each_other() {
    let election = election(Elector::Log);
    let start = |options: &[&str]| {
        let candidate = election.candidate().job(["sh", "-c", &election.until_go_file()]);
        options.iter().fold(candidate, Candidate::flag).start()
    };
    let mut first = start(&["--window", "1d", "--retries", "2"]);
    first.await_lead();
    let mut second = start(&["--window", "1d/3h"]);
    let text = "was started with --window 1d --retries 2, and this candidate with --window 1d/3h: give all candidates the same";
    wait::until_true("a warning of the second", || !second.warnings_with(text).is_empty());
    let text = "was started with --window 1d/3h, and this candidate with --window 1d --retries 2: give all candidates the same";
    wait::until_true("a warning of the first", || !first.warnings_with(text).is_empty());
    let mut third = start(&[]);
    let text =
        "was started without --once, --window and --schedule, and this candidate with --window 1d --retries 2: give";
    wait::until_true("another warning of the first", || !first.warnings_with(text).is_empty());
    election.create_go_file();
    assert_eq!((first.status(), second.status(), third.status()), (0, 0, 0));
}
