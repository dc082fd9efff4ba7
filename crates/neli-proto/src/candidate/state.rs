//! The state of a candidate in the election, as plain data. Only the [transitions](super::transitions) replace it.

use super::Election;
use super::lease::Leading;
use super::overlapping::Overlapped;
use super::release::{OwnClaim, Releasing};
use crate::record::{Offset, Why};
use crate::supervisor::{Departure, Loss, Wanted, WantedState};
use crate::time::Time;

/// The state of a candidate in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum State {
    /// R0: its claim took effect before the topic was judged. No job runs under the term, and no record but its release is written.
    AwaitingJudgement { claim: OwnClaim, sent: Time },
    /// A claim is in flight (R2).
    Claiming(Claiming),
    /// It has exited, and takes no more events.
    Departed(Departure),
    /// The lease is over, but processes of the job may be left. No record is written until they are gone.
    Fenced(Fenced),
    /// It leads: a lease is held, and a job may be alive.
    Leading(Leading),
    /// `--overlap`: another candidate has claimed. The job that runs here must stop within the overlap, or with the lease (O3).
    Overlapped(Overlapped),
    /// No process of the job is left, none will be started, and the release is in flight (R6).
    Releasing(Releasing),
    /// No term is held.
    StandingBy {
        /// The candidate claims nothing before this time.
        not_before: Time,
    },
    /// No term is held, and the process is suspended or about to be: it claims and sends nothing before it continues.
    Suspended,
}

/// A claim in flight.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Claiming {
    pub(super) seq: u64,
    pub(super) sent: Time,
    /// The reason, if the candidate was asked to stand down meanwhile: then it releases the term if the claim takes effect (R7).
    pub(super) stood_down: Option<Why>,
    /// A release that was read after the claim was sent names this candidate as the successor.
    pub(super) is_named: bool,
}

/// A term whose lease is over, and whose job is being killed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Fenced {
    /// The last thing that the leader wanted of its job.
    pub(super) wanted: Wanted,
    /// The reason that the release will carry.
    pub(super) why: Why,
    /// The reason for which it was standing down before the fence. It decides what follows the fence.
    pub(super) stood_down: Option<Why>,
    pub(super) lease_end: Time,
    pub(super) loss: Loss,
    /// `--overlap`: the term by whose claim this one was overlapped, before its lease ended.
    pub(super) overlapped_by: Option<Offset>,
}

impl State {
    /// What it wants of the job of the term that it holds.
    pub(super) fn wants(&self) -> Option<Wanted> {
        if let Self::Fenced(fenced) = self {
            Some(Wanted { state: WantedState::Kill, ..fenced.wanted })
        } else if let Self::Leading(leading) = self {
            Some(leading.wants())
        } else if let Self::Overlapped(overlapped) = self {
            Some(overlapped.wants())
        } else {
            None
        }
    }

    /// When something is due in this state.
    pub(super) fn due(&self, election: &Election) -> Option<Time> {
        match self {
            Self::AwaitingJudgement { sent, .. } => Some(election.claim_expires_at(*sent)),
            Self::Claiming(claiming) => Some(claiming.sent + election.timings.lease()),
            Self::Departed(_) | Self::Fenced(_) | Self::Suspended => None,
            Self::Leading(leading) => leading.due(election),
            Self::Overlapped(overlapped) => overlapped.due(election),
            Self::Releasing(releasing) => Some(releasing.due()),
            Self::StandingBy { not_before } => election.standby_due(*not_before),
        }
    }

    /// The end of its own lease, while it holds one.
    pub(super) fn lease_end(&self, election: &Election) -> Option<Time> {
        match self {
            Self::AwaitingJudgement { sent, .. } => Some(*sent + election.timings.lease()),
            Self::Fenced(fenced) => Some(fenced.lease_end),
            Self::Leading(leading) => Some(leading.lease_end),
            Self::Overlapped(overlapped) => Some(overlapped.lease_end),
            Self::Claiming(_) | Self::Departed(_) | Self::Releasing(_) | Self::StandingBy { .. } | Self::Suspended => {
                None
            }
        }
    }

    /// Whether it takes part in the election, that is, has neither exited nor been suspended.
    pub(super) const fn takes_part(&self) -> bool {
        !matches!(self, Self::Departed(_) | Self::Suspended)
    }

    /// Whether it holds neither a term nor a job, and has no claim under way, which could take effect without a leader.
    pub(super) const fn holds_nothing(&self) -> bool {
        matches!(self, Self::StandingBy { .. } | Self::Suspended)
    }

    /// The same, or a claim is under way.
    pub(super) const fn has_no_term(&self) -> bool {
        self.holds_nothing() || matches!(self, Self::Claiming(_))
    }

    /// The term that a `resign` may name (held, or not released yet), and the reason for which the candidate is standing down already, if
    /// any.
    pub(super) fn resignable(&self, election: &Election) -> Option<(Offset, Option<Why>)> {
        match self {
            Self::AwaitingJudgement { claim, .. } => Some((claim.term(), None)),
            Self::Fenced(fenced) => Some((fenced.wanted.grant.term, fenced.stood_down)),
            Self::Leading(leading) => Some((leading.term, leading.stands_down_for())),
            Self::Releasing(releasing) => Some((releasing.term, election.cooling_off.map(|_| Why::Resigned))),
            Self::Claiming(_) | Self::Departed(_) | Self::Overlapped(_) | Self::StandingBy { .. } | Self::Suspended => {
                None
            }
        }
    }
}
