//! The back-off: how long a candidate whose runs fail leaves a vacancy to the other candidates.
//!
//! Only runs that ended by themselves count, in any term. A run that was stopped or killed shows nothing about the job.

use core::time::Duration;

use crate::job::JobStatus;
use crate::time::Time;

/// The back-off after the first failed run.
const FIRST: Duration = Duration::from_millis(500);

/// The longest back-off.
const LONGEST: Duration = Duration::from_secs(60);

/// A run that lasts this long shows that the job can run here.
const LONG_RUN: Duration = Duration::from_secs(600);

/// Failed runs in a row.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct FailedRuns {
    in_a_row: u32,
}

impl FailedRuns {
    /// Notes a run that has ended by itself, after `ran`.
    pub(crate) fn ended(&mut self, status: JobStatus, ran: Duration) {
        if ran >= LONG_RUN || status == JobStatus::Exited(0) {
            self.in_a_row = 0;
        }
        if status != JobStatus::Exited(0) {
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
    }

    /// When a run that began at `since` and is still running resets the failures; `None` if there are none.
    pub(crate) fn forgotten_at(self, since: Time) -> Option<Time> {
        (self.in_a_row > 0).then(|| since + LONG_RUN)
    }

    /// Resets the failures, because a run has lasted for long enough.
    pub(crate) const fn forget(&mut self) {
        self.in_a_row = 0;
    }

    /// The addition to the claim delay: 500 ms, doubled by each failed run in a row, up to a minute.
    pub(crate) fn back_off(self) -> Duration {
        back_off(self.in_a_row)
    }
}

/// The back-off after this many failed runs in a row.
pub(crate) fn back_off(in_a_row: u32) -> Duration {
    let doublings = in_a_row.checked_sub(1);
    let delay = doublings.map(|count| FIRST.saturating_mul(2_u32.saturating_pow(count)));
    delay.unwrap_or_default().min(LONGEST)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const FAILED: JobStatus = JobStatus::Exited(1);

    /// The back-off after each of these runs, in milliseconds.
    fn after(runs: &[(JobStatus, u64)]) -> Vec<u128> {
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
        assert_eq!(after(&[(FAILED, 0); 9]), doubled);
        assert_eq!(after(&[(JobStatus::Signaled(9), 0); 9]), doubled);
        assert_eq!(after(&[(FAILED, 0); 100]).last(), Some(&60_000));
    }

    #[test]
    fn a_success_ends_it() {
        let done = (JobStatus::Exited(0), 0);
        assert_eq!(after(&[done, (FAILED, 0), (FAILED, 0), done, (FAILED, 0)]), [0, 500, 1_000, 0, 500]);
    }

    #[test]
    fn ten_minutes_of_running_end_it() {
        assert_eq!(after(&[(FAILED, 0), (FAILED, 599), (FAILED, 600), (FAILED, 0)]), [500, 1_000, 500, 1_000]);
        let mut failed = FailedRuns::default();
        assert_eq!(failed.forgotten_at(Time::ZERO), None);
        failed.ended(FAILED, Duration::ZERO);
        assert_eq!(failed.forgotten_at(Time::ZERO), Some(Time::ZERO + Duration::from_secs(600)));
        failed.forget();
        assert_eq!(failed.back_off(), Duration::ZERO);
    }
}
