//! Decides which jobs may run at the same time: none within the guarantee, and with `--overlap` two for a limited time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::axis::nanos;
use crate::history::Law;
use crate::job_run::{JobRun, Overlap};

/// The reason for two jobs at the same time with `--overlap`.
const BESIDE_ITS_SUCCESSOR: &str = "a job beside its successor's";

/// How late a busy machine may be with the end of a job.
const LATE: Duration = Duration::from_millis(100);

impl Law {
    /// The reason why these two runs may have overlapped for this many nanoseconds; `None` for a violation.
    pub(crate) fn excuse(&self, a: &JobRun, b: &JobRun, together: u64) -> Option<&'static str> {
        let lease = |job_run: &JobRun| self.leases.get(job_run.slot).map_or(0, |lease| nanos(*lease));
        let earlier = if (a.generation, a.term) < (b.generation, b.term) { a } else { b };
        if a.abandoned || b.abandoned {
            Some("an abandoned job")
        } else if a.generation != b.generation {
            // The old leader notices it within two leases (assumption 4).
            (together <= 2 * lease(earlier)).then_some("a topic that was made anew")
        } else {
            // If its supervisor is stopped, the guard's deadline is the limit.
            let bound = lease(earlier) + nanos(LATE);
            (self.overlap.is_some() && a.term != b.term && together <= bound).then_some(BESIDE_ITS_SUCCESSOR)
        }
    }
}

/// The violations with three jobs at the same time.
pub(crate) fn of_three(overlaps: &BTreeMap<(usize, usize), Overlap>) -> Vec<String> {
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
                let (terms, micros) = ([a.terms.0, a.terms.1, b.terms.1], (until - from) / 1000);
                three.push(format!("the jobs of terms {terms:?} ran together for {micros} us"));
            }
        }
    }
    three
}
