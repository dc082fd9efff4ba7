//! `--overlap`: from when on a leader that yields may be overlapped, and for how long the job before may be alive.

use super::claim_window::{CONFIRMED_WITHIN, ClaimWindow, Predecessor, silence};
use super::{Listener, Stage};
use crate::journal::{EarlierJob, View};
use crate::record::Offset;
use crate::time::Time;
use crate::timings::LONGEST_LEASE;

/// What was heard of jobs that run side by side.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Overlaps {
    /// This candidate has `--overlap`.
    is_wanted: bool,
    /// The term that was overlapped last, and when the claim that overlaps it was received.
    last: Option<(Offset, Time)>,
    /// Since when the leader yields.
    yields_since: Option<Time>,
}

impl Overlaps {
    /// The terms to come may begin from 0 again.
    pub(super) const fn forget(&mut self) {
        (self.last, self.yields_since) = (None, None);
    }
}

impl Listener {
    /// The same for a candidate with `--overlap`.
    #[must_use]
    pub(crate) fn with_overlap(mut self, is_wanted: bool) -> Self {
        self.overlaps.is_wanted = is_wanted;
        self
    }

    /// Takes note of what a record has changed.
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

    /// From when on nothing can be left of the job before the current one (O4): its lease is over. `None` where nothing is left by all
    /// that was read.
    #[must_use]
    pub(crate) fn earlier_job_gone_at(&self) -> Option<Time> {
        match self.journal.earlier_job() {
            EarlierJob::Gone => None,
            EarlierJob::Overlapped { lease, .. } => {
                let received = self.overlaps.last.map_or(self.last_record, |(_, received)| received);
                Some(received + silence(*lease))
            }
            EarlierJob::Unknown => Some(self.began + silence(LONGEST_LEASE)),
        }
    }

    /// Nobody claims while a job may be alive that was overlapped before (O5): there would be three.
    pub(super) fn after_earlier_job(&self, since: Time) -> Time {
        let is_known = matches!(self.journal.earlier_job(), EarlierJob::Overlapped { .. });
        let is_decided = !matches!(self.journal.view(), View::Undecided(_));
        let gone_at = self.earlier_job_gone_at().filter(|_| is_decided && (is_known || self.overlaps.is_wanted));
        gone_at.map_or(since, |gone_at| since.max(gone_at))
    }

    /// From when on a leader that yields may be overlapped (O2).
    pub(super) fn overlap_window(&self) -> Option<ClaimWindow> {
        let View::Led(term) = self.journal.view() else { return None };
        let yields_since = self.overlaps.yields_since.filter(|_| self.overlaps.is_wanted)?;
        if self.stage != Stage::CaughtUp {
            return None;
        }
        let since = self.after_earlier_job(yields_since);
        // As before a silence is over: the leader goes on meanwhile, and is asked for nothing.
        let confirmed_from = yields_since.max(since - CONFIRMED_WITHIN);
        let (predecessor, over) = (Predecessor::Gone, Some(term.offset));
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over })
    }
}
