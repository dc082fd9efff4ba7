//! Decides whether this member may lead: the rules R1 to R7 of a candidate. It takes inputs and returns actions.
//!
//! It knows the journal and the lease, but not the job. [`Candidate::wants`] is what it wants of the job, and [`Local`] what it learns of it: both
//! are states, which the node compares after each input.
//!
//! `Common` contains the data that every state needs. `State` is the state in the election; its one function takes an `Input` and returns
//! the next state.

use alloc::boxed::Box;
use core::mem;
use core::time::Duration;

use crate::listener::LogBounds;
use crate::random::Random;
use crate::record::{Body, MemberId, Offset, Why};
use crate::time::Time;
use common::Common;
use reasons::rank;

use standing_by::StandingBy;
use state::{Input, State};

pub use crate::kafka::{Event, Request};
pub use crate::note::{StandbyReason, Waiting};
pub use crate::supervisor::{Departure, JobEnd, JobReport, Loss};
pub use crate::timings::{Durations, Elector, Patience, Timings};
pub use action::Action;
pub use position::Position;

mod action;
mod awaiting_judgement;
mod beside_roles;
mod claiming;
mod common;
mod fenced;
mod identifying;
mod leading;
mod local;
mod membership;
mod overlapped;
mod overlapping;
mod position;
mod preempting;
mod reading;
mod reasons;
mod releasing;
mod spreading;
mod standing_by;
mod state;
mod suspended;

/// The identity of a candidate.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    /// Its random id, made at its start.
    pub member: MemberId,
    /// Its name.
    pub name: Box<str>,
    /// The content of its hello.
    pub hello: Body,
}

impl Identity {
    /// `--priority`, from its hello.
    const fn priority(&self) -> u16 {
        match self.hello {
            Body::Hello { priority, .. } => priority,
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => 0,
        }
    }
}

/// The settings of a candidate.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its identity.
    pub identity: Identity,
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
    common: Common,
    /// What it last saw of this machine.
    seen: local::Seen,
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
        Self { common: Common::new(now, setup, random), seen: local::Seen::default(), state: StandingBy::from(now) }
    }

    /// A candidate of a process with several roles: the process sends one hello for all of them, and is one member of the group.
    #[must_use]
    pub fn one_of_many(mut self) -> Self {
        self.common.is_one_of_many = true;
        self.common.precedence.one_of_many();
        self
    }

    /// The next action to perform.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.common.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if !self.state.takes_part() {
            return None;
        }
        let identity_due = self.common.identity_due(self.state.confirmation());
        [self.state.due(&self.common), self.common.next_hello, identity_due].into_iter().flatten().min()
    }

    /// Performs the actions that are due. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.state.takes_part() {
            return self.step(now, Input::MoveOn);
        }
        self.step(now, Input::TimePassed);
        self.common.perform_due_actions(now);
        self.step(now, Input::TimedOut);
        self.step(now, Input::MoveOn);
        self.common.ask_identity_if_due(now, self.state.confirmation());
    }

    /// Handles an event in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.state == State::Departed {
            return;
        }
        // The end of a lease is handled before the event, because no event can extend a lease that has ended.
        self.step(now, Input::TimePassed);
        match event {
            Event::Answered { asked, start, end } => {
                self.answered(now, LogBounds { asked, start, end });
            }
            Event::Delivered { seq } => self.delivered(now, seq),
            Event::GroupRefuses { words } => self.common.group_refuses(now, words),
            Event::HelloAsked { offset } => {
                self.read_others(now, offset, offset, None);
                self.common.answer_with_hello(now);
            }
            Event::HelloReceived(hello) => self.common.precedence.received(now, hello),
            Event::HistoryCut => self.history_cut(now),
            Event::Named { id } => self.common.named(now, id),
            Event::ReachedEnd { next } => self.common.listener.reached(now, next),
            Event::Read { offset, record, written_ms } => self.read(now, offset, record.as_ref(), written_ms),
            Event::Passed { first, last } => self.read_others(now, first, last, None),
            Event::ReadOther { offset, hello } => self.read_others(now, offset, offset, hello),
            Event::ReadProcessHello { offset, hello } => self.read_process_hello(now, offset, &hello),
            Event::Revoked => self.revoked(now),
            Event::StandingChanged(standing) => self.common.stand(standing),
            Event::TopicIdentified { asked, identity } => self.identified(now, asked, identity),
            Event::TopicJudged { cut_is_harmless, gaps_are_markers } => {
                self.common.judgement = Judgement::Fit;
                let is_misread = self.common.listener.topic_judged(now, cut_is_harmless, gaps_are_markers);
                self.step(now, Input::TopicJudged { is_misread });
                self.common.introduce(now);
            }
            Event::Undecodable { .. } => self.common.listener.undecodable(now),
            Event::UnusedPartitions => self.common.learn_of_unused_partitions(),
            Event::Undelivered { seq } => self.step(now, Input::Undelivered { seq }),
        }
        self.handle_timeout(now);
    }

    /// Whether the candidate holds `term` or has not released it yet, and is not yet standing down for good or for another candidate.
    fn may_resign(&self, term: Offset) -> bool {
        let is_free = |why: Option<Why>| why.is_none_or(|why| rank(why) < rank(Why::Resigned));
        self.state.resignable(&self.common).is_some_and(|(held, stood_down)| held == term && is_free(stood_down))
    }

    /// Passes the input to the state, and replaces the state by the next one.
    fn step(&mut self, now: Time, input: Input) {
        let state = mem::replace(&mut self.state, State::Departed);
        self.state = state.step(&mut self.common, now, input);
    }
}
