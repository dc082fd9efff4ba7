//! Candidates that run their job once in each window of time: those of crontabs (`--window`), and daemons (`--schedule`).
//!
//! A job's witness writes into a file that is named after its window, so the files alone show which window ran. The ends that the jobs have
//! recorded are compared with the journal and the topic of facts.

use std::ffi::OsString;
use std::time::Duration;

use harness::candidate::Candidate;
use harness::judge::recorded::{recorded, windows_done};
use harness::judge::{self, JobRun, Judged};
use harness::wait;
use harness::witness::Witness;

use crate::fault::Dice;
use crate::keys::{FAILURE, RETRIES};
use crate::report::journal as records_of;
use crate::run::Run;

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
        (u64::try_from(after.as_millis()).expect("a small number"), if dice.chance(0.2) { FAILURE } else { 0 })
    }

    /// The step of one machine's clock, as the difference to the others in seconds. With any sequence of steps, clocks never differ by more
    /// than a window.
    pub(crate) fn step(self, degree: f64) -> i64 {
        let most = i64::try_from(self.length().as_secs() / 2).expect("a small number");
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a few seconds")]
        let of_all = (degree * (2 * most + 1) as f64) as i64;
        of_all.min(2 * most) - most
    }
}

/// The witness as the job's main process, which writes into a file that is named after its window.
pub(crate) fn job_of_a_window(witness: &Witness) -> Vec<OsString> {
    const BECOME: &str = r#"window=$(IFS=-T:Z; set -- $NELI_WINDOW_START; echo $1$2$3$4$5$6)
        witness=$1 file=$2$window.; shift 2; exec "$witness" "$file" "$@""#;
    ["sh", "-c", BECOME, "sh"].map(OsString::from).into_iter().chain(witness.command()).collect()
}

impl Run<'_> {
    fn job_runs(&self) -> impl Iterator<Item = &JobRun> {
        self.histories.iter().flat_map(|history| &history.job_runs)
    }

    /// Runs the loop until the job has run in some more windows, each later than all before.
    pub(crate) fn await_windows(&mut self, patience: Duration) {
        if self.parameters.windows.is_none() {
            return;
        }
        let last = judge::windows::latest(self.job_runs());
        let end = wait::after(patience);
        while let Some(violation) = judge::windows::not_run_after(last, self.job_runs()) {
            if !self.violations.is_empty() || self.environment.is_given_up() {
                return;
            }
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                self.violations.push(violation);
            }
        }
    }

    /// Compares the ends that the jobs have recorded with the facts.
    pub(crate) fn judge_windows(&mut self) -> Judged {
        let facts = self.facts();
        let recorded = recorded(&records_of(self, 0).0, &self.journal(), &facts);
        self.read_histories();
        judge::windows::judge(self.job_runs(), &recorded, &windows_done(&facts))
    }
}
