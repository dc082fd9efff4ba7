//! Decides whether this member may lead: the rules R1 to R7 of a candidate. It takes inputs and returns actions.
//!
//! It knows the journal and the lease, but not the job. [`Candidate::wants`] is what it wants of the job, and
//! [`Local`](crate::supervisor::Local) what it learns of it: both are states, which the node compares after each input.
//!
//! `State` is the state in the election, `Common` the data that every state needs. What happens is handled in the file of its kind (`on_read`,
//! `on_kafka`, `on_local`, `on_timeout`), and only `transitions` replaces the state.

use alloc::boxed::Box;
use core::time::Duration;

use crate::listener::LogBounds;
use crate::random::Random;
use crate::record::{Body, MemberId, Offset};
use crate::time::Time;
use common::Common;
use state::State;

pub use crate::kafka::{Event, Request};
pub use crate::note::{StandbyReason, Waiting};
pub use crate::supervisor::{Departure, JobEnd, JobReport, Loss};
pub use crate::timings::{Durations, Elector, Patience, Timings};
pub use action::Action;
pub use position::Position;

mod action;
mod beside_roles;
mod claims;
mod common;
mod identifying;
mod lease;
mod membership;
mod on_kafka;
mod on_local;
mod on_read;
mod on_timeout;
mod overlapping;
mod position;
mod preempting;
mod reasons;
mod release;
mod spreading;
mod state;
mod statistics;
mod transitions;

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
            common: Common::new(now, setup, random),
            seen: on_local::Seen::default(),
            state: State::StandingBy { not_before: now },
        }
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

    /// Handles an event in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.state == State::Departed {
            return;
        }
        // The end of a lease is handled before the event, because no event can extend a lease that has ended.
        self.end_lease_if_over(now);
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
                self.topic_judged(now, cut_is_harmless, gaps_are_markers);
            }
            Event::Undecodable { .. } => self.common.listener.undecodable(now),
            Event::UnusedPartitions => self.common.learn_of_unused_partitions(),
            Event::Undelivered { seq } => self.undelivered(now, seq),
        }
        self.handle_timeout(now);
    }
}
