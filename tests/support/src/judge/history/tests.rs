use std::io::Write as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::install;

const SECOND: u64 = 1_000_000_000;
const LEASE: Duration = Duration::from_secs(1);

/// The lines of the jobs of one election, as the witnesses would write them. Slots 0 to 2 have a lease of [`LEASE`].
struct Written {
    directory: TempDir,
    history: History,
}

impl Written {
    fn under(mut law: Law) -> Self {
        let directory = install::scratch();
        law.leases = vec![LEASE; 3];
        Self { history: History::new(directory.path(), law), directory }
    }

    fn new() -> Self {
        Self::under(Law::default())
    }

    /// Adds a line to the file of the first candidate of a slot in this term.
    fn line(&mut self, (slot, term): (usize, u64), line: &str) {
        let name = format!("{}{term}", life_of(slot, 0));
        let file = File::options().create(true).append(true).open(self.directory.path().join(name));
        writeln!(file.expect("the file can be opened"), "{line}").expect("the file can be written");
    }

    /// A job that starts and beats at these times; its pid is that of the term.
    fn job(&mut self, of: (usize, u64), [first, last]: [u64; 2]) {
        let term = of.1;
        self.line(of, &format!("{first} start main {} {term} 0 1", 100 + term));
        self.line(of, &format!("{last} beat main {} {term} 0 0", 100 + term));
    }

    fn violations(&mut self) -> Vec<String> {
        self.history.read();
        self.history.violations()
    }

    #[track_caller]
    fn assert_no_violation(&mut self) {
        assert_eq!(self.violations(), [""; 0]);
    }

    #[track_caller]
    fn assert_violated(&mut self, how: &[&str]) {
        assert_eq!(self.violations(), how);
    }
}

#[test]
fn one_job_after_the_other_is_allowed() {
    let mut written = Written::new();
    written.job((0, 3), [1_000, 2_000]);
    written.job((1, 5), [2_001, 3_000]);
    written.job((0, 9), [4_000, 5_000]);
    written.assert_no_violation();
    let counts = written.history.counts();
    assert_eq!((counts.leaderships, counts.overlaps, counts.excused), (3, 0, 0));
}

#[test]
fn two_jobs_at_the_same_time_are_reported() {
    let mut written = Written::new();
    written.job((0, 3), [1_000, 9_000]);
    written.job((1, 5), [8_000, 12_000]);
    written.assert_violated(&["terms 3 (slot 0) and 5 (slot 1) ran together for 1 us"]);
    assert_eq!(written.history.counts().overlaps, 1);
}

#[test]
fn a_process_of_an_earlier_job_counts_as_the_job() {
    let mut written = Written::new();
    written.job((0, 3), [1_000, 2_000]);
    written.job((1, 5), [3_000, 9_000]);
    written.assert_no_violation();
    written.line((0, 3), "5000 beat daemon 777 3 0 0");
    written.assert_violated(&["terms 3 (slot 0) and 5 (slot 1) ran together for 2 us"]);
}

/// Supervisor and guard were killed at once (assumption 3).
#[test]
fn an_abandoned_job_may_run_beside_the_next() {
    for is_found_before in [true, false] {
        let mut written = Written::new();
        written.job((0, 3), [1_000, 9_000]);
        if is_found_before {
            written.history.read();
        }
        written.history.abandon(0, 0);
        written.job((1, 5), [8_000, 12_000]);
        written.assert_no_violation();
        assert_eq!(written.history.counts().excused, 1);
    }
}

/// The leader of the old topic learns of the new one within two leases.
#[test]
fn jobs_of_a_topic_and_of_the_one_made_after_it_run_together_for_two_leases_at_most() {
    for (together, is_allowed) in [(2 * SECOND, true), (2 * SECOND + 1, false)] {
        let mut written = Written::new();
        written.job((0, 30), [SECOND, 10 * SECOND + together]);
        written.history.read();
        written.history.topic_was_remade(9 * SECOND);
        written.job((1, 5), [10 * SECOND, 20 * SECOND]);
        assert_eq!(written.violations().is_empty(), is_allowed, "{:?}", written.violations());
    }
}

/// With `--overlap` a leader's job may run beside its successor's, for a lease and a moment.
#[test]
fn an_overlap_that_was_asked_for_is_bounded() {
    let asked_for = || Written::under(Law { overlap: Some(Duration::from_millis(300)), ..Law::default() });
    let most = SECOND + 100_000_000;
    for (together, is_allowed) in [(most, true), (most + 1, false)] {
        let mut written = asked_for();
        written.job((0, 3), [SECOND, 3 * SECOND + together]);
        written.job((1, 5), [3 * SECOND, 9 * SECOND]);
        assert_eq!(written.violations().is_empty(), is_allowed, "{:?}", written.violations());
    }
}

/// The longer lease is that of the successor: the bound is the earlier leader's.
#[test]
fn the_earlier_leaders_lease_bounds_an_overlap() {
    let mut written = Written::under(Law { overlap: Some(Duration::from_millis(300)), ..Law::default() });
    written.history.law.leases[1] = 10 * LEASE;
    written.job((0, 3), [SECOND, 5 * SECOND]);
    written.job((1, 5), [3 * SECOND, 9 * SECOND]);
    written.assert_violated(&["terms 3 (slot 0) and 5 (slot 1) ran together for 2000000 us"]);
}

#[test]
fn two_jobs_of_one_term_are_no_overlap_that_was_asked_for() {
    let mut written =
        Written::under(Law { overlap: Some(Duration::from_millis(300)), runs_again: true, ..Law::default() });
    written.line((0, 3), "1000 start main 7 3 0 1");
    written.line((0, 3), "5000 beat main 7 3 0 0");
    written.line((0, 3), "6000 start main 8 3 0 1");
    written.assert_no_violation();
    written.line((0, 3), "7000 beat daemon 7 3 0 0");
    written.line((0, 3), "8000 beat main 8 3 0 0");
    written.assert_violated(&["terms 3 (slot 0) and 3 (slot 0) ran together for 1 us"]);
}

#[test]
fn three_jobs_at_the_same_time_are_reported_although_each_two_may_be() {
    let mut written = Written::under(Law { overlap: Some(Duration::from_millis(300)), ..Law::default() });
    written.job((0, 3), [1_000, 9_000]);
    written.job((1, 5), [6_000, 20_000]);
    written.job((2, 7), [9_001, 30_000]);
    written.assert_no_violation();
    written.line((0, 3), "11001 beat main 103 3 0 0");
    written.assert_violated(&["the jobs of terms {3, 5, 7} ran together for 2 us"]);
}

#[test]
fn a_term_must_be_higher_than_the_ones_before() {
    let mut written = Written::new();
    written.job((0, 5), [1_000, 2_000]);
    written.job((1, 3), [3_000, 4_000]);
    written.assert_violated(&["term 3 of slot 1 came after term 5 (topic 0)"]);
    assert_eq!(written.history.counts().shrunk, 1);
    // The lines of both are read at once, and the later file is found first or last.
    let mut written = Written::new();
    written.job((1, 3), [1_000, 2_000]);
    written.job((0, 5), [3_000, 4_000]);
    written.assert_no_violation();
}

#[test]
fn a_term_belongs_to_one_lead() {
    let mut written = Written::new();
    written.job((0, 5), [1_000, 2_000]);
    written.job((1, 5), [3_000, 4_000]);
    written.assert_violated(&["term 5 of slot 1 came after term 5 (topic 0)"]);
    let again = |runs_again| {
        let mut written = Written::under(Law { runs_again, ..Law::default() });
        written.line((0, 5), "1000 start main 7 5 0 1");
        written.line((0, 5), "2000 start main 8 5 0 1");
        written.violations()
    };
    assert_eq!(again(true), [""; 0]);
    assert_eq!(again(false), ["term 5 of slot 0 came after term 5 (topic 0)"]);
}

#[test]
fn terms_begin_again_in_a_topic_that_was_made_anew() {
    let mut written = Written::new();
    written.job((0, 5), [SECOND, 2 * SECOND]);
    written.history.read();
    written.history.topic_was_remade(3 * SECOND);
    written.job((1, 2), [4 * SECOND, 5 * SECOND]);
    written.assert_no_violation();
    // A minute later the old topic has no leader any more.
    written.job((0, 4), [80 * SECOND, 81 * SECOND]);
    written.assert_no_violation();
    written.job((2, 3), [82 * SECOND, 83 * SECOND]);
    written.assert_violated(&["term 3 of slot 2 came after term 4 (topic 1)"]);
    let mut written = Written::new();
    written.job((0, 5), [SECOND, 2 * SECOND]);
    written.history.read();
    written.history.topic_was_remade(3 * SECOND);
    written.job((0, 9), [80 * SECOND, 81 * SECOND]);
    written.job((1, 2), [82 * SECOND, 83 * SECOND]);
    written.assert_violated(&["term 2 of slot 1 came after term 9 (topic 1)"]);
    // Its terms can be higher at once.
    let of_both = |is_certain| {
        let mut written = Written::new();
        written.history.topic_was_remade(3 * SECOND);
        if is_certain {
            written.history.topic_is_remade(4 * SECOND);
        }
        written.job((0, 0), [SECOND, 6 * SECOND]);
        written.job((1, 6), [5 * SECOND, 7 * SECOND]);
        written.violations()
    };
    assert_eq!(of_both(true), [""; 0]);
    assert_eq!(of_both(false), ["terms 0 (slot 0) and 6 (slot 1) ran together for 1000000 us"]);
}

#[test]
fn a_process_that_outlives_its_term_is_an_orphan() {
    let after = 10 * SECOND;
    for (at, is_allowed) in [(after + SECOND, true), (after + SECOND + 1, false)] {
        for of_deadline in [true, false] {
            let mut written = Written::new();
            // By its deadline, or since the lease descriptor showed no deadline any more.
            let deadline = if of_deadline { after } else { after + 100 * SECOND };
            written.line((0, 3), &format!("{SECOND} start main 7 3 {deadline} 1"));
            if !of_deadline {
                written.line((0, 3), &format!("{after} beat main 7 3 0 0"));
            }
            written.line((0, 3), &format!("{at} beat child 8 3 {} 0", if of_deadline { deadline } else { 0 }));
            let expected: &[&str] = if is_allowed {
                &[]
            } else {
                &["child 8 of term 3 of slot 0 wrote a line 1000 ms after its term was over"]
            };
            written.assert_violated(expected);
        }
    }
}

#[test]
fn an_abandoned_job_is_no_orphan() {
    let mut written = Written::new();
    written.history.abandon(0, 0);
    written.line((0, 3), "1000 start main 7 3 2000 1");
    written.line((0, 3), &format!("{} beat main 7 3 2000 0", 9 * SECOND));
    written.assert_no_violation();
}

#[test]
fn a_beat_after_the_leases_end_is_reported_if_that_is_asked_for() {
    let margin = Duration::from_millis(100);
    for (beyond, is_allowed) in [(100_000_000, true), (102_000_000, false)] {
        for asked_for in [true, false] {
            let mut written = Written::under(Law { kill_margin: asked_for.then_some(margin), ..Law::default() });
            written.line((0, 3), &format!("{SECOND} start main 7 3 {} 1", 2 * SECOND));
            written.line((0, 3), &format!("{} beat main 7 3 {} 0", 2 * SECOND + beyond, 2 * SECOND));
            let expected: &[&str] = if is_allowed || !asked_for {
                &[]
            } else {
                &["main 7 of term 3 of slot 0 wrote a line 2 ms after its lease's end"]
            };
            written.assert_violated(expected);
        }
    }
}

#[test]
fn a_stop_signal_is_reported_where_none_is_expected() {
    let signalled = |undisturbed| {
        let mut written = Written::under(Law { undisturbed, ..Law::default() });
        written.line((0, 3), "1000 start main 7 3 0 1");
        written.line((0, 3), "2000 signal main 7 3 0 15");
        written
    };
    signalled(false).assert_no_violation();
    signalled(true).assert_violated(&["signal 15 at main of term 3"]);
    let mut stopped_by_the_test = signalled(true);
    stopped_by_the_test.history.expect_signals();
    stopped_by_the_test.assert_no_violation();
}

/// A run that has written nothing for a while is over: then none of its processes may be left.
#[test]
fn a_process_that_is_left_when_its_run_is_over_is_an_orphan() {
    for (is_left, abandoned) in [(true, false), (true, true), (false, false)] {
        let mut written = Written::new();
        let prefix = written.history.prefix(0, 0);
        let mut sleeper = Command::new("sh");
        // The name of the file is among the witness's arguments.
        sleeper.args(["-c", "read line", "witness"]).arg(if is_left { prefix } else { "another.".into() });
        let mut sleeper = sleeper.stdin(Stdio::piped()).spawn().expect("a shell");
        let (pid, now) = (sleeper.id(), wait::now());
        let words = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wait::until_true("a shell's arguments", || words().ends_with(b".\0"));
        written.line((0, 3), &format!("{} start main {pid} 3 0 1", now - 5 * SECOND));
        written.line((0, 3), &format!("{} beat main {pid} 3 0 0", now - 4 * SECOND));
        if abandoned {
            written.history.abandon(0, 0);
        }
        written.history.read();
        written.history.close_what_is_over();
        let found = written.history.violations();
        sleeper.kill().and_then(|()| sleeper.wait()).expect("our own child");
        assert_eq!(found.len(), usize::from(is_left && !abandoned), "{found:?}");
        assert!(found.iter().all(|found| found.ends_with("of term 3 of slot 0 are left")), "{found:?}");
        assert!(written.history.open().is_empty());
    }
}

#[test]
fn a_run_that_may_still_write_is_not_closed() {
    let mut written = Written::new();
    let now = wait::now();
    written.job((0, 3), [now - 5 * SECOND, now - SECOND]);
    written.history.read();
    assert_eq!(written.history.current(), None, "it has written nothing for a second");
    written.history.close_what_is_over();
    assert_eq!(written.history.open(), [0]);
    written.line((0, 3), &format!("{} beat main 103 3 0 0", wait::now()));
    written.history.read();
    assert_eq!(written.history.current(), Some(0));
}

#[test]
fn the_end_of_a_run_is_the_first_that_it_says() {
    let ends = |lines: &[&str]| {
        let mut written = Written::new();
        written.line((0, 3), "1000 start main 7 3 0 1");
        for line in lines {
            written.line((0, 3), line);
        }
        written.history.read();
        written.history.job_runs[0].end
    };
    assert_eq!(ends(&["2000 beat main 7 3 0 0"]), End::Unrecorded);
    assert_eq!(ends(&["2000 end main 7 3 0 0"]), End::Success);
    assert_eq!(ends(&["2000 end main 7 3 0 3"]), End::Unrecorded, "it failed");
    assert_eq!(ends(&["2000 end child 8 3 0 0"]), End::Unrecorded, "another process of the job");
    assert_eq!(ends(&["2000 signal child 8 3 0 15", "2001 end main 7 3 0 0"]), End::Stopped);
    assert_eq!(ends(&["2000 end main 7 3 0 0", "2001 signal child 8 3 0 15"]), End::Success);
    assert_eq!(ends(&["2000 signal main 7 3 0 18", "2001 end main 7 3 0 0"]), End::Success, "CONT stops nothing");
}
