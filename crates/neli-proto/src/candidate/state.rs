//! What a candidate is in the election: a type for each state, whose `step` takes every [`Input`].

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
use crate::record::{Offset, Why};
use crate::supervisor::{JobEnd, JobReport};
use crate::time::Time;

/// What a candidate is in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum State {
    /// R0: its claim has taken effect in a topic that is not judged yet.
    AwaitingJudgement(AwaitingJudgement),
    /// A claim is under way.
    Claiming(Claiming),
    /// Gone: nothing is taken in any more.
    Departed,
    /// The lease is over; of the job something may be left.
    Fenced(Fenced),
    /// It leads.
    Leading(Leading),
    /// `--overlap`: another leads, and the job runs on beside its own for a while.
    Overlapped(Overlapped),
    /// Nothing of the job is left, nothing will be started, and the release is on its way (R6).
    Releasing(Releasing),
    /// Nothing is held.
    StandingBy(StandingBy),
    /// Nothing is held, and the process is stopped, or about to be.
    Suspended(Suspended),
}

/// What happens to a state, after the [`Common`] has taken note of it.
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
    /// The process was told to go on.
    Continued,
    /// A record of ours was acknowledged.
    Delivered {
        /// Its sequence number.
        seq: u64,
    },
    /// A claim or a release is no longer to be waited for.
    GivenUp,
    /// The guard fenced, or died.
    GuardFenced {
        /// What the release will say.
        why: Why,
    },
    /// The partition's history was cut or made anew.
    HistoryCut,
    /// The job is in another state.
    JobChanged(JobReport),
    /// An empty log is to be trusted from now on.
    LogTrusted,
    /// Nothing more happens at this time: a standby does what is to be done now.
    MoveOn,
    /// Nothing of the job is left.
    NothingLeft(JobEnd),
    /// A release of ours was read back for the first time.
    ReleaseRead {
        /// Its term.
        term: Offset,
    },
    /// The partition was taken from us, and given to another.
    Revoked,
    /// To stand down; whether for good or for a suspension, the common knows.
    StandDown {
        /// Why.
        why: Why,
    },
    /// What is due by now is to be done.
    TimedOut,
    /// Time has passed. A lease that is over ends before anything else is looked at.
    TimePassed,
    /// R0: the topic may carry an election.
    TopicJudged {
        /// The journal has to be read again.
        is_misread: bool,
    },
    /// A record of ours could not be delivered.
    Undelivered {
        /// Its sequence number.
        seq: u64,
    },
    /// The journal may tell otherwise than before who leads.
    ViewChanged,
}

impl State {
    /// Takes in what happened, and gives the state that comes of it.
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

    /// When there is something to do.
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

    /// Whether it takes part in the election: it is neither gone nor suspended.
    pub(super) const fn takes_part(&self) -> bool {
        !matches!(self, Self::Departed | Self::Suspended(_))
    }

    /// For what the topic's identity has to be confirmed.
    pub(super) const fn confirmation(&self) -> Confirmation {
        match self {
            Self::Leading(_) => Confirmation::Lease,
            Self::StandingBy(_) => Confirmation::Claim,
            Self::AwaitingJudgement(_)
            | Self::Claiming(_)
            | Self::Departed
            | Self::Fenced(_)
            | Self::Overlapped(_)
            | Self::Releasing(_)
            | Self::Suspended(_) => Confirmation::Nothing,
        }
    }

    /// The term that a `resign` may name: it is held, or still to be released; and why it stands down already, if it does.
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
