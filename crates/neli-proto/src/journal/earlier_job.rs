//! The state of the job from which a claim with `--overlap` took the lead.

use alloc::boxed::Box;
use core::time::Duration;

use super::{Verdict, View};
use crate::record::{Body, MemberId, Offset, Record};
use crate::timings::LONGEST_LEASE;

/// The job of the term before the current one, or before the last released one, as far as the records show it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum EarlierJob {
    /// No process of it is left.
    Gone,
    /// It may run until its lease is over, which began before the claim that overlaps it.
    Overlapped {
        /// Its term.
        term: Offset,
        /// The leader of that term, if its records were read.
        member: Option<MemberId>,
        /// That leader's name.
        name: Option<Box<str>>,
        /// The longest lease that it may hold.
        lease: Duration,
    },
    /// Too few records were read.
    Unknown,
}

impl EarlierJob {
    /// The term whose job may be alive, if one is known.
    pub(crate) const fn term(&self) -> Option<Offset> {
        match self {
            Self::Overlapped { term, .. } => Some(*term),
            Self::Gone | Self::Unknown => None,
        }
    }

    /// Applies a claim that took effect in this view. If the claim names no term, no job was left when it was sent.
    pub(super) fn claimed(&mut self, view: &View, claim: &Record) {
        *self = match (claim.body.overlap().and_then(|overlap| overlap.over), view) {
            (None, _) => Self::Gone,
            (Some(over), View::Led(term)) if term.offset == over => {
                Self::Overlapped { term: over, member: term.member.clone(), name: term.name.clone(), lease: term.lease }
            }
            (Some(over), _) => Self::overlapped_unread(over),
        };
    }

    /// Applies a leader's record. The current leader's record shows whether the job before its own is gone, and the previous leader's is
    /// final about its own job.
    pub(super) fn received(&mut self, verdict: Verdict, record: &Record) {
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
            Body::Beat { .. } | Body::Claim { .. } | Body::Request { .. } => {}
        }
    }

    const fn overlapped_unread(term: Offset) -> Self {
        Self::Overlapped { term, member: None, name: None, lease: LONGEST_LEASE }
    }
}
