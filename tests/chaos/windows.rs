//! Candidates that run their job once in each window of time: those of crontabs (`--window`), and daemons (`--schedule`).
//!
//! A job's witness writes into a file that is named after its window, so the files alone show which window ran. The ends that the jobs have
//! recorded are compared with the journal and the topic of facts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use harness::candidate::Candidate;
use harness::journal;
use harness::wait;
use harness::witness::Witness;
use serde_json::Value;

use crate::fault::Dice;
use crate::job_run::{End, JobRun};
use crate::keys::{FAILURE, RETRIES, Recorded, TICK_MS};
use crate::run::Run;

/// The number of later windows in which the job must have run in the end.
const NEXT_WINDOWS: usize = 2;

/// The source of a candidate's window, and the length of the windows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Windows {
    /// A crontab: each slot's candidate is started for one window, by its own clock.
    Crontab(Duration),
    /// A schedule: each slot's candidate is a daemon.
    Daemon(Duration),
}

impl Windows {
    fn length(self) -> Duration {
        let (Self::Crontab(length) | Self::Daemon(length)) = self;
        length
    }

    /// The option for a command line that repeats the run.
    pub(crate) fn shown(self) -> String {
        let length = humantime::format_duration(self.length());
        match self {
            Self::Crontab(_) => format!("--window {length}"),
            Self::Daemon(_) => format!("--schedule {length}"),
        }
    }

    /// Adds the options for the windows to a candidate.
    pub(crate) fn candidate(self, candidate: Candidate) -> Candidate {
        let length = humantime::format_duration(self.length()).to_string();
        match self {
            Self::Crontab(_) => candidate.option("--window", length).option("--retries", RETRIES),
            Self::Daemon(_) => candidate.option("--schedule", format!("every {length}")),
        }
    }

    /// The longest pause from a candidate's end to the next one's start. A crontab may start it at any time of a window.
    pub(crate) fn longest_pause(self) -> Duration {
        match self {
            Self::Crontab(length) => length * 3 / 5,
            Self::Daemon(_) => Duration::from_millis(1_200),
        }
    }

    /// When a job ends by itself, and with which status. A daemon's job may run longer than its window.
    pub(crate) fn end(self, dice: &mut Dice) -> (u64, i32) {
        let longest = match self {
            Self::Crontab(length) => length / 3,
            Self::Daemon(length) => length * 5 / 4,
        };
        let after = dice.between(Duration::from_millis(100), longest);
        (u64::try_from(after.as_millis()).expect("seconds"), if dice.chance(0.2) { FAILURE } else { 0 })
    }

    /// The step of one machine's clock, as the difference to the others in seconds. With any sequence of steps, clocks never differ by more
    /// than a window.
    pub(crate) fn step(self, degree: f64) -> i64 {
        let most = i64::try_from(self.length().as_secs() / 2).expect("a few");
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a few seconds")]
        let of_all = (degree * (2 * most + 1) as f64) as i64;
        of_all.min(2 * most) - most
    }
}

/// The results of the windows.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// A line for the terminal.
    pub(crate) shown: String,
    /// The violations.
    pub(crate) violations: Vec<String>,
}

/// The witness as the job's main process, which writes into a file that is named after its window.
pub(crate) fn job_of_a_window(witness: &Witness) -> Vec<OsString> {
    const BECOME: &str = r#"window=$(IFS=-T:Z; set -- $NELI_WINDOW_START; echo $1$2$3$4$5$6)
        witness=$1 file=$2$window.; shift 2; exec "$witness" "$file" "$@""#;
    ["sh", "-c", BECOME, "sh"].map(OsString::from).into_iter().chain(witness.command()).collect()
}

/// The number of the window that begins at this time, given in RFC 3339 in UTC: its digits, as in a file's name.
fn number_of(start: &str) -> u64 {
    let digits: String = start.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no window: {start:?}"))
}

impl Run<'_> {
    /// The windows in which a job has succeeded.
    fn windows_done(&self) -> BTreeSet<u64> {
        let runs = self.histories.iter().flat_map(|history| &history.job_runs);
        runs.filter(|run| run.end == End::Success).filter_map(|run| run.window).collect()
    }

    /// The windows in which a job has run. A daemon whose job fails continues to lead, and its job fails again.
    fn windows_run(&self) -> BTreeSet<u64> {
        self.histories.iter().flat_map(|history| &history.job_runs).filter_map(|run| run.window).collect()
    }

    /// Runs the loop until the job has run in some more windows, each later than all before.
    pub(crate) fn await_windows(&mut self, patience: Duration) {
        if self.orders.windows.is_none() {
            return;
        }
        let last = self.windows_run().last().copied().unwrap_or_default();
        let end = wait::after(patience);
        while self.windows_run().range(last + 1..).count() < NEXT_WINDOWS {
            if !self.violations.is_empty() || self.ground.is_given_up() {
                return;
            }
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                self.violations.push(format!("the windows after {last} are not run in the end"));
            }
        }
    }

    /// Compares the ends that the jobs have recorded with the facts.
    pub(crate) fn judge_windows(&self) -> Judged {
        let mut runs: Vec<(u64, &JobRun)> = Vec::new();
        for run in self.histories.iter().flat_map(|history| &history.job_runs).filter(|run| run.main != 0) {
            runs.extend(run.window.map(|window| (window, run)));
        }
        runs.sort_by_key(|(_, run)| run.span.0);
        let (journal, done) = (self.recorded(), self.windows_recorded_as_done());
        let last_topic = runs.iter().map(|(_, run)| run.generation).max().unwrap_or_default();
        let mut judged = Judged::default();
        for (term, window) in done.keys() {
            let is_it = |(of, run): &&(u64, &JobRun)| (of, run.term) == (window, *term);
            let ends: Vec<_> = runs.iter().filter(is_it).map(|(_, run)| (run.end, run.abandoned)).collect();
            if !ends.iter().any(|(end, abandoned)| *end == End::Success || *abandoned) {
                judged.violations.push(format!(
                    "window {window} is recorded as done in term {term}, and no job of it has succeeded: {ends:?}"
                ));
            }
        }
        let nothing = Recorded::default();
        let (mut again, mut earlier) = (BTreeMap::<String, usize>::new(), 0);
        for (at, (window, first)) in runs.iter().enumerate() {
            if first.end != End::Success || first.abandoned {
                continue;
            }
            let later = runs[at + 1..].iter().find(|(other, run)| other <= window && run.span.0 > first.span.1);
            let Some((other, second)) = later else { continue };
            let terms = (first.term, second.term);
            let same_lead = (first.generation, terms.0) == (second.generation, terms.1);
            let done_ms = done.get(&(terms.0, *window)).copied();
            // A claim in a topic that was created again came after that. The journals of earlier topics are gone.
            let claimed_ms = if second.generation == last_topic {
                journal.get(&terms.1).and_then(|of_term| of_term.claimed_ms)
            } else {
                None
            };
            let release =
                journal.get(&terms.0).filter(|_| first.generation == last_topic).unwrap_or(&nothing).release.as_ref();
            let is_before = |(offset, _): &&(u64, Value)| second.generation == last_topic && *offset < terms.1;
            let release = release.filter(is_before).map(|(_, release)| release);
            let why = release.map_or("none", |release| release["why"].as_str().unwrap_or("none"));
            let names_it = release.is_some_and(|release| {
                release["exit"] == 0 && release["once"].as_str().map(number_of) == Some(*window)
            });
            let was_known = done_ms.zip(claimed_ms).is_some_and(|(done, claimed)| done + TICK_MS < claimed);
            if same_lead || names_it || was_known {
                judged.violations.push(format!(
                    "window {window} was done in term {}, which was known, and window {other} ran in term {}",
                    terms.0, terms.1
                ));
            } else if ["exited", "failed"].contains(&why) {
                judged.violations.push(format!(
                    "window {window} was done in term {}, was released without that, and window {other} ran in term {}",
                    terms.0, terms.1
                ));
            } else {
                *again.entry(format!("release {why}")).or_default() += 1;
                earlier += usize::from(other < window);
            }
        }
        let succeeded = runs.iter().filter(|(_, run)| run.end == End::Success).count();
        judged.shown = format!(
            "windows {} done, {} runs, {succeeded} of them succeeded; run again since the success was not known: {again:?}, {earlier} of \
             them for an earlier window",
            self.windows_done().len(),
            runs.len(),
        );
        judged
    }

    /// When the success of a term's run in a window was recorded, by the broker's clock.
    fn windows_recorded_as_done(&self) -> BTreeMap<(u64, u64), u64> {
        let mut done = BTreeMap::new();
        for raw in journal::read(&self.ground.cluster().kafka(), &format!("{}.neli.once", self.group)) {
            let fact: Value =
                raw.payload.as_deref().and_then(|fact| serde_json::from_slice(fact).ok()).unwrap_or_default();
            if let ("done", Some(term)) = (fact["outcome"].as_str().unwrap_or_default(), fact["term"].as_u64()) {
                let window = number_of(fact["key"].as_str().unwrap_or_default());
                done.entry((term, window)).or_insert(raw.written_ms);
            }
        }
        done
    }
}
