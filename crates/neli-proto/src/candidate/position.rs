//! What a candidate is, for whoever looks at it from outside.

use alloc::vec::Vec;

use super::{Candidate, JobReport, Judgement, Role, Standby};
use crate::journal::View;
use crate::node::status::{Awaited, Awaits, Leader, OtherCandidate};
use crate::record::{Offset, Why};
use crate::time::Time;

/// What a candidate is in the election, for whoever looks at it from outside.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Position {
    /// R0: its claim has taken effect in a topic that is not judged yet. Nothing runs under the term.
    AwaitingJudgement {
        /// The term.
        term: Offset,
    },
    /// A claim is under way.
    Claiming,
    /// It is gone.
    Departed,
    /// The lease is over; of the job something may be left.
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
        /// Why the job has been asked to stop, if it has.
        stopping: Option<Why>,
    },
    /// It reads what was written before it came (R1).
    Listening,
    /// Nothing of the job is left, and the release is on its way.
    Releasing {
        /// The term.
        term: Offset,
    },
    /// It stands by; as it was told last, so that nobody is told two things.
    Standby(Option<Standby>),
    /// It holds nothing, and is stopped until it is continued, or about to be.
    Suspended,
}

impl Candidate {
    /// What it is in the election, now. Of standing by it says what was said last, so that nobody is told two things.
    pub(crate) fn position(&self) -> Position {
        match &self.role {
            Role::AwaitingJudgement { term, .. } => Position::AwaitingJudgement { term: *term },
            Role::Claiming { .. } => Position::Claiming,
            Role::Departed => Position::Departed,
            Role::Suspended => Position::Suspended,
            Role::Fenced { term, .. } => Position::Fenced { term: *term },
            Role::Leading(lead) => Position::Leading { term: lead.term, job: lead.job, stopping: lead.stopping },
            Role::Releasing(releasing) => Position::Releasing { term: releasing.term },
            Role::Standby { .. } if !self.listener.is_caught_up() => Position::Listening,
            Role::Standby { .. } => Position::Standby(self.standing_by.clone()),
        }
    }

    /// Who leads, as far as is known.
    pub(crate) fn leader(&self) -> Option<Leader> {
        match self.listener.journal().view() {
            View::Led(term) => Some(Leader {
                member: term.member.clone(),
                name: term.name.clone(),
                term: term.offset,
                since: self.leader_since.0.filter(|(known, _)| *known == term.offset).map(|(_, since)| since),
                is_self: term.member.as_ref() == Some(&self.identity.member),
            }),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        }
    }

    /// The other candidates that are known by their hellos, but for the leader.
    pub(crate) fn standbys(&self, now: Time) -> Vec<OtherCandidate> {
        let leader = match self.listener.journal().view() {
            View::Led(term) => term.member.as_ref(),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        };
        let others = self.precedence.others(now).filter(|(member, ..)| Some(*member) != leader);
        let other = others.map(|(member, name, heard)| OtherCandidate {
            member: member.clone(),
            name: name.map(Into::into),
            age: now.since(heard),
        });
        other.collect()
    }

    /// When its own lease ends, while it holds one.
    pub(crate) fn lease_end(&self) -> Option<Time> {
        match &self.role {
            Role::AwaitingJudgement { sent, .. } => Some(*sent + self.timings.lease),
            Role::Fenced { lease_end, .. } => Some(*lease_end),
            Role::Leading(lead) => Some(lead.lease_end),
            Role::Claiming { .. } | Role::Departed | Role::Releasing(_) | Role::Standby { .. } | Role::Suspended => {
                None
            }
        }
    }

    /// When it departs because of `--wait`, if it does.
    pub(crate) fn departs_at(&self) -> Option<Time> {
        match &self.role {
            Role::Standby { .. } => self.wait_due(),
            Role::AwaitingJudgement { .. }
            | Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Leading(_)
            | Role::Releasing(_)
            | Role::Suspended => None,
        }
    }

    /// What it waits for. While it leads or is fenced, that is the job's to say.
    pub(crate) fn awaits(&self) -> Option<Awaits> {
        let (what, until) = match &self.role {
            Role::AwaitingJudgement { sent, .. } => (Awaited::Judgement, Some(self.claim_expires_at(*sent))),
            Role::Claiming { sent, .. } => (Awaited::Claim, Some(*sent + self.timings.lease)),
            Role::Departed | Role::Fenced { .. } | Role::Leading(_) => return None,
            Role::Releasing(releasing) => (Awaited::Delivery, Some(releasing.give_up)),
            Role::Standby { .. } if !self.listener.is_caught_up() => (Awaited::Records, None),
            Role::Standby { .. } if self.cooling_off.is_some() => (Awaited::CoolOff, self.cooling_off),
            Role::Standby { .. } if self.judgement == (Judgement::Awaited { claimed: true }) => {
                (Awaited::Judgement, None)
            }
            Role::Standby { .. } => match self.listener.journal().view() {
                View::Led(_) => (Awaited::Silence, self.silent_from()),
                View::Undecided(_) if !self.listener.is_vacant() => (Awaited::Silence, self.silent_from()),
                View::NeverLed | View::Released { .. } | View::Undecided(_) => (Awaited::ClaimDelay, self.claim_due()),
            },
            Role::Suspended => (Awaited::Continuation, None),
        };
        Some(Awaits { what, until })
    }

    fn silent_from(&self) -> Option<Time> {
        self.listener.claim_window().map(|opening| opening.since)
    }

    /// Whether everything was read, and no other candidate is known: by its hello, or as the leader.
    #[must_use]
    pub fn is_alone(&self, now: Time) -> bool {
        let another_leads = match self.listener.journal().view() {
            View::Led(term) => term.member.as_ref() != Some(&self.identity.member),
            View::NeverLed | View::Released { .. } => false,
            View::Undecided(_) => true,
        };
        self.listener.is_caught_up() && !another_leads && self.precedence.standbys(now) == 0
    }

    /// Whether it holds a term in a topic that is not judged yet: nothing runs, and whoever goes owes the release.
    pub(crate) const fn holds_unjudged(&self) -> bool {
        matches!(self.role, Role::AwaitingJudgement { .. })
    }

    /// Whether a claim or a release is on its way, or a term is held in a topic that is not judged yet.
    pub(crate) const fn has_claimed(&self) -> bool {
        matches!(self.role, Role::AwaitingJudgement { .. } | Role::Claiming { .. } | Role::Releasing(_))
    }

    /// Whether it goes for good, once nothing is held.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }
}
