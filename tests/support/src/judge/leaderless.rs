use std::time::Duration;

use super::{Axis, JobRun};

/// How long there may be no leader, in addition to a lease.
const BESIDE_THE_LEASE: Duration = Duration::from_secs(3);

/// The longest time without a leader while nothing was broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Longest {
    /// Its length.
    pub lasted: Duration,
    /// Its begin.
    pub from: u64,
}

/// How long there may be no leader.
#[must_use]
pub fn bound(longest_lease: Duration) -> Duration {
    longest_lease + BESIDE_THE_LEASE
}

/// The longest time without a leader while nothing was broken, after `began` and between two runs.
#[must_use]
pub fn longest(job_runs: &[JobRun], axis: &Axis, began: u64) -> Longest {
    let gaps: Vec<_> = gaps(job_runs).into_iter().filter(|gap| gap.0 >= began).collect();
    let (lasted, (from, _)) = axis.longest_undisturbed(&gaps);
    Longest { lasted, from }
}

impl Longest {
    /// The violation that it was too long, if it was.
    #[must_use]
    pub fn violation(self, bound: Duration, tolerance: f64, began: u64) -> Option<String> {
        let Self { lasted, from } = self;
        let from = from.saturating_sub(began) / 1_000_000;
        (lasted > bound.mul_f64(tolerance))
            .then(|| format!("nobody led for {lasted:?} from {from} ms on, though nothing was broken"))
    }
}

/// The time spans without a running job, between the first and the last line of all.
fn gaps(job_runs: &[JobRun]) -> Vec<(u64, u64)> {
    let mut spans: Vec<_> = job_runs.iter().map(|job_run| job_run.span).filter(|span| span.1 > 0).collect();
    spans.sort_unstable();
    let mut gaps = Vec::new();
    let mut until = None;
    for (first, last) in spans {
        if let Some(until) = until.filter(|until| *until < first) {
            gaps.push((until, first));
        }
        until = until.max(Some(last));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BEGAN: u64 = 100 * SECOND;

    /// Runs at these times, in seconds after the begin.
    fn runs(spans: &[(u64, u64)]) -> Vec<JobRun> {
        let at = |seconds: u64| BEGAN + seconds * SECOND;
        let run =
            |(from, to): &(u64, u64)| JobRun { span: (at(*from), at(*to)), ..JobRun::of_file(Path::new("0.0.3")) };
        spans.iter().map(run).collect()
    }

    fn violation(spans: &[(u64, u64)], disturbed: &[(u64, u64)], tolerance: f64) -> Option<String> {
        let mut axis = Axis::default();
        for (from, until) in disturbed {
            axis.disturb(BEGAN + from * SECOND, BEGAN + until * SECOND);
        }
        let bound = bound(Duration::from_secs(1));
        longest(&runs(spans), &axis, BEGAN).violation(bound, tolerance, BEGAN)
    }

    #[test]
    fn a_long_time_without_a_leader_is_reported() {
        let gap = |seconds: u64| [(0, 10), (10 + seconds, 30)];
        assert_eq!(violation(&gap(4), &[], 1.0), None, "a lease and three seconds");
        let nobody = "nobody led for 5s from 10000 ms on, though nothing was broken";
        assert_eq!(violation(&gap(5), &[], 1.0).as_deref(), Some(nobody));
        assert_eq!(violation(&gap(5), &[], 1.3), None, "the machine is busy");
        // A job that runs beside two others hides no gap, and one job within another makes none.
        assert_eq!(violation(&[(0, 30), (1, 2), (20, 40)], &[], 1.0), None);
        assert_eq!(violation(&[(0, 10), (1, 2), (15, 40)], &[], 1.0).as_deref(), Some(nobody));
        assert_eq!(violation(&[], &[], 1.0), None);
    }

    #[test]
    fn only_the_undisturbed_part_counts() {
        let spans = [(0, 10), (20, 30)];
        assert!(violation(&spans, &[], 1.0).is_some());
        assert_eq!(violation(&spans, &[(9, 21)], 1.0), None);
        assert_eq!(violation(&spans, &[(13, 16)], 1.0), None, "three seconds before and four after");
        assert_eq!(violation(&spans, &[(16, 17), (12, 16)], 1.0), None, "in no order");
        let after = "nobody led for 5s from 15000 ms on, though nothing was broken";
        assert_eq!(violation(&spans, &[(11, 15)], 1.0).as_deref(), Some(after));
        let before = "nobody led for 6s from 10000 ms on, though nothing was broken";
        assert_eq!(violation(&spans, &[(16, 30)], 1.0).as_deref(), Some(before));
        assert!(violation(&spans, &[(0, 10), (20, 25)], 1.0).is_some(), "broken before and after");
        assert_eq!(violation(&[(0, 10), (14, 30)], &[(20, 25)], 1.0), None, "what is broken later makes no gap longer");
    }

    /// Before the begin candidates are started.
    #[test]
    fn the_time_before_the_begin_does_not_count() {
        let mut job_runs = runs(&[(0, 10), (20, 30)]);
        job_runs[0].span.1 = BEGAN - 1;
        let found = longest(&job_runs, &Axis::default(), BEGAN);
        assert_eq!(found.lasted, Duration::ZERO);
    }
}
