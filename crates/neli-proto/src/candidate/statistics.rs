//! What a candidate knows of the election only to display it. No decision depends on it.

use super::Common;
use crate::journal::{Verdict, View};
use crate::late_beat::Punctuality;
use crate::listener::Received;
use crate::record::{Body, Offset, Record};
use crate::status::Counts;
use crate::time::Time;

/// What is only displayed.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// The leader, and since when it has been known.
    pub(super) leader_since: Option<(Offset, Time)>,
    /// Counts of the records read since listening began.
    pub(super) counts: Counts,
    /// When the leader's records were appended.
    pub(super) punctuality: Punctuality,
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

    /// Records when the leader's record was appended.
    pub(super) fn note_written(&mut self, record: Option<&Record>, verdict: Verdict, written_ms: Option<u64>) {
        let (View::Led(term), Some(record)) = (self.listener.journal().view(), record) else { return };
        if verdict == Verdict::Effective {
            self.shown.0.punctuality.read(term.offset, term.lease, record, written_ms);
        }
    }
}
