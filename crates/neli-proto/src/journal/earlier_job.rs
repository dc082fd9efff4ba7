//! What may be left of the job that a claim with `--overlap` has taken the lead from.

use alloc::boxed::Box;
use core::time::Duration;

use super::{Verdict, View};
use crate::record::{Body, MemberId, Offset, Record};
use crate::timings::LONGEST_LEASE;

/// The job of the term before the current one, or before the one that was released last, as far as was read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum EarlierJob {
    /// Nothing is left of it.
    Gone,
    /// It may run until its lease is over, which began before the claim that overlaps it.
    Overlapped {
        /// Its term.
        term: Offset,
        /// Who led in that term, where it was read.
        member: Option<MemberId>,
        /// How that is called.
        name: Option<Box<str>>,
        /// The longest lease that it may have.
        lease: Duration,
    },
    /// Too little was read.
    Unknown,
}

impl EarlierJob {
    /// The term whose job may be alive, where one is known.
    #[must_use]
    pub(crate) const fn term(&self) -> Option<Offset> {
        match self {
            Self::Overlapped { term, .. } => Some(*term),
            Self::Gone | Self::Unknown => None,
        }
    }

    /// A claim has taken effect in this view. One that names no term was sent when no job was left.
    pub(super) fn claimed(&mut self, view: &View, claim: &Record) {
        *self = match (claim.body.overlap().and_then(|overlap| overlap.over), view) {
            (None, _) => Self::Gone,
            (Some(over), View::Led(term)) if term.offset == over => {
                Self::Overlapped { term: over, member: term.member.clone(), name: term.name.clone(), lease: term.lease }
            }
            (Some(over), _) => Self::overlapped_unread(over),
        };
    }

    /// A word of a leader's was read: the current one's tells whether the job before its own is gone, and the one before has the last
    /// word on its own job.
    pub(super) fn heard(&mut self, verdict: Verdict, record: &Record) {
        match &record.body {
            Body::Beat { overlap, .. } if verdict == Verdict::Effective => {
                match overlap.and_then(|overlap| overlap.over) {
                    None => *self = Self::Gone,
                    Some(over) if *self == Self::Unknown => *self = Self::overlapped_unread(over),
                    Some(_) => {}
                }
            }
            Body::Release { term: released, .. } => {
                if let Self::Overlapped { term, member: Some(member), .. } = self
                    && term == released
                    && Some(&*member) == record.member.as_ref()
                {
                    *self = Self::Gone;
                }
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Hello { .. } | Body::Request { .. } => {}
        }
    }

    const fn overlapped_unread(term: Offset) -> Self {
        Self::Overlapped { term, member: None, name: None, lease: LONGEST_LEASE }
    }
}
