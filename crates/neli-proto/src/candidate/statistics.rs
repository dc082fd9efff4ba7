//! What a candidate knows of the election only to display it. No decision depends on it.

use super::Common;
use crate::journal::Verdict;
use crate::leadership::LastTerm;
use crate::listener::Received;
use crate::record::{Body, Record};
use crate::status::Counts;

/// What is only displayed.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// The last term, as far as its records were read.
    pub(super) last_term: LastTerm,
    /// Counts of the records read since listening began.
    pub(super) counts: Counts,
}

impl Common {
    /// Counts a record of any candidate for the statistics.
    pub(super) fn count(&mut self, record: &Record, received: Received) {
        let counts = &mut self.shown.0.counts;
        match (&record.body, received.verdict) {
            _ if !received.fresh => {}
            (Body::Claim { .. }, Verdict::Effective) => (counts.terms, counts.void_in_a_row) = (counts.terms + 1, 0),
            (Body::Claim { .. }, Verdict::Void) => {
                counts.void_claims += 1;
                counts.void_in_a_row = counts.void_in_a_row.saturating_add(1);
            }
            (Body::Beat { .. } | Body::Release { .. }, Verdict::Effective) => counts.void_in_a_row = 0,
            _ => {}
        }
    }
}
