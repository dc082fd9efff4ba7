//! `--overlap`: from when on another candidate may claim beside a leader that yields, and how long the earlier job may be alive.

use super::Listener;
use super::claim_window::{CONFIRMED_WITHIN, ClaimWindow, Predecessor, silence};
use crate::journal::{EarlierJob, View};
use crate::record::Offset;
use crate::time::Time;
use crate::timings::LONGEST_LEASE;

/// The facts about overlapping jobs in the records.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Overlaps {
    /// Whether this candidate uses `--overlap`.
    is_wanted: bool,
    /// The term that was overlapped last, and when the claim that overlaps it was received.
    last: Option<(Offset, Time)>,
    /// When the leader began to yield.
    yields_since: Option<Time>,
}

impl Overlaps {
    /// Forgets the overlap, because later terms may begin from offset 0 again.
    pub(super) const fn forget(&mut self) {
        (self.last, self.yields_since) = (None, None);
    }
}

impl Listener {
    /// Makes it the listener of a candidate with `--overlap`, if `is_wanted`.
    #[must_use]
    pub(crate) fn with_overlap(mut self, is_wanted: bool) -> Self {
        self.overlaps.is_wanted = is_wanted;
        self
    }

    /// Notes the change by a record.
    pub(super) fn note_overlap(&mut self, now: Time) {
        if let Some(term) = self.journal.earlier_job().term()
            && self.overlaps.last.is_none_or(|(last, _)| last != term)
        {
            self.overlaps.last = Some((term, now));
        }
        match self.journal.view() {
            View::Led(term) if term.yields => {
                self.overlaps.yields_since.get_or_insert(now);
            }
            View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => {
                self.overlaps.yields_since = None;
            }
        }
    }

    /// When the lease of the job before the current one is over, so that no process of it can be left (O4). `None` if the records show
    /// that none is left.
    #[must_use]
    pub(crate) fn earlier_job_gone_at(&self) -> Option<Time> {
        match self.journal.earlier_job() {
            EarlierJob::Gone => None,
            EarlierJob::Overlapped { lease, .. } => {
                let received = self.overlaps.last.map_or(self.heard.last_record, |(_, received)| received);
                Some(received + silence(*lease))
            }
            EarlierJob::Unknown => Some(self.heard.began + silence(LONGEST_LEASE)),
        }
    }

    /// When a candidate may claim if an overlapped job may be alive (O5): only after it, because otherwise three jobs could run.
    pub(super) fn after_earlier_job(&self, since: Time) -> Time {
        let is_known = matches!(self.journal.earlier_job(), EarlierJob::Overlapped { .. });
        let is_decided = !matches!(self.journal.view(), View::Undecided(_));
        let gone_at = self.earlier_job_gone_at().filter(|_| is_decided && (is_known || self.overlaps.is_wanted));
        gone_at.map_or(since, |gone_at| since.max(gone_at))
    }

    /// From when on another candidate may claim beside a leader that yields (O2), if all records were read.
    pub(super) fn overlap_window(&self) -> Option<ClaimWindow> {
        let View::Led(term) = self.journal.view() else { return None };
        let yields_since = self.overlaps.yields_since.filter(|_| self.overlaps.is_wanted)?;
        let since = self.after_earlier_job(yields_since);
        // The topic's identity must be confirmed as for a silence, because the leader continues meanwhile and is not asked.
        let confirmed_from = yields_since.max(since - CONFIRMED_WITHIN);
        let (predecessor, over) = (Predecessor::Gone, Some(term.offset));
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over })
    }
}
