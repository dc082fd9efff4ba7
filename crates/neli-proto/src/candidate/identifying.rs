//! The topic's identity: offsets alone do not show that a topic was deleted and created again, but its id does (R1, R2, R3).
//!
//! The id is asked for as soon as listening has begun, in parallel to the reading: a candidate that claimed before the answer would not
//! notice that the topic was created again in between. A leader asks again at least twice a lease, since a beat extends the lease only
//! while the id is confirmed; if its claim is slow, it asks before the claim is read back, so that its first beat counts. A standby asks
//! before a silence is over, so that its claim need not wait for the answer.

use core::mem;
use core::time::Duration;

use super::state::State;
use super::{Action, Election};
use crate::kafka::Request;
use crate::listener::HistoryCut;
use crate::note::Note;
use crate::time::Time;
use crate::topic::TopicIdentity;

/// The interval of questions while the topic does not exist.
const ASK_FOR_MISSING: Duration = Duration::from_secs(1);
/// This part of a lease after it was sent, a claim that was not read back is slow: its answer, and that of the first beat, may take so long
/// that there is no time for a second beat. A faster one is not delayed by a question.
const CLAIM_IS_SLOW: u32 = 30;

/// The topic's identity, as far as it is known.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct KnownTopic {
    /// The topic from which the journal is read; `Missing` as long as that is not known.
    name: TopicIdentity,
    /// The time of the last question that was answered with this id.
    pub(super) confirmed: Option<Time>,
    /// The time of the last question that was requested.
    asked: Option<Time>,
    /// Whether a question has not been answered yet.
    open: bool,
    /// When the history was last cut, as far as it is known.
    pub(super) cut_at: Time,
    /// Answers to questions from before this time do not count: they describe the topic before a cut, or before listening began anew.
    valid_from: Time,
    /// The topic with its id before the cut; `Missing` if there was none.
    before: TopicIdentity,
}

impl KnownTopic {
    /// The state after a cut of the history: earlier answers may be about another topic.
    pub(super) fn after_cut(&self, now: Time) -> Self {
        let (name, before) = match self.name {
            TopicIdentity::Id { .. } => (TopicIdentity::Missing, self.name),
            // A broker without ids has none for the new topic either.
            TopicIdentity::Missing | TopicIdentity::Unnamed => (self.name, self.before),
        };
        Self { name, before, cut_at: now, valid_from: now, ..Self::default() }
    }

    /// Has the id asked for again when listening has begun anew: the topic may have been created again while nothing was read back.
    pub(super) const fn ask_anew(&mut self, now: Time) {
        (self.asked, self.open, self.valid_from) = (None, false, now);
    }

    /// Whether the topic was confirmed to be the same at `time` or later, as far as the broker has ids.
    pub(super) fn is_confirmed_since(&self, time: Time) -> bool {
        match self.name {
            TopicIdentity::Id { .. } => self.confirmed.is_some_and(|at| at >= time),
            TopicIdentity::Missing => false,
            TopicIdentity::Unnamed => true,
        }
    }
}

impl Election {
    /// Handles an answer to the question that was asked at `asked`.
    ///
    /// # Errors
    ///
    /// The topic has been missing for so long that its history is gone, or it was created again.
    pub(super) fn identified(&mut self, asked: Time, identity: TopicIdentity) -> Result<(), HistoryCut> {
        let topic = &mut self.topic;
        if asked < topic.valid_from {
            return Ok(());
        }
        topic.open = false;
        // Another role of this process may have asked.
        topic.asked.get_or_insert(asked);
        if identity == TopicIdentity::Missing {
            return self.listener.topic_missing(asked);
        }
        self.listener.topic_found();
        match (identity, topic.name) {
            (TopicIdentity::Id { .. }, TopicIdentity::Id { .. }) if identity == topic.name => {
                topic.confirmed = topic.confirmed.max(Some(asked));
            }
            // Records of the old topic don't apply to the new one.
            (TopicIdentity::Id { .. }, TopicIdentity::Id { .. }) => {
                topic.name = TopicIdentity::Missing;
                self.actions.push_back(Action::Note(Note::TopicRemade));
                return Err(HistoryCut);
            }
            (TopicIdentity::Id { .. }, TopicIdentity::Missing | TopicIdentity::Unnamed) => {
                (topic.name, topic.confirmed) = (identity, Some(asked));
                if mem::take(&mut topic.before).is_other_than(identity) {
                    self.actions.push_back(Action::Note(Note::TopicRemade));
                }
            }
            (TopicIdentity::Unnamed, TopicIdentity::Missing) => {
                topic.name = TopicIdentity::Unnamed;
                self.actions.push_back(Action::Note(Note::TopicUnnamed));
            }
            // If one broker has no ids and others have them, its answer confirms nothing.
            (TopicIdentity::Missing | TopicIdentity::Unnamed, _) => {}
        }
        Ok(())
    }

    /// When to ask for the topic's id; `None` while a question is open, or if the broker has no ids.
    pub(super) fn identity_due(&self, state: &State) -> Option<Time> {
        let topic = &self.topic;
        if topic.open || topic.name == TopicIdentity::Unnamed || !self.listener.is_answered() {
            return None;
        }
        let lease = self.timings.lease;
        let not_before = |span: Duration| topic.asked.map(|asked| asked + span);
        if topic.name == TopicIdentity::Missing || topic.asked.is_none() {
            // The first question is asked as soon as listening has begun.
            return Some(not_before(ASK_FOR_MISSING).unwrap_or(Time::ZERO));
        }
        if self.listener.is_topic_missing() {
            return not_before(ASK_FOR_MISSING);
        }
        let again = not_before(lease / 3)?;
        if let State::Claiming { sent, .. } = state {
            // For the first beat.
            Some(again.max(*sent + lease / CLAIM_IS_SLOW))
        } else if let State::Leading(_) = state {
            Some(again)
        } else if let State::StandingBy { .. } = state {
            let claim_window = self.listener.claim_window()?;
            let from = claim_window.confirmed_from.filter(|from| !topic.is_confirmed_since(*from))?;
            Some(if topic.confirmed < topic.asked { from.max(again) } else { from })
        } else {
            None
        }
    }

    /// Asks again, because the producer that should have asked is gone.
    pub(super) fn ask_identity_again(&mut self) {
        if self.topic.open {
            self.actions.push_back(Action::Kafka(Request::Identify));
        }
    }

    pub(super) fn ask_identity_if_due(&mut self, now: Time, state: &State) {
        if self.identity_due(state).is_some_and(|due| now >= due) {
            (self.topic.asked, self.topic.open) = (Some(now), true);
            self.actions.push_back(Action::Kafka(Request::Identify));
        }
    }
}
