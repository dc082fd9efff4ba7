//! Decides which jobs may run at the same time: none within the guarantee, and with `--overlap` two for a limited time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::axis::nanos;
use super::history::Law;
use super::job_run::{JobRun, Overlap};

/// The reason for two jobs at the same time with `--overlap`.
const BESIDE_ITS_SUCCESSOR: &str = "a job beside its successor's";

/// How late a busy machine may be with the end of a job.
const LATE: Duration = Duration::from_millis(100);

impl Law {
    /// The reason why the earlier and the later run may have overlapped for this many nanoseconds; `None` for a violation.
    pub(super) fn excuse(&self, earlier: &JobRun, later: &JobRun, together: u64) -> Option<&'static str> {
        let lease = |job_run: &JobRun| self.leases.get(job_run.slot).map_or(0, |lease| nanos(*lease));
        if earlier.abandoned || later.abandoned {
            Some("an abandoned job")
        } else if earlier.generation != later.generation {
            // The old leader notices it within two leases (assumption 4).
            (together <= 2 * lease(earlier)).then_some("a topic that was made anew")
        } else {
            // If its supervisor is stopped, the guard's deadline is the limit.
            let bound = lease(earlier) + nanos(LATE);
            (self.overlap.is_some() && earlier.term != later.term && together <= bound).then_some(BESIDE_ITS_SUCCESSOR)
        }
    }
}

/// The violations with three jobs at the same time.
pub(super) fn of_three(overlaps: &BTreeMap<(usize, usize), Overlap>) -> Vec<String> {
    let found = |pair| overlaps.get(&pair).filter(|overlap| overlap.excuse == Some(BESIDE_ITS_SUCCESSOR));
    let mut three = Vec::new();
    for (first, second) in overlaps.keys().copied() {
        let thirds = overlaps.range((second, 0)..(second + 1, 0)).map(|((_, third), _)| *third);
        for third in thirds {
            let pairs = [(first, second), (second, third), (first, third)].map(found);
            let [Some(a), Some(b), Some(c)] = pairs else { continue };
            let spans = [a.span, b.span, c.span];
            let from = spans.iter().map(|span| span.0).max().unwrap_or_default();
            let until = spans.iter().map(|span| span.1).min().unwrap_or_default();
            if from <= until {
                let terms: BTreeSet<u64> =
                    [a, b, c].iter().flat_map(|overlap| [overlap.terms.0, overlap.terms.1]).collect();
                let micros = (until - from) / 1000;
                three.push(format!("the jobs of terms {terms:?} ran together for {micros} us"));
            }
        }
    }
    three
}
