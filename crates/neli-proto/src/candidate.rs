//! Decides whether this member may lead: the rules R1 to R7 of a candidate. It takes inputs and returns actions.
//!
//! It knows the journal and the lease, but not the job. [`Candidate::wants`] is what it wants of the job, and
//! [`Local`] what it learns of it: both are states, which the node compares after each input.
//!
//! `State` is the state in the election, and `Election` what the candidate knows of it in every state. What Kafka
//! says is handled in `on_kafka`, what happens on this machine or is due when time has passed here, and only the transitions in `state`
//! replace the state.

use alloc::vec::Vec;
use core::time::Duration;

use crate::hello::Hello;
use crate::journal::View;
use crate::leadership::{LastTerm, Leader, Leadership, Receipt, TermState};
use crate::listener::{ClaimWindow, LogBounds};
use crate::random::Random;
use crate::record::{JobState, Offset, Why};
use crate::status::{OtherCandidate, Status};
use crate::supervisor::{JobIs, Local, Wanted, WantedState};
use crate::time::Time;
use election::Election;
use overlapping::Overlapped;
use state::{Fenced, State};

pub use crate::action::Action;
pub use crate::kafka::{Event, Request};
pub use crate::note::{StandbyReason, Waiting};
pub use crate::status::Position;
pub use crate::supervisor::{Departure, JobEnd, JobReport, Loss};
pub use crate::timings::{Durations, Elector, Timings};

mod claims;
mod election;
mod identifying;
mod lease;
mod membership;
mod on_kafka;
mod overlapping;
mod release;
mod spreading;
mod state;

/// The settings of a candidate.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its identity, as its hellos say it.
    pub hello: Hello,
    /// Every duration of the protocol.
    pub timings: Timings,
    /// When the process started; the time of `wait` counts from then on.
    pub started: Time,
    /// `--wait`: the candidate departs if it has not led for this long.
    pub wait: Option<Duration>,
    /// R1: how far before the log's end the first reading begins, in offsets: [`FIRST_SPAN`](crate::listener::FIRST_SPAN), except in
    /// tests.
    pub first_span: Offset,
}

/// One candidate of one election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Candidate {
    election: Election,
    /// Whether the job was unhealthy when it last heard of it.
    is_unhealthy: bool,
    state: State,
}

impl Candidate {
    /// A candidate that begins to listen.
    pub fn new(now: Time, setup: Setup, random: Random) -> Self {
        Self {
            election: Election::new(now, setup, random),
            is_unhealthy: false,
            state: State::StandingBy { not_before: now },
        }
    }

    /// A candidate of a process with several roles: the process sends one hello for all of them, and is one member of the group.
    #[must_use]
    pub fn one_of_many(mut self) -> Self {
        self.election.precedence.is_one_of_many = true;
        self
    }

    /// Whether it is [one of many](Self::one_of_many).
    pub(crate) const fn is_one_of_many(&self) -> bool {
        self.election.precedence.is_one_of_many
    }

    /// The next action to perform.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.election.actions.pop_front()
    }

    /// Handles an event in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.departed().is_some() {
            return self.read_on(now, &event);
        }
        // The end of a lease is handled before the event, because no event can extend a lease that has ended.
        self.end_lease_if_over(now);
        match event {
            Event::Answered { asked, start, end } => {
                self.answered(now, LogBounds { asked, start, end });
            }
            Event::Delivered { seq } => self.delivered(now, seq),
            Event::GroupRefuses { words } => self.election.group_refuses(now, words),
            Event::HelloAsked { offset } => {
                self.read_others(now, offset, offset, None);
                self.election.answer_with_hello(now);
            }
            Event::HelloReceived(hello) => self.election.precedence.received(now, *hello),
            Event::HistoryCut => self.history_cut(now),
            Event::Named { id } => self.election.named(now, id),
            Event::ReachedEnd { next } => self.election.listener.reached(now, next),
            Event::Read { offset, record, written_ms } => self.read(now, offset, record.as_ref(), written_ms),
            Event::Passed { first, last } => self.read_others(now, first, last, None),
            Event::ReadHello { offset, hello } => self.read_others(now, offset, offset, Some(*hello)),
            Event::Revoked => self.revoked(now),
            Event::AssignmentChanged(assignment) => self.election.stand(assignment),
            Event::TopicIdentified { asked, identity } => {
                if self.election.identified(asked, identity).is_err() {
                    self.history_cut(now);
                }
            }
            Event::TopicJudged { cut_is_harmless, gaps_are_markers } => {
                self.topic_judged(now, cut_is_harmless, gaps_are_markers);
            }
            Event::Undecodable { .. } => self.election.listener.undecodable(now),
            Event::UnusedPartitions => self.election.learn_of_unused_partitions(),
            Event::Undelivered { seq, may_be_in_log } => self.undelivered(now, seq, may_be_in_log),
        }
        self.note_differing_once(now);
        self.handle_timeout(now);
    }
}

// ---- what a candidate does when time has passed --------------------------------------------------------------------

impl Candidate {
    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        if !self.state.takes_part() {
            return None;
        }
        let identity_due = self.election.identity_due(&self.state);
        [self.state.due(&self.election), self.election.next_hello, identity_due].into_iter().flatten().min()
    }

    /// Performs the actions that are due. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.state.takes_part() {
            return self.move_on(now);
        }
        self.end_lease_if_over(now);
        self.election.perform_due_actions(now);
        self.perform_what_is_due(now);
        self.move_on(now);
        self.election.ask_identity_if_due(now, &self.state);
    }

    /// Ends a lease that is over. That comes before any other event at this time, because none can extend a lease that has ended.
    fn end_lease_if_over(&mut self, now: Time) {
        if self.lease_end().is_none_or(|lease_end| now < self.election.deadline(lease_end)) {
            return;
        }
        if let State::Leading(leading) = &self.state {
            leading.note_unconfirmed(&mut self.election);
        }
        self.become_fenced(Why::Fenced, Loss::LeaseOver);
    }

    fn perform_what_is_due(&mut self, now: Time) {
        let election = &mut self.election;
        match &mut self.state {
            State::Claiming { sent, .. } => {
                let sent = *sent;
                if now >= sent + election.timings.lease {
                    election.claim_went_unanswered(now, sent);
                    self.claim_was_void(now);
                }
            }
            State::Leading(leading) => leading.handle_timeout(election, now),
            State::Overlapped(Overlapped { asks_at, .. }) => {
                asks_at.take_if(|asks_at| now >= *asks_at);
            }
            State::Releasing(releasing) => {
                if now >= releasing.gives_up_at {
                    self.release_is_over(now, false);
                } else if releasing.again_at.is_some_and(|again| now >= again) {
                    if releasing.may_be_sent(election) {
                        releasing.send(election);
                    } else {
                        self.release_is_over(now, false);
                    }
                }
            }
            State::Departed(_) | State::Fenced(_) | State::StandingBy { .. } | State::Suspended => {}
        }
    }

    /// Performs what is due for a candidate that holds nothing, when nothing else happens at this time.
    fn move_on(&mut self, now: Time) {
        if let State::StandingBy { not_before } = self.state {
            self.stand_by(now, not_before);
        } else if self.state == State::Suspended
            && let Some(departure) = self.election.departure()
        {
            self.become_departed(departure);
        }
    }

    /// Exits, reads again or from further back, claims, or gives up waiting.
    fn stand_by(&mut self, now: Time, not_before: Time) {
        let election = &mut self.election;
        if let Some(departure) = election.departure() {
            return self.become_departed(departure);
        }
        if election.suspending {
            return self.become_suspended();
        }
        election.prepare_claim(now);
        if election.wait_due().is_some_and(|due| now >= due) {
            self.become_departed(Departure::WaitedEnough);
        } else if election.claim_due(not_before).is_some_and(|due| now >= due) {
            self.become_claiming(now);
        } else {
            election.report_standby(now, not_before);
        }
    }
}

// ---- the state of a candidate as seen from outside ------------------------------------------------------------------

impl Candidate {
    /// The present state. If it stands by, the value is the one that was logged last, so that status and log agree.
    pub fn position(&self) -> Position {
        match &self.state {
            State::Claiming { .. } => Position::Claiming,
            State::Departed(_) => Position::Departed,
            State::Fenced(fenced) => Position::Fenced { term: fenced.wanted.grant.term },
            State::Leading(leading) => {
                Position::Leading { term: leading.term, job: leading.job, stopping: leading.stands_down }
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
    pub const fn leader(&self) -> Option<&Leader> {
        self.election.shown.last_term.leader.as_ref()
    }

    /// Who leads by the records that were read, also while it claims.
    pub fn leadership(&self, now: Time) -> Leadership<'_> {
        let age = now.since(self.election.listener.last_effective());
        self.election.shown.last_term.leadership(self.term_state(now), |_| age)
    }

    /// What the law says of the last term.
    fn term_state(&self, now: Time) -> TermState {
        let listener = &self.election.listener;
        TermState::by(listener).while_waited(|| listener.undecided_for(now).is_some())
    }

    /// What it shows.
    pub(crate) fn status(&self, now: Time) -> Status {
        Status {
            last_term: self.last_term(),
            term_state: self.term_state(now),
            position: self.position(),
            lease_end: self.lease_end(),
            claims_at: self.claims_at(),
            next_window_ms: None,
            departs_at: self.election.wait_due().filter(|_| matches!(self.state, State::StandingBy { .. })),
            standbys: self.standbys(now),
            counts: self.election.shown.counts,
            is_leaving: self.is_leaving(),
        }
    }

    /// The other candidates known by their hellos, without the leader.
    fn standbys(&self, now: Time) -> Vec<OtherCandidate> {
        let leader = self.election.leader();
        self.election.precedence.others(now).filter(|other| Some(&other.member) != leader).collect()
    }

    /// The end of its own lease, while it holds one.
    pub fn lease_end(&self) -> Option<Time> {
        self.held().map(|(_, lease_end)| lease_end)
    }

    /// When it claims, unless a record of another candidate comes before.
    pub fn claims_at(&self) -> Option<Time> {
        let State::StandingBy { not_before } = self.state else { return None };
        let Election { listener, cooling_off, .. } = &self.election;
        let ClaimWindow { since, predecessor, .. } = listener.claim_window()?;
        if cooling_off.is_some() || self.election.may_not_claim() {
            *cooling_off
        } else if listener.is_vacant() {
            self.election.claim_due(not_before)
        } else {
            let delay = self.election.claim_delay(since, predecessor)?;
            Some((since + delay.fixed).max(not_before))
        }
    }

    /// Whether the log was read up to the requested end.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.election.listener.is_caught_up()
    }

    /// Whether all records were read and no other candidate is known, neither by its hello nor as the leader.
    pub fn is_alone(&self, now: Time) -> bool {
        let Election { hello, listener, precedence, .. } = &self.election;
        let another_leads = listener.journal().led().is_some_and(|term| term.member.as_ref() != Some(&hello.member));
        let is_decided = !matches!(listener.journal().view(), View::Undecided(_));
        listener.is_caught_up() && is_decided && !another_leads && precedence.standbys(now) == 0
    }

    /// The last released term, if no other term has begun.
    pub const fn released_term(&self) -> Option<Offset> {
        match self.election.listener.journal().view() {
            View::Released { term, .. } => Some(*term),
            View::Led(_) | View::NeverLed | View::Undecided(_) => None,
        }
    }

    /// Whether the records show that this term was released, or that another candidate has claimed since.
    pub(crate) const fn has_ended(&self, term: Offset) -> bool {
        match self.election.listener.journal().view() {
            View::Led(led) => led.offset > term,
            View::Released { term: released, .. } => *released >= term,
            View::NeverLed | View::Undecided(_) => false,
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

// ---- what happens on this machine: to the job, to its guard, and to the process -------------------------------------

impl Candidate {
    /// What it wants of the job of the term that it holds; `None` while it holds none.
    pub fn wants(&self) -> Option<Wanted> {
        self.held().map(|(wanted, _)| wanted)
    }

    /// The same, and the end of its lease.
    fn held(&self) -> Option<(Wanted, Time)> {
        match &self.state {
            State::Fenced(fenced) => Some((Wanted { state: WantedState::Kill, ..fenced.wanted }, fenced.lease_end)),
            State::Leading(leading) => Some((leading.wants(), leading.lease_end)),
            State::Overlapped(overlapped) => Some((overlapped.wants(), overlapped.lease_end)),
            State::Claiming { .. }
            | State::Departed(_)
            | State::Releasing(_)
            | State::StandingBy { .. }
            | State::Suspended => None,
        }
    }

    /// Whether it waits for the end of this term's job.
    pub(crate) fn awaits_end_of(&self, term: Offset) -> bool {
        self.wants().is_some_and(|wanted| wanted.grant.term == term)
    }

    /// Handles the state of this machine, as far as it has changed.
    pub fn set_local(&mut self, now: Time, local: Local) {
        let Local { job, lacks_guard, is_stopped, is_suspended } = local;
        if lacks_guard != self.election.next_claim.lacks_guard {
            self.on_local(now, |candidate| candidate.election.next_claim.lacks_guard = lacks_guard);
        }
        if is_stopped && self.election.leaving.is_none() {
            self.stand_down(now, Why::Stopped, true);
        }
        if is_suspended && !self.election.suspending {
            self.stand_down(now, Why::Suspended, false);
        } else if !is_suspended && self.election.suspending {
            self.on_local(now, |candidate| candidate.go_on(now));
        }
        if let Some(job) = job {
            self.set_job(now, job);
        }
    }

    fn set_job(&mut self, now: Time, job: JobIs) {
        let held = self.wants().map(|wanted| wanted.grant.term);
        match job {
            JobIs::Alive { term, report, is_unhealthy, fenced } => {
                let became_unhealthy = is_unhealthy && !self.is_unhealthy;
                self.is_unhealthy = is_unhealthy;
                if became_unhealthy {
                    self.stand_down(now, Why::Unhealthy, false);
                }
                if held == Some(term) && self.is_news(report, fenced) {
                    self.on_local(now, |candidate| candidate.job_is(now, report, fenced));
                }
            }
            JobIs::Gone(end) => {
                self.is_unhealthy = false;
                if held == Some(end.proof.term()) {
                    self.on_local(now, |candidate| {
                        candidate.guard_has_fenced(end.fenced);
                        candidate.release_job(now, end);
                    });
                }
            }
        }
    }

    fn is_news(&self, report: JobReport, fenced: Option<Why>) -> bool {
        if let State::Leading(leading) = &self.state {
            return fenced.is_some() || leading.job != report;
        }
        matches!(self.state, State::Overlapped(_)) && (fenced.is_some() || report.state == JobState::Restarting)
    }

    /// Handles a new state of the job.
    fn job_is(&mut self, now: Time, report: JobReport, fenced: Option<Why>) {
        self.guard_has_fenced(fenced);
        if let State::Leading(leading) = &mut self.state {
            if matches!(report.state, JobState::Running | JobState::Restarting) {
                self.election.wait_until = None;
            }
            leading.job_changed(now, report);
        } else if let State::Overlapped(overlapped) = &mut self.state
            && report.state == JobState::Restarting
        {
            // The run has ended by itself. No other one begins beside the next leader's.
            overlapped.asks_at = None;
        }
    }

    /// The lease is over, also if the own deadline is later: the guard fenced the job for this reason, or died.
    fn guard_has_fenced(&mut self, why: Option<Why>) {
        if let Some(why) = why {
            self.become_fenced(why, Loss::LeaseOver);
        }
    }

    /// Stands down: leaves for good (`leaving`), cools off, or waits until the process continues (`Suspended`).
    pub fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        self.on_local(now, |candidate| candidate.stand_down_for(now, why, leaving));
    }

    fn stand_down_for(&mut self, now: Time, why: Why, leaving: bool) {
        let election = &mut self.election;
        election.stands_down(why, leaving);
        match &mut self.state {
            // The candidate first waits for the claim, or for the end of the job's processes. Then the cool-off begins, unless it must begin
            // already.
            State::Claiming { stood_down, .. } | State::Fenced(Fenced { stood_down, .. }) => {
                if why != Why::Suspended || stood_down.is_none() {
                    *stood_down = Some(why);
                }
            }
            State::Leading(leader) => leader.stand_down(election, now, why),
            State::Overlapped(overlapped) => {
                if !why.lets_job_run_on() {
                    overlapped.asks_at = None;
                }
                if why.rank() > overlapped.why.rank() {
                    overlapped.why = why;
                }
            }
            State::Releasing(_) | State::StandingBy { .. } | State::Suspended => {
                if why.lets_another_lead() {
                    election.cool_off(now);
                }
            }
            State::Departed(_) => {}
        }
    }

    /// The process continues after it was suspended: it stands for election again from R1, as after a start.
    fn go_on(&mut self, now: Time) {
        self.election.suspending = false;
        if self.state == State::Suspended {
            self.election.standing_by = None;
            self.election.ask_anew(now);
            self.become_standby(now);
        }
    }

    /// Ends the wait for a claim or for a release's delivery, at the second request to stop.
    pub fn give_up(&mut self, now: Time) {
        // Each has an effect in its own state only.
        self.claim_was_void(now);
        self.release_is_over(now, false);
        self.move_on(now);
    }

    /// Forbids claims while `are_held`.
    pub(crate) fn hold_claims(&mut self, now: Time, are_held: bool) {
        let ends = self.election.next_claim.is_held && !are_held;
        self.election.next_claim.is_held = are_held;
        if ends {
            self.handle_timeout(now);
        }
    }

    /// Handles something on this machine, after the end of a lease that is over.
    fn on_local(&mut self, now: Time, happens: impl FnOnce(&mut Self)) {
        if self.departed().is_some() {
            return;
        }
        self.end_lease_if_over(now);
        happens(self);
        self.handle_timeout(now);
    }
}
