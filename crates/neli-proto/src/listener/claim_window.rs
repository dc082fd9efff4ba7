//! From when on a vacancy or a silence may be claimed (R2), and whether there is time to read further back before then.

use core::time::Duration;

use super::{Listener, Stage};
use crate::journal::{EarlierJob, View};
use crate::record::{Offset, Why};
use crate::time::Time;
use crate::timings::LONGEST_LEASE;

/// How long before the end of a silence the topic's identity may be confirmed, so that no claim waits for the answer. If the topic is
/// created again after that confirmation, a candidate that takes it for the old one may claim in it.
pub(super) const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// From when on a vacancy or a silence may be claimed, before any delay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClaimWindow {
    /// From when on the view is vacant, or counts as silent.
    pub since: Time,
    /// How the last leader's term ended.
    pub predecessor: Predecessor,
    /// For a silence: the topic's identity must have been confirmed at this time or later. A candidate that did not notice that the topic
    /// was created again would take the new leader's beats for void.
    pub confirmed_from: Option<Time>,
    /// `--overlap`: the term of the leader that yields, whose job continues.
    pub over: Option<Offset>,
}

/// The end of the last leader's term, as far as it decides which candidate may claim first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Predecessor {
    /// It has released the term, or no leader is known.
    Gone,
    /// A guard wrote its release because the supervisor died.
    Died,
    /// It stopped writing.
    Silent,
}

impl Listener {
    /// Whether to ask for the bounds again and read from further back (R2). This is so if all records were read and don't decide the view,
    /// older ones exist, and there is time. The reading stops until the answer arrives.
    #[must_use]
    pub fn ask_further_back(&mut self, now: Time) -> bool {
        let wanted = self.stage == Stage::CaughtUp
            && matches!(self.journal.view(), View::Undecided(_))
            && !self.is_vacant()
            && self.reading.from > self.log.start
            && !self.reading.undecodable
            && self.has_time_to_read(now);
        if wanted {
            self.stage = Stage::AskingFurtherBack;
            self.log.asking_since = now;
            self.note_progress(now);
        }
        wanted
    }

    /// Whether a reading from twice as far back will probably end before the silence does. It takes as long as all readings before; if it
    /// ended later, it would only delay the claim.
    fn has_time_to_read(&self, now: Time) -> bool {
        let claim_from = self.claim_window().map(|claim_window| claim_window.since);
        claim_from.is_none_or(|since| now + now.since(self.heard.began) < since)
    }

    /// How much longer nothing may be claimed because the records don't show who leads; `None` if they show it.
    pub(crate) fn undecided_for(&self, now: Time) -> Option<Duration> {
        if self.is_vacant() || !matches!(self.journal.view(), View::Undecided(_)) {
            return None;
        }
        Some(self.claim_window()?.since.since(now)).filter(|left| !left.is_zero())
    }

    /// From when on a candidate may claim (R2), before any delay; `None` while that is unknown.
    pub(crate) fn claim_window(&self) -> Option<ClaimWindow> {
        if self.stage != Stage::CaughtUp || self.reading.undecodable {
            return None;
        }
        if let Some(since) = self.vacant_since {
            let predecessor = match self.journal.view() {
                View::Released { why: Some(why), .. } if **why == *Why::SupervisorDied.as_str() => Predecessor::Died,
                View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => Predecessor::Gone,
            };
            let since = self.after_earlier_job(since);
            return Some(ClaimWindow { since, predecessor, confirmed_from: None, over: None });
        }
        if let Some(window) = self.overlap_window() {
            return Some(window);
        }
        let (predecessor, silent_since, since) = match self.journal.view() {
            View::Led(term) => {
                let since = self.after_earlier_job(self.heard.last_effective + silence(term.lease));
                (Predecessor::Silent, self.heard.last_effective, since)
            }
            View::NeverLed | View::Released { .. } | View::Undecided(_) => {
                let longest_allowed = self.heard.began + silence(LONGEST_LEASE);
                let longest_known = self.heard.last_record + silence(self.heard.longest_lease);
                (Predecessor::Gone, self.heard.last_record, longest_allowed.max(longest_known))
            }
        };
        let confirmed_from = since - (since.since(silent_since) / 2).min(CONFIRMED_WITHIN);
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over: None })
    }
}

/// How long no record of a leader with this lease must have been read before the leader counts as silent. The leader's clock may run 1 %
/// slower (R2, R8).
#[must_use]
pub fn silence(lease: Duration) -> Duration {
    lease + lease / 100 + Duration::from_millis(10)
}

// ---- --overlap: from when on another candidate may claim beside a leader that yields -------------------------------

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
        if self.journal.led().is_some_and(|term| term.yields) {
            self.overlaps.yields_since.get_or_insert(now);
        } else {
            self.overlaps.yields_since = None;
        }
    }

    /// When the lease of the job before the current one is over, so that no process of it can be left (O4). `None` if the records show
    /// that none is left.
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
        let term = self.journal.led()?;
        let yields_since = self.overlaps.yields_since.filter(|_| self.overlaps.is_wanted)?;
        let since = self.after_earlier_job(yields_since);
        // The topic's identity must be confirmed as for a silence, because the leader continues meanwhile and is not asked.
        let confirmed_from = yields_since.max(since - CONFIRMED_WITHIN);
        let (predecessor, over) = (Predecessor::Gone, Some(term.offset));
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over })
    }
}
