//! Whether the job is healthy: when its health command runs, and what the results mean.
//!
//! It knows one run of the job at a time, and counts from zero for each. It does not know why a run is over, nor which candidate leads.
//! The failure that makes the job unhealthy is the last one of its run.

use alloc::boxed::Box;
use core::time::Duration;

use crate::job::{ANSWER_TAKES, CommandEnd};
use crate::time::Time;

/// How often the job's health is checked, and how many failures are tolerated.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HealthPolicy {
    /// `--health-interval`: from the job's start, or from the last command's end, to the next command.
    pub interval: Duration,
    /// `--health-timeout`: a command that takes longer is killed and counts as failed.
    pub timeout: Duration,
    /// `--health-failures`: this many failures in a row make the job unhealthy; never 0.
    pub failures: u32,
    /// `--health-start`: a failure this early in a run counts only after a success.
    pub start: Duration,
}

/// A failure that counts.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Failure {
    /// The number of failures in a row, with this one.
    pub count: u32,
    /// How the command ended.
    pub end: CommandEnd,
    /// The last line of its output; may be empty.
    pub last_line: Box<str>,
}

/// The health of one job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Health {
    policy: HealthPolicy,
    /// The last command's number.
    last_id: u32,
    check: Check,
    /// When the run began.
    began: Time,
    /// The number of failures of the run in a row.
    failures: u32,
    /// Whether a command of the run has succeeded.
    has_succeeded: bool,
    /// A failure that was not reported yet. One command runs at a time, so there is never a second one.
    failure: Option<Failure>,
}

/// What is waited for next.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Check {
    /// The start of a command at this time.
    At(Time),
    /// The end of the command that began at this time. If it is not reported within the limit, the command has failed.
    Awaited { since: Time, until: Time },
    /// Nothing: the job is unhealthy.
    Done,
    /// A run.
    NoRun,
}

impl Health {
    /// The state of a job that does not run yet.
    pub(crate) const fn new(policy: HealthPolicy) -> Self {
        let (check, began) = (Check::NoRun, Time::ZERO);
        Self { policy, last_id: 0, check, began, failures: 0, has_succeeded: false, failure: None }
    }

    /// A failure that counts: an earlier one, or the last one, by which the job [is unhealthy](Self::is_unhealthy).
    #[must_use]
    pub(crate) fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// When to call [`poll_command`](Self::poll_command), unless something happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self.check {
            Check::At(due) | Check::Awaited { until: due, .. } => Some(due),
            Check::Done | Check::NoRun => None,
        }
    }

    /// Counts a command whose end was not reported in time as failed. Must not be called before the answers that wait were handled: after a
    /// stall the report may be among them.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if matches!(self.check, Check::Awaited { until, .. } if now >= until) {
            self.ended(now, CommandEnd::Unanswered, "".into());
        }
    }

    /// The command that must run now: its number, which the report of its end must contain, and when it must be killed. Early calls return none.
    #[must_use]
    pub(crate) fn poll_command(&mut self, now: Time) -> Option<(u32, Time)> {
        if !matches!(self.check, Check::At(due) if now >= due) {
            return None;
        }
        let kill_at = now + self.policy.timeout;
        self.check = Check::Awaited { since: now, until: kill_at + ANSWER_TAKES };
        self.last_id += 1;
        Some((self.last_id, kill_at))
    }

    /// Notes whether a run of the job is alive, and is not being stopped.
    pub(crate) fn set_running(&mut self, now: Time, is_running: bool) {
        if !is_running {
            self.check = Check::NoRun;
        } else if self.check == Check::NoRun {
            self.check = Check::At(now + self.policy.interval);
            (self.began, self.failures, self.has_succeeded) = (now, 0, false);
        }
    }

    /// The health command with this number has ended. The last line of its output may be empty.
    pub(crate) fn command_ended(&mut self, now: Time, id: u32, end: CommandEnd, last_line: Box<str>) {
        if id == self.last_id {
            self.ended(now, end, last_line);
        }
    }

    /// Whether the run has failed so often that the job is unhealthy.
    pub(crate) fn is_unhealthy(&self) -> bool {
        self.check == Check::Done
    }

    /// The number of failures in a row that make the job unhealthy.
    pub(crate) const fn most_failures(&self) -> u32 {
        self.policy.failures
    }

    fn ended(&mut self, now: Time, end: CommandEnd, last_line: Box<str>) {
        // This end belongs to an earlier run.
        let Check::Awaited { since, .. } = self.check else { return };
        self.check = Check::At(now + self.policy.interval);
        if matches!(end, CommandEnd::Abandoned | CommandEnd::NoTime) {
            return;
        }
        if end == CommandEnd::Exited(0) {
            (self.failures, self.has_succeeded) = (0, true);
            return;
        }
        if !self.has_succeeded && since < self.began + self.policy.start {
            return;
        }
        self.failures += 1;
        if self.failures >= self.policy.failures {
            self.check = Check::Done;
        }
        self.failure = Some(Failure { count: self.failures, end, last_line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: CommandEnd = CommandEnd::Exited(1);
    const WELL: CommandEnd = CommandEnd::Exited(0);

    /// A job's health and the time, for tests.
    struct Scenario {
        health: Health,
        now: Time,
    }

    impl Scenario {
        /// A run that began at 0, checked every 10 s with a limit of 5 s, unhealthy after three failures.
        fn begin(start_seconds: u64) -> Self {
            let policy = HealthPolicy {
                interval: Duration::from_secs(10),
                timeout: Duration::from_secs(5),
                failures: 3,
                start: Duration::from_secs(start_seconds),
            };
            let mut scenario = Self { health: Health::new(policy), now: Time::from_nanos(0) };
            scenario.health.set_running(scenario.now, true);
            scenario
        }

        /// The next command: its number, and its time in seconds.
        fn next_command(&mut self) -> (u32, u64) {
            self.now = self.health.poll_timeout().expect("a command is to come");
            let (id, kill_at) = self.health.poll_command(self.now).expect("a command");
            assert_eq!(kill_at, self.now + Duration::from_secs(5));
            assert_eq!(self.health.poll_timeout(), Some(kill_at + ANSWER_TAKES), "one at a time");
            (id, self.now.as_nanos() / 1_000_000_000)
        }

        /// Ends the command after a second, and returns the result.
        fn end(&mut self, id: u32, end: CommandEnd) -> Option<(u32, CommandEnd)> {
            self.now = self.now + Duration::from_secs(1);
            self.health.command_ended(self.now, id, end, "".into());
            self.failure()
        }

        /// The failure that counts, if there is one. The third one makes the job unhealthy.
        fn failure(&mut self) -> Option<(u32, CommandEnd)> {
            let Failure { count, end, .. } = self.health.poll_failure()?;
            assert_eq!(self.health.is_unhealthy(), count == 3);
            Some((count, end))
        }

        /// Runs the next command, which ends in this way, and returns the result.
        fn go_on(&mut self, end: CommandEnd) -> Option<(u32, CommandEnd)> {
            let (id, _) = self.next_command();
            self.end(id, end)
        }
    }

    #[test]
    fn the_interval_counts_from_the_start_and_from_each_end() {
        let mut scenario = Scenario::begin(0);
        let (first, at) = scenario.next_command();
        assert_eq!(at, 10);
        assert_eq!(scenario.end(first, WELL), None);
        let (second, at) = scenario.next_command();
        assert_eq!(at, 21);
        assert_ne!(first, second);
    }

    #[test]
    fn only_the_set_number_of_failures_in_a_row_makes_the_job_unhealthy() {
        let mut scenario = Scenario::begin(0);
        assert_eq!(scenario.go_on(FAILED), Some((1, FAILED)));
        assert_eq!(scenario.go_on(CommandEnd::TimedOut), Some((2, CommandEnd::TimedOut)));
        assert_eq!(scenario.go_on(WELL), None);
        assert_eq!(scenario.go_on(CommandEnd::Signaled(9)), Some((1, CommandEnd::Signaled(9))));
        assert_eq!(scenario.go_on(FAILED), Some((2, FAILED)));
        let missing = CommandEnd::NotStarted("no such file or directory".into());
        assert_eq!(scenario.go_on(missing.clone()), Some((3, missing)));
        assert_eq!(scenario.health.poll_timeout(), None, "said once, and no more is looked at");
    }

    #[test]
    fn an_early_failure_counts_only_after_a_success() {
        let mut scenario = Scenario::begin(45);
        for _ in 0..4 {
            assert_eq!(scenario.go_on(FAILED), None);
        }
        let (id, at) = scenario.next_command();
        assert_eq!(at, 54, "the grace is over");
        assert_eq!(scenario.end(id, FAILED), Some((1, FAILED)));

        let mut scenario = Scenario::begin(45);
        assert_eq!(scenario.go_on(FAILED), None);
        assert_eq!(scenario.go_on(WELL), None);
        assert_eq!(scenario.go_on(FAILED), Some((1, FAILED)));
    }

    #[test]
    fn a_command_that_began_in_the_start_time_counts_as_early() {
        let mut scenario = Scenario::begin(11);
        let (id, at) = scenario.next_command();
        assert_eq!(at, 10);
        scenario.now = scenario.now + Duration::from_secs(4);
        assert_eq!(scenario.end(id, CommandEnd::TimedOut), None);
    }

    #[test]
    fn a_command_whose_end_is_not_reported_has_failed_and_the_next_one_runs() {
        let mut scenario = Scenario::begin(0);
        let (silent, _) = scenario.next_command();
        scenario.now = scenario.health.poll_timeout().unwrap();
        assert_eq!(scenario.now, Time::from_nanos(16_000_000_000), "its time, and a second for the answer");
        assert_eq!(scenario.health.poll_command(scenario.now), None);
        assert_eq!(scenario.failure(), None, "the report may wait behind another answer of the guard");
        scenario.health.handle_timeout(scenario.now);
        assert_eq!(scenario.failure(), Some((1, CommandEnd::Unanswered)));
        assert_eq!(scenario.end(silent, WELL), None, "said too late");
        let (_, at) = scenario.next_command();
        assert_eq!(at, 26);
    }

    #[test]
    fn each_run_counts_anew() {
        let mut scenario = Scenario::begin(0);
        scenario.go_on(FAILED);
        let (id, _) = scenario.next_command();
        scenario.health.set_running(scenario.now, false);
        assert_eq!(scenario.health.poll_timeout(), None);
        assert_eq!(scenario.end(id, FAILED), None, "of a run that is over");
        scenario.health.set_running(scenario.now, true);
        assert_eq!(scenario.end(id, FAILED), None, "of the run before");
        assert_eq!(scenario.go_on(FAILED), Some((1, FAILED)));
    }

    #[test]
    fn a_command_that_was_killed_with_its_run_or_never_started_does_not_count() {
        let mut scenario = Scenario::begin(60);
        assert_eq!(scenario.go_on(CommandEnd::Abandoned), None);
        assert_eq!(scenario.go_on(CommandEnd::NoTime), None);
        assert_eq!(scenario.go_on(FAILED), None, "it was no success either");
    }
}
