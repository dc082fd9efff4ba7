//! Decides whether this member may lead: the rules R1 to R7 of a candidate. It takes inputs and returns actions.
//!
//! It knows the journal and the lease, but not the job. [`Candidate::wants`] is what it wants of the job, and
//! [`Local`](crate::supervisor::Local) what it learns of it: both are states, which the node compares after each input.
//!
//! `State` is the state in the election, and `Election` what the candidate knows of it in every state. What happens is handled in the file of
//! its kind (`on_kafka`, `on_local`, and here what is due when time has passed), and only the transitions in `state` replace the state.

use core::time::Duration;

use crate::hello::Hello;
use crate::listener::LogBounds;
use crate::random::Random;
use crate::record::{Offset, Why};
use crate::time::Time;
use election::Election;
use lease::Leading;
use overlapping::Overlapped;
use state::State;

pub use crate::action::Action;
pub use crate::kafka::{Event, Request};
pub use crate::note::{StandbyReason, Waiting};
pub use crate::status::Position;
pub use crate::supervisor::{Departure, JobEnd, JobReport, Loss};
pub use crate::timings::{Durations, Elector, Patience, Timings};

mod claims;
mod election;
mod identifying;
mod lease;
mod membership;
mod on_kafka;
mod on_local;
mod overlapping;
mod position;
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
    /// What it last saw of this machine.
    seen: on_local::Seen,
    state: State,
}

/// R0: whether the topic may carry an election. If it may not, the node tells the candidate to stand down.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Judgement {
    /// The topic has not been judged yet.
    Awaited {
        /// Whether a claim was made. Before the check has finished, no second one is made.
        claimed: bool,
    },
    /// The topic may carry an election.
    Fit,
}

impl Judgement {
    /// The topic has not been checked, and no claim was made.
    const fn awaited() -> Self {
        Self::Awaited { claimed: false }
    }
}

impl Candidate {
    /// A candidate that begins to listen.
    #[must_use]
    pub fn new(now: Time, setup: Setup, random: Random) -> Self {
        Self {
            election: Election::new(now, setup, random),
            seen: on_local::Seen::default(),
            state: State::StandingBy { not_before: now },
        }
    }

    /// A candidate of a process with several roles: the process sends one hello for all of them, and is one member of the group.
    #[must_use]
    pub fn one_of_many(mut self) -> Self {
        self.election.is_one_of_many = true;
        self.election.precedence.is_one_of_many = true;
        self
    }

    /// The next action to perform.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.election.actions.pop_front()
    }

    /// Handles an event in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.departed().is_some() {
            return;
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
            Event::ReadHello { offset, hello } if hello.roles.is_some() => self.read_process_hello(now, offset, &hello),
            Event::ReadHello { offset, hello } => self.read_others(now, offset, offset, Some(*hello)),
            Event::Revoked => self.revoked(now),
            Event::AssignmentChanged(assignment) => self.election.stand(assignment),
            Event::TopicIdentified { asked, identity } => self.identified(now, asked, identity),
            Event::TopicJudged { cut_is_harmless, gaps_are_markers } => {
                self.topic_judged(now, cut_is_harmless, gaps_are_markers);
            }
            Event::Undecodable { .. } => self.election.listener.undecodable(now),
            Event::UnusedPartitions => self.election.learn_of_unused_partitions(),
            Event::Undelivered { seq } => self.undelivered(now, seq),
        }
        self.handle_timeout(now);
    }
}

// ---- what a candidate does when time has passed --------------------------------------------------------------------

impl Candidate {
    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
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
        let (State::Leading(Leading { lease_end, .. }) | State::Overlapped(Overlapped { lease_end, .. })) = &self.state
        else {
            return;
        };
        if now < self.election.deadline(*lease_end) {
            return;
        }
        if let State::Leading(leading) = &self.state {
            leading.note_unconfirmed(&mut self.election, now);
        }
        self.become_fenced(Why::Fenced, Loss::LeaseOver);
    }

    fn perform_what_is_due(&mut self, now: Time) {
        let election = &mut self.election;
        match &mut self.state {
            State::AwaitingJudgement { sent, .. } => {
                // The judgement would come too late for this claim.
                if now >= election.claim_expires_at(*sent) {
                    self.release_unjudged(now, Why::ClaimExpired);
                }
            }
            State::Claiming(claiming) => {
                let sent = claiming.sent;
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
        } else if now >= not_before && election.claim_due(not_before).is_some_and(|due| now >= due) {
            self.become_claiming(now);
        } else {
            election.report_standby(now, not_before);
        }
    }
}
