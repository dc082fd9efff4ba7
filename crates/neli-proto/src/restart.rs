//! Whether the job is run again, and how long after its end (`--restart`, docs/options.md, Options).
//!
//! It judges runs that ended by themselves. It does not check whether the candidate still leads.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::job::JobStatus;
use crate::record::Why;
use crate::time::Time;

/// The longest doubled delay.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// A run of this length has shown that the job can run, so its failure counts as the first one.
const LONG_RUN: Duration = Duration::from_secs(30);

/// The rules for running the job again.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct RestartPolicy {
    /// The ends after which the job is run again.
    pub restart: Restart,
    /// `--restart-delay`: the time from the end of a run's tree to the next run, while no run fails.
    pub delay: Duration,
    /// `--restart-limit`; `None` means no limit.
    pub limit: Option<Limit>,
}

/// `--restart`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Restart {
    /// After every end.
    Always,
    /// After none.
    #[default]
    No,
    /// After a signal, or a status other than 0.
    OnFailure,
}

/// A limit on the restarts after failures within a time.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Limit {
    /// The number of restarts.
    pub restarts: u32,
    /// The time.
    pub within: Duration,
}

/// The failed runs so far.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct FailedRuns {
    /// In a row, in whichever terms: for the back-off.
    in_a_row: u32,
    /// In a row in this term, except those after a long run: for the delay of the next run.
    in_term: u32,
    /// The times of those in this term that were followed by another run, as far back as the limit needs them.
    restarts: VecDeque<Time>,
}

impl FailedRuns {
    /// Begins a term.
    pub(crate) fn begin_term(&mut self) {
        self.in_term = 0;
        self.restarts.clear();
    }

    /// Notes a run that ended by itself at `now`, after `ran`. Returns how long after the end of its tree the job is run again.
    ///
    /// # Errors
    ///
    /// Why the term ends instead.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        policy: RestartPolicy,
        status: JobStatus,
        ran: Duration,
    ) -> Result<Duration, Why> {
        self.ended(status, ran);
        let failed = status != JobStatus::Exited(0);
        let again = match policy.restart {
            Restart::Always => true,
            Restart::No => false,
            Restart::OnFailure => failed,
        };
        if !again {
            return Err(Why::Exited);
        }
        if !failed {
            self.in_term = 0;
            return Ok(policy.delay);
        }
        if let Some(limit) = policy.limit {
            self.restarts.retain(|at| now.since(*at) < limit.within);
            if self.restarts.len() >= limit.restarts as usize {
                return Err(Why::RestartLimit);
            }
            self.restarts.push_back(now);
        }
        self.in_term = if ran >= LONG_RUN { 1 } else { self.in_term.saturating_add(1) };
        // A configured delay that is longer stays as it is.
        Ok(doubled(policy.delay, self.in_term, LONGEST_DELAY.max(policy.delay)))
    }
}

// ---- the back-off: how long a candidate whose runs fail leaves a vacancy to the other candidates. Runs that ended by themselves and runs that
// were unhealthy count, in any term: another run that was stopped or killed shows nothing about the job

/// The back-off after the first failed run.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);

/// The longest back-off.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// A run that lasts this long shows that the job can run here.
pub(crate) const SOUND_RUN: Duration = Duration::from_secs(600);

impl FailedRuns {
    /// Notes a run that has ended by itself, after `ran`.
    pub(crate) fn ended(&mut self, status: JobStatus, ran: Duration) {
        if status == JobStatus::Exited(0) { self.forget() } else { self.failed(ran) }
    }

    /// Notes a run that has failed, or is unhealthy, after `ran`.
    pub(crate) fn failed(&mut self, ran: Duration) {
        self.in_a_row = if ran >= SOUND_RUN { 1 } else { self.in_a_row.saturating_add(1) };
    }

    /// When a run that began at `since` and is still running resets the failures; `None` if there are none.
    pub(crate) fn forgotten_at(&self, since: Time) -> Option<Time> {
        (self.in_a_row > 0).then(|| since + SOUND_RUN)
    }

    /// Resets the failures, because a run has succeeded, or has lasted for long enough.
    pub(crate) const fn forget(&mut self) {
        self.in_a_row = 0;
    }

    /// The addition to the claim delay: 500 ms, doubled by each failed run in a row, up to a minute.
    pub(crate) fn back_off(&self) -> Duration {
        back_off(self.in_a_row)
    }
}

/// The back-off after this many failed runs in a row.
pub(crate) fn back_off(in_a_row: u32) -> Duration {
    doubled(FIRST_BACK_OFF, in_a_row, LONGEST_BACK_OFF)
}

/// A delay after so many failures in a row: none without one, `first` after the first, and twice as long after each other, up to `longest`.
pub(crate) fn doubled(first: Duration, in_a_row: u32, longest: Duration) -> Duration {
    let doublings = in_a_row.checked_sub(1);
    doublings.map_or(Duration::ZERO, |count| first.saturating_mul(2_u32.saturating_pow(count)).min(longest))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const FAILED: JobStatus = JobStatus::Exited(1);
    const DONE: JobStatus = JobStatus::Exited(0);

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn policy(restart: Restart, delay: Duration, limit: Option<Limit>) -> RestartPolicy {
        RestartPolicy { restart, delay, limit }
    }

    /// Performs runs with these ends and lengths (seconds), one after another, and waits for the delay after each failure.
    fn follow(policy: RestartPolicy, runs: &[(JobStatus, u64)]) -> Vec<Result<Duration, Why>> {
        let (mut failed_runs, mut now) = (FailedRuns::default(), Time::ZERO);
        let judge = |(status, ran): &(JobStatus, u64)| {
            now = now + seconds(*ran);
            let decision = failed_runs.judge(now, policy, *status, seconds(*ran));
            if let Ok(delay) = decision {
                now = now + delay;
            }
            decision
        };
        runs.iter().map(judge).collect()
    }

    fn delays(policy: RestartPolicy, runs: &[(JobStatus, u64)]) -> Vec<u64> {
        follow(policy, runs).into_iter().map(|decision| decision.unwrap().as_secs()).collect()
    }

    #[test]
    fn each_policy_has_its_ends() {
        let ends = [DONE, FAILED, JobStatus::Exited(127), JobStatus::Signaled(9), JobStatus::Signaled(15)];
        for (restart, again) in [
            (Restart::Always, [true, true, true, true, true]),
            (Restart::No, [false, false, false, false, false]),
            (Restart::OnFailure, [false, true, true, true, true]),
        ] {
            let expected = again.map(|again| if again { Ok(seconds(1)) } else { Err(Why::Exited) });
            let judged = ends.map(|end| follow(policy(restart, seconds(1), None), &[(end, 0)])[0]);
            assert_eq!(judged, expected, "{restart:?}");
        }
    }

    #[test]
    fn failures_double_the_delay_up_to_half_a_minute() {
        let always = policy(Restart::Always, seconds(1), None);
        assert_eq!(delays(always, &[(FAILED, 0); 8]), [1, 2, 4, 8, 16, 30, 30, 30]);
        let slow = policy(Restart::Always, seconds(20), None);
        assert_eq!(delays(slow, &[(FAILED, 0); 3]), [20, 30, 30]);
        let slower = policy(Restart::Always, seconds(60), None);
        assert_eq!(delays(slower, &[(FAILED, 0); 3]), [60, 60, 60]);
        let at_once = policy(Restart::Always, Duration::ZERO, None);
        assert_eq!(delays(at_once, &[(FAILED, 0); 100]), [0; 100]);
    }

    #[test]
    fn a_success_and_a_long_run_reset_the_delay() {
        let always = policy(Restart::Always, seconds(1), None);
        let short = (FAILED, 29);
        assert_eq!(delays(always, &[short, short, (DONE, 0), (DONE, 0), short, short]), [1, 2, 1, 1, 1, 2]);
        assert_eq!(delays(always, &[short, short, (FAILED, 30), short]), [1, 2, 1, 2]);
    }

    #[test]
    fn the_number_of_restarts_is_limited() {
        let limit = Some(Limit { restarts: 2, within: seconds(300) });
        let on_failure = policy(Restart::OnFailure, seconds(1), limit);
        let decisions = follow(on_failure, &[(FAILED, 0); 3]);
        assert_eq!(decisions, [Ok(seconds(1)), Ok(seconds(2)), Err(Why::RestartLimit)]);
        let none_at_all = policy(Restart::Always, seconds(1), Some(Limit { restarts: 0, within: seconds(1) }));
        assert_eq!(follow(none_at_all, &[(DONE, 0), (FAILED, 0)]), [Ok(seconds(1)), Err(Why::RestartLimit)]);
    }

    #[test]
    fn an_old_failure_does_not_count() {
        let limit = Some(Limit { restarts: 2, within: seconds(100) });
        let always = policy(Restart::Always, seconds(1), limit);
        let decisions = follow(always, &[(FAILED, 60); 20]);
        assert!(decisions.iter().all(|decision| *decision == Ok(seconds(1))), "{decisions:?}");
        // A failure that is exactly as old as the limit's time does not count.
        let decisions = follow(always, &[(FAILED, 0), (FAILED, 50), (FAILED, 48)]);
        assert_eq!(decisions.last(), Some(&Ok(seconds(1))));
        let decisions = follow(always, &[(FAILED, 0), (FAILED, 60), (FAILED, 0)]);
        assert_eq!(decisions.last(), Some(&Err(Why::RestartLimit)));
    }

    #[test]
    fn successes_have_no_limit() {
        let limit = Some(Limit { restarts: 1, within: seconds(300) });
        let always = policy(Restart::Always, Duration::ZERO, limit);
        assert_eq!(delays(always, &[(DONE, 0); 50]), [0; 50]);
    }

    /// The back-off after each of these runs, in milliseconds.
    fn back_offs_after(runs: &[(JobStatus, u64)]) -> Vec<u128> {
        let mut failed = FailedRuns::default();
        let after = |(status, seconds): &(JobStatus, u64)| {
            failed.ended(*status, Duration::from_secs(*seconds));
            failed.back_off().as_millis()
        };
        runs.iter().map(after).collect()
    }

    #[test]
    fn each_failed_run_in_a_row_doubles_the_back_off_up_to_a_minute() {
        let doubled = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(back_offs_after(&[(FAILED, 0); 9]), doubled);
        assert_eq!(back_offs_after(&[(JobStatus::Signaled(9), 0); 9]), doubled);
        assert_eq!(back_offs_after(&[(FAILED, 0); 100]).last(), Some(&60_000));
    }

    #[test]
    fn a_success_ends_it() {
        let done = (JobStatus::Exited(0), 0);
        assert_eq!(back_offs_after(&[done, (FAILED, 0), (FAILED, 0), done, (FAILED, 0)]), [0, 500, 1_000, 0, 500]);
    }

    #[test]
    fn ten_minutes_of_running_end_it() {
        assert_eq!(
            back_offs_after(&[(FAILED, 0), (FAILED, 599), (FAILED, 600), (FAILED, 0)]),
            [500, 1_000, 500, 1_000]
        );
        let mut failed = FailedRuns::default();
        assert_eq!(failed.forgotten_at(Time::ZERO), None);
        failed.ended(FAILED, Duration::ZERO);
        assert_eq!(failed.forgotten_at(Time::ZERO), Some(Time::ZERO + Duration::from_secs(600)));
        failed.forget();
        assert_eq!(failed.back_off(), Duration::ZERO);
    }
}
