//! May this member lead? Input in, action out: the rules R1 to R7 of a candidate.
//!
//! It knows the journal and the lease. It does not know the job: that it may run, and until when, it tells with
//! [`Action::Lead`] and [`Action::Extend`]; that nothing of it is left, it is told by [`LocalEvent::NothingLeft`].
//!
//! What it is and knows in every state is its `Common`; what it is in the election is its `State`, a type with one function that
//! takes every `Input` and gives the state that follows.

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

pub use crate::supervisor::{Departure, JobEnd, JobReport, LocalEvent, Loss};
pub use crate::timings::{Durations, Elector, Patience, Timings};
pub use action::{Action, Milestone, Note, StandingFor, Waiting};
pub use event::Event;
pub use position::Position;

mod action;
mod awaiting_judgement;
mod claiming;
mod common;
mod event;
mod fenced;
mod identifying;
mod leading;
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

/// Who a candidate is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    /// Its random id, made at its start.
    pub member: MemberId,
    /// How it is called.
    pub name: Box<str>,
    /// What its hello says.
    pub hello: Body,
}

impl Identity {
    /// `--priority`, as its hello says it.
    const fn priority(&self) -> u16 {
        match self.hello {
            Body::Hello { priority, .. } => priority,
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => 0,
        }
    }
}

/// What a candidate is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who it is.
    pub identity: Identity,
    /// Every duration of the protocol.
    pub timings: Timings,
    /// When the process started: `wait` runs from then on.
    pub started: Time,
    /// `--wait`: it departs when it has not led for so long.
    pub wait: Option<Duration>,
    /// R1: how far before the log's end a reading begins, in offsets: [`FIRST_SPAN`](crate::listener::FIRST_SPAN), but in tests.
    pub first_span: Offset,
}

/// One candidate of one election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Candidate {
    common: Common,
    state: State,
}

/// R0: whether the topic may carry an election. Where it may not, the node has the candidate stand down.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Judgement {
    /// It has not been judged yet.
    Awaited {
        /// One claim is made meanwhile, and no second.
        claimed: bool,
    },
    /// It may.
    Fit,
}

impl Judgement {
    /// It has not been judged, and nothing has been claimed.
    const fn awaited() -> Self {
        Self::Awaited { claimed: false }
    }
}

impl Candidate {
    /// A candidate that begins to listen.
    #[must_use]
    pub fn new(now: Time, setup: Setup, random: Random) -> Self {
        Self { common: Common::new(now, setup, random), state: StandingBy::from(now) }
    }

    /// The same in a process that stands in other elections too: that says hello for all of them, by one member of the group.
    #[must_use]
    pub fn one_of_many(mut self) -> Self {
        self.common.is_one_of_many = true;
        self
    }

    /// What to do next.
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

    /// Does what is due by now. Early calls do nothing.
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

    /// Takes in what happened in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.state == State::Departed {
            return;
        }
        // A lease that is over stays over, whatever the event tells.
        self.step(now, Input::TimePassed);
        match event {
            Event::Answered { asked, start, end, trusted } => {
                self.answered(now, LogBounds { asked, start, end, trusted });
            }
            Event::Delivered { seq } => self.delivered(now, seq),
            Event::HelloReceived(hello) => self.common.precedence.received(now, hello),
            Event::HistoryCut => self.history_cut(now),
            Event::LogTrusted => self.step(now, Input::LogTrusted),
            Event::Named { id } => self.common.named(now, id),
            Event::ReachedEnd { next } => self.common.listener.reached(now, next),
            Event::Read { offset, record } => self.read(now, offset, record.as_ref()),
            Event::Passed { first, last } => self.read_others(now, first, last, None),
            Event::ReadOther { offset, hello } => self.read_others(now, offset, offset, hello),
            Event::Revoked => self.revoked(now),
            Event::StandingChanged(standing) => self.common.stand(standing),
            Event::TopicIdentified { asked, identity } => self.identified(now, asked, identity),
            Event::TopicJudged { cut_is_harmless, gaps_are_markers } => {
                self.common.judgement = Judgement::Fit;
                let is_misread = self.common.listener.topic_judged(now, cut_is_harmless, gaps_are_markers);
                self.step(now, Input::TopicJudged { is_misread });
                self.common.introduce(now);
            }
            Event::Undecodable => self.common.listener.undecodable(now),
            Event::UnusedPartitions => self.common.learn_of_unused_partitions(),
            Event::Undelivered { seq } => self.step(now, Input::Undelivered { seq }),
        }
        self.handle_timeout(now);
    }

    /// Takes in what happened on this machine.
    pub fn handle_local(&mut self, now: Time, event: LocalEvent) {
        if self.state == State::Departed {
            return;
        }
        self.step(now, Input::TimePassed);
        match event {
            LocalEvent::Continued => {
                self.common.suspending = false;
                self.step(now, Input::Continued);
            }
            LocalEvent::Fenced { why } => self.step(now, Input::GuardFenced { why }),
            LocalEvent::HandOver { to } => self.hand_over(now, to),
            LocalEvent::JobChanged(job) => self.step(now, Input::JobChanged(job)),
            LocalEvent::NothingLeft(end) => self.step(now, Input::NothingLeft(end)),
            LocalEvent::SpreadBy(delay) => self.common.precedence.spread_by(delay),
            LocalEvent::StandDown { why, leaving } => self.stand_down(now, why, leaving),
        }
        self.handle_timeout(now);
    }

    /// Ends the wait for a claim or for a release's delivery: whoever stops twice does not want to wait. (Whoever was told to stop
    /// has released a term that is not judged.)
    pub fn give_up(&mut self, now: Time) {
        self.step(now, Input::GivenUp);
        self.step(now, Input::MoveOn);
    }

    /// Whether it may claim a vacancy: not while `are_held`.
    pub(crate) fn hold_claims(&mut self, now: Time, are_held: bool) {
        self.common.claims_are_held = are_held;
        if !are_held {
            self.handle_timeout(now);
        }
    }

    fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        self.common.stands_down(why, leaving);
        self.step(now, Input::StandDown { why });
    }

    /// Whether `term` is held here, or still to be released, and not yet standing down for good or for somebody else.
    fn may_resign(&self, term: Offset) -> bool {
        let is_free = |why: Option<Why>| why.is_none_or(|why| rank(why) < rank(Why::Resigned));
        self.state.resignable(&self.common).is_some_and(|(held, stood_down)| held == term && is_free(stood_down))
    }

    /// Hands the state what happened, and takes on the one that follows.
    fn step(&mut self, now: Time, input: Input) {
        let state = mem::replace(&mut self.state, State::Departed);
        self.state = state.step(&mut self.common, now, input);
    }
}
