//! The states of a candidate: one type for each, whose `step` takes every [`Input`] and returns the next state.

use super::Common;
use super::awaiting_judgement::AwaitingJudgement;
use super::claiming::Claiming;
use super::fenced::Fenced;
use super::identifying::Confirmation;
use super::leading::Leading;
use super::overlapped::Overlapped;
use super::reading::OwnClaim;
use super::releasing::Releasing;
use super::standing_by::StandingBy;
use super::suspended::Suspended;
use crate::record::{JobState, Offset, Why};
use crate::supervisor::{Does, JobEnd, JobReport, Wanted};
use crate::time::Time;
use alloc::boxed::Box;

/// The state of a candidate in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum State {
    /// R0: its claim took effect before the topic was judged.
    AwaitingJudgement(AwaitingJudgement),
    /// A claim is in flight.
    Claiming(Claiming),
    /// It has exited, and takes no more inputs.
    Departed,
    /// The lease is over, but processes of the job may be left.
    Fenced(Fenced),
    /// It leads.
    Leading(Leading),
    /// `--overlap`: another candidate leads, and this job continues beside the other's for a limited time.
    Overlapped(Overlapped),
    /// No process of the job is left, none will be started, and the release is in flight (R6).
    Releasing(Releasing),
    /// No term is held.
    StandingBy(StandingBy),
    /// No term is held, and the process is suspended or about to be.
    Suspended(Suspended),
}

/// An input to a state, after [`Common`] has recorded it.
#[derive(Debug)]
pub(super) enum Input {
    /// A beat of ours was read back for the first time, and is effective.
    BeatEffective {
        /// Its sequence number.
        seq: Option<u64>,
    },
    /// A claim of ours was read back for the first time, and is effective.
    ClaimEffective(OwnClaim),
    /// A claim of ours was read back for the first time, and is void.
    ClaimVoid {
        /// Its sequence number.
        seq: Option<u64>,
    },
    /// The process received SIGCONT.
    Continued,
    /// A record of ours was acknowledged. That does not show the law's verdict on the record.
    Delivered {
        /// Its sequence number.
        seq: u64,
    },
    /// The candidate must not wait for a claim or a release any longer.
    GivenUp,
    /// The guard fenced the job, or died.
    GuardFenced {
        /// The reason that the release will carry.
        why: Why,
    },
    /// The partition's history was cut, or the partition was created again.
    HistoryCut,
    /// The job's state, which may have changed.
    Job(JobReport),
    /// No other input follows at this time: a standby performs what is due now.
    MoveOn,
    /// A release that names this candidate as the successor was read for the first time.
    NamedSuccessor,
    /// No process of the job is left.
    NothingLeft(Box<JobEnd>),
    /// A release of ours was read back for the first time.
    ReleaseRead {
        /// Its term.
        term: Offset,
    },
    /// The partition was revoked, and given to another member.
    Revoked,
    /// The candidate must stand down. `Common` contains whether for good or until SIGCONT.
    StandDown {
        /// The reason.
        why: Why,
    },
    /// The candidate must perform what is due.
    TimedOut,
    /// Time has passed. A lease that is over ends before any other input is handled.
    TimePassed,
    /// R0: the topic may carry an election.
    TopicJudged {
        /// Whether the journal must be read again.
        is_misread: bool,
    },
    /// A record of ours could not be delivered.
    Undelivered {
        /// Its sequence number.
        seq: u64,
    },
    /// The journal's view of who leads may have changed.
    ViewChanged,
}

impl State {
    /// Handles an input and returns the next state.
    pub(super) fn step(self, common: &mut Common, now: Time, input: Input) -> Self {
        match self {
            Self::AwaitingJudgement(state) => state.step(common, now, input),
            Self::Claiming(state) => state.step(common, now, input),
            Self::Departed => Self::Departed,
            Self::Fenced(state) => state.step(common, now, input),
            Self::Leading(state) => state.step(common, now, input),
            Self::Overlapped(state) => state.step(common, now, input),
            Self::Releasing(state) => state.step(common, now, input),
            Self::StandingBy(state) => state.step(common, now, input),
            Self::Suspended(state) => state.step(common, now, input),
        }
    }

    /// When the state must be performed next.
    pub(super) fn due(&self, common: &Common) -> Option<Time> {
        match self {
            Self::AwaitingJudgement(state) => Some(state.expires_at(common)),
            Self::Claiming(state) => Some(state.expires_at(common)),
            Self::Departed | Self::Fenced(_) | Self::Suspended(_) => None,
            Self::Leading(state) => state.due(common),
            Self::Overlapped(state) => state.due(common),
            Self::Releasing(state) => Some(state.due()),
            Self::StandingBy(state) => state.due(common),
        }
    }

    /// What it wants of the job of the term that it holds.
    pub(super) fn wants(&self) -> Option<Wanted> {
        match self {
            Self::Fenced(state) => Some(Wanted { does: Does::Die, ..state.wanted }),
            Self::Leading(state) => Some(state.wants()),
            Self::Overlapped(state) => Some(state.wants()),
            Self::AwaitingJudgement(_)
            | Self::Claiming(_)
            | Self::Departed
            | Self::Releasing(_)
            | Self::StandingBy(_)
            | Self::Suspended(_) => None,
        }
    }

    /// Whether this report about the job is news to it.
    pub(super) fn is_news(&self, report: JobReport) -> bool {
        match self {
            Self::Leading(state) => state.job() != report,
            // The run has ended by itself.
            Self::Overlapped(_) => report.state == JobState::Restarting,
            Self::AwaitingJudgement(_)
            | Self::Claiming(_)
            | Self::Departed
            | Self::Fenced(_)
            | Self::Releasing(_)
            | Self::StandingBy(_)
            | Self::Suspended(_) => false,
        }
    }

    /// Whether it takes part in the election, that is, has neither exited nor been suspended.
    pub(super) const fn takes_part(&self) -> bool {
        !matches!(self, Self::Departed | Self::Suspended(_))
    }

    /// The purpose for which the topic's identity must be confirmed.
    pub(super) const fn confirmation(&self) -> Confirmation {
        match self {
            Self::Claiming(claiming) => Confirmation::FirstBeat { claimed: claiming.sent() },
            Self::Leading(_) => Confirmation::Lease,
            Self::StandingBy(_) => Confirmation::Claim,
            Self::AwaitingJudgement(_)
            | Self::Departed
            | Self::Fenced(_)
            | Self::Overlapped(_)
            | Self::Releasing(_)
            | Self::Suspended(_) => Confirmation::Nothing,
        }
    }

    /// The term that a `resign` may name (held, or not released yet), and the reason for which the candidate is standing down already, if
    /// any.
    pub(super) fn resignable(&self, common: &Common) -> Option<(Offset, Option<Why>)> {
        match self {
            Self::AwaitingJudgement(state) => Some((state.term(), None)),
            Self::Fenced(state) => Some((state.term(), state.stood_down())),
            Self::Leading(state) => Some((state.term(), state.stopping())),
            Self::Releasing(state) => Some((state.term(), common.cooling_off.map(|_| Why::Resigned))),
            Self::Claiming(_) | Self::Departed | Self::Overlapped(_) | Self::StandingBy(_) | Self::Suspended(_) => None,
        }
    }
}
