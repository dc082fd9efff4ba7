//! The state of a candidate as seen from outside.

use alloc::vec::Vec;

use super::state::State;
use super::{Candidate, Judgement};
use crate::journal::View;
use crate::leadership::{LastTerm, Receipt, TermState};
use crate::note::StandbyReason;
use crate::record::{Offset, Why};
use crate::status::{Awaited, Awaits, Counts, OtherCandidate};
use crate::supervisor::JobReport;
use crate::time::Time;

/// The state of a candidate as seen from outside.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Position {
    /// R0: its claim took effect before the topic was judged. No job runs under the term.
    AwaitingJudgement {
        /// The term.
        term: Offset,
    },
    /// A claim is in flight.
    Claiming,
    /// It has exited.
    Departed,
    /// The lease is over, but processes of the job may be left.
    Fenced {
        /// The term.
        term: Offset,
    },
    /// It leads.
    Leading {
        /// The term.
        term: Offset,
        /// The job.
        job: JobReport,
        /// Why the job was asked to stop, if it was.
        stopping: Option<Why>,
    },
    /// It reads the records from before its start (R1).
    #[default]
    Listening,
    /// `--overlap`: another candidate leads, and this job continues beside the other's for a limited time.
    Overlapped {
        /// The term that has ended.
        term: Offset,
    },
    /// No process of the job is left, and the release is in flight.
    Releasing {
        /// The term.
        term: Offset,
    },
    /// It stands by. The value is the one that was logged last, so that status and log agree.
    Standby(Option<StandbyReason>),
    /// It holds nothing. The process is suspended until SIGCONT, or about to be.
    Suspended,
}

impl Candidate {
    /// The present state. If it stands by, the value is the one that was logged last, so that status and log agree.
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.state {
            State::AwaitingJudgement(state) => Position::AwaitingJudgement { term: state.term() },
            State::Claiming(_) => Position::Claiming,
            State::Departed => Position::Departed,
            State::Fenced(state) => Position::Fenced { term: state.term() },
            State::Leading(state) => {
                Position::Leading { term: state.term(), job: state.job(), stopping: state.stopping() }
            }
            State::Overlapped(state) => Position::Overlapped { term: state.term() },
            State::Releasing(state) => Position::Releasing { term: state.term() },
            State::StandingBy(_) if !self.common.listener.is_caught_up() => Position::Listening,
            State::StandingBy(_) => Position::Standby(self.common.standing_by.clone()),
            State::Suspended(_) => Position::Suspended,
        }
    }

    /// The last term, as far as its records were read. A record that is older than its listening counts as read when that began.
    pub(crate) fn last_term(&self) -> LastTerm {
        let mut last_term = self.common.last_term.0.clone();
        if let Some(leader) = &mut last_term.leader {
            leader.is_self = leader.member.as_ref() == Some(&self.common.identity.member);
            let read = self.common.listener.last_effective();
            leader.last_record = Receipt { read, is_live: true, ..leader.last_record };
        }
        last_term
    }

    /// What the law says of it.
    pub(crate) fn term_state(&self) -> TermState {
        let listener = &self.common.listener;
        if listener.is_caught_up() { TermState::of(listener.journal().view()) } else { TermState::Unread }
    }

    /// Counts of the records read since listening began.
    pub(crate) const fn counts(&self) -> Counts {
        self.common.counts.0
    }

    /// The other candidates known by their hellos, without the leader.
    pub(crate) fn standbys(&self, now: Time) -> Vec<OtherCandidate> {
        let leader = match self.common.listener.journal().view() {
            View::Led(term) => term.member.as_ref(),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        };
        let others = self.common.precedence.others(now).filter(|(member, ..)| Some(*member) != leader);
        let other = others.map(|(member, name, received)| OtherCandidate {
            member: member.clone(),
            name: name.map(Into::into),
            age: now.since(received),
        });
        other.collect()
    }

    /// The end of its own lease, while it holds one.
    pub(crate) fn lease_end(&self) -> Option<Time> {
        match &self.state {
            State::AwaitingJudgement(state) => Some(state.lease_end(&self.common)),
            State::Fenced(state) => Some(state.lease_end()),
            State::Leading(state) => Some(state.lease_end()),
            State::Overlapped(state) => Some(state.lease_end()),
            State::Claiming(_) | State::Departed | State::Releasing(_) | State::StandingBy(_) | State::Suspended(_) => {
                None
            }
        }
    }

    /// When it exits because of `--wait`, if it does.
    pub(crate) fn departs_at(&self) -> Option<Time> {
        match &self.state {
            State::StandingBy(_) => self.common.wait_due(),
            State::AwaitingJudgement(_)
            | State::Claiming(_)
            | State::Departed
            | State::Fenced(_)
            | State::Leading(_)
            | State::Overlapped(_)
            | State::Releasing(_)
            | State::Suspended(_) => None,
        }
    }

    /// What it waits for. While it leads or is fenced, the supervisor answers this question.
    pub(crate) fn awaits(&self) -> Option<Awaits> {
        let common = &self.common;
        let (what, until) = match &self.state {
            State::AwaitingJudgement(state) => (Awaited::Judgement, Some(state.expires_at(common))),
            State::Claiming(state) => (Awaited::Claim, Some(state.expires_at(common))),
            State::Departed | State::Fenced(_) | State::Leading(_) | State::Overlapped(_) => return None,
            State::Releasing(state) => (Awaited::Delivery, Some(state.gives_up_at())),
            State::StandingBy(_) if !common.listener.is_caught_up() => (Awaited::Records, None),
            State::StandingBy(_) if common.claims_are_held => (Awaited::Facts, None),
            State::StandingBy(_) if common.cooling_off.is_some() => (Awaited::CoolOff, common.cooling_off),
            State::StandingBy(_) if common.judgement == (Judgement::Awaited { claimed: true }) => {
                (Awaited::Judgement, None)
            }
            State::StandingBy(state) => match common.listener.journal().view() {
                View::Led(_) => (Awaited::Silence, self.silent_from()),
                View::Undecided(_) if !common.listener.is_vacant() => (Awaited::Silence, self.silent_from()),
                View::NeverLed | View::Released { .. } | View::Undecided(_) => {
                    (Awaited::ClaimDelay, state.claim_due(common))
                }
            },
            State::Suspended(_) => (Awaited::Continuation, None),
        };
        Some(Awaits { what, until })
    }

    fn silent_from(&self) -> Option<Time> {
        self.common.listener.claim_window().map(|claim_window| claim_window.since)
    }

    /// Whether the log was read up to the requested end.
    #[must_use]
    pub(crate) fn is_caught_up(&self) -> bool {
        self.common.listener.is_caught_up()
    }

    /// Whether all records were read and no other candidate is known, neither by its hello nor as the leader.
    #[must_use]
    pub fn is_alone(&self, now: Time) -> bool {
        let another_leads = match self.common.listener.journal().view() {
            View::Led(term) => term.member.as_ref() != Some(&self.common.identity.member),
            View::NeverLed | View::Released { .. } => false,
            View::Undecided(_) => true,
        };
        self.common.listener.is_caught_up() && !another_leads && self.common.precedence.standbys(now) == 0
    }

    /// The last released term, if no other term has begun.
    pub(crate) const fn released_term(&self) -> Option<Offset> {
        match self.common.listener.journal().view() {
            View::Released { term, .. } => Some(*term),
            View::Led(_) | View::NeverLed | View::Undecided(_) => None,
        }
    }

    /// The term that it holds, while the lease lasts.
    pub(crate) const fn leads(&self) -> Option<Offset> {
        match &self.state {
            State::Leading(state) => Some(state.term()),
            State::AwaitingJudgement(_)
            | State::Claiming(_)
            | State::Departed
            | State::Fenced(_)
            | State::Overlapped(_)
            | State::Releasing(_)
            | State::StandingBy(_)
            | State::Suspended(_) => None,
        }
    }

    /// Whether it holds nothing and must be suspended until SIGCONT.
    pub(crate) const fn is_suspended(&self) -> bool {
        matches!(self.state, State::Suspended(_))
    }

    /// Whether it holds or releases a term, or a claim is in flight.
    pub(crate) const fn holds_or_awaits(&self) -> bool {
        !matches!(self.state, State::Departed | State::StandingBy(_) | State::Suspended(_))
    }

    /// Whether it exits when it holds nothing.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.common.leaving.is_some()
    }
}
