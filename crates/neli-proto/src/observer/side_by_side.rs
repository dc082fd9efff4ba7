//! `--overlap`: a leader that yields, and the earlier job that may run beside the leader's.

use alloc::boxed::Box;
use core::time::Duration;

use super::Change;
use crate::journal::{EarlierJob, Journal, View};
use crate::record::Offset;

/// A job that may run beside the leader's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OverlappedJob {
    /// Its term.
    pub term: Offset,
    /// The name of its leader, if it was read.
    pub name: Option<Box<str>>,
    /// The longest time that it may run, counted from the claim.
    pub lease: Duration,
}

/// The known state of both jobs before a record was read.
pub(super) struct SideBySide {
    /// The term whose leader yields.
    yields: Option<Offset>,
    /// The term whose job may run beside the leader's.
    earlier: Option<Offset>,
}

impl SideBySide {
    pub(super) fn of(journal: &Journal) -> Self {
        let yields = match journal.view() {
            View::Led(term) if term.yields => Some(term.offset),
            View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        };
        Self { yields, earlier: journal.earlier_job().term() }
    }

    /// The changes since then: of the earlier job, and of the leader.
    pub(super) fn changes_to(&self, journal: &Journal) -> impl Iterator<Item = Change> {
        let now = Self::of(journal);
        let of_job = match (journal.earlier_job(), self.earlier) {
            (EarlierJob::Overlapped { term, name, lease, .. }, before) if before != Some(*term) => {
                Some(Change::Overlapped(OverlappedJob { term: *term, name: name.clone(), lease: *lease }))
            }
            (EarlierJob::Gone, Some(term)) => Some(Change::EarlierJobGone { term }),
            (EarlierJob::Gone | EarlierJob::Overlapped { .. } | EarlierJob::Unknown, _) => None,
        };
        let yields = (now.yields.is_some() && now.yields != self.yields).then_some(Change::Yields);
        of_job.into_iter().chain(yields)
    }
}
