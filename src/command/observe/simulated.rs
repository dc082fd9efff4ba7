//! `observe` without Kafka and HTTP: a bench gives it records that nobody wrote, and times that never were.

use neli_kafka::{TopicsEvent, names};
use neli_proto::leadership::ReadAt;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::Topics;

use super::page::Overview;
use super::state::State;
use super::{json, metrics};

/// What is known of all elections, and how it is shown.
pub struct Simulated(State);

impl Simulated {
    /// Nothing is known. A day before the first reading is not read.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is no value that is left out")]
    pub fn new() -> Self {
        Self(State::new(Topics::new(FIRST_SPAN, names::MOST_ROLES), None))
    }

    /// Handles an event of the reader; what it is to do is left undone.
    pub fn handle(&mut self, at: ReadAt, event: TopicsEvent) {
        // Nobody refuses.
        let _ = self.0.handle(at, event);
        while self.0.topics.poll_action().is_some() {}
    }

    /// Notes what no record shows, as each second.
    pub fn tick(&mut self, at: ReadAt) {
        self.0.tick(at);
        while self.0.topics.poll_action().is_some() {}
    }

    /// Whether each topic was read to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.topics.is_complete()
    }

    /// `/`.
    #[must_use]
    pub fn page(&self, at: ReadAt) -> String {
        Overview::of(&self.0, at).page()
    }

    /// `/metrics`.
    #[must_use]
    pub fn metrics(&self, at: ReadAt) -> String {
        metrics::render(&self.0, at)
    }

    /// `/elections`.
    #[must_use]
    pub fn elections(&self, at: ReadAt) -> String {
        json::all(&self.0, at)
    }
}
