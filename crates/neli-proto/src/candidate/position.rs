//! The state of a candidate as seen from outside.

use alloc::vec::Vec;

use super::state::State;
use super::{Candidate, Election, Judgement};
use crate::journal::View;
use crate::leadership::{LastTerm, Leader, Receipt, TermState};
use crate::record::Offset;
use crate::status::{OtherCandidate, Position, Status};
use crate::supervisor::Departure;
use crate::time::Time;

impl Candidate {
    /// The present state. If it stands by, the value is the one that was logged last, so that status and log agree.
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.state {
            State::AwaitingJudgement { claim, .. } => Position::AwaitingJudgement { term: claim.term() },
            State::Claiming(_) => Position::Claiming,
            State::Departed(_) => Position::Departed,
            State::Fenced(fenced) => Position::Fenced { term: fenced.wanted.grant.term },
            State::Leading(leading) => {
                Position::Leading { term: leading.term, job: leading.job, stopping: leading.stands_down_for() }
            }
            State::Overlapped(overlapped) => Position::Overlapped { term: overlapped.wanted.grant.term },
            State::Releasing(releasing) => Position::Releasing { term: releasing.term },
            State::StandingBy { .. } if !self.election.listener.is_caught_up() => Position::Listening,
            State::StandingBy { .. } => Position::Standby(self.election.standing_by.clone()),
            State::Suspended => Position::Suspended,
        }
    }

    /// The last term, as far as its records were read. A record that is older than its listening counts as read when that began.
    fn last_term(&self) -> LastTerm {
        let mut last_term = self.election.shown.last_term.clone();
        if let Some(leader) = &mut last_term.leader {
            leader.is_self = leader.member.as_ref() == Some(&self.election.hello.member);
            let read = self.election.listener.last_effective();
            leader.last_record = Receipt { read, is_live: true, ..leader.last_record };
        }
        last_term
    }

    /// The leader, or the last leader.
    pub(crate) const fn leader(&self) -> Option<&Leader> {
        self.election.shown.last_term.leader.as_ref()
    }

    /// What it shows.
    pub(crate) fn status(&self, now: Time) -> Status {
        let listener = &self.election.listener;
        Status {
            last_term: self.last_term(),
            // What the law says of it.
            term_state: if listener.is_caught_up() {
                TermState::of(listener.journal().view())
            } else {
                TermState::Unread
            },
            position: self.position(),
            lease_end: self.lease_end(),
            claims_at: self.claims_at(),
            awaits_window: false,
            departs_at: self.election.wait_due().filter(|_| matches!(self.state, State::StandingBy { .. })),
            standbys: self.standbys(now),
            counts: self.election.shown.counts,
            is_leaving: self.is_leaving(),
        }
    }

    /// The other candidates known by their hellos, without the leader.
    fn standbys(&self, now: Time) -> Vec<OtherCandidate> {
        let leader = self.election.leader();
        let others = self.election.precedence.others(now).filter(|(member, ..)| Some(*member) != leader);
        let other = others.map(|(member, name, received)| OtherCandidate {
            member: member.clone(),
            name: name.map(Into::into),
            age: now.since(received),
        });
        other.collect()
    }

    /// The end of its own lease, while it holds one.
    pub(crate) fn lease_end(&self) -> Option<Time> {
        self.state.lease_end(&self.election)
    }

    /// When it claims, unless a record of another candidate comes before.
    pub(crate) fn claims_at(&self) -> Option<Time> {
        let State::StandingBy { not_before } = self.state else { return None };
        let Election { listener, next_claim, cooling_off, judgement, .. } = &self.election;
        if !listener.is_caught_up() || next_claim.is_held {
            None
        } else if cooling_off.is_some() {
            *cooling_off
        } else if *judgement == (Judgement::Awaited { claimed: true }) {
            None
        } else if listener.is_vacant() {
            self.election.claim_due(not_before)
        } else {
            listener.claim_window().map(|claim_window| claim_window.since)
        }
    }

    /// Whether the log was read up to the requested end.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.election.listener.is_caught_up()
    }

    /// Whether all records were read and no other candidate is known, neither by its hello nor as the leader.
    #[must_use]
    pub fn is_alone(&self, now: Time) -> bool {
        let Election { hello, listener, precedence, .. } = &self.election;
        let another_leads = listener.journal().led().is_some_and(|term| term.member.as_ref() != Some(&hello.member));
        let is_decided = !matches!(listener.journal().view(), View::Undecided(_));
        listener.is_caught_up() && is_decided && !another_leads && precedence.standbys(now) == 0
    }

    /// The last released term, if no other term has begun.
    pub(crate) const fn released_term(&self) -> Option<Offset> {
        match self.election.listener.journal().view() {
            View::Released { term, .. } => Some(*term),
            View::Led(_) | View::NeverLed | View::Undecided(_) => None,
        }
    }

    /// The term that it holds, while the lease lasts.
    pub(crate) const fn leads(&self) -> Option<Offset> {
        if let State::Leading(leading) = &self.state { Some(leading.term) } else { None }
    }

    /// Whether it holds nothing and must be suspended until SIGCONT.
    pub(crate) const fn is_suspended(&self) -> bool {
        matches!(self.state, State::Suspended)
    }

    /// Why it has exited, if it has.
    #[must_use]
    pub const fn departed(&self) -> Option<Departure> {
        if let State::Departed(departure) = self.state { Some(departure) } else { None }
    }

    /// Whether it holds or releases a term, or a claim is in flight.
    pub(crate) const fn holds_or_awaits(&self) -> bool {
        !matches!(self.state, State::Departed(_) | State::StandingBy { .. } | State::Suspended)
    }

    /// Whether it exits when it holds nothing.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.election.leaving.is_some()
    }
}
